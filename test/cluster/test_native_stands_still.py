# SPDX-License-Identifier: PostgreSQL
"""Native replication: sessions that wait for each other on different nodes, which no server sees as a deadlock: somebody is told
(replication_lock_timeout), and nothing is done on any node. Who merely takes long is left alone."""
import pytest

from pgt import waits
from pgt import wire as w
from pgt.native import error_of, one

HINT = "do it again"
WRITE = "update held set n = n + 1 where id = 2"


def by_batch(c, sql):
    c.send(w.parse(sql), w.bind(), w.execute(), w.SYNC)


HOW = {
    "simple": lambda c, sql: c.send(w.query(sql)),
    "extended": by_batch,
    "transaction": lambda c, sql: (one(c, "begin"), one(c, "insert into held values (7, 0)"), c.send(w.query(sql))),
    "savepoint": lambda c, sql: (one(c, "begin; insert into held values (7, 0); savepoint s"), by_batch(c, sql)),
}


def prepared(it):
    with it.client() as c:
        one(c, "create table held (id int primary key, n int)")
        one(c, "insert into held values (1, 0), (2, 0)")
        # Its row is another one where somebody else has the first.
        one(c, "create function hold() returns void language plpgsql as $$ "
               "begin perform 1 from held order by id for update skip locked limit 1; end $$")


def waiting(node):
    return node.value("select count(*) from pg_locks where not granted")


def holds_row_2(it, nodes, c):
    """The client's transaction has row 1 on the main node, and row 2 on these others."""
    direct = []
    for node in nodes:
        d = w.Wire(node.address)
        d.login()
        one(d, "begin; select 1 from held where id = 1 for update")
        direct.append(d)
    one(c, "begin")
    one(c, "select hold()")
    for d in direct:
        one(d, "rollback")
        d.bye()


def is_told(it, got, node=1):
    e = error_of(got)
    assert e.sqlstate == "40P01", e.text
    assert f"node {node} waited for a lock longer than replication_lock_timeout" in e.text
    assert HINT in e.fields["H"]


MODES = {
    "plain": {},
    "two phase": {"replication_commit": "two_phase", "conf_of_nodes": {"max_prepared_transactions": "10"}},
    "snapshots": {"backend_clustering_mode": "snapshot_isolation",
                  "conf_of_nodes": {"default_transaction_isolation": "repeatable read"}},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", HOW)
def test_a_deadlock_over_two_nodes(pair, mode, how):
    """A has row 2 on the main node and waits for B's on the other; B waits for A on the main node."""
    it = pair(replication_lock_timeout="2s", **MODES[mode])
    prepared(it)
    with it.client() as a, it.client() as b:
        one(a, "select 1")
        holds_row_2(it, it.nodes[1:], b)
        HOW[how](a, WRITE)
        waits.wait_for("A waits on the other node", lambda: waiting(it.nodes[1]) == "1")
        b.send(w.query(WRITE))
        waits.wait_for("B waits on the main node, or A is told", lambda: waiting(it.nodes[0]) == "1" or not a.is_quiet(0))
        is_told(it, a.ready(seconds=90))
        assert not [m for m in b.ready(seconds=90) if m.type == "E"]
        one(b, "commit")
        if how == "savepoint" and mode != "snapshots":
            one(a, "rollback to s")
            one(a, WRITE)
            one(a, "commit")
        elif how in ("transaction", "savepoint"):
            assert error_of(a.simple("select 1")).sqlstate == "25P02"
            one(a, "rollback")
        one(a, WRITE)
    assert it.equal(tables=("held",))
    n = "3" if how == "savepoint" and mode != "snapshots" else "2"
    assert [x.value("select n from held where id = 2") for x in it.nodes] == [n, n]
    assert [r[3] for r in it.status()] == ["up"] * 2
    assert [x.value("select count(*) from pg_prepared_xacts") for x in it.nodes] == ["0", "0"]


def test_two_nodes_beside_the_main_one(pair):
    """The main node has done it, the two others wait: each is told in turn, and nobody is left waiting."""
    it = pair(3, replication_lock_timeout="2s")
    prepared(it)
    with it.client() as a, it.client() as b:
        one(a, "select 1")
        holds_row_2(it, it.nodes[1:], b)
        a.send(w.query(WRITE))
        waits.wait_for("A waits on both", lambda: [waiting(x) for x in it.nodes[1:]] == ["1", "1"])
        b.send(w.query(WRITE))
        is_told(it, a.ready(seconds=90))
        assert not [m for m in b.ready(seconds=90) if m.type == "E"]
        one(b, "commit")
        one(a, WRITE)
    assert it.equal(tables=("held",))


def test_who_takes_long_is_left_alone(pair):
    """It waits for no lock of the server's on the other node: asked again and again, and not cut short."""
    it = pair(replication_lock_timeout="400ms", conf_of_nodes={"log_statement": "all"})
    prepared(it)
    with it.client() as a, w.Wire(it.nodes[1].address) as d:
        d.login()
        one(d, "select pg_advisory_lock(5)")
        one(a, "create function slow() returns int language plpgsql as $$ begin "
               "while not pg_try_advisory_xact_lock(5) loop perform pg_sleep(0.02); end loop; "
               "update held set n = n + 1 where id = 2; return 1; end $$")
        at = len(it.nodes[1].log())
        a.send(w.query("select slow()"))
        waits.wait_for("it was asked about four times",
                       lambda: it.nodes[1].log()[at:].count("FROM pg_catalog.pg_locks l WHERE NOT granted") >= 4)
        one(d, "select pg_advisory_unlock(5)")
        assert not [m for m in a.ready(seconds=90) if m.type == "E"]
    assert it.equal(tables=("held",))
    assert it.nodes[1].value("select n from held where id = 2") == "1"


def test_off(pair):
    """At 0 nobody is asked, and a statement waits as long as its client does."""
    it = pair(replication_lock_timeout="0", conf_of_nodes={"log_statement": "all"})
    prepared(it)
    with it.client() as a, it.client() as b:
        one(a, "select 1")
        holds_row_2(it, it.nodes[1:], b)
        a.send(w.query(WRITE))
        waits.wait_for("A waits on the other node", lambda: waiting(it.nodes[1]) == "1")
        one(b, "commit")
        assert not [m for m in a.ready(seconds=90) if m.type == "E"]
    assert "FROM pg_catalog.pg_locks l WHERE NOT granted" not in it.nodes[1].log()
    assert it.equal(tables=("held",))
