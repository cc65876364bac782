# SPDX-License-Identifier: PostgreSQL
"""test_pool_unseen: what functions, triggers and procedures set without anybody seeing it (reset_between_clients)."""
import pytest
from pooling_house import OWN, login

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
