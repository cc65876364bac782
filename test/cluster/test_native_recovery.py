# SPDX-License-Identifier: PostgreSQL
"""test_native_recovery: online recovery of native replication in two stages, with the sample scripts, while clients
write; and everything that can go wrong on the way."""
import os
import signal

import pytest

from pgt import postgres, procs, proxy, shadow, waits
from pgt import wire as w
from pgt.native import error_of, one
from pgt.native_lab import Writer, add_scripts, make_tables
from pgt.wire import Wire
from recovery_lab import Node, Pcp, pool_rows, shadow_bins, statuses

pytestmark = [
    pytest.mark.skipif(not postgres.is_installed() or shadow.pg_config() is None,
                       reason="postgresql-server-dev is not installed"),
    pytest.mark.skipif(proxy.pgpool_bin() is None, reason="PGPOOL_BIN does not name a program")]


class Servers:
    def __init__(self, n: int, start_pool, **conf):
        with shadow_bins():
            self.home = procs.folder("natives", postgres.OS_USER)
            self.nodes = [self._make(i) for i in range(n)]
        settings = {
            "backend_clustering_mode": "native_replication", "health_check_period": 1, "health_check_max_retries": 0,
            "pcp_listen_addresses": "127.0.0.1", "pcp_port": procs.free_port(), "recovery_user": "postgres",
            "recovery_1st_stage_command": "recovery_1st_stage", "recovery_2nd_stage_command": "recovery_2nd_stage",
            "recovery_timeout": 60, **conf}
        settings |= {f"backend_data_directory{i}": node.data for i, node in enumerate(self.nodes)}
        self.pool = start_pool(*[node.address for node in self.nodes], **settings)
        self.pcp = Pcp(self.pool)
        make_tables(self.pool.address)

    def _make(self, i: int) -> Node:
        home = self.home / f"node{i}"
        procs.run(["mkdir", str(home)], user=postgres.OS_USER)
        node = Node(home / "data", procs.free_port())
        postgres.copy_template(node.data)
        node.write_conf({"unix_socket_directories": str(self.home), "cluster_name": f"server{i}"})
        add_scripts(node)
        node.start()
        node.rows("create role replicator login replication; create extension pgpool_recovery")
        return node

    def client(self) -> Wire:
        c = Wire(self.pool.address)
        c.login()
        return c

    def statuses(self) -> list[str]:
        """As soon as somebody is let in: while a node is lost and not yet known to be, nobody may be."""
        found = waits.wait_for("SHOW POOL_NODES is answered", lambda: [s for s, _ in statuses(self.pool) if s != "unknown"])
        assert len(found) == len(self.nodes)
        return found

    def lose(self, node: int) -> None:
        self.nodes[node].kill()
        waits.wait_for(f"node {node} is down", lambda: self.statuses()[node] == "down", 60)

    def step(self) -> str:
        rows = pool_rows(self.pool, "show pool_recovery")
        return rows[-1][5] if rows and rows[-1][4] == "running" else ""

    def are_equal(self) -> None:
        for table in ("t", "s", "accounts"):
            found = [n.rows(f"select x::text from {table} x order by 1") for n in self.nodes]
            assert all(rows == found[0] for rows in found), f"{table} differs: {[len(rows) for rows in found]}"

    def script(self, node: int, name: str, body: str) -> None:
        (self.nodes[node].data / name).write_text("#!/bin/bash\n" + body, encoding="utf-8")

    def end(self) -> None:
        for node in self.nodes:
            node.end(signal.SIGINT)


@pytest.fixture
def make(start_pool):
    made = []

    def start(n: int = 2, **conf) -> Servers:
        made.append(Servers(n, start_pool, **conf))
        return made[-1]
    yield start
    for it in made:
        it.end()


def recover(it: Servers, node: int) -> None:
    done = it.pcp.run("recovery_node", "-v", str(node))
    assert done.returncode == 0, done.stderr + it.pool.log()[-4000:]
    for text in ("first stage", "second stage: waiting for transactions", "second stage: copying the rest"):
        assert text in done.stderr


def test_a_node_is_rebuilt_while_clients_write(make):
    it = make(3)
    writers = [Writer(it.pool.address, n) for n in range(1, 5)]
    for each in writers:
        each.start()
    it.lose(1)
    before = [len(each.acked) for each in writers]
    waits.wait_for("they write on", lambda: all(len(each.acked) > n + 20 for each, n in zip(writers, before)))
    before = sum(each.sent_away for each in writers)
    recover(it, 1)
    assert it.statuses() == ["up", "up", "up"]
    # Whoever has nothing of its own in the session was not even sent away.
    assert sum(each.sent_away for each in writers) == before
    before = [len(each.acked) for each in writers]
    waits.wait_for("they write to all", lambda: all(len(each.acked) > n + 20 for each, n in zip(writers, before)))
    for each in writers:
        each.stop()
    assert not [e for each in writers for e in each.errors if "40000" not in e and "node was lost" not in e]
    it.are_equal()
    there = {int(r[0]) for r in it.nodes[1].rows("select id from t")}
    assert not {k for each in writers for k in each.acked} - there, "an acknowledged write is lost"
    # The sequences count alike: none of the rebuilt node's runs ahead.
    with it.client() as c:
        one(c, "insert into s (v) values (99)")
    it.are_equal()
    log = it.pool.log()
    for text in ("starting recovering node 1", "node recovery, 1st stage is done", "node recovery, starting 2nd stage",
                 "node recovery, 2nd stage is done", "node recovery, node: 1 restarted", "recovery done"):
        assert text in log, text
    assert it.nodes[0].value("select count(*) from pg_replication_slots") == "0"


def test_transactions_are_waited_for_and_clients_held(make):
    it = make()
    c, d, e = it.client(), it.client(), it.client()
    one(c, "set my.own = '1'")
    it.lose(1)
    one(c, "begin")
    one(c, "insert into t (id) values (1)")
    asked = it.pcp.start("recovery_node", "1")
    waits.wait_for("the second stage waits", lambda: it.step() == "second stage: waiting for transactions to end", 60)
    d.send(w.query("insert into t (id) values (2)"))

    def waiting() -> int:
        return sum("waiting" in r for r in pool_rows(it.pool, "show pool_clients"))
    waits.wait_for("it is shown", lambda: waiting() == 1)
    waits.wait_for("and what for", lambda: "recovery" in str(pool_rows(it.pool, "show pool_queue")))
    one(c, "insert into t (id) values (3)")
    assert it.step() == "second stage: waiting for transactions to end"
    # One who is held may cancel what it waits for, or go.
    e.send(w.query("insert into t (id) values (4)"))
    waits.wait_for("it is held, too", lambda: waiting() == 2)
    w.cancel(it.pool.address, e.pid, e.key)
    assert error_of(e.ready()).sqlstate == "57014"
    e.reset()
    one(c, "commit")
    assert [m.type for m in d.ready(seconds=60)] == ["C", "Z"]  # when all is copied
    assert asked.wait(60) == 0, it.pool.log()[-3000:]
    assert it.statuses() == ["up", "up"]
    one(d, "insert into t (id) values (5)")
    # Its settings are not at the new node.
    c.send(w.query("select 1"))
    assert error_of(c.read_eof()).sqlstate == "57P01"
    it.are_equal()
    assert it.nodes[1].value("select string_agg(id::text, ',' order by id) from t") == "1,2,3,5"
    d.bye()


@pytest.mark.slow
def test_idle_clients_are_sent_away(make):
    it = make(client_idle_limit_in_recovery=1)
    c, d = it.client(), it.client()
    it.lose(1)
    one(c, "begin")
    one(c, "insert into t (id) values (1)")
    recover(it, 1)
    assert "online recovery" in error_of(c.read_eof()).text
    assert "client_idle_limit_in_recovery (1 s) is reached" in it.pool.log()
    assert error_of(d.read_eof()).sqlstate == "57P01"
    assert it.nodes[1].value("select count(*) from t") == "0"
    it.are_equal()


@pytest.mark.slow
def test_all_are_sent_away_at_once(make):
    it = make(client_idle_limit_in_recovery=-1)
    c, d = it.client(), it.client()
    it.lose(1)
    one(c, "begin")
    one(c, "insert into t (id) values (1)")
    d.send(w.query("select pg_sleep(600)"))
    recover(it, 1)
    assert error_of(c.read_eof()).sqlstate == "57P01" and error_of(d.read_eof()).sqlstate == "57P01"
    it.are_equal()


@pytest.mark.slow
def test_what_fails_lets_the_clients_go_on(make):
    it = make(recovery_timeout=2)
    c, d = it.client(), it.client()
    it.lose(1)
    one(c, "begin")
    one(c, "insert into t (id) values (1)")
    # A transaction that does not end.
    done = it.pcp.run("recovery_node", "1")
    assert done.returncode == 1 and "transactions of clients (1) did not end within recovery_timeout" in done.stderr
    one(c, "commit")
    one(d, "insert into t (id) values (2)")
    # A script that fails, and one that does not end.
    for body, why in (("echo no room; exit 3\n", "no room"), ("exec sleep 600\n", "timeout")):
        it.script(0, "recovery_2nd_stage", body)
        done = it.pcp.run("recovery_node", "1")
        assert done.returncode == 1 and 'failed at "2nd stage"' in done.stderr, done.stderr
        one(d, "insert into t (id) select max(id) + 1 from t")
    # Somebody writes who is no client of pgpool.
    with Wire(it.nodes[0].address) as other:
        other.login()
        one(other, "begin")
        one(other, "create table beside (n int)")
        done = it.pcp.run("recovery_node", "1")
        assert done.returncode == 1 and "who is no client of this pgpool" in done.stderr
    # The script leaves a standby.
    it.script(0, "recovery_2nd_stage", "exit 0\n")
    done = it.pcp.run("recovery_node", "1")
    assert done.returncode == 1 and "still in recovery" in done.stderr, done.stderr
    one(c, "insert into t (id) select max(id) + 1 from t")
    assert it.statuses() == ["up", "down"]
    # Whoever runs it dies.
    it.script(0, "recovery_2nd_stage", "exec sleep 600\n")
    asked = it.pcp.start("recovery_node", "1")
    waits.wait_for("it is in the second stage", lambda: it.step().startswith("second stage"), 60)
    control = [p for p in procs.children(it.pool.daemon.pid) if "control" in procs.command_line(p) or "PCP" in procs.command_line(p)]
    os.kill(control[0], signal.SIGKILL)
    asked.wait(30)
    one(c, "insert into t (id) select max(id) + 1 from t")
    assert it.pool.log().count("node recovery, the clients go on") >= 5


def test_what_is_refused(make):
    it = make(recovery_2nd_stage_command="")
    it.lose(1)
    assert "recovery_2nd_stage_command is not set" in it.pcp.run("recovery_node", "1").stderr


def test_the_main_node_is_detached_first(make):
    """Nobody can promote another one here."""
    it = make()
    said = it.pcp.run("recovery_node", "0").stderr
    assert "primary server cannot be recovered" in said and "pcp_detach_node" in said and "romote" not in said
    assert it.pcp.run("detach_node", "0").returncode == 0
    waits.wait_for("it is detached", lambda: it.statuses() == ["down", "up"])
    recover(it, 0)
    it.are_equal()


def test_detach_and_attach_run_their_commands(make, tmp_path):
    """All placeholders that name a primary or main node name the main one."""
    tmp_path.chmod(0o777)
    told = tmp_path / "told"
    it = make(failover_command=f"echo down %d %m %M %P >>{told}", failback_command=f"echo back %d >>{told}")

    def has_told(*lines: str) -> bool:
        return told.exists() and told.read_text().splitlines() == list(lines)
    assert it.pcp.run("detach_node", "1").returncode == 0
    waits.wait_for("it is detached", lambda: it.statuses() == ["up", "down"] and has_told("down 1 0 0 0"))
    assert it.pcp.run("attach_node", "1").returncode == 0
    waits.wait_for("it is attached", lambda: it.statuses() == ["up", "up"] and has_told("down 1 0 0 0", "back 1"))
    waits.wait_for("pcp_node_info says so", lambda: [
        row.split()[4:8] for row in it.pcp.run("node_info", "-a").stdout.splitlines() if row] == [
            ["up", "up", "main", "main"], ["up", "up", "replica", "replica"]])
