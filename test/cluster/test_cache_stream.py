# SPDX-License-Identifier: PostgreSQL
"""test_cache_stream: the invalidator hears of what is written around pgpool, by row where it can, within
milliseconds, leaves nothing behind at the server, and is not believed when it may have missed something."""
import os
import signal
import threading

import pytest

from pgt import postgres, procs, waits
from pgt.trio import make_standby
from pgt.wire import Wire, WireClosed

LOGICAL = {"wal_level": "logical", "synchronous_commit": "on", "max_replication_slots": "10"}
CACHE = {"memory_cache_enabled": True, "memqcache_wal_databases": "postgres", "memqcache_total_size": "8MB",
         "memqcache_cache_block_size": "256kB", "memqcache_maxcache": "64kB", "memqcache_max_num_cache": 1000}

WITHIN_US, ROUNDS = 20000, 8


@pytest.fixture(scope="module")
def server():
    pg = postgres.start_postgres(LOGICAL)
    yield pg
    pg.stop()


@pytest.fixture
def tables(server):
    """Made anew for each test, so that tests do not depend on one another."""
    server.rows("; ".join((
        "drop schema public cascade", "create schema public", "grant all on schema public to public",
        "create table t (id int primary key, v text, n int)", "create table nokey (a int, b text)",
        "create table whole (a int, b text)", "alter table whole replica identity full",
        "insert into t select i, 'v' || i, i % 10 from generate_series(1, 100) i",
        "insert into nokey values (1, 'a')", "insert into whole values (1, 'a'), (2, null)")))
    return server


def streams(pool) -> dict[str, dict[str, str]]:
    with Wire(pool.address) as w:
        assert w.login()[-1].type == "Z"
        messages = w.simple("show pool_cache_streams")
    body, at, names = next(m.body for m in messages if m.type == "T"), 2, []
    while at < len(body):
        end = body.index(b"\0", at)
        names.append(body[at:end].decode())
        at = end + 1 + 18
    rows = [dict(zip(names, [(v or b"").decode() for v in m.row()])) for m in messages if m.type == "D"]
    return {r["database"]: r for r in rows}


def streams_or_none(pool, database: str = "postgres") -> dict[str, str]:
    """While there is no primary nobody may get in."""
    try:
        return streams(pool).get(database, {})
    except (AssertionError, OSError, WireClosed):
        return {}


def good(pool, database: str = "postgres") -> dict[str, str]:
    """Waits until the database is streamed, and tells its row."""
    def look():
        row = streams_or_none(pool, database)
        return row if row.get("state") == "streaming" and row["good"] == "true" and row["hidden"] == "0" else None
    return waits.wait_for(f"{database} is streamed", look, 60)


def counts(row: dict[str, str]) -> tuple[int, int, int]:
    return int(row["by_row"]), int(row["by_table"]), int(row["emptied"])


def settled(pool, server) -> tuple[int, int, int]:
    """What was counted once all that was written so far was dealt with."""
    lsn = server.value("select pg_current_wal_flush_lsn()")

    def there():
        row = good(pool)
        return row if server.value(f"select '{row['lsn'] or '0/0'}'::pg_lsn >= '{lsn}'") == "t" else None
    return counts(waits.wait_for("the stream is up to date", there, 60))


def invalidators(pool) -> list[int]:
    return [pid for pid in pool.pids() if "follows changes" in procs.command_line(pid)]


def invalidator(pool) -> int:
    found = invalidators(pool)
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("sql, by_row, by_table", [
    ("insert into t values (200, 'x', 1)", 1, 0),
    ("update t set v = 'z' where id = 7", 1, 0),
    ("update t set id = 300 where id = 7", 1, 0),
    ("delete from t where id < 4", 3, 0),
    ("insert into nokey values (2, null)", 1, 0),
    ("update nokey set b = 'c'", 1, 0),
    ("delete from nokey", 0, 1),
    ("update whole set b = 'c' where b is null", 1, 0),
    ("delete from whole", 2, 0),
    ("truncate t, nokey", 0, 1),
    ("with gone as (delete from t where id = 5 returning *) insert into whole select id, v from gone", 2, 0),
    ("merge into t using (values (1), (500)) s (id) on t.id = s.id when matched then delete "
     "when not matched then insert values (s.id, 'm', 0)", 2, 0),
    ("begin; update t set v = 'x' where id = 9; rollback", 0, 0),
    ("begin; savepoint a; update t set v = 'x' where id = 9; rollback to a; delete from t where id = 10; commit", 1, 0),
    ("begin; delete from t where id = 11; prepare transaction 'p'; commit prepared 'p'", 1, 0),
], ids=lambda v: v[:30] if isinstance(v, str) else None)
def test_what_is_written_around_us(tables, start_pool, sql, by_row, by_table):
    if sql.startswith("merge") and postgres.major() < 15:
        pytest.skip("MERGE came with PostgreSQL 15")
    pool = start_pool(tables.address, **CACHE)
    good(pool)
    before = settled(pool, tables)
    with Wire(tables.socket) as w:
        w.login()
        for part in sql.split("; "):
            assert all(m.type != "E" for m in w.simple(part)), part
    after = settled(pool, tables)
    assert tuple(b - a for a, b in zip(before, after)) == (by_row, by_table, 0)


def test_partitions_and_cascades(tables, start_pool):
    for sql in ("create table p (a int primary key, b text) partition by range (a)",
                "create table p1 partition of p for values from (0) to (10)",
                "create table p2 partition of p for values from (10) to (20)",
                "create table child (id int primary key, t int references t on delete cascade)",
                "insert into child values (1, 1), (2, 1)"):
        tables.rows(sql)
    pool = start_pool(tables.address, **CACHE)
    good(pool)
    before = settled(pool, tables)
    tables.rows("insert into p values (1, 'a')")
    tables.rows("update p set a = 11")
    assert [b - a for a, b in zip(before, settled(pool, tables))] == [3, 0, 0]
    before = settled(pool, tables)
    tables.rows("delete from t where id = 1")
    assert [b - a for a, b in zip(before, settled(pool, tables))] == [3, 0, 0]


@pytest.mark.parametrize("sql", [
    "alter table t add column more int", "alter table t rename to other", "alter table t rename column v to w",
    "drop table nokey", "grant select on t to other_user", "alter table t enable row level security",
    "create policy p on t using (false)", "create or replace view vw as select 2 as a", "refresh materialized view mv",
    "create or replace function f() returns int stable language sql as 'select 2'", "create role r_of_test",
    "alter view vw set (security_barrier = true)", "alter database postgres set extra_float_digits = 2",
    "alter text search dictionary english_stem (stopwords)",
    "alter system set timezone = 'Asia/Tokyo'; select pg_reload_conf(); update t set v = 'x' where id = 1",
    "begin; update t set v = 'x' where id = 1; alter table whole alter a type bigint; commit",
    "create temp table nobodys (a int)", "analyze t", "vacuum t"])
def test_ddl_empties_the_database(tables, start_pool, sql):
    """The stream does not show it; the catalogue does. What nobody can see in results changes nothing."""
    for more in ("create view vw as select 1 as a", "create materialized view mv as select * from t",
                 "drop role if exists r_of_test", "create or replace function f() returns int stable language sql as 'select 1'"):
        tables.rows(more)
    pool = start_pool(tables.address, **CACHE)
    good(pool)
    before = settled(pool, tables)[2]
    with Wire(tables.socket) as w:
        w.login()
        for part in sql.split("; "):
            assert all(m.type != "E" for m in w.simple(part)), part
        if sql.startswith(("create temp", "analyze", "vacuum")):
            settled(pool, tables)
            waits.holds_for("nothing was dropped", lambda: settled(pool, tables)[2] == before, 1.5)
        else:
            waits.wait_for("all was dropped", lambda: settled(pool, tables)[2] > before, 60)
    tables.rows("drop role if exists r_of_test")
    tables.rows("alter database postgres reset all")
    tables.rows("alter system reset timezone")
    tables.reload()


def test_nothing_waits_for_a_timer(tables, start_pool):
    """The time from a commit until its results are invalid, of the quickest quarter of some: on a machine that is busy most are late."""
    pool = start_pool(tables.address, **CACHE)
    good(pool)
    settled(pool, tables)

    def quarter() -> int:
        took = []
        for i in range(16):
            tables.rows(f"update t set n = n + 1 where id = {i + 1}")
            settled(pool, tables)
            took.append(int(streams(pool)["postgres"]["lag_us"]))
        print(f"lags {sorted(took)} us")
        return sorted(took)[3]
    waits.wait_for("a quarter comes at once", lambda: 0 < quarter() <= WITHIN_US * waits.SCALE, 60)


@pytest.mark.slow
def test_within_milliseconds(tables, start_pool):
    """p99 of the time from a commit until its results are invalid. The best of some rounds counts: a neighbour of the test
    that holds the processor makes one longer, and nothing makes one shorter than it is."""
    best = 0
    for _ in range(ROUNDS):
        pool = start_pool(tables.address, **CACHE)
        good(pool)
        settled(pool, tables)
        with Wire(tables.socket) as w:
            w.login()
            for i in range(500):
                w.simple(f"update t set n = {i} where id = {i % 100 + 1}")
        settled(pool, tables)
        row = good(pool)
        pool.stop()
        took = int(row["lag_p99_us"])
        best = min(best or took, took)
        print(f"lag p99 {took} us of {row['transactions']} transactions")
        if best <= WITHIN_US:
            break
    assert 0 < best <= WITHIN_US * waits.SCALE


def test_many_rows_in_little_memory(tables, start_pool):
    tables.rows("create table bulk (id int primary key, v text)")
    pool = start_pool(tables.address, **CACHE, memqcache_wal_lag="60s")
    good(pool)
    pid = invalidator(pool)
    before = procs.memory_kb(pid, "VmHWM")
    tables.rows("insert into bulk select i, 'some text ' || i from generate_series(1, 400000) i")
    by_row, by_table, _ = settled(pool, tables)
    assert by_row + by_table >= 400000
    assert procs.memory_kb(pid, "VmHWM") - before < 32 * 1024 or procs.is_sanitized()


def slots(server) -> int:
    return int(server.value("select count(*) from pg_replication_slots"))


def test_nothing_is_left_behind_by_a_killed_one(tables, start_pool):
    pool = start_pool(tables.address, **CACHE)
    good(pool)
    waits.wait_for("the slot of the pgpool before is gone", lambda: slots(tables) == 1)
    before = invalidator(pool)
    procs.stand_still(before)
    waits.wait_for("results are not used any more", lambda: streams(pool)["postgres"]["good"] == "false", 60)
    os.kill(before, signal.SIGKILL)
    waits.wait_for("another one follows", lambda: invalidators(pool) not in ([], [before]))
    good(pool)
    waits.wait_for("there is one slot", lambda: slots(tables) == 1)
    pool.stop()
    waits.wait_for("the slot is gone", lambda: slots(tables) == 0)


def test_a_broken_stream_is_made_anew(tables, start_pool):
    pool = start_pool(tables.address, **CACHE)
    good(pool)
    before = settled(pool, tables)[2]
    tables.rows("select pg_terminate_backend(active_pid) from pg_replication_slots")
    waits.wait_for("it broke", lambda: streams(pool)["postgres"]["restarts"] != "0")
    good(pool)
    assert settled(pool, tables)[2] > before


def test_a_commit_that_waits_for_a_standby_is_held(start_pool):
    """It stands in the WAL, and others do not see it: until they do, it is not let go."""
    primary = postgres.start_postgres({**LOGICAL, "wal_keep_size": "64MB"}, roles=False)
    standby = make_standby(primary, "sync")
    stopped: list[int] = []
    try:
        primary.rows("create table t (id int primary key, v text)")
        primary.rows("insert into t values (1, 'a')")
        pool = start_pool(primary.address, **CACHE, memqcache_wal_lag="500ms")
        good(pool)
        waits.wait_for("the standby streams", lambda: primary.value("select count(*) from pg_stat_replication where "
                                                                    "application_name = 'sync' and state = 'streaming'") == "1")
        primary.rows("alter system set synchronous_standby_names = 'sync'")
        primary.reload()
        waits.wait_for("it is synchronous", lambda: primary.value("select count(*) from pg_stat_replication where "
                                                                  "sync_state = 'sync'") == "1")
        stopped = [standby.daemon.pid, *procs.children(standby.daemon.pid)]
        procs.stand_still(*stopped)
        writer = threading.Thread(target=primary.rows, args=("update t set v = 'b'",))
        writer.start()
        waits.wait_for("it is held", lambda: streams(pool)["postgres"]["hidden"] == "1")
        waits.holds_for("it stays held", lambda: streams(pool)["postgres"]["hidden"] == "1", 1)
        waits.wait_for("the stream is whole, longer than memqcache_wal_lag", lambda: [streams(pool)["postgres"][x] for x in ("hidden", "good")] == ["1", "true"])
        assert primary.value("select v from t") == "a"
        procs.go_on(*stopped)
        writer.join(30)
        waits.wait_for("it is let go", lambda: streams(pool)["postgres"]["hidden"] == "0")
        assert primary.value("select v from t") == "b"
    finally:
        procs.go_on(*stopped)
        standby.stop(signal.SIGQUIT)
        primary.stop(signal.SIGQUIT)


def why(pool, state: str, database: str = "postgres") -> str:
    def look():
        row = streams_or_none(pool, database)
        return row["reason"] if row.get("state") == state and row["reason"] else None
    return waits.wait_for(f"{database} is {state}", look, 60)


def test_where_there_cannot_be_a_stream(tables, start_pool):
    tables.rows("drop role if exists follower")
    tables.rows("create role follower login password 'x'")
    pool = start_pool(tables.address, **CACHE, memqcache_wal_user="follower")
    assert "REPLICATION" in why(pool, "statement")
    assert streams(pool)["postgres"]["good"] == "true"
    pool.reload(memqcache_invalidation="wal")
    assert "REPLICATION" in why(pool, "broken")
    assert streams(pool)["postgres"]["good"] == "false"
    tables.rows("alter role follower replication")
    pool.reload(memqcache_invalidation="auto")
    good(pool)
    pool.reload(memqcache_invalidation="statement")
    assert "statement" in why(pool, "statement")
    waits.wait_for("the slot is given back", lambda: slots(tables) == 0)


@pytest.mark.parametrize("conf, reason", [({"wal_level": "replica"}, "wal_level"), ({"max_replication_slots": "2"}, "slots"),
                                          ({"max_wal_senders": "2"}, "senders")])
def test_a_server_without_room(start_pool, conf, reason):
    pg = postgres.start_postgres({**LOGICAL, **conf}, roles=False)
    try:
        pool = start_pool(pg.address, **CACHE)
        assert reason in why(pool, "statement")
        waits.wait_for("the log says so", lambda: "only what is written through pgpool is seen" in pool.log())
    finally:
        pg.stop()


def test_many_databases(start_pool):
    """Where slots run out the rest goes by statement, and some are left to others."""
    pg = postgres.start_postgres({**LOGICAL, "max_replication_slots": "8", "max_wal_senders": "10"}, roles=False)
    try:
        names = [f"db{i}" for i in range(10)]
        for name in names:
            pg.rows(f"create database {name}")
        pool = start_pool(pg.address, **{**CACHE, "memqcache_wal_databases": ",".join(names)})

        def settled_states():
            rows = streams(pool)
            states = [rows[n]["state"] for n in names if n in rows]
            return states if len(states) == 10 and set(states) == {"streaming", "statement"} else None
        states = waits.wait_for("all are one or the other", settled_states, 60)
        assert 1 <= states.count("streaming") <= 6
        assert slots(pg) <= 6
    finally:
        pg.stop()


def test_a_server_that_is_started_behind_us(start_pool):
    """It was found dead before it was found to be the primary: its database is followed from then on."""
    pg = postgres.start_postgres(LOGICAL, roles=False)
    try:
        pg.stop()
        pool = start_pool(pg.address, health_check_period=1, health_check_max_retries=1, health_check_retry_delay=1, **CACHE)
        waits.wait_for("it is found dead", lambda: "there is no primary" in pool.log())
        pg.start()
        waits.wait_for("it is the primary", lambda: "primary node is 0" in pool.log())
        good(pool)
    finally:
        pg.stop()


def test_another_primary(start_pool):
    primary = postgres.start_postgres({**LOGICAL, "wal_keep_size": "64MB"}, roles=False)
    standby = make_standby(primary, "node1")
    standby.write_conf({**standby.conf, **LOGICAL})
    standby.stop()
    standby.start()
    try:
        pool = start_pool(primary.address, standby.address, **CACHE, sr_check_period=1, health_check_period=1)
        assert good(pool)["node_id"] == "0"
        primary.stop(signal.SIGQUIT)
        waits.wait_for("nothing is good", lambda: streams_or_none(pool).get("good") == "false")
        standby.rows("select pg_promote()")
        waits.wait_for("the new primary is followed", lambda: streams_or_none(pool).get("node_id") == "1", 60)
        good(pool)
        waits.wait_for("the log says so", lambda: "all results are dropped" in pool.log())
    finally:
        standby.stop(signal.SIGQUIT)
        primary.stop(signal.SIGQUIT)


def test_a_database_is_let_go_to_be_dropped(tables, start_pool):
    """Somebody who follows it stands in the way: the first attempt may fail."""
    tables.rows("create database gone")
    pool = start_pool(tables.address, **{**CACHE, "memqcache_wal_databases": "gone"})
    good(pool, "gone")

    def drop():
        with Wire(pool.address) as w:
            w.login()
            return any(m.type == "C" for m in w.simple("drop database gone"))
    waits.wait_for("it is dropped", drop, 60)
    assert tables.value("select count(*) from pg_database where datname = 'gone'") == "0"


def test_what_ran_when_the_stream_began(tables, start_pool):
    """A transaction that is open then is in the stream, or all goes when it ends: here it keeps the slot waiting."""
    with Wire(tables.socket) as w:
        w.login()
        w.simple("begin; update t set v = 'early' where id = 1")
        pool = start_pool(tables.address, **CACHE)
        assert "waits for transactions" in why(pool, "starting")
        assert streams(pool)["postgres"]["good"] == "false"
        w.simple("commit")
    good(pool)


def test_a_late_stream_has_missed_nothing(tables, start_pool):
    """While it is late nothing is used; when it has caught up, what it kept is as good as before."""
    pool = start_pool(tables.address, **CACHE, memqcache_wal_lag="500ms")
    good(pool)
    waits.wait_for("the slot of the pgpool before is gone", lambda: slots(tables) == 1)
    before = settled(pool, tables)
    sender = int(tables.value("select active_pid from pg_replication_slots"))
    procs.stand_still(sender)
    try:
        tables.rows("update t set v = 'late' where id = 1")
        waits.wait_for("it is late", lambda: streams(pool)["postgres"]["state"] == "late")
        assert streams(pool)["postgres"]["good"] == "false"
    finally:
        procs.go_on(sender)
    after = settled(pool, tables)
    assert tuple(b - a for a, b in zip(before, after)) == (1, 0, 0)


def test_on_another_node(start_pool):
    """The primary is node 1."""
    primary = postgres.start_postgres({**LOGICAL, "wal_keep_size": "64MB"}, roles=False)
    standby = make_standby(primary, "node0")
    try:
        pool = start_pool(standby.address, primary.address, **CACHE, sr_check_period=1, health_check_period=1)
        assert good(pool)["node_id"] == "1"
        assert slots(primary) == 1
    finally:
        standby.stop(signal.SIGQUIT)
        primary.stop(signal.SIGQUIT)
