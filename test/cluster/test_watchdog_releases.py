# SPDX-License-Identifier: PostgreSQL
"""test_watchdog_releases: pgpools of several releases in one cluster: a member of another release, which knows wd_authkey, is understood or
refused in words; nothing that it says is taken for something else. The member is a script."""
import contextlib
import hashlib
import hmac
import os
import socket
import struct
import subprocess

from pgt import waits
from test_watchdog import KEY, Three, cluster  # noqa: F401

MAGIC, SEAL_VERSION = b"pgpoolwd", 1
HELLO, PROOF = 48, 32
SELF = 2  # the script's number


def digest(key: bytes, *parts: bytes) -> bytes:
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


class Member:
    """Calls pgpool `to` as a member that speaks versions `oldest` to `newest`."""

    def __init__(self, three: Three, to: int, oldest: int, newest: int, seal_version: int = SEAL_VERSION):
        self.sock = socket.create_connection(("127.0.0.1", three.ports[to]), timeout=10)
        self.key, self.sequence = KEY.encode(), 0
        ours = MAGIC + struct.pack(">HHHBB", seal_version, SELF, to, oldest, newest) + os.urandom(32)
        self.sock.sendall(ours)
        self.theirs = self.receive(HELLO)
        if not self.theirs:
            return
        hellos = ours + self.theirs
        assert self.receive(PROOF) == digest(self.key, b"s", hellos)
        self.sock.sendall(digest(self.key, b"c", hellos))
        self.seal = digest(self.key, b"k", hellos)

    def receive(self, n: int) -> bytes:
        got = b""
        with contextlib.suppress(ConnectionError):
            while len(got) < n and (more := self.sock.recv(n - len(got))):
                got += more
        return got

    def is_welcome(self) -> bool:
        return len(self.receive(4)) == 4

    def say(self, kind: bytes, body: bytes) -> None:
        sealed = struct.pack(">Q", self.sequence) + kind + body
        self.sequence += 1
        self.sock.sendall(struct.pack(">I", len(sealed) + PROOF) + sealed + digest(self.seal, sealed))

    def close(self) -> None:
        self.sock.close()


def status(priority: int, name: bytes, more: bytes) -> bytes:
    """As wd_words.c has it: `more` is what stands behind the name."""
    return struct.pack(">BBBI16s6Q", 0, 0, 0, priority, b"i" * 16, 1, 0, 0, 0, 7, 0) + name + b"\0" + more


def wait_heard(three: Three, m: Member, what: str, body: bytes, **wanted: str) -> None:
    """pgpool 0 shows what the script says of itself; again and again, for who is silent for three seconds is cut off."""
    def is_shown() -> bool:
        m.say(b"S", body)
        row = three.rows(0)[SELF]
        return all(row[column] == value for column, value in wanted.items())
    waits.wait_for(what, is_shown)


def two_of_three(cluster) -> Three:  # noqa: F811
    three = cluster()
    three.start(0, 1)
    three.wait_leader(0, 1)
    return three


def test_each_tells_its_release(cluster):  # noqa: F811
    three = two_of_three(cluster)
    release = subprocess.run([os.environ["PGPOOL_BIN"], "--version"], capture_output=True, text=True, check=False)
    waits.wait_for("both are told", lambda: [r["version"] in (release.stdout + release.stderr).split() for r in three.rows(0)] == [True, True, False])


def test_a_newer_one_is_understood(cluster):  # noqa: F811
    """It speaks our version, too; what its status has besides is left alone, and so is a kind of message that we do not know."""
    three = two_of_three(cluster)
    with contextlib.closing(Member(three, 0, 1, 9)) as m:
        assert m.theirs[14:16] == b"\1\1" and m.is_welcome()
        wait_heard(three, m, "it is understood", status(77, b"newer", struct.pack(">I", 1) + b"6.1\0" + b"\xff" * 33),
                   priority="77", name="newer", follows="1", version="6.1", lost_nodes="0")
        m.say(b"!", b"of another release")
        wait_heard(three, m, "an older form is, too", status(78, b"newer", b""), priority="78", follows="", version="")
        m.say(b"S", status(79, b"newer", b"")[:60])  # cut: nothing of it
        wait_heard(three, m, "the next one is", status(80, b"newer", b""), priority="80")
    assert three.leader_of(0) is not None


def test_others_are_refused_in_words(cluster):  # noqa: F811
    three = two_of_three(cluster)
    for oldest, newest, said in ((2, 7, "It speaks versions 2 to 7, this one 1 to 1."), (0, 0, "It is of a build that does not tell versions yet")):
        seen = len(three.pools[0].log())
        with contextlib.closing(Member(three, 0, oldest, newest)) as m:
            assert not m.is_welcome()
        if oldest:
            waits.wait_for("it is refused in words", lambda n=seen, s=said: s in three.pools[0].log()[n:])
    assert three.pools[0].log().count("pgpool 2 is of another release, and refused") == 1  # once, not at each attempt
    with contextlib.closing(Member(three, 1, 0, 0)) as m:
        assert not m.is_welcome()
    waits.wait_for("the other one says so", lambda: "It is of a build that does not tell versions yet" in three.pools[1].log())
    with contextlib.closing(Member(three, 0, 1, 1, SEAL_VERSION + 1)) as m:
        assert m.theirs == b""
    waits.wait_for("another seal", lambda: "It is a pgpool of another release, whose proofs and seals are others" in three.pools[0].log())
    assert three.rows(0)[SELF]["status"] == "DEAD"
    three.start(SELF)
    three.wait_leader(0, 1, SELF)
