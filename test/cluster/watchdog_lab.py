# SPDX-License-Identifier: PostgreSQL
"""watchdog_lab: pgpools with an address, each on a host of its own, servers on hosts, and clients on another host. That one asks all the
time who has the address: never do two have it."""
import contextlib
import os
import signal
import socket
import threading

from pgt import ether, postgres, procs, waits
from pgt.wire import Address, Wire, WireClosed
from test_monitor import column_names

PGPOOL = os.environ.get("PGPOOL_BIN", "pgpool")
V4, V6 = "192.0.2.100", "2001:db8::100"
KEY = "a key with ' and \\ and \" and ü"
PATIENCE = 40
NO_SERVER = Address("192.0.2.250", 5432)
CLIENTS = 3  # the host of who asks and of the clients


def text_of(value: object) -> str:
    return str(value).replace("\\", "\\\\").replace("'", "''")


def is_closed(sock: socket.socket) -> bool:
    """By the other side; the socket does not block."""
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


class Member:
    """A pgpool on a host. `prefix` and `env` are of the program alone."""

    def __init__(self, host: ether.Host, hosts: list[ether.Host], address: str, servers: list[Address], more: dict[str, object]):
        self.host = host
        self.home = procs.folder("pgpool")
        self.prefix: list[str] = []
        self.env: dict[str, str] = {}
        self.conf: dict[str, object] = {
            "listen_addresses": "*", "port": 9999, "unix_socket_directories": self.home, "pcp_port": 9898, "pcp_socket_dir": self.home, "wd_ipc_socket_dir": self.home,
            "pcp_listen_addresses": "", "pid_file_name": self.home / "pgpool.pid", "work_dir": self.home, "num_init_children": 1,
            "backend_clustering_mode": "streaming_replication", "health_check_period": 0, "sr_check_period": 0,
            "use_watchdog": "on", "wd_authkey": KEY, "delegate_ip": address}
        for i, server in enumerate(servers):
            self.conf |= {f"backend_hostname{i}": server.host, f"backend_port{i}": server.port, f"backend_application_name{i}": f"node{i}"}
        for i, other in enumerate(hosts):
            self.conf |= {f"hostname{i}": other.address, f"wd_port{i}": 9000, f"pgpool_port{i}": 9999}
        (self.home / "pgpool_node_id").write_text(f"{host.number}\n", encoding="ascii")
        self.write(**{name: value[host.number] if isinstance(value, list) else value for name, value in more.items()})
        self.daemon: procs.Daemon | None = None

    def write(self, **more: object) -> None:
        self.conf |= more
        text = "".join(f"{name} = '{text_of(value)}'\n" for name, value in self.conf.items())
        (self.home / "pgpool.conf").write_text(text, encoding="utf-8")

    def start(self) -> None:
        self.daemon = procs.Daemon([*self.host.enter(), *self.prefix, PGPOOL, "-n", "-f", str(self.home / "pgpool.conf")], self.home / "log",
                                   env={**os.environ, **self.env})

    def reload(self, **more: object) -> None:
        self.write(**more)
        assert self.daemon
        self.daemon.signal(signal.SIGHUP)

    def log(self) -> str:
        return (self.home / "log").read_text(encoding="utf-8", errors="replace")

    def signal(self, number: int) -> None:
        assert self.daemon
        for pid in procs.session_pids(self.daemon.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def watchdog(self) -> int:
        """Its process; 0: there is none."""
        assert self.daemon
        found = [pid for pid in procs.session_pids(self.daemon.pid) if "pgpool: watchdog" in procs.command_line(pid)]
        return found[0] if found else 0

    def stop(self) -> None:
        """In order."""
        assert self.daemon
        self.daemon.signal(signal.SIGINT)
        self.daemon.wait_exit(60)
        self.daemon = None

    def kill(self) -> None:
        if self.daemon:
            self.daemon.kill()
        self.daemon = None

    def ask(self, text: str) -> list[dict[str, str]]:
        """The rows of a SHOW; none while it lets nobody in."""
        try:
            with Wire(Address(str(self.home), 9999)) as w:
                w.login("postgres", "postgres")
                found = w.simple(text)
        except (OSError, AssertionError, WireClosed):
            return []
        names = [name for m in found if m.type == "T" for name in column_names(m.body)]
        return [dict(zip(names, [(v or b"").decode() for v in m.row()])) for m in found if m.type == "D"]

    def leader(self) -> int | None:
        found = [int(r["pgpool_id"]) for r in self.ask("SHOW POOL_WATCHDOG") if r["status"] == "LEADER"]
        return found[0] if found else None

    def voters(self) -> int:
        return sum(r["votes"] == "true" and r["status"] in ("LEADER", "STANDBY") for r in self.ask("SHOW POOL_WATCHDOG"))


class Cluster:
    """Three of them, and who asks."""

    def __init__(self, net: ether.Ether, address: str, servers: list[Address], more: dict[str, object]):
        self.net, self.address = net, address
        self.hosts = net.hosts[:3]
        self.members = [Member(h, self.hosts, address, servers or [NO_SERVER], more) for h in self.hosts]
        self.asker = ether.Asker(net.hosts[CLIENTS], [address])

    def start(self) -> int:
        for member in self.members:
            member.start()
        return self.wait_holder(())

    def holder(self) -> int | None:
        macs = self.asker.holders(self.address)
        return next(i for i, h in enumerate(self.hosts) if h.mac == macs[-1]) if macs else None

    def logs(self) -> str:
        return "\n".join(f"pgpool {i}:\n{m.log()[-3000:]}" for i, m in enumerate(self.members))

    def wait_holder(self, not_these: tuple[int, ...], seconds: float = PATIENCE) -> int:
        def found() -> list[int]:
            holder = self.holder()
            return [] if holder is None or holder in not_these else [holder]
        try:
            return waits.wait_for("another has the address", found, seconds)[0]
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.logs()}") from None

    def wait_answers(self) -> int:
        """Who has it now: somebody does, and answers."""
        found: list[int] = []

        def answers() -> bool:
            holder = self.holder()
            found[:] = [] if holder is None else [holder]
            return holder is not None and self.asker.answers_now(self.address, self.hosts[holder])
        try:
            waits.wait_for("somebody answers for the address", answers, PATIENCE)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.logs()}") from None
        return found[0]

    def wait_voters(self, at: int, n: int = 3) -> None:
        waits.wait_for(f"{n} pgpools vote", lambda: self.members[at].voters() == n, PATIENCE)

    def history(self) -> list[int]:
        return [next(i for i, h in enumerate(self.hosts) if h.mac == mac) for mac in self.asker.holders(self.address)]

    def elections(self) -> int:
        """How often one of them began to lead."""
        return sum(m.log().count("] to [LEADER]") for m in self.members)

    def check_moves(self, *holders: int) -> None:
        """These had the address, one after the other; then others only who were elected since, as may happen on a busy machine."""
        found = self.history()
        assert found[:len(holders)] == list(holders) and len(found) <= max(len(holders), self.elections()), f"{found}\n{self.logs()}"

    def first_answer(self, of: int, after: float) -> float:
        return waits.wait_for("it answers", lambda: [
            t for t, a, mac in list(self.asker.answers) if a == self.address and mac == self.hosts[of].mac and t >= after][:1])[0]

    def wait_calm(self, seconds: float) -> int:
        """Who has the address, and has had it for so long: on a busy machine another one may be elected at any time."""
        seen: list[tuple[int, float]] = []

        def is_calm() -> bool:
            holder = self.holder()
            if holder is None or not seen or seen[0][0] != holder:
                seen[:] = [] if holder is None else [(holder, waits.now())]
            return bool(seen) and waits.now() - seen[0][1] >= seconds
        waits.wait_for(f"one has had the address for {seconds} s", is_calm, PATIENCE + seconds)
        return seen[0][0]

    def kill_watchdog(self) -> tuple[int, float]:
        """That process of the leader alone: who has the address then, who may be the same, and after how long."""
        def taken() -> int:
            return sum(m.log().count("successfully acquired") for m in self.members)
        old = self.wait_calm(5)  # all have been there for longer than a lease
        pid = waits.wait_for("its process has its title", self.members[old].watchdog, PATIENCE)
        began, times = waits.now(), taken()
        os.kill(pid, signal.SIGKILL)
        waits.wait_for("somebody takes it again", lambda: taken() > times, PATIENCE)
        new = self.wait_answers()
        return new, (0 if new == old else self.first_answer(new, began) - began)

    def close_members(self) -> None:
        for member in self.members:
            if member.daemon:
                member.signal(signal.SIGCONT)
            member.kill()

    def close(self) -> None:
        self.close_members()
        self.asker.close()
        for host in self.hosts:
            self.net.wire(host, True)
            waits.wait_for("the address is gone", lambda h=host: not h.has(self.address), PATIENCE)
        found = self.asker.doubles(self.address)
        assert not found, f"two hosts answered for one address: {found[:5]}\n{self.logs()}"


@contextlib.contextmanager
def clusters(net: ether.Ether):
    """Makes clusters on `net`, and ends them."""
    with contextlib.ExitStack() as stack:
        def make(address: str = V4, servers: list[Address] | None = None, **more) -> Cluster:
            made = Cluster(net, address, servers or [], more)
            stack.callback(made.close)
            return made
        yield make


# Servers

class HostServer(postgres.Postgres):
    """A server on a host, which is asked through its Unix socket."""
    host: ether.Host

    @property
    def address(self) -> Address:
        return Address(self.host.address, self.port)

    def entered(self, command: list[str]) -> tuple[list[str], str | None]:
        user = postgres.OS_USER
        return [*self.host.enter(), "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--", *command], None

    def _answers(self) -> bool:
        assert self.daemon is not None and self.daemon.is_running(), "PostgreSQL ended"
        try:
            return self.value("select 1") == "1"
        except (OSError, AssertionError, WireClosed):
            return False


def server_on(host: ether.Host, primary: HostServer | None = None, **conf: str) -> HostServer:
    """A server; a standby when there is a primary."""
    home = procs.folder("server", postgres.OS_USER)
    postgres.copy_template(home / "data")
    server = HostServer(home / "data", 5432)
    server.host = host
    settings = {"listen_addresses": "*", "cluster_name": f"node{host.number}", **conf}
    if primary is not None:
        settings["primary_conninfo"] = f"host={primary.host.address} port=5432 user=postgres application_name=node{host.number} connect_timeout=3"
        (server.data / "standby.signal").touch()
    server.write_conf(settings)
    server.start()
    return server


# Clients

class Client:
    """On the clients' host, all the time: one statement after the other through an address, and a new connection when the old one is
    gone. What was acknowledged is noted, and what went wrong."""

    def __init__(self, source: ether.Host, host: str, statement: str, seconds: float = 3):
        self.address = ether.HostAddress(host, 9999, source)
        self.statement = statement
        self.seconds = seconds  # who had the address may be gone without a word
        self.acked: list[int] = []
        self.errors: list[str] = []
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        n = 0
        while not self.ending.wait(0.01):
            try:
                with Wire(self.address, seconds=self.seconds) as w:
                    assert w.login("postgres", "postgres")[-1].type == "Z", "not let in"
                    while not self.ending.wait(0.01):
                        n += 1
                        self._say(w, n)
            except (OSError, AssertionError, WireClosed) as e:
                self.errors.append(f"{n}: {e!r}")

    def _say(self, w: Wire, n: int) -> None:
        found = w.simple(self.statement.format(n))
        failed = [m.text for m in found if m.type == "E"]
        assert not failed, failed[0]
        self.acked.append(n)

    def wait_more(self, n: int = 20) -> None:
        """It gets on."""
        before = len(self.acked)
        waits.wait_for("a client gets on", lambda: len(self.acked) >= before + n, PATIENCE)

    def close(self) -> None:
        self.ending.set()
        self.thread.join(30)
