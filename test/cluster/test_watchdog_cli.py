# SPDX-License-Identifier: PostgreSQL
"""test_watchdog_cli: the watchdog's command socket and wd_cli: who there is, who is called dead, orders for all, and who may say so."""
import json
import os
import re
import socket
import stat
import struct
import subprocess
from pathlib import Path

import pytest

from pgt import waits
from test_watchdog import CALM, KEY, Three, cluster  # noqa: F401

WD_CLI = Path(os.environ.get("PGPOOL_BIN", "pgpool")).resolve().parent / "wd_cli"


def cli(three: Three, i: int, *args: str, expect: int = 0) -> str:
    done = subprocess.run([WD_CLI, "-f", three.pools[i].conf_path, *args], text=True, capture_output=True, timeout=30, check=False)
    assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
    return done.stdout if expect == 0 and done.stdout else done.stderr


def connect(three: Three, i: int) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(10)
    sock.connect(str(three.pools[i].home / f".s.PGPOOLWD_CMD.{three.ports[i]}"))
    return sock


def receive(sock: socket.socket, n: int) -> bytes:
    got = b""
    while len(got) < n and (more := sock.recv(n - len(got))):
        got += more
    return got


def ask(three: Three, i: int, kind: str, key: str | None = KEY, escaped: bool = False, **fields: object) -> tuple[str, dict]:
    body = json.dumps(({} if key is None else {"IPCAuthKey": key}) | fields, ensure_ascii=escaped).encode()
    with connect(three, i) as sock:
        sock.sendall(kind.encode() + struct.pack("!I", len(body)) + body)
        head = receive(sock, 5)
        size = struct.unpack("!I", head[1:])[0]
        text = receive(sock, size) if size else b"{}"
    return chr(head[0]), json.loads(text)


def test_who_there_is(cluster):  # noqa: F811
    three = cluster(**CALM).start()
    leader = three.wait_leader(0, 1, 2)
    three.wait_voters(leader, 3)
    waits.wait_for("pgpool 0 has heard of all, and of the leader that it leads", lambda: (
        lambda said: said.count(" Linux ") == 3 and said.count('"LEADER"') == 1)(cli(three, 0, "-i", "-a")))
    lines = cli(three, 0, "-i", "-a").splitlines()
    assert lines[:2] == ["Total Watchdog nodes configured for lifecheck:    3", "*****************"]
    assert re.fullmatch(rf'{leader} 4 "LEADER" "127.0.0.1:{9000 + leader} Linux \S+" "127.0.0.1" {three.ports[leader]} {9000 + leader}',
                        lines[2 + leader])
    one = cli(three, 0, "-i", "-v", "-n", str(leader))
    assert f"Node ID:           {leader}\n" in one and "Node Status:       LEADER" in one
    by_port = cli(three, 0, "--info", "-H", "127.0.0.1", "-P", "9001").splitlines()
    assert len(by_port) == 3 and by_port[2].startswith("1 ")
    assert "no pgpool" in cli(three, 0, "-i", "-n", "77", expect=1)
    for wrong in ((), ("-i", "-I", "DEAD"), ("-I", "SICK", "-n", "1"), ("-I", "DEAD"), ("-i", "x"), ("-I", "DEAD", "-a")):
        cli(three, 0, *wrong, expect=1)
    kind, reply = ask(three, 0, "v", VarName="WDState")
    assert (kind, reply) == ("7", {"VarName": "WDState", "ValueData": 4 if leader == 0 else 7})


def test_the_key_is_not_in_the_list_of_processes(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / ".s.PGPOOLWD_CMD.1234"))
        listener.listen(1)
        listener.settimeout(30)
        args = [WD_CLI, "-s", tmp_path, "-p", "1234", "-i", "-k", "a secret word"]
        with subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as asks:
            conn, _ = listener.accept()
            with conn:
                conn.settimeout(30)
                got = b""
                while b"}" not in got and (more := conn.recv(4096)):
                    got += more
                shown = Path(f"/proc/{asks.pid}/cmdline").read_bytes()
    assert b'"IPCAuthKey":"a secret word"' in got.replace(b": ", b":")
    assert b"1234" in shown and b"secret" not in shown


def test_who_may_ask(cluster):  # noqa: F811
    three = cluster(wd_authkey=[KEY, KEY, ""]).start()
    three.wait_leader(0, 1)
    for key in (None, "", KEY[:-1], KEY + "x", "x" * 5000):
        kind, reply = ask(three, 0, "3", key=key)
        assert kind == "6" and "IPCAuthKey" in reply["Error"]
    assert ask(three, 0, "3")[0] == "7"
    assert ask(three, 0, "3", escaped=True)[0] == "7", "a library writes what is not ASCII as \\uXXXX"
    assert "refuses" in cli(three, 0, "-i", "-k", "another", expect=1)
    assert stat.S_IMODE((three.pools[2].home / f".s.PGPOOLWD_CMD.{three.ports[2]}").stat().st_mode) == 0o700, "no key: only ourselves"
    # What is no packet hurts nobody.
    with connect(three, 0) as sock:
        sock.sendall(b"3\xff\xff\xff\xff")
        assert sock.recv(1) == b""
    for kind in "\x00zX0":
        assert ask(three, 0, kind)[0] == "6"
    for body in (b"", b"{", b"[]", b'{"IPCAuthKey"', b"\x00" * 300):
        with connect(three, 0) as sock:
            sock.sendall(b"3" + struct.pack("!I", len(body)) + body)
            assert sock.recv(1) == b"6"
    assert ask(three, 0, "3")[0] == "7"


def test_a_check_from_outside(cluster):  # noqa: F811
    """Who is called dead gives the lead away, keeps it not, and is shown as lost, until it is called alive."""
    three = cluster(wd_lifecheck_method="external", wd_priority=[9, 1, 1]).start()
    waits.wait_for("pgpool 0 leads", lambda: three.leader_of(1) == 0 == three.leader_of(2), 40)
    three.wait_voters(0, 3)
    said = cli(three, 1, "-I", "DEAD", "-n", "0", "-m", "it does not answer my query")
    assert said == "INFO: informed watchdog about node id 0 is dead\n"
    waits.wait_for("another one leads", lambda: three.leader_of(1) in (1, 2), 60)
    waits.wait_for("it is shown", lambda: three.rows(1)[0]["status"] == "LOST")
    for i, text in ((1, "it does not answer my query"), (0, "a life check says that this pgpool is dead")):
        waits.wait_for("the log says so", lambda i=i, text=text: text in three.pools[i].log())
    cli(three, 2, "-I", "ALIVE", "-n", "0")
    waits.wait_for("the one with the highest priority leads again", lambda: three.leader_of(1) == 0, 60)


def test_only_an_external_check_is_believed(cluster):  # noqa: F811
    three = cluster().start()
    leader = three.wait_leader(0, 1, 2)
    assert "not external" in cli(three, 1, "-I", "DEAD", "-n", str(leader), expect=1)
    # Another one may be elected on a busy machine; for that reason none is.
    three.wait_leader(0, 1, 2)
    assert not any("a life check" in e for e in three.why_led(1))
    assert not any("received node status change" in p.log() or "a life check says" in p.log() for p in three.pools)


def test_orders_for_all(cluster):  # noqa: F811
    three = cluster(**CALM).start()
    leader = three.wait_leader(0, 1, 2)
    three.wait_voters(leader, 3)
    other = next(i for i in range(3) if i != leader)
    assert ask(three, other, "c", Command="REELECT_LEADER")[0] == "6"
    assert ask(three, other, "c", Command="RESTART_CLUSTER")[0] == "6"
    assert ask(three, leader, "c", Command="REELECT_LEADER")[0] == "7"
    waits.wait_for("another one leads", lambda: three.leader_of(other) not in (None, leader), 60)
    assert ask(three, other, "c", Command="RELOAD_CONFIG_CLUSTER")[0] == "7"
    for i in range(3):
        waits.wait_for("it has read its file", lambda i=i: "reload config files" in three.pools[i].log())
    assert ask(three, other, "c", Command="LOGROTATE_CLUSTER")[0] == "7"
    for i in range(3):
        if i != other:
            waits.wait_for("it is told", lambda i=i: "watchdog received the log rotate command" in three.pools[i].log())
    waits.wait_for("it is refused, while somebody leads", lambda: ask(
        three, other, "f", Function="DEGENERATE_BACKEND_REQUEST", NodeIDList=["x"])[0] == "6")
    daemons = [pool.daemon for pool in three.pools]
    assert ask(three, other, "c", Command="SHUTDOWN_CLUSTER", Mode="fast")[0] == "7"
    for pool, daemon in zip(three.pools, daemons):
        daemon.wait_exit(60)
        pool.daemon = None
        assert daemon.popen.returncode == 0
        assert list(pool.home.glob(".s.PGPOOLWD_CMD.*")) == []


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_what_it_says_of_itself(option):
    done = subprocess.run([WD_CLI, option], text=True, capture_output=True, check=True, timeout=10)
    assert "wd_cli" in done.stdout + done.stderr
