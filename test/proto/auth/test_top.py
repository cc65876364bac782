# SPDX-License-Identifier: PostgreSQL
"""test_top: `pgpool top` on a terminal of the test's, and as text."""
import contextlib
import fcntl
import hashlib
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from pathlib import Path

import pytest

import auth_house as house
from pgt import procs
from pgt.waits import SCALE, deadline, now, wait_for
from pgt.wire import Wire, query

TOP = Path(os.environ["PGPOOL_BIN"]).parent / "pgpool-top"
pytestmark = pytest.mark.skipif(not TOP.exists(), reason="pgpool was built without ncurses: no pgpool top")
PAUSE_S = 0.02  # it has written what it had to
VIEWS = ["clients", "servers", "queue", "databases", "links", "limits", "pins", "events", "statements"]


@pytest.fixture(scope="module")
def pool():
    pg = house.start_server()
    started = house.start_auth_pool([pg.address])
    house.put(started.home / "pcp.conf", f"op:{hashlib.md5(b'op_pw').hexdigest()}\n")
    yield started
    started.stop()
    pg.stop()


def command(pool, *more: str) -> tuple[list[str], dict[str, str]]:
    env = {**os.environ, "PGPASSWORD": "op_pw", "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    return [os.environ["PGPOOL_BIN"], "top", "-h", "127.0.0.1", "-p", str(pool.address.port), "-U", "op", *more], env


class Terminal:
    """A program on a terminal of 40 lines and 200 columns; what it wrote, without the terminal's own words."""

    def __init__(self, args: list[str], env: dict[str, str], lines: int = 40, columns: int = 200):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = subprocess.Popen(args, env=env, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        self.seen = ""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_exc) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.master != -1:
            self.hang_up()

    def read(self) -> str:
        """For as long as something comes: what is written stands still while nobody reads."""
        end = deadline(1)
        while self.master != -1 and now() < end and select.select([self.master], [], [], PAUSE_S)[0]:
            try:
                more = os.read(self.master, 65536)
            except OSError:
                break
            self.seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\([A-Z0-9]|\x1b[=>]", " ", more.decode(errors="replace"))
        return self.seen

    def expect(self, text: str) -> None:
        wait_for(f"{text!r} is on the screen", lambda: text in self.read(), 60)
        self.seen = self.seen.split(text, 1)[1]

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def end(self) -> int:
        wait_for("it ends", lambda: self.read() is not None and self.process.poll() is not None, 60)
        return self.process.returncode

    def hang_up(self) -> None:
        os.close(self.master)
        self.master = -1


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_as_text(pool, view):
    args, env = command(pool, "--once", view)
    done = subprocess.run(args, env=env, capture_output=True, text=True, check=False, timeout=30 * SCALE)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert re.match(r"all is well \| servers 1 of 1 up \| clients \d+: ", lines[0]), lines[0]
    assert len(lines) >= 2 and re.match(r"\w+/?s?  ", lines[1]), lines[1]
    if view == "servers":
        assert len(lines) == 3 and re.search(" up | waiting ", lines[2])


def test_views_and_an_order(pool):
    with Wire(pool.address, seconds=30) as victim:
        assert victim.login("boss", "postgres", "boss_pw")[-1].type == "Z"
        wait_for("those of the test before have gone", lambda: len(victim.rows("show pool_clients")) == 1)
        number = next(r[0] for r in victim.rows("show pool_clients") if r[2] == b"boss").decode()
        with Terminal(*command(pool, "-i", "0.2")) as t:
            look_and_kill(t, victim, number)
        victim.send(query("select 1"))
        assert victim.read_eof()[-1].sqlstate == "57P01"


def test_cancel(pool):
    with Wire(pool.address, seconds=30) as victim, Wire(pool.address, seconds=30) as other:
        assert victim.login("boss", "postgres", "boss_pw")[-1].type == "Z"
        wait_for("those of the test before have gone", lambda: len(victim.rows("show pool_clients")) == 1)
        number = next(r[0] for r in victim.rows("show pool_clients") if r[2] == b"boss").decode()
        assert other.login("boss", "postgres", "boss_pw")[-1].type == "Z"
        victim.send(query("select pg_sleep(600)"))
        wait_for("it is run", lambda: other.value(
            "select count(*) from pg_stat_activity where state = 'active' and query = 'select pg_sleep(600)'") == "1")
        with Terminal(*command(pool, "-i", "0.2")) as t:
            t.expect("wait_ms")
            select_row(t, other, number)
            t.press("c")
            t.expect(f"cancel what is run by client {number}? y/n")
            t.press("y")
            t.expect(f"client {number} was told to cancel")
            t.press("q")
            assert t.end() == 0
        assert [m.sqlstate for m in victim.ready() if m.type == "E"] == ["57014"]
        assert victim.value("select 1") == "1", "the session goes on"


SIZES = [(1, 1), (2, 3), (3, 20), (4, 200), (5, 10), (24, 80), (200, 500)]


@pytest.mark.parametrize("lines,columns", SIZES)
def test_sizes(pool, lines, columns):
    """Terminals of any size, with more rows than fit, are drawn in every view, and after each change."""
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            w = stack.enter_context(Wire(pool.address, seconds=30))
            assert w.login("boss", "postgres", "boss_pw")[-1].type == "Z"
        t = stack.enter_context(Terminal(*command(pool, "-i", "0.1"), lines=lines, columns=columns))
        wait_for("something is drawn", lambda: t.read().strip() != "", 60)
        for key in "123456789":
            t.press(key + "><r" + "\x1bOB" * 5 + "\x1b[6~\x1b[5~\x1bOA")
        for size in SIZES:
            t.resize(*size)
            t.press("1 ")
            t.read()
        assert t.process.poll() is None, t.read()
        t.resize(40, 200)
        t.press("1" + " " * (len(SIZES) % 2))  # it goes on: what it shows may not have been asked for yet
        t.expect("boss")
        t.press("q")
        assert t.end() == 0


def look_and_kill(t: Terminal, victim: Wire, number: str) -> None:
    t.expect("all is well")
    t.expect("wait_ms")
    t.press("2")
    t.expect("replication_delay")
    t.press("1")
    t.expect("wait_ms")
    select_row(t, victim, number)
    t.press("k")
    t.expect(f"client {number}? y/n")
    t.press("y")
    t.expect(f"client {number} was ended")
    t.press("q")
    assert t.end() == 0


def select_row(t: Terminal, client: Wire, number: str) -> None:
    """Sorts by number, the greatest first, and goes down to this one."""
    t.press("<<<<<")  # from wait_ms, over the columns on its left, to id
    numbers = sorted((int(r[0]) for r in client.rows("show pool_clients")), reverse=True)
    t.press("\x1bOB" * numbers.index(int(number)))


def test_pgpool_goes_away(pool):
    """The screen stays and says so; q leaves."""
    args, env = command(pool, "-i", "0.2")
    args[args.index("-p") + 1] = str(procs.free_port())
    with Terminal(args, env) as t:
        t.expect("refused")
        t.press("q")
        assert t.end() == 0


def test_the_terminal_goes_away(pool):
    """It ends, and does not look for a key for ever."""
    with Terminal(*command(pool, "-i", "0.2")) as t:
        t.expect("all is well")
        t.hang_up()
        assert t.end() == 0


def test_mistakes(pool):
    for more, says in [(["nothing"], "no view \"nothing\"; there are: clients servers queue"), (["-i", "x"], "no time between"), ([], "--once")]:
        args, env = command(pool, *more)
        done = subprocess.run(args, env=env, capture_output=True, text=True, check=False, timeout=30 * SCALE)
        assert done.returncode == 2 and says in done.stderr
    args, env = command(pool, "--once")
    done = subprocess.run(args, env={**env, "PGPASSWORD": "wrong"}, capture_output=True, text=True, check=False,
                          timeout=30 * SCALE)
    assert done.returncode == 1 and "password" in done.stderr
