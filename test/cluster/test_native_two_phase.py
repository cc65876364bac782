# SPDX-License-Identifier: PostgreSQL
"""replication_commit = two_phase: whoever dies at whatever step, all nodes end equal, and what a client was told is there."""
import os
import re
import signal

import pytest

from pgt import procs, waits, web
from pgt import wire as w
from pgt.native import error_of, one

CONF = {"replication_commit": "two_phase", "num_init_children": 1}
NODE = {"max_prepared_transactions": "40"}
# 1: the main node has prepared it; 2: all have; 3: the decision is on disk; 4: all are told to commit; 5: they have.
STEPS = [1, 2, 3, 4, 5]
DECIDED = 3

END_ALL = "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"


def prepared(it):
    return [n.rows("select gid from pg_prepared_xacts") for n in it.nodes]


def settled(it):
    waits.wait_for("nothing is prepared any more", lambda: prepared(it) == [[]] * len(it.nodes), 40)
    return it.equal()


def count_of(it, where):
    return it.nodes[0].value(f"select count(*) from t where {where}")


def files(it):
    return sorted(f for f in os.listdir(it.pool.home) if f.startswith("pgpool_decisions."))


def test_what_is_committed_is_everywhere(pair):
    it = pair(conf_of_nodes=NODE, **CONF)
    with it.client() as c:
        one(c, "insert into t (id) values (1)")
        one(c, "begin; insert into t (id) values (2)")
        got = one(c, "commit")
        assert [(m.type, m.body) for m in got] == [("C", b"COMMIT\0"), ("Z", b"I")]
        one(c, "begin")
        one(c, "insert into t (id) values (3)")
        c.send(w.parse("commit") + w.bind() + w.execute() + w.SYNC)
        got = c.ready()
        assert [m.type for m in got] == ["1", "2", "C", "Z"] and got[2].body == b"COMMIT\0"
        one(c, "begin; select 1; commit; set work_mem to '1MB'; create temp table own (id int)")
        one(c, "begin; insert into t (id) values (4); rollback")
        assert settled(it) and count_of(it, "true") == "3"
        for n in it.nodes:
            assert n.log().count("PREPARE TRANSACTION 'pgpool_") >= 3
        one(c, "PGPOOL SET replication_commit = plain")
        before = it.nodes[1].log().count("PREPARE TRANSACTION")
        one(c, "insert into t (id) values (5)")
        assert it.nodes[1].log().count("PREPARE TRANSACTION") == before
        assert it.equal() and count_of(it, "true") == "4"
        # Whoever looks for what is left may have met one that ended in the next moment.
        waits.wait_for("nothing is in doubt", lambda: c.rows("show pool_in_doubt") == [], 40)


def test_what_cannot_be_prepared_is_undone(pair):
    it = pair(conf_of_nodes=NODE, **CONF)
    with it.client() as c:
        one(c, "create temp table own (id int)")
        one(c, "begin; insert into t (id) values (1); insert into own values (1)")
        assert error_of(c.simple("commit")).sqlstate == "0A000"
        one(c, "begin; insert into t (id) values (1)")
        assert error_of(c.simple("commit and chain")).sqlstate == "0A000"
        one(c, "rollback")
        one(c, "alter table q add constraint late unique (v) deferrable initially deferred")
        one(c, "begin; insert into q (v) values (1), (1)")
        assert error_of(c.simple("commit")).sqlstate == "23505"
        assert error_of(c.simple("insert into q (v) values (2), (2)")).sqlstate == "23505"
        one(c, "insert into t (id) values (9)")
        assert settled(it) and count_of(it, "true") == "1"


def test_a_connection_that_goes_while_the_main_node_prepares(pair):
    """The other node has not been told yet: nothing of it is committed anywhere."""
    it = pair(conf_of_nodes=NODE, **CONF)
    lock = w.Wire(it.nodes[0].address)
    lock.login()
    with it.client() as c:
        one(c, "create function waits() returns trigger language plpgsql as $$ begin "
               "perform pg_advisory_xact_lock(5); return null; end $$")
        one(c, "create constraint trigger late after insert on t deferrable initially deferred for each row execute function waits()")
        for sql in ("insert into t (id) values (1)", "begin; insert into t (id) values (2); commit"):
            one(c, "update t set v = 'all are connected'")
            one(lock, "select pg_advisory_lock(5)")
            c.send(w.query(sql))
            waits.wait_for("it prepares", lambda: it.nodes[0].rows("select 1 from pg_stat_activity where wait_event = 'advisory'"))
            seen = len(it.pool.log())
            it.nodes[1].rows(END_ALL)
            waits.wait_for("it is noticed", lambda n=seen: "connection to node 1 was lost" in it.pool.log()[n:])
            one(lock, "select pg_advisory_unlock(5)")
            assert error_of(c.ready()).sqlstate == "40000"
            assert settled(it) and count_of(it, "true") == "0"
    lock.bye()


@pytest.mark.slow
def test_one_node_cannot_prepare(pair):
    """Its limit is reached: nothing is left of it anywhere."""
    it = pair(conf_of_nodes=NODE, **CONF)
    it.nodes[1].stop()
    it.nodes[1].write_conf({**it.conf, "max_prepared_transactions": "0"})
    it.nodes[1].start()
    waits.wait_for("the node is in use", lambda: [r[3] for r in it.status()] == ["up", "up"], 60)
    with it.client() as c:
        assert error_of(c.simple("insert into t (id) values (1)")).sqlstate == "55000"
        one(c, "begin; insert into t (id) values (1)")
        assert error_of(c.simple("commit")).sqlstate == "55000"
        assert settled(it) and count_of(it, "true") == "0"
    waits.wait_for("it is said", lambda: "its max_prepared_transactions is 0" in it.pool.log(), 60)


def lives_again(it, number):
    """A client whose worker dies at transaction `number` of it; what it was told."""
    c = it.client()
    told = None
    try:
        for i in range(1, number + 1):
            one(c, "begin")
            one(c, f"insert into t (id) values ({i})")
            told = [m.type for m in c.simple("commit")]
    except (OSError, w.WireClosed):
        told = None
    return told


SLOW = pytest.mark.slow


@pytest.mark.parametrize("who, step", [("worker", 3), *(pytest.param("worker", s, marks=SLOW) for s in (1, 2, 4, 5)),
                                       ("all", 2), *(pytest.param("all", s, marks=SLOW) for s in (1, 3, 4, 5))])
def test_killed_at_every_step(pair, monkeypatch, who, step):
    it = pair(conf_of_nodes=NODE, env=monkeypatch, kill=(step, "k" if who == "worker" else "p"), **CONF)
    assert lives_again(it, 30) is None
    if who == "all":
        waits.wait_for("all have gone", lambda: not it.pool.pids(), 60)
        it.pool.daemon.kill()
        monkeypatch.delenv("PGPOOL_TEST_KILL_AT")
        it.pool.start()
    settled(it)
    n = int(count_of(it, "true"))
    assert n == it.killed_at + (1 if step >= DECIDED else 0), "decided and not there, or there and not decided"
    with it.client() as c:
        one(c, "insert into t (id) values (1000)")
    assert settled(it)
    waits.wait_for("the dead worker's file is gone", lambda: len(files(it)) <= 2, 40)


def test_what_was_left_open_is_forgotten(pair, monkeypatch):
    """Decided, and a connection is lost before it is committed there: the worker keeps it in mind until the control process has ended it."""
    it = pair(conf_of_nodes=NODE, env=monkeypatch, kill=(3, "s"), **CONF)
    with it.client() as c:
        worker = int(c.rows("show pool_processes")[0][0])
        for i in range(it.killed_at):
            one(c, f"insert into t (id) values ({i})")
        c.send(w.query(f"insert into t (id) values ({it.killed_at})"))
        waits.wait_for("the worker stands", lambda: procs.stat_fields(worker)[0] == "T", 60)
        there = set(it.nodes[1].sessions())
        it.nodes[1].rows(END_ALL)
        waits.wait_for("they have ended", lambda: not there & set(it.nodes[1].sessions()))
        procs.go_on(worker)
        assert not [m for m in c.ready() if m.type == "E"]
        assert settled(it) and int(count_of(it, "true")) == it.killed_at + 1
        n = iter(range(100, 1000))
        waits.wait_for("it is forgotten", lambda: one(c, f"insert into t (id) values ({next(n)})") and
                       "1 decisions that were left open are ended" in it.pool.log(), 40)
        assert [r[3] for r in it.status()] == ["up", "up"] and it.equal()


@pytest.mark.slow
@pytest.mark.parametrize("node", [0, 1], ids=["main", "other"])
@pytest.mark.parametrize("step", STEPS)
def test_a_server_dies_at_every_step(pair, monkeypatch, step, node):
    it = pair(conf_of_nodes=NODE, env=monkeypatch, kill=(step, "s"), health_check_max_retries=30, health_check_retry_delay=1, **CONF)
    c = it.client()
    worker = int(c.rows("show pool_processes")[0][0])
    for i in range(it.killed_at):
        one(c, f"begin; insert into t (id) values ({i}); commit")
    c.send(w.query(f"begin; insert into t (id) values ({it.killed_at}); commit"))
    waits.wait_for("the worker stands", lambda: procs.stat_fields(worker)[0] == "T", 60)
    it.nodes[node].stop(signal.SIGQUIT)
    procs.go_on(worker)
    try:
        c.simple("select 1")
    except (OSError, w.WireClosed):
        pass
    it.nodes[node].start()
    settled(it)
    assert int(count_of(it, "true")) in (it.killed_at, it.killed_at + 1)
    if step >= DECIDED:
        assert int(count_of(it, "true")) == it.killed_at + 1


def test_another_pgpools_are_shown_and_left(pair):
    port = procs.free_port()
    it = pair(conf_of_nodes=NODE, http_port=port, http_metrics_open=True, **CONF)
    name = "pgpool_00000000000000ff_0000000000000001_00000001_00000001_0000000000000001"
    with w.Wire(it.nodes[1].socket) as c:
        c.login(database="postgres")
        one(c, "begin; insert into accounts values (99, 1)")
        one(c, f"prepare transaction '{name}'")
        with it.client() as p:
            row = waits.wait_for("it is shown", lambda: next((r for r in p.rows("show pool_in_doubt") if r[0] == name.encode()), None), 40)
            assert [row[i] for i in (1, 2, 4)] == [b"1", b"postgres", b"unknown"]
        waits.wait_for("it is counted", lambda: re.findall(r'^pgpool_node_in_doubt{node="(.)",.*} (.*)$', web.ask(port, "/metrics").text, re.M) ==
                       [("0", "0"), ("1", "1")], 40)
        one(c, f"rollback prepared '{name}'")
    assert settled(it)
