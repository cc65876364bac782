# SPDX-License-Identifier: PostgreSQL
"""bench_load: one run of pgbench or sysbench and what it cost the proxy."""

import glob
import os
import re
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass

from bench_base import BenchError, wait_until
from bench_peers import DATABASE, USER, client_env

# Mode: pgbench options. tpcb is pgbench's own default script, run with its default vacuum.
MODES = {
    "simple": ["-n", "-S", "-M", "simple"],
    "extended": ["-n", "-S", "-M", "extended"],
    "prepared": ["-n", "-S", "-M", "prepared"],
    "connect": ["-n", "-S", "-M", "simple", "-C"],
    "tpcb": ["-M", "simple"],
}
SHARES_CLIENTS, SHARES_EACH = 10, 500
SYSBENCH = "sysbench"  # the mode that is sysbench's oltp_read_write
sysbench_tables = ["--tables=4", "--table-size=20000"]  # --sysbench sets others


@dataclass
class Sample:
    """One run of one peer."""

    peer: str
    mode: str
    clients: int
    round: int
    tps: float
    cpu_us: float  # of the proxy, per transaction
    pss: int | None  # bytes of the proxy near the end of the run, if it was looked at
    failed: int    # transactions
    p50_us: float = 0.0  # of the time a transaction took; 0: not measured
    p99_us: float = 0.0
    opened: int = 0  # server connections, while it ran


def parse_pgbench(text):
    """(tps, transactions done, transactions failed)"""
    done = re.search(r"transactions actually processed: (\d+)", text)
    tps = re.search(r"^tps = ([\d.]+)", text, re.M)
    failed = re.search(r"failed transactions: (\d+)", text)
    if not done or not tps or int(done[1]) == 0:
        raise BenchError("pgbench did nothing:\n" + text)
    return float(tps[1]), int(done[1]), int(failed[1]) if failed else 0


def run_pgbench(pgbench, port, mode, clients, limit):
    """Runs it to the end. `limit` is its own option, ["-T", seconds] or ["-t", transactions]."""
    threads = min(clients, os.cpu_count() or 1)
    argv = [pgbench, "-h", "127.0.0.1", "-p", str(port), "-U", USER, "-c", str(clients),
            "-j", str(threads), *limit, *MODES[mode], DATABASE]
    done = subprocess.run(argv, capture_output=True, text=True, env=client_env(), check=False)
    if done.returncode != 0:
        raise BenchError(f"pgbench failed: {done.stderr.strip()[-600:]}")
    return parse_pgbench(done.stdout)


def quantile(ordered, part):
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


def run_pgbench_logged(pgbench, port, mode, clients, limit):
    """Runs pgbench with the latency of each transaction: (tps, done, failed, p50 and p99 in µs). A client's first one
    is left out: pgbench logs clients in and prepares their statements one after the other, with calls that wait, and
    answers that have come meanwhile lie there for as long."""
    with tempfile.TemporaryDirectory(prefix="pgpool-bench-log-") as folder:
        got = run_pgbench(pgbench, port, mode, clients, [*limit, "-l", f"--log-prefix={folder}/tx"])
        times = []
        for path in glob.glob(f"{folder}/tx*"):
            with open(path) as file:  # client, number, time in µs, script, ...
                seen = set()
                for line in file:
                    client, _, took, _ = line.split(None, 3)
                    if client in seen:
                        times.append(float(took))
                    seen.add(client)
    times.sort()
    return (*got, quantile(times, 0.5), quantile(times, 0.99))


def sysbench(port, words):
    """Without prepared statements: not every PgBouncer follows them in transaction mode."""
    argv = ["sysbench", "oltp_read_write", "--db-driver=pgsql", "--db-ps-mode=disable",
            "--pgsql-host=127.0.0.1", f"--pgsql-port={port}", f"--pgsql-user={USER}",
            f"--pgsql-db={DATABASE}", *sysbench_tables, *words]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, env=client_env(), check=False)
    except FileNotFoundError:
        raise BenchError("sysbench is not installed (dev/install bench)") from None
    if done.returncode != 0:
        raise BenchError(f"sysbench failed: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


def parse_sysbench(text):
    """(tps, transactions done, failed, p50 and p99 in µs) from its output with a histogram."""
    done = re.search(r"transactions:\s+(\d+)\s+\(([\d.]+) per sec", text)
    buckets = [(float(ms), int(n)) for ms, n in re.findall(r"^\s*([\d.]+) \|\**\s+(\d+)$", text, re.M)]
    if not done or int(done[1]) == 0:
        raise BenchError("sysbench did nothing:\n" + text[-600:])

    def at(part):
        left = sum(n for _, n in buckets) * part
        for ms, n in buckets:
            left -= n
            if left <= 0:
                return ms * 1000
        return 0.0

    # "Ignored errors" are deadlocks that sysbench tries again: no failures.
    return float(done[2]), int(done[1]), 0, at(0.5), at(0.99)


def run_sysbench(port, threads, seconds):
    return parse_sysbench(sysbench(port, [f"--threads={threads}", f"--time={seconds}",
                                          "--histogram=on", "run"]))


def measure(pgbench, server, peer, mode, clients, seconds, round_no, latency=False):
    """One timed run. Memory is read once, when nearly done, and in the first round only: to read it takes a part of a
    processor from everybody, which shows in the slowest of the latencies."""
    pss = []
    had = server.sessions()
    look = threading.Timer(seconds * 0.9, lambda: pss.append(peer.pss_bytes()))
    cpu_before = peer.cpu_us()
    if round_no == 1:
        look.start()
    try:
        if mode == SYSBENCH:
            tps, done, failed, p50, p99 = run_sysbench(peer.port, clients, seconds)
        elif latency:
            tps, done, failed, p50, p99 = run_pgbench_logged(pgbench, peer.port, mode, clients,
                                                             ["-T", str(seconds)])
        else:
            tps, done, failed = run_pgbench(pgbench, peer.port, mode, clients, ["-T", str(seconds)])
            p50 = p99 = 0.0
    finally:
        look.cancel()
        if round_no == 1:
            look.join()
    cpu = (peer.cpu_us() - cpu_before) / done
    return Sample(peer.name, mode, clients, round_no, tps, cpu, pss[0] if pss else None, failed, p50, p99,
                  server.sessions() - had)


def shares(pgbench, server, peer, mode, before):
    """Where the selects of one short run went: parts of one, by node. `before`: the counters, which become those
    after it. A server process tells what it has done at the latest ten seconds after it fell idle."""
    count = SHARES_CLIENTS * SHARES_EACH
    run_pgbench(pgbench, peer.port, mode, SHARES_CLIENTS, ["-t", str(SHARES_EACH)])
    after = []

    def is_told():
        after[:] = server.reads()
        return sum(after) - sum(before) >= count
    wait_until("what the servers have counted", 30, is_told)
    done = [a - b for a, b in zip(after, before)]
    before[:] = after
    return [n / sum(done) for n in done]


def settled_reads(server):
    """The counters when nobody has anything more to tell: twice the same, twelve seconds apart."""
    seen, since = server.reads(), time.monotonic()

    def is_settled():
        nonlocal seen, since
        now = server.reads()
        if now != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since > 12
    wait_until("the servers' counters to settle", 60, is_settled)
    return seen
