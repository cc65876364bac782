# SPDX-License-Identifier: PostgreSQL
"""test_cache_writes: every way to write that hides what it writes, or when it is committed: no older result is seen behind it,
neither by the writer nor by another client."""
import pytest
from cache_house import ask, login, start_cached

from pgt.waits import wait_for
from pgt.wire import SYNC, WireClosed, bind, execute, parse, query


@pytest.fixture
def made(pg):
    pg.rows("drop schema if exists oth cascade; drop table if exists acc, acu cascade; create schema oth; create table acc (a int, b int);"
            "create table acu (a int); create table oth.acc (a int, b int); insert into acc values (0, 0); insert into acu values (1);"
            "insert into oth.acc values (0, 0); create view av as select * from acc;"
            "create or replace function oid_path() returns void language plpgsql as "
            "$$begin perform set_config('search_path', 'oth', true); end$$")
    return pg


@pytest.fixture(params=["transaction", "session", "statement"])
def pool(made, start_pool, request):
    p = start_cached(made, start_pool, num_init_children=1, pool_mode=request.param)
    p.mode = request.param
    return p


class Raw:
    """Messages that are sent at once."""

    def __init__(self, *frames):
        self.frames = frames


def ext(s):
    return parse(s) + bind(()) + execute()


W = {
    "copy_update": ["copy (update acc set a=a+1 returning a) to stdout"],
    "copy_cte": ["copy (with x as (update acc set a=a+1 returning a) select * from x) to stdout"],
    "ctas_cte": ["drop table if exists nn1", "create table nn1 as with x as (update acc set a=a+1 returning a) select * from x"],
    "into_cte": ["drop table if exists nn2", "with x as (update acc set a=a+1 returning a) select * into nn2 from x"],
    "ctas_exec": ["drop table if exists nn3", "prepare pq1 as with x as (update acc set a=a+1 returning a) select * from x",
        "create table nn3 as execute pq1", "deallocate pq1"],
    "rb_multi": ["begin", "select 1 from acu for update", "rollback; update acc set a=a+1"],
    "rb_multi2": ["begin", "update acu set a=a", "rollback; update acc set a=a+1"],
    "rb_chain": ["begin", "update acc set a=a", "rollback and chain", "update acc set a=a+1", "commit and chain", "commit"],
    "rb_ext": ["begin", "select 1 from acu for update", Raw(ext("rollback"), ext("update acc set a=a+1"), SYNC)],
    "rb_pipe": ["begin", "select 1 from acu for update", Raw(query("rollback"), query("update acc set a=a+1"))],
    "begin_rb_ext": [Raw(ext("begin"), ext("select 1"), ext("rollback"), ext("update acc set a=a+1"), SYNC)],
    "begin_cm_ext": [Raw(ext("begin"), ext("update acc set a=a+1"), ext("commit"), SYNC)],
    "commit_portal": ["begin", "update acc set a=a+1", Raw(parse("commit"), bind((), "cp"), SYNC), Raw(execute("cp"), SYNC)],
    "setlocal_path": ["begin", "set local search_path=oth", "update acc set a=a+1", "commit"],
    "setlocal_path1": ["begin; set local search_path=oth; update acc set a=a+1; commit"],
    "setconf_path": ["begin", "select set_config('search_path','oth',true)", "update acc set a=a+1", "commit"],
    "set_path_in_tx": ["begin", "set search_path=oth", "update acc set a=a+1", "commit", "reset search_path"],
    "set_path_1q": ["set search_path=oth; update acc set a=a+1; reset search_path"],
    "set_path_pipe": [Raw(query("set search_path=oth"), query("update acc set a=a+1"), query("reset search_path"))],
    "func_path": ["begin", "select oid_path()", "update acc set a=a+1", "commit"],
    "u_name": ['update U&"\\0061cc" set a=a+1'],
    "u_name2": ["update U&\"!0061cc\" UESCAPE '!' set a=a+1"],
    "q_name": ['update "acc" set a=a+1'],
    "upper": ['update ACC set a=a+1'],
    "comment": ['update /* x /* y */ */ public . acc set a=a+1'],
    "cte_ins": ["with acc as (select 5 as a) insert into acc(a) select * from acc"],
    "view_del": ["with d as (update av set a=a+1 returning a) select count(*) from d"],
    "do": ["do $$begin update acc set a=a+1; end$$"],
    "prep": ["prepare pp1 as update acc set a=a+1", "execute pp1", "deallocate pp1"],
    "expl": ["explain (analyze) update acc set a=a+1"],
    "expl2": ["explain (analyze, costs off) with x as (update acc set a=a+1 returning a) select * from x"],
    "only": ["update only acc set a=a+1"],
    "trunc_only": ["truncate table only acc", "insert into acc values (7,7)"],
    "onconf": ["insert into acc(a) values (9) on conflict do nothing"],
    "savep": ["begin", "savepoint s", "update acc set a=a+1", "rollback to s", "update acc set a=a+1", "release s", "commit"],
    "savep_err": ["begin", "update acc set a=a+1", "savepoint s", Raw(query("select 1/0")), "rollback to s", "commit"],
    "end": ["begin", "update acc set a=a+1", "end"],
    "cm_multi": ["begin", "update acc set a=a+1", "select 1; commit"],
    "begin_multi": ["begin; update acc set a=a+1", "commit"],
    "drop_swap": ["begin", "alter table acc rename to accx", "alter table acu rename to acc",
        "alter table acc add column if not exists b int", "update acc set a=a+1",
        "alter table acc drop column b", "alter table acc rename to acu", "alter table accx rename to acc", "update acc set a=a+1", "commit"],
    "lit": [r"update acc set a=a+1 where E'\'' = E'\'' and 'x' = 'x'"],
}
READS = [
    "select * from acc", "with acc as (select * from acc) select * from acc, acu",
    "select (with acc as (select 1 as z) select z from acc), sum(a), sum(b) from acc, (select 1) u",
    "select * from acu, lateral (select * from acc) z", "select * from av", "select count(*), sum(a) from oth.acc",
    "select array(select a from acc), (table acu limit 1)",
]


def test_write(made, pool):
    fails = []
    with login(made) as direct:
        for what in W:
            try:
                one(direct, pool, what)
            except AssertionError as e:
                fails.append((what, type(e).__name__, str(e)[:300]))
    assert not fails


def one(direct, pool, what):
    w, r = login(pool), login(pool)
    for _ in range(2):
        for s in READS:
            for x, v in ((r, None), (w, None), (r, None), (r, ()), (r, ())):
                ask(x, s, v)
        for s in W[what]:
            frames = s.frames if isinstance(s, Raw) else [query(s)]
            w.send(*frames)
            try:
                w.ready(sum(f[:1] == b"Q" or f == SYNC for f in frames))
            except WireClosed:
                assert pool.mode == "statement"  # it began a transaction block
                w = login(pool)
        bad = []
        for s in READS:
            want = direct.rows(s)
            for x in (w, r):
                for v in (None, ()):
                    got, exp = ask(x, s, v), want
                    if got != exp:
                        bad.append((s, "writer" if x is w else "reader", v, got, exp))
        assert not bad, sorted({(b[0][:40], b[1]) for b in bad})


def test_commit_that_was_bound_earlier(made, pool):
    """COMMIT is bound in one exchange and executed in another: what others had kept in between is gone behind it."""
    if pool.mode == "statement":
        pytest.skip("there are no transactions")
    w, r = login(pool), login(pool)
    for _ in range(3):
        w.send(query("begin"), query("update acc set a = a + 1"), parse("commit") + bind((), "cp") + SYNC)
        w.ready(3)
        for _ in range(3):
            ask(r, "select a from acc")
        w.send(execute("cp"), SYNC)
        assert [m.type for m in w.ready()] == ["C", "Z"]
        assert ask(r, "select a from acc") == made.rows("select a from acc")


NAMES = """\
drop schema if exists hid, seen cascade; create schema hid; create schema seen; set search_path = seen;
create table acc (a int primary key, b int); insert into acc values (0, 0); create table acu (a int); insert into acu values (1); create table log (n int);
create function note() returns trigger language plpgsql as $$begin insert into seen.log values (1); return null; end$$;
create table off (a int); create trigger x after insert on off for each row execute function note(); alter table off disable trigger x;
create view av as select a, b from acc; create table hid.acc (a int, b int);
create function num(int) returns int immutable language sql as 'select 1'; create function hid.num(int) returns int immutable language sql as 'select 2';
"""
TRIGGER = "create trigger x after insert on acc for each row execute function note()"
CHANGES = {
    "a trigger": ["begin", TRIGGER, "insert into acc values (51, 1)", "commit"],
    "a trigger, at once": [TRIGGER + "; insert into acc values (51, 1)"],
    "a trigger that was off": ["begin", "alter table off enable trigger x", "insert into off values (2)", "commit"],
    "another view": ["begin", "create or replace view av as select a, null::int as b from acu", "update av set a = 9", "commit"],
    "a table that hid another": ["set search_path = hid, seen", "update acc set b = b", "begin", "drop table hid.acc",
                                 "update acc set b = b + 77", "commit", "reset search_path"],
    "a schema that hid another": ["set search_path = hid, seen", "update acc set b = b", "begin", "drop schema hid cascade",
                                  "update acc set b = b + 77", "commit", "reset search_path"],
}
SEEN = ["select * from seen.acc", "select * from seen.acu", "select * from seen.log", "select * from seen.off"]


@pytest.mark.parametrize("what", CHANGES)
def test_ddl_in_front_of_a_write(made, pool, what):
    """What is written then is not what the catalogue said before of the same statement."""
    if pool.mode == "statement":
        pytest.skip("there are no transactions")
    made.rows(NAMES)
    w, r = login(pool), login(pool)
    for sql in ("set search_path = seen", "insert into acc values (50, 1)", "insert into off values (1)", "update av set b = 4"):
        ask(w, sql)
    for sql in CHANGES[what]:
        for read in SEEN:
            ask(r, read)
        ask(w, sql)
    assert [ask(x, read) for read in SEEN for x in (w, r)] == [made.rows(read) for read in SEEN for _ in (w, r)]


def test_a_function_that_hid_another(made, pool):
    made.rows(NAMES)
    w = login(pool, search_path="hid, seen")
    read = "select num(a) from seen.acc"
    assert [ask(w, read) for _ in range(3)] == [[[b"2"]]] * 3
    ask(login(pool), "drop schema hid cascade")
    assert ask(w, read) == [[b"1"]]


def test_a_trigger_that_is_made_while_a_write_waits(made, pool):
    """It was known to write one table alone when it was sent, and waited for the lock of who made the trigger."""
    if pool.mode == "statement":
        pytest.skip("there are no transactions")
    made.rows(NAMES)
    w, maker, r = login(pool), login(pool), login(pool)
    for x in (w, maker):
        ask(x, "set search_path = seen")
    ask(w, "insert into acc values (50, 1)")
    ask(maker, "begin")
    ask(maker, TRIGGER)
    w.send(query("insert into acc values (51, 1)"))
    wait_for("it waits for the lock", lambda: made.rows("select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into acc values (51%'"))
    assert ask(r, SEEN[2]) == ask(r, SEEN[2]) == []
    ask(maker, "commit")
    w.ready()
    assert ask(r, SEEN[2]) == [[b"1"]]
