# SPDX-License-Identifier: PostgreSQL
"""test_pool_again: a read in transaction mode whose connection dies after the server has committed it, before anything of the
answer came: it is made again when all that it names is known to read, once the server was asked; what a view wrote stays written
once.
"""
import socket

import pytest
from pooling_house import login, states

from pgt.relay import Relay
from pgt.wire import SYNC, bind, describe, execute, parse, query

SETUP = ("drop schema if exists again cascade", "create schema again", "create sequence again.counted",
         "create table again.plain as select 7 as a",
         "create function again.counts() returns bigint language sql as $$select nextval('again.counted')$$",
         "create view again.writes as select again.counts() as a", "create view again.beneath as select a from again.writes",
         "create view again.reads as select a from again.plain")

SENT = {"simple": lambda sql: [query(sql)],
        "unnamed": lambda sql: [parse(sql), bind(), describe("", "P"), execute(), SYNC],
        "named": lambda sql: [parse(sql, "s"), bind(name="s"), execute(), SYNC]}

READS = ("select a from again.plain", "select a from again.reads", "select r.a from again.reads r join again.plain p using (a)")
WRITES = ("select a from again.writes", "select a from again.beneath", "select w.a, r.a from again.reads r, again.writes w",
          "select lower('A'), a from again.writes")


class Cutting(Relay):
    """When `cuts` is set the connection on which the next statement of this test goes is closed, and its answer lost."""

    def __init__(self, pg):
        self.cuts = 0
        self.doomed: socket.socket | None = None  # to the server
        super().__init__("127.0.0.2", pg.address)

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        if one is self.doomed:
            self.doomed = None
            self._close(one, other)
            return
        try:
            if self.cuts > 0 and b"from again." in one.recv(self.take(), socket.MSG_PEEK):
                self.cuts -= 1
                self.doomed = other
        except OSError:
            pass  # as below
        super()._forward(one, other)


@pytest.fixture
def relay(pg):
    for sql in SETUP:
        pg.rows(sql)
    relay = Cutting(pg)
    yield relay
    relay.close()
    pg.rows("drop schema again cascade")


def lose(c, relay, sql: str, how: str):
    """Sends it where nothing has to be told to the server first."""
    assert c.value("select 1") == "1"
    relay.cuts = 1
    c.send(*SENT[how](sql))
    found = c.ready()
    assert relay.cuts == 0 and relay.doomed is None
    return found


@pytest.mark.parametrize("balances", [False, True], ids=["", "balances"])
@pytest.mark.parametrize("how", list(SENT))
def test_views_that_write(pg, relay, start_pool, how, balances):
    pool = start_pool(relay.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1,
                      load_balance_mode=balances, disable_load_balance_on_write="always", health_check_period=0,
                      sr_check_period=0)
    with login(pool) as c:
        for sql in WRITES:
            for front in ("", "/*NO LOAD BALANCE*/ "):
                pg.rows("select setval('again.counted', 10)")
                found = lose(c, relay, front + sql, how)
                assert pg.value("select last_value from again.counted") == "11", sql
                assert (states(found), found[-1].body) == (["08006"], b"I"), sql
                c.send(*SENT[how]("select 2 from again.plain") if how != "named" else [query("select 2")])
                assert not states(c.ready()), "it is not taken for what went before it"
        for sql in READS:
            c.simple("deallocate all")
            found = lose(c, relay, sql, how)
            assert [m.row() for m in found if m.type == "D"] in ([[b"7"]], [[b"7", b"7"]]), sql


def test_a_transaction_is_not_made_again(relay, start_pool):
    """Nor is it asked about."""
    pool = start_pool(relay.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1,
                      health_check_period=0, sr_check_period=0)
    with login(pool) as c:
        c.simple("begin")
        found = lose(c, relay, READS[0], "simple")
        assert (states(found), found[-1].body) == (["08006"], b"E")
        c.simple("rollback")
        assert c.rows(READS[0]) == [[b"7"]]
