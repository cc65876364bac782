# SPDX-License-Identifier: PostgreSQL
"""test_demo: the two commands do what the README says: dev/demo starts, tells, stops; the installed
prefix has the layout of pgpool-II's."""
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from pgt import waits

TOP = Path(__file__).resolve().parents[2]
DEMO = TOP / "dev" / "demo"
pytestmark = pytest.mark.timeout(400)  # initdb alone takes half a minute on a machine with sixty others at work


def free_port() -> int:
    """A port with room for the demo's servers behind it. Below the ranges that dev/check gives to groups of tests, which run at
    the same time, and below that of outgoing connections."""
    for _ in range(500):
        port = 10000 + int.from_bytes(os.urandom(2), "big") % 1950
        try:
            for near in range(port, port + 20):
                with socket.socket() as sock:
                    sock.bind(("127.0.0.1", near))
        except OSError:
            continue
        return port
    raise AssertionError("no free ports between 10000 and 12000")


def processes_naming(text: str) -> list[str]:
    """Command lines that hold `text`."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in line:
            found.append(f"{folder.name}: {line.replace(bytes(1), b' ').decode(errors='replace')}")
    return found


class Demo:
    def __init__(self, folder: str):
        self.folder = folder
        self.port = free_port()
        self.env = {**os.environ, "DEMO_DIR": folder, "DEMO_PORT": str(self.port),
                    "PGPOOL_BIN": str(Path(os.environ["PGPOOL_BIN"]).resolve()),
                    "PGPASSWORD": "not the demo's"}

    def run(self, *args: str, **env: str) -> subprocess.CompletedProcess:
        return subprocess.run([DEMO, *args], env={**self.env, **env}, text=True, timeout=180,
                              capture_output=True, check=False)

    def reads_on_standbys(self) -> int:
        """After some reads that no primary has to make."""
        for _ in range(12):
            self.psql("SELECT 1")
        nodes = [line.split("|") for line in self.psql("SHOW POOL_NODES").splitlines()]
        return sum(int(n[8]) for n in nodes if n[6] == "standby")

    def psql(self, sql: str) -> str:
        done = subprocess.run(
            ["psql", "-XAtq", "-h", "localhost", "-p", str(self.port), "-U", "demo", "-c", sql, "demo"],
            env={**self.env, "PGPASSWORD": "demo"}, text=True, timeout=100, capture_output=True, check=True)
        return done.stdout.strip()

    def pids(self) -> list[int]:
        return [int((Path(self.folder) / "state" / n).read_text().split()[0])
                for n in ("pgpool", "node0", "node1", "node2")]


@pytest.fixture
def demo():
    folder = tempfile.mktemp(prefix="pgpool-demo-test-", dir="/tmp")
    it = Demo(folder)
    yield it
    it.run("stop")
    Path(folder + ".lock").unlink(missing_ok=True)
    assert not Path(folder).exists()
    assert processes_naming(folder) == []


def test_starts_tells_and_stops(demo):
    done = demo.run()
    assert done.returncode == 0, done.stderr
    assert f"psql -h localhost -p {demo.port} -U demo" in done.stdout
    assert demo.psql("SELECT pg_is_in_recovery()") == "f"
    assert demo.psql("SHOW POOL_NODES").count("\n") == 2
    assert "PGPASSWORD=demo" in done.stdout
    waits.wait_for("who has a password is balanced, too", lambda: demo.reads_on_standbys() > 0)
    status = demo.run("status")
    assert status.returncode == 0
    assert [line.split()[-1] for line in status.stdout.splitlines()] == [
        "answers", "primary", "standby", "standby"]

    pids = demo.pids()
    again = demo.run()  # a second one is safe
    assert again.returncode == 0 and "running already" in again.stdout
    assert demo.pids() == pids

    is_rebuilt(demo)
    stop = demo.run("stop")
    assert stop.returncode == 0
    assert processes_naming(demo.folder) == [] and not Path(demo.folder).exists()
    assert demo.run("status").returncode == 3


def test_replaces_a_half_dead_demo(demo):
    """And finds what was not written down."""
    assert demo.run().returncode == 0
    os.kill(demo.pids()[1], signal.SIGKILL)
    done = demo.run()
    assert done.returncode == 0, done.stderr
    assert demo.psql("SELECT 1") == "1"
    for name in ("pgpool", "node1"):
        (Path(demo.folder) / "state" / name).unlink()
    assert demo.run("stop").returncode == 0
    assert processes_naming(demo.folder) == []


def is_rebuilt(demo: Demo) -> None:
    """A lost server, by pcp_recovery_node, which starts it anew; `stop` ends that server, too, before it removes its folder."""
    lost = demo.pids()[3]
    os.kill(lost, signal.SIGKILL)
    waits.wait_for("node 2 is down", lambda: [row[3] for row in lines_of(demo, "localhost", "show pool_nodes")][2:] == ["down"], 60)
    cluster = Path(demo.folder) / "run" / "cluster"
    user = (cluster / "etc" / "pcp.conf").read_text().strip().splitlines()[-1].split(":")[0]
    done = subprocess.run([Path(demo.env["PGPOOL_BIN"]).parent / "pcp", "recovery_node", "-h", "localhost", "-p", str(demo.port + 1),
                           "-w", "-U", user, "-n", "2"], env={**demo.env, "PCPPASSFILE": str(cluster / "etc" / "pcppass")},
                          text=True, timeout=180, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr + (cluster / "log" / "pgpool.log").read_text()[-3000:]
    assert demo.psql("show pool_nodes").splitlines()[2].split("|")[3] == "up"
    new = int((cluster / "data2" / "postmaster.pid").read_text().split()[0])
    assert new != lost


def test_native_replication_is_shown(demo):
    """Two servers, one of them killed and rebuilt while clients write; `stop` ends the rebuilt one, too."""
    done = demo.run("--native")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "second stage: copying the rest" in done.stdout and "both hold the same" in done.stdout
    status = demo.run("status")
    assert status.returncode == 0, status.stdout
    assert [line.split()[-1] for line in status.stdout.splitlines()] == ["answers", "answers", "answers"]
    assert demo.run("stop").returncode == 0
    assert processes_naming(demo.folder) == [] and not Path(demo.folder).exists()


def lines_of(demo: Demo, host: str, sql: str) -> list[list[str]]:
    """None while nobody is let in."""
    done = subprocess.run(["psql", "-XAtq", "-h", host, "-p", str(demo.port), "-U", "demo", "-c", sql, "demo"],
                          env={**demo.env, "PGPASSWORD": "demo", "PGCONNECT_TIMEOUT": "10"}, text=True, timeout=60,
                          capture_output=True, check=False)
    return [line.split("|") for line in done.stdout.splitlines()]


def leader_of(demo: Demo, host: str) -> str | None:
    return next((row[0] for row in lines_of(demo, host, "SHOW POOL_WATCHDOG") if row[5] == "LEADER"), None)


@pytest.mark.parametrize("hosts", ["", "no"])
def test_with_a_watchdog(demo, hosts):
    """What it says is to be killed can be killed, and the others go on; nothing is left of it."""
    done = demo.run("--watchdog", DEMO_HOSTS=hosts)
    assert done.returncode == 0, done.stderr
    found = re.search(r"Clients connect to (\S+), which", done.stdout)
    if hosts == "no" or found is None:
        assert "no address to take" in done.stdout
        host = "localhost"
    else:
        host = found[1]
    status = demo.run("status")
    assert status.returncode == 0, status.stdout
    assert [line.split()[-1] for line in status.stdout.splitlines()][3:] == ["primary", "standby", "standby"]
    leader = waits.wait_for("one leads", lambda: leader_of(demo, host), 60)
    if host != "localhost":
        group = re.search(rf"kill -9 -- -(\d+) +# pgpool {leader}, who leads", done.stdout)
        assert group is not None, done.stdout
        os.killpg(int(group[1]), signal.SIGKILL)
        waits.wait_for("another one leads", lambda: leader_of(demo, host) not in (None, leader), 60)
        assert demo.run("status").returncode != 0
        subprocess.run([Path(demo.folder) / "run" / f"pgpool{leader}" / "start"], check=True, timeout=100)
        waits.wait_for("it is back", lambda: [row[0] for row in lines_of(demo, host, "SHOW POOL_WATCHDOG") if row[0] == leader and row[5] == "STANDBY"], 60)
    assert demo.run("stop").returncode == 0
    assert processes_naming(demo.folder) == [] and not Path(demo.folder).exists()
    left = subprocess.run(["ip", "netns", "list"], text=True, capture_output=True, check=False).stdout if os.path.exists("/run/netns") else ""
    assert f"pgd{demo.port}" not in left


def test_refuses_a_port_in_use_and_a_folder_of_others(demo):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", demo.port))
        sock.listen()
        done = demo.run()
        assert done.returncode == 1 and "in use" in done.stderr
    os.mkdir(demo.folder)
    done = demo.run()
    assert done.returncode == 1 and "was not made by dev/demo" in done.stderr
    assert demo.run("stop").returncode == 0  # and does not remove it
    os.rmdir(demo.folder)


def test_an_interrupted_start_leaves_nothing_running(demo):
    proc = subprocess.Popen([DEMO], env=demo.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 180
    while not (Path(demo.folder) / "run" / "cluster" / "data0" / "postmaster.pid").exists():
        assert time.monotonic() < deadline and proc.poll() is None
    proc.send_signal(signal.SIGTERM)
    assert proc.wait(60) != 0
    assert processes_naming(demo.folder) == []


def test_install_has_the_layout_of_pgpool_ii(tmp_path):
    build = os.environ.get("PGPOOL_BUILD")
    if not build or not (Path(build) / "Makefile").exists():
        pytest.skip("PGPOOL_BUILD names no build folder")
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run(["make", "-C", build, "install", f"DESTDIR={tmp_path}"], env=env, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    makefile = (Path(build) / "Makefile").read_text()
    prefix = tmp_path / re.search(r"^prefix = /(.*)$", makefile, re.M)[1]
    for name in ("bin/pgpool", "bin/pg_md5", "bin/pg_enc", "bin/pgpool_setup", "share/pgpool/examples/recovery_1st_stage",
                 "etc/pgpool.conf.sample",
                 "etc/pcp.conf.sample", "etc/pool_hba.conf.sample", "libexec/pgpool/parse-dump",
                 "share/man/man1/pgpool.1", "share/doc/pgpool/user/quick-start.md"):
        assert (prefix / name).is_file(), name
    sample = subprocess.run([prefix / "bin/pgpool", "--check-config", "-f",
                             prefix / "etc/pgpool.conf.sample"], check=False, capture_output=True)
    assert not re.search(rb"sample(:\d+)?: error", sample.stderr), sample.stderr  # its ports and its pid file's folder are this host's matter
