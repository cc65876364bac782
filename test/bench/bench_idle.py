# SPDX-License-Identifier: PostgreSQL
"""bench_idle: bytes of proxy memory per idle client, with fake_server.py behind the proxy.

Four figures: clients that only logged in; that ran one query; that also used their session (two
SETs, a prepared statement run twice, a transaction); and that also had a large query and a large
result. In session pooling all but the first hold a server link; PgBouncer gives a link at the first
query, so its first figure has no server side. Socket buffers live in the kernel and are in none.
"""

import os
import socket
import struct
import sys
from dataclasses import dataclass

from bench_base import (BenchError, accepts, free_port, raise_nofile, say, settled_pss_bytes,
                        wait_until)
from bench_peers import DATABASE, PEERS, TITLES, USER

LARGE_BYTES = 200_000  # more than a socket takes at once
FILES_PER_CLIENT = {"session": 2, "transaction": 1}  # in session pooling each holds a server link


@dataclass
class IdleResult:
    peer: str
    pool_mode: str
    clients: int
    logged_in: float  # bytes per client that only logged in
    queried: float    # bytes per client after one query each
    used: float       # after settings, a prepared statement and a transaction
    large: float      # after a large query with a large result
    base: int         # bytes of the proxy before
    nodes: int = 1    # more than one: our load balancing is on


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


def message(kind, body=b""):
    return kind + struct.pack("!i", len(body) + 4) + body


def query(sock, text=b"SELECT 1"):
    sock.sendall(message(b"Q", text + b"\0"))
    read_until_ready(sock)


def use(sock):
    """What a driver does with a session: settings, a statement prepared once, a transaction."""
    query(sock, b"SET application_name = 'bench'")
    query(sock, b"SET statement_timeout = '60s'")
    bind = message(b"B", b"\0s1\0" + struct.pack("!hhh", 0, 0, 0))
    run = bind + message(b"E", b"\0" + struct.pack("!i", 0)) + message(b"S")
    sock.sendall(message(b"P", b"s1\0SELECT abalance FROM accounts WHERE aid = 1\0\0\0") + run)
    read_until_ready(sock)
    sock.sendall(run)
    read_until_ready(sock)
    for text in (b"BEGIN", b"SELECT 2", b"COMMIT"):
        query(sock, text)


def use_much(sock):
    query(sock, b"SELECT large" + b" " * LARGE_BYTES)


def start_fake_server(scratch, role="primary"):
    port = free_port()
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_server.py")
    proc = scratch.spawn(f"fake_server-{port}", [sys.executable, script, str(port), role],
                         as_server=False)
    wait_until("fake_server", 10, lambda: accepts(port), proc)
    return port


def measure_idle(scratch, name, clients, pool_mode, nodes=1):
    """Opens the clients and reads memory before, after login and after one query each."""
    wanted = clients * FILES_PER_CLIENT[pool_mode] + 300
    if raise_nofile(wanted) < wanted:
        raise BenchError(f"{clients} clients need {wanted} open files (ulimit -n)")
    peer = PEERS[name](scratch, start_fake_server(scratch), clients, pool_mode,
                       tag=f"-idle-{pool_mode}-{nodes}")
    peer.standbys = [("127.0.0.1", start_fake_server(scratch, "standby")) for _ in range(nodes - 1)]
    peer.start()
    socks, figures = [], []
    try:
        first = log_in(peer.port)  # what is made once must not count as a client's
        for step in (query, use, use_much):
            step(first)
        socks.append(first)
        base = settled_pss_bytes(peer.pid)
        while len(socks) <= clients:
            socks.append(log_in(peer.port))
        figures.append(settled_pss_bytes(peer.pid))
        for step in (query, use, use_much):
            for sock in socks[1:]:
                step(sock)
            figures.append(settled_pss_bytes(peer.pid))
    finally:
        for sock in socks:
            sock.close()
    return IdleResult(name, pool_mode, clients, *((pss - base) / clients for pss in figures), base,
                      nodes)


def idle_runs(opt):
    """(peer, pool mode, nodes) of what is to be measured; several nodes are for us alone."""
    for pool_mode in opt.idle_pool_modes:
        for name in opt.peers:
            if name in ("direct", "pgbouncer_pair", "pgbouncer_standbys") or (name == "pgpool2" and pool_mode != "session"):
                continue
            yield name, pool_mode, 1
            if name.startswith("ours") and opt.idle_nodes > 1:
                yield name, pool_mode, opt.idle_nodes


def run_idle(scratch, opt, failures):
    """All peers that have processes of their own; one that fails is a failure of the report."""
    results = []
    for name, pool_mode, nodes in idle_runs(opt):
        count = min(opt.idle_clients, opt.idle_pgpool2 if name == "pgpool2" else opt.idle_clients)
        try:
            got = measure_idle(scratch, name, count, pool_mode, nodes)
        except (BenchError, OSError) as e:
            failures.append(f"{TITLES[name]}, {count} idle clients ({pool_mode}): {e}"[:500])
            say(failures[-1])
            continue
        say(f"idle {TITLES[name]} ({pool_mode}, {nodes} nodes): {count} clients, bytes each: "
            f"{got.logged_in:,.0f} after login, {got.queried:,.0f} after a query, {got.used:,.0f} "
            f"used, {got.large:,.0f} after a large query")
        results.append(got)
    return results
