# SPDX-License-Identifier: PostgreSQL
"""test_cache_standby: what a standby answers is kept when the standby was seen beyond the last write of its tables, and never
before: whoever wrote, and whatever keeps the standby back."""
import signal
import threading

import psycopg
import pytest

from pgt import postgres, procs, waits
from pgt.trio import make_standby, wait_replayed
from pgt.wire import Wire

from test_cache_around import hits, one
from test_cache_stream import CACHE, LOGICAL, good, settled, streams
from test_monitor import show

READ = "select v from t where id = 1"
SETTINGS = {**CACHE, "load_balance_mode": True, "backend_weight0": 0, "backend_weight1": 1, "sr_check_period": 1, "health_check_period": 1,
            "delay_threshold": 0, "backend_application_name0": "node0", "backend_application_name1": "node1"}
MODES = ("transaction", "session")


class Pair:
    """A primary, and a standby to which all reads go that may."""

    def __init__(self):
        self.primary = postgres.start_postgres({**LOGICAL, "wal_keep_size": "64MB"}, roles=False)
        self.standby = make_standby(self.primary, "node1")
        self.primary.rows("create table t (id int primary key, v text)")

    def pool(self, start_pool, **conf):
        self.primary.rows("truncate t")
        self.primary.rows("insert into t values (1, 'old'), (2, 'other')")
        wait_replayed(self.primary, self.standby)
        pool = start_pool(self.primary.address, self.standby.address, **{**SETTINGS, **conf})
        waits.wait_for("they are known", lambda: [n["role"] for n in show(pool)] == ["primary", "standby"], 60)
        return pool

    def stop(self) -> None:
        self.standby.stop(signal.SIGQUIT)
        self.primary.stop(signal.SIGQUIT)


@pytest.fixture(scope="module")
def shared():
    it = Pair()
    yield it
    it.stop()


@pytest.fixture
def pair(shared):
    yield shared
    shared.standby.rows("select pg_wal_replay_resume()")


def login(pool) -> Wire:
    w = Wire(pool.address)
    assert w.login()[-1].type == "Z"
    return w


def reads_of_standby(pool) -> int:
    return int(show(pool)[1]["select_cnt"])


def is_hit(pool, w: Wire, sql: str = READ) -> bool:
    before = hits(pool)
    one(w, sql)
    return hits(pool) > before


def kept(pool, w: Wire, sql: str = READ) -> None:
    try:
        waits.wait_for(f"{sql} is kept", lambda: is_hit(pool, w, sql), 60)
    except AssertionError as e:
        raise AssertionError(f"{e}: {w.rows('show pool_cache_tables')} {w.rows('pgpool explain ' + sql)} {w.rows('show pool_cache_streams')} {show(pool)}") from None


def never_kept(pool, w: Wire, sql: str, value: str, seconds: float = 3) -> None:
    """It is told as the standby has it, each time by the standby."""
    before, asked = hits(pool), reads_of_standby(pool)
    waits.holds_for("the standby's word", lambda: one(w, sql) == value, seconds)
    for _ in range(4):  # however few there were in that time
        assert one(w, sql) == value
    assert hits(pool) == before
    assert reads_of_standby(pool) > asked + 3


@pytest.mark.parametrize("how", ["statement", "wal"])
@pytest.mark.parametrize("mode", MODES)
def test_what_a_standby_answers_is_kept(pair, start_pool, mode, how):
    pool = pair.pool(start_pool, pool_mode=mode, memqcache_invalidation=how)
    with login(pool) as w:
        asked = reads_of_standby(pool)
        one(w, READ)
        kept(pool, w)
        assert reads_of_standby(pool) > asked
        assert show(pool)[0]["select_cnt"] == "0"
        with login(pool) as writer:
            writer.simple("update t set v = 'new' where id = 1")
        waits.wait_for("the new value", lambda: one(w, READ) == "new")
        kept(pool, w)
        waits.holds_for("and no other", lambda: one(w, READ) == "new", 0.5)


@pytest.mark.parametrize("ours", [True, False], ids=["through us", "around us"])
@pytest.mark.parametrize("mode", MODES)
def test_a_paused_standby(pair, start_pool, mode, ours):
    pool = pair.pool(start_pool, pool_mode=mode)
    with login(pool) as w:
        one(w, READ)
        good(pool)
        kept(pool, w)
        pair.standby.rows("select pg_wal_replay_pause()")
        if ours:
            with login(pool) as writer:
                writer.simple("update t set v = 'new' where id = 1")
        else:
            pair.primary.rows("update t set v = 'new' where id = 1")
        waits.wait_for("it was heard of", lambda: int(streams(pool)["postgres"]["transactions"]) > 0 and good(pool))
        never_kept(pool, w, READ, "old")
        pair.standby.rows("select pg_wal_replay_resume()")
        waits.wait_for("the new value", lambda: one(w, READ) == "new", 60)
        kept(pool, w)
        waits.holds_for("and no other", lambda: one(w, READ) == "new", 0.5)


def test_a_grant_that_has_not_arrived(pair, start_pool):
    """What was revoked is a standby's to tell until it has heard of that, but nobody keeps it."""
    pair.primary.rows("drop role if exists reader")
    pair.primary.rows("create role reader")
    pair.primary.rows("grant select on t to reader")
    pool = pair.pool(start_pool, pool_mode="transaction")
    with login(pool) as w, login(pool) as admin:
        w.simple("set role reader")
        one(w, READ)
        good(pool)
        kept(pool, w)
        pair.standby.rows("select pg_wal_replay_pause()")
        admin.simple("revoke select on t from reader")
        never_kept(pool, w, READ, "old", 2)
        pair.standby.rows("select pg_wal_replay_resume()")
        waits.wait_for("it is refused", lambda: w.simple(READ)[0].type == "E", 60)
    pair.primary.rows("drop role reader")


def test_a_link_younger_than_the_last_look(pair, start_pool):
    """The standby may have been restarted in between, and be where it was before."""
    pool = pair.pool(start_pool, pool_mode="transaction", sr_check_period=600, health_check_period=600)
    with login(pool) as w:
        one(w, READ)
        pair.standby.end_sessions("application_name !~ 'pgpool'")
        before = hits(pool)  # SHOW POOL_NODES would have it looked at again
        waits.holds_for("the standby's word", lambda: one(w, READ) == "old", 2)
        assert hits(pool) == before


def test_a_delayed_standby(start_pool):
    pair = Pair()
    try:
        pool = pair.pool(start_pool, pool_mode="transaction")
        pair.standby.rows("alter system set recovery_min_apply_delay = '4s'")
        pair.standby.reload()
        with login(pool) as w:
            one(w, READ)
            good(pool)
            for i in range(3):
                pair.primary.rows(f"update t set v = 'v{i}' where id = 1")
                shown = [one(w, READ)]

                def next_value(shown=shown, want=f"v{i}"):
                    shown.append(one(w, READ))
                    return shown[-1] == want
                waits.wait_for("it arrives", next_value, 60)
                kept(pool, w)
                waits.holds_for("and no other", lambda want=f"v{i}": one(w, READ) == want, 0.5)
    finally:
        pair.stop()


def test_a_commit_that_waits_for_another(start_pool):
    """A standby shows a commit that the primary still hides for the sake of a synchronous one: it is told, but not kept."""
    pair = Pair()
    other = make_standby(pair.primary, "sync")
    stopped: list[int] = []
    try:
        pool = pair.pool(start_pool, pool_mode="transaction")
        with login(pool) as w:
            one(w, READ)
            good(pool)
            kept(pool, w)
            pair.primary.rows("alter system set synchronous_standby_names = 'sync'")
            pair.primary.reload()
            waits.wait_for("it is synchronous", lambda: pair.primary.value(
                "select count(*) from pg_stat_replication where sync_state = 'sync'") == "1")
            stopped = [other.daemon.pid, *procs.children(other.daemon.pid)]
            procs.stand_still(*stopped)
            writer = threading.Thread(target=pair.primary.rows, args=("update t set v = 'new'",))
            writer.start()
            waits.wait_for("it is heard of", lambda: streams(pool)["postgres"]["hidden"] == "1")
            waits.wait_for("the other has it", lambda: one(w, READ) == "new", 60)
            assert pair.primary.value(READ) == "old"
            never_kept(pool, w, READ, "new", 2)
            procs.go_on(*stopped)
            writer.join(30)
            kept(pool, w)
            assert one(w, READ) == "new"
    finally:
        procs.go_on(*stopped)
        other.stop(signal.SIGQUIT)
        pair.stop()


def test_a_standby_of_the_primary_that_was(start_pool):
    """Another one is promoted, without what this standby has replayed: it may tell that, but nobody keeps it."""
    pair = Pair()
    other = make_standby(pair.primary, "node2")
    try:
        pair.primary.rows("truncate t")
        pair.primary.rows("insert into t values (1, 'old'), (2, 'other')")
        wait_replayed(pair.primary, pair.standby, other)
        pool = start_pool(pair.primary.address, pair.standby.address, other.address, **{
            **SETTINGS, "pool_mode": "transaction", "backend_weight2": 0, "backend_application_name2": "node2"})
        waits.wait_for("they are known", lambda: [n["role"] for n in show(pool)] == ["primary", "standby", "standby"], 60)
        with login(pool) as w:
            one(w, READ)
            good(pool)
            kept(pool, w)
            other.rows("alter system set primary_conninfo = 'host=127.0.0.1 port=1'")
            other.reload()
            waits.wait_for("it hears nobody", lambda: other.value("select count(*) from pg_stat_wal_receiver") == "0")
            pair.primary.rows("update t set v = 'lost' where id = 1")
            pair.primary.rows("insert into t select i, repeat('x', 1000) from generate_series(10, 2000) i")
            waits.wait_for("the standby has it", lambda: pair.standby.value("select count(*) from t") == "1993")
            waits.wait_for("it is told", lambda: one(w, READ) == "lost")
        pair.primary.stop(signal.SIGQUIT)
        other.rows("select pg_promote()")
        waits.wait_for("it is the primary", lambda: show(pool)[2]["role"] == "primary", 60)
        assert other.value(READ) == "old"
        waits.wait_for("results are kept again", lambda: streams(pool)["postgres"]["good"] == "true", 60)
        with login(pool) as w:
            for _ in range(100):
                before = hits(pool)
                told = one(w, READ)
                assert told == "old" or hits(pool) == before
    finally:
        other.stop(signal.SIGQUIT)
        pair.stop()


@pytest.mark.parametrize("mode", MODES)
def test_random_writes_with_a_late_standby(pair, start_pool, mode):
    """Counters that only grow, written through us and around us: who reads the last one written, and then waits until all is
    replayed, must read it again; and no answer that was kept is older than one told before by the primary."""
    pool = pair.pool(start_pool, pool_mode=mode)
    pair.primary.rows("truncate t")
    pair.primary.rows("insert into t select i, '0' from generate_series(1, 8) i")
    wait_replayed(pair.primary, pair.standby)
    address = f"host=127.0.0.1 port={pool.port} user=postgres dbname=postgres"
    with psycopg.connect(address, autocommit=True) as c, login(pool) as w:
        one(w, READ)
        good(pool)
        for turn in range(12):
            if turn % 3 == 0:
                pair.standby.rows("select pg_wal_replay_pause()")
            for i in range(1, 9):
                sql = f"update t set v = '{turn}' where id = {i}"
                if (turn + i) % 2:
                    c.execute(sql)
                else:
                    pair.primary.rows(sql)
                one(w, f"select v from t where id = {i}")
            if turn % 3 == 1:
                pair.standby.rows("select pg_wal_replay_resume()")
                wait_replayed(pair.primary, pair.standby)
                settled(pool, pair.primary)  # of what was written around us it may hear late
                for i in range(1, 9):
                    assert one(w, f"select v from t where id = {i}") == str(turn), (turn, i)


@pytest.mark.parametrize("how", ["statement", "wal"])
def test_a_view_that_was_made_anew(pair, start_pool, how):
    """What the standby still reads by its name is not kept as what the new one shows. One transaction, so that no reader meets
    the moment without a view."""
    pair.primary.rows("drop view if exists seen; create view seen as select 'before ' || v as v from t where id = 1")
    read = "select v from seen"
    pool = pair.pool(start_pool, pool_mode="transaction", memqcache_invalidation=how)
    with login(pool) as w, login(pool) as admin:
        waits.wait_for("it is there", lambda: one(w, read) == "before old", 60)
        kept(pool, w, read)
        pair.standby.rows("select pg_wal_replay_pause()")
        for sql in ("begin", "drop view seen", "create view seen as select 'behind ' || v as v from t where id = 1", "commit"):
            assert all(m.type != "E" for m in admin.simple(sql))
        never_kept(pool, w, read, "before old")
        pair.standby.rows("select pg_wal_replay_resume()")
        waits.wait_for("the new one", lambda: one(w, read) == "behind old", 60)
        kept(pool, w, read)
        waits.holds_for("and no other", lambda: one(w, read) == "behind old", 0.5)
