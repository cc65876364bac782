# SPDX-License-Identifier: PostgreSQL
"""test_cache_far: results and generations in real memcached servers, by the program cache_far_gate (test/unit/cache): several pgpools see each
other's writes, what is lost never comes back to life, and a server that does not answer costs its time once."""
import itertools
import os
import random
import socket
import subprocess
import threading

import pytest
from memcached_house import IS_MISSING, Server
from pgt import procs, relay, waits
from pgt.wire import Address

GATE = os.path.join(os.path.dirname(os.environ.get("PGPOOL_BIN", "")) or os.getcwd(), "cache_far_gate")
pytestmark = [pytest.mark.skipif(not os.access(GATE, os.X_OK), reason="cache_far_gate is not built"),
              pytest.mark.skipif(IS_MISSING, reason="no memcached is installed")]
PATIENT_MS = 10000  # an answer of a busy machine is no lost one
TIMEOUT_MS = 1500   # where one hangs, and that is waited for
ROUNDS = 5


class Gate:
    """One pgpool."""
    def __init__(self, servers, timeout_ms=PATIENT_MS, host="127.0.0.1", path=None):
        self.process = subprocess.Popen([GATE, str(path or ", ".join(f"{host}:{s.port}" for s in servers)), str(timeout_ms)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def get(self, key, *cells):
        return self.ask(f"get {key} {' '.join(cells)}")[:-1]

    def keep(self, key, result, *cells, expire_s=""):
        """Perhaps not at once: a generation that was begun over one connection may be overtaken by a look-up over another."""
        assert self.get(key, *cells) == ["miss"]

        def is_kept():
            self.ask(f"set {key} {result} {expire_s}")
            return self.get(key, *cells) == ["hit", result]
        waits.wait_for("it is kept", is_kept)

    def bump(self, *cells):
        return self.ask(f"bump {' '.join(cells)}")[0]

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(20) == 0


@pytest.fixture
def servers():
    all_of_them = [Server() for _ in range(3)]
    yield all_of_them
    for server in all_of_them:
        server.stop()


@pytest.fixture
def gates(servers):
    yield from gates_with(servers, PATIENT_MS)


@pytest.fixture
def hasty(servers):
    yield from gates_with(servers, TIMEOUT_MS)


def gates_with(servers, timeout_ms):
    two = [Gate(servers, timeout_ms), Gate(servers, timeout_ms)]
    yield two
    for gate in two:
        gate.close()


def test_one_invalidates_for_all(gates):
    one, other = gates
    for n in range(40):
        one.keep(f"key{n}", f"result{n}", "db", f"row{n}")
    assert all(other.get(f"key{n}", "db", f"row{n}") == ["hit", f"result{n}"] for n in range(40))
    assert other.bump("row7") == "done"
    assert one.get("key7", "db", "row7") == ["miss"]
    assert one.get("key8", "db", "row8") == ["hit", "result8"]
    assert one.bump("db") == "done"
    assert other.get("key8", "db", "row8") == ["miss"]
    other.keep("key8", "again", "db", "row8")
    assert one.bump() == "done"  # everything
    assert other.get("key8", "db", "row8") == ["miss"]


def test_written_between_the_query_and_its_end(gates):
    one, other = gates
    assert one.get("key", "row") == ["miss"]
    assert other.bump("row") == "done"
    one.ask("set key old")
    for _ in range(5):
        assert other.get("key", "row") == ["miss"]


def test_a_lost_generation_revives_nothing(servers, gates):
    one, other = gates
    for n in range(20):
        one.keep(f"key{n}", "old", f"row{n}")
    # What a memcached forgets for want of space: here by a server that is started anew, and by deleting.
    servers[0].stop()
    servers[0].start()
    for n in range(20):
        other.bump(f"row{n}")
    waits.wait_for("all three answer", lambda: all(other.get(f"key{n}", f"row{n}") == ["miss"] for n in range(20)))
    assert all(one.get(f"key{n}", f"row{n}") == ["miss"] for n in range(20))


def ask_with_one_dead(servers, one) -> bool:
    """Whether it cost its time once, or twice, for on a slow machine the time of its back-off may pass meanwhile."""
    servers[1].freeze()
    answers = [one.ask(f"get key{n} row{n}") for n in range(20)]  # half of the keys are its own
    slow = [a for a in answers if int(a[-1]) >= TIMEOUT_MS / 2]
    assert slow and [a[0] for a in answers].count("dead") >= 1, answers
    assert one.ask("off") == ["0"], "reads alone are no reason to distrust what is kept"
    servers[1].thaw()
    waits.wait_for("it is asked again", lambda: all(one.get(f"key{n}", f"row{n}") == ["hit", "it"] for n in range(20)), 60)
    return len(slow) <= 2 and all(int(a[-1]) < TIMEOUT_MS * 2 for a in slow)


def test_a_dead_server_costs_its_time_once(servers, hasty):
    """By the best of some rounds: others want the processors, too."""
    one, _ = hasty
    for n in range(20):
        one.keep(f"key{n}", "it", f"row{n}")
    assert any(ask_with_one_dead(servers, one) for _ in range(ROUNDS))


def test_a_write_that_was_not_told_turns_the_cache_off(servers, hasty):
    one, other = hasty
    for n in range(20):
        one.keep(f"key{n}", "old", f"row{n}")
    servers[2].freeze()
    # Which rows are its own depends on the ports: of twenty it had none now and then, of so many it has none once in 10^12.
    assert any(one.bump(f"row{n}") == "failed" for n in range(70))
    assert one.ask("off") != ["0"]
    servers[2].thaw()

    def is_on():
        one.ask("retry")
        one.get("any", "thing")  # runs the loop
        return one.ask("off") == ["0"]
    waits.wait_for("it is on again", is_on)
    assert all(other.get(f"key{n}", f"row{n}") == ["miss"] for n in range(20)), "everything is invalid then"


FAR_S = 0.01  # a packet's way


def test_many_rows_are_told_at_once(servers):
    """Each asked for by itself they would take FAR_S twice, and the writer be told that it failed."""
    rows = [f"row{n}" for n in range(300)]
    ways = [relay.Relay("127.0.0.2", Address("127.0.0.1", s.port)) for s in servers]
    far, other = (Gate(servers, 3000, "127.0.0.2") for _ in range(2))
    try:
        for n in (0, 1, 150, 299):
            other.keep(f"key{n}", "old", f"row{n}")
        assert far.bump("any") == "done"  # it is connected
        for way in ways:
            way.delay_s = FAR_S
        assert far.bump(*rows) == "done"
        for way in ways:
            way.delay_s = 0
        assert far.ask("off") == ["0"]
        assert all(other.get(f"key{n}", f"row{n}") == ["miss"] for n in (0, 1, 150, 299))
        for n in range(0, 300, 50):
            other.keep(f"again{n}", "new", f"row{n}")
    finally:
        for gate in (far, other):
            gate.close()
        for way in ways:
            way.close()


class Watched:
    """A gate, and a wire between it and its memcached on which it is seen what goes over which connection."""
    def __init__(self, server):
        self.sent = []  # (connection, bytes)
        self.way = relay.Relay("127.0.0.2", Address("127.0.0.1", server.port))
        self.way.note = lambda sock, data: self.sent.append((sock, data))
        self.gate = Gate([server], PATIENT_MS, "127.0.0.2")
        self.gate.keep("key", "it", "row")
        waits.wait_for("look-ups do not go over a thread's connection", self.has_line)

    def used_for(self, verb):
        return {sock for sock, data in self.sent if data.startswith(verb)}

    def has_line(self):
        """Threads say what writers have to; no look-up came over the connection of one."""
        self.sent.clear()
        assert self.gate.get("key", "row") == ["hit", "it"] and self.gate.bump("other") == "done"
        return self.used_for(b"get ") and self.used_for(b"set g:") and not self.used_for(b"get ") & self.used_for(b"set g:")

    def close(self):
        self.gate.close()
        self.way.close()


@pytest.fixture
def watched(servers):
    it = Watched(servers[0])
    yield it
    it.close()


def test_look_ups_and_results_wake_no_thread(watched):
    watched.sent.clear()
    for n in range(20):
        watched.gate.keep(f"key{n}", f"result{n}", f"row{n}")
    assert len(watched.used_for(b"get ")) == 1, "one connection for all of them"
    assert watched.used_for(b"set r:") | watched.used_for(b"add g:") == watched.used_for(b"get ")


def test_an_answer_in_pieces(watched):
    watched.way.take = lambda: random.randint(1, 300)
    for n in range(5):
        watched.gate.keep(f"key{n}", str(n) * 7000, f"row{n}")
    assert all(watched.gate.get(f"key{n}", f"row{n}") == ["hit", str(n) * 7000] for n in range(5))


@pytest.mark.parametrize("expire_s", [2592000, 2592001, 999999999])
def test_results_that_are_kept_for_long(gates, expire_s):
    """Also beyond what memcached can count to, where it would date them back or take what is kept for commands."""
    one, other = gates
    for n in range(3):
        one.keep(f"key{n}", f"result{n}", "row", expire_s=expire_s)
        assert other.get(f"key{n}", "row") == ["hit", f"result{n}"]


def test_what_memcached_does_not_take_harms_nothing():
    server = Server("-I", "4096", "-o", "slab_chunk_max=2048")
    gate = Gate([server])
    try:
        gate.keep("small", "it", "row")
        for n in range(20):
            assert gate.get("large", "row") == ["miss"]
            gate.ask(f"set large {'x' * 10000}")
            assert gate.get("small", "row") == ["hit", "it"]
            gate.keep(f"small{n}", f"it{n}", "row")
    finally:
        gate.close()
        server.stop()


def test_a_connection_that_is_lost_while_it_is_asked(watched):
    """What was on its way is asked again, by a thread; nothing is distrusted for that."""
    for _ in range(6):
        watched.way.delay_s = 0.1
        threading.Timer(0.05, watched.way.reset_one).start()
        assert watched.gate.get("key", "row") in (["hit", "it"], ["dead"])
        watched.way.delay_s = 0
        waits.wait_for("it is asked again", lambda: watched.gate.get("key", "row") == ["hit", "it"])
        waits.wait_for("look-ups have a connection again", watched.has_line)
    assert watched.gate.ask("off") == ["0"]


def test_look_ups_that_do_not_pay_are_left_out(gates):
    """Of those that hardly ever find something a part goes on, always of the same keys, and when it finds something all do."""
    one, _ = gates
    keys = [f"key{n}" for n in range(300)]
    assert all(one.ask(f"pays {key}")[0] == "yes" for key in keys)
    assert all(one.get(key, "row") == ["miss"] for key in keys)
    sample = [key for key in keys if one.ask(f"pays {key}")[0] == "yes"]
    assert 0 < len(sample) < len(keys) / 4
    for key in sample:
        one.keep(key, "it", "row")
    for _, key in zip(range(70), itertools.cycle(sample)):
        assert one.get(key, "row") == ["hit", "it"]
    assert all(one.ask(f"pays {key}")[0] == "yes" for key in keys)


def test_a_unix_socket():
    path = procs.folder("memcached") / "socket"
    path.parent.chmod(0o777)
    memcached = subprocess.Popen(["memcached", "-u", "nobody", "-s", str(path), "-a", "777"])
    try:
        waits.wait_for("memcached", path.exists)
        gate = Gate([], PATIENT_MS, path=path)
        for n in range(20):
            gate.keep(f"key{n}", f"result{n}", f"row{n}")
        assert gate.bump("row7") == "done"
        assert [gate.get(f"key{n}", f"row{n}")[0] for n in range(20)] == ["miss" if n == 7 else "hit" for n in range(20)]
        gate.close()
    finally:
        memcached.kill()
        memcached.wait()


def answer_nonsense(listener, asked):
    def serve(sock):
        while sock.recv(4096):
            asked.add(sock)
            sock.sendall(b"VALUE g: x\r\nBOGUS\r\n")

    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(sock,), daemon=True).start()


def resident_kb(pid: int) -> int:
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:"))


def answer_without_end(listener, sent):
    """A value of 512 MiB for each look-up, as fast as it is taken."""
    def serve(sock):
        block = b"x" * (1 << 20)
        try:
            while sock.recv(4096):
                sock.sendall(b"VALUE g: 0 536870912\r\n")
                for _ in range(512):
                    sock.sendall(block)
                    sent.append(1)
                sock.sendall(b"\r\nEND\r\n")
        except OSError:
            pass

    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(sock,), daemon=True).start()


def test_a_value_without_end_takes_no_memory():
    """Of what is larger than anything that is kept nothing is held: it is a miss, and the connection goes on, for the memcached may be another pgpool's, too."""
    listener = socket.create_server(("127.0.0.1", 0))
    sent = []
    threading.Thread(target=answer_without_end, args=(listener, sent), daemon=True).start()

    class Endless:
        port = listener.getsockname()[1]
    gate = Gate([Endless], timeout_ms=60000)
    try:
        assert gate.get("key", "row") in (["miss"], ["dead"])
        waits.wait_for("its value is on its way", lambda: gate.get("key", "row") and len(sent) >= 256, 100)
        assert resident_kb(gate.process.pid) < 300 * 1024
    finally:
        gate.process.kill()
        gate.process.wait()
        listener.close()


def test_who_speaks_otherwise_is_no_memcached():
    listener = socket.create_server(("127.0.0.1", 0))
    asked = set()
    threading.Thread(target=answer_nonsense, args=(listener, asked), daemon=True).start()

    class Odd:
        port = listener.getsockname()[1]
    gate = Gate([Odd])

    def is_dead():
        assert gate.get("key", "row") == ["dead"]
        return len(asked) >= 4  # threads, and the loop
    try:
        waits.wait_for("it was asked in all ways", is_dead)
    finally:
        gate.close()
        listener.close()
