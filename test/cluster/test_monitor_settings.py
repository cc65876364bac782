# SPDX-License-Identifier: PostgreSQL
"""test_monitor_settings: health_check_*, connect_timeout and sr_check_*, each with another value per server where there is one
per server, at scripted servers that tell when and how they were asked."""
import struct
from statistics import median

from pgt import fake as scripted
from pgt import waits
from pgt.wire import message
from test_monitor import show

ASK_PASSWORD = message("R", struct.pack("!I", 3))


class Asked:
    """What a server saw of the monitor: who logged in, with which password, and when it was asked something."""

    def __init__(self, answers: bool = True):
        self.answers, self.logins, self.asked = answers, [], []

    def __call__(self, conn) -> None:
        if not self.answers:
            conn.take(1)  # it never says a word
        conn.send(ASK_PASSWORD)
        password = conn.read()[1][:-1].decode()
        self.logins.append((conn.params["user"], password, conn.params["database"]))
        conn.greet()
        for kind, body in conn.messages():
            self.asked.append(waits.now())
            conn.send(conn.answer(kind, body))


def gaps(times: list[float]) -> list[float]:
    return [b - a for a, b in zip(times, times[1:])]


def of_node(i: int, **values: object) -> dict[str, object]:
    return {f"{name}{i}": value for name, value in values.items()}


def test_each_of_them_counts(fake, start_pool):
    often, seldom = Asked(), Asked()
    servers = [fake(script, f"u{i}") for i, script in enumerate((often, seldom, Asked(answers=False), Asked(answers=False)))]
    pool = start_pool(
        *[s.address for s in servers], backend_clustering_mode="raw", health_check_user="nobody", health_check_period=600,
        **of_node(0, health_check_user="u0", health_check_password="p0", health_check_database="d0", health_check_period=1),
        **of_node(1, health_check_user="u1", health_check_password="TEXTp1", health_check_database="d1", health_check_period=2),
        **of_node(2, health_check_user="u2", health_check_timeout=1, health_check_max_retries=1, health_check_retry_delay=1),
        **of_node(3, health_check_user="u3", health_check_timeout=30, connect_timeout=200, health_check_max_retries=2,
                  health_check_retry_delay=0))

    def failed(node: int) -> bool:
        return f"health check failed on node {node}" in pool.log()
    # connect_timeout (0.2 s), three rounds with hardly a pause; then health_check_timeout (1 s), two rounds 1 s apart.
    waits.wait_for("the slow one is lost", lambda: failed(3))
    waits.wait_for("the mute one is lost", lambda: failed(2))
    log = pool.log()
    assert [f"health check retrying on DB node: {n} (round:{r})" in log for n, r in ((2, 1), (2, 2), (3, 1), (3, 2), (3, 3))] == \
        [True, False, True, True, False]
    assert "health check failed on node 3 (timeout:30)" in log and "health check failed on node 2 (timeout:1)" in log
    assert "no connection in time" in log and "no answer in time" in log
    waits.wait_for("all rounds are seen here, too", lambda: len(servers[3].conns) >= 3 and len(servers[2].conns) >= 2)
    slow_gaps, mute_gaps = (gaps([conn.since for conn in server.conns[:3]]) for server in (servers[3], servers[2]))
    # A machine that stands still makes one gap longer and the next one shorter: what is between two of them, or most, counts.
    assert 0.15 <= max(slow_gaps) and min(slow_gaps) < 1.5, slow_gaps
    assert 1.5 <= mute_gaps[0], mute_gaps
    waits.wait_for("the second one was asked again", lambda: len(seldom.asked) >= 5, 60)
    assert often.logins[0] == ("u0", "p0", "d0") and seldom.logins[0] == ("u1", "p1", "d1")
    assert len(set(often.logins)) == len(set(seldom.logins)) == 1
    assert min(gaps(often.asked)[1:]) < 1.5 < median(gaps(seldom.asked)), (often.asked, seldom.asked)
    stats = show(pool, "POOL_HEALTH_CHECK_STATS")
    assert int(stats[0]["success_count"]) >= 4 and stats[2]["max_retry_count"] == "1" and stats[3]["max_retry_count"] == "2"
    # sr_check_*: one user for all, and a period of its own.
    for server in servers:
        server.user = "sr"
    before = waits.now()
    pool.reload(sr_check_user="sr", sr_check_password="sp", sr_check_database="sd", sr_check_period=1, **of_node(1, health_check_period=0))
    waits.wait_for("both log in anew", lambda: seldom.logins[-1] == often.logins[-1] == ("sr", "sp", "sd"))
    waits.wait_for("the second one is asked by the other period", lambda: min(gaps([t for t in seldom.asked if t > before][1:]), default=9) < 1.5, 60)
