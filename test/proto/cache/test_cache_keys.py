# SPDX-License-Identifier: PostgreSQL
"""test_cache_keys: T51 and T52: no row of another role, setting, type, format or portal comes from the cache. Clients of
all kinds ask the same text, warm and cold, in any order; each must get what the server itself says to it."""
import itertools

import pytest
from cache_house import ask, is_kept, login, run, start_cached

from pgt.waits import wait_for
from pgt.wire import SYNC, bind, describe, execute, parse, query

INT4, INT8, TEXT, FLOAT8 = 23, 20, 25, 701

SCHEMA = """\
drop table if exists kt, kr cascade; drop schema if exists k2 cascade; drop function if exists k_definer();
do $$begin if not exists (select from pg_roles where rolname = 'k_one') then
create role k_one login; create role k_two login; create role k_bypass login bypassrls; end if; end$$;
alter role k_one nosuperuser; alter role k_two nosuperuser nobypassrls;
create table kt (a int primary key, d date, f float8, b bytea, ts timestamptz, i interval);
insert into kt values (1, '2026-02-03', 1.0 / 3, '\\\\x0001', '2026-02-03 04:05:06+00', '1 day 2 hours');
create table kr (a int, who text); insert into kr values (1, 'k_one'), (2, 'k_two');
alter table kr enable row level security; create policy p on kr using (who = current_user);
create schema k2; create table k2.kt as select 2 as a, date '2000-01-01' as d, 2.0::float8 as f, ''::bytea as b, now() as ts, '1 s'::interval as i;
create view kv as select current_user as u, count(*) from kr;
create function k_definer() returns setof kr language sql stable security definer as 'select * from kr';
grant usage on schema k2 to k_one, k_two, k_bypass; grant select on kt, kr, kv, k2.kt to k_one, k_two, k_bypass;
"""


@pytest.fixture(params=["transaction", "session"])
def pool(pg, start_pool, request):
    pg.rows(SCHEMA)
    return start_cached(pg, start_pool, num_init_children=1, pool_mode=request.param)


def same(w, sql: str, values=None) -> list:
    """Twice, and as the server says it."""
    expected = ask(w, "/*NO QUERY CACHE*/" + sql, values)
    for _ in range(3):
        assert ask(w, sql, values) == expected
    return expected


@pytest.mark.parametrize("values", [None, ()])
def test_roles(pg, pool, values):
    """SET ROLE, SET SESSION AUTHORIZATION, other users, who passes by row security, and who does not."""
    names = ("postgres", "k_one", "k_two", "k_bypass")
    clients = [login(pool, user=name) for name in names]
    for sql in ("select * from kr order by a", "select * from kv", "select who from kr where a = 1", "select k.who, current_user from kt, k_definer() k"):
        found = [same(w, sql, values) for w in clients]
        assert found[1] != found[2] and found[0] == found[3] or "kv" in sql or "definer" in sql
        for name, (w, how) in itertools.product(names, [(clients[0], "role"), (clients[0], "session authorization")]):
            run(w, f"set {how} {name}")
            same(w, sql, values)
            run(w, f"reset {how}")
        assert [same(w, sql, values) for w in clients] == found


@pytest.mark.parametrize("values", [None, ()])
def test_row_security_is_kept_by_role(pg, pool, values):
    """Policies and views that ask who is there: each role has results of its own, until its table is written."""
    boss = login(pool)
    for who in ("k_one", "k_two"):
        w = login(pool, user=who)
        for sql in ("select * from kr order by a", "select * from kv"):
            for asks in (w, boss):
                if asks is boss:
                    run(boss, f"set role {who}")
                assert is_kept(pg, asks, sql, f"insert into kr values (3, '{who}')", values), (sql, who)
                assert not is_kept(pg, asks, "/*NO QUERY CACHE*/" + sql, f"insert into kr values (3, '{who}')", values)
                run(boss, "reset role", "delete from kr where a = 3")
                assert who in str(same(asks if asks is w else w, sql, values))


def test_row_security_by_a_setting(pg, start_pool):
    """Tenants are told apart by a setting of their own: what the session has set is in the key."""
    pg.rows(SCHEMA + "drop policy p on kr; create policy p on kr using (who = current_setting('my.tenant', true));")
    pool = start_cached(pg, start_pool, num_init_children=1, pool_mode="transaction", memqcache_safe_function_list="current_setting")
    sql = "select * from kr order by a"
    first, second, third = (login(pool, user="k_one") for _ in range(3))
    assert same(third, sql) == []
    for _ in range(2):
        run(first, "set my.tenant = 'k_one'")
        run(second, "select set_config('my.tenant', 'k_two', false)")
        for values in (None, ()):
            assert same(first, sql, values) == [[b"1", b"k_one"]]
            assert same(second, sql, values) == [[b"2", b"k_two"]]
            assert is_kept(pg, second, sql, "insert into kr values (3, 'k_two')", values)
            pg.rows("delete from kr where a = 3")
        run(third, "begin", "set local my.tenant = 'k_two'")
        assert same(third, sql) == [[b"2", b"k_two"]]
        run(third, "commit")
        assert same(third, sql) == []
        run(first, "reset my.tenant")
        assert same(first, sql) == []


@pytest.mark.parametrize("text", ["alter role k_one set {}", "alter database postgres set {}", "alter user all set {}", "alter role k_one in database postgres set {}"])
def test_settings_that_a_role_gets(pg, pool, text):
    """Who is there keeps what he had: his results are nobody else's, and what he writes is where his names lead."""
    sql = "select a, ts from kt order by a"
    pg.rows("grant insert on kt, k2.kt to k_one")
    old, boss = login(pool, user="k_one"), login(pool)
    before = same(old, sql)
    run(boss, "alter role k_one connection limit 100")
    assert is_kept(pg, old, sql, "update kt set ts = ts + interval '1 hour'")
    run(boss, "update kt set ts = ts - interval '1 hour'")
    assert same(old, sql) == before
    try:
        run(boss, text.format("timezone = 'Asia/Tokyo'"))
        new = login(pool, user="k_one")
        for _ in range(3):
            for values in (None, ()):
                assert same(new, sql, values) != before
                same(old, sql, values)
        assert is_kept(pg, new, sql, "update kt set ts = ts + interval '1 hour'")
        run(boss, text.format("search_path = 'k2'"))
        new = login(pool, user="k_one")
        run(new, "insert into kt (a) values (100)")
        for number in range(10, 13):
            for reader in ("select a from public.kt order by a", "select a from k2.kt order by a"):
                same(boss, reader)
            run(old, f"insert into kt (a) values ({number})")
            found = [same(boss, f"select a from {table}.kt order by a") for table in ("public", "k2")]
            assert [str(number).encode()] in found[0] + found[1]
            for w in (new, old):
                same(w, "select a from kt order by a")
    finally:
        pg.rows("alter role k_one reset all; alter database postgres reset timezone; alter database postgres reset search_path;"
                "alter role all reset timezone; alter role all reset search_path; alter role k_one in database postgres reset all")


@pytest.mark.parametrize("text", ["alter role k_gone rename to k_old", "drop role k_gone"])
def test_a_role_that_another_one_is_named_as(pg, pool, text):
    """Who is there is the role that it was, by another name or by none; results of the new one are not his, nor his its."""
    sql = "select a, current_user from kr order by a"
    pg.rows("create role k_gone login; insert into kr values (3, 'k_gone'), (4, 'k_old'); grant select on kr to public")
    old, boss = login(pool, user="k_gone"), login(pool)
    same(old, sql)
    try:
        run(boss, text, "create role k_gone login")
        new = login(pool, user="k_gone")
        for number in range(5, 7):
            for first, second in ((old, new), (new, old)):
                run(boss, f"insert into kr values ({number}, 'k_gone')")
                for w in (first, second, first):
                    kept = [m.row() if m.type == "D" else m.sqlstate for _ in range(3) for m in w.simple(sql) if m.type in "DE"]
                    said = [m.row() if m.type == "D" else m.sqlstate for m in w.simple("/*NO QUERY CACHE*/" + sql) if m.type in "DE"]
                    assert kept == said * 3
    finally:
        pg.rows("drop role if exists k_old; drop role if exists k_gone")


def test_rights_that_change(pg, pool):
    one, boss = login(pool, user="k_one"), login(pool)
    sql = "select a from kt"
    same(one, sql)
    run(boss, "revoke select on kt from k_one")
    assert one.simple(sql)[0].type == "E"
    run(boss, "grant select on kt to k_one")
    same(one, sql)
    row = "select * from kr order by a"
    assert len(same(one, row)) == 1
    for change, rows in (("alter role k_one bypassrls", 2), ("alter role k_one nobypassrls", 1), ("grant k_two to k_one", 1),
                         ("revoke k_two from k_one", 1), ("alter table kr disable row level security", 2),
                         ("alter table kr enable row level security", 1), ("drop policy p on kr", 0),
                         ("create policy p on kr using (true)", 2)):
        run(boss, change)
        assert len(same(one, row)) == rows, change


def test_row_security_off(pg, pool):
    one = login(pool, user="k_one")
    same(one, "select * from kr")
    run(one, "set row_security = off")
    assert one.simple("select * from kr")[0].type == "E"


SETTINGS = ("datestyle = 'German'", "timezone = 'Asia/Tokyo'", "intervalstyle = 'iso_8601'", "extra_float_digits = -10",
            "bytea_output = 'escape'", "search_path = k2, public", "client_encoding = 'latin1'", "lc_monetary = 'C'",
            "statement_timeout = '10s'", "application_name = 'x'", "my.own = '1'")


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings(pg, pool, setting):
    w, other = login(pool), login(pool)
    sql = "select * from kt"
    before = same(w, sql)
    run(w, f"set {setting}")
    now = same(w, sql)
    assert same(other, sql) == before
    run(other, "begin", f"set local {setting}")
    assert same(other, sql) == now
    run(other, "commit")
    assert same(other, sql) == before
    run(w, "reset all")
    assert same(w, sql) == before


def test_settings_at_the_start(pg, pool):
    plain = login(pool)
    before = same(plain, "select * from kt")
    for params in ({"options": "-c datestyle=German"}, {"DateStyle": "German"}, {"TimeZone": "Asia/Tokyo"}):
        assert same(login(pool, **params), "select * from kt") != before


def extended(w, sql, values=(), types=(), result_formats=(), formats=(), limit=0) -> list:
    w.send(parse(sql, types=types), bind(values, formats=formats, results=result_formats), describe("", "P"), execute(limit=limit), SYNC)
    return [(m.type, m.body) for m in w.ready() if m.type in "TDCsE"]


def test_formats_types_and_values(pg, pool):
    """One text with every combination of formats, types and values, in two rounds."""
    w = login(pool)
    sql = "select a, f, $1 as p from kt where a < 100"
    cases = [dict(values=["1"], types=[INT4]), dict(values=["1"], types=[TEXT]), dict(values=["2"], types=[INT4]),
             dict(values=["1"], types=[INT8]), dict(values=["1"], types=[FLOAT8]), dict(values=[None], types=[INT4]),
             dict(values=[""], types=[TEXT]), dict(values=["1"], types=[INT4], result_formats=[1]),
             dict(values=["1"], types=[INT4], result_formats=[1, 0, 1]), dict(values=[b"\0\0\0\1"], types=[INT4], formats=[1]),
             dict(values=[b"\0\0\0\2"], types=[INT4], formats=[1])]
    expected = [extended(w, "/*NO QUERY CACHE*/" + sql, **case) for case in cases]
    for _ in range(2):
        assert [extended(w, sql, **case) for case in cases] == expected
    w.simple(sql.replace("$1", "1"))
    assert [extended(w, sql, **case) for case in cases] == expected


def test_suspended_portals_are_not_kept(pg, pool):
    run(login(pool), "insert into kt select i from generate_series(2, 10) i")
    w = login(pool)
    for limit, rows in ((1, 1), (3, 3), (0, 10), (1, 1), (0, 10), (3, 3)):
        found = extended(w, "select a from kt", limit=limit)
        assert sum(kind == "D" for kind, _ in found) == rows
        assert found[-1][0] == ("s" if limit else "C")
    run(w, "begin")
    w.send(parse("select a from kt order by a"), bind(portal="c"), execute("c", 4), execute("c", 4), execute("c", 4), SYNC)
    assert sum(m.type == "D" for m in w.ready()) == 10
    run(w, "commit")


def test_sequences_that_are_not_alone(pg, pool):
    """Several statements before one Sync, several Syncs at once, a Describe of the statement, a Flush, an error in between."""
    w = login(pool)
    sql = "select a from kt where a = $1"
    one = parse(sql, types=[INT4]) + bind(["1"]) + describe("", "P") + execute()
    for _ in range(3):
        w.send(one, one, SYNC)
        assert "".join(m.type for m in w.ready()) == "12TDC" * 2 + "Z"
        w.send(one, SYNC, one, SYNC, one, SYNC)
        assert "".join(m.type for m in w.ready(3)) == "12TDCZ" * 3
        w.send(parse(sql, types=[INT4]), describe("", "S"), bind(["1"]), execute(), SYNC)
        assert "".join(m.type for m in w.ready()) == "1tT2DCZ"
        w.send(one, parse("select 1 / 0"), bind(), execute(), one, SYNC, one, SYNC)
        assert "".join(m.type for m in w.ready(2)) == "12TDC1EZ12TDCZ"
        w.send(bind(["1"]), describe("", "P"), execute(), SYNC)
        assert "".join(m.type for m in w.ready()) == "2TDCZ"
        w.send(query("select a from kt") + query("select a from kt; select 1") + query("select a from kt"))
        assert "".join(m.type for m in w.ready(3)) == "TDCZ" + "TDCTDCZ" + "TDCZ"


def test_what_is_never_kept(pg, pool):
    w = login(pool)
    for sql in ("select random() from kt", "select now() from kt", "select clock_timestamp() from kt", "select 'now'::timestamptz from kt",
                "select txid_current() from kt", "select nextval('kq') from kt", "select pg_backend_pid() from kt where a = 1 for update",
                "select a from kt tablesample bernoulli (50)"):
        run(w, "create sequence if not exists kq")
        first = w.simple(sql)
        again = [w.simple(sql) for _ in range(2)]
        if "random" in sql or "clock" in sql or "txid" in sql or "nextval" in sql or "now" in sql:
            assert all([m.body for m in found if m.type == "D"] != [m.body for m in first if m.type == "D"] for found in again), sql
    run(w, "drop sequence kq")


@pytest.mark.parametrize("setting", ["timezone = 'Asia/Tokyo'", "datestyle = 'German'", "search_path = 'k2'"])
def test_a_server_that_is_reloaded(pg, start_pool, setting):
    """Results of before go when the next check of the server finds that it has read its configuration anew, whatever is in that."""
    pg.rows(SCHEMA)
    pool = start_cached(pg, start_pool, num_init_children=1, sr_check_period=1)
    sql = "select a, d, ts from kt order by a"
    with login(pool) as w:
        before = same(w, sql)
        try:
            pg.rows(f"alter system set {setting}")
            pg.rows("select pg_reload_conf()")
            wait_for("the server has it", lambda: pg.rows(sql) != before)
            wait_for("it is told", lambda: ask(w, sql) != before, 30)
            assert ask(w, sql) == ask(w, sql) == pg.rows(sql)
            wait_for("the log has it", lambda: "has read its configuration anew" in pool.log())
        finally:
            pg.rows(f"alter system reset {setting.split()[0]}")
            pg.rows("select pg_reload_conf()")
        wait_for("it is told", lambda: ask(w, sql) == before, 30)


@pytest.mark.parametrize("what", ["current_schema", "current_schema()", "current_schemas(true)", "current_schema as s"])
def test_a_schema_that_comes_in_front(pool, pg, what):
    """Who looks first where it is not yet is told of it."""
    pg.rows("drop schema if exists k_first cascade")
    sql = f"select {what}, a from kt order by a"
    with login(pool) as w, login(pool) as other:
        run(w, "set search_path = k_first, public")
        before = [w.rows(sql) for _ in range(3)]
        run(other, "create schema k_first")
        try:
            assert b"k_first" in w.rows(sql)[0][0] and b"k_first" not in before[-1][0][0]
        finally:
            run(other, "drop schema k_first")
        assert w.rows(sql) == before[0]


@pytest.mark.parametrize("values", [None, ()])
def test_columns_that_change_without_a_write(pool, pg, values):
    """Names of the catalogue, and places of rows."""
    pg.rows("drop table if exists k_named, k_renamed, k_reg; create table k_named (a int); create table k_reg (r regclass, rs regclass[], a int);"
            "insert into k_reg values ('pg_class', null, 0); delete from k_reg; insert into k_reg values ('k_named', '{k_named}', 1)")
    with login(pool) as w, login(pool) as other:
        for column, change in (("r", "alter table k_named rename to k_renamed"), ("a, rs", "alter table k_renamed rename to k_named"),
                               ("ctid", "vacuum full k_reg")):
            sql = f"select {column} from k_reg"
            before = [ask(w, sql, values) for _ in range(3)]
            run(other, change)
            assert ask(w, sql, values) == ask(w, "/*NO QUERY CACHE*/" + sql, values) != before[-1]


@pytest.mark.parametrize("values", [None, ()])
@pytest.mark.parametrize("what, change", [
    ("r::text from k_moved", "alter table k_other rename to k_third"),
    ("row_to_json(k_moved) from k_moved", "alter table k_other rename to k_third"),
    ("p::text from k_pairs", "alter table k_other rename to k_third"),
    ("a::text from k_acls", "alter role k_other_role rename to k_third_role"),
    ("acldefault('r', o)::text from k_oids", "alter role k_other_role rename to k_third_role"),
    ("t from k_view", "alter table k_other rename to k_third"),
    ("pg_partition_root('k_part')::oid from k_oids", "alter table k_root detach partition k_part"),
    ("xmax::text from k_oids", "update k_oids set o = o where o > 0 returning error_here(o)"),
    ("x from k_xmax", "update k_oids set o = o where o > 0 returning error_here(o)"),
    ("ctid::text from k_oids", "vacuum full k_oids"),
])
def test_text_that_changes_without_a_write(pool, pg, what, change, values):
    """As a driver asks that has described it before: the answer says nothing of its columns."""
    pg.rows("drop table if exists k_other, k_third, k_moved, k_pairs, k_acls, k_oids, k_root, k_part cascade; drop type if exists k_pair")
    pg.rows("drop role if exists k_other_role; drop role if exists k_third_role; create role k_other_role")
    pg.rows("create table k_other (a int); create table k_moved (r regclass); insert into k_moved values ('k_other'); create type k_pair as (a int, r regclass);"
            "create table k_pairs (p k_pair); insert into k_pairs values (row(1, 'k_other')); create table k_acls (a aclitem);"
            "insert into k_acls values (makeaclitem('k_other_role'::regrole, 'k_other_role'::regrole, 'SELECT', false)); create table k_oids (o oid);"
            "insert into k_oids values (0); delete from k_oids; insert into k_oids values ('k_other_role'::regrole); create table k_root (a int) partition by range (a);"
            "create table k_part partition of k_root for values from (0) to (9); create view k_view as select 'k_other'::regclass::text as t from k_moved;"
            "create view k_xmax as select xmax::text as x from k_oids;"
            "create or replace function error_here(oid) returns int language plpgsql as 'begin raise exception $$no$$; end'")
    with login(pool) as w, login(pool) as other:
        sql = "select " + what
        before = [ask(w, sql, values, describes=False) for _ in range(3)]
        if "error_here" in change:
            assert [m for m in other.simple(change) if m.type == "E"]
        else:
            run(other, change)
        assert ask(w, sql, values, describes=False) == ask(w, "/*NO QUERY CACHE*/" + sql, values, describes=False) != before[-1]
