# SPDX-License-Identifier: PostgreSQL
"""backend_clustering_mode = snapshot_isolation: what is read on whichever node is of one order of transactions, whoever dies."""
import contextlib
import os
import random
import signal
import threading
import time

import pytest

from pgt import procs, waits
from pgt import wire as w
from pgt.native import error_of, one

CONF = {"backend_clustering_mode": "snapshot_isolation"}
NODE = {"default_transaction_isolation": "repeatable read"}
SECONDS = int(os.environ.get("PGT_SNAPSHOT_SECONDS", "60"))
KEYS = 4
SLOW = [pytest.mark.slow, pytest.mark.timeout(SECONDS + 180)]
VECTOR = "select string_agg(n::text, ',' order by id) from counted"


def si(pair, count=2, **conf):
    it = pair(count, conf_of_nodes={**NODE, **conf.pop("conf_of_nodes", {})}, **{**CONF, **conf})
    with it.client() as c:
        one(c, "create table counted (id int primary key, n int)")
        one(c, f"insert into counted select i, 0 from generate_series(1, {KEYS}) i")
    return it


def ext(c, sql, params=()):
    c.send(w.parse(sql), w.bind(params), w.execute(), w.SYNC)
    return c.ready(seconds=60)


def reader_of(it, node):
    """A client whose reads go to that node."""
    while True:
        c = it.client()
        if int(c.value("select current_setting('port')")) == it.nodes[node].port:
            return c
        c.bye()


def nothing_open(it):
    waits.wait_for("no transaction is open", lambda: not it.nodes[0].rows("select 1 from pg_stat_activity where state like 'idle in%'"))


# ---- one client ----


def test_statements_by_both_protocols(pair):
    it = si(pair)
    with it.client() as c:
        one(c, "insert into t (id, v) values (1, 'a'); update t set v = 'b'")
        one(c, "begin; insert into t (id) values (2)")
        assert c.value("select count(*) from t") == "2"
        one(c, "commit")
        one(c, "do $$ begin insert into t values (3, 'x', '2000-01-01', '3b65c6e3-fdd7-4d73-9927-b98059906ac0'); end $$")
        for sql in ("insert into t (id) values (4)", "begin", "insert into t (id) values (5)", "select count(*) from t", "commit"):
            assert not [m for m in ext(c, sql) if m.type == "E"]
        # As lib/pq does it: the unnamed statement is prepared, then bound in a sequence of its own.
        for sql in ("select count(*)::text from t where id < $1", "insert into t (id) values ($1) returning id::text",
                    "select max(length(v) + length(current_user)) < 0 from t where id < $1"):
            c.send(w.parse(sql), w.describe(""), w.SYNC)
            assert [m.type for m in c.ready()] in (["1", "t", "T", "Z"],)
            c.send(w.bind(["9"]), w.execute(), w.SYNC)
            assert [m.type for m in c.ready()] == ["2", "D", "C", "Z"]
        # A pipeline with its own transaction; and one that fails.
        c.send(w.parse("begin"), w.bind(), w.execute(), w.parse("insert into t (id) values (6)"), w.bind(), w.execute(),
               w.parse("commit"), w.bind(), w.execute(), w.SYNC)
        assert [m.type for m in c.ready()] == ["1", "2", "C"] * 3 + ["Z"]
        assert error_of(c.simple("insert into t (id) values (6)")).sqlstate == "23505"
        assert error_of(ext(c, "select 1/0")).sqlstate == "22012"
        assert c.simple("select 1; select 2")[-1].body == b"I"
        one(c, "vacuum t")
        one(c, "create index concurrently on t (v)")
        assert error_of(c.simple("do $$ begin commit; end $$")).sqlstate == "2D000"
        assert it.equal() and c.value("select count(*) from t") == "7"
        assert c.simple("begin; select 1; savepoint a; select 1/0")[-1].body == b"E"
        one(c, "rollback to a; insert into t (id) values (8); commit and chain")
        with it.client() as other:
            one(other, "update counted set n = 3")
        assert c.value("select sum(n) from counted") == "12"
        one(c, "insert into t (id) values (10); rollback")
        assert it.equal() and c.value("select count(*) from t") == "8"
    nothing_open(it)


def test_a_snapshot_is_of_one_moment(pair):
    it = si(pair)
    for node in (0, 1):
        with reader_of(it, node) as c, it.client() as other:
            one(c, "begin")
            assert int(c.value("select current_setting('port')")) == it.nodes[node].port
            one(other, f"update counted set n = {node + 1} where id = 1")
            assert c.value("select n from counted where id = 1") == str(node)
            one(c, "update counted set n = 0 where id = 2")
            assert c.value("select n from counted where id = 1") == str(node), "read on the main node now, of the same moment"
            assert error_of(c.simple("update counted set n = 9 where id = 1")).sqlstate == "40001"
            one(c, "rollback")
    assert it.equal(tables=("counted",))


def test_a_text_without_a_statement_leaves_nothing_open(pair):
    """Drivers ping so: what they read next is not of the moment of that."""
    it = si(pair)
    for node in (0, 1):
        with reader_of(it, node) as c, it.client() as other:
            for n, ping in enumerate(("", ";", "-- ping", "/* ping */ ;")):
                assert c.simple(ping)[-1].body == b"I"
                one(other, f"update counted set n = {node * 10 + n} where id = 1")
                assert c.value("select n from counted where id = 1") == str(node * 10 + n)
            assert c.simple("begin;")[-1].body == b"T"
            assert c.simple("")[-1].body == b"T"
            one(c, "rollback")
    nothing_open(it)


def test_who_waits_for_a_row_gets_40001_on_all(pair):
    it = si(pair)
    with it.client() as a, it.client() as b:
        one(a, "begin; update counted set n = 5 where id = 1")
        b.send(w.query("update counted set n = 6 where id = 1"))
        waits.wait_for("it waits", lambda: it.nodes[0].rows("select 1 from pg_stat_activity where wait_event_type = 'Lock'"))
        one(a, "commit")
        assert error_of(b.ready()).sqlstate == "40001"
        one(b, "update counted set n = 6 where id = 1")
    assert it.equal(tables=("counted",))


def test_the_level_is_looked_at(pair):
    it = si(pair)
    with it.client() as c:
        for level in ("read committed", "serializable"):
            one(c, f"begin isolation level {level}")
            e = error_of(c.simple("select 1"))
            assert e.sqlstate == "55000" and level in e.text and c.simple("rollback")[-1].body == b"I"
        one(c, "begin; set transaction isolation level repeatable read; lock table counted; select 1; commit")
        one(c, "set default_transaction_isolation = 'read committed'")
        assert error_of(c.simple("select 1")).sqlstate == "55000"
        assert error_of(ext(c, "insert into t (id) values (1)")).sqlstate == "55000"
        assert c.value("show transaction_isolation") == "read committed"
        one(c, "set default_transaction_isolation = 'repeatable read'")
        one(c, "create role other login superuser")
    it.nodes[1].rows("alter role other set default_transaction_isolation = 'read committed'")
    with it.client(user="other") as c:
        e = error_of(c.simple("update counted set n = 1"))
        assert e.sqlstate == "55000" and "node 1" in e.text and "read committed" in e.text
    assert it.equal()


# ---- who waits for whom ----

SLOW_COMMIT = """\
create function late() returns trigger language plpgsql as $$ begin
  if new.n = 1000 then perform pg_advisory_xact_lock(1); end if; return null; end $$;
create constraint trigger late after update on counted deferrable initially deferred for each row execute function late()"""


def reasons(it):
    with it.client() as c:
        return sorted(r[-1].decode() for r in c.rows("show pool_queue"))


def hanging_commit(it, c):
    """The COMMIT of this client hangs on the main node; what lets it go on."""
    lock = w.Wire(it.nodes[0].address)
    lock.login()
    one(lock, "select pg_advisory_lock(1)")
    c.send(w.query("update counted set n = 1000 where id = 1"))
    waits.wait_for("it commits", lambda: it.nodes[0].rows("select 1 from pg_stat_activity where wait_event = 'advisory'"))
    return lock


def test_a_wait_has_a_limit(pair):
    it = si(pair, snapshot_wait_timeout="1500ms")
    with it.client() as c:
        one(c, SLOW_COMMIT)
    with it.client() as a, it.client() as b, it.client() as d:
        lock = hanging_commit(it, a)
        b.send(w.query("select 1"))
        waits.wait_for("it waits", lambda: reasons(it) == ["snapshot"] or not b.is_quiet(0))
        e = error_of(b.ready())
        assert e.sqlstate == "55P03" and "snapshot" in e.text
        lock.bye()
        assert [m.type for m in a.ready()] == ["C", "Z"]
        assert b.value("select n from counted where id = 1") == "1000"
        # The other way round: a snapshot that hangs on a node keeps a COMMIT waiting.
        one(d, "begin; update counted set n = 7 where id = 2")
        stopped, port = next((int(r[0]), int(r[1])) for r in it.nodes[1].rows("select pid, client_port from pg_stat_activity where "
                             "query = 'COMMIT' and state = 'idle' and pid <> pg_backend_pid() order by query_start desc"))
        procs.stand_still(stopped)
        try:
            for c in (a, b):
                c.send(w.query("update counted set n = 8 where id = 3"))
            waits.wait_for("it is asked", lambda: procs.unread(it.nodes[1].port, port))
            d.send(w.query("commit"))
            waits.wait_for("it waits", lambda: reasons(it) == ["commit"] or not d.is_quiet(0))
            e = error_of(got := d.ready())
            assert e.sqlstate == "55P03" and "COMMIT" in e.text and got[-1].body == b"I"
        finally:
            procs.go_on(stopped)
        a.ready(seconds=30), b.ready(seconds=30)
        assert d.value("select n from counted where id = 2") == "0"
    assert it.equal(tables=("counted",))


# ---- the anomalies of the literature (Adya; Berenson et al.), write skew aside ----


def of(c, key):
    return int(c.value(f"select n from counted where id = {key}"))


def puts(key, n):
    return f"update counted set n = {n} where id = {key}"


def loses(it, winner, loser, sql):
    """`loser` waits for `winner`, who commits."""
    loser.send(w.query(sql))
    waits.wait_for("it waits", lambda: it.nodes[0].rows("select 1 from pg_stat_activity where wait_event_type = 'Lock'"))
    one(winner, "commit")
    assert error_of(loser.ready(seconds=60)).sqlstate == "40001"
    one(loser, "rollback")


def g0_dirty_writes(it, a, b, _c):
    one(a, puts(1, 11)), one(a, puts(2, 21))
    loses(it, a, b, puts(1, 12))
    return [11, 21]


def g1a_aborted_reads(_it, a, b, c):
    one(a, puts(1, 11))
    assert of(b, 1) == of(c, 1) == 0
    one(a, "rollback")
    assert of(b, 1) == of(c, 1) == 0
    return [0, 0]


def g1b_intermediate_reads(_it, a, b, c):
    one(a, puts(1, 10))
    assert of(b, 1) == 0
    one(a, puts(1, 11)), one(a, "commit")
    assert of(b, 1) == of(c, 1) == 0
    return [11, 0]


def g1c_circular_flow(_it, a, b, c):
    one(a, puts(1, 11)), one(b, puts(2, 22))
    assert (of(a, 2), of(b, 1)) == (0, 0)
    one(a, "commit"), one(b, "commit")
    assert (of(c, 1), of(c, 2)) == (0, 0)
    return [11, 22]


def otv_transactions_vanish(it, a, b, c):
    one(a, puts(1, 11)), one(a, puts(2, 19))
    assert of(c, 1) == 0
    loses(it, a, b, puts(1, 12))
    assert (of(c, 1), of(c, 2)) == (0, 0)
    return [11, 19]


def pmp_predicates(_it, a, b, c):
    one(b, puts(1, 30)), one(b, "commit")
    assert a.rows("select id from counted where n = 30") == c.rows("select id from counted where n = 30") == []
    assert one(a, "delete from counted where n = 30")[0].body == b"DELETE 0\0"
    return [30, 0]


def p4_lost_updates(it, a, b, c):
    assert of(a, 1) == of(b, 1) == of(c, 1) == 0
    one(a, puts(1, 11))
    loses(it, a, b, "update counted set n = n + 1 where id = 1")
    assert of(c, 1) == 0
    return [11, 0]


def g_single_read_skew(_it, a, b, c):
    assert of(a, 1) == of(c, 1) == 0
    one(b, puts(1, 12)), one(b, puts(2, 18)), one(b, "commit")
    assert of(a, 2) == of(c, 2) == 0
    assert error_of(a.simple(puts(2, 20))).sqlstate == "40001"
    return [12, 18]


ANOMALIES = [g0_dirty_writes, g1a_aborted_reads, g1b_intermediate_reads, g1c_circular_flow, otv_transactions_vanish, pmp_predicates,
             p4_lost_updates, g_single_read_skew]


def test_anomalies(pair):
    """Each of the three reads on this node or that, and all nodes have the outcome."""
    it = si(pair)
    with contextlib.ExitStack() as held:
        at = [[held.enter_context(reader_of(it, node)) for _ in range(3)] for node in (0, 1)]
        for anomaly in ANOMALIES:
            for nodes in ((0, 0, 1), (0, 1, 0), (1, 0, 1), (1, 1, 0)):
                three = [at[node][i] for i, node in enumerate(nodes)]
                one(three[0], "update counted set n = 0")
                for c in three:
                    one(c, "begin")
                    assert of(c, 3) == 0  # its snapshot
                outcome = anomaly(it, *three)
                for c in three:
                    c.simple("rollback")
                assert [of(three[2], 1), of(three[2], 2)] == outcome, (anomaly.__name__, nodes)
                assert it.equal(tables=("counted",))


# ---- one order of transactions ----


def in_order(seen):
    """The first two of what was read that are of different orders: each is later than the other in something; or of which the
    one that began when the other was over shows less."""
    by_sum = sorted(seen, key=lambda s: sum(s[2]))
    for a, b in zip(by_sum, by_sum[1:]):
        if any(x > y for x, y in zip(a[2], b[2])):
            return a, b
    ended = sorted(seen, key=lambda s: s[1])
    at, most = 0, None
    for s in sorted(seen, key=lambda s: s[0]):
        while ended[at][1] < s[0]:
            most = max(most or ended[at], ended[at], key=lambda e: sum(e[2]))
            at += 1
        if most is not None and any(x > y for x, y in zip(most[2], s[2])):
            return most, s
    return None


def test_the_checker():
    assert in_order([(0, 1, (1, 0)), (0, 1, (0, 1))])
    assert in_order([(0, 1, (1, 1)), (2, 3, (0, 1))])
    assert not in_order([(0, 2, (1, 1)), (1, 3, (0, 1)), (4, 5, (1, 1)), (4, 6, (2, 1))])


class Load:
    """Writers, each of a row of its own, so that they commit at once; readers of all rows, on all nodes, by both protocols."""

    def __init__(self, it, seconds, seed, may_break=False):
        self.it, self.may_break, self.seed = it, may_break, seed
        self.until = time.monotonic() + seconds
        self.latest = self.until + 60  # a busy machine takes longer until there is something to look at
        self.seen, self.errors, self.ports, self.written = [], [], set(), [0] * KEYS
        self.threads = [threading.Thread(target=self.lives, args=(self.writes, k), daemon=True) for k in range(KEYS)]
        self.threads += [threading.Thread(target=self.lives, args=(self.reads, k), daemon=True) for k in range(8)]

    def goes_on(self):
        now = time.monotonic()
        return now < self.until or (now < self.latest and not self.errors and not self.is_enough())

    def is_enough(self):
        return len(self.ports) >= len(self.it.nodes) and len(self.seen) > 20 and min(self.written) > 0

    def ends(self):
        self.until = self.latest = time.monotonic()

    def lives(self, work, k):
        while self.goes_on():
            try:
                with self.it.client() as c:
                    work(c, k, random.Random(f"{self.seed} {k} {work.__name__}"))
            except (OSError, w.WireClosed, w.WireTimeout) as e:
                if not self.may_break:
                    self.errors.append(repr(e))
                    return
                threading.Event().wait(0.05)  # its worker has died: not as fast as it can
            except AssertionError as e:
                self.errors.append(repr(e))
                return

    def does(self, c, rnd, sql):
        got = ext(c, sql) if rnd.random() < 0.5 else c.simple(sql, seconds=60)
        bad = [m for m in got if m.type == "E"]
        if bad and self.may_break and bad[0].sqlstate[:2] in ("40", "57", "08"):
            raise w.WireClosed(bad[0].text)
        assert not bad, (sql, bad[0].text)
        return [m.row() for m in got if m.type == "D"]

    def writes(self, c, k, rnd):
        while self.goes_on():
            sql = f"update counted set n = n + 1 where id = {k + 1}"
            if rnd.random() < 0.5:
                self.does(c, rnd, sql)
            else:
                self.does(c, rnd, "begin")
                self.does(c, rnd, VECTOR)
                self.does(c, rnd, sql)
                self.does(c, rnd, "commit")
            self.written[k] += 1

    def reads(self, c, k, rnd):
        self.ports.add(self.does(c, rnd, "select current_setting('port')")[0][0])
        while self.goes_on():
            start = time.monotonic()
            how = rnd.randrange(3)
            if how == 0:
                rows = self.does(c, rnd, VECTOR)
            else:
                self.does(c, rnd, ("begin", "begin read only")[how - 1])
                rows = [[b",".join(self.does(c, rnd, f"select n::text from counted where id = {i + 1}")[0][0] for i in range(KEYS))]]
                assert self.does(c, rnd, VECTOR) == rows
                self.does(c, rnd, "commit")
            self.seen.append((start, time.monotonic(), tuple(int(v) for v in rows[0][0].split(b","))))

    def run(self, meanwhile=None):
        for t in self.threads:
            t.start()
        try:
            if meanwhile is not None:
                meanwhile(self)
        except BaseException:
            self.ends()
            raise
        finally:
            for t in self.threads:
                t.join(max(self.latest - time.monotonic(), 0) + 90 * waits.SCALE)  # none of its waits is longer
        assert not [t for t in self.threads if t.is_alive()], self.errors[:5]
        assert not self.errors, self.errors[:5]
        waits.wait_for("nothing is prepared any more", lambda: all(not n.rows("select 1 from pg_prepared_xacts") for n in self.it.nodes), 40)
        assert self.it.equal(tables=("counted",))
        assert self.may_break or not (found := in_order(self.seen)), found
        assert self.is_enough()
        return self


@pytest.mark.parametrize("nodes, commit, seconds", [
    (2, "plain", 2), (2, "two_phase", 2), *(pytest.param(3, how, SECONDS, marks=SLOW) for how in ("plain", "two_phase"))])
def test_no_two_nodes_show_different_orders(pair, nodes, commit, seconds):
    it = si(pair, nodes, conf_of_nodes={"max_prepared_transactions": "40"}, replication_commit=commit, num_init_children=2,
            log_min_messages="warning")
    load = Load(it, seconds, seed := os.environ.get("PGT_SEED", "1")).run()
    values = it.nodes[1].rows("select n from counted order by id")
    assert [int(v[0]) for v in values] == load.written, seed
    print(f"{len(load.seen)} reads, {sum(load.written)} writes")


def kills_workers(load):
    """Whoever is inside the gate dies with it; those that are left go on."""
    rnd = random.Random(load.seed)
    seen = 0
    while time.monotonic() < load.until:
        try:
            with load.it.client() as c:
                workers = [int(r[0]) for r in c.rows("show pool_processes")]
        except (OSError, w.WireClosed):
            continue  # the worker that died last had taken it
        with contextlib.suppress(ProcessLookupError):  # the one before, that is told still
            os.kill(rnd.choice(workers), signal.SIGKILL)
        waits.wait_for("they read on", lambda: load.errors or len(load.seen) > seen + 20 or time.monotonic() > load.until, 60)
        assert not load.errors, load.errors
        seen = len(load.seen)


@pytest.mark.parametrize("seconds", [2, pytest.param(SECONDS, marks=SLOW)])
def test_workers_die_in_the_gate(pair, seconds):
    it = si(pair, conf_of_nodes={"max_prepared_transactions": "40"}, replication_commit="two_phase", num_init_children=3, log_min_messages="warning")
    load = Load(it, seconds, os.environ.get("PGT_SEED", "1"), may_break=True)
    load.run(kills_workers)
    if seconds > 10 and "clients wait for them no longer" not in it.pool.log():
        assert not (found := in_order(load.seen)), found


def clients_of_both(it):
    """Clients of both workers: who is spread over them is up to them."""
    found = []
    with it.client() as watch:
        def had():
            return [int(r[2]) for r in watch.rows("show pool_processes")]
        before = had()
        while len(found) < 6 or not all(now > then for now, then in zip(had(), before)):
            found.append(it.client())
    return found


def test_a_worker_dies_in_its_commit(pair):
    """It gives back its share: those of other workers go on at once."""
    it = si(pair, num_init_children=2, snapshot_wait_timeout="60s")
    with it.client() as c:
        one(c, SLOW_COMMIT)
    a = it.client()
    lock = hanging_commit(it, a)
    found = it.pool.log().rsplit("n = 1000", 1)[0].rsplit("child pid ", 1)[1]
    others = clients_of_both(it)
    for c in others:
        c.send(w.query("select n from counted where id = 1"))
    waits.wait_for("they wait", lambda: reasons(it) == ["snapshot"])
    os.kill(int(found.split(":")[0]), signal.SIGKILL)
    told = []
    for c in others:
        try:
            told.append(c.ready(seconds=30)[-1].type)
        except (OSError, w.WireClosed):
            told.append("gone with it")
    assert "Z" in told, told
    lock.bye()
    assert it.pool.log().count("kept this one") == 0


def test_a_client_that_goes_is_out(pair):
    """Who waits, who commits: the others go on, and the commit is on all nodes."""
    it = si(pair, snapshot_wait_timeout="60s")
    with it.client() as c:
        one(c, SLOW_COMMIT)
    a, b, d = it.client(), it.client(), it.client()
    lock = hanging_commit(it, a)
    for c in (b, d):
        c.send(w.query("select n from counted where id = 1"))
    waits.wait_for("they wait", lambda: reasons(it) == ["snapshot"])
    b.reset()
    a.reset()
    lock.bye()
    assert [m.type for m in d.ready(seconds=30)] == ["T", "D", "C", "Z"]
    waits.wait_for("it is everywhere", lambda: it.everywhere("select n from counted where id = 1") == [[[b"1000"]]] * 2)
    assert d.value("select n from counted where id = 1") == "1000"
    d.bye()


def test_cancelled_while_it_waits(pair):
    it = si(pair, snapshot_wait_timeout="60s")
    with it.client() as c:
        one(c, SLOW_COMMIT)
    with it.client() as a, it.client() as b:
        lock = hanging_commit(it, a)
        b.send(w.query("update counted set n = 3 where id = 2"))
        waits.wait_for("it waits", lambda: reasons(it) == ["snapshot"])
        w.cancel(it.pool.address, b.pid, b.key)
        got = b.ready()
        assert error_of(got).sqlstate == "57014" and got[-1].body == b"I"
        lock.bye()
        a.ready()
        one(b, "update counted set n = 3 where id = 2")
    assert it.equal(tables=("counted",))


@pytest.mark.parametrize("commit", ["plain", pytest.param("two_phase", marks=pytest.mark.slow)])
def test_the_main_node_goes_under_load(pair, commit):
    """All its connections are lost at once, by those who wait, who take snapshots, who commit: what is left goes on and is equal."""
    it = si(pair, 3, conf_of_nodes={"max_prepared_transactions": "40"}, replication_commit=commit, num_init_children=2, log_min_messages="warning")

    def goes(load):
        waits.wait_for("all nodes are read", lambda: load.errors or (len(load.ports) == 3 and len(load.seen) > 60), 60)
        it.nodes.pop(0).stop(signal.SIGQUIT)
        waits.wait_for("it is down", lambda: it.status()[0][3] == "down", 60)
        seen = len(load.seen)
        waits.wait_for("they read on", lambda: load.errors or (len(load.seen) > seen + 40 and min(load.written) > 0), 60)
        load.ends()

    load = Load(it, 300, os.environ.get("PGT_SEED", "1"), may_break=True)
    load.run(goes)
