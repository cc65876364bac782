# SPDX-License-Identifier: PostgreSQL
"""test_half_closed: a client closes its sending half and gets every answer that PostgreSQL would give it."""
import pytest

from pgt import waits
from pgt.diff import differential
from pgt.wire import pg as pg_messages
from pgt.wire import (COPY_DONE, FLUSH, SYNC, Wire, bind, close, copy_data, execute, function_call, message, parse, pg,
                      query)

HALF_BIND = bind(["x" * 100])[:40]

SAID = {
    "error_behind_sync": pg("select 1") + SYNC + parse("selec 2"),
    "error_behind_query": query("select 1") + bind(name="nobody"),
    "error_alone": parse("select nothing"),
    "error_and_more": bind(name="nobody") + execute() + parse("select 2", "b"),
    "skipped_behind": query("select 1") + parse("selec 2") + pg("select 3") + query("select 4") + FLUSH,
    "in_transaction": query("begin") + parse("selec 2"),
    "nothing_told": pg("insert into half_said values (1)"),
    "flushed": pg("select 5") + FLUSH,
    "flushed_behind": query("select 1") + pg("select 5") + FLUSH,
    "flushed_and_more": query("select 1") + pg("select 5") + FLUSH + close("x"),
    "flushed_and_error": pg("select 5") + FLUSH + parse("selec 6"),
    "flushed_write": pg("insert into half_said values (1)") + FLUSH,
    "half_a_header": query("select 1") + b"Q\0",
    "half_a_query": query("select 1") + query("select 2")[:9],
    "half_a_parse": pg("select 1") + SYNC + parse("select 2")[:9],
    "half_a_bind": pg("select 1") + SYNC + parse("select $1::text") + HALF_BIND,
    "half_a_call": query("select 1") + function_call(1598, [])[:8],
    "unknown_type": query("select 1") + message("y"),
    "slow": query("select pg_sleep(0.3)") + parse("selec"),
    "pipeline": b"".join(pg(f"select {n}/(3-{n})") + SYNC for n in range(6)) + query("select 7"),
    "copy_out": query("copy (select generate_series(1, 5)) to stdout") + parse("selec 1"),
    "copy_in": query("copy half_said from stdin") + copy_data(b"1\n") + COPY_DONE + query("table half_said"),
    "copy_in_extended": (pg("copy half_said from stdin") + SYNC + copy_data(b"1\n") + COPY_DONE + SYNC +
                         parse("selec 1")),
}


@pytest.fixture(autouse=True)
def table(pg):
    pg.rows("drop table if exists half_said; create table half_said(a int)")


@differential()
@pytest.mark.parametrize("what", SAID)
def test_is_told_what_postgres_tells(t, what):
    c = t.connect()
    c.send(SAID[what])
    c.wire.half_close()
    c.eof()
    t.wait_sql("select count(*) = 0 from pg_stat_activity where state <> 'idle' and pid <> pg_backend_pid()")
    c.lines += [str(row) for row in t.direct("select count(*) from half_said")]
    t.direct("truncate half_said")


COPIES = {
    "simple": (query("copy half_said from stdin") + copy_data(b"1\n"), ["GEZ"]),
    "half_a_row": (query("copy half_said from stdin") + copy_data(b"1\n" * 100)[:50], ["GEZ"]),
    # The server begins to copy before the client's end is seen, or behind it.
    "extended": (pg("copy half_said from stdin") + copy_data(b"1\n"), ["12nGE", "E"]),
    "flushed": (pg("copy half_said from stdin") + FLUSH + copy_data(b"1\n"), ["12nGE"]),
}


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_copy_without_an_end(pg, start_pool, mode):
    """It fails at once, whether the server copied when the client said its last word or not yet. PostgreSQL has
    another text for it (08006), for it sees the end of the connection."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode, max_backend_connections=1, query_wait_timeout=20)
    for what, (said, told) in COPIES.items():
        for late in (False, True):
            w = Wire(pool.address)
            w.login()
            w.send(said)
            late = late or what == "half_a_row"  # of what it belongs to nothing is known before
            seen = w.read_until("G") if late and what != "extended" else []
            w.half_close()
            found = seen + w.read_eof(4)
            kinds = "".join(m.type for m in found)
            assert kinds in told, (what, late, kinds)
            if what != "half_a_row":  # the rest of that is made up
                assert found[kinds.index("E")].sqlstate == "57014"
            with Wire(pool.address) as other:
                other.login()
                assert other.value("select count(*) from half_said") == "0"


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_bad_length_behind_a_query(pg, start_pool, mode):
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode)
    for said, told in ((query("select 1"), "TDCZE"), (pg_messages("select 1") + SYNC, "12TDCZE"), (b"", "E")):
        with Wire(pool.address) as w:
            w.login()
            w.send(said + b"Q\0\0\0\1")
            assert "".join(m.type for m in w.read_eof(4)) == told


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_what_an_error_ends(pg, start_pool, mode):
    """The error is told, behind the last Sync, too. (PostgreSQL tells the ParseComplete in front of it with it.)"""
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode)
    for sent, told in ((b"", "E"), (query("select 1"), "TDCZE"), (pg_messages("select 1") + SYNC, "12TDCZE")):
        with Wire(pool.address) as w:
            w.login()
            w.send(sent + pg_messages("insert into half_said values (1)") + pg_messages("select 1/0"))
            w.half_close()
            found = w.read_eof(4)
            kinds = "".join(m.type for m in found)
            # It is, too, when it is there before the client's end is seen.
            assert kinds in (told, told[:-1] + "12nC1E") and found[-1].sqlstate == "22012"
    assert pg.value("select count(*) from half_said") == "0"


@pytest.mark.parametrize("kind", ["tcp", "unix"])
@pytest.mark.parametrize("how", ["slow", "steps"])
def test_who_reads_slowly_gets_all(pg, start_pool, how, kind):
    """Longer than a client is waited for that may have gone: this one is seen to take what it is told."""
    pool = start_pool(pg.address, num_init_children=1, half_closed_timeout="2s")
    w = Wire(pool.socket if kind == "unix" else pool.address, seconds=20, rcvbuf=4096)
    w.login()
    if how == "slow":
        w.send(query("select repeat('x', 1000) from generate_series(1, 40000)"))
        count = 40000
    else:
        w.send(query("select repeat('x', 10000), pg_sleep(0.5) from generate_series(1, 6)"))
        count = 6
    w.half_close()
    if how == "slow":
        for n in range(1, 13):
            w.fill(n * 600_000)
            waits.holds_for("it reads slowly", lambda: True, 0.25)
        assert pg.sessions("state = 'active'"), "the server was held back"
    found = w.read_eof(20)
    assert ([m.type for m in found].count("D"), found[-1].type) == (count, "Z")


@pytest.mark.session_mode
def test_unix_client_that_waits_is_served(pg, start_pool):
    """Of a Unix socket it is known that its other end is open: a query may take its time."""
    pool = start_pool(pg.address, num_init_children=1, half_closed_timeout="500ms")
    w = Wire(pool.socket, seconds=20)
    w.login()
    w.send(query("select pg_sleep(2)"))
    w.half_close()
    assert "".join(m.type for m in w.read_eof(20)) == "TDCZ"
