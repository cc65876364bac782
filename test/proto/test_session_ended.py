# SPDX-License-Identifier: PostgreSQL
"""test_session_ended: a transaction that the server ended by a time-out of its own: the client is told the server's words,
by whichever message it hears of it."""
import pytest

from pgt import postgres, waits
from pgt.fake import error
from pgt.wire import SYNC, Wire, bind, execute, parse, query
from pgt.wire import pg as pg_messages

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


IDLE = ("57P05", "terminating connection due to idle-session timeout")


@pytest.mark.skipif(postgres.major() < 14, reason="PostgreSQL 13 has no idle_session_timeout")
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_an_idle_session(pg, start_pool, mode):
    """In session mode it ends with the server's words. In transaction mode it is a connection that nobody has which ends, and the
    session has another one."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode)
    w = Wire(pool.address, seconds=20)
    w.login()
    pid = w.value("select pg_backend_pid()")
    w.send(query("set idle_session_timeout = '100ms'"))
    if mode == "session":
        assert words(w.read_eof()) == [IDLE]
        return
    w.ready()
    waits.wait_for("the server has ended it", lambda: not pg.sessions("pid = " + pid), 20)
    w.simple("set idle_session_timeout = 0")
    assert w.value("select pg_backend_pid()") != pid
    w.bye()


BYE = error("57P01", "terminating connection due to administrator command", "FATAL")
MODES = {"transaction": {"pool_mode": "transaction"}, "balanced": {"load_balance_mode": True}}


@pytest.mark.parametrize("in_transaction", [False, True])
@pytest.mark.parametrize("how", ["simple", "extended"])
@pytest.mark.parametrize("mode", MODES)
def test_said_long_before_its_end(fake, start_pool, mode, how, in_transaction):
    """A server process that has said its last words may take its time to go: nothing is asked of it any more."""
    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            assert conn.number not in ended_ones, f"{kind} {body!r} behind the last words"
            conn.send(conn.answer(kind, body))

    ended_ones: set[int] = set()
    server = fake(script)
    nodes = [server.address] * (2 if mode == "balanced" else 1)
    pool = start_pool(*nodes, num_init_children=1, backend_flag0="ALWAYS_PRIMARY", **MODES[mode])
    with Wire(pool.address, seconds=20) as w:
        assert w.login("fake", "fake")[-1].type == "Z"
        w.rows("begin" if in_transaction else "select 1")
        w.rows("insert into t values (1)")
        link = next(c for c in reversed(server.links()) if "Q" in c.seen)
        ended_ones.add(link.number)
        link.send(BYE)
        waits.wait_for("pgpool lets it go", lambda: link.sock.fileno() == -1)
        w.send(query("insert into t values (2)") if how == "simple" else pg_messages("insert into t values (2)") + SYNC)
        found = w.ready()
        assert [m.sqlstate for m in found if m.type == "E"] == (["08006"] if in_transaction else [])
        assert found[-1].body == (b"E" if in_transaction else b"I")
        w.rows("rollback")
        assert w.rows("select 1") == [[b"1"]]
