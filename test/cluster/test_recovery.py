# SPDX-License-Identifier: PostgreSQL
"""test_recovery: online recovery with the sample scripts, against real servers: by copying everything, by
pg_rewind, and everything that can go wrong on the way."""
import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from pgt import postgres, procs, proxy, shadow, waits
from pgt.wire import Address

from test_web_console import Login
from recovery_lab import EXAMPLES, Cluster, Pcp, fake_ssh, pool_rows, statuses

pytestmark = [
    pytest.mark.skipif(not postgres.is_installed() or shadow.pg_config() is None,
                       reason="postgresql-server-dev is not installed"),
    pytest.mark.skipif(proxy.pgpool_bin() is None, reason="PGPOOL_BIN does not name a program")]


@pytest.fixture
def cluster():
    it = Cluster(2)
    yield it
    it.end()


@pytest.fixture
def make(cluster, start_pool):
    def start(**changes):
        pool = start_pool(*[n.address for n in cluster.nodes], **cluster.pool_conf(**changes))
        pool.pcp = Pcp(pool)
        waits.wait_for("both nodes are up", lambda: statuses(pool) == [("up", "primary"), ("up", "standby")], 60)
        return pool
    return start


def lose(cluster, pool, node: int) -> None:
    cluster.nodes[node].kill()
    waits.wait_for(f"node {node} is down", lambda: statuses(pool)[node][0] == "down", 60)


def recoveries(pool) -> list[dict[str, str]]:
    names = ("node", "host", "port", "primary", "state", "step", "started", "step_started", "ended", "who", "message")
    return [dict(zip(names, row)) for row in pool_rows(pool, "show pool_recovery")]


def test_a_destroyed_standby_is_copied(cluster, make):
    pool = make()
    lose(cluster, pool, 1)
    shutil.rmtree(cluster.nodes[1].data / "base")
    (cluster.nodes[1].data / "global" / "pg_control").unlink()
    done = pool.pcp.run("recovery_node", "-v", "1")
    assert done.returncode == 0, done.stderr + pool.log()[-3000:]
    assert "Command Successful" in done.stdout
    assert "first stage" in done.stderr and "waiting for the server to answer" in done.stderr
    assert statuses(pool) == [("up", "primary"), ("up", "standby")]
    waits.wait_for("it streams", lambda: cluster.streaming() == 1, 60)
    (one,) = recoveries(pool)
    assert (one["node"], one["primary"], one["state"], one["step"], one["who"]) == ("1", "0", "succeeded", "done", "PCP user op")
    assert one["ended"] >= one["started"] != ""
    # The settings that are its own stayed its own.
    assert cluster.nodes[1].value("show port") == str(cluster.nodes[1].port)
    assert cluster.nodes[1].value("show primary_slot_name") == "pgpool_node1"
    assert "copying everything" in cluster.nodes[0].log()


@pytest.mark.parametrize("how", ["pcp_reload_config", "pgpool reload"])
def test_added_reloaded_and_made_at_once(cluster, start_pool, how):
    """As scripts do it: a server that nobody has made yet gets its lines in the file, a reload, and the order to make it in the next line."""
    first, new = cluster.nodes
    new.kill()
    shutil.rmtree(new.data / "base")
    (new.data / "global" / "pg_control").unlink()
    conf = cluster.pool_conf()
    lines = {name: conf.pop(name) for name in list(conf) if name.startswith("backend_") and name.endswith("1")}
    pool = start_pool(first.address, **conf)
    pool.pcp = Pcp(pool)
    waits.wait_for("the first is up", lambda: statuses(pool) == [("up", "primary")], 60)
    pool.write_conf(backend_hostname1=new.address.host, backend_port1=new.port, backend_weight1=1, **lines)
    if how == "pgpool reload":
        procs.run([str(proxy.pgpool_bin()), "-f", str(pool.conf_path), "reload"])
    else:
        assert pool.pcp.run("reload_config").returncode == 0
    done = pool.pcp.run("recovery_node", "1")
    assert done.returncode == 0, done.stderr + pool.log()[-3000:]
    assert statuses(pool) == [("up", "primary"), ("up", "standby")]


def test_ordered_in_the_console(cluster, make):
    """Who ordered it stands beside it, and in the events; a server in use is not overwritten."""
    port = procs.free_port()
    pool = make(http_port=port, http_listen_addresses="127.0.0.1", http_operators="op")
    pool.web = port
    lose(cluster, pool, 1)
    login = Login(pool)
    refused = login.do("recover", node="0")
    assert refused.status == 409 and "in use" in refused.json()["error"]
    assert login.do("recover", node="1").status == 200

    def last() -> dict:
        return (login.get("recovery").json()["rows"] or [{"state": ""}])[-1]
    waits.wait_for("it is over", lambda: last()["state"] not in ("", "running"), 60)
    assert (last()["state"], last()["node_id"]) == ("succeeded", 1), last()
    assert last()["who"].startswith("HTTP user op") and login.wait_event("recovery")["actor"] == last()["who"]
    waits.wait_for("it is up", lambda: statuses(pool) == [("up", "primary"), ("up", "standby")], 60)


def test_an_old_primary_is_rewound(cluster, make):
    pool = make(auto_failback=False)
    old, new = cluster.nodes
    old.rows("create table t (n int)")
    old.rows("insert into t select generate_series(1, 1000)")
    lsn = old.value("select pg_current_wal_lsn()")
    waits.wait_for("the standby has it", lambda: new.value(f"select pg_last_wal_replay_lsn() >= '{lsn}'") == "t")
    # The old primary writes what nobody else will ever have, then is lost.
    pid = int(new.value("select pid from pg_stat_wal_receiver"))
    new.rows("select pg_promote()")
    waits.wait_for("the receiver has ended", lambda: not os.path.exists(f"/proc/{pid}"))
    old.rows("insert into t values (-1)")
    old.kill()
    new.rows("insert into t values (2000)")
    waits.wait_for("the new one is followed", lambda: statuses(pool)[1] == ("up", "primary"), 60)
    waits.wait_for("the old one is out", lambda: statuses(pool)[0][0] in ("down", "quarantine"), 60)
    done = pool.pcp.run("recovery_node", "-n", "0")
    assert done.returncode == 0, done.stderr + pool.log()[-3000:]
    assert "pg_rewind has brought" in new.log(), new.log()[-6000:]
    assert statuses(pool) == [("up", "standby"), ("up", "primary")]
    waits.wait_for("it has caught up", lambda: old.ask("select count(*) from t where n = 2000") == "1", 60)
    assert old.value("select count(*) from t where n = -1") == "0"
    assert old.value("show port") == str(old.port)


def test_what_may_not_be_recovered(cluster, make):
    pool = make()
    for args, why in ((["0"], "primary server cannot be recovered"), (["1"], "the node is in use"), (["7"], "node id 7 is not valid")):
        done = pool.pcp.run("recovery_node", *args)
        assert done.returncode == 1 and why in done.stderr
    assert recoveries(pool) == []
    assert pool.pcp.run("recovery_node", "1", "--old-exit-status").returncode == 0
    assert cluster.nodes[1].is_alive()


def script(cluster, body: str) -> None:
    path = cluster.nodes[0].data / "recovery_1st_stage"
    path.write_text("#!/bin/bash\n" + body, encoding="utf-8")


def test_a_failed_script_is_told(cluster, make):
    pool = make(auto_failback=False)
    assert pool.pcp.run("detach_node", "1").returncode == 0
    script(cluster, "echo 'no room on the device'; exit 7\n")
    done = pool.pcp.run("recovery_node", "1")
    assert done.returncode == 1
    assert 'execution of command failed at "1st stage"' in done.stderr
    assert "exit status 7" in done.stderr and "no room on the device" in done.stderr
    (one,) = recoveries(pool)
    assert one["state"] == "failed" and "first stage" in one["step"] and "no room" in one["message"]
    assert statuses(pool)[1][0] == "down"
    # Without the extension the hint says what to do.
    cluster.nodes[0].rows("drop extension pgpool_recovery")
    done = pool.pcp.run("recovery_node", "1")
    assert done.returncode == 1 and "pgpool_recovery" in done.stderr
    told = 'Run CREATE EXTENSION pgpool_recovery in database "postgres", which is recovery_database'
    assert told in pool.log() and told in done.stderr
    assert [r["state"] for r in recoveries(pool)] == ["failed", "failed"]


def test_a_wrong_standby_is_not_attached(cluster, make):
    """A copy without standby.signal would be a second primary."""
    pool = make(auto_failback=False)
    lose(cluster, pool, 1)
    script(cluster, f"rm -f {cluster.nodes[1].data}/standby.signal\n")
    done = pool.pcp.run("recovery_node", "1")
    assert done.returncode == 1 and "is no standby" in done.stderr
    assert statuses(pool)[0] == ("up", "primary") and statuses(pool)[1][0] != "up"


def test_a_server_that_does_not_start(cluster, make):
    pool = make(recovery_timeout=2, auto_failback=False)
    lose(cluster, pool, 1)
    script(cluster, "exit 0\n")
    (cluster.nodes[0].data / "pgpool_remote_start").write_text("#!/bin/sh\nexit 0\n", encoding="ascii")
    done = pool.pcp.run("recovery_node", "1")
    assert done.returncode == 1 and "within recovery_timeout" in done.stderr


def test_one_at_a_time_and_without_its_asker(cluster, make):
    pool = make(auto_failback=False)
    assert pool.pcp.run("detach_node", "1").returncode == 0
    mark = cluster.home / "go"
    script(cluster, f"until [ -e {mark} ]; do read -r -t 0.05 < <(:) || true; done\n")
    none = pool.pcp.run("recovery_node", "--watch")
    assert none.returncode == 1 and "there is no recovery to watch" in none.stderr
    assert pool.pcp.run("recovery_node", "--status").stdout == ""
    asker = pool.pcp.start("recovery_node", "1")
    waits.wait_for("it copies", lambda: [r["step"][:11] for r in recoveries(pool)] == ["first stage"])
    line = rf"1 127.0.0.1 {cluster.nodes[1].port} 0 running \S+ \S+ first stage: copying the primary\n"
    assert re.fullmatch(line, pool.pcp.run("recovery_node", "--status").stdout)
    assert pool.pcp.run("recovery_node", "--status", "-n", "0").stdout == ""
    watcher = pool.pcp.start("recovery_node", "--watch", "1")
    assert watcher.stderr.readline() == "NOTICE:  node 1: first stage: copying the primary\n"
    (one,) = recoveries(pool)
    assert one["state"] == "running" and one["ended"] == ""
    second = pool.pcp.run("recovery_node", "1")
    assert second.returncode == 1 and "already processing another recovery request" in second.stderr
    asker.send_signal(signal.SIGKILL)
    asker.communicate()
    mark.touch()
    # The server was never stopped, so starting it fails; the recovery went on to there.
    waits.wait_for("it is over", lambda: recoveries(pool)[0]["state"] == "failed", 60)
    assert recoveries(pool)[0]["step"] == "starting the server"
    out, told = watcher.communicate(timeout=60)
    assert (watcher.returncode, out) == (1, "") and "node recovery failed, node id: 1" in told
    assert "NOTICE:  node 1: starting the server\n" in told
    (row,) = json.loads(pool.pcp.run("recovery_node", "--status", "--json").stdout)
    assert (row["node_id"], row["state"], row["who"], row["step"]) == (1, "failed", "PCP user op", "starting the server")
    assert "Step            : starting the server\n" in pool.pcp.run("recovery_node", "--status", "-v", "1").stdout


def test_stopping_pgpool_ends_the_script(cluster, make):
    pool = make(auto_failback=False)
    assert pool.pcp.run("detach_node", "1").returncode == 0
    pidfile = cluster.home / "pid"
    script(cluster, f"echo $$ > {pidfile}.new; mv {pidfile}.new {pidfile}; exec tail -f /dev/null\n")
    asker = pool.pcp.start("recovery_node", "1")
    waits.wait_for("the script runs", pidfile.exists)
    pid = int(pidfile.read_text(encoding="ascii"))
    pool.stop()
    waits.wait_for("the script has ended", lambda: procs.stat_fields(pid) is None, 60)
    out, err = asker.communicate(timeout=60)
    assert asker.returncode == 1, out + err


def test_the_control_process_dies(cluster, make):
    pool = make(auto_failback=False)
    assert pool.pcp.run("detach_node", "1").returncode == 0
    pidfile = cluster.home / "pid"
    script(cluster, f"echo $$ > {pidfile}.new; mv {pidfile}.new {pidfile}; exec tail -f /dev/null\n")
    asker = pool.pcp.start("recovery_node", "1")
    waits.wait_for("the script runs", pidfile.exists)
    pid = int(pidfile.read_text(encoding="ascii"))
    (control,) = [p for p in procs.children(pool.daemon.pid) if "PCP" in procs.command_line(p)]
    os.kill(control, signal.SIGKILL)
    assert asker.wait(60) == 1
    asker.communicate()
    waits.wait_for("the recovery is told to be over", lambda: recoveries(pool)[0]["state"] == "failed")
    assert "has died" in recoveries(pool)[0]["message"]
    waits.wait_for("the script has ended", lambda: procs.stat_fields(pid) is None, 60)


@pytest.mark.skipif(shutil.which("pcp_recovery_node", path="/usr/sbin:/usr/bin") is None,
                    reason="pgpool-II is not installed")
def test_their_tool_recovers_too(cluster, make):
    pool = make()
    lose(cluster, pool, 1)
    done = pool.pcp.run("recovery_node", "-n", "1", program=shutil.which("pcp_recovery_node", path="/usr/sbin:/usr/bin"))
    assert done.stdout == "pcp_recovery_node -- Command Successful\n", done
    assert statuses(pool) == [("up", "primary"), ("up", "standby")]


def test_over_ssh(start_pool, monkeypatch, tmp_path):
    """The other host is reached by ssh: here by a program that does what ssh would do."""
    ssh = fake_ssh()
    monkeypatch.setenv("PGPOOL_SSH", str(ssh))
    cluster = Cluster(2, listen_addresses="127.0.0.1,127.0.0.2")
    try:
        primary, standby = cluster.nodes
        standby.kill()
        pool = start_pool(primary.address, Address("127.0.0.2", standby.port), **cluster.pool_conf())
        pool.pcp = Pcp(pool)
        waits.wait_for("node 1 is down", lambda: statuses(pool)[1][0] == "down", 60)
        shutil.rmtree(standby.data)
        done = pool.pcp.run("recovery_node", "1")
        assert done.returncode == 0, done.stderr + pool.log()[-3000:]
        assert set((ssh.parent / "log").read_text(encoding="ascii").split()) == {"postgres@127.0.0.2"}
        assert statuses(pool)[1] == ("up", "standby")
    finally:
        cluster.end()


def example_conf(cluster, **changes) -> dict[str, object]:
    """Settings of the example for three hosts, with the hosts of this cluster in the place of its own."""
    found = re.findall(r"^(#?)(\w+) = '?(.*?)'?$", (EXAMPLES / "pgpool.conf").read_text(encoding="utf-8"), re.M)
    conf: dict[str, object] = {name: value for mark, name, value in found if not mark}
    scripts = {name: value for mark, name, value in found if mark}
    test = cluster.pool_conf()
    for name in ("port", "listen_addresses"):
        del conf[name]
    conf |= {k: test[k] for k in ("pcp_listen_addresses", "pcp_port", "sr_check_user", "health_check_user")}
    for i, node in enumerate(cluster.nodes):
        assert conf[f"backend_application_name{i}"] == f"server{i}"
        conf |= {f"backend_hostname{i}": "127.0.0.1", f"backend_port{i}": node.port, f"backend_data_directory{i}": node.data}
    conf |= {"sr_check_period": 1, "health_check_period": 1}
    if changes.pop("by_scripts", False):
        conf |= {k: v.replace("/etc/pgpool", str(EXAMPLES)) for k, v in scripts.items()}
    return {**conf, **changes}


@pytest.mark.parametrize("by_scripts", [False, True], ids=["by SQL", "by scripts"])
def test_the_example_for_three_hosts(start_pool, by_scripts, monkeypatch):
    """Its primary is killed, a standby takes over, the other one follows, the lost one is rebuilt."""
    tools = procs.folder("tools")
    for name in ("attach_node", "detach_node", "recovery_node"):
        (tools / f"pcp_{name}").symlink_to(Path(proxy.pgpool_bin()).resolve().parent / "pcp")
    cluster = Cluster(3)
    try:
        conf = example_conf(cluster, by_scripts=by_scripts)
        passfile = tools / "pcppass"
        passfile.write_text("*:*:op:secret\n", encoding="ascii")
        passfile.chmod(0o600)
        for name, value in {"PGBIN": shadow.make_shadow(), "PCPPASSFILE": passfile, "PGPOOL_PCP_USER": "op",
                            "PGPOOL_PCP_PORT": conf["pcp_port"], "PATH": f"{tools}:{os.environ['PATH']}"}.items():
            monkeypatch.setenv(name, str(value))
        pool = start_pool(*[n.address for n in cluster.nodes], **conf)
        pool.pcp = Pcp(pool)
        whole = [("up", "primary"), ("up", "standby"), ("up", "standby")]
        waits.wait_for("all nodes are up", lambda: statuses(pool) == whole, 60)
        cluster.nodes[0].kill()

        def replaced() -> int:
            now = statuses(pool)
            return next((i for i in (1, 2) if now[i] == ("up", "primary")), 0)
        new = waits.wait_for("another primary", replaced, 60)
        waits.wait_for("the other standby follows", lambda: cluster.streaming(new) == 1, 60)
        waits.wait_for("the old primary is down", lambda: statuses(pool)[0][0] == "down", 60)

        def recovered() -> bool:
            done = pool.pcp.run("recovery_node", "0")
            return done.returncode == 0 or "in use" in done.stderr  # follow_primary.sh may have been quicker
        waits.wait_for("the old primary is rebuilt", recovered, 60)
        waits.wait_for("all three are there", lambda: sorted(statuses(pool)) == sorted(whole), 60)
        waits.wait_for("both stream from the new one", lambda: cluster.streaming(new) == 2, 60)
    finally:
        cluster.end()
