# SPDX-License-Identifier: PostgreSQL
"""bench_idle: bytes of proxy memory per idle client, with fake_server.py behind the proxy.

Two figures: clients that only logged in, and clients that ran one query. In session pooling the
second kind holds a server link; PgBouncer gives a link at the first query, so its first figure has
no server side. Socket buffers live in the kernel and are in neither.
"""

import os
import socket
import struct
import sys
from dataclasses import dataclass

from bench_base import (BenchError, accepts, free_port, raise_nofile, say, settled_pss_bytes,
                        wait_until)
from bench_peers import DATABASE, PEERS, TITLES, USER

FILES_PER_CLIENT = {"session": 2, "transaction": 1}  # in session pooling each holds a server link


@dataclass
class IdleResult:
    peer: str
    pool_mode: str
    clients: int
    logged_in: float  # bytes per client that only logged in
    queried: float    # bytes per client after one query each
    base: int         # bytes of the proxy before


def read_until_ready(sock):
    """Reads messages until ReadyForQuery; an error message is raised."""
    data = b""
    while True:
        got = sock.recv(65536)
        if not got:
            raise BenchError("the proxy hung up")
        data += got
        at = 0
        while len(data) >= at + 5:
            size = struct.unpack_from("!i", data, at + 1)[0] + 1
            if len(data) < at + size:
                break
            if data[at:at + 1] == b"E":
                text = data[at + 5:at + size].replace(b"\0", b" ").decode(errors="replace")
                raise BenchError("the proxy said: " + text)
            if data[at:at + 1] == b"Z":
                return
            at += size
        data = data[at:]


def log_in(port):
    sock = socket.create_connection(("127.0.0.1", port), timeout=30)
    body = struct.pack("!i", 196608)
    for word in ("user", USER, "database", DATABASE):
        body += word.encode() + b"\0"
    body += b"\0"
    sock.sendall(struct.pack("!i", len(body) + 4) + body)
    read_until_ready(sock)
    return sock


def query(sock):
    text = b"SELECT 1\0"
    sock.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
    read_until_ready(sock)


def start_fake_server(scratch):
    port = free_port()
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_server.py")
    proc = scratch.spawn(f"fake_server-{port}", [sys.executable, script, str(port)],
                         as_server=False)
    wait_until("fake_server", 10, lambda: accepts(port), proc)
    return port


def measure_idle(scratch, name, clients, pool_mode):
    """Opens the clients and reads memory before, after login and after one query each."""
    wanted = clients * FILES_PER_CLIENT[pool_mode] + 300
    if raise_nofile(wanted) < wanted:
        raise BenchError(f"{clients} clients need {wanted} open files (ulimit -n)")
    peer = PEERS[name](scratch, start_fake_server(scratch), clients, pool_mode,
                       tag=f"-idle-{pool_mode}")
    peer.start()
    socks = []
    try:
        first = log_in(peer.port)  # what is made once must not count as a client's
        query(first)
        socks.append(first)
        base = settled_pss_bytes(peer.pid)
        while len(socks) <= clients:
            socks.append(log_in(peer.port))
        logged_in = settled_pss_bytes(peer.pid)
        for sock in socks[1:]:
            query(sock)
        queried = settled_pss_bytes(peer.pid)
    finally:
        for sock in socks:
            sock.close()
    return IdleResult(name, pool_mode, clients, (logged_in - base) / clients,
                      (queried - base) / clients, base)


def run_idle(scratch, opt, failures):
    """All peers that have processes of their own; one that fails is a failure of the report."""
    results = []
    for pool_mode in opt.idle_pool_modes:
        for name in opt.peers:
            if name == "direct" or (name == "pgpool2" and pool_mode != "session"):
                continue
            count = opt.idle_clients
            if name == "pgpool2":
                count = min(count, opt.idle_pgpool2)
            try:
                got = measure_idle(scratch, name, count, pool_mode)
            except (BenchError, OSError) as e:
                failures.append(f"{TITLES[name]}, {count} idle clients ({pool_mode}): {e}"[:500])
                say(failures[-1])
                continue
            say(f"idle {TITLES[name]} ({pool_mode}): {count} clients, {got.logged_in:,.0f} bytes "
                f"each after login, {got.queried:,.0f} after a query")
            results.append(got)
    return results
