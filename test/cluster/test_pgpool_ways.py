# SPDX-License-Identifier: PostgreSQL
"""test_pgpool_ways: what scripts made for pgpool-II rely on: where commands run, what may be asked while a failover is under
way, which releases tools want."""
import re
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from pgt import procs, waits
from pgt.pcp_tool import pcp
from pgt.proxy import pgpool_bin
from pgt.trio import Trio
from test_monitor import column, logged_in, pool_for, show, wait_settled


@pytest.fixture(params=[0, 2], ids=["primary0", "primary2"])
def trio(request):
    it = Trio(request.param)
    yield it
    it.stop()


@pytest.mark.parametrize("trio", [2], indirect=True)
def test_commands_run_where_pgpool_was_started(trio, start_pool):
    home = procs.folder("where")
    pool = pool_for(start_pool, trio, failover_command=f"pwd > {home}/new && mv {home}/new {home}/where")
    pool.stop()
    pool.launch(["sh", "-c", f"cd {home} && exec {pgpool_bin()} -n -f {pool.conf_path}"])  # the harness starts programs in /
    wait_settled(pool, trio.at)
    lost = trio.standbys[0]
    trio.nodes[lost].stop(signal.SIGKILL)
    waits.wait_for("the command has run", lambda: (home / "where").exists())
    assert (home / "where").read_text(encoding="utf-8") == f"{home}\n"
    # What alarms look for.
    waits.wait_for("the loss is a WARNING", lambda: f"WARNING:  health check failed on node {lost}" in pool.log())


def test_a_recovery_waits_for_the_failover(trio, start_pool):
    home = procs.folder("wait")
    pool = pool_for(start_pool, trio, failover_command=f"[ %d = %P ] || exit 0; touch {home}/began; "
                    f"while [ ! -e {home}/go ]; do sleep 0.1; done", recovery_user="postgres",
                    **{f"backend_data_directory{i}": str(trio.nodes[i].data) for i in range(3)})
    wait_settled(pool, trio.at)
    trio.primary.stop(signal.SIGKILL)
    waits.wait_for("the failover has begun", lambda: (home / "began").exists())
    tool = pcp(pool, "recovery_node", "-n", str(trio.at))
    waits.holds_for("it waits", lambda: tool.poll() is None, 2)
    (home / "go").touch()
    new = trio.standbys[0]
    trio.nodes[new].rows("select pg_promote()")
    waits.wait_for("the failover is over", lambda: column(pool, "role")[new] == "primary")
    out, err = tool.communicate(timeout=60 * waits.SCALE)
    # It began then, and found that nothing is installed in these servers to do it with.
    assert tool.returncode != 0 and "node recovery failed" in out + err and "at the moment" not in out + err, out + err


def attach_while_it_is_still(pool, trio, tries: int) -> tuple[int, str, float]:
    """What pcp_attach_node ends with, and says, about a server that answers a second later; and how long it took."""
    began = waits.now()
    stopped = [trio.primary.daemon.pid, *procs.children(trio.primary.daemon.pid)]
    try:
        procs.stand_still(*stopped)
        tool = pcp(pool, "attach_node", "-n", str(trio.at))
        waits.wait_for("it is attached", lambda: pool.log().count(f"node {trio.at} is attached by") == tries)
        waits.holds_for("nothing is said", lambda: tool.poll() is None or waits.now() - began > 9, 1)
    finally:
        procs.go_on(*stopped)
    out, err = tool.communicate(timeout=60 * waits.SCALE)
    return tool.returncode, out + err, waits.now() - began


def test_a_former_primary_that_is_attached_is_told_of_truly(trio, start_pool):
    """However late it answers; but for ten seconds at most: a slow machine has some tries."""
    pool = pool_for(start_pool, trio, health_check_timeout=60)
    wait_settled(pool, trio.at)
    new = trio.standbys[0]
    trio.promote(new)
    for tries in range(1, 6):
        waits.wait_for("the old one is out", lambda: column(pool, "status")[trio.at] == "quarantine")
        code, text, took = attach_while_it_is_still(pool, trio, tries)
        if code != 0:
            break
        assert took > 9, "it answered in time"
    assert code != 0 and f"the primary is node {new}" in text, text


def test_tools_see_a_release_they_know():
    """Exporters leave out reports for versions before 4.2."""
    done = subprocess.run([pgpool_bin(), "--version"], capture_output=True, text=True, check=False)
    major, minor, patch = re.match(r"pgpool-II version (\d+)\.(\d+)\.(\d+) \(\w+\)$", done.stderr.strip()).groups()
    assert (int(major), int(minor)) >= (4, 2), patch


@pytest.mark.parametrize("trio", [2], indirect=True)
def test_show_says_the_release(trio, start_pool):
    pool = pool_for(start_pool, trio)
    wait_settled(pool, trio.at)
    assert re.fullmatch(r"\d+\.\d+\.\d+ \(\w+\)", show(pool, "POOL_VERSION")[0]["pool_version"])


@pytest.mark.parametrize("trio", [2], indirect=True)
def test_lines_that_scripts_look_for(trio, start_pool):
    """Where pgpool-II writes a line that somebody searches its log for, it is there, at its level."""
    pool = pool_for(start_pool, trio, load_balance_mode=True, log_min_messages="debug1", delay_threshold_by_time=1000,
                    replication_delay_source_cmd="exit 3;")
    wait_settled(pool, trio.at)
    with logged_in(pool) as w, logged_in(pool) as victim:
        w.rows("select 1")
        pid = victim.value("select pg_backend_pid()")
        w.rows(f"select pg_terminate_backend({pid})")
        w.rows("select 'a query that arrives'")
    raw = socket.create_connection((pool.address.host, pool.address.port))
    raw.sendall(struct.pack("!II", 8, 80877103))
    assert raw.recv(1) == b"N"
    raw.close()
    trio.nodes[trio.standbys[0]].stop(signal.SIGKILL)
    for text in ("DEBUG:  selecting load balance node", "DEBUG:  simple query \"select 'a query that arrives'\" arrived", "DEBUG:  found the pg_terminate_backend request",
                 "DEBUG:  client->server SSL response: N", "DEBUG:  executing failover on backend",
                 "DEBUG:  executing replication delay command: exit 3;", "WARNING:  replication delay command failed with exit code 3"):
        waits.wait_for(text, lambda text=text: text in pool.log())


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_lines_about_tables_written_lately(trio, start_pool, mode):
    trio.keep_in_step()
    trio.primary.rows("create table lately(a int); create table rarely(a int)")
    pool = pool_for(start_pool, trio, load_balance_mode=True, log_min_messages="debug1", num_init_children=1, pool_mode=mode,
                    disable_load_balance_on_write="dml_adaptive_global", track_table_mutation_cold_start_duration="60s",
                    track_table_mutation_max_staleness="10min", replication_delay_source_cmd="echo 20000 20000 #", **{f"backend_weight{i}": int(i != trio.at) for i in range(3)})
    wait_settled(pool, trio.at)
    with logged_in(pool) as w:
        w.rows("select 'while it is cold' from rarely")
        waits.wait_for("the cold start is told of", lambda: "DEBUG:  could not load balance because of track table mutation cold start"
                       in pool.log())
        pool.reload(track_table_mutation_cold_start_duration=0)
        waits.wait_for("it is over", lambda: w.value("select inet_server_port() from (select 1) x left join rarely on true")
                       != str(trio.primary.port))
        assert "was recently written" not in pool.log()
        waits.wait_for("the lag is known, of which a mark's time is a multiple", lambda: column(pool, "replication_delay").count("20.000000 seconds") == 2)
        w.rows("insert into lately values (1)")
        w.rows("select * from lately")
    waits.wait_for("the table is named", lambda: 'DEBUG:  could not load balance because table "lately" was recently written'
                   in pool.log())
    assert 'table "rarely"' not in pool.log()


def test_pool_nodes_looks_again(trio, start_pool):
    """With checks a minute apart SHOW POOL_NODES knows all the same what has happened a second ago."""
    pool = pool_for(start_pool, trio, health_check_period=60, sr_check_period=60)
    wait_settled(pool, trio.at)
    lost = trio.standbys[0]
    trio.nodes[lost].stop(signal.SIGKILL)
    time.sleep(1.1)  # ban: what is known has to grow old
    waits.wait_for("it is down", lambda: column(pool, "pg_status")[lost] == "down", 40)  # each time it looks for a second
    with logged_in(pool) as w:
        assert w.value("select 1") == "1"  # the session is usable behind the look


@pytest.mark.parametrize("trio", [2], indirect=True)
def test_pool_nodes_waits_a_second_at_most(trio, start_pool):
    pool = pool_for(start_pool, trio, health_check_period=60, sr_check_period=60, health_check_timeout=20)
    wait_settled(pool, trio.at)
    postmaster = trio.nodes[trio.standbys[0]].daemon.pid
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text(encoding="ascii").split()
    try:
        procs.stand_still(postmaster, *map(int, children))
        took = []
        while len(took) < 5 and not any(0.5 < t < 10 for t in took):
            time.sleep(1.1)  # ban: what is known has to grow old
            began = time.monotonic()
            assert len(show(pool)) == 3
            took.append(time.monotonic() - began)
        assert any(0.5 < t < 10 for t in took), took  # a check itself waits twenty
    finally:
        procs.go_on(postmaster, *map(int, children))


def test_a_stopped_server_is_down_in_the_next_show(trio, start_pool):
    """Its connections have broken: neither the next check nor its repetitions are waited for, and the report is for what a look at
    the servers has found, unless that took the second that it may take."""
    pool = pool_for(start_pool, trio, health_check_period=60, sr_check_period=60, health_check_max_retries=5,
                    health_check_retry_delay=60, failover_on_backend_error=True)
    wait_settled(pool, trio.at)
    with logged_in(pool) as w:
        w.rows("select 1")
        trio.primary.stop(signal.SIGKILL)
        waits.wait_for("the worker has heard of it", lambda: "goes on without its server connection" in pool.log())
        began = waits.now()
        status = w.rows("show pool_nodes")[trio.at][3]
        assert status == b"down" or waits.now() - began > 0.9
    waits.wait_for("it is down", lambda: column(pool, "status")[trio.at] == "down")
