# SPDX-License-Identifier: PostgreSQL
"""cache_house: what the tests of the query cache share. A result comes from the cache when it does not show what was
written around pgpool, of which the cache (statement by statement) knows nothing."""
from pgt.waits import wait_for
from pgt.wire import SYNC, Wire, bind, describe, execute, parse


def login(pool, seconds: float = 20, **params) -> Wire:
    w = Wire(pool.address, seconds=seconds)
    found = w.login(**params)
    assert found[-1].type == "Z", found[-1].fields
    return w


def run(w: Wire, *sql: str) -> None:
    for text in sql:
        found = w.simple(text)
        assert not [m for m in found if m.type == "E"], (text, [m.fields for m in found if m.type == "E"])


def ask(w: Wire, sql: str, values=None, name: str = "", types=(), formats=(), describes: bool = True) -> list:
    """The rows; by the extended protocol when there are values."""
    if values is None:
        return w.rows(sql)
    head = b"" if name else parse(sql, types=types)
    w.send(head, bind(values, name=name), describe("", "P") if describes else b"", execute(), SYNC)
    found = w.ready()
    assert not [m for m in found if m.type == "E"], [m.fields for m in found if m.type == "E"]
    return [m.row() for m in found if m.type == "D"]


def is_kept(pg, w: Wire, sql: str, change: str, values=None, **kwargs) -> bool:
    """Asks twice and once more behind `change`, which is made around pgpool and would show in the answer."""
    ask(w, sql, values, **kwargs)
    before = ask(w, sql, values, **kwargs)
    pg.rows(change)
    return ask(w, sql, values, **kwargs) == before


# The servers are asked, soon and now and then: a link that is lost has them asked, too, and what is found out then for the
# first time (who is the primary, which server it is) would be news, for keys are made with it.
ASKED = {"sr_check_period": 10}


def when_on(pool, database: str = "postgres") -> None:
    """Waits until results of the database may be kept: the invalidator has to have looked at it, and the monitor at all servers (ASKED)
    but those that are down."""
    with login(pool, database=database) as w:
        wait_for("the servers are known", lambda: all(row[4] == b"up" for row in w.rows("show pool_nodes") if row[3] != b"down"), 60)
        w.rows("select count(*) from pg_class where false")
        wait_for("the cache of the database is on", lambda: [
            row for row in w.rows("show pool_cache_streams")
            if row[0] == database.encode() and row[1] in (b"statement", b"streaming")], 60)


def start_cached(pg, start_pool, **settings):
    pool = start_pool(pg.address, memory_cache_enabled="on", memqcache_invalidation="statement", **{**ASKED, **settings})
    when_on(pool)
    return pool
