# SPDX-License-Identifier: PostgreSQL
"""Native replication: a write whose rows are chosen by what it reads (the next job of a queue) chooses the same ones on all nodes,
whoever writes at the same time. PGT_SEED as elsewhere."""
import os
import random
import re
import threading
import time

import pytest

from pgt import waits
from pgt import wire as w
from pgt.native import error_of, one

SEEDS = [s for s in os.environ.get("PGT_SEED", "1,2").split(",") if s]
QUIET = {"log_statement": "none", "deadlock_timeout": "200ms"}
NEXT = "select id from jobs where who is null order by prio, id limit 1"
# A job is taken, as queues do it. %s: by whom.
TAKE = {
    "min": "update jobs set who = %s, n = n + 1 where id = (select min(id) from jobs where who is null)",
    "limit": f"update jobs set who = %s, n = n + 1 where id in ({NEXT})",
    "skip locked": f"update jobs set who = %s, n = n + 1 where id = ({NEXT} for update skip locked) returning id",
    "with": f"with j as ({NEXT} for update) update jobs set who = %s, n = n + 1 from j where jobs.id = j.id returning jobs.id",
    "with skip locked": f"with j as ({NEXT} for update skip locked) update jobs set who = %s, n = n + 1 from j where jobs.id = j.id",
    "view": "update jobs set who = %s, n = n + 1 where id = (select min(id) from free)",
    "delete": f"delete from jobs where id = ({NEXT}) and %s > 0",
    "merge": f"merge into jobs using ({NEXT}) j on jobs.id = j.id when matched then update set who = %s, n = n + 1",
    "move": f"with d as (delete from jobs where id in ({NEXT}) returning *) insert into done select id, %s, n from d on conflict (id) do nothing",
    "insert": "insert into done select id, %s, n from jobs where who is not null order by n, id desc limit 1 on conflict (id) do nothing",
}


def ext(c, sql):
    c.send(w.parse(sql), w.bind(), w.execute(), w.SYNC)
    return c.ready(seconds=90)


def queue(it, jobs=200):
    with it.client() as c:
        one(c, "create table jobs (id int primary key, who int, n int default 0, prio int default 0)")
        one(c, "create table done (id int primary key, who int, n int)")
        one(c, "create view free as select * from jobs where who is null")
        one(c, f"insert into jobs (id, prio) select i, i % 3 from generate_series(1, {jobs}) i")


class Workers:
    """Clients that do what they are told at once, each a while; what they were answered, by SQLSTATE."""

    def __init__(self, it, works, clients=8, seconds=2, seed="1"):
        self.it, self.works, self.seed, self.until = it, works, seed, time.monotonic() + seconds
        self.done, self.lost, self.errors = [0] * clients, {}, []
        threads = [threading.Thread(target=self.lives, args=(k,)) for k in range(clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not self.errors, self.errors[:3]

    def lives(self, k):
        rnd = random.Random(f"{self.seed} {k}")
        try:
            with self.it.client() as c:
                while (time.monotonic() < self.until or self.done[k] == 0) and not self.errors:
                    self.transaction(c, self.works(rnd, k + 1))
                    self.done[k] += 1
        except Exception as e:  # told by whoever waits for the threads
            self.errors.append(repr(e))

    def transaction(self, c, sqls):
        by = ext if random.random() < 0.5 else lambda c, sql: c.simple(sql, seconds=90)
        for sql in sqls:
            got = by(c, sql)
            bad = [m for m in got if m.type == "E"]
            if not bad:
                continue
            state = bad[0].sqlstate
            self.lost[state] = self.lost.get(state, 0) + 1
            if state not in ("40P01", "40001"):
                self.errors.append((sql, state, bad[0].text))
            if got[-1].body == b"E":
                one(c, "rollback")
            return


def plain(rnd, k):
    """Others write to the table by key, as they add jobs and give them back."""
    return rnd.choice([f"insert into jobs (id, prio) values ({k * 100000 + rnd.randrange(90000)}, {rnd.randrange(3)}) on conflict (id) do nothing",
                       f"update jobs set who = null, prio = {rnd.randrange(3)} where id = {rnd.randrange(1, 200)}"])


def takes(rnd, k):
    return [TAKE[rnd.choice(list(TAKE))] % k if rnd.random() < 0.5 else plain(rnd, k)]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_jobs_on_all(pair, seed):
    """Each by itself, beside others who write by key: nobody fails, as none has locked anything before."""
    it = pair(3, num_init_children=2, log_min_messages="warning", conf_of_nodes=QUIET)
    queue(it)
    crowd = Workers(it, takes, seed=seed)
    assert crowd.lost == {}
    assert it.equal(tables=("jobs", "done"))
    assert [r[3] for r in it.status()] == ["up"] * 3


def transactions(rnd, k):
    first = [plain(rnd, k)] if rnd.random() < 0.5 else []
    return ["begin", *first, *takes(rnd, k), *takes(rnd, k), rnd.choice(["commit", "commit", "rollback"])]


@pytest.mark.parametrize("seed", SEEDS)
def test_within_transactions(pair, seed):
    """Who has written before may lose against another one who has (40P01); nothing differs."""
    it = pair(3, num_init_children=2, log_min_messages="warning", conf_of_nodes=QUIET)
    queue(it)
    crowd = Workers(it, transactions, seed=seed)
    assert set(crowd.lost) <= {"40P01"}
    assert it.equal(tables=("jobs", "done"))
    assert [r[3] for r in it.status()] == ["up"] * 3


# ---- one after the other ----


def held_at_commit(it, c):
    """Whoever changes a job so that its prio is negative commits on the main node, and on the other one when advisory lock 5 is free there."""
    one(c, "create function waits() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(5); return null; end $$")
    one(c, "create constraint trigger late after insert or update on jobs deferrable initially deferred for each row "
           "when (new.prio < 0) execute function waits()")
    lock = w.Wire(it.nodes[1].address)
    lock.login()
    one(lock, "select pg_advisory_lock(5)")
    return lock


def by_sql(c, sql):
    one(c, f"prepare take as {sql}")
    c.send(w.query("execute take"))


BY = {
    "simple": lambda c, sql: c.send(w.query(sql)),
    "extended": lambda c, sql: c.send(w.parse(sql), w.bind(), w.execute(), w.SYNC),
    "transaction": lambda c, sql: (one(c, "begin"), c.send(w.query(sql))),
    "begun": lambda c, sql: (one(c, "begin; select 1"), c.send(w.query(sql))),
    "several": lambda c, sql: c.send(w.query(f"select 1; {sql}; select 2")),
    "prepare": by_sql,
}


@pytest.mark.parametrize("how", BY)
@pytest.mark.parametrize("take", ["min", "skip locked", "move"])
def test_who_is_not_committed_everywhere_is_waited_for(pair, how, take):
    """The main node has committed that job 3 is the next one, the other has not: it must not give another one away meanwhile."""
    it = pair()
    queue(it, 3)
    with it.client() as a, it.client() as b:
        lock = held_at_commit(it, a)
        one(b, "select 1")
        a.send(w.query("update jobs set prio = -1, who = null where id = 3; insert into jobs values (0, null, 0, -2)"))
        waits.wait_for("it is committed on the main node", lambda: it.nodes[0].value("select count(*) from jobs where prio < 0") == "2")
        BY[how](b, TAKE[take] % 7)
        waits.wait_for("the other node chooses, or waits",
                       lambda: it.nodes[1].value("select count(*) from pg_locks where not granted") == "2" or not b.is_quiet(0))
        one(lock, "select pg_advisory_unlock(5)")
        for c in (a, b):
            assert not [m for m in c.ready(seconds=60) if m.type == "E"]
        if how in ("transaction", "begun"):
            one(b, "commit")
        lock.bye()
    assert it.equal(tables=("jobs", "done"))
    assert it.nodes[1].value("select count(*) from jobs where id = 0 and who is null") == "0"


# ---- what is locked, and named where it is not ----


def locks_of(it, c, sql):
    """The LOCK statements that both nodes got for it, and what the client was warned of."""
    before = [len(n.log()) for n in it.nodes]
    got = c.simple(sql)
    assert not [m for m in got if m.type == "E"], [m.text for m in got if m.type == "E"]
    told = [m.text for m in got if m.type == "N"]
    locks = [sorted(set(re.findall(r'LOCK TABLE [^;\n]* MODE', n.log()[at:]))) for n, at in zip(it.nodes, before)]
    assert locks[0] == locks[1], locks
    return locks[0] + told


def test_which_tables_are_locked(pair):
    it = pair()
    queue(it, 3)
    with it.client() as c:
        one(c, "create materialized view m as select 1 as id; create temp table own (id int); create schema x; create table x.jobs (id int)")
        for sql, locks in {
            TAKE["min"] % 1: ['"jobs" IN SHARE ROW EXCLUSIVE'],
            TAKE["skip locked"] % 2: ['"jobs" IN EXCLUSIVE'],
            TAKE["view"] % 3: ['"free" IN SHARE ROW EXCLUSIVE'],
            "insert into done select id from x.jobs": ['"x"."jobs" IN SHARE'],
            "delete from done using x.jobs where done.id = jobs.id": ['"x"."jobs" IN SHARE'],
            "update jobs set n = 1 from done, x.jobs j where j.id = jobs.id": ['"done" IN SHARE', '"x"."jobs" IN SHARE ROW EXCLUSIVE'],
            "create table copied as select jobs.* from jobs, done": ['"jobs", "done" IN SHARE'],
            "with d as (delete from done returning id) select count(*) from d, jobs": ['"jobs" IN SHARE'],
            "explain (analyze, costs off, timing off, summary off) delete from done where id in (select id from jobs)": ['"jobs" IN SHARE'],
            "explain delete from done where id in (select id from jobs)": [],
            "update jobs set n = 1 where id = 1": [], "delete from jobs where n > 5": [], "select count(*) from jobs, done": [],
            "insert into done values (7) on conflict (id) do update set n = 1": [],
            "update jobs set n = 1 where id in (select id from m)": [], "update jobs set n = 1 where id in (select id from own)": [],
            "update jobs set n = 1 where id in (select 1 from pg_class)": [],
            "update jobs set n = 1 where id in (select 1 from information_schema.tables)": [],
            "with done as (select 1 as id) update jobs set n = 1 from done where done.id = jobs.id": [],
        }.items():
            assert locks_of(it, c, sql) == [f"LOCK TABLE {what} MODE" for what in locks], sql
    assert it.equal(tables=("jobs", "done"))


def now_is(it, **conf):
    it.pool.reload(**conf)

    def known():
        with it.client() as c:
            return all(c.value(f"pgpool show {name}") == value for name, value in conf.items())

    waits.wait_for("the settings are read", known)


def test_what_is_not_locked_is_named(pair):
    """By subselect_lock, or as the user may not: who may only read a table cannot lock it. Nobody gets 42501 for that."""
    it = pair(num_init_children=1, subselect_lock="target")
    queue(it, 3)
    named = 'the result of "reading jobs" may differ between nodes'
    with it.client() as c:
        assert locks_of(it, c, TAKE["min"] % 1) == ['LOCK TABLE "jobs" IN SHARE ROW EXCLUSIVE MODE']
        assert locks_of(it, c, "insert into done select id from jobs") == [named]
        one(c, "begin isolation level repeatable read")
        assert locks_of(it, c, TAKE["min"] % 2) == ['LOCK TABLE "jobs" IN SHARE ROW EXCLUSIVE MODE'], "its snapshot comes behind the lock"
        one(c, "commit")
    with it.client() as c:
        one(c, "begin isolation level repeatable read; select 1 from done")
        assert locks_of(it, c, TAKE["min"] % 3) == [named], "it has one"
        one(c, "commit")
    now_is(it, subselect_lock="off")
    with it.client() as c:
        assert locks_of(it, c, TAKE["min"] % 1) == [named]
        one(c, "create role clerk login; grant insert, select on done, q to clerk; grant select on jobs to clerk; grant usage on q_id_seq to clerk")
    now_is(it, subselect_lock="all", replication_nondeterministic="error")
    with it.client(user="clerk") as c:
        assert [error_of(c.simple("insert into done select 9, max(n) from jobs")).sqlstate] == ["0A000"]
        c.send(w.parse("insert into done select 9, max(n) from jobs"), w.bind(), w.execute(), w.SYNC)
        assert error_of(c.ready()).sqlstate == "0A000"
        one(c, "insert into q (v) values (1)")
        assert ext(c, "insert into q (v) values (2)")[-2].type == "C"
        c.send(w.query("copy q (v) from stdin"))
        c.read_until("G")
        c.send(w.copy_data(b"3\n"), w.COPY_DONE)
        assert [m.type for m in c.ready()] == ["C", "Z"]
    assert it.equal(tables=("jobs", "done", "q")) and it.nodes[1].value("select count(*) from q") == "3"


def test_snapshot_isolation_needs_no_lock(pair):
    """Its snapshots are the same on all nodes: who loses is told (40001)."""
    it = pair(3, num_init_children=2, log_min_messages="warning", backend_clustering_mode="snapshot_isolation",
              conf_of_nodes={"deadlock_timeout": "200ms", "default_transaction_isolation": "repeatable read"})
    queue(it)
    # Row locks are none of its own: SKIP LOCKED is named.
    forms = [form for name, form in TAKE.items() if "skip" not in name]

    def works(rnd, k):
        took = [rnd.choice(forms) % k] if rnd.random() < 0.5 else [plain(rnd, k)]
        return took if rnd.random() < 0.6 else ["begin", *took, rnd.choice(forms) % k, "commit"]

    Workers(it, works, seed=SEEDS[0])
    assert it.equal(tables=("jobs", "done"))
    assert not [n for n in it.nodes if "LOCK TABLE" in n.log()]
    assert [r[3] for r in it.status()] == ["up"] * 3
