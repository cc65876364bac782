# SPDX-License-Identifier: PostgreSQL
"""test_cache_first: results are kept, in both protocols, and go when their tables are written through pgpool."""
import pytest
from cache_house import ASKED, ask, is_kept, login, run, start_cached, when_on

from pgt.relay import Relay
from pgt.waits import wait_for
from pgt.wire import SYNC, WireClosed, parse, query

CHANGE = "update ct set b = b + 1"


@pytest.fixture(params=["transaction", "session"])
def pool(pg, start_pool, request):
    pg.rows("drop table if exists ct, cu cascade; create table ct (a int primary key, b int); create table cu (a int);"
            "insert into ct values (1, 10), (2, 20); insert into cu values (1)")
    return start_cached(pg, start_pool, num_init_children=1, pool_mode=request.param)


@pytest.mark.parametrize("values", [None, ()])
def test_a_result_is_kept(pg, pool, values):
    w = login(pool)
    assert is_kept(pg, w, "select * from ct order by a", CHANGE, values)
    assert ask(login(pool), "select * from ct order by a", values) == [[b"1", b"10"], [b"2", b"20"]]


@pytest.mark.parametrize("write", [CHANGE, "insert into ct values (3, 30)", "delete from ct where a = 1", "truncate ct",
                                   "with d as (delete from ct where a = 2 returning *) select * from d",
                                   "explain analyze update ct set b = 5 where a = 1", "begin; update ct set b = 7; commit",
                                   "alter table ct rename column b to c", "do $$begin update ct set b = 9; end$$"])
def test_own_writes_are_seen_at_once(pg, pool, write):
    w, other = login(pool), login(pool)
    for _ in range(2):
        ask(w, "select * from ct order by a")
        ask(other, "select * from ct order by a", ())
    run(w, write)
    now = pg.rows("select * from ct order by a")
    assert ask(w, "select * from ct order by a") == now
    assert ask(other, "select * from ct order by a", ()) == now


def test_another_table_does_not_matter(pg, pool):
    w = login(pool)
    ask(w, "select * from ct")
    run(w, "insert into cu values (2)")
    assert is_kept(pg, w, "select * from ct", CHANGE)
    run(w, "insert into cu values (2)")
    pg.rows(CHANGE)
    assert ask(w, "select b from ct where a = 1 -- new") == [[b"12"]]
    assert ask(w, "select * from ct") != pg.rows("select * from ct")


def test_rolled_back_writes_end_nothing(pg, pool):
    w = login(pool)
    assert is_kept(pg, w, "select * from ct", CHANGE)
    run(w, "begin", "update ct set b = 0")
    assert ask(w, "select b from ct where a = 1") == [[b"0"]]  # its own, before the end
    run(w, "rollback")
    assert ask(w, "select * from ct") != pg.rows("select * from ct")
    run(w, "begin", "update ct set b = 0", "commit")
    assert ask(w, "select * from ct") == pg.rows("select * from ct")


def test_a_transaction_that_fails_to_commit(pg, pool):
    """Its COMMIT is a ROLLBACK."""
    w = login(pool)
    assert is_kept(pg, w, "select * from ct", CHANGE)
    run(w, "begin", "update ct set b = 0")
    w.simple("select 1 / 0")
    run(w, "commit")
    assert ask(w, "select * from ct") != pg.rows("select * from ct")


def test_named_statements_and_values(pg, pool):
    w = login(pool)
    w.send(parse("select b from ct where a = $1", "s"), SYNC)
    w.ready()
    for value, b in (("1", b"10"), ("2", b"20"), ("1", b"10"), ("2", b"20")):
        assert ask(w, "", [value], name="s") == [[b]]
    pg.rows(CHANGE)
    assert ask(w, "", ["1"], name="s") == [[b"10"]]
    run(w, "update ct set b = 5 where a = 1")
    assert ask(w, "", ["1"], name="s") == [[b"5"]]
    assert ask(w, "", ["2"], name="s") == [[b"21"]]


@pytest.fixture
def both(pg, start_pool):
    pg.rows("drop table if exists ct cascade; create table ct (a int primary key, b int); insert into ct values (1, 10)")
    return start_cached(pg, start_pool, num_init_children=2, pool_mode="session", worker_fill=1)


def test_sessions_with_links_of_their_own_write_too(pg, both):
    """In another worker, and in session mode."""
    shared, own = login(both, options="-c pool_mode=transaction"), login(both)
    assert is_kept(pg, shared, "select * from ct", CHANGE)
    run(own, "update ct set b = 77")
    assert ask(shared, "select * from ct") == [[b"1", b"77"]]
    assert ask(own, "select * from ct") == [[b"1", b"77"]]


def test_nobody_looks_at_what_replication_writes(pg, both):
    shared = login(both, options="-c pool_mode=transaction")
    assert is_kept(pg, shared, "select * from ct", CHANGE)
    walsender = login(both, replication="database")
    assert not is_kept(pg, shared, "select * from ct", CHANGE)
    run(walsender, "update ct set b = 99")
    assert ask(shared, "select b from ct") == [[b"99"]]
    walsender.bye()


def test_a_writer_that_vanishes(pg, pool):
    """Its statement may still be committed."""
    w, gone = login(pool), login(pool)
    assert is_kept(pg, w, "select * from ct", CHANGE)
    gone.send(query("update ct set b = 1000 from (select pg_sleep(0.3)) x"))
    gone.bye()
    wanted = [[b"1", b"1000"], [b"2", b"1000"]]

    def is_seen() -> bool:
        is_there = pg.rows("select * from ct order by a") == wanted
        found = ask(w, "select * from ct order by a")
        assert found == wanted or not is_there
        return found == wanted
    wait_for("it is committed, and seen", is_seen)
    assert all(is_seen() for _ in range(100))


def test_isolation_above_read_committed(pg, pool):
    """Reads of such a transaction are all of one moment, and none of them is kept or comes from elsewhere."""
    w, other = login(pool), login(pool)
    sql = "select b from ct where a = 1"
    for level in ("repeatable read", "serializable"):
        run(w, f"begin isolation level {level}")
        first = ask(w, sql)
        run(other, "update ct set b = b + 1")
        assert ask(other, sql) != first and ask(other, sql) == pg.rows(sql)
        assert ask(w, sql) == first and ask(w, sql, ()) == first
        run(w, "commit")
        assert ask(w, sql) == pg.rows(sql)
    run(w, "set default_transaction_isolation = 'repeatable read'")
    assert not is_kept(pg, w, "select * from ct", CHANGE)


def test_savepoints_and_serialization_failures(pg, pool):
    w, other = login(pool), login(pool)
    sql = "select a, b from ct order by a"

    def both_agree():
        for c in (w, other, other):
            assert ask(c, sql) == pg.rows(sql)

    both_agree()
    run(w, "begin", "savepoint s", "update ct set b = 1 where a = 1", "rollback to s", "update ct set b = 2 where a = 2")
    assert ask(other, sql) == pg.rows(sql)
    run(w, "commit")
    both_agree()
    run(w, "begin isolation level serializable", "select sum(b) from ct", "update ct set b = 11 where a = 1")
    run(other, "begin isolation level serializable", "select sum(b) from ct", "update ct set b = 22 where a = 2", "commit")
    w.simple("commit")
    both_agree()
    run(w, "begin", "update ct set b = 3", "commit and chain", "update ct set b = 4", "rollback")
    both_agree()
    w.simple("begin; update ct set b = 5; rollback; update ct set b = 6")
    both_agree()


def test_two_phase_commit(pg, start_pool):
    pg.rows("drop table if exists ct cascade; create table ct (a int primary key, b int); insert into ct values (1, 10)")
    if pg.value("show max_prepared_transactions") == "0":
        pytest.skip("max_prepared_transactions is 0")
    pool = start_cached(pg, start_pool, num_init_children=1, pool_mode="transaction")
    w, other = login(pool), login(pool)
    assert is_kept(pg, other, "select * from ct", CHANGE)
    run(w, "begin", "update ct set b = 0", "prepare transaction 'x'")
    ask(other, "select * from ct")
    run(w, "commit prepared 'x'")
    assert ask(other, "select * from ct") == [[b"1", b"0"]]


def test_a_link_that_dies_with_a_commit(pg, pool):
    """Whether it happened nobody knows: nothing older is told afterwards."""
    w, other = login(pool), login(pool)
    sql = "select b from ct where a = 1"
    for n in range(5):
        ask(other, sql)
        w.send(query(f"update ct set b = {1000 + n} from (select pg_sleep(0.02)) x"))
        pg.rows("select pg_terminate_backend(pid) from pg_stat_activity where query like 'update ct%' and pid <> pg_backend_pid()")
        try:
            w.ready()
        except (AssertionError, WireClosed):  # in session mode the session ends with it
            pass
        for _ in range(20):
            now = pg.rows(sql)
            assert ask(other, sql) == now
        w.bye()
        w = login(pool)


def test_the_first_primary_is_no_other_one(pg, start_pool):
    """Who is found to be what he was taken for before the servers were asked ends nothing."""
    slow = Relay("127.0.0.3", pg.address)
    try:
        slow.open.clear()
        pool = start_pool(slow.address, memory_cache_enabled="on", memqcache_invalidation="statement", memqcache_wal_databases="postgres",
                          **ASKED)
        wait_for("the invalidator is there", lambda: "only what is written through pgpool is seen" in pool.log())
        assert "find_primary_node: primary node is" not in pool.log()
        slow.open.set()
        when_on(pool)
        for database in ("other_db", "template1"):  # it looks who is the primary before it looks at new databases
            when_on(pool, database)
        wait_for("the log has it", lambda: "find_primary_node: primary node is 0" in pool.log())
        assert "query cache: node" not in pool.log()
    finally:
        slow.close()
