# SPDX-License-Identifier: PostgreSQL
"""test_copy: COPY in both directions and both protocols: T04 and T05 of the catalogue."""
import pytest

from pgt import postgres
from pgt.diff import differential
from pgt.wire import (COPY_DONE, FLUSH, SYNC, Wire, bind, copy_data, copy_fail, execute, message, parse,
                      pg, query)

TABLE = "create temp table t04(a int, b text)"
ROWS = [b"1\tone\n", b"2\ttwo\n", b"3\tthree\n"]
BAD = b"x\tnot a number\n"


def start_copy_in(c, extended: bool) -> None:
    c.simple(TABLE)
    if extended:
        c.send(parse("copy t04 from stdin"), bind(), execute(), FLUSH)
    else:
        c.send(query("copy t04 from stdin"))
    c.until("G")


BOTH = pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])


def finish(c, extended: bool) -> None:
    if extended:
        c.send(SYNC)
    c.ready()
    c.simple("select count(*) from t04")


@differential()
@BOTH
@pytest.mark.parametrize("between", [FLUSH, SYNC, FLUSH + SYNC, SYNC + SYNC + FLUSH],
                         ids=["flush", "sync", "flush_sync", "many"])
def test_t04_flush_and_sync_inside_copy_in(t, extended, between):
    """The server ignores Flush and Sync during COPY IN."""
    c = t.connect()
    start_copy_in(c, extended)
    for row in ROWS:
        c.send(copy_data(row), between)
    c.send(COPY_DONE)
    finish(c, extended)


@differential()
@BOTH
@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("end", ["done", "fail"])
def test_t04_server_error_in_mid_stream(t, extended, position, end):
    """A bad row at each place, then CopyDone or CopyFail as if nothing had happened."""
    c = t.connect()
    start_copy_in(c, extended)
    rows = list(ROWS)
    rows.insert(position, BAD)
    c.send(*(copy_data(r) for r in rows), COPY_DONE if end == "done" else copy_fail("gave up"))
    finish(c, extended)
    c.simple("select 'alive'")


@differential()
@BOTH
def test_t04_error_seen_before_the_end_is_sent(t, extended):
    """The client goes on sending after it got the error."""
    c = t.connect()
    start_copy_in(c, extended)
    c.send(copy_data(BAD), copy_data(ROWS[0]), copy_data(b"\\.\n"), FLUSH)
    if extended:
        c.send(COPY_DONE)
        c.until("E")
    else:
        c.send(COPY_DONE)
        c.until("Z")
    c.send(copy_data(ROWS[1]), COPY_DONE)
    if extended:
        c.send(SYNC)
        c.ready()
    c.simple("select count(*) from t04")


@differential()
@BOTH
def test_t04_copy_fail(t, extended):
    c = t.connect()
    start_copy_in(c, extended)
    c.send(copy_data(ROWS[0]), copy_fail("client says no"))
    finish(c, extended)


@differential()
@BOTH
@pytest.mark.parametrize("split", [1, 2, 3, 7])
def test_t04_rows_split_over_messages(t, extended, split):
    c = t.connect()
    start_copy_in(c, extended)
    data = b"".join(ROWS)
    c.send(*(copy_data(data[i:i + split]) for i in range(0, len(data), split)), COPY_DONE)
    finish(c, extended)
    c.simple("select * from t04 order by a")


@differential()
@BOTH
def test_t04_empty_copy_in(t, extended):
    c = t.connect()
    start_copy_in(c, extended)
    c.send(COPY_DONE)
    finish(c, extended)


@differential()
@BOTH
@pytest.mark.parametrize("wrong", [query("select 1"), parse("select 1"), bind(), execute(), message("C", b"Sx\0"),
                                   message("D", b"Sx\0")], ids=["query", "parse", "bind", "execute", "close", "describe"])
def test_t04_other_message_inside_copy_in(t, extended, wrong):
    """A message that has no place there: the server gives the connection up."""
    if postgres.major() < 14:
        pytest.skip("PostgreSQL 13 goes on behind the error")
    c = t.connect()
    start_copy_in(c, extended)
    c.send(copy_data(ROWS[0]), wrong, SYNC)
    c.eof()


@differential()
def test_t04_copy_in_transaction_and_pipeline(t):
    c = t.connect()
    c.simple(TABLE)
    c.simple("begin")
    c.send(query("copy t04 from stdin"))
    c.until("G")
    c.send(copy_data(BAD), COPY_DONE)
    c.ready()
    c.simple("rollback")
    c.send(pg("select 1"), parse("copy t04 from stdin"), bind(), execute(), copy_data(ROWS[0]), COPY_DONE,
           pg("select count(*) from t04"), SYNC)
    c.ready()


@differential()
@BOTH
@pytest.mark.parametrize("count", [0, 1, 3, 2000])
def test_t05_copy_out(t, extended, count):
    c = t.connect()
    sql = f"copy (select g, repeat('x', g % 50) from generate_series(1, {count}) g) to stdout"
    if extended:
        c.send(parse(sql), bind(), execute(), SYNC)
        c.ready()
    else:
        c.simple(sql)
    c.simple("select 'after'")


@differential()
@BOTH
def test_t05_copy_out_error_in_mid_stream(t, extended):
    c = t.connect()
    sql = "copy (select 10 / (5 - g) from generate_series(1, 9) g) to stdout"
    c.send(pg(sql) + SYNC if extended else query(sql))
    c.ready()
    c.simple("select 'after'")


@differential()
@BOTH
def test_t05_binary(t, extended):
    c = t.connect()
    sql = "copy (select g, g::text from generate_series(1, 20) g) to stdout (format binary)"
    c.send(pg(sql) + SYNC if extended else query(sql))
    c.ready()


@differential()
def test_t05_copy_among_statements(t):
    """COPY as a part of a string of several statements."""
    c = t.connect()
    c.simple(TABLE)
    c.send(query("select 1; copy t04 from stdin; select count(*) from t04; copy t04 to stdout; select 2"))
    c.until("G")
    c.send(*(copy_data(r) for r in ROWS), COPY_DONE)
    c.ready()
    c.send(query("copy t04 from stdin; copy t04 from stdin; select count(*) from t04"))
    c.until("G")
    c.send(copy_data(ROWS[0]), COPY_DONE)
    c.until("G")
    c.send(copy_data(ROWS[1]), COPY_DONE)
    c.ready()


@pytest.mark.parametrize("how", ["close", "reset", "terminate"])
@pytest.mark.parametrize("direction", ["in", "out"])
def test_t05_client_vanishes_in_copy(pg, pgpool, wait_for, direction, how):
    """Nothing of an unfinished COPY stays, and no server process goes on with it."""
    table = f"gone_{direction}_{how}"
    pg.rows(f"drop table if exists {table}")
    pg.rows(f"create table {table}(a text)")
    w = Wire(pgpool.address)
    w.login()
    if direction == "in":
        w.send(query(f"copy {table} from stdin"))
        w.read_until("G")
        w.send(copy_data(b"row\n"))
    else:
        w.send(query(f"copy (select repeat('x', 1000), generate_series(1, 10000000) /* {table} */) to stdout"))
        w.read_until("d")
    if how == "terminate":
        w.bye()
    elif how == "reset":
        w.reset()
    else:
        w.sock.close()
    wait_for("no COPY runs", lambda: not pg.sessions(
        f"state = 'active' and query like 'copy%{table}%'"))
    assert pg.value(f"select count(*) from {table}") == "0"
    pg.rows(f"drop table {table}")


@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
def test_big_copy_both_ways(pg, pgpool, extended):
    """32 MB in and out again, unchanged."""
    line = b"%d\t" + b"y" * 1000 + b"\n"
    with Wire(pgpool.address, seconds=60) as w:
        w.login()
        w.simple(TABLE)
        sql = "copy t04 from stdin"
        w.send(parse(sql) + bind() + execute() if extended else query(sql))
        if extended:
            w.send(FLUSH)
        w.read_until("G")
        for start in range(0, 32000, 100):
            w.send(*(copy_data(line % n) for n in range(start, start + 100)))
        w.send(COPY_DONE + SYNC if extended else COPY_DONE)
        assert [m.body for m in w.ready() if m.type == "C"] == [b"COPY 32000\0"]
        w.send(query("copy (select * from t04 order by a) to stdout"))
        got = [m.body for m in w.ready() if m.type == "d"]
        assert got == [line % n for n in range(32000)]
