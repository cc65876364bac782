# SPDX-License-Identifier: PostgreSQL
"""test_cache_pools: a database of pools.conf on a server of its own has the name of one of ours, and another catalogue."""
import pytest
from cache_house import ask, is_kept, login, run, start_cached

from pgt import postgres, procs
from pgt.waits import wait_for
from pgt.wire import Wire


def test_another_servers_catalogue(pg, start_pool):
    far = postgres.start_postgres()
    try:
        pg.rows("drop table if exists pv, pb cascade; create table pb (a int); create table pv (a int); insert into pv values (1)")
        far.rows("create table pb (a int); insert into pb values (5); create view pv as select a from pb")
        path = procs.folder("pools") / "pools.conf"
        path.write_text(f"[database far]\nhost = '{far.address.host}'\nport = {far.address.port}\ndbname = postgres\n", encoding="utf-8")
        pool = start_cached(pg, start_pool, num_init_children=1, pool_mode="transaction", pools_file=path)
        ours, theirs = login(pool), login(pool, database="far")
        for _ in range(3):
            assert ask(ours, "select a from pv") == [[b"1"]]
            assert ask(theirs, "select a from pv") == [[b"5"]]
        theirs.rows("update pb set a = 6 returning a")
        assert ask(theirs, "select a from pv") == [[b"6"]]
        assert ask(ours, "select a from pv") == [[b"1"]]
        # Each is kept, and by itself: what is written around us on either server is not seen.
        assert is_kept(far, theirs, "select a from pb", "update pb set a = 7")
        assert is_kept(pg, ours, "select a from pv", "update pv set a = 2")
        assert ask(theirs, "select a from pb") == [[b"6"]]
        theirs.rows("update pb set a = 8 returning a")
        assert ask(theirs, "select a from pb") == [[b"8"]] and ask(theirs, "select a from pv") == [[b"8"]]
    finally:
        far.stop()


def test_nothing_is_kept_where_the_wal_has_to_be_followed(pg, start_pool):
    far = postgres.start_postgres()
    try:
        far.rows("create table pb (a int); insert into pb values (5)")
        path = procs.folder("pools") / "pools.conf"
        path.write_text(f"[database far]\nhost = '{far.address.host}'\nport = {far.address.port}\ndbname = postgres\n", encoding="utf-8")
        pool = start_pool(pg.address, memory_cache_enabled="on", memqcache_invalidation="wal", num_init_children=1, pool_mode="transaction",
                          pools_file=path)
        with login(pool, database="far") as theirs:
            assert not is_kept(far, theirs, "select a from pb", "update pb set a = a + 1")
    finally:
        far.stop()


@pytest.fixture
def twins(pg):
    """Two databases with the same tables, with the same numbers, and other rows."""
    for name in ("one", "two"):
        pg.rows(f"drop database if exists cache_{name} with (force)")
    pg.rows("create database cache_one")
    with Wire(pg.address) as w:
        w.login(database="cache_one")
        run(w, "create table n (a int)", "insert into n values (1)")
    pg.rows("create database cache_two template cache_one")
    with Wire(pg.address) as w:
        w.login(database="cache_two")
        run(w, "update n set a = 2")
    yield
    for name in ("one", "two"):
        pg.rows(f"drop database if exists cache_{name} with (force)")


def write_file(path, **dbnames):
    path.write_text("".join(f"[database {name}]\ndbname = {dbname}\n" for name, dbname in dbnames.items()), encoding="utf-8")


def test_two_names_of_one_database(pg, twins, start_pool):
    path = procs.folder("pools") / "pools.conf"
    write_file(path, shop="cache_one", reports="cache_one")
    pool = start_cached(pg, start_pool, pool_mode="transaction", pools_file=path)
    readers = [login(pool, database=name) for name in ("shop", "reports", "cache_one")]
    writers = [login(pool, database=name) for name in ("cache_one", "reports", "shop")]
    for n, writer in enumerate(writers):
        for reader in readers:
            wait_for("it is kept", lambda reader=reader: has_hit(reader))
        run(writer, f"update n set a = {10 + n}")
        assert [ask(reader, "select a from n") for reader in readers] == [[[b"%d" % (10 + n)]]] * 3


def has_hit(w):
    before = w.rows("show pool_cache")[0][0]
    ask(w, "select a from n")
    return w.rows("show pool_cache")[0][0] != before


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_database_that_has_moved(pg, twins, start_pool, mode):
    """Another `dbname` holds for the next transaction, in session mode for the next session: of what the old one has nothing is told there,
    and what a session that has stayed reads and writes is the old one's."""
    path = procs.folder("pools") / "pools.conf"
    write_file(path, shop="cache_one")
    pool = start_cached(pg, start_pool, num_init_children=1, pool_mode=mode, pools_file=path)
    old, direct = login(pool, database="shop"), login(pool, database="cache_one")
    wait_for("it is kept", lambda: has_hit(old))
    write_file(path, shop="cache_two")
    pool.reload(log_client_limit=77)
    wait_for("the worker knows", lambda: direct.value("pgpool show log_client_limit") == "77")
    with login(pool, database="shop") as new:
        assert ask(new, "select a from n") == [[b"2"]]
        wait_for("it is kept", lambda: has_hit(new))
        assert ask(old, "select a from n") == [[b"1"] if mode == "session" else [b"2"]]
        assert ask(new, "select a from n") == [[b"2"]]
        wait_for("it is kept", lambda: has_hit(direct))
        run(old, "update n set a = 3")
        assert ask(direct, "select a from n") == [[b"3"] if mode == "session" else [b"1"]]
        assert ask(new, "select a from n") == [[b"2"] if mode == "session" else [b"3"]]
