# SPDX-License-Identifier: PostgreSQL
"""test_pcp: the PCP server and the pcp_* tools, alone and crosswise with pgpool-II's.

Needs $PGPOOL_BIN with `pcp` beside it. pgpool-II's tools and program are used where installed.
"""
import base64
import functools
import hashlib
import hmac
import json
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pgt import certs, procs, waits
from pgt.proxy import Pgpool2, pgpool_bin
from pgt.wire import Wire

PCP = Path(pgpool_bin() or "/nonexistent").parent / "pcp"
PEER_PATH = "/usr/sbin:/usr/bin"
pytestmark = pytest.mark.skipif(not os.access(PCP, os.X_OK), reason="PGPOOL_BIN has no pcp beside it")
needs_peer = pytest.mark.skipif(shutil.which("pcp_node_count", path=PEER_PATH) is None,
                                reason="pgpool-II is not installed")
TOOLS = ("attach_node detach_node promote_node recovery_node node_count node_info health_check_stats "
         "proc_count proc_info pool_status watchdog_info reload_config log_rotate stop_pgpool "
         "invalidate_query_cache pause resume drain reconnect").split()


def md5(*parts: bytes) -> bytes:
    return hashlib.md5(b"".join(parts)).hexdigest().encode()


class Side:
    """A PCP server to talk to, and how to run tools against it."""

    def __init__(self, home: Path, port: int):
        self.home, self.port = home, port
        (home / "pcp.conf").write_text(
            f"# who may\n\nop:{md5(b'stale').decode()}\nop:{md5(b'secret').decode()}\n", encoding="ascii")
        self.passfile = home / "pcppass"
        self.passfile.write_text("# c\nlocalhost:*:op:wrong\n*:*:op:sec\\ret\n", encoding="ascii")
        self.passfile.chmod(0o600)

    def run(self, name: str, *args: str, program: str | None = None, host="127.0.0.1", user="op",
            seconds: float = 100) -> subprocess.CompletedProcess:
        command = [program] if program else [str(PCP), name]
        return subprocess.run(
            [*command, "-h", host, "-p", str(self.port), "-U", user, "-w", *args], capture_output=True,
            text=True, stdin=subprocess.DEVNULL, timeout=seconds * waits.SCALE, check=False,
            env={**os.environ, "PCPPASSFILE": str(self.passfile)})

    def peer(self, name: str, *args: str) -> subprocess.CompletedProcess:
        return self.run(name, *args, program=shutil.which("pcp_" + name, path=PEER_PATH))

    def ok(self, name: str, *args: str) -> str:
        done = self.run(name, *args)
        assert done.returncode == 0 and done.stderr == "", done
        return done.stdout

    def refused(self, name: str, *args: str) -> str:
        done = self.run(name, *args)
        assert done.returncode == 1 and done.stdout == "", done
        return done.stderr


class Raw:
    """The protocol by hand."""

    def __init__(self, side: Side, source: str = "", local: bool = False):
        if local:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(20 * waits.SCALE)
            self.sock.connect(str(side.home / f".s.PGSQL.{side.port}"))
        else:
            self.sock = socket.create_connection(("127.0.0.1", side.port), timeout=20 * waits.SCALE,
                                                 source_address=(source, 0) if source else None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, kind: bytes, body: bytes = b"") -> None:
        self.sock.sendall(kind + struct.pack("!I", len(body) + 4) + body)

    def take(self, n: int) -> bytes:
        got = b""
        while len(got) < n:
            more = self.sock.recv(n - len(got))
            if not more:
                raise EOFError
            got += more
        return got

    def recv(self) -> tuple[bytes, bytes]:
        kind = self.take(1)
        return kind, self.take(struct.unpack("!I", self.take(4))[0] - 4)

    def login(self, user=b"op", password=b"secret") -> tuple[bytes, bytes]:
        return self.finish(self.ask(), user, password)

    def ask(self) -> bytes:
        self.send(b"M")
        kind, salt = self.recv()
        assert kind == b"m" and len(salt) == 4
        return salt

    def finish(self, salt: bytes, user=b"op", password=b"secret") -> tuple[bytes, bytes]:
        self.send(b"R", user + b"\0" + md5(md5(md5(password), user), salt) + b"\0")
        return self.recv()

    def ends(self) -> bool:
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True


@pytest.fixture
def pool(start_pool, pg):
    port = procs.free_port()
    pool = start_pool(pg.address, pcp_listen_addresses="127.0.0.1", pcp_port=port, sr_check_period=1,
                      health_check_period=1, sr_check_user="postgres", health_check_user="postgres")
    pool.pcp = Side(pool.home, port)
    return pool


@pytest.fixture(scope="module")
def peer(pg):
    """pgpool-II with PCP."""
    home = procs.folder("pgpool2", "postgres")
    server = Pgpool2(home, procs.free_port())
    server.start(pg.address, backend_clustering_mode="streaming_replication", health_check_period=1, health_check_user="postgres",
                 sr_check_user="postgres", num_init_children=2, max_pool=1, child_life_time=0)  # else each second is told
    port = int(re.search(r"pcp_port = '(\d+)'", (home / "pgpool.conf").read_text()).group(1))
    side = Side(home, port)
    waits.wait_for("its PCP answers", lambda: side.run("node_count").returncode == 0)
    nodes(server)  # it is up from the first client on
    waits.wait_for("the node is up", lambda: side.run("node_info").stdout.split()[2:3] == ["2"])
    yield side
    server.stop()


def nodes(pool) -> list[str]:
    """As soon as somebody is let in: while its only node is out nobody may be."""
    def ask() -> list[str]:
        return subprocess.run(["psql", "-h", "127.0.0.1", "-p", str(pool.port), "-U", "postgres", "-AtXc", "show pool_nodes",
                               "postgres"], capture_output=True, text=True, timeout=100, check=False).stdout.splitlines()
    return waits.wait_for("SHOW POOL_NODES is answered", ask)[0].split("|")


# --- questions -----------------------------------------------------------------------------------

def test_answers_are_those_of_show(pool, pg):
    waits.wait_for("the node is up, and the primary", lambda: nodes(pool)[3] == "up" and nodes(pool)[6:8] == ["primary"] * 2)
    show = nodes(pool)
    assert pool.pcp.ok("node_count") == "1\n"
    assert pool.pcp.ok("node_info", "0").split() == \
        [show[1], show[2], "2", "1.000000", "up", show[4], show[6], show[7], "0", "none", "none", *show[13].split()]
    (one,) = json.loads(pool.pcp.ok("node_info", "--json"))
    assert (one["hostname"], one["port"], one["status"], one["role"]) == ("127.0.0.1", pg.port, 2, "primary")
    settings = {s["name"]: s["value"] for s in json.loads(pool.pcp.ok("pool_status", "--json"))}
    assert settings["port"] == str(pool.port) and settings["backend_status0"] == "up"
    health = json.loads(pool.pcp.ok("health_check_stats", "--json", "-n", "0"))
    assert health["success_count"] == health["total_count"] > 0


def test_processes(pool):
    pids = [int(p) for p in pool.pcp.ok("proc_count").split()]
    assert len(pids) == 2 and set(pids) <= set(pool.pids())
    nodes(pool)
    rows = json.loads(pool.pcp.ok("proc_info", "--json"))
    assert rows and all(r["pool_pid"] in pids and r["database"] == "postgres" for r in rows)
    one = rows[0]["pool_pid"]
    assert {r["pool_pid"] for r in json.loads(pool.pcp.ok("proc_info", "--json", "-P", str(one)))} == {one}
    assert "invalid process ID" in pool.pcp.refused("proc_info", str(os.getpid()))


def test_unix_socket_and_password_file(pool):
    # A socket counts as localhost, whose line has a wrong password: first match wins.
    done = pool.pcp.run("node_count", host=str(pool.home))
    assert done.returncode == 1 and 'authentication failed for user "op"' in done.stderr
    pool.pcp.passfile.write_text("localhost:*:op:secret\n", encoding="ascii")
    assert pool.pcp.run("node_count", host=str(pool.home)).stdout == "1\n"
    assert pool.pcp.run("node_count").returncode == 1
    pool.pcp.passfile.chmod(0o644)
    assert "has group or world access" in pool.pcp.run("node_count", host=str(pool.home)).stderr
    pool.pcp.passfile.chmod(0o600)
    pool.pcp.passfile.write_text("elsewhere:*:op:secret\n", encoding="ascii")
    assert f'password file "{pool.pcp.passfile}": it has no line for this host, port and user\n' in pool.pcp.run("node_count").stderr
    pool.pcp.passfile.unlink()
    assert f'no password from password file "{pool.pcp.passfile}": No such file or directory\n' in pool.pcp.run("node_count").stderr
    asked = subprocess.run([str(PCP), "node_count", "-h", str(pool.home), "-p", str(pool.pcp.port), "-U", "op", "-w", "-W"], input="secret\n",
                           capture_output=True, text=True, timeout=100, check=False, start_new_session=True)
    assert (asked.stdout, asked.stderr) == ("1\n", "Password: \n"), "a script may write it into the tool"


@needs_peer
def test_four_ways_by_socket(pool, peer, links):
    """By the unix socket, named in the password file by its folder, as pgpool-II's tools want it."""
    for side in (pool.pcp, peer):
        side.passfile.write_text(f"{side.home}:{side.port}:op:secret\nlocalhost:*:op:wrong\n", encoding="ascii")
    for command in (["node_count"], ["node_count", "-v"], ["node_info", "9"], ["reload_config"]):
        program = str(links / ("pcp_" + command[0]))
        found = [run(command[0], *command[1:], host=str(side.home), program=which) for side in (pool.pcp, peer)
                 for run, which in ((side.run, shutil.which("pcp_" + command[0], path=PEER_PATH)), (side.run, program))]
        assert len({masked(done) for done in found}) == 1 and "authentication" not in found[0].stderr, found
    peer.passfile.write_text("*:*:op:secret\n", encoding="ascii")


def test_names_and_status(pool):
    for name in TOOLS:
        link = pool.home / ("pcp_" + name)
        link.symlink_to(PCP)
        done = subprocess.run([str(link), "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and f"pcp_{name} - " in done.stderr and done.stdout == ""
    assert pool.pcp.run("node_count", program=str(pool.home / "pcp_node_count")).stdout == "1\n"
    assert "missing node-id" in pool.pcp.refused("attach_node")
    assert "must be between 1024 and 65535" in pool.pcp.refused("node_count", "-p", "80")
    assert "invalid node ID" in pool.pcp.refused("node_info", "7")
    assert pool.pcp.run("node_info", "7", "--old-exit-status").returncode == 0
    assert subprocess.run([str(PCP), "frobnicate"], capture_output=True, check=False).returncode == 1


# --- crosswise with pgpool-II --------------------------------------------------------------------

# Their tools and ours, at their server and at ours: four times the same, but for numbers and times.
FOUR_WAYS = [line.split() for line in """
    node_count|node_count -v|node_count -d|node_count extra|proc_count|proc_count -v|node_info|node_info 0|node_info -v
    node_info -a -v|node_info -d -n 0|node_info 9|node_info -v -n 9|health_check_stats 0|health_check_stats -v -n 0
    health_check_stats 9|health_check_stats|proc_info -P 9|proc_info 9|watchdog_info|watchdog_info -v -n 0|watchdog_info 99
    attach_node 0|attach_node -v --node-id=0|attach_node -d -n 0|attach_node|attach_node 0 1|detach_node|detach_node 9
    detach_node -g 9|promote_node|promote_node 9|promote_node -g -s 9|promote_node 0|promote_node -s 0|recovery_node
    recovery_node 0|recovery_node 9|reload_config|reload_config -v -s l|reload_config -s cluster|stop_pgpool -m x|stop_pgpool -s x
    reload_config -s x|node_count -p 80|node_count -p abc|attach_node -n -1|node_info -n 999|node_count -x|node_count --bogus
    node_count -n 1|node_count -h|node_count -V""".strip().replace("\n", "|").split("|")]
ANSWERED = ("ERROR:", "FATAL:")


def masked(done: subprocess.CompletedProcess) -> tuple[str, str]:
    """What it said, without what is ours on purpose (compat.md) and what is another every time."""
    err = re.sub(r"^HINT:.*\n|^Try \".*\n", "", done.stderr, flags=re.M).replace("FATAL:  invalid promote", "ERROR:  invalid promote")
    return tuple(re.sub(r"(?<=\n)\n+", "", re.sub(r"\S*/(?=pcp_)", "", re.sub(r"\d[\d:. -]*", "#", text))) for text in (done.stdout, err))


@pytest.fixture(scope="module")
def links():
    """Our tools under their names."""
    home = procs.folder("tools")
    for name in TOOLS:
        (home / ("pcp_" + name)).symlink_to(PCP)
    return home


@needs_peer
def test_four_ways(pool, peer, links):
    pool.reload(pcp_old_node_info=True)  # the peer's release has its columns
    waits.wait_for("it is read", lambda: "generation 2 is in use" in pool.log())
    waits.wait_for("the node is up", lambda: nodes(pool)[3] == "up" and nodes(pool)[6] == "primary")
    wrong = []
    for command in FOUR_WAYS:
        name, args = command[0], command[1:]
        program = str(links / ("pcp_" + name))
        found = {"TT": peer.peer(name, *args), "TO": pool.pcp.peer(name, *args), "OT": peer.run(name, *args, program=program),
                 "OO": pool.pcp.run(name, *args, program=program)}
        if command == ["attach_node", "0"]:
            waits.wait_for("it is up again", lambda: pool.pcp.ok("node_info", "0").split()[2] == "2")
        wrong += [(way, command, masked(done), masked(found["TT"])) for way, done in found.items()
                  if masked(done) != masked(found["TT"])]
        for way in ("OT", "OO"):
            is_bad = found[way].stderr != "" and "Warning" not in found[way].stderr
            wrong += [(way, command, found[way])] if (found[way].returncode != 0) != is_bad else []
    assert not wrong, "\n".join(map(str, wrong))


@needs_peer
def test_four_ways_of_long_answers(pool, peer):
    """Settings and processes: the shape is the same; which there are, and their texts, are not."""
    nodes(pool)

    def shape(text: str) -> set[str]:
        return {re.sub(r"\d+", "#", re.split(r"[:=]", line)[0]) for line in text.splitlines()}
    for args in ([], ["-v"]):
        assert pool.pcp.peer("pool_status", *args).stdout == pool.pcp.run("pool_status", *args).stdout
        assert peer.peer("pool_status", *args).stdout == peer.run("pool_status", *args).stdout
        assert shape(peer.run("pool_status", *args).stdout) == shape(pool.pcp.run("pool_status", *args).stdout)
    for args in ([], ["-v"], ["-a"], ["-v", "-a"]):
        assert peer.peer("proc_info", *args).stdout == peer.run("proc_info", *args).stdout
    old = pool.pcp.peer("proc_info", "-v").stdout
    ours = pool.pcp.run("proc_info", "-v").stdout
    assert shape(old) == shape(peer.run("proc_info", "-v", "-a").stdout)
    assert shape(ours) - shape(old) <= {f"{t:<25} " for t in ("Load balance node", "client_host", "client_port", "statement")}
    assert [x for x in ours.splitlines() if x in old.splitlines()] == old.splitlines()


@needs_peer
def test_four_ways_to_be_refused(pool, peer, links):
    """By a wrong password, an unknown user, and where nobody listens."""
    programs = (shutil.which("pcp_node_count", path=PEER_PATH), str(links / "pcp_node_count"))
    lost = Side.__new__(Side)
    lost.port = procs.free_port()
    lost.passfile = pool.home / "wrong"
    lost.passfile.write_text("*:*:*:wrong\n")
    lost.passfile.chmod(0o600)
    asks = [(side, user, host) for side in (pool.pcp, peer) for user in ("op", "nobody")
            for host in ("127.0.0.1", str(side.home))] + [(lost, "op", "127.0.0.1"), (lost, "op", "/nonexistent")]

    def ask(side, user, host):
        wrong = Side.__new__(Side)
        wrong.port, wrong.passfile = side.port, lost.passfile
        return [wrong.run("node_count", user=user, host=host, program=p) for p in programs]
    with ThreadPoolExecutor(len(asks)) as crowd:
        found = list(crowd.map(lambda a: ask(*a), asks))
    for (side, user, host), done in zip(asks, found):
        assert masked(done[0]) == masked(done[1]) and {d.returncode for d in done} == {1}, (host, done)
        said = "failed with error" if side is lost else f'authentication failed for user "{user}"'
        assert said in done[0].stderr, done


@needs_peer
@pytest.mark.parametrize("name", [n for n in TOOLS if shutil.which("pcp_" + n, path=PEER_PATH)])
def test_help_has_their_options(links, name):
    def ask(program, option):
        return subprocess.run([program, option], capture_output=True, text=True, timeout=100, check=False)

    def options(text: str) -> list[str]:
        return re.findall(r"^  (-.*?)(?=   |  \b)", text, re.M)
    theirs, ours = (ask(p, "--help") for p in (shutil.which("pcp_" + name, path=PEER_PATH), links / ("pcp_" + name)))
    assert (theirs.returncode, theirs.stdout) == (ours.returncode, ours.stdout) == (0, "")
    assert [o for o in options(ours.stderr) if o in options(theirs.stderr)] == options(theirs.stderr), ours.stderr
    head = [t.stderr.splitlines()[1:4] for t in (theirs, ours)]
    head[1][1] = head[1][1].replace("[node-id]", "") if name == "node_info" else head[1][1]
    assert head[0] == head[1] and max(map(len, ours.stderr.splitlines())) < 90
    assert ask(links / ("pcp_" + name), "-?").stderr == ours.stderr
    versions = [ask(p, o) for p in (shutil.which("pcp_" + name, path=PEER_PATH), links / ("pcp_" + name)) for o in ("-V", "--version")]
    assert all(re.fullmatch(rf"pcp_{name} \(pgpool-II\) \S+\n", v.stderr) and v.returncode == 0 for v in versions), versions


@needs_peer
def test_old_node_info(pool):
    """Without the setting tools of 4.3 would read wrongly; our own read both."""
    waits.wait_for("the node is up", lambda: nodes(pool)[3] == "up")
    ours = pool.pcp.ok("node_info", "0")
    assert "1970-01-01" in pool.pcp.peer("node_info", "0").stdout
    pool.reload(pcp_old_node_info=True)
    waits.wait_for("it is read", lambda: "generation 2 is in use" in pool.log())
    assert pool.pcp.peer("node_info", "0").stdout == pool.pcp.ok("node_info", "0") == ours


# --- orders --------------------------------------------------------------------------------------

def test_detach_and_attach(pool):
    waits.wait_for("the node is up", lambda: nodes(pool)[3] == "up")
    assert pool.pcp.ok("detach_node", "0") == "pcp_detach_node -- Command Successful\n"
    assert pool.pcp.ok("node_info").split()[2:5:2] == ["3", "down"]
    assert pool.pcp.ok("attach_node", "-n", "0") == "pcp_attach_node -- Command Successful\n"
    waits.wait_for("the node is up again", lambda: nodes(pool)[3] == "up")
    waits.wait_for("the log says who", lambda: "PCP user op" in pool.log())
    assert "node id 5 is not valid" in pool.pcp.refused("attach_node", "5")
    assert "node id : 5 status: [0] is not valid" in pool.pcp.refused("detach_node", "5")
    assert "the reason is too long" in pool.pcp.refused("detach_node", "0", "--why", "x" * 128)
    assert "there is no such option" in pool.pcp.run("attach_node", "0", "--why", "x").stderr


def test_detach_gracefully_waits_for_clients(pool):
    waits.wait_for("the node is up", lambda: nodes(pool)[3] == "up")
    with Raw(pool.pcp) as raw:
        assert raw.login()[0] == b"r"
        with Wire(pool.address) as client:
            assert client.login()[-1].type == "Z"
            assert client.rows("select 1") == [[b"1"]]
            raw.send(b"d", b"0\0")
            waits.wait_for("it is detached", lambda: pool.pcp.ok("node_info").split()[2] == "3")
            raw.sock.settimeout(0.5)
            with pytest.raises(TimeoutError):
                raw.sock.recv(1)
        raw.sock.settimeout(20 * waits.SCALE)
        assert raw.recv() == (b"d", b"CommandComplete\0")


@pytest.mark.parametrize("mode", ["smart", "fast", "immediate"])
def test_stop(pool, mode):
    assert pool.pcp.ok("stop_pgpool", "-m", mode) == "pcp_stop_pgpool -- Command Successful\n"
    daemon, pool.daemon = pool.daemon, None
    assert daemon.wait_exit(60) == 0
    assert pool.pcp.run("node_count").returncode == 1


def test_rotate(pool, start_pool, pg):
    assert "there is no log file to rotate" in pool.pcp.refused("log_rotate")
    port = procs.free_port()
    logs = procs.folder("logs")
    second = start_pool(pg.address, pcp_listen_addresses="127.0.0.1", pcp_port=port, logging_collector=True,
                        log_directory=logs, log_filename="pgpool.log")
    side = Side(second.home, port)
    waits.wait_for("a log file", lambda: (logs / "pgpool.log").exists())
    (logs / "pgpool.log").rename(logs / "old.log")
    assert side.ok("log_rotate") == "pcp_log_rotate -- Command Successful\n"
    waits.wait_for("a new log file", lambda: (logs / "pgpool.log").exists())


def test_empty_the_query_cache(start_pool, pg):
    port = procs.free_port()
    second = start_pool(pg.address, pcp_listen_addresses="127.0.0.1", pcp_port=port, memory_cache_enabled=True,
                        memqcache_total_size="8MB", memqcache_max_num_cache=1000)
    side = Side(second.home, port)
    assert side.ok("invalidate_query_cache") == "pcp_invalidate_query_cache -- Command Successful\n"
    waits.wait_for("the log", lambda: "all query cache in shared memory deleted" in second.log())


def test_what_is_not_there_says_so(pool):
    waits.wait_for("the node is the primary", lambda: nodes(pool)[6] == "primary")
    for command, text in ((["promote_node", "0"], "already primary"),
                          (["promote_node", "0", "-s"], "already primary"), (["recovery_node", "0"], "primary server cannot be"),
                          (["watchdog_info"], "watchdog is not enabled"),
                          (["invalidate_query_cache"], "query cache is not enabled")):
        assert text in pool.pcp.refused(*command)


# --- the protocol --------------------------------------------------------------------------------

def test_wrong_password_is_told_late(pool):
    with Raw(pool.pcp) as raw:
        begin = waits.now()
        kind, body = raw.login(password=b"guess")
        assert kind == b"E" and b"SFATAL\0" in body and b'authentication failed for user "op"' in body
        assert waits.now() - begin > 0.9
        assert raw.ends()
    with Raw(pool.pcp) as raw:
        assert raw.login(password=b"stale")[0] == b"r", "each line of the user counts"


@pytest.mark.parametrize("sent", [b"L\0\0\0\4", b"M\0\0\0\0", b"M\0\1\0\0", b"R\0\0\0\5x", b"Q\0\0\0\4",
                                  b"R\0\0\0\7op\0"])
def test_strangers_are_refused(pool, sent):
    with Raw(pool.pcp) as raw:
        raw.sock.sendall(sent)
        kind, body = raw.recv()
        assert kind == b"E" and b"SFATAL\0" in body
        assert raw.ends()
    assert pool.pcp.ok("node_count") == "1\n"


def test_packets_in_pieces_and_in_one(pool):
    with Raw(pool.pcp) as raw:
        assert raw.login() == (b"r", b"AuthenticationOK\0")
        for byte in b"L\0\0\0\4":
            raw.sock.sendall(bytes([byte]))
        assert raw.recv() == (b"l", b"CommandComplete\0" + b"1\0")
        raw.sock.sendall(b"L\0\0\0\4" * 20 + b"C\0\0\0\6" + b"0\0" + b"N\0\0\0\4")
        assert [raw.recv()[0] for _ in range(22)] == [b"l"] * 20 + [b"c", b"n"]
        raw.send(b"A", b"client_min_messages\0debug1\0")
        assert raw.recv() == (b"a", b"CommandComplete\0")
        raw.send(b"L")
        assert [raw.recv()[0] for _ in range(2)] == [b"N", b"l"]
        raw.send(b"?")
        assert raw.recv()[0] == b"E" and raw.ends()


def test_strangers_cannot_keep_an_operator_out(pool):
    crowd = [socket.create_connection(("127.0.0.1", pool.pcp.port), timeout=60) for _ in range(150)]
    try:
        assert pool.pcp.ok("node_count") == "1\n"
    finally:
        for sock in crowd:
            sock.close()


def test_strangers_push_out_only_their_like(pool):
    """Who has begun to log in, by the Unix socket or from another address, goes on to do so, whatever a crowd from one
    address sends meanwhile; who is silent has some seconds."""
    with Raw(pool.pcp, local=True) as local, Raw(pool.pcp, source="127.0.0.2") as other, Raw(pool.pcp, local=True) as silent:
        salts = [(local, local.ask()), (other, other.ask())]
        crowd = []
        try:
            for _ in range(150):
                crowd.append(Raw(pool.pcp))
                crowd[-1].send(b"M")
            for raw in crowd[-20:]:
                assert raw.recv()[0] == b"m"
            for raw, salt in salts:
                assert raw.finish(salt) == (b"r", b"AuthenticationOK\0")
            waits.wait_for("the first were closed", crowd[0].ends)
        finally:
            for raw in crowd:
                raw.sock.close()
        assert silent.ends(), "within a few seconds, by the deadline for the first packet"
        assert "nothing came for too long" in pool.log()


def test_without_a_file_nobody_gets_in(pool):
    (pool.home / "pcp.conf").unlink()
    assert "authentication failed" in pool.pcp.refused("node_count")
    waits.wait_for("the log says why", lambda: "so nobody can use PCP" in pool.log())


# --- SCRAM ---------------------------------------------------------------------------------------

def verifier(password: bytes, iterations=4096) -> str:
    """What PostgreSQL keeps."""
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha256", password, salt, iterations)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    text = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${iterations}:{text[0]}${text[1]}:{text[2]}"


def users(side: Side, **entries: str) -> None:
    (side.home / "pcp.conf").write_text("".join(f"{user}:{value}\n" for user, value in entries.items()))


@pytest.fixture
def mixed(pool):
    """op has a verifier, old an md5, both of them the password secret."""
    users(pool.pcp, op=verifier(b"secret"), old=md5(b"secret").decode())
    pool.pcp.passfile.write_text("*:*:*:secret\n")
    return pool


def test_scram_with_our_tools(mixed):
    assert mixed.pcp.ok("node_count") == "1\n"
    assert mixed.pcp.ok("node_count", "--require-scram") == "1\n"
    done = mixed.pcp.run("node_count", user="old")
    assert (done.stdout, done.returncode) == ("1\n", 0), done
    done = mixed.pcp.run("node_count", "--require-scram", user="old")
    assert done.returncode == 1 and "SCRAM is required" in done.stderr
    mixed.pcp.passfile.write_text("*:*:*:guess\n")
    for user in ("op", "old", "nobody1", "nobody2"):
        begin = waits.now()
        done = mixed.pcp.run("node_count", user=user)
        assert done.returncode == 1 and f'authentication failed for user "{user}"' in done.stderr, done
        assert waits.now() - begin > 0.9
    assert "secret" not in mixed.log() and "SCRAM-SHA-256$" not in mixed.log()


@needs_peer
def test_scram_and_their_tools(mixed):
    run = functools.partial(mixed.pcp.run, "node_count", program=shutil.which("pcp_node_count", path=PEER_PATH))
    assert run(user="old").stdout == "1\n", "an md5 entry serves them as before"
    done = run(user="op")
    assert "1" not in done.stdout and 'authentication failed for user "op"' in done.stderr, done
    waits.wait_for("the log says why", lambda: "has a SCRAM verifier, but its tool answers by md5" in mixed.log())
    (mixed.pcp.home / "pcp.conf").write_text(f"op:{verifier(b'secret')}\nop:{md5(b'secret').decode()}\n")
    assert run(user="op").stdout == "1\n", "who needs both has two lines"
    assert mixed.pcp.ok("node_count", "--require-scram") == "1\n"


@needs_peer
def test_scram_is_not_asked_of_theirs(peer):
    assert peer.ok("node_count")
    assert "SCRAM is required" in peer.refused("node_count", "--require-scram")


def test_md5_and_scram_of_our_tools(pool):
    """What pg_md5 --scram prints is a line of pcp.conf."""
    made = subprocess.run([PCP.parent / "pg_md5", "--scram", "s\u00e9cret"], capture_output=True, text=True, timeout=100,
                          check=True).stdout.strip()
    assert made.startswith("SCRAM-SHA-256$4096:")
    users(pool.pcp, op=made)
    pool.pcp.passfile.write_text("*:*:*:s\u00e9cret\n")
    assert pool.pcp.ok("node_count", "--require-scram") == "1\n"


def offer(side: Side, user: bytes) -> bytes:
    with Raw(side) as raw:
        raw.send(b"M", user + b"\0")
        kind, body = raw.recv()
        assert kind == b"m"
        return body[4:]


def test_salts_are_not_without_end(pool):
    """Who asks for one again and again, and does not log in, is sent away; a tool asks once or twice."""
    users(pool.pcp, op=md5(b"secret").decode())
    with Raw(pool.pcp) as raw:
        for _ in range(7):
            raw.ask()
        assert raw.login()[0] == b"r"
    with Raw(pool.pcp) as raw:
        for _ in range(8):
            raw.ask()
        raw.send(b"M")
        kind, body = raw.recv()
        assert kind == b"E" and b"SFATAL\0" in body and raw.ends()


def test_scram_offers_tell_nothing(pool, start_pool):
    """Who is in the file cannot be found out: names that are not look like those that are."""
    plus = b"SCRAM-SHA-256\0\0"
    users(pool.pcp, op=md5(b"secret").decode())
    assert {offer(pool.pcp, b"u%d" % i) for i in range(20)} == {b""}
    users(pool.pcp, op=verifier(b"secret"))
    assert {offer(pool.pcp, b"u%d" % i) for i in range(20)} == {plus}
    users(pool.pcp, op=verifier(b"secret", 5000), old=md5(b"secret").decode())
    asked = [[offer(pool.pcp, b"u%d" % i) for i in range(40)] for _ in range(2)]
    assert asked[0] == asked[1] and set(asked[0]) == {b"", plus}

    def first(user):
        with Raw(pool.pcp) as raw:
            raw.send(b"M", user + b"\0")
            raw.recv()
            raw.send(b"S", b"SCRAM-SHA-256\0" + struct.pack("!I", 10) + b"n,,n=,r=ab")
            kind, body = raw.recv()
            assert kind == b"s"
            return body.split(b",")[1:]
    stranger = b"u%d" % asked[0].index(plus)
    assert first(stranger) == first(stranger) and first(b"op") == first(b"op")
    assert first(stranger)[1] == first(b"op")[1] == b"i=5000"
    assert len(first(stranger)[0]) == len(first(b"op")[0])


@pytest.mark.parametrize("sent", [b"", b"SCRAM-SHA-256\0", b"SCRAM-SHA-1\0" + b"\0\0\0\1x", b"x" * 400,
                                  b"SCRAM-SHA-256\0\0\0\0\x0an,,n=,r=a\0"])
def test_scram_messages_that_are_none(mixed, sent):
    with Raw(mixed.pcp) as raw:
        raw.send(b"M", b"op\0")
        assert raw.recv()[0] == b"m"
        raw.send(b"S", sent)
        kind, body = raw.recv()
        assert kind == b"E" and b"SFATAL\0" in body and raw.ends()
    with Raw(mixed.pcp) as raw:
        raw.send(b"S", sent)
        assert raw.recv()[0] == b"E" and raw.ends(), "without having been offered"
    assert mixed.pcp.ok("node_count") == "1\n"


def test_scram_over_tls_binds_the_channel(start_pool, pg, authority):
    pool = secured(start_pool, pg, authority.issue())
    users(pool.pcp, op=verifier(b"secret"))
    done = pool.pcp.run("node_count", "--tls-ca", str(authority.cert), "--require-scram", "-d")
    assert "\n1\n" in done.stdout and done.returncode == 0, done
    with Raw(pool.pcp) as raw:
        wrapped = ssl.create_default_context(cafile=str(authority.cert)).wrap_socket(raw.sock, server_hostname="localhost")
        raw.sock = wrapped
        raw.send(b"M", b"op\0")
        assert raw.recv()[1][4:] == b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"


def test_failures_count_by_address(start_pool, pg):
    port = procs.free_port()
    pool = start_pool(pg.address, pcp_listen_addresses="127.0.0.1", pcp_port=port, auth_failure_limit=2, auth_failure_delay="1500ms")
    side = Side(pool.home, port)
    users(side, op=verifier(b"secret"))
    side.passfile.write_text("*:*:*:guess\n")
    begin = waits.now()
    assert "authentication failed" in side.refused("node_count")
    assert waits.now() - begin > 1.4, "auth_failure_delay, as it is longer than a second"
    assert "authentication failed" in side.refused("node_count")
    side.passfile.write_text("*:*:*:secret\n")
    assert "too many failed logins from this address" in side.refused("node_count")
    done = side.run("node_count", host=str(pool.home))
    assert done.stdout == "1\n", done
    done = subprocess.run(["psql", "-h", "127.0.0.1", "-p", str(pool.port), "-U", "trust_user", "-AtXc", "select 1", "postgres"],
                          capture_output=True, text=True, timeout=100, check=False)
    assert "too many failed logins" in done.stderr, "clients and administrators are counted together"


def test_file_that_others_read_is_complained_of(start_pool, pg):
    port = procs.free_port()
    pool = start_pool(pg.address, pcp_listen_addresses="127.0.0.1", pcp_port=port)
    side = Side(pool.home, port)
    (side.home / "pcp.conf").chmod(0o600)
    assert side.ok("node_count") == "1\n"
    assert "group or world access" not in pool.log()
    (side.home / "pcp.conf").chmod(0o644)
    assert side.ok("node_count") == side.ok("node_count") == "1\n"
    waits.wait_for("the log tells", lambda: 'pcp.conf" has group or world access' in pool.log())
    assert pool.log().count("has group or world access") == 1


# --- TLS -----------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def authority():
    return certs.Authority()


def secured(start_pool, pg, pair):
    port = procs.free_port()
    it = start_pool(pg.address, pcp_listen_addresses="127.0.0.1", pcp_port=port, ssl=True, ssl_cert=pair.cert, ssl_key=pair.key)
    it.pcp = Side(it.home, port)
    return it


def test_tls(start_pool, pg, authority):
    pool = secured(start_pool, pg, authority.issue())
    assert pool.pcp.ok("node_count", "--tls") == "1\n"
    assert pool.pcp.ok("node_count", "--tls-ca", str(authority.cert)) == "1\n"
    assert len(json.loads(pool.pcp.ok("pool_status", "--json", "--tls"))) > 100, "an answer of many records"
    assert pool.pcp.ok("node_count") == "1\n", "others go on in clear"
    other = certs.Authority("other CA")
    assert "certificate verify failed" in pool.pcp.refused("node_count", "--tls-ca", str(other.cert))
    assert "could not read certificates" in pool.pcp.refused("node_count", "--tls-ca", "/nonexistent")
    done = pool.pcp.run("node_count", "--tls", host=str(pool.home))
    assert done.returncode == 1 and "TLS is for TCP" in done.stderr
    with Raw(pool.pcp) as raw:
        raw.sock.sendall(b"\x16\x03\x01\x00\x05hello")
        while raw.sock.recv(100):  # an alert, then the end
            pass
    assert pool.pcp.ok("node_count", "--tls") == "1\n"


def test_no_tls_where_there_is_none(pool):
    assert re.search(r"ERROR: .*\nHINT: .*ssl = on", pool.pcp.refused("node_count", "--tls"))
    assert pool.pcp.ok("node_count") == "1\n"


def test_files_of_authorities_that_are_none(start_pool, pg, authority, tmp_path):
    pool = secured(start_pool, pg, authority.issue())
    (tmp_path / "empty").touch()
    for name, why in (("missing", "No such file"), ("empty", "")):
        assert f'could not read certificates from "{tmp_path / name}": {why}' in pool.pcp.refused("node_count", "--tls-ca", str(tmp_path / name))


def may_unshare() -> bool:
    return subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/run"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_unshare(), reason="no other /run may be had here")
def test_without_a_host(pool):
    """As the packages have it the socket is in /run/pgpool, where nobody else can make one; in /tmp anybody can. Seen in a /run of our own."""
    pool.pcp.passfile.write_text("*:*:op:secret\n", encoding="ascii")

    def ask(where: str) -> subprocess.CompletedProcess:
        script = f"mount -t tmpfs none /run && ln -s {where} /run/pgpool && exec {PCP} node_count -p {pool.pcp.port} -U op -w"
        return subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False,
                              env={**os.environ, "PCPPASSFILE": str(pool.pcp.passfile)}, timeout=100 * waits.SCALE)
    done = ask(str(pool.home))
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    done = ask("/nowhere")
    assert done.returncode != 0 and f"/tmp/.s.PGSQL.{pool.pcp.port}" in done.stderr and "pcp_socket_dir" in done.stderr


def test_tls_names_the_wrong_host(start_pool, pg, authority):
    pool = secured(start_pool, pg, authority.issue("elsewhere", san="DNS:elsewhere"))
    assert "certificate verify failed" in pool.pcp.refused("node_count", "--tls-ca", str(authority.cert))
