# SPDX-License-Identifier: PostgreSQL
"""bench_base: processes, users, limits and /proc figures for test/bench/compare.

Everything started here is ended by its own pid, in reverse order, also on an error or Ctrl-C.
"""

import contextlib
import glob
import os
import pwd
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
SERVER_USER = "postgres"


class BenchError(Exception):
    """Something the user has to know about; the run goes on with the other peers if it can."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def postgres_bin():
    """Folder of the newest PostgreSQL server programs."""
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    if found:
        newest = max(found, key=lambda p: int(p.split("/")[4]))
        return os.path.dirname(newest)
    config = shutil.which("pg_config")
    if config:
        folder = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=True)
        return folder.stdout.strip()
    raise BenchError("no PostgreSQL server programs found (dev/install demo bench)")


def drop_root():
    """Command prefix that runs a server as an ordinary user; PostgreSQL refuses root."""
    tool = [shutil.which("setpriv") or "setpriv", "--pdeathsig", "INT"]
    if os.geteuid() != 0:
        return tool + ["--"]
    return tool + ["--reuid", SERVER_USER, "--regid", SERVER_USER, "--init-groups", "--"]


def set_nice(nice):
    """The priority of this process and of what it starts."""
    os.setpriority(os.PRIO_PROCESS, 0, nice)
    nice_of_session(os.getpid(), nice)


def nice_of_session(pid, nice):
    """Where the kernel shares processors out by session first (sched_autogroup), a process's own
    priority counts within its session only: the session's is set, too."""
    try:
        with open(f"/proc/{pid}/autogroup", "w") as file:
            file.write(str(nice))
    except OSError:
        pass  # no such kernel, not root, or it has ended


def raise_nofile(wanted):
    """Raises the limit of open files for us and our children. Returns what we got."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted:
        return soft
    for new_hard in (max(hard, wanted), hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, new_hard), new_hard))
            return min(wanted, new_hard)
        except (ValueError, OSError):
            continue
    return soft


def free_port():
    """A port to listen on, below the range that the kernel gives to outgoing connections: with
    thousands of clients open a port from there may be taken before its server starts."""
    for _ in range(200):
        port = random.randrange(20000, 32000)
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise BenchError("no free port")


def wait_until(what, seconds, ready, proc=None):
    """Polls `ready` until it is true; fails when time is up or `proc` has exited."""
    deadline = time.monotonic() + seconds
    while not ready():
        if proc is not None and proc.poll() is not None:
            raise BenchError(f"{what}: it exited with status {proc.returncode}")
        if time.monotonic() > deadline:
            raise BenchError(f"{what}: not within {seconds} s")
        time.sleep(0.02)  # ban: the poll of a condition with a deadline


def accepts(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def tail(path, lines=15):
    try:
        with open(path, errors="replace") as file:
            return "".join(file.readlines()[-lines:])
    except OSError:
        return ""


class Scratch:
    """A scratch folder, what runs in it, and the end of both."""

    def __init__(self, keep=False):
        self.keep = keep
        self.path = tempfile.mkdtemp(prefix="pgpool-bench-")
        os.chmod(self.path, 0o755)
        self.stack = contextlib.ExitStack()
        self.procs = []

    def __enter__(self):
        self.run = self.make_dir("run")
        return self

    def __exit__(self, *exc):
        self.stack.close()
        if self.keep:
            say(f"kept: {self.path}")
        else:
            shutil.rmtree(self.path, ignore_errors=True)

    def make_dir(self, name):
        """A folder that the servers' user may write to."""
        path = os.path.join(self.path, name)
        os.mkdir(path, 0o700)
        self.give(path)
        return path

    def give(self, path):
        if os.geteuid() == 0:
            user = pwd.getpwnam(SERVER_USER)
            os.chown(path, user.pw_uid, user.pw_gid)

    def write(self, name, text):
        path = os.path.join(self.path, name)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o600)
        self.give(path)
        return path

    def log_path(self, name):
        return os.path.join(self.path, name + ".log")

    def spawn(self, name, argv, as_server=True, stop_signal=signal.SIGINT):
        """Starts a program in a process group of its own, its output in <name>.log."""
        command = (drop_root() if as_server else []) + argv
        with open(self.log_path(name), "ab") as log:
            proc = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.run,
                start_new_session=True, env={**os.environ, "HOME": self.run})
        self.procs.append(proc)
        self.stack.callback(end_process, proc, stop_signal)
        return proc

    def spread_nice(self):
        """Every server process of PostgreSQL is a session of its own: see nice_of_session."""
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        for proc in self.procs if nice != 0 else []:
            for pid in tree_stats(proc.pid):
                nice_of_session(pid, nice)


def end_process(proc, stop_signal):
    """Ends one process that we started, politely at first."""
    for sig, seconds in ((stop_signal, 15), (signal.SIGQUIT, 5), (signal.SIGKILL, 5)):
        if proc.poll() is not None:
            return
        proc.send_signal(sig)
        try:
            proc.wait(seconds)
        except subprocess.TimeoutExpired:
            continue


def read_stat(pid):
    """(ppid, ticks of CPU including children already reaped) or None."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return int(fields[1]), sum(int(f) for f in fields[11:15])


def tree_stats(root):
    """{pid: ticks} of a process and all its descendants."""
    stats = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            stat = read_stat(name)
            if stat is not None:
                stats[int(name)] = stat
    children = {}
    for pid, (ppid, _) in stats.items():
        children.setdefault(ppid, []).append(pid)
    found, todo = {}, [root]
    while todo:
        pid = todo.pop()
        if pid in stats:
            found[pid] = stats[pid][1]
            todo += children.get(pid, [])
    return found


def tree_cpu_us(root):
    """CPU time used so far by the tree, exited children included (they count for the parent)."""
    return sum(tree_stats(root).values()) * TICK_US


def tree_pss_bytes(root):
    """Proportional set size of the tree: shared pages are counted once."""
    total = 0
    for pid in tree_stats(root):
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:
            continue
    return total * 1024


def settled_pss_bytes(root, seconds=10):
    """PSS once two looks 0.3 s apart differ by less than 16 kB, or when time is up."""
    deadline = time.monotonic() + seconds
    before = tree_pss_bytes(root)
    while True:
        time.sleep(0.3)  # ban: the distance of two looks, with a deadline
        now = tree_pss_bytes(root)
        if abs(now - before) < 16384 or time.monotonic() > deadline:
            return now
        before = now
