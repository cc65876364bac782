# SPDX-License-Identifier: PostgreSQL
"""The router's questions about the catalogue, asked of a real PostgreSQL; and the list of built-in
functions, compared with that server's. The program route-questions is looked for in $PGPOOL_BUILD,
beside $PGPOOL_BIN, else in the current folder."""
import os
import re
import subprocess
from pathlib import Path

import pytest
from pgt.wire import Wire

TOP = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("PGPOOL_BUILD") or os.path.dirname(os.environ.get("PGPOOL_BIN", "")) or os.getcwd()
PROGRAM = os.path.join(BUILD, "route-questions")
pytestmark = pytest.mark.skipif(not os.access(PROGRAM, os.X_OK), reason="route-questions is not built")

FUNC, REL, OPER, OID, DB, WORD = range(6)
CATALOG, TEMP, UNLOGGED, VOLATILE, MISSING, SEQUENCE = 1, 2, 4, 8, 16, 32  # of a relation
WRITES, NO_FUNC, SETS = 1, 2, 5  # SETS: it may have set something besides
ODD_OPERATOR, SHADOW, SERIALIZABLE, ODD_WORD = 1, 2, 4, 16
ODD_SCHEMA, ODD_TABLE = "Sc $q0$ '\"\\", "T'$q0$ $q"

SCHEMA = """\
create table t (a int); create unlogged table u (a int); create schema s; create table s.t2 (a int);
create sequence sq;
create function f_vol(int) returns int language sql volatile as 'select 1';
create function f_set(text) returns text language sql volatile as $$select set_config('work_mem', $1, false)$$;
create function f_calls_set() returns text language sql volatile as $$select f_set('1MB')$$;
create function f_update() returns int language plpgsql volatile as $$begin update t set a = 1; return 1; end$$;
create function f_vol(text) returns int language sql immutable as 'select 1';
create function f_imm(int, int default 1) returns int language sql immutable as 'select 1';
create function f_var(variadic int[]) returns int language sql stable as 'select 1';
create function s.f_vol(int) returns int language sql stable as 'select 1';
create function op_vol(int, int) returns int language sql volatile as 'select 1';
create function chk(int) returns bool language plpgsql volatile as 'begin return true; end';
create aggregate agg_vol(int) (sfunc = op_vol, stype = int);
create operator <#!> (leftarg = int, rightarg = int, function = op_vol);
create operator ==> (leftarg = int, rightarg = int, function = int4pl);
create domain d1 as int check (chk(value)); create domain d2 as d1; create domain d_ok as int check (value > 0);
create view v_plain as select upper('x'), count(*), a::d_ok from t where a > 1 group by a;
create view v_window as select row_number() over (order by a), sum(a) over () from t;
create view v_random as select random() r; create view v_deep as select * from (select * from v_random) x;
create view v_jobs as select * from t for update skip locked; create view v_jobs_deep as select * from v_jobs;
create view v_nextval as select nextval('sq'); create view v_fn as select case when a = 1 then f_vol(a) end from t;
create view v_sub as select * from t where exists (with w as (select f_vol(1)) select * from w);
create view v_oper as select 1 <#!> 2 as x; create view v_agg as select agg_vol(a) from t;
create view v_dom as select a::d2 from t; create view v_dom_deep as select ('1' || a::text)::d2 from t; create view v_unlogged as select * from u;
create view v_catalog as select relname from pg_class; create view v_table as select * from s.t2;
create materialized view m_random as select random() r;
create table parted (a int) partition by range (a);
create type c_t as (x int); create type c_ok as (x int);
create function t_to_c(text) returns c_t language sql volatile as 'select null::c_t';
create cast (text as c_t) with function t_to_c(text);
create function of_t(t) returns int language sql volatile as 'select 1';
create function of_t_more(t, int default 1) returns int language sql volatile as 'select 1';
create function of_any(anyelement) returns int language sql volatile as 'select 1';
create table half (a int) partition by range (a); create unlogged table half1 partition of half for values from (0) to (1);
create table half2 partition of half for values from (1) to (2) partition by range (a);
create table heir (a int); create unlogged table heir1 () inherits (heir); create view v_half as select * from half;
create view v_seq as select last_value from sq;
create function f_def(a int default 1, b bigint default nextval('sq') + 1) returns int language sql stable as 'select 1';
create function f_op(a int default 1 <#!> 2) returns int language sql stable as 'select 1';
create view v_def as select f_def(1); create view v_op as select f_op();
create table rls (a int); alter table rls enable row level security; create policy p on rls using (f_vol(a) > 0);
create table rls_off (a int); create policy p on rls_off using (f_vol(a) > 0);
create table rls_in (a int); alter table rls_in enable row level security;
create policy p on rls_in for insert with check (f_vol(a) > 0); create policy q on rls_in for delete using (f_vol(a) > 0);
create table rls_by (a int); alter table rls_by enable row level security;
create policy p on rls_by for select using (a in (select a from u)); create view v_rls as select * from rls;
"""
ODD = """\
create schema "{0}"; create table "{0}"."{1}" (a int); create unlogged table "{1}" (a int);
""".format(ODD_SCHEMA.replace('"', '""'), ODD_TABLE.replace('"', '""'))


def sql_of(questions):
    lines = "".join(f"{kind}\t{schema}\t{name}\t{nargs}\n" for kind, schema, name, nargs in questions)
    run = subprocess.run([PROGRAM], input=lines.encode(), capture_output=True, check=True, timeout=100)
    return run.stdout.decode()


def ask(wire, questions):
    """The bits, in the order of the questions, asked 16 at a time."""
    answers = []
    for at in range(0, len(questions), 16):
        part = questions[at:at + 16]
        rows = sorted((int(i), int(bits)) for i, bits in wire.rows(sql_of(part)))
        assert [i for i, _ in rows] == list(range(len(part)))
        answers += [bits for _, bits in rows]
    return answers


def check(wire, table):
    questions = [row[:4] for row in table]
    got = ask(wire, questions)
    assert dict(zip(questions, got)) == {row[:4]: row[4] for row in table}


@pytest.fixture(scope="module")
def database(pg):
    pg.rows("create database route_oracle")
    with Wire(pg.socket) as w:
        w.login(database="route_oracle")
        w.rows(SCHEMA + ODD)
    yield "route_oracle"
    pg.rows("drop database route_oracle with (force)")


@pytest.fixture
def wire(pg, database):
    with Wire(pg.socket) as w:
        assert w.login(database=database)[-1].type == "Z"
        yield w


def test_relations(wire):
    check(wire, [
        (REL, "", "t", 0, 0), (REL, "public", "t", 0, 0), (REL, "s", "t2", 0, 0), (REL, "", "parted", 0, 0),
        (REL, "", "t2", 0, MISSING), (REL, "s", "t", 0, MISSING), (REL, "no_schema", "t", 0, MISSING),
        (REL, "", "u", 0, UNLOGGED), (REL, "", "pg_class", 0, CATALOG), (REL, "pg_catalog", "pg_class", 0, CATALOG),
        (REL, "information_schema", "tables", 0, CATALOG), (REL, "", "sq", 0, SEQUENCE), (REL, "", "v_seq", 0, SEQUENCE),
        (REL, ODD_SCHEMA, ODD_TABLE, 0, 0), (REL, "", ODD_TABLE, 0, UNLOGGED),
    ])


def test_views(wire):
    check(wire, [(REL, "", name, 0, bits) for name, bits in (
        ("v_plain", 0), ("v_window", 0), ("v_table", 0), ("m_random", 0), ("v_random", VOLATILE),
        ("v_deep", VOLATILE), ("v_jobs", VOLATILE), ("v_jobs_deep", VOLATILE), ("v_nextval", VOLATILE), ("v_fn", VOLATILE), ("v_sub", VOLATILE),
        ("v_oper", VOLATILE), ("v_agg", VOLATILE), ("v_dom", VOLATILE), ("v_dom_deep", VOLATILE), ("v_unlogged", UNLOGGED),
        ("v_catalog", CATALOG))])


def test_partitions_and_heirs(wire):
    """A standby cannot read a table of which a part is unlogged."""
    check(wire, [(REL, "", name, 0, UNLOGGED) for name in ("half", "half1", "heir", "v_half")] + [(REL, "", "half2", 0, 0)])
    wire.rows("begin; create temp table heir2 () inherits (s.t2)")
    check(wire, [(REL, "s", "t2", 0, TEMP)])
    wire.rows("rollback")


def test_policies(wire):
    check(wire, [(REL, "", "rls", 0, VOLATILE), (REL, "", "v_rls", 0, VOLATILE), (REL, "", "rls_off", 0, 0),
                 (REL, "", "rls_in", 0, 0), (REL, "", "rls_by", 0, UNLOGGED)])


def test_defaults_of_arguments(wire):
    check(wire, [(FUNC, "", "f_def", 0, WRITES), (FUNC, "", "f_def", 1, WRITES), (FUNC, "", "f_def", 2, 0),
                 (FUNC, "", "f_op", 0, WRITES), (FUNC, "", "f_op", 1, 0), (REL, "", "v_def", 0, VOLATILE), (REL, "", "v_op", 0, VOLATILE)])


def test_functions(wire):
    check(wire, [
        (FUNC, "", "f_vol", 1, WRITES), (FUNC, "", "f_vol", 2, NO_FUNC), (FUNC, "public", "f_vol", 1, WRITES),
        (FUNC, "s", "f_vol", 1, 0), (FUNC, "", "f_imm", 1, 0), (FUNC, "", "f_imm", 2, 0),
        (FUNC, "", "f_imm", 3, NO_FUNC), (FUNC, "", "f_imm", 0, NO_FUNC), (FUNC, "", "f_var", 5, 0),
        (FUNC, "", "agg_vol", 1, SETS), (FUNC, "", "f_set", 1, SETS), (FUNC, "", "f_calls_set", 0, SETS),
        (FUNC, "", "f_update", 0, WRITES), (FUNC, "", "nextval", 1, WRITES), (FUNC, "", "count", 0, 0),
        (FUNC, "", "percentile_cont", 1, 0), (FUNC, "pg_catalog", "random", 0, WRITES),
        (FUNC, "no_schema", "f", 0, NO_FUNC), (FUNC, "", "f_vol", 4000000000, NO_FUNC),
        (OPER, "", "==>", 0, 0), (OPER, "", "<#!>", 0, WRITES), (OPER, "", "=", 0, 0),
        (OPER, "", "<#####>", 0, NO_FUNC),
    ])


def test_oids_and_database(wire):
    oid = int(wire.rows("select 's.t2'::regclass::oid")[0][0])
    check(wire, [(OID, "s", "t2", 0, oid), (OID, "", "t2", 0, 0), (DB, "", "", 0, ODD_OPERATOR | ODD_WORD)])
    wire.rows("begin")
    wire.rows("create function lower(d1) returns text language sql volatile as 'select $$x$$'")
    wire.rows("drop operator <#!> (int, int) cascade")
    check(wire, [(DB, "", "", 0, SHADOW | ODD_WORD)])
    wire.rows("drop domain d1 cascade; drop function of_t, of_t_more, of_any, t_to_c cascade")
    check(wire, [(DB, "", "", 0, 0)])
    wire.rows("rollback")


def test_words_that_call(wire):
    check(wire, [(WORD, "", name, 0, 1) for name in ("d1", "D1", "d2", "c_t", "of_t", "of_t_more", "of_any")] +
          [(WORD, "", name, 0, 0) for name in ("d_ok", "t", "int4", "f_vol", "c_ok", "from", "nothing")])


def test_search_path(wire):
    wire.rows("set search_path = s")
    check(wire, [(REL, "", "t2", 0, 0), (REL, "", "t", 0, MISSING), (FUNC, "", "f_vol", 1, 0)])
    wire.rows("set search_path = public, s")
    check(wire, [(REL, "", "t2", 0, 0), (REL, "", "t", 0, 0), (FUNC, "", "f_vol", 1, WRITES)])


def test_temporary(wire, pg, database):
    """T70: one's own, one that hides another, and one of another session."""
    wire.rows("create temp table own (a int); create temp table t (a int)")
    wire.rows("create temp view v_own as select * from own")
    check(wire, [(REL, "", "own", 0, TEMP), (REL, "", "t", 0, TEMP), (REL, "public", "t", 0, 0),
                 (REL, "pg_temp", "own", 0, TEMP), (REL, "pg_temp", "u", 0, MISSING), (REL, "", "v_own", 0, TEMP)])
    with Wire(pg.socket) as other:
        other.login(database=database)
        check(other, [(REL, "", "t", 0, TEMP), (REL, "", "own", 0, TEMP | MISSING), (REL, "public", "t", 0, 0)])
        wire.rows("drop table t")
        check(other, [(REL, "", "t", 0, 0)])


def test_no_rights(pg, database):
    """A name in a schema that one may not use is an answer, too."""
    with Wire(pg.socket) as w:
        w.login(user="trust_user", database=database)
        check(w, [(REL, ODD_SCHEMA, ODD_TABLE, 0, 0), (REL, "", "v_deep", 0, VOLATILE), (FUNC, "s", "f_vol", 1, 0)])


def test_settings_change_nothing(wire):
    """Neither string literals nor a hostile search_path reach the questions."""
    wire.rows("set standard_conforming_strings = off; set escape_string_warning = off")
    wire.rows("create schema evil")
    wire.rows("create function evil.never(name, name) returns bool language sql as 'select false'")
    wire.rows("create operator evil.= (leftarg = name, rightarg = name, function = evil.never)")
    wire.rows("create function evil.nope(int, int) returns bool language sql as 'select false'")
    wire.rows("create operator evil.= (leftarg = int, rightarg = int, function = evil.nope)")
    wire.rows("create domain evil.\"char\" as text; create domain evil.text as int; create domain evil.oid as text")
    wire.rows("create table evil.pg_class (a int); create table evil.pg_proc (a int)")
    wire.rows("create function evil.pg_table_is_visible(oid) returns bool language sql as 'select false'")
    wire.rows("set search_path = evil, public, pg_catalog")
    table = [(REL, ODD_SCHEMA, ODD_TABLE, 0, 0), (REL, "", "u", 0, UNLOGGED), (REL, "", "v_deep", 0, VOLATILE),
             (REL, "", "v_dom", 0, VOLATILE), (REL, "", "pg_class", 0, 0), (FUNC, "", "f_vol", 1, WRITES),
             (FUNC, "", "f_imm", 1, 0), (OPER, "", "<#!>", 0, WRITES)]
    try:
        check(wire, table)
    finally:
        wire.rows("drop schema evil cascade")


def test_builtin_functions(pg):
    """No name listed as reading has a volatile overload on this server, and everyday names are listed."""
    text = (TOP / "src/core/route/route_builtin.def").read_text(encoding="utf-8")
    listed = dict(re.findall(r'ROUTE_BUILTIN\("(\w+)", (READS|WRITES)\)', text))
    assert list(listed) == sorted(listed)
    volatile = {row[0].decode() for row in pg.rows(
        "select distinct proname from pg_proc where pronamespace = 11 and provolatile = 'v'")}
    assert {name for name, what in listed.items() if what == "READS"} & volatile == set()
    for name in ("count", "sum", "now", "lower", "coalesce_not", "json_agg", "generate_series", "to_char"):
        assert (listed.get(name) == "READS") == (name != "coalesce_not"), name
    for name in ("nextval", "random", "set_config", "pg_advisory_lock", "lo_create", "txid_current"):
        assert listed[name] == "WRITES", name


def test_calls_that_are_syntax(wire):
    """From 16 on these are no functions: nothing of that name is in the catalogue, and nothing is missing."""
    newer = int(wire.value("show server_version_num")) >= 160000
    check(wire, [(FUNC, "", name, 1, 0 if newer else NO_FUNC) for name in ("json_array", "json_value", "json_scalar")])
    check(wire, [(FUNC, "s", "json_array", 1, NO_FUNC), (FUNC, "", "json_nothing", 1, NO_FUNC)])


def test_isolation_by_default(pg, database):
    for options, want in (("", 0), ("-c default_transaction_isolation=serializable", SERIALIZABLE)):
        with Wire(pg.socket) as w:
            assert w.login(database=database, options=options)[-1].type == "Z"
            w.rows("set default_transaction_isolation = 'repeatable read'")
            assert ask(w, [(DB, "", "", 0)])[0] & SERIALIZABLE == want
