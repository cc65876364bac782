# SPDX-License-Identifier: PostgreSQL
"""test_trust_anew: a server that lets clients in unasked has to show it now and then. One client does so for all, and its
connection comes instead of one that lay idle: who comes and goes in crowds leaves no more connections than the first crowd.
"""
import pytest

from pgt import waits
from pgt.fake import complete, ready
from pgt.wire import Wire

BELIEVED_S = 30  # POOL_TRUST_MAX_US and the grace


def crowd(pool, n: int) -> None:
    """`n` clients that log in at the same time."""
    clients = [Wire(pool.address, seconds=20) for _ in range(n)]
    for w in clients:
        w.send_startup("fake", "fake")
    for w in clients:
        assert w.read_until("Z")[-1].type == "Z"
    for w in clients:
        w.bye()


@pytest.mark.slow
def test_one_shows_it_for_all(fake, start_pool):
    opened, ended = [], []

    def script(conn) -> None:
        opened.append(waits.now())
        conn.greet()
        while conn.read()[0] == "Q":  # resets only
            conn.send(complete("DISCARD ALL"), ready())
        ended.append(waits.now())

    pool = start_pool(fake(script).address, num_init_children=1, role_check_delay=0)
    crowd(pool, 6)
    waits.wait_for("the server is not believed any more", lambda: waits.now() - opened[-1] > BELIEVED_S + 0.5, 40)
    before = len(opened)
    assert ended == []
    crowd(pool, 6)
    assert len(opened) == before + 1
    waits.wait_for("the oldest is gone for it", lambda: len(ended) == 1, 10)
