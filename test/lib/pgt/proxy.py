# SPDX-License-Identifier: PostgreSQL
"""proxy: what stands between client and server: ours ($PGPOOL_BIN), or a peer to see a test fail."""
import os
import re
import shutil
import signal
from pathlib import Path

from pgt import postgres, procs, waits
from pgt.wire import SSL_CODE, Address, request_code

# What no log of ours may ever hold.
ALARMS = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|assertion .*failed|ASSERT|"
                    r"terminated by signal (?:6|11)|segmentation fault|internal error: a session went", re.I)


def pgpool_bin() -> str | None:
    path = os.environ.get("PGPOOL_BIN")
    return path if path and os.access(path, os.X_OK) else None


def has_sanitizers() -> bool:
    program = pgpool_bin()
    return program is not None and b"__asan_init" in Path(program).read_bytes()


def answers(address: Address) -> bool:
    """True when somebody answers an SSLRequest there: needs no server behind."""
    try:
        sock = address.connect(2)
    except OSError:
        return False
    with sock:
        try:
            sock.sendall(request_code(SSL_CODE))
            return sock.recv(1) in (b"N", b"S")
        except OSError:
            return False


def conf_text(conf: dict[str, object]) -> str:
    """Lines of pgpool.conf: booleans as on/off, everything else quoted."""
    lines = []
    for name, value in conf.items():
        if isinstance(value, bool):
            lines.append(f"{name} = {'on' if value else 'off'}")
        else:
            text = str(value).replace("'", "''")
            lines.append(f"{name} = '{text}'")
    return "\n".join(lines) + "\n"


class Proxy:
    """Common part: an address, a daemon, a log, a clean stop."""
    kind = ""

    def __init__(self, home: Path, port: int):
        self.home = home
        self.port = port
        self.address = Address("127.0.0.1", port)
        self.daemon: procs.Daemon | None = None

    def log(self) -> str:
        path = self.home / "proxy.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def launch(self, command: list[str], user: str | None = None) -> None:
        env = {**os.environ, "PGPOOLKEYFILE": "", "ASAN_OPTIONS": "abort_on_error=0:detect_leaks=1:"
               "allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
        self.daemon = procs.Daemon(command, self.home / "proxy.log", user, env)
        waits.wait_for(f"{self.kind} on port {self.port} answers", self._is_up, 60)

    def _is_up(self) -> bool:
        assert self.daemon is not None
        assert self.daemon.is_running(), f"{self.kind} ended:\n{self.log()[-3000:]}"
        return answers(self.address)

    def pids(self) -> list[int]:
        """All processes of the proxy."""
        assert self.daemon is not None
        return procs.session_pids(self.daemon.pid)

    def memory_kb(self, what: str = "VmRSS") -> int:
        return sum(procs.memory_kb(pid, what) for pid in self.pids())

    def stop(self, how: int = signal.SIGINT) -> None:
        if self.daemon is not None:
            daemon, self.daemon = self.daemon, None
            daemon.signal(how)
            try:
                daemon.wait_exit(40)
            finally:
                daemon.kill()


class Pgpool(Proxy):
    """Ours, started as `pgpool -n -f FILE`."""
    kind = "pgpool"

    def __init__(self, home: Path, port: int):
        super().__init__(home, port)
        self.conf: dict[str, object] = {}
        self.log_seen = 0

    @property
    def conf_path(self) -> Path:
        return self.home / "pgpool.conf"

    @property
    def socket(self) -> Address:
        return Address(str(self.home), self.port)

    def write_conf(self, **changes: object) -> None:
        """At once, as a whole: a reload that was ordered before may read the file just now."""
        self.conf.update(changes)
        procs.replace(self.conf_path, conf_text(self.conf))

    def start(self) -> None:
        program = pgpool_bin()
        assert program is not None, "PGPOOL_BIN is not set"
        for port in {int(str(value)) for name, value in self.conf.items() if name.startswith("backend_port")}:
            postgres.let_go(port)
        self.launch([program, "-n", "-f", str(self.conf_path)])
        # One worker answers before the last is forked, and passes no client on to one that has yet to begin, which is when it has
        # its title: monitor, control, workers.
        want = 2 + int(str(self.conf.get("num_init_children", 0)))
        waits.wait_for(f"{want} processes of pgpool have begun", lambda: sum(
            procs.command_line(pid).startswith("pgpool: ") for pid in self.pids()) >= want)

    def reload(self, **changes: object) -> None:
        self.write_conf(**changes)
        assert self.daemon is not None
        self.daemon.signal(signal.SIGHUP)

    def check_log(self) -> None:
        """Fails on an alarm in what was logged since the last call."""
        new = self.log()[self.log_seen:]
        self.log_seen += len(new)
        found = ALARMS.search(new)
        assert found is None, f"pgpool's log says {found.group(0)!r}:\n{new[-4000:]}"

    def stop(self, how: int = signal.SIGINT) -> None:
        """Asserts exit status 0, no process left, nothing alarming in the log."""
        daemon = self.daemon
        super().stop(how)
        if daemon is not None:
            assert daemon.popen.returncode == 0, \
                f"pgpool exited with {daemon.popen.returncode}:\n{self.log()[-3000:]}"
            self.check_log()


extra_conf: dict[str, object] = {}  # pytest's --set


def start_pgpool(backends: list[Address], conf: dict[str, object] | None = None) -> Pgpool:
    """A pgpool of ours in front of `backends`, two workers unless `conf` says otherwise."""
    home = procs.folder("pgpool")
    pool = Pgpool(home, procs.free_port())
    base: dict[str, object] = {
        "listen_addresses": "127.0.0.1", "port": pool.port, "unix_socket_directories": home,
        "pcp_listen_addresses": "", "pcp_port": procs.free_port(), "pcp_socket_dir": home,
        "wd_ipc_socket_dir": home, "pid_file_name": home / "pgpool.pid", "work_dir": home,
        "num_init_children": 2, "worker_fill": 0, "child_life_time": 0, "log_min_messages": "info",
        "backend_clustering_mode": "streaming_replication", "load_balance_mode": False,
        "health_check_period": 0, "sr_check_period": 0, "log_destination": "stderr",
        "query_wait_notify": 60,  # its NOTICE would be found wherever a busy machine lets a client wait for 5 s
    }
    for i, node in enumerate(backends):
        base |= {f"backend_hostname{i}": node.host, f"backend_port{i}": node.port, f"backend_weight{i}": 1}
    pool.write_conf(**{**base, **extra_conf, **(conf or {})})
    pool.start()
    return pool


class PgBouncer(Proxy):
    """Debian's pgbouncer."""
    kind = "pgbouncer"
    pool_mode = "session"

    def start(self, backend: Address) -> None:
        users = "".join(f'"{u}" "{u}_pw"\n' for u in
                        ("postgres", "trust_user", "other_user", "plain_user", "md5_user", "scram_user"))
        (self.home / "users.txt").write_text(users, encoding="utf-8")
        text = (f"[databases]\n* = host={backend.host} port={backend.port}\n[pgbouncer]\n"
                f"listen_addr=127.0.0.1\nlisten_port={self.port}\nunix_socket_dir={self.home}\n"
                f"auth_type=trust\nauth_file={self.home}/users.txt\npool_mode={self.pool_mode}\n"
                f"default_pool_size=100\nserver_reset_query=DISCARD ALL\nmax_client_conn=500\n")
        (self.home / "pgbouncer.ini").write_text(text, encoding="utf-8")
        program = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
        assert program is not None, "pgbouncer is not installed"
        self.launch([program, str(self.home / "pgbouncer.ini")], "postgres")


class Pgpool2(Proxy):
    """Debian's pgpool-II with one node."""
    kind = "pgpool2"

    def start(self, backend: Address, **changes: object) -> None:
        conf = {
            "listen_addresses": "127.0.0.1", "port": self.port, "socket_dir": self.home,
            "unix_socket_directories": self.home, "pcp_port": procs.free_port(), "pcp_socket_dir": self.home,
            "wd_ipc_socket_dir": self.home, "pid_file_name": self.home / "pgpool.pid", "logdir": self.home,
            "backend_clustering_mode": "raw", "num_init_children": 20, "backend_hostname0": backend.host,
            "backend_port0": backend.port, "backend_weight0": 1, "failover_on_backend_error": False, **changes,
        }
        (self.home / "pgpool.conf").write_text(conf_text(conf), encoding="utf-8")
        (self.home / "pcp.conf").touch()
        program = shutil.which("pgpool", path="/usr/sbin")
        assert program is not None, "pgpool2 is not installed"
        self.launch([program, "-n", "-f", str(self.home / "pgpool.conf"), "-F", str(self.home / "pcp.conf")],
                    "postgres")


def start_peer(kind: str, backend: Address, pool_mode: str = "session") -> Proxy:
    """pgbouncer or pgpool2 (which knows session mode only): a third target, to see that the oracle can
    fail."""
    maker = {"pgbouncer": PgBouncer, "pgpool2": Pgpool2}[kind]
    peer = maker(procs.folder(kind, "postgres"), procs.free_port())
    if isinstance(peer, PgBouncer):
        peer.pool_mode = pool_mode
    peer.start(backend)
    return peer
