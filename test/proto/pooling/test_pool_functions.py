# SPDX-License-Identifier: PostgreSQL
"""test_pool_functions: what functions leave behind in a server session is nobody else's: those that are built in, those that a text calls
without writing a call, and what a DO leaves open.
"""
import pytest
from pooling_house import login, states

from pgt import waits
from pgt.wire import SYNC, bind, execute, parse


@pytest.fixture(params=["transaction", "session"])
def pool(pg, start_pool, request):
    return start_pool(pg.address, num_init_children=1, pool_mode=request.param, max_backend_connections=2)


@pytest.fixture
def transaction_pool(pg, start_pool):
    return start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=2)


def each_of_two(pool, left: str, seen: str):
    """`left` by a client that stays, and by one that goes: what others see after that."""
    answers = []
    for stays in (True, False):
        a = login(pool)
        a.rows(left)
        if not stays:
            a.bye()
        with login(pool) as b:
            answers.append(b.simple(seen))
        if stays:
            a.bye()
    return answers


def test_the_origin_of_a_session(pg, transaction_pool):
    pg.rows("select pg_replication_origin_create('functions')")
    try:
        with login(transaction_pool) as a:
            a.rows("select pg_replication_origin_session_setup('functions')")
            assert a.value("select pg_replication_origin_session_is_setup()") == "t"
            with login(transaction_pool) as b:
                assert b.value("select pg_replication_origin_session_is_setup()") == "f"
        with login(transaction_pool) as b:
            assert b.value("select pg_replication_origin_session_is_setup()") == "f"
    finally:
        waits.wait_for("the server has ended the process that had it", lambda: drop_origin(pg, "functions"))


def drop_origin(pg, name: str) -> bool:
    """False while a process has it."""
    pg.rows(f"do $$ begin perform pg_replication_origin_drop('{name}'); exception when object_in_use then null; end $$")
    return pg.value(f"select count(*) from pg_replication_origin where roname = '{name}'") == "0"


@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
def test_what_discard_all_does_not_undo(pg, start_pool, extended):
    """Session mode with one server: what is relayed is not parsed. The next session is another one."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="session", max_backend_connections=1)
    name = "relayed_" + ("extended" if extended else "simple")
    pg.rows(f"select pg_replication_origin_create('{name}')")
    try:
        for sql, seen in ((f"select PG_replication_origin_session_setup('{name}')",
                           "select pg_replication_origin_session_is_setup()"),
                          (f"select pg_create_physical_replication_slot('{name}', false, true)",
                           "select exists(select from pg_replication_slots where active_pid = pg_backend_pid())")):
            with login(pool) as a:
                if extended:
                    a.send(parse(sql, "s"), bind(name="s"), execute(), SYNC)
                    assert states(a.ready()) == []
                else:
                    a.rows(sql)
                assert a.value(seen) == "t"
            with login(pool) as b:
                assert b.value(seen) == "f"
    finally:
        waits.wait_for("the server has ended the process that had it", lambda: drop_origin(pg, name))


@pytest.mark.parametrize("how", ["update own_settings set setting = '9MB' where name = 'work_mem'",
                                 "prepare p as update own_settings set setting = $1 where name = 'work_mem'; execute p('9MB')"])
def test_a_setting_by_a_view_of_settings(pg, transaction_pool, how):
    pg.rows("create or replace view own_settings as select name, setting from pg_settings")
    for answer in each_of_two(transaction_pool, how, "show work_mem"):
        assert [m.row() for m in answer if m.type == "D"] != [[b"9MB"]]
    pg.rows("drop view own_settings")


def test_a_cursor_that_a_block_holds(pool):
    block = "do $$ begin execute 'declare kept cursor with hold for select 42'; end $$"
    for answer in each_of_two(pool, block, "fetch kept"):
        assert states(answer) == ["34000"]


@pytest.mark.parametrize("how", ["({n}::bigint).pg_advisory_lock", "treat({n} as pg_advisory_lock)", "pg_advisory_lock({n})"])
def test_a_lock_that_is_not_written_as_a_call(pg, transaction_pool, how):
    with login(transaction_pool) as a:
        a.rows("select " + how.format(n=7401))
        with login(transaction_pool) as b:
            assert b.value("select pg_try_advisory_lock(7401)") == "f"
    with login(transaction_pool) as b:
        waits.wait_for("the lock of who has gone is let go", lambda: b.value("select pg_try_advisory_lock(7401)") == "t")
