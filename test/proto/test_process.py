# SPDX-License-Identifier: PostgreSQL
"""test_process: the processes of pgpool: start, stop, crash, reload, nothing left behind.

Needs $PGPOOL_BIN, no PostgreSQL. PGPOOL_KILL_ROUNDS sets how often all of it is killed and started.
"""
import contextlib
import json
import os
import random
import re
import resource
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from pgt import procs, waits
from pgt.proxy import answers
from pgt.wire import Address
from process_house import (CONTROL, LOGGER, MONITOR, WORKER, fd_links, make, needs_pgpool, role_title,
                           title)

KILL_ROUNDS = int(os.environ.get("PGPOOL_KILL_ROUNDS", "100"))
__all__ = ["make"]  # a fixture
pytestmark = needs_pgpool


# --- start and stop ------------------------------------------------------------------------------

def test_processes_and_titles(make):
    h = make(num_init_children=3, logging_collector=True).start()
    h.wait_workers(3)
    for what in (MONITOR, CONTROL, LOGGER):
        h.wait_title(what, 1)
    assert len(procs.children(h.pid)) == 6
    assert h.stop() == 0
    h.assert_clean()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_stop_by_signal(make, how):
    h = make().start()
    h.wait_workers(2)
    assert h.pid_path.read_text(encoding="ascii") == f"{h.pid}\n"
    assert stat.S_IMODE(h.pid_path.stat().st_mode) == 0o600
    assert stat.S_ISSOCK((h.home / f".s.PGSQL.{h.port}").stat().st_mode)
    assert h.stop(how) == 0
    log = h.log()
    for text in (f"LOG:  shutting down by signal {int(how)}", "LOG:  terminating all child processes",
                 "LOG:  Pgpool-II system is shutdown"):
        assert log.count(text) == 1, log
    assert "exits with status" not in log
    assert not answers(h.address)
    h.assert_clean()


@pytest.mark.parametrize("mode", ["s", "smart", "f", "fast", "i", "immediate"])
def test_stop_by_command(make, mode):
    h = make().start()
    done = h.run("-m", mode, "stop")
    assert done.returncode == 0, done.stderr
    assert f"stop request sent to pgpool (pid: {h.pid}). waiting for termination..." in done.stderr
    assert done.stderr.endswith("done.\n")
    assert h.daemon.wait_exit() == 0
    h.assert_clean()


def test_more_clients_than_files_is_told_at_the_start(make):
    """The hard limit of files is that of the machine; where it is high enough for a million clients, of a million."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    h = make(num_init_children=1, max_clients=1000000).start()
    h.wait_log("successfully started")
    assert (f"max_clients = 1000000 cannot be reached: no process may have more than {most} files open" in h.log()) == (0 <= most < 1000000)
    assert h.stop() == 0
    h = make(num_init_children=1, max_clients=20).start()
    h.wait_log("successfully started")
    assert "cannot be reached" not in h.log()


def test_stop_prints_dots_while_it_waits(make):
    h = make().start()
    workers = h.wait_workers(2)
    for pid in workers:
        procs.stand_still(pid)
    told = h.home / "told"
    with open(told, "wb") as err:
        stop = subprocess.Popen(h.command("-m", "smart", "stop"), stderr=err)
    h.wait_log("shutting down by signal 15")
    h.wait_log("HINT:  It waits until all clients have left")
    waits.wait_for("a dot", lambda: re.search(r"\n\.+$", told.read_text(encoding="ascii")))
    assert h.daemon.is_running() and stop.poll() is None, "smart waits"
    for pid in workers:
        procs.go_on(pid)
    assert stop.wait(20 * waits.SCALE) == 0
    text = told.read_text(encoding="ascii")
    assert re.search(r"\n\.+done\.\n$", text), text


def test_harder_stop_replaces_a_softer_one(make):
    h = make().start()
    for pid in h.wait_workers(2):
        procs.stand_still(pid)
    os.kill(h.pid, signal.SIGTERM)
    h.wait_log("shutting down by signal 15")
    os.kill(h.pid, signal.SIGTERM)  # again the same: nothing new
    os.kill(h.pid, signal.SIGQUIT)
    assert h.daemon.wait_exit(15) == 0
    log = h.log()
    assert log.count("shutting down by signal 15") == log.count("shutting down by signal 3") == 1
    assert log.count("did not stop in time and is killed") == 2
    h.assert_clean()


def test_smart_stop_has_a_limit_when_one_is_set(make):
    h = make(shutdown_timeout="1s").start()
    client = socket.create_connection(("127.0.0.1", h.port))
    client.sendall(b"\x00\x00\x00\x08\x04\xd2\x16\x2f")
    assert client.recv(1) in (b"N", b"S")
    os.kill(h.pid, signal.SIGTERM)
    assert h.daemon.wait_exit(20) == 0
    client.close()
    h.assert_clean()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_stop_at_any_moment_of_the_start(make, how):
    """A process that is told to stop before its loop runs must not forget it."""
    h = make(num_init_children=3)
    for _ in range(10):
        h.daemon = procs.Daemon(h.command("-n"), h.home / "out.log")
        waits.wait_for("the pid file", lambda: h.pid_path.exists() and h.pid_path.read_bytes(), 10)
        os.kill(h.pid, how)
        assert h.daemon.wait_exit(10) == 0
    h.assert_clean()


def test_interrupt_of_the_whole_terminal(make):
    """Control-C reaches every process of the foreground group; it is still an orderly fast stop."""
    h = make().start()
    h.wait_workers(2)
    os.killpg(h.pid, signal.SIGINT)
    assert h.daemon.wait_exit(20) == 0
    assert "exits with status" not in h.log()
    h.assert_clean()


def test_terminate_of_the_whole_group(make):
    """A service manager sends SIGTERM to all processes at once."""
    h = make(logging_collector=True, log_directory="log").start()
    h.wait_workers(2)
    os.killpg(h.pid, signal.SIGTERM)
    assert h.daemon.wait_exit(20) == 0
    log = h.files_log()
    assert "exits with status" not in log
    assert log.count("Pgpool-II system is shutdown") == 1
    h.assert_clean()


def test_background(make):
    h = make()
    given, ours = os.pipe()  # as of a script that starts us and waits for the end of its pipe
    os.set_blocking(given, False)
    done = subprocess.run(h.command(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=30 * waits.SCALE, check=False, pass_fds=(ours,))
    os.close(ours)
    pid = int(h.pid_path.read_text(encoding="ascii"))
    h.background_pids.append(pid)
    assert done.returncode == 0, done.stderr
    assert answers(h.address)  # it came back when clients were welcome, not before
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    for p in [pid, *procs.children(pid)]:
        links = fd_links(p)
        assert [links[fd] for fd in (0, 1, 2)] == ["/dev/null"] * 3
    assert os.read(given, 1) == b""  # nobody holds its other end
    os.close(given)
    assert h.run("-m", "fast", "stop").returncode == 0
    waits.wait_for("all of the session ends", lambda: not procs.session_pids(pid))
    h.assert_clean()


def test_background_start_that_fails_says_so(make):
    h = make()
    with socket.create_server(("127.0.0.1", h.port)):
        done = h.run()
    assert done.returncode == 3
    assert "FATAL:" in done.stderr and "in use" in done.stderr and "HINT:" in done.stderr
    h.assert_clean()


def test_as_many_workers_as_processors(make):
    h = make(num_init_children=0).start()
    h.wait_workers(len(os.sched_getaffinity(0)))
    assert h.stop() == 0


def test_a_hundred_workers(make):
    h = make(num_init_children=100).start()
    h.wait_workers(100)
    assert h.stop() == 0
    h.assert_clean()


# --- pid file ------------------------------------------------------------------------------------

def test_second_start_is_refused(make):
    h = make().start()
    for args in (("-n",), ()):
        done = h.run(*args)
        assert done.returncode == 1
        assert f"ERROR: pid file found. is another pgpool({h.pid}) is running?" in done.stderr
    assert h.pid_path.read_text(encoding="ascii") == f"{h.pid}\n"
    assert answers(h.address)
    assert h.stop() == 0


@pytest.mark.parametrize("content", ["999999\n", "1\n", "", "nonsense", "{own}\n", "12345\0"])
def test_stale_pid_file(make, content):
    """Even one that names a living process: the pid was recycled."""
    h = make()
    h.pid_path.write_text(content.format(own=os.getpid()), encoding="ascii")
    h.start()
    assert "NOTICE: pid file found but it seems bogus. Trying to start pgpool anyway..." in h.log()
    assert h.pid_path.read_text(encoding="ascii") == f"{h.pid}\n"
    assert h.stop() == 0
    h.assert_clean()


def test_commands_without_a_pgpool(make):
    h = make()
    done = h.run("stop")
    assert (done.returncode, "could not read pid file" in done.stderr) == (3, True)
    done = h.run("reload")
    assert (done.returncode, "could not read pid file" in done.stderr) == (1, True)
    h.pid_path.write_text(f"{os.getpid()}\n", encoding="ascii")  # must not be signalled
    done = h.run("stop")
    assert (done.returncode, "could not stop process with pid" in done.stderr) == (3, True)
    assert h.run("reload").returncode == 1


def test_two_starts_at_once_make_one_pgpool(make):
    """All that start pass the first look; the lock of the file decides."""
    h = make()
    rivals = [procs.Daemon(h.command("-n"), h.home / "out.log") for _ in range(4)]
    waits.wait_for("one answers", lambda: answers(h.address), 20)
    waits.wait_for("three gave up", lambda: sum(not r.is_running() for r in rivals) == 3, 20)
    alive = [r for r in rivals if r.is_running()]
    assert h.pid_path.read_text(encoding="ascii") == f"{alive[0].pid}\n"
    assert all(r.popen.returncode in (1, 3) for r in rivals if r is not alive[0])
    assert answers(Address(str(h.home), h.port))
    h.daemon = alive[0]
    assert h.stop() == 0
    h.assert_clean()


# --- options -------------------------------------------------------------------------------------

def test_options_that_only_print(make):
    h = make()
    for args in (("-v",), ("--version",)):
        done = h.run(*args)
        assert done.returncode == 0
        assert re.fullmatch(r"pgpool-II version \S+ \(\S+\)\n(built without: .+\n)?", done.stderr)
    done = h.run("--help")
    assert done.returncode == 0
    for option in ("--config-file", "--hba-file", "--pcp-file", "--key-file", "--dont-detach",
                   "--debug", "--discard-status", "--clear-oidmaps", "--mode", "--check-config",
                   "--describe", "--version", "--help"):
        assert option in done.stderr


@pytest.mark.parametrize("args", [("-Z",), ("--nonsense",), ("halt",), ("stop", "now"),
                                  ("-m", "gently", "stop"), ("-m", "", "stop"), ("-f",)])
def test_wrong_options(make, args):
    done = make().run(*args)
    assert done.returncode == 1
    assert done.stderr


def test_check_config(make):
    h = make()
    assert h.run("--check-config").returncode == 0
    h.write_conf("port = 'many'\nnum_init_children = -3\n")
    done = h.run("--check-config")
    assert done.returncode == 1
    lines = h.conf_path.read_text(encoding="utf-8").count("\n")
    assert f"pgpool.conf:{lines - 1}:" in done.stderr and f"pgpool.conf:{lines}:" in done.stderr
    done = h.run("-n")
    assert done.returncode == 3
    assert f"pgpool.conf:{lines - 1}:" in done.stderr and f"pgpool.conf:{lines}:" in done.stderr
    h.settings.update(ssl=True, ssl_cert="nowhere.crt", ssl_key="nowhere.key")
    h.write_conf()
    done = h.run("--check-config")  # what a start finds out about files, too
    assert done.returncode == 1 and ("nowhere.crt" in done.stderr or "not supported" in done.stderr), done.stderr
    assert h.run("-n").returncode == 3
    h.conf_path.unlink()
    assert h.run("-n").returncode == 3
    assert h.run("--check-config").returncode == 1


# Lines of a file, and what is said of them: its severity and a piece of the text, or None.
MISTAKES = [
    ("include = 'nowhere.conf'", "error", "nowhere.conf\": No such file"),
    ("include = 'broken.conf'", None, None),
    ("enable_pool_hba = maybe", "error", "requires a Boolean value, not \"maybe\""),
    ("client_idle_limit = -5", "error", "-5 is outside the valid range"),
    ("pool_mode = sesion", "error", "\"sesion\"\n  hint: Available values: session, transaction, statement."),
    ("connect_timeout = '10 parsecs'", "error", "Valid units"),
    ("log_line_prefix = 'open", "error", "a quoted string does not end"),
    ("= 5", "error", "a name is expected"),
    ("write_function_list = '(('", "error", "bad regular expression"),
    ("num_init_childern = 4", "warning", "Did you mean \"num_init_children\"?"),
    ("memory_cache_enabled = on", None, None),
]


def test_check_config_tells_all_at_once(make):
    h = make()
    (h.home / "broken.conf").write_text("\nload_balence_mode = on\nmax_clients = many\n", encoding="utf-8")
    h.write_conf("".join(line + "\n" for line, _, _ in MISTAKES))
    first = h.conf_path.read_text(encoding="utf-8").count("\n") - len(MISTAKES) + 1
    done = h.run("--check-config")
    assert done.returncode == 1
    found = re.split(r"\n(?! )", done.stderr)
    for at, (line, severity, text) in enumerate(MISTAKES, first):
        told = [f for f in found if f.startswith(f"{h.conf_path}:{at}: ")]
        assert [f"{severity}: " in f and text in f for f in told] == ([True] if severity else []), (line, told)
    assert any(f.startswith(f"{h.home}/broken.conf:3: error: ") for f in found), found
    assert any("broken.conf:2: warning" in f and "Did you mean \"load_balance_mode\"?" in f for f in found), found
    assert found[-2:] == ["9 errors, 2 warnings", ""], found
    # What the settings name is looked at when they are right, and counted with them.
    (h.home / "pool_hba.conf").write_text("local all all nonsense\nhost all all 1.2.3.4/99 trust\n", encoding="utf-8")
    (h.home / "pool_passwd").write_text("alice\n", encoding="utf-8")
    h.settings.update(enable_pool_hba=True, pool_passwd="pool_passwd")
    h.write_conf("no_such_thing = 1\n")
    done = h.run("--check-config")
    assert done.returncode == 1
    for where in ("pool_hba.conf:1: error: ", "pool_hba.conf:2: error: ", "pool_passwd:1: warning: "):
        assert f"{h.home}/{where}" in done.stderr, done.stderr
    assert done.stderr.endswith("\n2 errors, 2 warnings\n")
    (h.home / "pool_hba.conf").write_text("local all all trust\n", encoding="utf-8")
    done = h.run("--check-config")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "0 errors, 2 warnings")


def test_describe(make):
    h = make()
    done = h.run("--describe=sample")
    assert done.returncode == 0 and "listen_addresses" in done.stdout
    done = h.run("--describe=man")
    assert done.returncode == 0 and "listen_addresses" in done.stdout
    table = json.loads(h.run("--describe=json").stdout)
    assert any("pool_mode" in str(row) for row in table)
    assert h.run("--describe=nonsense").returncode == 1


def test_debug_and_discard_options_are_heard(make):
    h = make().start("-d", "-D", "-C", "-x")
    log = h.log()
    assert "option -D" in log and "option -C" in log and "option -x" in log
    os.kill(h.pid, signal.SIGINT)
    assert h.daemon.wait_exit() == 0
    assert "DEBUG:  " in h.log()


# --- crash ---------------------------------------------------------------------------------------

def test_crashed_worker_is_replaced(make):
    h = make().start()
    before = h.wait_workers(2)
    os.kill(before[0], signal.SIGKILL)
    h.wait_log(rf"child process with pid: {before[0]} exits with status 9 by signal 9")
    waits.wait_for("a new worker", lambda: len(h.workers()) == 2 and before[0] not in h.workers(), 10)
    h.wait_log("fork a new child process with pid: ")
    assert before[1] in h.workers()
    os.kill(before[1], signal.SIGSEGV)
    h.wait_log(rf"child process with pid: {before[1]} was terminated by segmentation fault")
    h.wait_workers(2)
    waits.wait_for("it answers", lambda: answers(h.address))
    assert h.stop() == 0
    h.assert_clean()


@pytest.mark.parametrize("signo", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGXFSZ, signal.SIGHUP])
def test_signals_for_all_end_nothing(make, signo):
    """As who rotates logs may send them, by name: to the main process and all others. No client is lost by it."""
    h = make().start()
    before = sorted(h.wait_workers(2) + h.wait_title(MONITOR, 1) + h.wait_title(CONTROL, 1))
    with h.address.connect(30) as sock:
        for pid in [h.pid, *before]:
            os.kill(pid, signo)
        os.kill(h.pid, signal.SIGHUP)
        h.wait_log("generation [2-9] is in use")
        sock.sendall(b"\0\0\0\x08\x04\xd2\x16\x2f")  # may this be encrypted?
        assert sock.recv(1) == b"N"
    assert sorted(h.workers() + h.of_title(MONITOR) + h.of_title(CONTROL)) == before
    assert h.stop() == 0
    assert "exits with status" not in h.log()


@pytest.mark.parametrize("what", [MONITOR, CONTROL])
def test_crashed_helper_is_replaced(make, what):
    h = make().start()
    old = h.wait_title(what, 1)
    os.kill(old[0], signal.SIGKILL)
    h.wait_log(r"process with pid: %d exits with status 9 by signal 9" % old[0])
    h.wait_log("HINT:  Another is started")
    assert "its clients are lost" not in h.log(), "it has none"
    waits.wait_for("a new one", lambda: h.of_title(what) not in ([], old), 10)
    assert answers(h.address)
    assert h.stop() == 0


def test_worker_that_keeps_dying_is_forked_later_and_later(make):
    h = make(num_init_children=1).start()
    last = None
    begin = waits.now()
    for _ in range(7):
        pid = waits.wait_for("a new worker", lambda: (w := h.workers()) and w[0] != last and w[0], 20)
        os.kill(pid, signal.SIGKILL)
        last = pid
    waits.wait_for("one more", lambda: (w := h.workers()) and w[0] != last, 20)
    assert waits.now() - begin >= 1.27  # 10 + 20 + ... + 640 ms
    assert h.stop() == 0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_order_of_accidents(make, seed):
    """Children killed, stopped and continued, reloads good and bad, rotations, clients, in any order."""
    dice = random.Random(seed)
    h = make(num_init_children=3, logging_collector=True, log_directory="log",
             log_rotation_size="1kB").start()
    h.wait_workers(3)
    before = procs.fd_count(h.pid)
    stopped: list[int] = []
    def hit(pids: list[int], signo: int) -> None:
        pid = dice.choice(pids)
        try:
            os.kill(pid, signo)
            stopped.extend([pid] if signo == signal.SIGSTOP else [])
        except ProcessLookupError:
            pass  # it was already on its way

    for _ in range(150):
        what = dice.choice(["kill", "stop", "cont", "good", "bad", "rotate", "client", "client"])
        family = procs.children(h.pid)
        if what == "kill" and family:
            hit(family, dice.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGQUIT]))
        elif what == "stop" and family:
            hit(family, signal.SIGSTOP)
        elif what == "cont":
            continue_all(stopped)
        elif what in ("good", "bad"):
            h.write_conf("max_clients = 'x'\n" if what == "bad" else "")
            os.kill(h.pid, signal.SIGHUP)
        elif what == "rotate":
            os.kill(h.pid, signal.SIGUSR1)
        else:
            socket.create_connection(("127.0.0.1", h.port)).close()
        assert h.daemon.is_running()
    continue_all(stopped)
    h.wait_workers(3)
    for helper in (MONITOR, CONTROL, LOGGER):
        h.wait_title(helper, 1)
    waits.wait_for("it answers", lambda: answers(h.address), 20)
    waits.wait_for("nothing is left open", lambda: procs.fd_count(h.pid) <= before + 1, 20)
    assert h.stop() == 0
    h.assert_clean()


def continue_all(pids: list[int]) -> None:
    for pid in pids:
        try:
            procs.go_on(pid)
        except ProcessLookupError:
            pass
    pids.clear()


def test_stop_while_a_worker_waits_for_its_restart(make):
    h = make(num_init_children=1).start()
    last = None
    for _ in range(6):
        last = waits.wait_for("a worker", lambda: (w := h.workers()) and w[0] != last and w[0], 20)
        os.kill(last, signal.SIGKILL)
    assert h.stop(signal.SIGTERM) == 0
    h.assert_clean()


# --- kill -9 -------------------------------------------------------------------------------------

def own_segments() -> set[str]:
    return {n for n in os.listdir("/dev/shm") if "pgpool" in n}


def sysv_segments() -> dict[int, int]:
    """Who made each; others start and kill servers meanwhile, which have some."""
    lines = Path("/proc/sysvipc/shm").read_text(encoding="ascii").splitlines()[1:]
    return {int(line.split()[1]): int(line.split()[4]) for line in lines}


def test_kill_all_and_start_again(make):
    h = make(logging_collector=True, log_directory="log")
    shm_before = own_segments()
    sysv_before = sysv_segments()
    killed: set[int] = set()
    for _ in range(KILL_ROUNDS):
        h.start()
        family = procs.session_pids(h.pid)
        killed |= set(family)
        for pid in family:
            with contextlib.suppress(ProcessLookupError):  # they leave when the first of them has gone
                os.kill(pid, signal.SIGKILL)
        waits.wait_for("all are gone", lambda: not procs.session_pids(h.pid), 10)
        h.daemon.popen.wait()
    h.start()
    assert answers(Address(str(h.home), h.port))
    assert h.stop() == 0
    assert own_segments() == shm_before
    assert not killed & {creator for number, creator in sysv_segments().items() if number not in sysv_before}
    h.assert_clean()


@pytest.mark.parametrize("collector", [False, True])
def test_children_leave_when_the_supervisor_dies(make, collector):
    h = make(logging_collector=collector, log_directory="log").start()
    h.wait_workers(2)
    family = procs.session_pids(h.pid)
    assert len(family) == (6 if collector else 5)
    os.kill(h.pid, signal.SIGKILL)
    h.daemon.popen.wait()
    waits.wait_for("all are gone", lambda: not procs.session_pids(h.pid), 10)
    h.start()
    assert h.stop() == 0
    h.assert_clean()


def test_stopped_child_does_not_outlive_a_killed_supervisor(make):
    h = make().start()
    pid = h.wait_workers(2)[0]
    procs.stand_still(pid)
    os.kill(h.pid, signal.SIGKILL)
    h.daemon.popen.wait()
    waits.wait_for("it is gone", lambda: not procs.session_pids(h.pid), 10)


# --- descriptors ---------------------------------------------------------------------------------

def listening_inodes(port: int, home: Path) -> set[str]:
    found = set()
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if int(fields[1].split(":")[1], 16) == port and fields[3] == "0A":
            found.add(f"socket:[{fields[9]}]")
    for line in Path("/proc/net/unix").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[7] == str(home / f".s.PGSQL.{port}") and fields[5] == "01":
            found.add(f"socket:[{fields[6]}]")
    return found


def test_children_own_only_what_their_role_needs(make):
    h = make(logging_collector=True, log_directory="log")
    leak = os.open("/dev/zero", os.O_RDONLY)
    os.set_inheritable(leak, True)
    try:
        out = open(h.home / "out.log", "ab")
        popen = subprocess.Popen(h.command("-n"), stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                 start_new_session=True, pass_fds=[leak])
        out.close()
    finally:
        os.close(leak)
    h.background_pids.append(popen.pid)
    waits.wait_for("pgpool answers", lambda: answers(h.address), 20)
    waits.wait_for("all run",
                   lambda: sum(role_title(p) != "" for p in procs.children(popen.pid)) == 5, 10)
    listening = listening_inodes(h.port, h.home)
    assert len(listening) == 2
    for pid in procs.children(popen.pid):
        links = fd_links(pid)
        what = role_title(pid)
        values = list(links.values())
        assert "/dev/zero" not in values, (what, links)
        assert not any("pgpool.pid" in v or "signalfd" in v for v in values
                       if what != LOGGER or "signalfd" not in v), (what, links)
        assert (set(values) & listening == listening) == (what == WORKER), (what, links)
        assert what == WORKER or not set(values) & listening, (what, links)
        assert ("out.log" in links[2]) == (what == LOGGER), (what, links)
    os.kill(popen.pid, signal.SIGINT)
    assert popen.wait(20 * waits.SCALE) == 0


def test_descriptors_do_not_grow(make):
    h = make(logging_collector=True, log_directory="log").start()
    h.wait_workers(2)
    family = [h.pid, *procs.children(h.pid)]
    seen: list[dict[int, int]] = []

    def stands_still() -> bool:
        """A process has its title before it has all that it opens when it begins."""
        seen.append({pid: procs.fd_count(pid) for pid in family})
        return len(seen) > 9 and all(one == seen[-1] for one in seen[-9:])
    waits.wait_for("all have begun", stands_still)
    counts = seen[-1]
    for round_no in range(2, 12):
        os.kill(h.pid, signal.SIGHUP)
        h.wait_log(f"configuration generation {round_no} is in use", files=True)
    victim = h.workers()[0]
    os.kill(victim, signal.SIGKILL)
    waits.wait_for("a new worker", lambda: len(h.workers()) == 2 and victim not in h.workers(), 10)
    for pid, n in counts.items():
        if pid != victim:
            extra = 1 if pid == h.pid else 0  # the text of the present generation
            waits.wait_for(f"{title(pid)} has at most {n + extra} descriptors",
                           lambda p=pid, m=n + extra: procs.fd_count(p) <= m, 10)
    assert h.stop() == 0


# --- reload --------------------------------------------------------------------------------------

def test_reload_is_taken_whole(make):
    h = make().start()
    h.wait_workers(2)
    h.settings["log_connections"] = True
    h.settings["log_line_prefix"] = "NEW %a %p: "
    h.write_conf()
    done = h.run("reload")
    assert done.returncode == 0, done.stderr
    h.wait_log("NEW main .*configuration generation 2 is in use")
    assert "reload config files." in h.log()
    changes = re.findall(r'parameter "(\w+)" changed to "(.*)"', h.log())
    assert sorted(changes) == [("log_connections", "on"), ("log_line_prefix", "NEW %a %p: ")]

    def who_took_it(n: int) -> set[str] | None:
        answers(h.address)
        pids = set(re.findall(r"NEW child (\d+): LOG:  new connection received", h.log()))
        return pids if len(pids) >= n else None
    first = int(waits.wait_for("a worker took it, too", lambda: who_took_it(1), 20).pop())
    procs.stand_still(first)
    try:
        waits.wait_for("so did the other one", lambda: who_took_it(2), 20)
    finally:
        procs.go_on(first)
    os.kill(h.pid, signal.SIGHUP)
    h.wait_log("configuration generation 3 is in use")
    assert h.stop() == 0


def test_reload_with_errors_is_refused_whole(make):
    h = make().start()
    h.write_conf("log_line_prefix = 'BAD '\nmax_clients = 'x'\nnonsense nonsense nonsense\n")
    lines = h.conf_path.read_text(encoding="utf-8").count("\n")
    done = h.run("reload")  # tells whoever typed it, and does not disturb the running one
    assert done.returncode == 3
    assert f"pgpool.conf:{lines - 1}:" in done.stderr and f"pgpool.conf:{lines}:" in done.stderr
    assert "reload config files" not in h.log()
    os.kill(h.pid, signal.SIGHUP)
    h.wait_log("configuration was not reloaded")
    log = h.log()
    assert f"pgpool.conf:{lines - 1}:" in log and f"pgpool.conf:{lines}:" in log, log
    assert "generation 1 stays in use" in log
    assert "BAD " not in log
    assert answers(h.address)
    h.write_conf()
    os.kill(h.pid, signal.SIGHUP)
    h.wait_log("configuration generation 2 is in use")
    assert h.stop() == 0


def test_new_worker_has_the_present_generation(make):
    h = make(num_init_children=1).start()
    h.settings["log_connections"] = True
    h.write_conf()
    os.kill(h.pid, signal.SIGHUP)
    h.wait_log("configuration generation 2 is in use")
    old = h.wait_workers(1)
    os.kill(old[0], signal.SIGKILL)
    waits.wait_for("a new worker", lambda: h.workers() not in ([], old), 10)
    waits.wait_for("it answers", lambda: answers(h.address), 10)
    h.wait_log("new connection received")
    assert h.stop() == 0


def test_check_config_says_whose_answer_it_would_be(make):
    """A query of the administrator's own that runs in the client's database asks its owner."""
    h = make()
    h.settings.update(auth_user="asker", auth_query="select a, b from users where a = $1")
    for dbname, warns in (("", True), ("postgres", False)):
        h.settings["auth_dbname"] = dbname
        h.write_conf("")
        done = h.run("--check-config")
        assert done.returncode == 0 and ("who owns that decides" in done.stderr) == warns, done.stderr


def test_check_config_looks_at_the_administrators(make):
    """That nobody can use PCP is told; a line that no log-in would find, and a file that is none, are warnings."""
    h = make()
    h.write_conf("")
    path = h.home / "pcp.conf"
    path.unlink(missing_ok=True)
    done = h.run("--check-config")
    assert done.returncode == 0 and f"{path}: note: there is no such file: nobody can use the PCP tools" in done.stderr, done.stderr
    path.write_text(f"# comment\n\nop:{'0a' * 16}\nop secret\nalice:secret\n", encoding="ascii")
    path.chmod(0o600)
    done = h.run("--check-config")
    assert done.returncode == 0 and "secret" not in done.stderr, done.stderr
    told = [line for line in done.stderr.splitlines() if str(path) in line]
    assert [line.split(": ")[:2] for line in told] == [[f"{path}:{n}", "warning"] for n in (4, 5)], done.stderr
    path.chmod(0o644)
    assert "group or world" in h.run("--check-config").stderr
    path.unlink()
    path.mkdir()
    done = h.run("--check-config")
    assert done.returncode == 0 and f'warning: "{path}" is no file' in done.stderr, done.stderr


def test_check_config_tries_what_a_start_needs(make):
    """Its status is 0 when pgpool would start; an instance that runs is no hindrance to itself."""
    h = make()
    h.write_conf("")
    assert h.run("--check-config").returncode == 0
    h.start()
    assert h.run("--check-config").returncode == 0, "it runs"
    other = make()
    other.settings.update(port=h.settings["port"], failover_command="/nowhere/promote %d %h")
    other.write_conf("")
    done = other.run("--check-config")
    assert done.returncode == 1 and str(h.settings["port"]) in done.stderr, done.stderr
    assert 'warning: the program of failover_command, "/nowhere/promote"' in done.stderr
    assert other.run("-n").returncode != 0
    other.settings.update(logging_collector=True, log_directory=str(other.home / "no" / "logs"))
    other.write_conf("")
    assert f'warning: log files cannot be written to "{other.home}/no/logs"' in other.run("--check-config").stderr
    assert h.stop() == 0
    other.settings.update(pid_file_name=str(other.home / "no" / "folder.pid"))
    other.write_conf("")
    done = other.run("--check-config")
    assert done.returncode == 1 and "folder.pid" in done.stderr and done.stderr.count("error:") == 1, done.stderr
    assert other.run("-n").returncode != 0


def test_a_mode_of_old_files_does_not_start_as_another(make):
    """Who asks for several servers that take all writes must not get one that does, and is told what it is called today."""
    h = make()
    h.write_conf("replication_mode = on\n")
    for args in (["--check-config"], ["-n"]):
        done = h.run(*args)
        assert done.returncode != 0 and "backend_clustering_mode = 'native_replication'" in done.stderr, done.stderr
        assert "not built" not in done.stderr, "it is"
    assert not h.pid_path.exists()
    h.write_conf("replication_mode = on\nbackend_clustering_mode = 'raw'\n")
    assert h.run("--check-config").returncode == 0
