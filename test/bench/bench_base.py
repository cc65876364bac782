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


class CpuGroup:
    """A control group for this process and all it starts, with the greatest weight there is, until the
    end of `with`. Root only. Neighbours get next to nothing of the processors, and processes are
    scheduled one by one: outside of groups kernels share out by session first (sched_autogroup),
    where priorities count for nothing between sessions, every server process of PostgreSQL is a
    session and all threads of the load generator together are another."""

    KINDS = (("/sys/fs/cgroup/cpu", "cpu.shares", "262144"), ("/sys/fs/cgroup", "cpu.weight", "10000"))

    def __enter__(self):
        for top, weight, value in self.KINDS:
            self.path = f"{top}/pgpool-bench-{os.getpid()}"
            self.home = top + own_group(top)
            try:
                os.mkdir(self.path)
                with open(f"{self.path}/{weight}", "w") as file:
                    file.write(value)
                move_to_group(self.path)
                return self
            except OSError:
                if os.path.isdir(self.path):
                    os.rmdir(self.path)
        raise BenchError("--group: no control group for processors could be made (root only)")

    def __exit__(self, *exc):
        move_to_group(self.home)
        wait_until("the processes in the group to end", 10, lambda: not self.is_used())
        os.rmdir(self.path)

    def is_used(self):
        with open(f"{self.path}/cgroup.procs") as file:
            return file.read() != ""


def own_group(top):
    """Where this process is below `top`: the line "N:cpu:/path", or "0::/path" of version 2."""
    with open("/proc/self/cgroup") as file:
        for line in file:
            _, names, path = line.rstrip("\n").split(":", 2)
            if os.path.basename(top) in names.split(",") or (names == "" and top == "/sys/fs/cgroup"):
                return path
    return "/"


def move_to_group(path):
    with open(f"{path}/cgroup.procs", "w") as file:
        file.write(str(os.getpid()))


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
    thousands of clients open a port from there may be taken before its server starts. Runs beside each
    other have ranges of their own (PGT_PORTS), as the tests have."""
    low, high = (int(x) for x in os.environ.get("PGT_PORTS", "20000-32000").split("-"))
    for _ in range(200):
        port = random.randrange(low, high)
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
        self.stack.callback(end_process, proc, stop_signal)
        return proc


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
    """(ppid, ticks of CPU of children already reaped) or None."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return int(fields[1]), sum(int(f) for f in fields[13:15])


def tree_stats(root):
    """{pid: ticks of its reaped children} of a process and all its descendants."""
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


def own_cpu_ns(pid):
    """Of all its threads, as the scheduler has counted it: ticks would be 1 % of a run of one second for each process."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            with open(path) as file:
                total += int(file.read().split()[0])
        except OSError:
            continue
    return total


def tree_cpu_us(root):
    """CPU time used so far by the tree, exited children included (they count for the parent)."""
    return sum(own_cpu_ns(pid) / 1000 + ticks * TICK_US for pid, ticks in tree_stats(root).items())


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
