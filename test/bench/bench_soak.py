# SPDX-License-Identifier: PostgreSQL
"""bench_soak: is memory flat? Runs queries and connections in steps and reads PSS after each.

The first quarter of the steps is taken as warm-up; growth is what the rest adds, by the slope of a
straight line through it, so one late outlier does not decide.
"""

import csv
import os
import time

import bench_svg
from bench_base import settled_pss_bytes, say
from bench_load import run_pgbench
from bench_peers import TITLES

SOAK_CLIENTS = 10


def slope(points):
    """Least squares: bytes per step."""
    n = len(points)
    if n < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / n
    mean_y = sum(y for _, y in points) / n
    return (sum((x - mean_x) * (y - mean_y) for x, y in points) /
            sum((x - mean_x) ** 2 for x, _ in points))


def soak_peer(pgbench, peer, queries, connections, steps):
    """[(seconds, queries so far, connections so far, PSS bytes)]"""
    rows, done_queries, done_connections = [], 0, 0
    per_client_q = max(1, queries // steps // SOAK_CLIENTS)
    per_client_c = max(1, connections // steps // SOAK_CLIENTS)
    began = time.monotonic()
    for step in range(steps):
        mode = ("simple", "extended", "prepared")[step % 3]
        if queries:
            done_queries += run_pgbench(pgbench, peer.port, mode, SOAK_CLIENTS,
                                        ["-t", str(per_client_q)])[1]
        if connections:
            done_connections += run_pgbench(pgbench, peer.port, "connect", SOAK_CLIENTS,
                                            ["-t", str(per_client_c)])[1]
        pss = settled_pss_bytes(peer.pid)
        rows.append((time.monotonic() - began, done_queries, done_connections, pss))
        say(f"soak {TITLES[peer.name]} {step + 1}/{steps}: {done_queries:,} queries, "
            f"{done_connections:,} connections, PSS {pss / 1024:,.0f} kB")
    return rows


def verdict(rows):
    """(bytes per step after warm-up, that as a share of the memory, over all those steps)"""
    late = rows[len(rows) // 4:]
    per_step = slope([(i, row[3]) for i, row in enumerate(late)])
    return per_step, per_step * len(late) / late[0][3]


def write(out, results, command):
    """results: {peer: rows}. Writes OUT.md, OUT.csv, OUT.svg; returns the text."""
    stem = os.path.splitext(out)[0]
    os.makedirs(os.path.dirname(os.path.abspath(out)), exist_ok=True)
    with open(stem + ".csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["peer", "seconds", "queries", "connections", "pss_bytes"])
        for peer, rows in results.items():
            table.writerows([peer, f"{r[0]:.1f}", *r[1:]] for r in rows)
    lines = ["# Memory over time", "", f"Written by `{command}`.", "",
             f"{SOAK_CLIENTS} clients; every step runs queries (simple, extended and prepared in "
             "turn) and new connections, then memory (PSS) is read with no client connected.", "",
             f"![chart]({os.path.basename(stem)}.svg)", "",
             "| proxy | queries | connections | PSS first | PSS last | growth after warm-up |",
             "| --- | --- | --- | --- | --- | --- |"]
    for peer, rows in results.items():
        per_step, share = verdict(rows)
        lines.append(f"| {TITLES[peer]} | {rows[-1][1]:,} | {rows[-1][2]:,} | "
                     f"{rows[0][3] / 1024:,.0f} kB | {rows[-1][3] / 1024:,.0f} kB | "
                     f"{per_step:+,.0f} bytes per step, {share:+.1%} in all |")
    series = {TITLES[p]: [(r[1] + r[2], r[3] / 1048576) for r in rows]
              for p, rows in results.items()}
    parts = bench_svg.legend(list(series), 80, 22)
    parts += bench_svg.line_panel("Memory of the proxy", series, 30, y_name="PSS, MB",
                                  x_name="queries + connections so far")
    with open(stem + ".svg", "w") as file:
        file.write(bench_svg.document(900, 340, parts))
    words = "\n".join(lines) + "\n"
    with open(out, "w") as file:
        file.write(words)
    return words
