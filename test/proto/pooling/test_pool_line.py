# SPDX-License-Identifier: PostgreSQL
"""test_pool_line: clients in one line who want connections of different kinds."""
import threading

from pgt import fake as fakes
from pgt import waits
from pgt.wire import Wire

from pooling_house import login

FIRST, LATER = "-c geqo=off", "-c geqo=on"  # by no SET does the one become the other


def test_no_more_is_opened_than_clients_wait(fake, start_pool):
    """The first of the line waits for a connection of another kind than those behind it, whose own come earlier: these are kept for
    them, and not opened again and again until the first one has gone in."""
    doors = {FIRST: threading.Event(), LATER: threading.Event()}

    def script(conn) -> None:
        door = doors.get(conn.params.get("options", ""))
        if door is not None:
            waits.wait_for("the door is open", door.is_set)
        fakes.serve(conn)

    server = fake(script)
    pool = start_pool(server.address, num_init_children=1, health_check_period=0)
    login(pool, user="fake", database="fake").bye()  # they may share connections that are opened

    def come(options: str) -> Wire:
        w = Wire(pool.address)
        w.send_startup("fake", "fake", options=options)
        return w

    def asked(n: int) -> None:
        waits.wait_for(f"{n} connections are asked for", lambda: len(server.links()) == n)

    clients = [come(FIRST)]
    asked(2)
    clients += [come(LATER) for _ in range(3)]
    asked(5)
    doors[LATER].set()
    waits.holds_for("no more are asked for", lambda: len(server.links()) == 5, 0.5)
    doors[FIRST].set()
    for w in clients:
        assert w.authenticate("fake", "")[-1].type == "Z"
    assert len(server.links()) == 5
