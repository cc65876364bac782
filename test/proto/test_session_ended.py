# SPDX-License-Identifier: PostgreSQL
"""test_session_ended: a transaction that the server ended by a time-out of its own: the client is told the server's words,
by whichever message it hears of it."""
import pytest

from pgt import waits
from pgt.wire import SYNC, Wire, bind, execute, parse, query

WORDS = ("25P03", "terminating connection due to idle-in-transaction timeout")


def ended(pg, pool) -> Wire:
    """A client whose transaction has ended so."""
    w = Wire(pool.address, seconds=20)
    w.login()
    w.simple("set idle_in_transaction_session_timeout = '100ms'")
    found = w.simple("begin; select pg_backend_pid()")
    pid = next(m.row()[0].decode() for m in found if m.type == "D")
    waits.wait_for("the server has ended it", lambda: not pg.sessions("pid = " + pid), 20)
    return w


def words(found) -> list[tuple[str, str]]:
    return [(m.fields["C"], m.fields["M"]) for m in found if m.type == "E"]


@pytest.mark.parametrize("said", [query("select 1"), query("commit"), parse("select 1") + bind() + execute() + SYNC,
                                  parse("commit") + bind() + execute() + SYNC])
@pytest.mark.parametrize("virtual", [True, False], ids=["virtual", "sent"])
def test_transaction_mode(pg, start_pool, said, virtual):
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", virtual_begin=virtual)
    w = ended(pg, pool)
    w.send(said)
    assert words(w.read_until("Z")) == [WORDS]
    w.simple("rollback")
    assert w.value("select 1") == "1", "the session lives on"
    w.bye()


def test_session_mode(pg, start_pool):
    """The session ends as without pgpool."""
    w = ended(pg, start_pool(pg.address, num_init_children=1))
    assert words(w.read_eof()) == [WORDS]
