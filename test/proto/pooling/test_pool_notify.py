# SPDX-License-Identifier: PostgreSQL
"""test_pool_notify: whose number a NotificationResponse tells. Programs leave out what they notified themselves, by
the number that they were told when they logged in."""
import struct

import pytest
from pooling_house import login

from pgt.wire import SYNC, bind, describe, execute, parse, query


def numbers(found) -> list:
    return [struct.unpack("!i", m.body[:4])[0] for m in found if m.type == "A"]


@pytest.fixture(params=["session", "transaction", "statement"])
def pool(request, pg, start_pool):
    return start_pool(pg.address, num_init_children=1, pool_mode=request.param, max_backend_connections=0)


def test_own_notifications_tell_the_clients_number(pool):
    c = login(pool)
    c.simple("listen mine")
    assert numbers(c.simple("notify mine, 'simple'")) == [c.pid]
    c.send(parse("select pg_notify('mine', $1)") + bind(params=("x",)) + describe("", "P") + execute() + SYNC)
    assert numbers(c.ready()) == [c.pid]
    c.send(query("notify mine, 'one'") + query("notify mine, 'two'"))
    assert numbers(c.ready() + c.ready()) == [c.pid] * 2
    c.bye()


def test_notifications_of_others_do_not(pool):
    one, other = login(pool), login(pool)
    one.simple("listen theirs")
    other.simple("listen theirs")
    other.simple("notify theirs, 'idle'")
    (number,) = numbers(one.read_until("A"))
    assert number != one.pid
    assert numbers(one.simple("notify theirs, 'back'")) == [one.pid]
    (number,) = numbers(other.read_until("A"))
    assert number != other.pid
    one.bye()
    other.bye()
