# SPDX-License-Identifier: PostgreSQL
"""test_cache_first: results are kept, in both protocols, and go when their tables are written through pgpool."""
import pytest
from cache_house import ask, is_kept, login, run, start_cached

from pgt.wire import SYNC, parse, query

CHANGE = "update ct set b = b + 1"


@pytest.fixture
def pool(pg, start_pool):
    pg.rows("drop table if exists ct, cu cascade; create table ct (a int primary key, b int); create table cu (a int);"
            "insert into ct values (1, 10), (2, 20); insert into cu values (1)")
    return start_cached(pg, start_pool, num_init_children=1, pool_mode="transaction")


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
    for _ in range(300):
        is_there = pg.rows("select * from ct order by a") == wanted
        found = ask(w, "select * from ct order by a")
        assert found == wanted or not is_there
    assert found == wanted
