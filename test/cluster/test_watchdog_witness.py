# SPDX-License-Identifier: PostgreSQL
"""test_watchdog_witness: two pgpools and a witness, on loopback addresses: any one of the three may die."""
import re
import signal
from pathlib import Path

from pgt import procs, proxy, waits
from test_monitor import trio  # noqa: F401
from test_watchdog import QUICK, Three, begun, cluster, primary_of, wait_settled  # noqa: F401

WITNESS = 2
LIMIT_KB = 4096


def start_witness(three: Three, *options: str) -> proxy.Pgpool:
    pool = three.pools[WITNESS]
    pool.daemon = procs.Daemon([str(proxy.pgpool_bin()), "-n", "--witness", *options, "-f", str(pool.conf_path)],
                               pool.home / "proxy.log")
    return pool


def start(three: Three) -> int:
    """Who leads."""
    three.start(0, 1)
    start_witness(three)
    leader = three.wait_leader(0, 1)
    three.wait_voters(leader, 3)
    return leader


def private_kb(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return sum(int(kb) for kb in re.findall(r"^Private_\w+: +(\d+) kB", text, re.M))


def test_a_witness_is_small_and_serves_nobody(cluster):  # noqa: F811
    three = cluster()
    leader = start(three)
    witness = three.pools[WITNESS]
    pids = witness.pids()
    assert len(pids) == 2, "supervisor and watchdog"
    used = {pid: private_kb(pid) for pid in pids}
    print(f"private memory of a witness: {used} kB")
    assert proxy.has_sanitizers() or sum(used.values()) <= LIMIT_KB
    assert not proxy.answers(witness.address)
    assert [r["witness"] for r in three.rows(leader)] == ["false", "false", "true"]
    witness.reload(log_min_messages="debug1")
    waits.wait_for("it has read its file again", lambda: "reload config files" in witness.log())
    witness.stop(signal.SIGTERM)
    three.wait_leader(0, 1)


def test_any_of_the_three_may_die(cluster):  # noqa: F811
    three = cluster()
    leader = start(three)
    three.kill(leader)
    left = 1 - leader
    # Only of the two: pgpool 2 answers no questions.
    waits.wait_for("the other one leads", lambda: three.leader_of(left) == left, 60)
    three.start(leader)
    three.wait_leader(0, 1)
    three.kill(WITNESS)
    waits.wait_for("the witness is lost", lambda: three.rows(left)[WITNESS]["status"] == "LOST")
    leader = three.wait_leader(0, 1)
    start_witness(three)
    three.wait_voters(leader, 3)


def test_a_witness_does_not_keep_the_lead(cluster):  # noqa: F811
    """Its priority is the highest, its settings say that there is an address, and it is in a hurry to be elected."""
    three = cluster(wd_priority=[1, 1, 9], delegate_ip=["", "", "127.9.9.9"], wd_election_timeout=["1s", "1s", "200ms"])
    start_witness(three)
    three.start(0, 1)
    leader = three.wait_leader(0, 1)
    three.wait_voters(leader, 3)
    for _ in range(4):
        three.kill(leader)
        left = 1 - leader
        waits.wait_for("the other one leads", lambda left=left: three.leader_of(left) == left, 60)
        three.start(leader)
        three.wait_voters(left, 3)
        leader = three.wait_leader(0, 1)
    waits.wait_for("it gave the lead on", lambda: "a witness does not keep it" in three.pools[WITNESS].log())
    assert "Starting escalation process" not in three.pools[WITNESS].log()
    assert not any("pgpool 2 leads" in e for e in three.events(leader))


def test_the_leader_dies_with_the_primary(trio, cluster):  # noqa: F811
    """As when they shared a machine: the witness sees no servers, and nobody who does sees otherwise."""
    three = cluster([n.address for n in trio.nodes], **QUICK)
    leader = start(three)
    wait_settled(three, trio.at, 0, 1)
    three.wait_events(f"the primary is node {trio.at}", 0, 1)
    three.kill(leader)
    trio.primary.stop(signal.SIGQUIT)
    left = 1 - leader
    waits.wait_for("there is a new primary", lambda: primary_of(three, left) not in (None, trio.at), 60)
    assert begun(three) == 1
