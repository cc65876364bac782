# SPDX-License-Identifier: PostgreSQL
"""test_pool_statement_mode: pool_mode = statement. A client has a link for one statement (or one sequence up to Sync):
a transaction block ends the session with PgBouncer's words, before any of it runs. Everything else is as in transaction
mode, and as PostgreSQL answers it.
"""
import pytest
from pooling_house import BY, OWN, login, run, states
from test_pool_settings import STARTUPS, STEPS, walk

from pgt import waits
from pgt.diff import WHOLE, differential
from pgt.wire import (COPY_DONE, FLUSH, SYNC, bind, close, copy_data, copy_fail, describe, execute, parse, query)
from pgt.wire import pg as pgx

STATEMENT = pytest.mark.parametrize("pool_mode", ["statement"])
TEXT = "transaction blocks not allowed in statement pooling mode"


@pytest.fixture
def pool(pg, start_pool):
    pg.rows("drop table if exists stm")
    pg.rows("create table stm(a int unique)")
    return start_pool(pg.address, num_init_children=1, pool_mode="statement", pool_test_rotate=True,
                      max_backend_connections=2, query_wait_timeout=20)


def inserted(pg) -> list[int]:
    return [int(r[0]) for r in pg.rows("select a from stm order by a")]


def nothing_open(pg) -> None:
    waits.wait_for("no transaction is open", lambda: not pg.sessions("state <> 'idle'"))


# ---- transaction blocks

BLOCKS = ["begin", "BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE", "start transaction read only", "/* c */ begin work",
          "begin; insert into stm values (1)", "insert into stm values (1); begin", "begin; commit; begin; select 1",
          "begin; insert into stm values (1); commit and chain", "begin; select 1; rollback and chain"]


def ended(c) -> list:
    """What comes up to the end of the connection, the last of it the refusal."""
    found = c.read_eof()
    assert found[-1].type == "E" and (found[-1].sqlstate, found[-1].text) == ("08P01", TEXT)
    assert found[-1].fields["S"] == "FATAL"
    return found[:-1]


@pytest.mark.parametrize("sql,extended", [(sql, x) for sql in BLOCKS for x in (False, True) if not (x and ";" in sql)])
def test_block_is_refused(pg, pool, sql, extended):
    """Nothing of it runs, nor of what was sent behind it: a script that goes on would commit each statement by itself."""
    c = login(pool)
    behind = pgx("insert into stm values (7)") + SYNC
    c.send(pgx(sql) + SYNC + behind if extended else query(sql) + query("insert into stm values (7)") + behind)
    assert ended(c) == []
    assert inserted(pg) == []
    assert f"ended: {TEXT}" in pool.log()


def run_raw(c, sql: str, extended: bool) -> list:
    if extended:
        c.send(pgx(sql), SYNC)
        return c.ready()
    return c.simple(sql)


def test_named_begin_is_refused(pg, pool):
    """When it is prepared, so that it can never be executed."""
    c = login(pool)
    c.send(parse("begin", "b"), SYNC)
    assert ended(c) == []


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("flush", [False, True])
def test_block_in_a_sequence(pg, pool, at, flush):
    """What went before it in the same sequence is told, and undone; what follows does not run."""
    c = login(pool)
    parts = [pgx(f"insert into stm values ({i})") for i in range(3)]
    parts.insert(at, pgx("begin"))
    c.send(*(p + (FLUSH if flush else b"") for p in parts), SYNC, pgx("insert into stm values (7)"), SYNC)
    assert [m.type for m in ended(c)] == ["1", "2", "n", "C"] * at
    nothing_open(pg)
    assert inserted(pg) == []


@pytest.mark.parametrize("extended", [False, True])
def test_block_behind_what_is_done(pg, pool, extended):
    """What is complete in front of it was done, and is told."""
    c = login(pool)
    c.send(pgx("insert into stm values (1)"), SYNC, query("insert into stm values (2)"),
           pgx("begin") if extended else query("begin"), SYNC, pgx("insert into stm values (3)"), SYNC)
    assert [m.type for m in ended(c)] == ["1", "2", "n", "C", "Z", "C", "Z"]
    assert inserted(pg) == [1, 2]


def test_block_behind_an_error(pg, pool):
    """The first error is the one that counts."""
    c = login(pool)
    c.send(pgx("select 1/0"), pgx("begin"), SYNC, query("begin"), query("select 5"))
    assert states(ended(c)) == ["22012"]


@pytest.mark.parametrize("extended", [False, True])
def test_block_in_a_copy(pg, pool, extended):
    """It is not waited for the data, which may never come."""
    c = login(pool)
    c.send(pgx("copy stm from stdin") + FLUSH if extended else query("copy stm from stdin"))
    c.read_until("G")
    c.send(copy_data(b"1\n"), pgx("begin") + SYNC if extended else query("begin"))
    assert ended(c) == []
    nothing_open(pg)
    assert inserted(pg) == []


@pytest.mark.parametrize("end,kept", [("commit", [1, 2]), ("end", [1, 2]), ("rollback", []), ("abort", [])])
def test_string_with_its_own_transaction(pg, pool, end, kept):
    """A string that ends what it begins is one statement to the pool, as with PgBouncer."""
    c = login(pool)
    found = c.simple(f"begin; insert into stm values (1); insert into stm values (2); {end}")
    assert not states(found) and found[-1].body == b"I"
    assert inserted(pg) == kept
    c.bye()


def test_string_fails_in_its_transaction(pg, pool):
    """Its transaction is ended before the client is told that it may go on."""
    c, other = login(pool), login(pool)
    for _ in range(3):
        c.send(query("begin; insert into stm values (1); set work_mem = '7MB'; select 1/0; commit"), query("select 'next'"))
        found = c.ready(2)
        assert states(found) == ["22012"]
        assert [m.body for m in found if m.type == "Z"] == [b"I", b"I"]
        assert [m.row() for m in found if m.type == "D"] == [[b"next"]]
        assert c.value("show work_mem") == other.value("show work_mem") == "4MB"
        assert not states(c.simple("begin; set work_mem = '8MB'; commit"))
        assert (c.value("show work_mem"), other.value("show work_mem")) == ("8MB", "4MB")
        c.simple("reset work_mem")
    assert inserted(pg) == []
    nothing_open(pg)
    c.bye()
    other.bye()


DIE = "select pg_terminate_backend(pg_backend_pid())"
DEATHS = [f"begin; insert into stm values (1); {DIE}; commit", f"set work_mem to '9MB'; begin; {DIE}; commit",
          f"begin; set work_mem to '9MB'; {DIE}; commit", f"begin; rollback; begin; {DIE}; commit",
          f"begin; set work_mem to '9MB'; rollback; {DIE}"]
KEPT = [f"begin; set work_mem to '9MB'; commit; {DIE}", f"begin; set work_mem to '9MB'; commit; begin; {DIE}; commit",
        f"begin; set work_mem to '9MB'; commit and chain; {DIE}; commit"]


@pytest.mark.parametrize("sql", DEATHS + KEPT)
def test_link_dies_in_the_transaction_of_a_string(pg, pool, sql):
    """There is no transaction left behind it, failed or not; what it was told of holds, and nothing else."""
    c = login(pool)
    before = c.value("show work_mem")
    found = c.simple(sql)
    assert states(found) == ["57P01"]
    assert found[-1].body == b"I"
    assert c.value("show work_mem") == ("9MB" if sql in KEPT else before)
    assert inserted(pg) == []
    c.bye()


@pytest.mark.parametrize("sql", ["begin; insert into stm values (1)", "insert into stm values (1); begin; select 2",
                                 "select 1; commit; begin; insert into stm values (3)"])
def test_block_in_a_text_too_long_to_be_read(pg, pool, sql):
    """It is found out when the server says that a transaction is open: that is undone."""
    c, other = login(pool), login(pool)
    c.send(query(sql + " /* " + "x" * 150000 + " */"), query("insert into stm values (7)"))
    assert not states(ended(c))
    nothing_open(pg)
    assert set(inserted(pg)) <= {1}
    for _ in range(3):
        assert other.value("select 'alive'") == "alive"
    other.bye()


@pytest.mark.parametrize("name", ["", "long"])
def test_block_in_a_parse_too_long_to_be_read(pg, pool, name):
    c = login(pool)
    c.send(parse("begin /* " + "x" * 150000 + " */", name), *([SYNC] if name else []), bind(name=name), execute(), SYNC,
           pgx("insert into stm values (1)"), SYNC)
    assert not states(ended(c))
    nothing_open(pg)
    assert inserted(pg) == []


@BY
def test_savepoints(pool, extended):
    """autosave=always: outside of a block the server itself refuses them."""
    c = login(pool)
    for sql in ("savepoint a", "release a", "rollback to a"):
        assert states(run_raw(c, sql, extended)) == ["25P01"]
    assert c.value("select 1") == "1"
    c.bye()


# ---- as PostgreSQL

WITHOUT_BLOCKS = {name: steps for name, steps in STEPS.items()
                  if not any(word in " ".join(steps).lower() for word in ("begin", "savepoint", "commit", "rollback"))}
assert len(WITHOUT_BLOCKS) > 12


@STATEMENT
@differential(chunks=(WHOLE,))
@BY
@pytest.mark.parametrize("steps", WITHOUT_BLOCKS.values(), ids=WITHOUT_BLOCKS.keys())
def test_settings(t, steps, extended):
    walk(t, steps, extended)


@STATEMENT
@differential(chunks=(WHOLE,))
@pytest.mark.parametrize("params", STARTUPS.values(), ids=STARTUPS.keys())
def test_startup_parameters(t, params):
    walk(t, ["set work_mem = '5MB'; set my.own = 'x'", "reset work_mem", "reset all", "discard all"], False, **params)


@STATEMENT
@differential()
def test_prepared_statements(t):
    """Named, unnamed and of SQL, used again and again, with other texts under the same names in between."""
    c, d = t.connect("c"), t.connect("d")
    c.send(parse("select $1::int + 1", "s"), SYNC)
    d.send(parse("select 'other ' || $1::text", "s"), SYNC)
    c.ready()
    d.ready()
    c.simple("prepare p(int) as select $1 * 10")
    for i in range(4):
        for one in (c, d):
            one.send(bind([str(i)], name="s"), describe("", "P"), execute(), SYNC)
            one.ready()
            one.simple(f"execute p({i})")
            one.send(pgx(f"select {i}, {OWN}"), SYNC)
            one.ready()
    c.send(close("s"), SYNC, bind(["1"], name="s"), execute(), SYNC, parse("select 'again'", "s"), SYNC)
    c.ready(3)
    c.send(bind(name="s"), execute(), SYNC)
    c.ready()
    c.simple("deallocate p")
    c.simple("execute p(1)")
    c.send(parse("select 1", "s"), SYNC)
    c.ready()
    c.simple("discard all")
    c.send(bind(name="s"), execute(), SYNC)
    c.ready()


@STATEMENT
@differential()
def test_pipelines(t):
    """Implicit transactions of several statements, and many of them in one write; errors undo their own."""
    t.direct("drop table if exists stm_pipe")
    t.direct("create table stm_pipe(a int primary key)")
    c = t.connect()
    c.send(pgx("insert into stm_pipe values (1)"), pgx("insert into stm_pipe values (2)"), SYNC,
           pgx("insert into stm_pipe values (3)"), pgx("insert into stm_pipe values (1)"), pgx("select 'skipped'"), SYNC,
           pgx("set my.own = 'mine'"), SYNC, pgx(f"select {OWN}, count(*) from stm_pipe"), SYNC,
           query("insert into stm_pipe values (4); insert into stm_pipe values (4)"), query("select max(a) from stm_pipe"),
           parse("select 'named'", "n"), bind(name="n"), execute(), FLUSH, SYNC)
    c.ready(7)
    c.send(parse("select generate_series(1, 5)"), bind(), execute(limit=2), execute(limit=2), execute(limit=0), SYNC)
    c.ready()


@STATEMENT
@differential()
@BY
def test_copy(t, extended):
    t.direct("drop table if exists stm_copy")
    t.direct("create table stm_copy(a int, b text)")
    c = t.connect()
    c.send(pgx("copy stm_copy from stdin") if extended else query("copy stm_copy from stdin"), *([FLUSH] if extended else []))
    c.until("G")
    c.send(copy_data(b"1\tone\n2\ttwo\n"), COPY_DONE, *([SYNC] if extended else []))
    c.ready()
    c.send(query("copy stm_copy from stdin"))
    c.until("G")
    c.send(copy_data(b"3\tthree\n"), copy_fail("no more"))
    c.ready()
    run(c, "copy stm_copy to stdout", extended)
    c.simple("copy stm_copy to stdout; select count(*) from stm_copy")


@STATEMENT
@differential(chunks=(WHOLE,))
def test_what_cannot_be_in_a_block(t):
    """Commands of their own transactions, and procedures that end theirs."""
    t.direct("drop table if exists stm_own; drop procedure if exists stm_proc()")
    t.direct("create table stm_own(a int)")
    t.direct("create procedure stm_proc() language plpgsql as $$ begin insert into stm_own values (1); commit; "
             "insert into stm_own values (2); rollback; insert into stm_own values (3); end $$")
    c = t.connect()
    for sql in ("vacuum stm_own", "call stm_proc()", "select array_agg(a) from stm_own",
                "do $$ begin insert into stm_own values (4); commit; end $$", "commit", "rollback", "lock table stm_own",
                "declare k cursor for select 1", "set transaction read only", "set local work_mem = '9MB'", "show work_mem"):
        c.simple(sql)
        c.send(pgx(sql), SYNC)
        c.ready()


# ---- what is left on a link

def test_ties(pg, pool):
    """A statement that leaves something behind ties the session, here, too."""
    a, b = login(pool), login(pool)
    a.rows("create temp table stm_temp as select 1 as a")
    for _ in range(3):
        assert b.value("select to_regclass('stm_temp') is null") == "t"
        assert a.value("select a from stm_temp") == "1"
    a.rows("discard all")
    assert a.value("select to_regclass('stm_temp') is null") == "t"
    a.bye()
    b.bye()


def test_links_change_with_every_statement(pg, pool):
    c, other = login(pool), login(pool)
    pids = set()
    for _ in range(6):
        pids.add(c.value("select pg_backend_pid()"))
        other.value("select 1")
    assert len(pids) == 2
    c.bye()
    other.bye()
