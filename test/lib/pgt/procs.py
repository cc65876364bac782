# SPDX-License-Identifier: PostgreSQL
"""procs: scratch folders, free ports, and processes that are ended by their pid."""
import atexit
import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from pgt import waits

IS_ROOT = os.geteuid() == 0
_scratch: Path | None = None
_ports: dict[int, None] = {}  # handed out, in that order
_sweepers: list[subprocess.Popen] = []  # a disk that is busy keeps no test


def scratch() -> Path:
    """One folder per run under /tmp (or $PGT_SCRATCH), removed at the end unless PGT_KEEP is set."""
    global _scratch
    if _scratch is None:
        parent = os.environ.get("PGT_SCRATCH", "/tmp")
        _scratch = Path(tempfile.mkdtemp(prefix="pgt-", dir=parent))
        _scratch.chmod(0o755)
        atexit.register(_remove_scratch, os.getpid())
    return _scratch


def _remove_scratch(pid: int) -> None:
    if pid != os.getpid() or _scratch is None:
        return
    for left in _left_behind():
        with contextlib.suppress(ProcessLookupError):
            os.kill(left, signal.SIGKILL)
    for one in _sweepers:
        one.wait()
    if "PGT_KEEP" not in os.environ:
        shutil.rmtree(_scratch, ignore_errors=True)


def _left_behind() -> list[int]:
    """Scripts of this run that still wait for something: pgpool ends no command of the operator's when it stops."""
    return [int(name) for name in os.listdir("/proc")
            if name.isdigit() and int(name) != os.getpid() and f"{_scratch}/" in command_line(int(name))]


def folder(name: str, user: str | None = None) -> Path:
    """A new folder in scratch; owned by `user` when we are root."""
    path = Path(tempfile.mkdtemp(prefix=name + "-", dir=scratch()))
    path.chmod(0o755)
    if user is not None and IS_ROOT:
        entry = pwd.getpwnam(user)
        os.chown(path, entry.pw_uid, entry.pw_gid)
    return path


def replace(path: Path, text: str) -> None:
    """Writes a file that somebody may read at this moment: he finds the old text or the new one."""
    fresh = path.with_name(f"{path.name}.fresh")
    fresh.write_text(text, encoding="utf-8")
    if path.exists():
        fresh.chmod(path.stat().st_mode & 0o7777)
    fresh.replace(path)


def drop_stopped() -> None:
    """Removes the data of servers that were stopped: a run of hundreds of clusters would need tens of gigabytes. Their logs stay."""
    if "PGT_KEEP" in os.environ:
        return
    used = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                used.add(os.readlink(f"/proc/{name}/cwd"))
            except OSError:
                continue  # it has ended
    gone = [str(data) for data in scratch().glob("*/data")
            if not any(cwd == str(data) or cwd.startswith(f"{data}/") for cwd in used)]
    _sweepers[:] = [one for one in _sweepers if one.poll() is None]
    if gone:
        _sweepers.append(subprocess.Popen(["rm", "-rf", *gone]))  # pylint: disable=consider-using-with


def _is_free(port: int) -> bool:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A TCP port nobody listens on and that this run has not handed out, or (a long run uses them up) a long time ago. From
    below the range that the kernel gives to outgoing connections, so that it stays free until it is used; runs beside
    each other have ranges of their own (PGT_PORTS)."""
    low, high = (int(x) for x in os.environ.get("PGT_PORTS", "20000-32000").split("-"))
    tried = [low + int.from_bytes(os.urandom(2), "big") % (high - low) for _ in range(50)]
    older = list(_ports)[:len(_ports) // 2]
    for port in [*(p for p in tried if p not in _ports), *older]:
        if _is_free(port):
            _ports.pop(port, None)
            _ports[port] = None  # the last one
            return port
    raise AssertionError(f"no free port between {low} and {high}")


def free_ports(count: int) -> int:
    """The first of `count` ports in a row, for a program that counts on by itself; as free_port, the newest left out."""
    low, high = (int(x) for x in os.environ.get("PGT_PORTS", "20000-32000").split("-"))
    newest = set(list(_ports)[len(_ports) // 2:])
    firsts = list(range(low, high - count))
    random.shuffle(firsts)
    for first in firsts:
        ports = range(first, first + count)
        if newest.isdisjoint(ports) and all(_is_free(p) for p in ports):
            for port in ports:
                _ports.pop(port, None)
                _ports[port] = None
            return first
    raise AssertionError(f"no {count} free ports in a row between {low} and {high}")


def run_as(user: str) -> dict:
    """Keyword arguments for subprocess to run as `user`; empty when we are not root."""
    if not IS_ROOT:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def run(command: list[str], user: str | None = None, **kwargs) -> str:
    """Runs a command to its end; its output. AssertionError with the output when it fails."""
    extra = run_as(user) if user else {}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **extra, **kwargs)
    assert done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-3000:]}"
    return done.stdout


def stat_fields(pid: int) -> list[str] | None:
    """/proc/<pid>/stat after the command name: state, ppid, pgrp, session, ..."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read(4096)
    except OSError:
        return None
    return text.rsplit(b")", 1)[1].decode().split()


def session_pids(session: int) -> list[int]:
    """Living processes of a session (setsid), zombies left out. Asked for around each test, on a machine with hundreds of
    processes: only those of the session are looked at."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        pid = int(name)
        try:
            is_in = os.getsid(pid) == session
        except OSError:
            continue  # it has ended
        fields = stat_fields(pid) if is_in else None
        if fields is not None and fields[0] != "Z" and int(fields[3]) == session:
            found.append(pid)
    return sorted(found)


def stand_still(*pids: int) -> None:
    """Stops them, and waits until they stand still: where one has several threads the others run on until the kernel has told
    them. One that has ended meanwhile is left alone."""
    def is_still(pid: int) -> bool:
        states = []
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that ends meanwhile
                with open(f"/proc/{pid}/task/{task}/stat", "rb", buffering=0) as file:
                    states.append(file.read(4096).rsplit(b")", 1)[1].split()[0])
        return all(state in (b"T", b"Z") for state in states)
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            waits.wait_for(f"process {pid} stands still", lambda pid=pid: is_still(pid))


def go_on(*pids: int) -> None:
    """Behind stand_still."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def children(pid: int) -> list[int]:
    """Living direct children."""
    found = []
    for name in os.listdir("/proc"):
        fields = stat_fields(int(name)) if name.isdigit() else None
        if fields is not None and fields[0] != "Z" and int(fields[1]) == pid:
            found.append(int(name))
    return sorted(found)


def command_line(pid: int) -> str:
    """The process title; empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def memory_kb(pid: int, what: str = "VmRSS") -> int:
    """A line of /proc/<pid>/status in kB; 0 when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1])
    return 0


def is_sanitized() -> bool:
    """The program under test keeps freed memory for the sanitizer: its size says nothing."""
    return waits.SCALE > 1


def cpu_ticks(pid: int) -> int:
    fields = stat_fields(pid)
    return 0 if fields is None else int(fields[11]) + int(fields[12])


def fd_count(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


OPEN_STATES = {"01", "08"}  # of /proc/net/tcp: established, and closed by the other side alone


def open_ends(server_port: int, client_ports: set[int]) -> set[str]:
    """Inodes of the clients' sockets of TCP connections to a server on this machine that their owner has not closed; not of our own."""
    found = set()
    own = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            own.add(os.readlink(f"/proc/self/fd/{name}"))
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), open(name, encoding="ascii") as lines:
            for line in list(lines)[1:]:
                field = line.split()
                mine, theirs = (int(address.rsplit(":", 1)[1], 16) for address in field[1:3])
                if mine in client_ports and theirs == server_port and field[3] in OPEN_STATES:
                    found.add(field[9])
    return {inode for inode in found if f"socket:[{inode}]" not in own}


def hung_up(server_port: int) -> set[int]:
    """Ports of TCP clients that have closed their end of a connection whose other end a process of the server still has."""
    found = set()
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), open(name, encoding="ascii") as lines:
            for line in list(lines)[1:]:
                field = line.split()
                if field[3] == "08" and int(field[1].rsplit(":", 1)[1], 16) == server_port:
                    found.add(int(field[2].rsplit(":", 1)[1], 16))
    return found


def unread(server_port: int, client_port: int) -> int:
    """Bytes of that client that the process of the server on this machine has yet to read."""
    with open("/proc/net/tcp", encoding="ascii") as lines:
        for line in list(lines)[1:]:
            field = line.split()
            if [int(address.rsplit(":", 1)[1], 16) for address in field[1:3]] == [server_port, client_port]:
                return int(field[4].split(":")[1], 16)
    return 0


class Daemon:
    """A process in a session of its own with its output in a log file."""

    def __init__(self, command: list[str], log: Path, user: str | None = None,
                 env: dict[str, str] | None = None):
        self.command = command
        self.log_path = log
        extra = run_as(user) if user else {}
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                          start_new_session=True, env=env, cwd="/", **extra)
        self.pid = self.popen.pid
        self.began = self._start_time()
        self.is_over = False
        atexit.register(self.kill)

    def _start_time(self) -> str | None:
        """When the process of that number began; None: there is none."""
        fields = stat_fields(self.pid)
        return None if fields is None else fields[19]

    def _end(self) -> None:
        """Its number, and that of its session, may be another's from now on."""
        self.is_over = True
        atexit.unregister(self.kill)

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def is_running(self) -> bool:
        return self.popen.poll() is None

    def signal(self, number: int) -> None:
        if not self.is_running():
            return
        if number == signal.SIGSTOP:
            stand_still(self.pid)
        else:
            os.kill(self.pid, number)

    def wait_exit(self, seconds: float = 20.0) -> int:
        """Exit status once the process has ended and nothing of its session is left."""
        waits.wait_for(f"{self.command[0]} (pid {self.pid}) ends", lambda: not self.is_running(), seconds)
        waits.wait_for(f"children of {self.command[0]} end", lambda: not session_pids(self.pid))
        self._end()
        return self.popen.returncode

    def _kill_all(self) -> bool:
        """True when nothing lives any more; the first process may still wait to be asked how it ended, and keeps the number."""
        left = session_pids(self.pid)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    def kill(self) -> None:
        """Ends the whole session, whatever state it is in. Once: a number is given out again as soon
        as nobody has it, and then it is somebody else's session."""
        if self.is_over or self._start_time() not in (None, self.began):
            return
        # Until nothing of it is left: who was told to end holds ports and files a moment longer, and may have begun another one.
        with contextlib.suppress(AssertionError):
            waits.wait_for(f"the session of pid {self.pid} ends", self._kill_all)
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        if not session_pids(self.pid):
            self._end()
