# SPDX-License-Identifier: PostgreSQL
"""process_house: a pgpool with a folder of its own, for the tests of processes."""
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from pgt import procs, waits
from pgt.proxy import ALARMS, answers, conf_text
from pgt.wire import Address

BIN = os.environ.get("PGPOOL_BIN", "")
needs_pgpool = pytest.mark.skipif(not os.access(BIN, os.X_OK), reason="PGPOOL_BIN is not set")

WORKER = "pgpool: wait for connection request"
MONITOR = "pgpool: monitor process (health check)"
CONTROL = "pgpool: PCP: wait for connection request"
LOGGER = "pgpool: logger process"


def title(pid: int) -> str:
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    return raw.rstrip(b"\0").replace(b"\0", b" ").decode(errors="replace")


def role_title(pid: int) -> str:
    """The title of a process, a worker's as if it had no client; empty while it has none yet."""
    text = title(pid)
    if not text.startswith("pgpool: ") or text in (MONITOR, CONTROL, LOGGER):
        return text if text.startswith("pgpool: ") else ""
    return WORKER


def fd_links(pid: int) -> dict[int, str]:
    links = {}
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            links[int(name)] = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
    return links


class House:
    """A folder with a pgpool.conf, and the pgpool that runs on it."""

    def __init__(self, **settings):
        self.home = procs.folder("process")
        self.port = procs.free_port()
        self.address = Address("127.0.0.1", self.port)
        self.conf_path = self.home / "pgpool.conf"
        self.pid_path = self.home / "pgpool.pid"
        self.settings: dict[str, object] = {
            "listen_addresses": "127.0.0.1", "port": self.port,
            "unix_socket_directories": str(self.home), "pcp_socket_dir": str(self.home),
            "work_dir": str(self.home), "pid_file_name": str(self.pid_path), "pcp_port": procs.free_port(),
            "backend_hostname0": "127.0.0.1", "backend_port0": procs.free_port(),
            "backend_weight0": 1, "num_init_children": 2, "worker_fill": 0, "log_line_prefix": "%a %p: ",
        }
        self.settings.update(settings)
        self.daemon: procs.Daemon | None = None
        self.background_pids: list[int] = []
        self.write_conf()

    def write_conf(self, extra: str = "") -> None:
        self.conf_path.write_text(conf_text(self.settings) + extra, encoding="utf-8")

    def command(self, *args: str) -> list[str]:
        return [BIN, "-f", str(self.conf_path), *args]

    def run(self, *args: str, seconds: float = 30) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(*args), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=seconds * waits.SCALE, check=False)

    def start(self, *args: str, env: dict[str, str] | None = None, wrap: list[str] = []) -> "House":
        self.daemon = procs.Daemon([*wrap, *self.command("-n", *args)], self.home / "out.log",
                                   env={**os.environ, **(env or {})})
        waits.wait_for("pgpool answers", self.is_up, 20)
        return self

    def is_up(self) -> bool:
        assert self.daemon is not None and self.daemon.is_running(), "pgpool ended:\n" + self.log()
        return answers(self.address)

    def log(self) -> str:
        path = self.home / "out.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def files_log(self) -> str:
        return "".join(p.read_text(encoding="utf-8") for p in sorted(self.home.glob("log/*")))

    def wait_log(self, pattern: str, times: int = 1, files: bool = False) -> None:
        read = self.files_log if files else self.log
        waits.wait_for(f"the log has {pattern} {times} times",
                       lambda: len(re.findall(pattern, read())) >= times, 20)

    @property
    def pid(self) -> int:
        assert self.daemon is not None
        return self.daemon.pid

    def of_title(self, what: str) -> list[int]:
        return [p for p in procs.children(self.pid) if role_title(p) == what]

    def workers(self) -> list[int]:
        return self.of_title(WORKER)

    def wait_title(self, what: str, n: int) -> list[int]:
        """A child has its title a moment after it was forked."""
        return waits.wait_for(f"{n} of '{what}' run",
                              lambda: (w := self.of_title(what)) and len(w) == n and w, 20)

    def wait_workers(self, n: int) -> list[int]:
        return self.wait_title(WORKER, n)

    def stop(self, how: int = signal.SIGINT) -> int:
        os.kill(self.pid, how)
        return self.daemon.wait_exit(20)

    def assert_clean(self) -> None:
        """A stopped pgpool leaves its folder as it was, apart from what was logged."""
        left = {p.name for p in self.home.iterdir()} - {"out.log", "log", "pgpool.conf", "devlog"}
        assert left <= {"pgpool_status", "pgpool_status.held", "pgpool_salt", "pool_passwd"}, left
        assert ALARMS.search(self.log().replace("was terminated by segmentation fault", "")) is None

    def kill_all(self) -> None:
        if self.daemon is not None:
            self.daemon.kill()
        for pid in self.background_pids:
            for child in [*procs.session_pids(pid), pid]:
                try:
                    os.kill(child, signal.SIGKILL)
                except ProcessLookupError:
                    pass


@pytest.fixture
def make():
    houses: list[House] = []

    def build(**settings) -> House:
        houses.append(House(**settings))
        return houses[-1]

    yield build
    for h in houses:
        h.kill_all()
