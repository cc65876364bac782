# SPDX-License-Identifier: PostgreSQL
"""test_cache_tables: what SHOW tells about the query cache, and tables whose results are kept for a time of their own."""
from cache_house import ask, login, run, start_cached

from pgt.waits import wait_for


def make(pg):
    pg.rows("drop table if exists cshort, clong cascade; create table cshort (a int); create table clong (a int);"
            "insert into cshort values (1); insert into clong values (1)")


def test_a_table_has_a_time_of_its_own(pg, start_pool):
    make(pg)
    pool = start_cached(pg, start_pool, num_init_children=1, pool_mode="transaction", memqcache_expire_list="public.cshort:1")
    w = login(pool)
    for table in ("cshort", "clong"):
        assert ask(w, f"select a from {table}") == [[b"1"]]
    pg.rows("update cshort set a = 2; update clong set a = 2")
    wait_for("the short one is asked for again", lambda: ask(w, "select a from cshort") == [[b"2"]])
    assert ask(w, "select a from clong") == [[b"1"]]


def test_show_tells_tables_and_texts_apart(pg, start_pool):
    make(pg)
    pool = start_cached(pg, start_pool, num_init_children=1, pool_mode="transaction")
    w = login(pool)
    for _ in range(4):
        ask(w, "select a from cshort")
    ask(w, "select a from clong")
    names = [c for c in ("database", "schema", "table", "entries", "bytes", "hits", "misses", "refused", "why", "by_row", "by_table", "last")]

    def tables():
        return {row[2].decode(): dict(zip(names, row)) for row in w.rows("show pool_cache_tables")}
    found = tables()
    short = found["cshort"]
    assert (short["database"], short["schema"]) == (b"postgres", b"public")
    assert (short["entries"], short["hits"], short["misses"], short["refused"]) == (b"1", b"3", b"1", b"0")
    assert int(short["bytes"]) > 0 and short["last"] == b""
    assert found["clong"]["hits"] == b"0"
    run(w, "insert into cshort values (2)")
    wait_for("the write is counted", lambda: int(tables()["cshort"]["by_table"]) >= 1)
    assert tables()["cshort"]["last"] == b"statement"
    assert tables()["clong"]["by_table"] == b"0"
    assert [b"select a from cshort", b"3"] in [row[:2] for row in w.rows("show pool_cache_queries")]
    hits, misses = (int(n) for n in w.rows("show pool_cache")[0][:2])
    assert hits >= 3 and misses >= 2
