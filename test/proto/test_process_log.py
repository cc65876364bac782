# SPDX-License-Identifier: PostgreSQL
"""test_process_log: log files and their rotation, syslog, JSON, words to the service manager.

Needs $PGPOOL_BIN, no PostgreSQL.
"""
import grp
import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from pgt import procs, waits
from pgt.proxy import answers
from pgt.wire import Wire
from process_house import BIN, LOGGER, make, needs_pgpool

__all__ = ["make"]  # a fixture
pytestmark = needs_pgpool


def test_log_rotates_by_size_and_loses_nothing(make):
    h = make(logging_collector=True, log_directory="log", log_filename="p-%H%M%S.log",
             log_rotation_size="1kB", log_file_mode="0640").start()
    rounds = 2
    while len(list(h.home.glob("log/*"))) < 3:
        os.kill(h.pid, signal.SIGHUP)
        h.wait_log(f"configuration generation {rounds} is in use", files=True)
        rounds += 1
        assert rounds < 2000
    assert h.stop() == 0
    for path in h.home.glob("log/*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
    log = h.files_log()
    numbers = [int(n) for n in re.findall(r"generation (\d+) is in use", log)]
    assert numbers == list(range(2, rounds))
    assert log.rstrip("\n").endswith("Pgpool-II system is shutdown")
    assert "redirecting log output" in h.log()


def test_log_rotates_when_asked(make):
    h = make(logging_collector=True, log_directory="log", log_filename="p-%H%M%S.log").start()
    first = set(h.home.glob("log/*"))

    def asked() -> bool:
        os.kill(h.pid, signal.SIGUSR1)
        return len(set(h.home.glob("log/*"))) > len(first)

    waits.wait_for("a second file", asked, 10)
    os.kill(h.wait_title(LOGGER, 1)[0], signal.SIGUSR1)  # directly, as logrotate scripts do
    assert h.stop() == 0
    assert "Pgpool-II system is shutdown" in sorted(h.home.glob("log/*"))[-1].read_text(encoding="utf-8")


LOGROTATE = shutil.which("logrotate")


@pytest.mark.skipif(LOGROTATE is None, reason="logrotate is not installed")
def test_logrotate(make):
    """The file of the packages: the old log is moved away, pgpool goes on in a new one, nothing is lost."""
    h = make(logging_collector=True, log_directory="log", log_filename="p.log", log_file_mode="0640").start()
    user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
    text = (Path(__file__).parents[2] / "packaging/pgpool.logrotate").read_text(encoding="utf-8")
    for here, there in (("/var/log/pgpool", h.home / "log"), ("/run/pgpool/pgpool.pid", h.pid_path), ("pgpool adm", f"{user} {group}")):
        assert here in text, here
        text = text.replace(here, str(there))
    conf = h.home / "logrotate.conf"
    conf.write_text(text, encoding="utf-8")
    conf.chmod(0o644)
    log = h.home / "log" / "p.log"
    h.wait_log("successfully started", files=True)
    log.parent.chmod(0o755)
    inode = log.stat().st_ino
    done = subprocess.run([LOGROTATE, "-f", "-s", h.home / "state", conf], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and "error" not in done.stderr, done.stderr
    old = h.home / "log" / "p.log.1"
    assert old.stat().st_ino == inode and log.stat().st_ino != inode
    assert stat.S_IMODE(log.stat().st_mode) == 0o640

    def goes_on() -> bool:
        """A line that was on its way when the logger heard of it may still be in the old file."""
        os.kill(h.pid, signal.SIGHUP)
        return "is in use" in log.read_text(encoding="utf-8")
    waits.wait_for("it goes on in the new file", goes_on, 20)
    assert h.stop() == 0
    assert "successfully started" in old.read_text(encoding="utf-8") and "shutdown" in log.read_text(encoding="utf-8")


def test_reload_opens_a_file_that_was_moved_or_removed(make):
    """As logrotate with a SIGHUP behind it does, which is PgBouncer's way; one that is there is written to further."""
    h = make(logging_collector=True, log_directory="log", log_filename="p.log").start()
    path = h.home / "log/p.log"
    for generation, take in ((2, lambda: path.rename(path.with_suffix(".1"))), (4, path.unlink)):
        os.kill(h.pid, signal.SIGHUP)
        waits.wait_for("it goes on in its file", lambda n=generation: f"generation {n} is in use" in path.read_text(encoding="utf-8"), 20)
        take()
        os.kill(h.pid, signal.SIGHUP)
        waits.wait_for("a new file", path.exists, 20)
    assert h.stop() == 0
    assert "successfully started" in path.with_suffix(".1").read_text(encoding="utf-8")
    assert "shutdown" in path.read_text(encoding="utf-8")


def test_reload_moves_the_log(make):
    h = make(logging_collector=True, log_directory="log", log_filename="a.log").start()
    h.settings["log_filename"] = "b.log"
    h.write_conf()
    os.kill(h.pid, signal.SIGHUP)
    waits.wait_for("the new file", lambda: (h.home / "log" / "b.log").exists(), 10)
    assert h.stop() == 0
    assert "shutdown" in (h.home / "log" / "b.log").read_text(encoding="utf-8")


def test_killed_logger_is_replaced_and_loses_nothing(make):
    h = make(logging_collector=True, log_directory="log", log_filename="p.log").start()
    old = h.wait_title(LOGGER, 1)
    procs.stand_still(old[0])
    for _ in range(5):
        os.kill(h.pid, signal.SIGHUP)
    os.kill(old[0], signal.SIGKILL)
    waits.wait_for("a new logger", lambda: h.of_title(LOGGER) not in ([], old), 10)
    os.kill(h.pid, signal.SIGHUP)
    h.wait_log(r"logger process with pid: \d+ exits with status 9", files=True)
    assert h.stop() == 0
    log = h.files_log()
    numbers = [int(n) for n in re.findall(r"generation (\d+) is in use", log)]
    assert numbers == list(range(2, len(numbers) + 2)) and numbers
    assert log.count("Pgpool-II system is shutdown") == 1


def test_stuck_logger_does_not_stop_the_others(make):
    h = make(logging_collector=True, log_directory="log").start()
    logger = h.wait_title(LOGGER, 1)[0]
    procs.stand_still(logger)
    for _ in range(50):
        assert answers(h.address)
    os.kill(h.pid, signal.SIGINT)
    assert h.daemon.wait_exit(20) == 0  # the logger is killed after its limit
    h.assert_clean()


def test_raw_words_on_standard_error_reach_the_file(make):
    """Backtraces and words of libraries do not come through the log functions."""
    h = make(num_init_children=1, logging_collector=True, log_directory="log").start()
    worker = h.wait_workers(1)[0]
    with open(f"/proc/{worker}/fd/2", "wb", buffering=0) as raw:
        raw.write(b"half a line, ")
        raw.write(b"and its end\nno end")
    h.wait_log("half a line, and its end\n", files=True)
    assert h.stop() == 0
    assert "no end\n" in h.files_log()


def test_syslog(make):
    """In a private /dev, so that nobody else's log is touched."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare for a private /dev")
    h = make(log_destination="stderr,syslog", syslog_facility="LOCAL3", syslog_ident="poolname")
    log_path = h.home / "devlog"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log_socket:
        log_socket.bind(str(log_path))
        log_socket.settimeout(10 * waits.SCALE)
        script = ('mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && '
                  'mknod -m 666 /dev/urandom c 1 9 && ln -s "$0" /dev/log && exec "$@"')
        h.start(wrap=["unshare", "--mount", "sh", "-c", script, str(log_path)])
        got = log_socket.recv(4096).decode()
        while "successfully started" not in got:
            got = log_socket.recv(4096).decode()
        # LOCAL3 is 19, LOG goes out as info (6)
        assert got.startswith(f"<{19 * 8 + 6}>"), got
        assert re.search(r"poolname\[\d+\]: \[\d+\] main \d+: LOG:  ", got), got
        h.wait_log("successfully started")  # the other destination
        h.write_conf("max_clients = 'x'\n")
        os.kill(h.pid, signal.SIGHUP)
        while "not reloaded" not in got:
            got = log_socket.recv(4096).decode()
        number = re.search(r": \[(\d+)-1\] main \d+: ERROR:  ", got).group(1)
        hint = ""  # the second line of that event; another process may have said something meanwhile
        while f"[{number}-2] main" not in hint:
            hint = log_socket.recv(4096).decode()
        assert re.search(rf": \[{number}-2\] main \d+: HINT:  Correct", hint), hint
        assert h.stop() == 0


def test_json_log(make):
    h = make(log_format="json").start()
    assert h.stop() == 0
    events = [json.loads(line) for line in h.log().splitlines() if line.startswith("{")]
    assert any(e["message"] == "Pgpool-II system is shutdown" and e["level"] == "LOG" for e in events)


ODD_USER = 'a"b\\c\nLOG:  root logged in'


def refuse(h) -> None:
    """A login that gets nowhere: no server is there."""
    with Wire(h.address, seconds=20) as w:
        assert w.login(ODD_USER, "d", "p")[-1].type == "E"


def events_of(text: str) -> list[dict]:
    events = [json.loads(line) for line in text.splitlines()]
    for event in events:
        assert {"pid", "error_severity", "message"} <= set(event), event
    return events


def tells_of_odd_user(events: list[dict]) -> bool:
    return any("LOG:  root logged in" in json.dumps(e) for e in events)


def test_jsonlog(make):
    h = make(log_destination="jsonlog", log_connections=True, log_min_messages="debug1").start()
    refuse(h)
    h.wait_log("root logged in")
    assert h.stop() == 0
    events = events_of(h.log())
    assert tells_of_odd_user(events)
    end = [e for e in events if e["message"] == "Pgpool-II system is shutdown"]
    assert len(end) == 1
    assert end[0]["error_severity"] == "LOG" and end[0]["state_code"] == "00000" and end[0]["backend_type"] == "main"
    assert end[0]["pid"] == h.pid


def test_jsonlog_of_the_collector(make):
    """Raw words come as events there, and are not left out by log_min_messages."""
    h = make(log_destination="jsonlog", num_init_children=1, logging_collector=True, log_directory="log",
             log_min_messages="panic").start()
    with open(f"/proc/{h.wait_workers(1)[0]}/fd/2", "wb", buffering=0) as raw:
        raw.write(b'half a "line", ')
        raw.write(b"and its end\nno \xff end")
    h.wait_log("and its end", files=True)
    assert h.stop() == 0
    said = [e["message"] for e in events_of(h.files_log())]
    assert 'half a "line", and its end' in said and "no \ufffd end" in said


# --- service manager -----------------------------------------------------------------------------

def linked_with_systemd() -> bool:
    ldd = subprocess.run(["ldd", BIN], capture_output=True, text=True, check=False)
    return "libsystemd" in ldd.stdout


def test_service_manager_is_told(make):
    if not linked_with_systemd():
        pytest.skip("built without systemd")
    h = make()
    path = h.home / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(path))
        notify.settimeout(10 * waits.SCALE)
        seen = []

        def until(word: str) -> str:
            while not any(word in s for s in seen):
                seen.append(notify.recv(4096).decode())
            return seen.pop([word in s for s in seen].index(True))

        h.start(env={"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "400000"})
        ready = until("READY=1")
        assert f"MAINPID={h.pid}" in ready
        for _ in range(3):
            until("WATCHDOG=1")
        os.kill(h.pid, signal.SIGHUP)
        assert "MONOTONIC_USEC=" in until("RELOADING=1")
        until("READY=1")
        os.kill(h.pid, signal.SIGINT)
        until("STOPPING=1")
        assert h.daemon.wait_exit() == 0
    path.unlink()
    h.assert_clean()
