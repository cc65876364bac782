# SPDX-License-Identifier: PostgreSQL
"""test_cache_around: results that are kept are gone when somebody writes around pgpool: within milliseconds, and none is kept
while the write is not visible."""
import signal
import threading
import time

import pytest

from pgt import postgres, procs, waits
from pgt.trio import make_standby
from pgt.wire import Wire

from test_cache_stream import CACHE, LOGICAL, good, streams

POOL = {**CACHE, "pool_mode": "transaction"}


@pytest.fixture(scope="module")
def server():
    pg = postgres.start_postgres(LOGICAL)
    pg.rows("create table t (id int primary key, v text, n int)")
    pg.rows("create table p (id int primary key, v text) partition by range (id)")
    pg.rows("create table p1 partition of p for values from (0) to (1000)")
    yield pg
    pg.stop()


@pytest.fixture
def rows(server):
    server.rows("truncate t, p")
    server.rows("insert into t select i, 'old', i % 10 from generate_series(1, 200) i")
    server.rows("insert into p select i, 'old' from generate_series(1, 200) i")
    return server


def hits(pool) -> int:
    with Wire(pool.address) as w:
        w.login()
        messages = w.simple("show pool_cache")
    return int(next(m for m in messages if m.type == "D").row()[0])


def one(w: Wire, sql: str) -> str:
    value = w.rows(sql)[0][0]
    return "" if value is None else value.decode()


def warm(pool, w: Wire, sql: str) -> None:
    """Until it comes from the cache."""
    def hit():
        before = hits(pool)
        one(w, sql)
        return hits(pool) > before
    waits.wait_for(f"{sql} is kept", hit)


WRITES = [("select v from t where id = 7", "update t set v = 'new' where id = 7"),
          ("select v from p where id = 7", "update p set v = 'new' where id = 7"),
          ("select v from p where id = 7", "update p1 set v = 'new' where id = 7"),
          ("select max(v) from t where id < 20", "insert into t values (0, 'zzz', 1)"),
          ("select count(*) from t", "delete from t where id = 3"),
          ("select count(*) from t where n = 4", "update t set n = 5 where id = 4"),
          ("select count(*) from t", "truncate t"),
          ("select v from t where id = 7", "alter table t alter v type varchar(20) using 'changed'"),
          ("select v from t where id = 7", "begin; savepoint a; update t set v = 'new' where id = 7; release a; commit")]


@pytest.mark.parametrize("read, write", WRITES, ids=[w[:40] for _, w in WRITES])
def test_a_write_around_us_is_seen(rows, start_pool, read, write):
    pool = start_pool(rows.address, **POOL)
    with Wire(pool.address) as w:
        w.login()
        one(w, read)
        good(pool)
        warm(pool, w, read)
        with Wire(rows.socket) as around:
            around.login()
            for part in write.split("; "):
                assert all(m.type != "E" for m in around.simple(part)), part
            want = one(around, read)
        waits.wait_for("the new value is told", lambda: one(w, read) == want)
        waits.holds_for("and no other", lambda: one(w, read) == want, 0.3)
    rows.rows("alter table t alter v type text")


def test_another_key_around_us(rows, start_pool):
    """Which columns identify a row is part of what is known of its table."""
    rows.rows("drop table if exists k; create table k (id int primary key, more int not null unique, v text)")
    rows.rows("insert into k select i, i, 'old' from generate_series(1, 20) i")
    pool = start_pool(rows.address, **POOL)
    with Wire(pool.address) as w:
        w.login()
        read = "select count(*) from k where id = 7"
        assert one(w, read) == "1"
        good(pool)
        rows.rows("alter table k drop constraint k_pkey")
        rows.rows("alter table k replica identity using index k_more_key")
        waits.wait_for("the new key is known", lambda: good(pool)["emptied"] != "0")
        warm(pool, w, read)
        rows.rows("update k set id = 700 where id = 7")
        waits.wait_for("the row is gone", lambda: one(w, read) == "0")


def test_how_long_it_takes(rows, start_pool):
    """From the end of a write around us until no old result is told any more: 20 ms at the 99th percentile on a machine that
    does nothing else (doc/bench/notes.md); here it is seen that nothing waits for a timer: in the best of some rounds the
    quickest quarter comes at once, as busy as the machine may be."""
    pool = start_pool(rows.address, **POOL)
    with Wire(pool.address) as w, Wire(rows.socket) as around:
        w.login()
        around.login()
        one(w, "select v from t where id = 1")
        good(pool)

        def one_round(first):
            took = []
            for i in range(first, first + 100):
                read = f"select v from t where id = {i % 200 + 1}"
                for _ in range(3):
                    one(w, read)
                around.simple(f"update t set v = 'x{i}' where id = {i % 200 + 1}")
                since = time.monotonic()
                while one(w, read) != f"x{i}":
                    assert time.monotonic() < since + 20
                took.append(time.monotonic() - since)
            took.sort()
            print(f"p25 {took[25] * 1000:.1f} ms, p50 {took[50] * 1000:.1f} ms, p98 {took[97] * 1000:.1f} ms, longest {took[-1] * 1000:.1f} ms")
            return took[25]
        best = one_round(0)
        for first in range(100, 800, 100):
            best = min(best, one_round(first)) if best > 0.020 * waits.SCALE else best
    assert best <= 0.020 * waits.SCALE


def test_a_hidden_commit_is_not_kept(start_pool):
    """It stands in the WAL and waits for a standby: what is read meanwhile is told, but not kept."""
    primary = postgres.start_postgres({**LOGICAL, "wal_keep_size": "64MB"}, roles=False)
    standby = make_standby(primary, "sync")
    stopped: list[int] = []
    try:
        primary.rows("create table t (id int primary key, v text)")
        primary.rows("insert into t values (1, 'old')")
        pool = start_pool(primary.address, **POOL)
        read = "select v from t where id = 1"
        with Wire(pool.address) as w:
            w.login()
            one(w, read)
            good(pool)
            warm(pool, w, read)
            primary.rows("alter system set synchronous_standby_names = 'sync'")
            primary.reload()
            waits.wait_for("it is synchronous", lambda: primary.value(
                "select count(*) from pg_stat_replication where sync_state = 'sync'") == "1")
            stopped = [standby.daemon.pid, *procs.children(standby.daemon.pid)]
            procs.stand_still(*stopped)
            writer = threading.Thread(target=primary.rows, args=("update t set v = 'new'",))
            writer.start()
            waits.wait_for("it is held", lambda: streams(pool)["postgres"]["hidden"] == "1")
            before = hits(pool)
            for _ in range(5):
                assert one(w, read) == "old"
            assert hits(pool) == before
            procs.go_on(*stopped)
            writer.join(30)
            assert primary.value(read) == "new"
            waits.wait_for("it is told", lambda: one(w, read) == "new")
            waits.holds_for("and no other", lambda: one(w, read) == "new", 0.3)
    finally:
        procs.go_on(*stopped)
        standby.stop(signal.SIGQUIT)
        primary.stop(signal.SIGQUIT)
