# SPDX-License-Identifier: PostgreSQL
"""test_extended: extended protocol against the oracle: T01-T03, T06-T10 of the catalogue."""
import pytest

from pgt.diff import differential
from pgt.wire import (FLUSH, SYNC, Wire, bind, close, describe, execute, message, parse, pg, query)
from pgt.wire import pg as pg_messages


@differential()
@pytest.mark.parametrize("where", ["alone", "behind", "inside", "in_transaction"])
def test_flush_with_a_body(t, where):
    """An error that belongs to the Flush alone: what follows is skipped, and nothing is owed for it."""
    c = t.connect()
    if where == "in_transaction":
        c.simple("begin; select 0")
    before = {"alone": b"", "behind": pg("select 1") + SYNC, "inside": parse("select 1", "a"), "in_transaction": b""}[where]
    behind = parse("select 2", "b") + bind(name="b") + execute()
    c.send(before + message("H", b"x") + behind + SYNC + query("select 3"))
    c.ready(3 if where == "behind" else 2)
    c.simple("select 4")
    c.end()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_flush_with_a_body_is_the_last_word(pg, start_pool, mode):
    """The answers in front of it are told at once to who closes its sending half behind it."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode)
    for behind in (b"", parse("select 2", "b") + bind(name="b") + execute()):
        w = Wire(pool.address)
        w.login()
        w.send(pg_messages("select 1") + SYNC + message("H", b"x") + behind)
        w.half_close()
        assert [m.type for m in w.read_eof(4)][:6] == ["1", "2", "T", "D", "C", "Z"]


@differential()
def test_t01_parse_describe_flush_without_sync(t):
    """asyncpg: Parse, Describe, Flush; replies come although no Sync was sent."""
    c = t.connect()
    c.send(parse("select $1::int as a, $2::text as b", "s1"), describe("s1"), FLUSH)
    c.until("T")
    c.send(bind(["7", "x"], name="s1"), execute(), SYNC)
    c.ready()
    c.send(parse("select 2", "s2"), FLUSH)
    c.until("1")
    c.send(bind([], "p", "s2"), FLUSH)
    c.until("2")
    c.send(execute("p"), FLUSH)
    c.until("C")
    c.send(SYNC)
    c.ready()


@differential()
@pytest.mark.parametrize("sql", ["create temp table t01(a int)", "", "select", "values (1),(2)",
                                 "insert into pg_temp.none values (1)"])
def test_t01_flush_after_each(t, sql):
    """Each message followed by Flush and answered before the next is sent."""
    c = t.connect()
    for piece, kinds in ((parse(sql), ("1", "E")), (bind(), ("2", "E")),
                         (describe("", "P"), ("T", "n", "E")), (execute(), ("C", "I", "E"))):
        c.send(piece, FLUSH)
        if c.until(*kinds)[-1].type == "E":
            break
    c.send(SYNC)
    c.ready()


@differential()
@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_t02_portal_suspended_flush(t, limit):
    """pg-cursor: Execute with a row limit, PortalSuspended, Flush, again."""
    c = t.connect()
    c.send(parse("select * from generate_series(1, 7)"), bind(portal="cur"), describe("cur", "P"), FLUSH)
    c.until("T")
    last = "s"
    while last == "s":
        c.send(execute("cur", limit), FLUSH)
        last = c.until("s", "C")[-1].type
    c.send(close("cur", "P"), FLUSH)
    c.until("3")
    c.send(SYNC)
    c.ready()


@differential()
def test_t02_two_suspended_portals(t):
    c = t.connect()
    c.simple("begin")
    c.send(parse("select * from generate_series(1, 5)", "a"), bind(portal="p1", name="a"),
           bind(portal="p2", name="a"), FLUSH)
    c.until("2")
    c.until("2")
    for portal in ("p1", "p2", "p1", "p2"):
        c.send(execute(portal, 2), FLUSH)
        c.until("s")
    c.send(SYNC)
    c.ready()
    c.send(execute("p1", 0), SYNC)
    c.ready()
    c.simple("commit")
    c.send(execute("p2", 0), SYNC)
    c.ready()


@differential()
@pytest.mark.parametrize("what", ["S", "P"])
@pytest.mark.parametrize("sql", ["create temp table t03(a int)", "set work_mem = '5MB'", "begin",
                                 "listen x", "discard plans", ""])
def test_t03_describe_no_data_flush(t, what, sql):
    c = t.connect()
    c.send(parse(sql), bind(), describe("", what), FLUSH)
    c.until("n")
    c.send(execute(), FLUSH)
    c.until("C", "I")
    c.send(SYNC)
    c.ready()
    c.simple("rollback")


UNKNOWN = {
    "describe_statement": describe("nope"), "describe_portal": describe("nope", "P"),
    "bind": bind(name="nope"), "execute": execute("nope"), "close_statement": close("nope"),
    "close_portal": close("nope", "P"), "parse_error": parse("selec 1"),
    "bind_wrong_count": parse("select $1::int", "w") + bind(name="w"),
    "bind_bad_value": parse("select $1::int", "w2") + bind(["x"], name="w2"),
    "parse_twice": parse("select 1", "twice") + parse("select 2", "twice"),
}


@differential()
@pytest.mark.parametrize("bad", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_t06_unknown_name_alone(t, bad):
    """An error, everything skipped up to Sync, and the connection lives."""
    c = t.connect()
    c.send(bad, SYNC)
    c.ready()
    c.simple("select 'alive'")
    c.send(bad, FLUSH)
    c.until("E", "3")
    c.send(SYNC)
    c.ready()
    c.send(pg("select 'alive again'"), SYNC)
    c.ready()


@differential()
@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("bad", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_t06_unknown_name_in_pipeline(t, bad, position):
    """An error at each place of a pipeline of three statements, and the next pipeline is answered."""
    c = t.connect()
    parts = [pg("select 1"), pg("select 2"), pg("select 3")]
    parts.insert(position, bad)
    c.send(*parts, SYNC, pg("select 4"), SYNC)
    c.ready(2)
    c.simple("select 5")


@differential()
def test_t06_in_transaction(t):
    c = t.connect()
    c.simple("begin")
    c.send(bind(name="nope"), execute(), SYNC)
    c.ready()
    c.send(pg("select 1"), SYNC)
    c.ready()
    c.simple("rollback")


@differential()
def test_t07_pipeline_is_one_transaction(t):
    """No BEGIN: one implicit transaction up to Sync, nothing may be injected that ends it."""
    c = t.connect()
    c.send(pg("create temp table t07(a int) on commit drop"), pg("insert into t07 values (1), (2)"),
           pg("select * from t07"), SYNC)
    c.ready()
    c.send(pg("select * from t07"), SYNC)
    c.ready()


@differential()
def test_t07_error_rolls_the_pipeline_back(t):
    c = t.connect()
    c.simple("create temp table t07b(a int unique)")
    c.send(pg("insert into t07b values (1)"), pg("insert into t07b values (1)"),
           pg("insert into t07b values (2)"), SYNC)
    c.ready()
    c.simple("select count(*) from t07b")


@differential()
def test_t07_begin_commit_inside_pipeline(t):
    c = t.connect()
    c.send(pg("begin"), pg("select 1"), pg("savepoint a"), pg("select 1/0"), SYNC,
           pg("rollback to a"), pg("select 2"), pg("commit"), SYNC, pg("select 3"), SYNC)
    c.ready(3)
    c.send(pg("select 1"), pg("commit"), pg("select 2"), pg("begin"), SYNC, pg("rollback"), SYNC)
    c.ready(2)


@differential()
def test_t07_deferred_constraint_fails_at_sync(t):
    """The error comes at Sync or COMMIT, not at the statement."""
    c = t.connect()
    c.simple("create temp table t07d(a int unique deferrable initially deferred)")
    c.send(pg("insert into t07d values (1), (1)"), SYNC)
    c.ready()
    c.simple("begin")
    c.send(pg("insert into t07d values (2), (2)"), SYNC)
    c.ready()
    c.simple("commit")
    c.simple("begin; insert into t07d values (3), (3)")
    c.send(pg("commit"), SYNC)
    c.ready()
    c.simple("select count(*) from t07d")


SETTINGS = [("application_name", "t08"), ("DateStyle", "German"), ("IntervalStyle", "iso_8601"),
            ("TimeZone", "Asia/Tokyo"), ("client_encoding", "LATIN1")]


@differential()
@pytest.mark.parametrize("count", range(1, 6))
def test_t08_pipeline_changes_reported_settings(t, count):
    """1..5 settings that the server reports, changed in one pipeline, one transaction, one string."""
    c = t.connect()
    sets = [f"set {n} = '{v}'" for n, v in SETTINGS[:count]]
    c.send(*(pg(s) for s in sets), SYNC)
    c.ready()
    c.send(*(pg(f"reset {n}") for n, _ in SETTINGS[:count]), SYNC)
    c.ready()
    c.simple("; ".join(sets))
    c.simple("reset all")
    c.simple("begin; " + "; ".join(sets))
    c.simple("rollback")


@differential()
def test_t08_set_in_function_and_local(t):
    c = t.connect()
    c.simple("select set_config('application_name', 'f', false)")
    c.simple("begin; set local timezone = 'Europe/Paris'")
    c.simple("commit")
    c.simple("set role trust_user")
    c.simple("set session authorization trust_user")
    c.simple("reset session authorization")


RESETS = ["discard all", "deallocate all", "reset all", "close all", "discard temp", "discard plans",
          "discard sequences"]


@differential()
@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
@pytest.mark.parametrize("sql", RESETS)
def test_t09_reset_then_old_names(t, sql, extended):
    """After it the old statement, portal, cursor, setting and temp table are used again."""
    c = t.connect()
    c.send(parse("select 'st'", "st"), SYNC)
    c.ready()
    c.simple("prepare sq as select 'sq'; create temp table t09(a int); set work_mem = '7MB'; "
             "declare cu cursor with hold for select 1 union select 2; listen t09")
    if extended:
        c.send(pg(sql), SYNC)
        c.ready()
    else:
        c.simple(sql)
    for message_bytes in (bind(name="st") + execute(), bind(name="sq") + execute(), describe("st"),
                          parse("select 'new'", "st"), pg("fetch 1 from cu"), pg("execute sq"),
                          pg("select * from t09"), pg("show work_mem")):
        c.send(message_bytes, SYNC)
        c.ready()
    c.simple("notify t09")


@differential()
@pytest.mark.parametrize("cut", range(5))
def test_t10_simple_query_before_sync(t, cut):
    """JDBC autosave: a simple Query while an extended sequence is open."""
    c = t.connect()
    pieces = [parse("select 10", "q"), bind(name="q"), describe("", "P"), execute()]
    c.send(*pieces[:cut], query("select 'between'"))
    c.ready()
    c.send(*pieces[cut:], SYNC)
    c.ready()
    c.simple("select 'after'")


@differential()
@pytest.mark.parametrize("word", ["begin", "commit", "start transaction read only", "set work_mem = '3MB'"])
def test_t10_simple_query_behind_a_named_word(t, word):
    """The word's tag is the last reply, and no ReadyForQuery is behind it."""
    c = t.connect()
    c.send(parse(word, "w"), bind(name="w"), execute(), query("set local work_mem = '4MB'"), SYNC)
    c.ready(2)
    c.simple("rollback")


@differential()
@pytest.mark.parametrize("cut", range(4))
def test_t10_simple_query_after_error_before_sync(t, cut):
    """After an error all is skipped up to Sync, a simple Query too."""
    c = t.connect()
    pieces = [parse("selec", "q"), bind(name="q"), execute()]
    pieces.insert(cut, query("savepoint a"))
    c.send(*pieces, SYNC)
    c.ready(2 if cut == 0 else 1)
    c.simple("select 'after'")


@differential()
def test_t10_autosave_always(t):
    c = t.connect()
    c.simple("begin")
    for sql in ("select 1", "select 1/0", "select 2"):
        c.send(parse("savepoint jdbc"), bind(), execute(), parse(sql), bind(), describe("", "P"), execute(), SYNC)
        if c.ready()[-1].body == b"E":
            c.simple("rollback to savepoint jdbc")
    c.simple("commit")


@differential()
def test_empty_and_comment_only(t):
    c = t.connect()
    for sql in ("", " ", ";", "-- x", "/* x */", "; ;", "select 1;;select 2;"):
        c.simple(sql)
        c.send(pg(sql), SYNC)
        c.ready()


@differential()
def test_sync_alone_and_many(t):
    c = t.connect()
    c.send(SYNC, SYNC, SYNC)
    c.ready(3)
    c.send(*(pg(f"select {i}") + SYNC for i in range(200)))
    c.ready(200)
    c.send(*(query(f"select {i}") for i in range(200)))
    c.ready(200)


@differential()
def test_binary_formats_and_nulls(t):
    c = t.connect()
    c.send(parse("select $1::int, $2::text, $3::bytea", types=[23, 25, 17]),
           bind([b"\0\0\0\7", None, b"\0\1\2"], formats=[1, 0, 1], results=[1]),
           describe("", "P"), execute(), SYNC)
    c.ready()
    c.send(parse("select $1::int", types=[23]), bind([b"\0\0\0\7"], formats=[1, 1]), execute(), SYNC)
    c.ready()


@pytest.mark.session_mode  # in a shared pool the plan is made anew: pooling/test_pool_odds.py
@differential()
def test_stale_plan(t):
    """The result type of a prepared statement changes."""
    c = t.connect()
    c.simple("create temp table st(a int); insert into st values (1)")
    c.send(parse("select * from st", "s"), bind(name="s"), execute(), SYNC)
    c.ready()
    c.simple("alter table st add b text")
    c.send(bind(name="s"), execute(), SYNC)
    c.ready()
    c.send(close("s"), parse("select * from st", "s"), bind(name="s"), execute(), SYNC)
    c.ready()


@differential()
def test_function_call(t):
    """The old FunctionCall message: result, error, in a transaction, unknown function."""
    from pgt.wire import function_call
    c = t.connect()
    c.send(function_call(1598, [], formats=[], result_format=0))  # random()
    kinds = [m.type for m in c.wire.ready()]
    c.note(str(kinds))
    for oid, args in ((177, [b"\0\0\0\1", b"\0\0\0\2"]), (177, [b"\0\0\0\1"]), (177, [None, b"\0\0\0\2"]),
                      (154, [b"\0\0\0\1", b"\0\0\0\0"]), (999999999, [])):
        c.send(function_call(oid, args))
        c.ready()
    c.simple("begin")
    c.send(function_call(154, [b"\0\0\0\1", b"\0\0\0\0"]))
    c.ready()
    c.send(function_call(177, [b"\0\0\0\1", b"\0\0\0\2"]))
    c.ready()
    c.simple("rollback")


@differential()
def test_unknown_message_type_ends_the_session(t):
    c = t.connect()
    c.send(message("y", b"what"))
    c.eof()
