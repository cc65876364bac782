# SPDX-License-Identifier: PostgreSQL
"""The query cache's questions about the catalogue, asked of a real PostgreSQL. The program
qcache-question is looked for in $PGPOOL_BUILD, beside $PGPOOL_BIN, else in the current folder."""
import os
import subprocess

import pytest
from pgt.wire import Wire

BUILD = os.environ.get("PGPOOL_BUILD") or os.path.dirname(os.environ.get("PGPOOL_BIN", "")) or os.getcwd()
PROGRAM = os.path.join(BUILD, "qcache-question")
pytestmark = pytest.mark.skipif(not os.access(PROGRAM, os.X_OK), reason="qcache-question is not built")

CATALOG, TEMP, UNLOGGED, SEQUENCE, VIEW, NAMED, MOVES = 1, 2, 4, 16, 32, 64, 128
VOLATILE, STABLE, OF_USER = 1, 2, 4

SCHEMA = """\
create table t (a int primary key); create unlogged table u (a int); create sequence sq; create schema s; create table s.t (a int);
create view v as select * from t where a > 1; create view vv as select v.* from v, s.t;
create view v_time as select current_date as d, a from t; create view v_char as select to_char(now(), 'x') as c;
create view v_who as select a, current_user, current_role, user as u, session_user from t; create view v_schema as select a, current_schema from t;
create view v_who_now as select a, current_user, localtime from t;
create view v_old_time as select a from t where ('now'::text)::date > '2020-1-1'; -- CURRENT_DATE, as a dump of 9.6 has it
create view v_sample as select * from t tablesample bernoulli (50); create view v_text as select '1'::text::int as a from t;
create materialized view m as select * from t;
create table p (a int) partition by range (a); create table p1 partition of p for values from (0) to (10) partition by range (a);
create table p11 partition of p1 for values from (0) to (5);
create table h (a int); create table h1 () inherits (h);
create table child (a int references t on delete cascade); create table grandchild (a int references t on update set null);
create table plain_fk (a int references t);
create function f_vol() returns int language sql volatile as 'select 1';
create function to_char(t, int) returns text language sql stable as 'select v::text from v';
create function f_stable(int) returns int language sql stable as 'select 1';
create function touch() returns trigger language plpgsql as 'begin new.a := coalesce(new.a, 1); return new; end';
create function writes() returns trigger language plpgsql as 'begin insert into u values (1); return new; end';
create function "schreibt_ä"(int) returns int language sql volatile as 'insert into u values (1) returning 1';
create function calls_far() returns trigger language plpgsql as 'begin new.a := schreibt_ä (1); return new; end';
create function calls() returns trigger language plpgsql as 'begin new.a := f_vol(); return new; end';
create table tr_ok (a int); create trigger x before insert on tr_ok for each row execute function touch();
create table tr_bad (a int); create trigger x before insert on tr_bad for each row execute function writes();
create table tr_call (a int); create trigger x before insert on tr_call for each row execute function calls();
create table tr_far (a int); create trigger x before insert on tr_far for each row execute function calls_far();
create table tr_off (a int); create trigger x before insert on tr_off for each row execute function writes();
alter table tr_off disable trigger x;
create table ruled (a int); create rule r as on insert to ruled do also insert into u values (1);
create table def_vol (a int default f_vol()); create table def_seq (a serial);
create table cols (id int, v varchar(9), "D" date, n numeric, gone int, b bpchar, c text collate "C",
 e text collate "en-x-icu", s int, g int generated always as (id + 1) stored); alter table cols drop column gone;
create table rls (a int); alter table rls enable row level security;
create table reg (a int, r regclass); create view v_reg as select a from reg;
create type pair as (a int, r regrole[]); create domain acl as aclitem; create type two as (p pair[]);
create table reg_pair (p pair); create table reg_two (p two[]); create table reg_acl (a acl); create table no_reg (p point, i int[], o oid, n name);
create table reg_gone (a int, r regclass); alter table reg_gone drop column r;
create view v_oid as select tableoid::regclass::text as t from t; create view v_name as select a from t where a = 'pg_class'::regclass::oid::int;
create view v_xmax as select xmax::text as x from t; create view v_ctid as select (ctid)::text as x from t; create view v_xmin as select xmin from t;
create policy q on rls for select using (a in (select a from u) and f_stable(a) = 1);
"""


@pytest.fixture(scope="module")
def database(pg):
    pg.rows("create database cache_oracle")
    with Wire(pg.socket) as w:
        w.login(database="cache_oracle")
        w.rows(SCHEMA)
    yield "cache_oracle"
    pg.rows("drop database cache_oracle with (force)")


@pytest.fixture
def wire(pg, database):
    with Wire(pg.socket) as w:
        assert w.login(database=database)[-1].type == "Z"
        yield w


def ask(wire, sql):
    run = subprocess.run([PROGRAM], input=sql.encode(), capture_output=True, check=True, timeout=100)
    return [(kind.decode(), int(i), int(a), int(b), name.decode())
            for kind, i, a, b, name in wire.rows(run.stdout.decode())]


def reads(wire, sql):
    return {name: b for kind, _, _, b, name in ask(wire, sql) if kind == "r"}


def writes(wire, sql):
    rows = ask(wire, sql)
    names = {int(oid): name.decode() for oid, name in wire.rows("select oid, relname from pg_class")}
    return {names[a] for kind, _, a, _, _ in rows if kind == "w"}, any(r[0] == "x" for r in rows)


def calls(wire, sql):
    return {(kind, name): a for kind, _, a, _, name in ask(wire, sql) if kind in "fg" and a != 0}


def odd(wire, sql="select 1 from t"):
    return [a for kind, _, a, _, _ in ask(wire, sql) if kind == "d"]


@pytest.mark.parametrize("sql, expected", [
    ("select * from t", {"public.t": NAMED}),
    ("select * from s.t, t", {"s.t": NAMED, "public.t": NAMED}),
    ("select * from nowhere", {}),
    ("select * from u", {"public.u": NAMED | UNLOGGED}),
    ("select * from sq", {"public.sq": NAMED | SEQUENCE}),
    ("select * from pg_class", {"pg_catalog.pg_class": NAMED | CATALOG | MOVES}),
    ("select * from v", {"public.v": NAMED | VIEW, "public.t": 0}),
    ("select * from vv", {"public.vv": NAMED | VIEW, "public.v": VIEW, "public.t": 0, "s.t": 0}),
    ("select * from m", {"public.m": NAMED}),
    ("select * from p", {"public.p": NAMED, "public.p1": 0, "public.p11": 0}),
    ("select * from p1", {"public.p1": NAMED, "public.p11": 0}),
    ("select * from h", {"public.h": NAMED, "public.h1": 0}),
    ("select * from rls", {"public.rls": NAMED, "public.u": UNLOGGED}),
    ("select a from reg", {"public.reg": NAMED | MOVES}),
    ("select * from v_reg", {"public.v_reg": NAMED | VIEW, "public.reg": MOVES}),
    ("select * from reg_pair, reg_two, reg_acl", {"public.reg_pair": NAMED | MOVES, "public.reg_two": NAMED | MOVES, "public.reg_acl": NAMED | MOVES}),
    ("select * from no_reg, reg_gone", {"public.no_reg": NAMED, "public.reg_gone": NAMED}),
])
def test_what_is_read(wire, sql, expected):
    assert reads(wire, sql) == expected


@pytest.mark.parametrize("sql, expected, more", [
    ("insert into s.t select a from t", {"t"}, False),
    ("update p11 set a = 1", {"p", "p1", "p11"}, False),
    ("update h set a = 1", {"h", "h1"}, False),
    ("delete from h1", {"h", "h1"}, False),
    ("delete from t", {"t", "child", "grandchild"}, False),
    ("delete from child", {"child"}, False),
    ("update v set a = 1", {"v", "t", "child", "grandchild"}, False),
    ("insert into tr_ok values (1)", {"tr_ok"}, False),
    ("insert into tr_bad values (1)", {"tr_bad"}, True),
    ("insert into tr_call values (1)", {"tr_call"}, True),
    ("insert into tr_far values (1)", {"tr_far"}, True),
    ("insert into tr_off values (1)", {"tr_off"}, False),
    ("insert into ruled values (1)", {"ruled"}, True),
    ("insert into def_vol values (default)", {"def_vol"}, True),
    ("insert into def_seq values (default)", {"def_seq"}, False),
    ("select * from t", set(), False),
])
def test_what_is_written(wire, sql, expected, more):
    assert writes(wire, sql) == (expected, more)


@pytest.mark.parametrize("sql, expected", [
    ("select count(*), upper('x') from t", {}),
    ("select random() from t", {("f", "random"): VOLATILE}),
    ("select f_vol() from t", {("f", "f_vol"): VOLATILE | OF_USER}),
    ("select f_stable(1) from t", {("f", "f_stable"): STABLE | OF_USER}),
    ("select to_char(c, 1) from t c", {("f", "to_char"): STABLE | OF_USER}),
    ("select json_agg(a) from t", {("f", "json_agg"): STABLE}),
    ("select * from v_time", {("g", "time"): VOLATILE}),
    ("select * from v_old_time", {("g", "time"): VOLATILE}),
    ("select * from v_sample", {("g", "time"): VOLATILE}),
    ("select * from v_text", {}),
    ("select (a).f_stable, (a).nothing, (a).upper from t", {("f", "f_stable"): STABLE | OF_USER}),
    ("select $1.nextval, treat(a as currval) from t", {("f", "nextval"): VOLATILE, ("f", "currval"): VOLATILE}),
    ("select * from v_char", {("g", "now"): STABLE, ("g", "to_char"): STABLE}),
    ("select * from rls", {("g", "f_stable"): STABLE | OF_USER}),
    ("select * from v_who", {}),
    ("select * from v_schema", {("g", "time"): VOLATILE}),
    ("select * from v_who_now", {("g", "time"): VOLATILE}),
    ("select * from v_oid", {("g", "time"): VOLATILE}),
    ("select * from v_name", {("g", "time"): VOLATILE}),
    ("select * from v_xmax", {("g", "time"): VOLATILE}),
    ("select * from v_ctid", {("g", "time"): VOLATILE}),
    ("select * from v_xmin", {}),
])
def test_what_is_called(wire, sql, expected):
    assert calls(wire, sql) == expected


# Immutable by the catalogue, and their names or types look as if they knew of it: looked at one by one (PostgreSQL 13 to 18).
LOOK_LIKE_IT = {
    "pg_encoding_max_length", "pg_indexam_progress_phasename", "pg_lsn", "pg_size_bytes", "pg_size_pretty", "pg_visible_in_snapshot", "pg_wal_lsn_diff",
    "pg_snapshot_xip", "pg_snapshot_xmax", "pg_snapshot_xmin", "pg_jit_available", "aclcontains", "aclitemeq", "hash_aclitem", "hash_aclitem_extended"}
# What they are about is the server's configuration, and so in no result: by name.
BY_SETTINGS = {
    "array_to_json", "array_to_string", "concat", "concat_ws", "date", "date_add", "date_part", "date_subtract", "date_trunc", "extract", "format",
    "generate_series", "json_agg", "json_build_array", "json_build_object", "json_object_agg", "json_populate_record", "json_populate_recordset",
    "json_to_record", "json_to_recordset", "jsonb_agg", "jsonb_build_array", "jsonb_build_object", "jsonb_object_agg", "jsonb_populate_record",
    "jsonb_populate_recordset", "jsonb_to_record", "jsonb_to_recordset", "make_timestamptz", "plainto_tsquery", "phraseto_tsquery", "quote_literal",
    "quote_nullable", "row_to_json", "time", "timestamp", "timestamptz", "timezone", "to_char", "to_date", "to_json", "to_jsonb", "to_number",
    "to_timestamp", "to_tsquery", "to_tsvector", "ts_headline", "websearch_to_tsquery"}


def believed(names, how: str) -> set[str]:
    text = "".join(name + "\n" for name in names)
    run = subprocess.run([PROGRAM, how], input=text.encode(), capture_output=True, check=True, timeout=100)
    return set(run.stdout.decode().split())


def test_every_function_of_the_server(wire):
    """All of pg_proc: what is not immutable is found to be so, and is believed only where it was looked at; so is what is immutable in name alone."""
    found = [(name.decode(), v.decode(), int(low), int(high), kind.decode()) for name, v, low, high, kind in wire.rows(
        "select p.proname, case when 'v' in (p.provolatile, t.provolatile, l.provolatile) then 'v' when 's' in (p.provolatile, t.provolatile, "
        "l.provolatile) then 's' else 'i' end, p.pronargs - p.pronargdefaults, p.pronargs, p.prokind from pg_proc p left join pg_aggregate g on g.aggfnoid = p.oid "
        "left join pg_proc t on t.oid = g.aggtransfn left join pg_proc l on l.oid = g.aggfinalfn where p.pronamespace = 'pg_catalog'::regnamespace "
        "and coalesce(g.aggkind, 'n') = 'n' and p.provariadic = 0")]
    assert len(found) > 2500
    calls_of = sorted({(name, n) for name, v, low, high, _ in found if v != "i" for n in {low, high}})
    worst: dict[tuple[str, int], int] = {}
    for name, v, low, high, _ in found:
        for n in range(low, high + 1):
            worst[name, n] = worst.get((name, n), 0) | {"v": VOLATILE, "s": STABLE, "i": 0}[v]
    for at in range(0, len(calls_of), 40):
        some = calls_of[at:at + 40]
        text = "select " + ", ".join(f'pg_catalog."{name}"({", ".join(["null"] * n)})' for name, n in some) + " from t"
        rows = ask(wire, text)
        for i, call in enumerate(some):
            seen = 0
            for kind, number, a, _, _ in rows:
                seen |= a if kind == "f" and number == i else 0
            assert seen & worst[call] == worst[call] != 0, (call, seen)
    stable = {name for name, v, _, _, _ in found if v == "s"}
    assert believed(stable, "stable") <= BY_SETTINGS and believed({name for name, v, _, _, _ in found if v == "v"}, "stable") == set()
    odd = {name.decode() for name, in wire.rows(
        "select distinct proname from pg_proc where provolatile = 'i' and pronamespace = 'pg_catalog'::regnamespace and 2281 <> all (proargtypes) "
        "and 2275 <> all (proargtypes) and (prorettype in (24, 27, 1033, 1034, 2202, 2203, 2204, 2205, 2206, 3734, 3769, 4089, 4096, 4191) or proname ~ "
        "'^pg_|acl|catalog|^has_|^current_|privilege') and prorettype <> 2275 and proname !~ '^(pg_lsn_|pg_.*_(in|out|recv|send)$|tid|max|min)'")}
    assert believed(odd, "immutable") <= LOOK_LIKE_IT


def test_temporary_tables(wire):
    wire.rows("begin; create temp table t (a int)")
    assert list(reads(wire, "select * from t").values()) == [NAMED | TEMP]
    assert list(reads(wire, "select * from pg_temp.t").values()) == [NAMED | TEMP]
    wire.rows("rollback")


def test_what_the_database_has(wire):
    assert odd(wire) == [0]
    wire.rows("begin; create function op(int, int) returns int language sql stable as 'select 1';"
              "create operator <#!> (leftarg = int, rightarg = int, function = op)")
    assert odd(wire) == [1]
    wire.rows("rollback; begin; create function of_row(t) returns int language sql stable as 'select 1'")
    assert odd(wire) == [1]
    wire.rows("rollback; begin; create function of_row(t, int default 1) returns int language sql stable as 'select 1'")
    assert odd(wire) == [1]
    wire.rows("rollback; set default_transaction_isolation = 'repeatable read'")
    assert odd(wire) == [2]


def test_settings_change_nothing(wire):
    wire.rows("set standard_conforming_strings = off; set search_path = s; set backslash_quote = on")
    assert reads(wire, "select * from t, public.v") == {"s.t": NAMED, "public.v": NAMED | VIEW, "public.t": 0}
    wire.rows("create schema \"odd $q0$ '\"; create table \"odd $q0$ '\".\"$q1$\" (a int)")
    assert reads(wire, "select * from \"odd $q0$ '\".\"$q1$\"") == {"odd $q0$ '.$q1$": NAMED}


@pytest.mark.parametrize("sql, expected", [
    ("select * from cols", {"id": (23, 1, 0), "v": (1043, 2, 0), "D": (1082, 3, 0), "c": (25, 7, 0), "s": (23, 9, 0)}),
    ("update cols set v = 'x'", {"id": (23, 1, 0), "v": (1043, 2, 0), "D": (1082, 3, 0), "c": (25, 7, 0), "s": (23, 9, 0)}),
    ("select * from tr_ok", {"a": (23, 1, 1)}),
    ("select * from tr_off", {"a": (23, 1, 0)}),
    ("insert into cols select * from t", {}),
    ("select * from v", {}),
    ("select * from p", {"a": (23, 1, 2)}),
    ("select * from rls", {}),
])
def test_columns_that_tell_rows_apart(wire, sql, expected):
    """Types, numbers, whether there are triggers (1) or partitions (2)."""
    found = {name: (b & 0xffffffff, b >> 32 & 0xffff, b >> 48) for kind, _, _, b, name in ask(wire, sql) if kind == "k"}
    assert found == expected


def test_columns_of_several_tables(wire):
    """Each by its number, of all that is read; where something is written beside, of none."""
    found = {(i, name) for kind, i, _, _, name in ask(wire, "select * from t x, s.t, vv, t y, rls where x.a = 1") if kind == "k"}
    assert found == {(0, "a"), (1, "a"), (3, "a")}
    assert not [row for row in ask(wire, "insert into t select a from u") if row[0] == "k"]
