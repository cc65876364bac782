# SPDX-License-Identifier: PostgreSQL
"""test_cache_pools: a database of pools.conf on a server of its own has the name of one of ours, and another catalogue."""
from cache_house import ask, is_kept, login, start_cached

from pgt import postgres, procs


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
