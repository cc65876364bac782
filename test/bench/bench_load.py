# SPDX-License-Identifier: PostgreSQL
"""bench_load: one pgbench run and what it cost the proxy."""

import os
import re
import subprocess
import threading
from dataclasses import dataclass

from bench_base import BenchError
from bench_peers import DATABASE, USER, client_env

# Mode: pgbench options. tpcb is pgbench's own default script, run with its default vacuum.
MODES = {
    "simple": ["-n", "-S", "-M", "simple"],
    "extended": ["-n", "-S", "-M", "extended"],
    "prepared": ["-n", "-S", "-M", "prepared"],
    "connect": ["-n", "-S", "-M", "simple", "-C"],
    "tpcb": ["-M", "simple"],
}


@dataclass
class Sample:
    """One run of one peer."""

    peer: str
    mode: str
    clients: int
    round: int
    tps: float
    cpu_us: float  # of the proxy, per transaction
    pss: int       # bytes of the proxy near the end of the run
    failed: int    # transactions


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


def measure(pgbench, peer, mode, clients, seconds, round_no):
    """One timed run. Memory is read once, when nearly done: reading it costs CPU of its own."""
    pss = []
    look = threading.Timer(seconds * 0.9, lambda: pss.append(peer.pss_bytes()))
    cpu_before = peer.cpu_us()
    look.start()
    try:
        tps, done, failed = run_pgbench(pgbench, peer.port, mode, clients, ["-T", str(seconds)])
    finally:
        look.cancel()
        look.join()
    cpu = (peer.cpu_us() - cpu_before) / done
    return Sample(peer.name, mode, clients, round_no, tps, cpu, pss[0] if pss else 0, failed)
