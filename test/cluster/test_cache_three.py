# SPDX-License-Identifier: PostgreSQL
"""test_cache_three: T50 on three nodes: random DML, DDL and DCL, through pgpool and around it, against cached reads that are balanced over two
standbys. Who writes sees his own writes at once, in transactions, too, and nothing that was rolled back; others see nothing that is older than what a
standby may be behind; when all is quiet every cached result is what the primary says. PGT_SEED sets the seed, PGT_MINUTES how long (30)."""
import itertools
import os
import random
import signal
import threading

import pytest
from test_cache_standby import SETTINGS
from test_cache_stream import LOGICAL, good, settled
from test_monitor import show

from pgt import postgres, waits
from pgt.trio import make_standby, wait_replayed
from pgt.wire import SYNC, Wire, bind, describe, execute, parse

MINUTES = float(os.environ.get("PGT_MINUTES", "30"))
SEED = int(os.environ.get("PGT_SEED", "5050"))
KEYS, OURS, AROUND = 24, 6, 2  # rows; clients through pgpool, and others; each writes keys of its own
ROUND_S = 15
BEHIND_S = 15.0  # nobody is told what was replaced so long ago
SCHEMA = ("create table t (id int primary key, v bigint, n int)", f"insert into t select i, 0, i % 5 from generate_series(0, {KEYS - 1}) i",
          "create table p (id int primary key, v bigint, n int) partition by range (id)", "create table p1 partition of p for values from (0) to (12)",
          "create table p2 partition of p for values from (12) to (1000)", "insert into p select * from t", "alter table p1 replica identity full",
          "create table u (id int primary key, t_id int references t on delete cascade on update cascade)", "insert into u select i, i from generate_series(0, 11) i",
          "create view w as select id, v from t where n < 3", "create table r (id int, who text)", "alter table r enable row level security",
          "create policy x on r using (who = current_user)", "insert into r values (1, 'three_one'), (2, 'postgres')",
          "do $$begin if not exists (select from pg_roles where rolname = 'three_one') then create role three_one; end if; end$$",
          "grant select on all tables in schema public to three_one")
# What is compared when all is quiet; {k}: a key.
READS = ("select v from t where id = {k}", "select v from p where id = {k}", "select sum(v) from t where id in ({k}, 3, 7)", "select v from p where id in ({k}, 13)",
         "select * from w order by id", "select sum(v), count(*) from p", "select count(*) from t join u on u.t_id = t.id", "select x.v from t x, p y where x.id = y.id and x.id = {k}",
         "select x.v, y.t_id from t x join u y on y.t_id = x.id where x.id in ({k}, 5)", "select x.v, y.v from p x join p y on y.id = x.n where x.id = {k} and y.id in (1, 2, {k})",
         "select * from r order by id", "select count(*) from p1", "select t_id from u where id = {k}", "select v from t where n = 2 order by id")
DDL = ("alter table t add column if not exists extra int default 1", "alter table t drop column if exists extra", "create or replace view w as select id, v from t where n < 4",
       "create or replace view w as select id, v from t where n < 2", "alter table p detach partition p2", "alter table p attach partition p2 for values from (12) to (1000)",
       "create index if not exists ti on t (n)", "drop index if exists ti", "revoke select on t from three_one", "grant select on t to three_one",
       "alter table r disable row level security", "alter table r enable row level security", "delete from u where id = 3", "insert into u values (3, 3) on conflict do nothing",
       "update u set t_id = 5 where id = 4", "truncate u; insert into u select i, i from generate_series(0, 11) i")


def told(w: Wire, sql: str, extended: bool = False):
    """Rows, or the code of the error."""
    if extended:
        w.send(parse(sql) + bind([]) + describe("", "P") + execute() + SYNC)
        found = w.ready()
    else:
        found = w.simple(sql)
    errors = [m.fields["C"] for m in found if m.type == "E"]
    return errors[0] if errors else [m.row() for m in found if m.type == "D"]


class Value:
    """What is known of one row: who writes it is one thread."""

    def __init__(self):
        self.history = [(0, 0.0)]  # versions and when they were acknowledged
        self.taken_back = set()

    def newest_before(self, when: float) -> int:
        return max((v for v, at in self.history if at <= when), default=0)


class Worker(threading.Thread):
    def __init__(self, model, number: int, address, is_ours: bool):
        super().__init__()
        self.model, self.is_ours = model, is_ours
        self.pick = random.Random(SEED * 1000 + number)
        self.keys = [k for k in range(KEYS) if k % (OURS + AROUND) == number]
        self.w = Wire(address, seconds=60)
        assert self.w.login()[-1].type == "Z"
        assert told(self.w, "set lock_timeout = '300ms'") == []
        self.failure = None

    def run(self) -> None:
        try:
            while not self.model.stops.is_set():
                self.step()
        except Exception as e:  # pylint: disable=broad-except
            self.failure = e
            self.model.stops.set()

    def step(self) -> None:
        dice = self.pick.random()
        if dice < 0.003:
            told(self.w, self.pick.choice(DDL))
        elif dice < 0.025:
            self.write()
        elif dice < 0.04:
            self.transaction()
        elif dice < 0.06:
            self.snapshot()
        elif dice < 0.4:
            self.read_own()
        else:
            self.read_others()

    def read(self, table: str, key: int):
        sql = self.pick.choice((f"select v from {table} where id = {key}", f"select v from {table} where id in ({key})", f"select max(v) from {table} where id = {key}"))
        rows = told(self.w, sql, self.pick.random() < 0.5)
        if isinstance(rows, str) or not rows or rows[0][0] is None:
            return None, sql  # an error of DDL beside it, or a partition that is not there
        return int(rows[0][0]), sql

    def statement(self, table: str, key: int, version: int) -> str:
        where = self.pick.choice(8 * (f"id = {key}",) + (f"id in ({key}, -1)", f"id >= {key} and id <= {key}"))
        return f"update {table} set v = {version} where {where}"

    def write(self) -> None:
        table, key, version = self.pick.choice("tp"), self.pick.choice(self.keys), next(self.model.versions)
        found = self.w.simple(self.statement(table, key, version))
        if [m for m in found if m.type == "C" and m.body == b"UPDATE 1\0"]:
            self.model.values[table, key].history.append((version, waits.now()))

    def transaction(self) -> None:
        table, key, version = self.pick.choice("tp"), self.pick.choice(self.keys), next(self.model.versions)
        value, ends = self.model.values[table, key], self.pick.choice(("commit", "rollback", "rollback to s"))
        told(self.w, "begin")
        was, sql = self.read(table, key)
        if self.is_ours and was is not None:
            assert was == value.history[-1][0], f"its own write in a transaction: {sql}: {was}, not {value.history[-3:]}"
        told(self.w, "savepoint s")
        if ends != "commit":
            value.taken_back.add(version)
        done = self.w.simple(self.statement(table, key, version))
        is_done = bool([m for m in done if m.type == "C" and m.body == b"UPDATE 1\0"])
        now, sql = self.read(table, key)
        assert not is_done or now in (version, None), f"what it has just written: {sql}: {now}, not {version}"
        told(self.w, ends)
        tag = self.w.simple("commit" if ends != "rollback" else "select 1")
        if ends == "commit" and is_done and not [m for m in done if m.type == "E"]:
            value.history.append((version, waits.now()))
        assert tag[-1].body == b"I"

    def snapshot(self) -> None:
        told(self.w, "begin isolation level repeatable read")
        sql = f"select v from t where id = {self.pick.randrange(KEYS)}"  # a partition that is attached shows in an older snapshot, too
        first = told(self.w, sql)
        for _ in range(3):
            again = told(self.w, sql, self.pick.random() < 0.5)
            assert again == first or isinstance(first, str) or isinstance(again, str), f"one snapshot: {sql}: {first}, then {again}"
        told(self.w, "commit")

    def read_own(self) -> None:
        table, key = self.pick.choice("tp"), self.pick.choice(self.keys)
        value = self.model.values[table, key]
        found, sql = self.read(table, key)
        if self.is_ours and found is not None:
            assert found == value.history[-1][0], f"its own write: {sql}: {found}, not {value.history[-3:]}"

    def read_others(self) -> None:
        table, key = self.pick.choice("tp"), self.pick.randrange(KEYS)
        value, begun = self.model.values[table, key], waits.now()
        in_block = self.is_ours and self.pick.random() < 0.3
        if in_block:
            told(self.w, "begin")
            told(self.w, self.pick.choice(("select 1", "savepoint a", "select count(*) from u")))
        found, sql = self.read(table, key)
        if in_block:
            told(self.w, "commit")
        if not self.is_ours or found is None:
            return
        assert found not in value.taken_back, f"what was rolled back: {sql}: {found}"
        least = value.newest_before(begun - BEHIND_S)
        assert found >= least, f"too old: {sql}: {found}, and {least} was written {BEHIND_S} s ago"


class Model:
    def __init__(self, nodes, pool):
        self.nodes, self.pool = nodes, pool
        self.versions = itertools.count(1)
        self.values = {(table, key): Value() for table in "tp" for key in range(KEYS)}
        self.stops = threading.Event()

    def round(self, number: int, seconds: float) -> None:
        self.stops.clear()
        workers = [Worker(self, i, self.pool.address if i < OURS else self.nodes[0].address, i < OURS) for i in range(OURS + AROUND)]
        for i, worker in enumerate(workers):
            worker.pick.seed((SEED, number, i).__hash__())
            worker.start()
        self.stops.wait(seconds)
        self.stops.set()
        for worker in workers:
            worker.join(120)
            worker.w.bye()
        for worker in workers:
            assert worker.failure is None, f"seed {SEED}, round {number}: {worker.failure!r}"
        self.compare(number)

    def compare(self, number: int) -> None:
        """All is quiet: what is told through pgpool, twice, is what the primary has."""
        primary = self.nodes[0]
        wait_replayed(*self.nodes)
        settled(self.pool, primary)
        pick = random.Random(SEED + number)
        with Wire(self.pool.address, seconds=60) as ours, Wire(primary.address, seconds=60) as direct:
            for w in (ours, direct):
                assert w.login()[-1].type == "Z"
            for role in ("reset role", "set role three_one"):
                assert told(ours, role) == told(direct, role) == []
                for text in READS:
                    sql = text.replace("{k}", str(pick.randrange(KEYS)))
                    want = told(direct, sql)
                    waits.wait_for(f"seed {SEED}, round {number}: {sql}", lambda: told(ours, sql) == want, 60)  # noqa: B023
                    for extended in (True, False, True, False):
                        assert told(ours, sql, extended) == want, f"seed {SEED}, round {number}: {sql}"


@pytest.fixture
def nodes():
    primary = postgres.start_postgres({**LOGICAL, "wal_keep_size": "256MB", "deadlock_timeout": "200ms"}, roles=False)
    all_of_them = [primary, make_standby(primary, "node1"), make_standby(primary, "node2")]
    yield all_of_them
    for node in reversed(all_of_them):
        node.stop(signal.SIGQUIT)


def run_for(nodes, start_pool, minutes: float, **conf):
    for sql in SCHEMA:
        nodes[0].rows(sql)
    pool = start_pool(*(n.address for n in nodes), **{**SETTINGS, "backend_weight0": 1, "backend_weight2": 1, "backend_application_name2": "node2", "num_init_children": 2, "worker_fill": 1,
                                                      "read_consistency": "session", "memqcache_invalidation": "wal", **conf})
    waits.wait_for("they are known", lambda: [n["role"] for n in show(pool)] == ["primary", "standby", "standby"], 60)
    good(pool)
    model, end = Model(nodes, pool), waits.now() + minutes * 60
    for number in itertools.count(1):
        model.round(number, ROUND_S)
        if waits.now() >= end:
            break
    with Wire(pool.address) as w:
        w.login()
        hits, misses = (int(x) for x in w.rows("show pool_cache")[0][:2])
    assert hits > 100, (hits, misses)
    print(f"seed {SEED}: {number} rounds, {next(model.versions)} writes, {hits} hits, {misses} misses")


@pytest.mark.slow
@pytest.mark.timeout(MINUTES * 60 + 600)
@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_random_writes_on_three_nodes(nodes, start_pool, mode):
    run_for(nodes, start_pool, MINUTES / 2, pool_mode=mode)
