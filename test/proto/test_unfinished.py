# SPDX-License-Identifier: PostgreSQL
"""test_unfinished: who leaves in the midst of a sequence has no Sync to commit it: nothing of it is kept, and the
connection to the server is."""
import pytest

from pgt import waits
from pgt.wire import COPY_DONE, FLUSH, SYNC, TERMINATE, Wire, bind, copy_data, execute, message, parse, pg, query

INSERT = pg("insert into unfinished values (1)")
# What is sent, and the messages that show that the server has done it.
SAID = {
    "unasked": (INSERT, ""),
    "flushed": (INSERT + FLUSH, "C"),
    "behind_a_sequence": (pg("select 1") + SYNC + INSERT + FLUSH, "ZC"),
    "behind_a_query": (query("select 1") + INSERT, "Z"),
    "two": (INSERT + INSERT + FLUSH, "CC"),
    "named": (parse("insert into unfinished values (1)", "s") + bind(name="s") + execute() + FLUSH, "C"),
    "slow": (INSERT + pg("select pg_sleep(0.2)"), ""),
    "error_behind": (INSERT + FLUSH + parse("selec"), "CE"),
    "copied": (pg("copy unfinished from stdin") + SYNC + copy_data(b"1\n") + COPY_DONE + FLUSH, "GC"),
    "copied_with_flush": (pg("copy unfinished from stdin") + FLUSH + copy_data(b"1\n") + COPY_DONE + FLUSH, "GC"),
    "in_transaction": (query("begin") + INSERT + FLUSH, "ZC"),
}


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("how", ["close", "reset", "half", "terminate"])
def test_nothing_of_it_is_kept(pg, start_pool, mode, how):
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode, max_backend_connections=1, query_wait_timeout=20)
    pg.rows("drop table if exists unfinished; create table unfinished(a int)")
    with Wire(pool.address) as first:
        first.login()
        pid = first.value("select pg_backend_pid()")
    for what, (said, answers) in SAID.items():
        w = Wire(pool.address)
        w.login()
        w.send(said)
        for kind in answers:
            w.read_until(kind)
        if how == "terminate":
            w.send(TERMINATE)
        if how == "half":
            w.half_close()
        elif how == "reset":
            w.reset()
        else:
            w.sock.close()
        waits.wait_for("it is over at the server", lambda: not pg.sessions("state <> 'idle' and pid = " + pid))
        with Wire(pool.address) as other:
            other.login()
            assert (what, other.value("select count(*) from unfinished")) == (what, "0")
            assert (what, other.value("select pg_backend_pid()")) == (what, pid)
        w.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("kind", ["d", "c", "f"])
@pytest.mark.parametrize("junk", [b"\xff\0\0\0\4", b"Q\0\0\0\1"], ids=["type", "length"])
def test_a_tail_in_front_of_nonsense(pg, start_pool, mode, kind, junk):
    """The end of a message comes in one write with what ends the session: the server gets it, and is not asked in vain to
    become as new."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode, max_backend_connections=1, query_wait_timeout=20)
    with Wire(pool.address) as first:
        first.login()
        pid = first.value("select pg_backend_pid()")
    w = Wire(pool.address)
    w.login()
    w.send(query("set work_mem = '7MB'") + message(kind, b"x" * 20)[:5])
    w.ready()
    w.send(b"x" * 20 + junk)
    assert [m.fields["C"] for m in w.read_eof() if m.type == "E"][-1:] == ["08P01"]
    with Wire(pool.address) as other:
        other.login()
        assert (other.value("select pg_backend_pid()"), other.value("show work_mem")) == (pid, "4MB")
