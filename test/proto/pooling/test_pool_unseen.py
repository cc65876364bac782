# SPDX-License-Identifier: PostgreSQL
"""test_pool_unseen: what functions, triggers and procedures set without anybody seeing it (reset_between_clients)."""
import contextlib

import pytest
from pooling_house import OWN, login, table

from pgt.wire import SYNC, bind, execute, parse

UNSEEN = {
    "function": "select rb_sets('{}')",
    "trigger": "insert into rb_table values ('{}')",
    "procedure": "call rb_proc('{}')",
    "table": "select rb_makes(), '{}'",
    "role": "select rb_role(), '{}'",
    "discovered_late": "select v from rb_view where v = '{}' or true",
}


def test_locks_of_functions_end(pg, start_pool):
    """A function takes a lock of the session and listens: with reset_between_clients not beyond the next client."""
    pg.rows("create or replace function rb_locks() returns void language plpgsql as $$ begin "
            "perform pg_advisory_lock(6100); execute 'listen rb_heard'; end $$")
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1,
                      reset_between_clients=True)
    with login(pool) as a, login(pool) as b:
        a.rows("select rb_locks()")
        assert b.rows("select pg_listening_channels()") == []
        assert pg.value("select pg_try_advisory_lock(6100)") == "t"


@pytest.mark.parametrize("call", UNSEEN.values(), ids=UNSEEN.keys())
def test_what_code_sets_reaches_nobody_else(pg, start_pool, call):
    """reset_between_clients: what functions and triggers set or create unseen is gone when another client has the link; what
    clients set themselves is there, roles and start-up parameters included, and so are their prepared statements."""
    pg.rows("drop table if exists rb_table cascade; create table rb_table(v text)")
    pg.rows("create or replace function rb_sets(v text) returns text language plpgsql as $$ begin "
            "perform set_config('my.own', v, false), set_config('work_mem', '77MB', false); return v; end $$")
    pg.rows("create or replace function rb_role() returns text language sql as $$ select set_config('role', 'other_user', false) $$")
    pg.rows("create or replace procedure rb_proc(v text) language plpgsql as $$ begin set work_mem = '77MB'; "
            "perform set_config('my.own', v, false); end $$")
    pg.rows("create or replace function rb_fires() returns trigger language plpgsql as $$ begin perform rb_sets(new.v); return new; end $$")
    pg.rows("create trigger rb_trigger before insert on rb_table for each row execute function rb_fires()")
    pg.rows("drop table if exists rb_plain; create table rb_plain(v text)")
    pg.rows("create or replace function rb_makes() returns int language plpgsql as $$ begin "
            "create temp table if not exists rb_plain(v text); return 1; end $$")
    pg.rows("create or replace view rb_view as select rb_sets('seen') as v")
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1,
                      reset_between_clients=True)
    a, b, c = login(pool), login(pool, options="-c work_mem=6MB"), login(pool)
    c.rows("set role trust_user; set work_mem = '9MB'")
    look_at = f"select current_user, current_setting('work_mem'), {OWN}"
    b.send(parse(look_at, "s"), SYNC)
    b.ready()
    for turn in range(4):
        assert a.rows(look_at) == [[b"postgres", b"4MB", b""]]
        found = a.simple(call.format(f"secret {turn}"))
        assert not [m for m in found if m.type == "E"]
        b.send(bind(name="s"), execute(), SYNC)
        assert [m.row() for m in b.ready() if m.type == "D"] == [[b"postgres", b"6MB", b""]]
        b.rows("insert into rb_plain values ('of b')")
        assert c.rows(look_at) == [[b"trust_user", b"9MB", b""]]
        b.rows("begin")
        assert b.rows(look_at) == [[b"postgres", b"6MB", b""]]
        b.rows("rollback")
    assert pg.value("select count(*) from public.rb_plain") == "4"
    for w in (a, b, c):
        w.bye()


LEAVES = """create or replace function lv_all() returns text language plpgsql as $$
declare kept refcursor := 'lv_cursor'; begin
    create temp table if not exists lv_temp(a int);
    perform pg_advisory_lock(6200), nextval('lv_numbers'), set_config('my.own', 'left', false), set_config('work_mem', '77MB', false);
    execute 'declare lv_cursor cursor with hold for select 1';
    execute 'listen lv_heard';
    return 'done'; end $$"""
LEFT = f"""select session_user, current_user, {OWN}, current_setting('work_mem'), to_regclass('pg_temp.lv_temp'),
    (select count(*) from pg_cursors), (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
    (select count(*) from pg_listening_channels())"""
FRESH = [[b"postgres", b"postgres", b"", b"4MB", None, b"0", b"0", b"0"]]


@pytest.fixture
def leaves(pg):
    pg.rows("drop sequence if exists lv_numbers; create sequence lv_numbers; grant all on sequence lv_numbers to public")
    pg.rows(LEAVES)


def sees_nothing(w) -> None:
    assert w.rows(LEFT) == FRESH
    assert [m.sqlstate for m in w.simple("select lastval()") if m.type == "E"] == ["55000"]


def test_what_code_leaves_reaches_nobody_else(pg, leaves, start_pool):
    """reset_between_clients: cursors WITH HOLD, currval() and another session_user, too."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1,
                      reset_between_clients=True)
    with login(pool) as a, login(pool) as b, login(pool) as c:
        c.rows("set role other_user")
        for _ in range(3):
            assert a.rows("select lv_all()") == [[b"done"]]
            sees_nothing(b)
            assert a.rows("select lv_all()") == [[b"done"]]
            assert c.rows("select session_user, current_user") == [[b"postgres", b"other_user"]]


def test_another_session_user_ends(pg, start_pool):
    """reset_between_clients, and session mode: a function that became another user did so for its own client."""
    pg.rows("create or replace function lv_becomes() returns text language sql as "
            "$$ select set_config('session_authorization', 'other_user', false) $$")
    who = "select session_user, current_user"
    for params, mine in (({}, True), ({"options": "-c pool_mode=session"}, False)):
        pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1,
                          reset_between_clients=mine)
        with login(pool) as a:
            for _ in range(2):
                a.rows("select lv_becomes()")
                with login(pool, **params) as b:
                    assert b.rows(who) == [[b"postgres", b"postgres"]]


def test_a_session_on_a_connection_that_refuses_its_settings(pg, leaves, start_pool):
    """temp_buffers is fixed once a temporary table was used: the session gets another connection, and goes on."""
    pg.rows("create or replace function lv_uses() returns int language plpgsql as $$ begin "
            "create temp table if not exists lv_used(a int); insert into lv_used values (1); return 1; end $$")
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1)
    with login(pool) as a, login(pool) as b:
        b.rows("set temp_buffers = 200")
        assert a.rows("select lv_uses()") == [[b"1"]]
        b.rows("set pool_mode = 'session'")
        for _ in range(2):
            assert b.value("show temp_buffers") == "1600kB"
            sees_nothing(b)


@pytest.mark.parametrize("how", ["startup", "set"])
def test_session_mode_finds_a_fresh_session(pg, leaves, start_pool, how):
    """A connection that clients of transaction mode have shared is cleaned before it is somebody's for a whole session."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1)
    params = {} if how == "set" else {"options": "-c pool_mode=session"}
    with login(pool) as a:
        for _ in range(2):
            assert a.rows("select lv_all()") == [[b"done"]]
            server = a.value("select pg_backend_pid()")
            with login(pool, **params) as b:
                if how == "set":
                    assert not [m for m in b.simple("set pool_mode = 'session'") if m.type == "E"]
                sees_nothing(b)
                assert b.value("select pg_backend_pid()") == server, "it is the connection that the other one used"


def test_a_fresh_session_on_a_connection_of_another_worker(pg, leaves, start_pool):
    """That a connection has to be cleaned goes with it from worker to worker."""
    pool = start_pool(pg.address, num_init_children=2, worker_fill=0, pool_mode="transaction", max_backend_connections=1)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(login(pool, application_name=f"c{i}")) for i in range(12)]
        worker = {r["application_name"]: r["pid"] for r in table(clients[0], "show pool_clients")}
        others = [c for i, c in enumerate(clients) if worker[f"c{i}"] != worker["c0"]]
        assert others, worker
        for b in others[:2]:
            assert clients[0].rows("select lv_all()") == [[b"done"]]
            server = clients[0].value("select pg_backend_pid()")
            assert not [m for m in b.simple("set pool_mode = 'session'") if m.type == "E"]
            sees_nothing(b)
            assert b.value("select pg_backend_pid()") == server, "it is the connection that the other one used"
            b.bye()
