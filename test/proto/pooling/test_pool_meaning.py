# SPDX-License-Identifier: PostgreSQL
"""test_pool_meaning: texts that mean one thing to one client and another to the next: what a backslash or a date in
them is depends on settings. Two clients share two links, which change hands with every transaction.
"""
import pytest
from pooling_house import login

from pgt.wire import SYNC, bind, close, execute, parse, query


@pytest.fixture
def pool(pg, start_pool):
    return start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=2,
                      pool_test_rotate=True, query_wait_timeout=10)


def hidden_set(wire, text: bytes) -> None:
    """Two statements for the server, one string for who reads the backslash otherwise."""
    wire.send(query(text))
    wire.ready()


def check_nobody_else_has_it(pool, own) -> None:
    others = [login(pool) for _ in range(2)]
    for _ in range(4):
        for other in others:
            assert other.value("show work_mem") != "9MB"
    assert own.value("show work_mem") == "9MB", "who set it has it"
    own.bye()
    others.append(login(pool))
    for _ in range(4):
        for other in others:
            assert other.value("show work_mem") != "9MB"
    for other in others:
        other.bye()


def test_backslash_in_a_plain_string(pool):
    c = login(pool)
    c.simple("set standard_conforming_strings = off")
    hidden_set(c, rb"select 'a\''; set work_mem = '9MB'; --'")
    check_nobody_else_has_it(pool, c)


@pytest.mark.parametrize("text", [rb"set my.v = 'a\'b'", rb"select set_config('my.v', 'a\'b', false)",
                                  rb"set my.v = 'a\';b'"])
def test_backslash_in_a_sequence(pool, text):
    """One statement for the server; no statement, or two, for who reads the backslash otherwise."""
    c = login(pool)
    c.simple("set standard_conforming_strings = off")
    c.send(parse(text), bind(), execute(), SYNC)
    c.ready()
    own = c.value("show my.v")
    assert own.startswith("a'"), own
    others = [login(pool) for _ in range(2)]
    for _ in range(4):
        for other in others:
            assert other.value("select current_setting('my.v', true)") != own
        assert c.value("show my.v") == own
    for w in (c, *others):
        w.bye()


# A string with a quote and a call behind it, or one string, by how the backslash is read.
TWO_MEANINGS = rb"select 'a\'', set_config($$my.v$$, $$leaks$$, false) --'"


def test_backslash_in_what_another_user_prepared(pg, pool):
    """By a default of the role: the same text does nothing for one, and sets something for the other."""
    pg.rows("alter role other_user set standard_conforming_strings = off")
    try:
        c, other = login(pool), login(pool, seconds=20, user="other_user")
        for w in (c, other):
            w.send(parse(TWO_MEANINGS), bind(), execute(), SYNC)
            w.ready()
        third = login(pool, seconds=20, user="other_user")
        for _ in range(3):
            assert third.value("select current_setting('my.v', true)") != "leaks"
            assert other.value("select current_setting('my.v', true)") == "leaks"
    finally:
        pg.rows("alter role other_user reset standard_conforming_strings")


def test_backslash_by_a_default_of_the_role(pg, pool):
    pg.rows("alter role postgres set standard_conforming_strings = off")
    try:
        c = login(pool)
        hidden_set(c, rb"select 'a\''; set work_mem = '9MB'; --'")
        check_nobody_else_has_it(pool, c)
    finally:
        pg.rows("alter role postgres reset standard_conforming_strings")


@pytest.mark.parametrize("how", ["set", "startup"])
def test_half_a_character_is_no_backslash(pool, how):
    """In SJIS 0x95 0x5c is one character, so the string ends at the quote behind it."""
    c = login(pool) if how == "set" else login(pool, seconds=20, client_encoding="SJIS")
    if how == "set":
        c.simple("set client_encoding to sjis")
    hidden_set(c, b"select E'\x95\x5c'; set work_mem = '9MB'; --'")
    check_nobody_else_has_it(pool, c)


@pytest.mark.parametrize("named", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("setting,values,sql,answers", [
    ("datestyle", ("sql, dmy", "sql, mdy"), "select extract(month from '01/02/2024'::date)", (b"2", b"1")),
    ("timezone", ("UTC", "Asia/Tokyo"), "select extract(epoch from '2024-01-01 00:00:00'::timestamptz)::bigint",
     (b"1704067200", b"1704034800")),
    ("standard_conforming_strings", ("on", "off"), r"select length('a\\b')", (b"4", b"3")),
    ("intervalstyle", ("postgres", "sql_standard"), "select extract(hour from '-1 2:00:00'::interval)", (b"2", b"-2")),
])
def test_literals_are_read_as_their_client_has_them(pool, setting, values, sql, answers, named):
    """Two clients say one text: a statement of one is not the other's."""
    name = "s" if named else ""
    clients = [login(pool) for _ in values]
    for c, value in zip(clients, values):
        c.simple(f"set {setting} = '{value}'" if "," not in value else f"set {setting} = {value}")
    for i in range(6):
        for c, answer in zip(clients, answers):
            c.send(*([] if named and i > 0 else [parse(sql, name)]), bind(name=name), execute(), SYNC)
            rows = [m.row() for m in c.ready() if m.type == "D"]
            assert rows == [[answer]]
    for c in clients:
        c.bye()


@pytest.mark.parametrize("literal", ["'now'::timestamptz", "timestamptz ' NOW '", "('{now}'::timestamptz[])[1]",
                                     "lower('[now,infinity)'::tstzrange)", "$x$now$x$::timestamptz"])
def test_a_literal_is_the_time_of_its_own_parse(pool, literal):
    """What one client parsed is not what time it is for the next one, nor for itself when it parses anew."""
    clients = [login(pool) for _ in range(3)]
    sql = f"select extract(epoch from {literal}), $1::int"
    for c in clients * 3:
        before = float(c.value("select extract(epoch from clock_timestamp())"))
        c.send(close("s"), parse(sql, "s", [23]), bind(["1"], name="s"), execute(), SYNC)
        rows = [m.row() for m in c.ready() if m.type == "D"]
        assert float(rows[0][0]) >= before
    for c in clients:
        c.bye()


def test_a_literal_of_the_time_is_kept_by_who_parsed_it(pool):
    c = login(pool)
    c.send(parse("select 'now'::timestamptz", "s"), SYNC)
    c.ready()
    told = set()
    for _ in range(3):
        c.send(bind(name="s"), execute(), SYNC)
        told |= {m.row()[0] for m in c.ready() if m.type == "D"}
    assert len(told) <= 2, "two links, each of which has parsed it once"
    c.bye()


def use(c, sql: str, name: str, params=(), types=()) -> list:
    c.send(parse(sql, name, types), bind(params, name=name), execute(), SYNC)
    return [m.row() for m in c.ready() if m.type == "D"]


@pytest.mark.parametrize("types", [(), (23,)], ids=["open", "told"])
def test_a_temporary_table_hides_one_that_was_parsed(pg, pool, types):
    """Also on a link that had temporary tables before, where a server does not look again at what it has parsed."""
    pg.rows("drop table if exists hidden")
    pg.rows("create table hidden(a int)")
    for _ in range(2):
        c = login(pool)
        c.simple("create temp table other(a int)")
        use(c, "insert into hidden values ($1)", "s", ["1"], types)
        c.simple("drop table other")
        c.simple("create temp table hidden(a int)")
        use(c, "insert into hidden values ($1)", "t", ["2"], types)
        assert use(c, "select a from hidden", "u") == [[b"2"]]
        assert c.value("select a from hidden") == "2"
        c.bye()
    assert {str(row) for row in pg.rows("select a from hidden")} == {str(row) for row in pg.rows("select 1")}


@pytest.mark.parametrize("how", ["create table hides.t(a int)", "select 0 as a into hides.t",
                                 "create table hides.t as select 0 as a", "alter table hides.late rename to t",
                                 "alter table hides_late.t set schema hides",
                                 "do 'begin create table hides.t(a int); end'"])
def test_a_table_hides_one_that_was_parsed(pg, pool, how):
    for sql in ("drop schema if exists hides cascade", "drop schema if exists hides_late cascade",
                "create schema hides", "create schema hides_late", "create table hides.late(a int)",
                "create table hides_late.t(a int)", "drop table if exists public.t", "create table public.t(a int)"):
        pg.rows(sql)
    clients = [login(pool) for _ in range(3)]
    for c in clients:
        c.simple("set search_path = hides, public")
    for c in clients[:2]:
        use(c, "insert into t values ($1)", "s", ["1"], (23,))
    clients[0].simple(how)
    for c in clients[1:]:
        use(c, "insert into t values ($1)", "n", ["2"], (23,))
    assert clients[2].value("select count(*) from hides.t where a = 2") == "2"
    assert clients[2].value("select count(*) from public.t where a = 2") == "0"
    for c in clients:
        c.bye()


def test_a_function_that_fits_better(pg, pool):
    pg.rows("drop function if exists fits(int)")
    pg.rows("create or replace function fits(numeric) returns text language sql as $$ select 'numeric' $$")
    a, b = login(pool), login(pool)
    assert use(a, "select fits(1)", "s") == [[b"numeric"]]
    a.simple("create function fits(int) returns text language sql as $$ select 'int' $$")
    assert use(b, "select fits(1)", "s") == [[b"int"]]
    a.bye()
    b.bye()
    pg.rows("drop function fits(int)")


READINGS = [
    ("datestyle", "sql, dmy", "sql, mdy", "extract(month from '01/02/2024'::date)::int"),
    ("timezone", "'UTC'", "'Asia/Tokyo'", "extract(epoch from '2024-01-01 00:00:00'::timestamptz)::int"),
    ("intervalstyle", "postgres", "sql_standard", "extract(hour from '-1 2:00:00'::interval)::int"),
    ("array_nulls", "on", "off", "case when ('{null}'::text[])[1] is null then 1 else 0 end"),
    ("transform_null_equals", "off", "on", "case when (select 1 where false) = null then 1 else 0 end"),
]
HOWS = {
    "session": ("set {0} = {1}", "{2}"),
    "rolled back": ("set {0} = {3}", "begin; set {0} = {1}; {2}; rollback"),
    "local": ("set {0} = {3}", "begin; set local {0} = {1}; {2}; commit"),
    "local call": ("set {0} = {3}", "begin; select set_config('{0}', '{4}', true); {2}; commit"),
    "and back": ("set {0} = {3}", "set {0} = {1}; {2}; set {0} = {3}"),
}


@pytest.fixture
def one_link(pg, start_pool):
    return start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1,
                      query_wait_timeout=10)


@pytest.mark.parametrize("setting,value,other,reading", READINGS, ids=[r[0] for r in READINGS])
def test_literals_of_a_function_are_read_as_its_caller_has_them(pg, one_link, setting, value, other, reading):
    """What plpgsql has made of its text belongs to the connection."""
    bare = value.strip("'")
    for how, (first, then) in HOWS.items():
        pg.rows("drop function if exists reads()")
        pg.rows(f"create function reads() returns int language plpgsql as $f$ begin return {reading}; end $f$")
        a, b = login(one_link), login(one_link)
        a.simple(first.format(setting, value, "", other))
        b.simple(f"set {setting} = {other}")
        own = [m.row()[0] for m in a.simple(then.format(setting, value, "select reads()", other, bare))
               if m.type == "D"][-1]
        assert b.value("select reads()").encode() != own, how
        assert b.value("select reads()") == b.value(f"select {reading}"), how
        a.bye()
        b.bye()
    pg.rows("drop function reads()")


def test_plans_stay_for_who_reads_alike(pg, one_link):
    """DateStyle "ISO", which drivers ask for, reads as the server's default does; nothing is sent for their sake."""
    pg.rows("create or replace function kept_plan() returns int language plpgsql as $f$ begin return "
            "extract(epoch from (clock_timestamp() - 'now'::timestamptz)) * 1000000; end $f$")
    clients = [login(one_link), login(one_link, DateStyle="ISO"), login(one_link, application_name="x")]
    found = [int(c.value("select kept_plan()")) for c in clients for _ in range(3)]
    assert found == sorted(found), "the time of the first call is kept"
    for c in clients:
        c.bye()
    pg.rows("drop function kept_plan()")
