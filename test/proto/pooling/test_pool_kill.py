# SPDX-License-Identifier: PostgreSQL
"""test_pool_kill: transaction mode, pg_terminate_backend() and pg_cancel_backend() of the number that pgpool told a client:
an order about that client, with the rights that a server would ask for."""
import struct

import pytest
from pooling_house import login, states

from pgt import waits
from pgt.wire import SYNC, bind, close, describe, execute, parse, query

INT4 = 23


@pytest.fixture
def pool(pg, start_pool):
    return start_pool(pg.address, num_init_children=2, worker_fill=1, pool_mode="transaction", max_backend_connections=0)


def call(c, what: str, how: str, pid: int) -> list:
    """The value, or the SQLSTATE."""
    name = f"pg_{what}_backend"
    if how == "simple":
        found = c.simple(f"select {name}({pid})")
    elif how == "literal":
        c.send(parse(f"SELECT pg_catalog.{name}({pid});") + bind() + describe("", "P") + execute() + SYNC)
        found = c.ready()
    elif how == "text":
        c.send(parse(f"select {name}($1)") + bind(params=(str(pid),)) + describe("", "P") + execute() + SYNC)
        found = c.ready()
    elif how == "binary":
        c.send(parse(f"select {name}($1)", "k") + describe("k") + SYNC)
        assert not states(c.ready())
        c.send(bind(name="k", params=(struct.pack("!i", pid),), formats=(1,), results=(1,)) + execute() + SYNC)
        found = c.ready()
        c.send(close("k") + SYNC)
        assert not states(c.ready())
    return states(found) or [m.row()[0] for m in found if m.type == "D"]


YES = {"simple": b"t", "literal": b"t", "text": b"t", "binary": b"\1"}


@pytest.mark.parametrize("how", YES)
def test_terminate(pool, how):
    one, other = login(pool), login(pool)
    assert one.pid != other.pid and other.pid >= 1 << 30
    assert call(one, "terminate", how, other.pid) == [YES[how]]
    assert [m.fields["C"] for m in other.read_eof() if m.type == "E"] == ["57P01"]
    assert one.value("select 1") == "1"
    assert one.simple("begin")[-1].body == b"T"
    one.simple("select 1")
    third = login(pool)
    assert call(one, "terminate", how, third.pid) == [YES[how]], "in a transaction, too"
    assert third.read_eof()
    assert one.simple("commit")[-1].body == b"I"
    one.bye()


@pytest.mark.parametrize("how", YES)
def test_cancel(pg, pool, how):
    one, other = login(pool), login(pool)
    other.send(query("select pg_sleep(60), 'to be cancelled'"))
    waits.wait_for("it runs", lambda: pg.sessions("query like '%to be cancelled%' and state = 'active'"), 20)
    assert call(one, "cancel", how, other.pid) == [YES[how]]
    assert states(other.read_until("Z")) == ["57014"]
    assert other.value("select 1") == "1"
    one.bye()
    other.bye()


@pytest.mark.parametrize("how", YES)
def test_rights(pg, pool, how):
    """Of another role, of a superuser, and of somebody who acts as a role."""
    boss = login(pool)
    one, two = (login(pool, user=user, password=user + "_pw") for user in ("plain_user", "trust_user"))
    again = login(pool, user="plain_user", password="plain_user_pw")
    for what in ("terminate", "cancel"):
        assert call(one, what, how, two.pid) == ["42501"]
        assert call(one, what, how, boss.pid) == ["42501"]
    assert call(one, "terminate", how, again.pid) == [YES[how]]
    assert again.read_eof()
    assert two.value("select 1") == boss.value("select 1") == "1"
    assert not states(boss.simple("set role plain_user"))
    assert call(boss, "terminate", how, two.pid) == ["42501"]
    assert not states(boss.simple("reset role"))
    assert call(boss, "terminate", how, two.pid) == [YES[how]]
    assert two.read_eof()
    for c in (boss, one):
        c.bye()


@pytest.mark.parametrize("how", YES)
def test_numbers_of_nobody_go_to_the_server(pg, pool, how):
    c = login(pool)
    no = b"\0" if how == "binary" else b"f"
    assert call(c, "cancel", how, (1 << 30) + 123456) == [no]
    server = login_direct(pg)
    assert call(c, "terminate", how, int(server.value("select pg_backend_pid()"))) == [YES[how]]
    assert server.read_eof()
    c.bye()


def login_direct(pg):
    class Direct:
        address = pg.address
    return login(Direct)


def test_a_name_that_is_used_again(pool):
    """What a name stands for is not remembered longer than the server knows it."""
    c, other = login(pool), login(pool)
    c.send(parse("select pg_terminate_backend($1)", "k") + SYNC)
    assert not states(c.ready())
    assert not states(c.simple("deallocate all"))
    c.send(parse("select $1", "k", (INT4,)) + SYNC)
    assert not states(c.ready())
    c.send(bind(name="k", params=(str(other.pid),)) + execute() + SYNC)
    assert [m.row()[0] for m in c.ready() if m.type == "D"] == [str(other.pid).encode()]
    assert other.value("select 1") == "1"
    c.bye()
    other.bye()
