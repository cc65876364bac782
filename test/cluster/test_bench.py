# SPDX-License-Identifier: PostgreSQL
"""test_bench: the bench measures what it says: its arithmetic, and one small run of everything."""
import csv
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"
sys.path.insert(0, str(BENCH))

# pylint: disable=wrong-import-position
import bench_report
import bench_soak
from bench_base import BenchError, tree_cpu_us
from bench_load import Sample, parse_pgbench
from fake_server import Connection


def sample(peer, round_no, tps, cpu=10.0):
    return Sample(peer, "simple", 10, round_no, tps, cpu, 1 << 20, 0)


def test_many_opened_connections_are_told():
    few, many = sample("ours", 1, 100), sample("ours2", 1, 100)
    few.opened, many.opened = bench_report.HANDFUL, 141
    assert bench_report.opened_section([few]) == []
    assert [line for line in bench_report.opened_section([few, many]) if line.startswith("-")] == [
        "- pgpool, 2 workers, simple, 10 clients, round 1: 141"]


def test_pgbench_output_is_read():
    text = ("number of transactions actually processed: 1200\n"
            "number of failed transactions: 3 (0.2%)\n"
            "tps = 240.5 (without initial connection time)\n")
    assert parse_pgbench(text) == (240.5, 1200, 3)
    with pytest.raises(BenchError):
        parse_pgbench(text.replace("1200", "0"))


def test_ratios_are_taken_round_by_round():
    samples = [sample("ours", 1, 100), sample("pgbouncer", 1, 50),
               sample("ours", 2, 30), sample("pgbouncer", 2, 60), sample("ours", 3, 1)]
    assert bench_report.ratios(samples, "simple", 10, "pgbouncer", "tps") == [2.0, 0.5]


def test_spread_is_median_and_limits():
    assert bench_report.spread([3, 1, 2], "{:.1f}") == "2.0 (1.0–3.0)"
    assert bench_report.spread([]) == "–"


def test_shares_are_told_by_node():
    run = types.SimpleNamespace(nodes=3, shares=[("ours1", "simple", [0.001, 0.5, 0.499])])
    lines = bench_report.shares_section(run)
    assert "| pgpool, 1 worker | simple | 0.10% | 50.00% | 49.90% |" in "\n".join(lines)
    assert bench_report.shares_section(types.SimpleNamespace(nodes=1, shares=[])) == []


def test_soak_sees_growth_and_flatness():
    grows = [(0, 0, 0, 1000 + 10 * i) for i in range(40)]
    flat = [(0, 0, 0, 1000 + (i % 2)) for i in range(40)]
    assert bench_soak.verdict(grows)[0] == pytest.approx(10)
    assert abs(bench_soak.verdict(flat)[0]) < 0.1


def test_cpu_of_children_that_ended_counts():
    before = tree_cpu_us(os.getpid())
    subprocess.run([sys.executable, "-c", "for i in range(4000000): pass"], check=True)
    assert tree_cpu_us(os.getpid()) - before >= 20_000


def test_fake_server_reads_messages_in_pieces():
    conn = Connection(None, 1)
    startup = b"\0\0\0\x14\0\3\0\0user\0bench\0\0"
    out = b"".join(conn.on_data(startup[i:i + 1]) for i in range(len(startup)))
    assert out.startswith(b"R\0\0\0\x08\0\0\0\0") and out.endswith(b"Z\0\0\0\5I")
    assert b"C\0\0\0\rSELECT 1\0" in conn.on_data(b"Q\0\0\0\rSELECT 1\0")
    assert conn.on_data(b"X\0\0\0\4") is None


def test_a_small_run(tmp_path):
    out = tmp_path / "small.md"
    done = subprocess.run(
        [BENCH / "compare", "--quick", "--seconds", "1", "--scale", "1", "--clients", "4",
         "--modes", "simple,connect", "--idle-clients", "50", "--peers", "ours,pgbouncer,direct",
         "--out", out], text=True, capture_output=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    words = out.read_text()
    assert "## Memory per idle client" in words and "## Failures" not in words
    assert "<svg" in out.with_suffix(".svg").read_text()
    with open(out.with_suffix(".csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(r["peer"], r["mode"]) for r in rows} == {
        (p, m) for p in ("ours", "pgbouncer", "direct") for m in ("simple", "connect")}
    assert all(float(r["tps"]) > 0 for r in rows)
    assert all(float(r["cpu_us"]) > 1 for r in rows if r["peer"] != "direct")
