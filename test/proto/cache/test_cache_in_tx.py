# SPDX-License-Identifier: PostgreSQL
"""test_cache_in_tx: results are looked up in transactions whose BEGIN is at the server, as long as each statement sees what is committed when it
begins, and nothing was done but to read."""
import pytest
from cache_house import ask, login, run, start_cached

from pgt.wire import SYNC, bind, describe, execute, parse, query

READ = "select b from ct where a = 1"
CHANGE = "update ct set b = b + 1"  # around pgpool: what is kept does not show it
PROTOCOLS = (None, ())  # simple and extended, as cache_house.ask has them
AT_SERVER = "select 5"  # needs a server, and is not kept


@pytest.fixture(params=["transaction", "session"])
def pool(pg, start_pool, request):
    pg.rows("drop table if exists ct, cu cascade; create table ct (a int primary key, b int); create table cu (a int, b int);"
            "insert into ct values (1, 10), (2, 20); insert into cu values (1, 1)")
    return start_cached(pg, start_pool, num_init_children=1, pool_mode=request.param)


def hits(w):
    return int(w.rows("show pool_cache")[0][0])


def keep(w, sql=READ, values=None):
    """The one it has."""
    ask(w, sql, values)
    before = hits(w)
    found = ask(w, sql, values)
    assert hits(w) == before + 1
    return found


@pytest.mark.parametrize("begin", ["begin", "start transaction read write", "begin isolation level read committed", "begin read only"])
def test_a_kept_result_is_told(pg, pool, begin):
    w = login(pool)
    kept = [(values, keep(w, values=values)) for values in PROTOCOLS]
    pg.rows(CHANGE)
    for values, was in kept:
        run(w, begin, AT_SERVER)
        for _ in range(3):
            assert ask(w, READ, values) == was
            assert ask(w, AT_SERVER) == [[b"5"]]
        run(w, "savepoint s", "release s")
        assert ask(w, READ, values) == was
        assert w.simple("commit")[-1].body == b"I"
        assert ask(w, READ, values) == was


SNAPSHOTS = (["begin isolation level repeatable read"], ["begin isolation level serializable"], ["begin", "set transaction isolation level repeatable read"],
             ["begin", "set local transaction_isolation = 'repeatable read'"], ["set default_transaction_isolation = 'repeatable read'", "begin"],
             ["set session characteristics as transaction isolation level repeatable read", "begin"],
             ["begin; set transaction isolation level repeatable read"])


def test_one_snapshot_for_all(pool):
    """What is read in it is of the time of its first statement, whatever others write and keep meanwhile."""
    other, n = login(pool), 100
    for begin in SNAPSHOTS:
        for values in PROTOCOLS:
            w, was = login(pool), keep(other, values=values)
            run(w, *begin)
            run(w, "select 1 from cu")
            n += 1
            run(other, f"update ct set b = {n} where a = 1")
            assert keep(other, values=values) == [[b"%d" % n]]
            for _ in range(2):
                assert ask(w, READ, values) == was
            run(w, "commit")
            w.bye()


@pytest.mark.parametrize("values", [None, ()])
def test_a_writer_beside_it(pool, values):
    """What another commits is seen by the next statement of the transaction."""
    w, other = login(pool), login(pool)
    keep(w, values=values)
    run(w, "begin", AT_SERVER)
    for n in range(5):
        run(other, "begin", f"update ct set b = {n} where a = 1")
        before = ask(w, READ, values)
        assert before == [[b"10" if n == 0 else b"%d" % (n - 1)]]
        run(other, "commit")
        assert ask(w, READ, values) == [[b"%d" % n]]
        assert ask(w, READ, values) == [[b"%d" % n]]
    run(w, "commit")


@pytest.mark.parametrize("more", ["update ct set b = 5 where a = 1", "insert into cu values (9, 9)", "select * from ct for update",
                                  "lock table ct in share mode", "select pg_advisory_xact_lock(1)", "set local work_mem = '1MB'",
                                  "do $$begin end$$", "declare c cursor for select 1"])
def test_who_has_done_more_looks_nothing_up(pg, pool, more):
    w = login(pool)
    for values in PROTOCOLS:
        keep(w, values=values)
        pg.rows(CHANGE)
        now = pg.rows(READ)
        run(w, "begin", more)
        for _ in range(2):
            assert ask(w, READ, values) == ([[b"5"]] if "set b = 5" in more else now)
        run(w, "rollback")


def test_a_failed_transaction_answers_nothing(pool):
    w = login(pool)
    keep(w)
    run(w, "begin", AT_SERVER)
    w.simple("select 1 / 0")
    found = w.simple(READ)
    assert [m.fields["C"] for m in found if m.type == "E"] == ["25P02"] and found[-1].body == b"E"
    run(w, "rollback")


@pytest.mark.parametrize("values", [None, ()])
def test_what_is_read_in_it_is_kept(pg, pool, values):
    w, other = login(pool), login(pool)
    ask(w, "select a from ct where a = 2", values)  # names are known from here on
    run(w, "begin", AT_SERVER)
    ask(w, READ, values)
    pg.rows(CHANGE)
    assert ask(other, READ, values) == [[b"10"]]
    run(w, "commit")


@pytest.mark.parametrize("values", [None, ()])
@pytest.mark.parametrize("end", ["commit", "rollback", "rollback to s"])
def test_nothing_is_kept_behind_its_own_write(pg, pool, end, values):
    w, other = login(pool), login(pool)
    keep(w, "select a from ct where a = 2", values=values)
    run(w, "begin", AT_SERVER, "savepoint s", "update ct set b = 5 where a = 1")
    for _ in range(2):
        assert ask(w, READ, values) == [[b"5"]]
    assert ask(other, READ, values) == [[b"10"]]
    run(w, end)
    for who in (w, other, w):
        assert ask(who, READ, values) == ([[b"5"]] if end == "commit" else [[b"10"]])
    run(w, "commit")
    assert ask(other, READ, values) == pg.rows(READ)


def test_sequences_in_one_go(pg, pool):
    """Of several that are sent together each is answered in its turn."""
    w = login(pool)
    kept, second = keep(w, values=()), "select b from ct where a = 2"
    keep(w, second, values=())
    pg.rows(CHANGE)
    run(w, "begin", AT_SERVER)

    def lone(sql):
        return parse(sql) + bind([]) + describe("", "P") + execute() + SYNC
    w.send(lone(READ) + lone(AT_SERVER) + lone(second) + query(READ) + lone(READ))
    rows = [[m.row() for m in w.ready() if m.type == "D"] for _ in range(5)]
    assert rows[0] == kept and rows[1] == [[b"5"]]
    assert rows[2] in ([[b"20"]], [[b"21"]]) and all(r in (kept, [[b"11"]]) for r in rows[3:])  # what follows at once may go to the server
    run(w, "commit")


def test_begin_by_the_protocol(pg, pool):
    """As JDBC sends it: BEGIN and the first statement up to one Sync."""
    w = login(pool)
    kept = keep(w, values=())
    pg.rows(CHANGE)
    w.send(parse("BEGIN") + bind([]) + execute() + parse(AT_SERVER) + bind([]) + describe("", "P") + execute() + SYNC)
    assert [m.type for m in w.ready() if m.type == "E"] == []
    assert ask(w, READ, ()) == kept
    w.send(parse("COMMIT") + bind([]) + execute() + SYNC)
    assert w.ready()[-1].body == b"I"
    w.send(parse("BEGIN") + bind([]) + execute() + parse("select b from ct where a = 1 for update") + bind([]) + describe("", "P") + execute() + SYNC)
    w.ready()
    assert ask(w, READ, ()) == [[b"11"]]
    run(w, "rollback")
