# SPDX-License-Identifier: PostgreSQL
"""test_setup: pgpool_setup makes what pgpool-II's makes, it works, and nothing is left running."""
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from pgt import postgres, procs, proxy, shadow, waits
from test_demo import free_port, processes_naming

SETUP = shadow.TOP / "src" / "bin" / "pgpool_setup" / "pgpool_setup"
ACCOUNT = postgres.OS_USER if procs.IS_ROOT else pwd.getpwuid(os.getuid()).pw_name
pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(not postgres.is_installed() or shadow.pg_config() is None,
                       reason="postgresql-server-dev is not installed"),
    pytest.mark.skipif(proxy.pgpool_bin() is None, reason="PGPOOL_BIN does not name a program")]


class Setup:
    def __init__(self):
        self.home = Path(tempfile.mkdtemp(prefix="pgt-setup-", dir="/tmp"))
        self.home.chmod(0o755)
        self.port = free_port()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("PG") or k == "PGPOOL_BIN"}
        self.env |= {"PGBIN": str(shadow.make_shadow()), "PGPOOL_BIN": str(Path(proxy.pgpool_bin() or "").resolve())}
        # The tools by their names, as an installation has them.
        tools = procs.folder("tools")
        for name in ("attach_node", "detach_node", "recovery_node", "node_info", "node_count"):
            (tools / f"pcp_{name}").symlink_to(Path(self.env["PGPOOL_BIN"]).parent / "pcp")
        self.env["PATH"] = f"{tools}:{self.env['PATH']}"
        self.tools = tools

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess:
        return subprocess.run([str(SETUP), "-p", str(self.port), *args], cwd=self.home, env={**self.env, **env}, text=True,
                              timeout=200 * waits.SCALE, capture_output=True, check=False, stdin=subprocess.DEVNULL)

    def script(self, name: str) -> None:
        done = subprocess.run([str(self.home / name)], cwd="/", env=self.env, text=True, timeout=60 * waits.SCALE, check=False,
                              capture_output=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout + done.stderr

    def psql(self, sql: str, port: int | None = None) -> str:
        done = subprocess.run(["psql", "-XAtqw", "-h", "localhost", "-p", str(port or self.port), "-U", ACCOUNT, "-d",
                               "postgres", "-c", sql], env=self.env, text=True, timeout=100, capture_output=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else f"failed: {done.stderr}"

    def nodes(self) -> list[tuple[str, str]]:
        """As soon as somebody is let in: while a node is lost and not yet known to be, nobody may be."""
        def ask() -> list[tuple[str, str]]:
            return [(r.split("|")[3], r.split("|")[6]) for r in self.psql("show pool_nodes").splitlines() if r.count("|") > 6]
        return waits.wait_for("SHOW POOL_NODES is answered", ask)

    def pcp(self, name: str, *args: str) -> subprocess.CompletedProcess:
        command = f"source {self.home}/bashrc.ports; exec pcp_{name} -h localhost -p $PCP_PORT -U {ACCOUNT} -w {' '.join(args)}"
        return subprocess.run(["bash", "-c", command], env=self.env, text=True, timeout=90 * waits.SCALE, capture_output=True,
                              check=False, stdin=subprocess.DEVNULL, **procs.run_as(postgres.OS_USER))

    def end(self) -> None:
        if (self.home / "shutdownall").exists():
            self.script("shutdownall")
        waits.wait_for("nothing is left running", lambda: not processes_naming(str(self.home)), 60)
        if "PGT_KEEP" not in os.environ:
            shutil.rmtree(self.home)


@pytest.fixture
def setup():
    it = Setup()
    yield it
    it.end()


def test_makes_a_cluster_that_works(setup):
    done = setup.run("-n", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("data0", "data1", "data2", "etc/pgpool.conf", "etc/pcp.conf", "log/pgpool.log", "startall", "shutdownall",
                 "pgpool_reload", "bashrc.ports", "README.port", "failover.sh", "follow_primary.sh", "basebackup.sh",
                 "pgpool_remote_start"):
        assert (setup.home / name).exists(), name
    assert processes_naming(str(setup.home)) == [], "without --no-stop everything is stopped"
    setup.script("startall")
    waits.wait_for("all nodes are up", lambda: setup.nodes() == [("up", "primary"), ("up", "standby"), ("up", "standby")], 60)
    assert setup.psql("show port", setup.port + 3) == str(setup.port + 3), "the servers' ports are behind PCP's"
    assert setup.pcp("node_count").stdout == "3\n"
    with open(setup.home / "etc" / "pgpool.conf", "a", encoding="ascii") as out:
        out.write("log_disconnections = on\n")
    setup.script("pgpool_reload")
    waits.wait_for("it is reloaded", lambda: setup.psql("pgpool show log_disconnections") == "on")
    # Of what runs already nothing is in the way.
    os.kill(int((setup.home / "run" / "pgpool.pid").read_text()), signal.SIGKILL)
    waits.wait_for("pgpool is gone", lambda: not any("pgpool.conf" in one for one in processes_naming(str(setup.home))), 60)
    setup.script("startall")
    waits.wait_for("all nodes are up again", lambda: [status for status, _ in setup.nodes()] == ["up"] * 3, 60)
    # A lost standby is rebuilt by the scripts that were made.
    pid = int((setup.home / "data2" / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGQUIT)
    waits.wait_for("node 2 is down", lambda: setup.nodes()[2][0] == "down", 60)
    shutil.rmtree(setup.home / "data2" / "base")
    done = setup.pcp("recovery_node", "2")
    assert done.returncode == 0, done.stderr + (setup.home / "log" / "pgpool.log").read_text()[-3000:]
    assert setup.nodes()[2] == ("up", "standby")
    setup.script("shutdownall")
    assert processes_naming(str(setup.home)) == []


def test_other_modes(setup):
    done = setup.run("-m", "n", "-n", "2", "--no-stop", "-t")
    assert done.returncode == 0, done.stdout + done.stderr
    assert setup.psql("pgpool show backend_clustering_mode") == "raw"
    assert setup.psql("pgpool show health_check_test") == "on"
    assert setup.psql("select pg_is_in_recovery()", setup.port + 3) == "f"
    done = setup.run("-m", "x")
    assert done.returncode == 1 and "unknown mode" in done.stderr


def test_without_servers(setup):
    done = setup.run("-e", "-d", "-n", "2", "-pg", str(setup.port + 30))
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (setup.home / "data0").exists()
    assert f"export PG1PORT={setup.port + 31}" in (setup.home / "bashrc.ports").read_text()
    setup.script("startall")
    assert setup.pcp("node_count").stdout == "2\n"


def test_extra_files(setup, tmp_path):
    (tmp_path / "pool").write_text("log_connections = on\n")
    (tmp_path / "pg").write_text("work_mem = '7MB'\n")
    (tmp_path / "hba").write_text("host nobody all 127.0.0.1/32 reject\n")
    (tmp_path / "sql").write_text("create table made (n int); create database nobody;\n")
    tmp_path.chmod(0o755)
    done = setup.run("--no-stop", "-n", "2", "-pg", str(setup.port + 5), "--pgpool-conf", str(tmp_path / "pool"), "--pg-conf",
                     str(tmp_path / "pg"), "--pg-hba", str(tmp_path / "hba"), "--sql", str(tmp_path / "sql"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert setup.psql("pgpool show log_connections") == "on"
    assert setup.psql("show work_mem", setup.port + 6) == "7MB"
    waits.wait_for("whoever is asked has it", lambda: setup.psql("select count(*) from made") == "0")
    refused = subprocess.run(["psql", "-XAtqw", "-h", "127.0.0.1", "-p", str(setup.port + 5), "-U", ACCOUNT, "nobody", "-c", ""],
                             env=setup.env, capture_output=True, text=True, check=False)
    assert "reject" in refused.stderr


def test_refuses_and_leaves_nothing(setup):
    (setup.home / "mine").touch()
    done = setup.run()
    assert done.returncode == 1 and "not empty" in done.stderr and os.listdir(setup.home) == ["mine"]
    (setup.home / "mine").unlink()
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", setup.port + 2))
        sock.listen()
        done = setup.run()
        assert done.returncode == 1 and "in use" in done.stderr and os.listdir(setup.home) == []
    for args in (["-n", "0"], ["-n", "x"], ["-p"], ["--frobnicate"], ["--sql", "/nonexistent"]):
        assert setup.run(*args).returncode == 1
    assert "Usage" in setup.run("--help").stdout
    # A server that cannot start: the first one is ended.
    (setup.home.parent / (setup.home.name + ".pg")).write_text("shared_buffers = 'nonsense'\n")
    done = setup.run("--pg-conf", str(setup.home) + ".pg")
    assert done.returncode == 1 and "did not start" in done.stderr
    Path(str(setup.home) + ".pg").unlink()
    assert processes_naming(str(setup.home)) == []


def test_an_interrupted_setup_leaves_nothing_running(setup):
    proc = subprocess.Popen([str(SETUP), "-p", str(setup.port), "-n", "3"], cwd=setup.home, env=setup.env,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    waits.wait_for("the first server runs", lambda: (setup.home / "data0" / "postmaster.pid").exists(), 60)
    proc.send_signal(signal.SIGTERM)
    assert proc.wait(60) != 0
    assert processes_naming(str(setup.home)) == []


def test_failover_by_the_scripts(setup):
    done = setup.run("-n", "3", "-c", "--no-stop")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failover.sh" in setup.psql("pgpool show failover_command")
    whole = [("up", "primary"), ("up", "standby"), ("up", "standby")]
    waits.wait_for("all nodes are up", lambda: setup.nodes() == whole, 60)
    os.kill(int((setup.home / "data0" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)

    def roles() -> list[str]:
        return [role for status, role in setup.nodes() if status == "up"]
    waits.wait_for("another node is the primary", lambda: "primary" in roles() and setup.nodes()[0][1] != "primary", 60)
    new = [role for _, role in setup.nodes()].index("primary")
    sql = "select count(*) from pg_stat_replication where state = 'streaming'"
    waits.wait_for("a standby follows", lambda: setup.psql(sql, setup.port + 2 + new) in ("1", "2"), 60)
    assert setup.psql("create table after_failover (n int)") == ""


@pytest.mark.parametrize("mode, name", [("r", "native_replication"), pytest.param("i", "snapshot_isolation", marks=pytest.mark.slow)])
def test_native_replication(setup, tmp_path, mode, name):
    (tmp_path / "sql").write_text("create table made (n serial primary key, at timestamptz default now());\n")
    tmp_path.chmod(0o755)
    done = setup.run("-m", mode, "-n", "2", "--no-stop", "--sql", str(tmp_path / "sql"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert setup.psql("pgpool show backend_clustering_mode") == name
    waits.wait_for("both are up", lambda: setup.nodes() == [("up", "main"), ("up", "replica")], 60)
    assert setup.psql("insert into made default values") == ""
    os.kill(int((setup.home / "data1" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
    waits.wait_for("node 1 is down", lambda: setup.nodes()[1][0] == "down", 60)
    assert setup.psql("insert into made default values") == ""
    done = setup.pcp("recovery_node", "1")
    assert done.returncode == 0, done.stderr + (setup.home / "log" / "pgpool.log").read_text()[-3000:]
    assert setup.nodes() == [("up", "main"), ("up", "replica")]
    assert setup.psql("insert into made default values") == ""
    rows = [setup.psql("select * from made order by 1", setup.port + 2 + i) for i in range(2)]
    assert rows[0] == rows[1] and rows[0].count("|") == 3
