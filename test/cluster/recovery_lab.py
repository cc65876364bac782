# SPDX-License-Identifier: PostgreSQL
"""recovery_lab: servers of the copied installation with streaming replication and the sample scripts, and
how to call the pcp_* tools: what the tests of recovery, set-up and chaos share."""
import hashlib
import os
import shutil
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

from pgt import lan, postgres, procs, proxy, shadow, waits
from pgt.wire import Address, Wire, WireClosed

EXAMPLES = shadow.TOP / "doc" / "examples" / "three-hosts"
SCRIPTS = ("recovery_1st_stage", "pgpool_remote_start")
PRIMARY_CONF = {"wal_level": "replica", "max_wal_senders": "10", "max_replication_slots": "10", "wal_log_hints": "on",
                "hot_standby": "on", "synchronous_commit": "on", "wal_keep_size": "64MB", "full_page_writes": "on"}


def write_pcp_conf(home: Path, user: str = "op", password: str = "secret") -> None:
    """One user of PCP."""
    digest = hashlib.md5(password.encode()).hexdigest()
    (home / "pcp.conf").write_text(f"{user}:{digest}\n", encoding="ascii")


def give(path: Path) -> None:
    """The servers' account owns what is in their folders."""
    if procs.IS_ROOT:
        shutil.chown(path, postgres.OS_USER, postgres.OS_USER)


@contextmanager
def shadow_bins():
    """The servers' programs are those of the copied installation, which has the extensions."""
    before = os.environ.get("PGT_PG_BINDIR")
    os.environ["PGT_PG_BINDIR"] = str(shadow.make_shadow())
    try:
        yield
    finally:
        if before is None:
            del os.environ["PGT_PG_BINDIR"]
        else:
            os.environ["PGT_PG_BINDIR"] = before


class Node(postgres.Postgres):
    """A server that may also be started by scripts: then it is no child of ours. The sockets of all servers
    are in the cluster's folder: a copy has the settings of what was copied."""

    @property
    def socket(self) -> Address:
        return Address(str(self.data.parent.parent), self.port)

    def pid(self) -> int | None:
        try:
            return int((self.data / "postmaster.pid").read_text(encoding="ascii").split()[0])
        except (OSError, ValueError, IndexError):
            return None

    def is_alive(self) -> bool:
        pid = self.pid()
        return pid is not None and str(self.data) in procs.command_line(pid)

    def end(self, how: int = signal.SIGQUIT) -> None:
        """Ends the server, whoever started it."""
        if self.daemon is not None and self.daemon.is_running():
            self.stop(how)
            return
        self.daemon = None
        pid = self.pid()
        if pid is not None and self.is_alive():
            os.kill(pid, how)
            waits.wait_for("the server ends", lambda: not self.is_alive() and not Path(f"/proc/{pid}").exists(), 60)

    def kill(self) -> None:
        """As a crash: the postmaster and all its children at once."""
        pid = self.pid()
        if pid is None or not self.is_alive():
            return
        children = procs.children(pid)
        for one in [pid, *children]:
            try:
                os.kill(one, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.daemon is not None:
            self.daemon.popen.wait()
            self.daemon = None
        waits.wait_for("the server is gone", lambda: not self.is_alive(), 60)
        # While one of them is there its memory is in use, and nobody starts the server anew.
        waits.wait_for("its processes are gone", lambda: all((procs.stat_fields(one) or "Z")[0] == "Z" for one in children), 60)

    def last_words(self) -> str:
        """The end of what it logged, whoever started it."""
        found = [p for p in (self.data.parent / "postgres.log", self.data / "again.log", self.data / "startup.log") if p.exists()]
        newest = max(found, key=lambda p: p.stat().st_mtime)
        return f"{newest}:\n" + "\n".join(newest.read_text(encoding="utf-8", errors="replace").splitlines()[-12:])

    def ask(self, sql: str, otherwise: str = "") -> str:
        """A value, or `otherwise` when the server does not answer."""
        try:
            return self.value(sql)
        except (OSError, AssertionError, WireClosed, IndexError):
            return otherwise


class LanNode(Node):
    """A server on a host of its own."""
    host: lan.Host

    @property
    def address(self) -> Address:
        return Address(self.host.address, self.port)

    def entered(self, command: list[str]) -> tuple[list[str], str | None]:
        return [*self.host.enter_as(postgres.OS_USER), *command], None


def fake_ssh() -> Path:
    """A program that does what ssh would do, on this machine; set PGPOOL_SSH to it before the servers start."""
    home = procs.folder("ssh", postgres.OS_USER)
    path = home / "ssh"
    path.write_text(f'#!/bin/bash\necho "$1" >>{home}/log\nshift\nexec bash -c "$*"\n', encoding="ascii")
    path.chmod(0o755)
    return path


class Cluster:
    """Node 0 is the first primary, the others stream from it."""

    def __init__(self, n: int = 3, wire: lan.Lan | None = None, **conf: str):
        self.wire = wire
        if wire is not None:
            conf = {"listen_addresses": "*", **conf}
        with shadow_bins():
            self.home = procs.folder("cluster", postgres.OS_USER)
            self.nodes = [self._make_primary(conf)]
            for i in range(1, n):
                self.nodes.append(self._make_standby(i))

    def _node(self, i: int) -> Node:
        home = self.home / f"node{i}"
        procs.run(["mkdir", str(home)], user=postgres.OS_USER)
        if self.wire is None:
            return Node(home / "data", procs.free_port())
        node = LanNode(home / "data", procs.free_port())
        node.host = self.wire.hosts[i + 1]
        return node

    def _make_primary(self, conf: dict[str, str]) -> Node:
        node = self._node(0)
        postgres.copy_template(node.data)
        node.write_conf({**PRIMARY_CONF, "cluster_name": "server0", "unix_socket_directories": str(self.home), **conf})
        self._add_scripts(node)
        node.start()
        # Nobody is there yet to wait for.
        node.rows("set synchronous_commit = local; create role replicator login replication; "
                  "create extension pgpool_recovery")
        return node

    def _make_standby(self, i: int) -> Node:
        primary, node = self.nodes[0], self._node(i)
        primary.rows(f"select pg_create_physical_replication_slot('pgpool_node{i}')")
        procs.run([str(postgres.bindir() / "pg_basebackup"), "-D", str(node.data), "-c", "fast", "-X", "stream",
                   "--no-sync", "-d", f"host={primary.address.host} port={primary.port} user=replicator"], user=postgres.OS_USER,
                  cwd="/")
        node.conf = dict(primary.conf)
        auto = node.data / "postgresql.auto.conf"
        with open(auto, "a", encoding="utf-8") as out:
            out.write(f"port = '{node.port}'\nprimary_slot_name = 'pgpool_node{i}'\nprimary_conninfo = "
                      f"'host={primary.address.host} port={primary.port} user=replicator application_name=server{i}'\n")
        (node.data / "standby.signal").touch()
        give(node.data / "standby.signal")
        node.start()
        return node

    def _add_scripts(self, node: Node) -> None:
        for name in SCRIPTS:
            shutil.copy(EXAMPLES / name, node.data / name)
            (node.data / name).chmod(0o755)
            give(node.data / name)

    def streaming(self, primary: int = 0) -> int:
        return int(self.nodes[primary].ask("select count(*) from pg_stat_replication where state = 'streaming'", "0"))

    def end(self) -> None:
        for node in self.nodes:
            node.end(signal.SIGINT)

    def pool_conf(self, **changes: object) -> dict[str, object]:
        """Settings of a pgpool in front: PCP, probes every second, recovery by the sample scripts."""
        conf: dict[str, object] = {
            "pcp_listen_addresses": "127.0.0.1", "pcp_port": procs.free_port(), "sr_check_period": 1,
            "health_check_period": 1, "health_check_retry_delay": 1, "health_check_timeout": 20,
            "sr_check_user": "postgres", "health_check_user": "postgres", "recovery_user": "postgres",
            "recovery_1st_stage_command": "recovery_1st_stage", "recovery_timeout": 60}
        for i, node in enumerate(self.nodes):
            conf |= {f"backend_data_directory{i}": node.data, f"backend_application_name{i}": f"server{i}"}
        return {**conf, **changes}


class Pcp:
    """The tools against one pgpool."""

    def __init__(self, pool: proxy.Pgpool):
        self.pool = pool
        write_pcp_conf(pool.home)
        self.passfile = pool.home / "pcppass"
        self.passfile.write_text("*:*:op:secret\n", encoding="ascii")
        self.passfile.chmod(0o600)

    def command(self, name: str, *args: str, program: str | None = None) -> list[str]:
        tool = [program] if program else [str(Path(proxy.pgpool_bin() or "").parent / "pcp"), name]
        return [*tool, "-h", "127.0.0.1", "-p", str(self.pool.conf["pcp_port"]), "-U", "op", "-w", *args]

    def env(self) -> dict[str, str]:
        return {**os.environ, "PCPPASSFILE": str(self.passfile)}

    def run(self, name: str, *args: str, program: str | None = None, seconds: float = 100) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(name, *args, program=program), capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=seconds * waits.SCALE, env=self.env())

    def start(self, name: str, *args: str) -> subprocess.Popen:
        return subprocess.Popen(self.command(name, *args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.env())


def pool_rows(pool: proxy.Pgpool, sql: str) -> list[list[str]]:
    with Wire(pool.address) as w:
        assert w.login()[-1].type == "Z"
        return [["" if v is None else v.decode() for v in row] for row in w.rows(sql)]


def statuses(pool: proxy.Pgpool) -> list[tuple[str, str]]:
    """(status, role) of each node; unknown while pgpool lets nobody in."""
    try:
        return [(r[3], r[6]) for r in pool_rows(pool, "show pool_nodes")]
    except (AssertionError, OSError, WireClosed):
        return [("unknown", "unknown")] * 8
