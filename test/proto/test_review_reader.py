# SPDX-License-Identifier: PostgreSQL
"""test_review_reader: a standby that accepts and says nothing, or dies, and what waits meanwhile."""
import os
import signal
import sys
from pathlib import Path

import pytest

from pgt import procs, waits
from pgt.wire import SYNC, Wire, bind, execute, parse, query

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cluster"))
from test_monitor import Trio, pool_for, wait_settled  # noqa: E402  pylint: disable=wrong-import-position

SLOW_READ = "select count(*) from t, generate_series(1, 20000000)"


@pytest.fixture(scope="module")
def cluster():
    it = Trio(0)
    it.keep_in_step()
    it.primary.rows("create table t(a int)")
    it.primary.rows("insert into t values (7)")
    yield it
    it.stop()


@pytest.fixture
def pool(cluster, start_pool):
    one = pool_for(start_pool, cluster, load_balance_mode=True, num_init_children=1, backend_weight0=0,
                   backend_weight1=1, backend_weight2=0, connect_timeout=3000)
    wait_settled(one, 0)
    return one


def login(pool) -> Wire:
    w = Wire(pool.address, seconds=20)
    assert w.login()[-1].type == "Z"
    return w


def test_standby_that_is_silent(cluster, pool):
    """The postmaster is stopped: the kernel accepts, nobody answers. The read must be made elsewhere."""
    w = login(pool)
    node = cluster.nodes[1]
    os.kill(node.daemon.pid, signal.SIGSTOP)
    try:
        assert w.rows("select a from t") == [[b"7"]]
    finally:
        os.kill(node.daemon.pid, signal.SIGCONT)
        w.bye()


def test_notifications_while_a_read_runs_are_bounded(cluster, pool):
    w = login(pool)
    w.simple("listen news")
    assert w.value("select inet_server_port() from t") == str(cluster.nodes[1].port)
    workers = [p for p in pool.pids() if "worker" in procs.command_line(p)]
    before = {p: procs.memory_kb(p) for p in workers}
    w.send(query("select count(*) from t, generate_series(1, 60000000)"))
    for _ in range(12):
        cluster.primary.rows("select pg_notify('news', i || repeat('x', 7900)) from generate_series(1, 1000) i")
    grown = max(procs.memory_kb(p) - before[p] for p in workers)
    found = w.ready(seconds=40)
    assert [m.type for m in found if m.type != "A"] == ["T", "D", "C", "Z"]
    w.bye()
    assert grown < 20000, f"{grown} kB"


def test_reader_dies_with_a_sync_behind(cluster, pool):
    """Whatever becomes of the read, the Sync behind it has its answer, too."""
    w = login(pool)
    assert w.value("select inet_server_port() from t") == str(cluster.nodes[1].port)
    w.send(parse(SLOW_READ) + bind() + execute() + SYNC + SYNC)
    waits.wait_for("it runs", lambda: cluster.nodes[1].sessions("state = 'active'"), 5)
    cluster.nodes[1].rows("select pg_terminate_backend(pid) from pg_stat_activity where state = 'active' "
                          "and pid <> pg_backend_pid() and backend_type = 'client backend'")
    w.ready(seconds=30)
    assert [m.type for m in w.ready(seconds=5)] == ["Z"]
    w.bye()


def test_extended_read_is_made_again(cluster, pool):
    """The standby ends the session before it has sent a row: ParseComplete and BindComplete, which come in
    one packet with its last words, are no answer yet."""
    w = login(pool)
    assert w.value("select inet_server_port() from t") == str(cluster.nodes[1].port)
    w.send(parse(SLOW_READ) + bind() + execute() + SYNC)
    waits.wait_for("it runs", lambda: cluster.nodes[1].sessions("state = 'active'"), 5)
    cluster.nodes[1].rows("select pg_terminate_backend(pid) from pg_stat_activity where state = 'active' "
                          "and pid <> pg_backend_pid() and backend_type = 'client backend'")
    assert [m.type for m in w.ready(seconds=40)] == ["1", "2", "D", "C", "Z"]
    w.bye()


def test_lines_about_a_server_connection_obey_the_session(cluster, pool):
    """PGPOOL SET log_min_messages also holds for what is said about the connections of the session."""
    cluster.primary.rows("create role asked login password 'asked'; grant select on t to asked")
    node = cluster.nodes[1]
    hba = node.data / "pg_hba.conf"
    before = hba.read_text(encoding="utf-8")
    hba.write_text("host all asked all scram-sha-256\n" + before, encoding="utf-8")
    node.rows("select pg_reload_conf()")

    def reads(*settings: str) -> list[str]:
        seen = len(pool.log())
        w = Wire(pool.address, seconds=20)
        w.login(user="asked")
        for setting in settings:
            w.rows(f"pgpool set {setting}")
        assert w.rows("select a from t") == [[b"7"]]
        w.bye()
        return [line for line in pool.log()[seen:].splitlines() if "reads of this session stay on node 0" in line]
    try:
        assert not reads()
        assert len(reads("log_min_messages = 'debug1'")) == 1
    finally:
        hba.write_text(before, encoding="utf-8")
        node.rows("select pg_reload_conf()")
