# SPDX-License-Identifier: PostgreSQL
"""test_watchdog_members: pgpools that are gone count no more, when the settings say so, and count again when they are back."""
import contextlib
import signal

from pgt import waits
from test_watchdog import Three, cluster, info  # noqa: F401


def voters(three: Three, i: int) -> list[str]:
    return [r["votes"] for r in three.rows(i)]


def test_who_was_stopped_counts_no_more(cluster):  # noqa: F811
    """Down to one, which is a majority then; and up again."""
    three = cluster(wd_remove_shutdown_nodes=True).start()
    first = three.wait_leader(0, 1, 2)
    three.wait_voters(first, 3)
    three.pools[first].stop(signal.SIGTERM)
    left = [i for i in range(3) if i != first]
    second = three.wait_leader(*left)
    waits.wait_for("two count", lambda: voters(three, second).count("true") == 2)
    waits.wait_for("who led then says why", lambda: any("it was stopped (wd_remove_shutdown_nodes)" in three.pools[i].log() for i in left))
    waits.wait_for("it is told as gone in order", lambda: " 10 SHUTDOWN 1 REVOKED-SHUTDOWN" in info(three, second))
    last = next(i for i in left if i != second)

    def leads_alone() -> bool:
        return three.leader_of(last) == last and voters(three, last).count("true") == 1
    for _ in range(4):  # who is being stopped waits four seconds to be counted out: a slow machine has some tries
        three.pools[second].stop(signal.SIGTERM)
        with contextlib.suppress(AssertionError):
            waits.wait_for("one leads alone", leads_alone, 15)
            break
        three.start(second)
        three.wait_voters(three.wait_leader(*left), 2)
    waits.wait_for("one leads alone", leads_alone, 60)
    assert three.rows(last)[0]["quorum"] == "QUORUM EXIST"
    three.start(first, second)
    three.wait_leader(0, 1, 2)  # while they come one alone may be no majority for a moment
    three.wait_voters(last, 3)


def test_who_is_lost_counts_no_more_after_a_while(cluster):  # noqa: F811
    three = cluster(wd_lost_node_removal_timeout="2s").start()
    leader = three.wait_leader(0, 1, 2)
    three.wait_voters(leader, 3)
    lost = next(i for i in range(3) if i != leader)
    three.kill(lost)
    waits.wait_for("two count", lambda: voters(three, leader).count("true") == 2, 60)
    waits.wait_for("who led then says why", lambda: any("it is lost (wd_lost_node_removal_timeout)" in pool.log() for pool in three.pools))
    waits.wait_for("it is told as lost", lambda: " 8 LOST 3 REVOKED-LOST" in info(three, leader))
    # Of two that count, one is no majority: nobody leads, rather than two.
    other = next(i for i in range(3) if i not in (leader, lost))
    three.kill(other)
    waits.wait_for("nobody leads", lambda: three.leader_of(leader) is None)
    three.start(other)
    three.wait_leader(leader, other)
    three.start(lost)
    three.wait_voters(three.wait_leader(0, 1, 2), 3)


def test_who_never_came_counts_no_more_after_a_while(cluster):  # noqa: F811
    three = cluster(wd_no_show_node_removal_timeout="3s").start(0, 1)
    leader = three.wait_leader(0, 1)
    waits.wait_for("two count", lambda: voters(three, leader).count("true") == 2, 60)
    waits.wait_for("who led then says why", lambda: any("it did not show up (wd_no_show_node_removal_timeout)" in pool.log() for pool in three.pools))
    waits.wait_for("it is told as never seen", lambda: " 0 DEAD 2 REVOKED-NO-SHOW" in info(three, leader))
    three.start(2)
    three.wait_voters(three.wait_leader(0, 1, 2), 3)


def test_without_the_settings_all_count(cluster):  # noqa: F811
    three = cluster().start()
    leader = three.wait_leader(0, 1, 2)
    three.wait_voters(leader, 3)
    other = next(i for i in range(3) if i != leader)
    three.pools[other].stop(signal.SIGTERM)
    waits.wait_for("it is gone", lambda: three.rows(leader)[other]["status"] == "SHUTDOWN")
    assert voters(three, leader).count("true") == 3
