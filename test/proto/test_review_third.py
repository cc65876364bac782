# SPDX-License-Identifier: PostgreSQL
"""test_review_third: what a third adversarial reading found outside of pooling."""
import threading

import pytest

from pgt.wire import Wire


@pytest.mark.parametrize("fill", [0, 12], ids=["spread", "filled"])
@pytest.mark.parametrize("limit", [1, 5])
def test_no_client_is_lost_by_a_worker_that_retires(pg, start_pool, fill, limit):
    """child_max_connections: a client that was handed over while its worker left is served all the same."""
    pool = start_pool(pg.address, num_init_children=2, child_max_connections=limit, worker_fill=fill)
    lost: list[str] = []

    def come_and_go() -> None:
        for i in range(40):
            try:
                c = Wire(pool.address, seconds=20)
                c.login()
                assert c.value(f"select {i}") == str(i)
                c.bye()
            except Exception as e:  # all of them are counted
                lost.append(repr(e))

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not lost
