# SPDX-License-Identifier: PostgreSQL
"""test_balance: reads over standbys with real servers. The primary is on node 0 and on node 2.

The oracle is the primary itself: the same random work, direct and through pgpool with standbys that
apply before a commit returns (remote_apply), gives the same results."""
import os
import random

import psycopg
import pytest

from test_monitor import Trio, column, logged_in, pool_for, show, wait_settled

ROUNDS = int(os.environ.get("PGT_ROUNDS", "200"))
KEYS = 40


@pytest.fixture(scope="module", params=[0, 2], ids=["primary0", "primary2"])
def cluster(request):
    it = Trio(request.param)
    it.keep_in_step()
    yield it
    it.stop()


@pytest.fixture
def make(cluster, start_pool):
    """Makes a pgpool that sends no read to the primary by weight, unless told otherwise."""
    def start(primary=0, standbys=1, **conf):
        weights = {f"backend_weight{i}": primary if i == cluster.at else standbys for i in range(3)}
        pool = pool_for(start_pool, cluster, **{"load_balance_mode": True, **weights, **conf})
        wait_settled(pool, cluster.at)
        return pool
    return start


@pytest.fixture
def balanced(make):
    return make()


def connect(port: int, threshold: int | None) -> psycopg.Connection:
    return psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres", autocommit=True,
                           prepare_threshold=threshold)


def step(c, t: str, kind: int, i: int):
    """One piece of work. What it returns must not depend on the way."""
    match kind:
        case 0:
            return c.execute(f"insert into {t} values (%s, %s) on conflict (id) do update set v = excluded.v "
                             "returning v", (i, f"v{i}")).fetchall()
        case 1:
            return c.execute(f"select count(*), max(v) from {t}").fetchall()
        case 2:
            return c.execute(f"select * from {t} where id = %s", (i,)).fetchall()
        case 3:
            return c.execute(f"delete from {t} where id = %s returning id", (i,)).fetchall()
        case 4:
            with c.transaction(force_rollback=i % 3 == 0):
                c.execute(f"update {t} set v = v || 'x' where id = %s", (i,))
                return c.execute(f"select v from {t} where id = %s", (i,)).fetchall()
        case 5:
            c.execute(f"set search_path = {'public' if i % 2 else 'pg_catalog, public'}")
            return c.execute("show search_path").fetchall()
        case 6:
            c.execute("set datestyle = 'SQL, DMY'" if i % 2 else "set datestyle = 'ISO, MDY'")
            return c.execute("select date '2020-02-01'::text").fetchall()
        case 7:
            return c.execute(f"select 1 / (id - {i}) from {t} where id = {i}").fetchall()
        case 8:
            with c.transaction(force_rollback=i % 2 == 1):
                c.execute("set local datestyle = 'German'")
                c.execute("set timezone = 'Asia/Tokyo'")
                return c.execute("select date '2020-02-01'::text").fetchall()
        case 9:
            return c.execute("select current_setting('timezone'), current_setting('search_path')").fetchall()
        case 10:
            return c.execute(f"with x as (insert into {t} values (%s, 'cte') on conflict do nothing returning id) "
                             "select count(*) from x", (i + 1000,)).fetchall()
        case 11:
            c.execute("create temp table if not exists tmpx(a int)")
            c.execute("insert into tmpx values (%s)", (i,))
            return c.execute("select count(*) from tmpx").fetchall()
        case 12:
            c.execute("discard all")
            return c.execute("select current_setting('timezone')").fetchall()
        case 13:
            return c.execute("select count(*) from tmpx").fetchall()
        case 14:
            with c.cursor().copy(f"copy (select * from {t} order by id) to stdout") as rows:
                return b"".join(bytes(r) for r in rows)
        case 15:
            with c.pipeline():
                found = [c.execute(f"select v from {t} where id = %s", (k,)) for k in range(i, i + 5)]
            return [f.fetchall() for f in found]
        case _:
            return step_tx(c, t, kind - 16, i)


def step_tx(c, t: str, kind: int, i: int):
    """Transactions whose statements may run on two servers, and names that both have to know."""
    read = f"select count(*), max(v) from {t} where id <= {i}"
    match kind:
        case 0:
            with c.transaction(force_rollback=i % 2 == 0):
                before = c.execute(read).fetchall()
                c.execute(f"update {t} set v = v || 'y' where id = %s", (i,))
                return before + c.execute(read).fetchall()
        case 1:
            c.execute("begin read only")
            found = c.execute(read).fetchall() + c.execute(f"select v from {t} where id = %s", (i,)).fetchall()
            c.execute("commit" if i % 2 else "rollback")
            return found
        case 2:
            c.execute("begin read only")
            c.execute(f"set intervalstyle = '{'iso_8601' if i % 2 else 'postgres'}'")
            shown = "select current_setting('intervalstyle')"  # before 15 an interval's text stays what it was in a kept plan
            found = c.execute(shown).fetchall()
            c.execute("commit" if i % 3 else "rollback")
            return found + c.execute(shown).fetchall()
        case 3:
            with c.transaction():
                c.execute("savepoint a")
                try:
                    c.execute(f"select 1 / (id - {i}) from {t} where id = {i}").fetchall()
                except psycopg.Error:
                    c.execute("rollback to a")
                c.execute(f"insert into {t} values (%s, 'sp') on conflict do nothing", (i + 2000,))
                return c.execute(read).fetchall()
        case 4:
            c.execute("deallocate all" if i % 3 == 0 else "select 1")
            c.execute(f"prepare byname(int) as select v from {t} where id = $1")
            return c.execute(f"execute byname({i})").fetchall()
        case 5:
            return c.execute(f"execute byname({i})").fetchall()
        case 6:
            c.execute("begin isolation level repeatable read")
            before = c.execute(read).fetchall()
            c.execute(f"delete from {t} where id = %s", (i,))
            found = before + c.execute(read).fetchall()
            c.execute("commit" if i % 2 else "rollback")
            return found
        case 7:
            c.execute("begin")
            first = c.execute(read).fetchall()
            c.execute("commit and chain")
            c.execute(f"insert into {t} values (%s, 'ch') on conflict do nothing", (i + 3000,))
            found = first + c.execute(read).fetchall()
            c.execute("rollback" if i % 2 else "commit")
            return found
        case 8:
            with c.cursor(name=f"cur{i}") as cur:
                cur.itersize = 3
                cur.execute(f"select id from {t} order by id limit 10")
                return cur.fetchall()
        case 9:
            c.execute("begin read only")
            c.execute(f"declare rc cursor for select id from {t} order by id")
            found = c.execute("fetch 3 from rc").fetchall()
            try:
                c.execute(f"insert into {t} values ({i})")
            except psycopg.Error as e:
                found.append((e.sqlstate,))
            c.execute("rollback")
            return found
        case 10:
            c.execute("prepare change(int) as update " + t + " set v = v || 'p' where id = $1 returning v")
            found = c.execute(f"execute change({i})").fetchall()
            c.execute("deallocate change")
            return found
        case _:
            c.execute(f"set statement_timeout = {300000 + i}; set lock_timeout = {200000 + i}")  # neither is to come
            return c.execute("select current_setting('statement_timeout'), current_setting('lock_timeout')").fetchall()


def outcome(c, t: str, kind: int, i: int):
    try:
        return step(c, t, kind, i)
    except psycopg.Error as e:
        if c.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            c.pgconn.exec_(b"rollback")  # not as a prepared statement: DEALLOCATE ALL may have taken it
        return "error", e.sqlstate


def selects(pool) -> list[int]:
    return [int(v) for v in column(pool, "select_cnt")]


VARIANTS = [{}, {"statement_level_load_balance": True}, {"read_consistency": "session"},
            {"disable_load_balance_on_write": "dml_adaptive", "statement_level_load_balance": True},
            {"read_consistency": "global"}, {"disable_load_balance_on_write": "trans_transaction"},
            {"pool_mode": "transaction"}, {"pool_mode": "transaction", "read_consistency": "session"},
            {"pool_mode": "transaction", "statement_level_load_balance": True,
             "disable_load_balance_on_write": "dml_adaptive"}]


def work_is_the_same(cluster, pool, threshold: int | None, kinds: list[tuple[int, int]]) -> None:
    for t in ("w_direct", "w_through"):
        cluster.primary.rows(f"drop table if exists {t}")
        cluster.primary.rows(f"create table {t}(id int primary key, v text)")
    with connect(cluster.primary.port, threshold) as direct, connect(pool.port, threshold) as through:
        for n, (kind, i) in enumerate(kinds):
            want = outcome(direct, "w_direct", kind, i)
            assert outcome(through, "w_through", kind, i) == want, (n, kind, i)


@pytest.mark.parametrize("seed", range(int(os.environ.get("PGT_SEEDS", len(VARIANTS)))))
def test_random_work_is_the_same_as_direct(cluster, make, seed):
    rnd = random.Random(seed)
    threshold = rnd.choice([None, 0, 3])
    balanced = make(**VARIANTS[seed % len(VARIANTS)])
    work_is_the_same(cluster, balanced, threshold,
                     [(rnd.randrange(28), rnd.randrange(KEYS)) for _ in range(ROUNDS)])
    counts = selects(balanced)
    assert sum(counts[i] for i in cluster.standbys) > 0, counts


# Without what keeps all later reads at the primary: temporary tables.
AT_HOME = [kind for kind in range(28) if kind not in (11, 13)] + [1, 2, 15] * 8


@pytest.mark.parametrize("threshold", [None, 0])
@pytest.mark.parametrize("pooling", ["session", "transaction"])
@pytest.mark.parametrize("conf", [{"standbys": 0, "read_consistency": "session"},
                                  {"statement_level_load_balance": True},
                                  {"standbys": 0, "load_balance_mode": False}], ids=["all", "some", "off"])
def test_random_work_with_reads_at_the_primary(cluster, make, conf, pooling, threshold):
    """The primary's weight is one, or nothing is balanced: what is read there goes by the session's own link, mostly
    without a second look."""
    pool = make(primary=1, pool_mode=pooling, **conf)
    rnd = random.Random(len(conf))
    work_is_the_same(cluster, pool, threshold, [(rnd.choice(AT_HOME), rnd.randrange(KEYS)) for _ in range(ROUNDS * 3 // 4)])
    counts = selects(pool)
    away = sum(counts[i] for i in cluster.standbys)
    assert counts[cluster.at] > 0 and (away > 0) == ("standbys" not in conf), counts


def test_sessions_share_the_standbys_evenly(cluster, balanced):
    """Twenty sessions with fifty reads each: ten go to each standby, none of their reads to the primary."""
    before = selects(balanced)
    sessions = [connect(balanced.port, None) for _ in range(20)]
    for c in sessions:
        for _ in range(50):
            assert c.execute("select 42").fetchone() == (42,)
        c.close()
    done = [b - a for a, b in zip(before, selects(balanced))]
    assert done[cluster.at] == 0, done
    assert sum(done) == 1000, done
    assert all(abs(done[i] - 500) <= 50 for i in cluster.standbys), done


def test_explain_says_where_and_why(cluster, balanced):
    c = connect(balanced.port, None)
    cluster.primary.rows("create table if not exists seen(a int)")
    cluster.primary.rows("create sequence if not exists s")

    def explain(sql: str):
        return c.execute(f"pgpool explain {sql}").fetchone()

    read = explain("select * from seen")
    assert int(read[0]) in cluster.standbys and read[1:3] == ("standby", "either") and read[4] == "seen"
    for sql in ("insert into seen values (1)", "select nextval('s')", "select * from seen for update",
                "select pg_advisory_lock(1)", "with x as (delete from seen returning *) select * from x"):
        node, role, *_ = explain(sql)
        assert (int(node), role) == (cluster.at, "primary"), sql
    c.close()


def test_volatile_function_in_a_view_stays_on_the_primary(cluster, balanced):
    cluster.primary.rows("create sequence if not exists hidden")
    cluster.primary.rows("create or replace view innocent as select nextval('hidden') as n")
    cluster.primary.rows("create or replace view more_innocent as select n from innocent")
    with connect(balanced.port, None) as c:
        first = c.execute("select n from more_innocent").fetchone()[0]
        assert c.execute("select n from more_innocent").fetchone()[0] == first + 1


def test_standby_lost_in_mid_run_is_not_noticed(cluster, balanced, start_pool):
    """Reads that its server did not begin to answer are made elsewhere; no session ends."""
    lost = cluster.nodes[cluster.standbys[1]]
    cluster.primary.rows("alter system reset synchronous_standby_names")
    cluster.primary.reload()
    sessions = [connect(balanced.port, None) for _ in range(10)]
    before = sum(selects(balanced))
    for c in sessions:
        assert c.execute("select 1").fetchone() == (1,)
    lost.stop()
    for _ in range(20):
        for c in sessions:
            assert c.execute("select 1").fetchone() == (1,)
    assert sum(selects(balanced)) - before == 210, "each read counts once, also one that was made twice"
    for c in sessions:
        c.close()
    lost.start()
    wait_settled(balanced, cluster.at)
    with logged_in(balanced) as w:
        assert w.value("select 2") == "2"
    assert len(show(balanced)) == 3
    cluster.primary.rows("alter system set synchronous_standby_names = '2 (*)'")
    cluster.primary.reload()
