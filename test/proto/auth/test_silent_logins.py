# SPDX-License-Identifier: PostgreSQL
"""test_silent_logins: who says a name and nothing more keeps nobody out."""
import time

import pytest

import auth_house as house
from pgt.waits import wait_for
from pgt.wire import Wire

RULE = "host all all all scram-sha-256\n"


@pytest.fixture(scope="module")
def server():
    pg = house.start_server()
    house.make_user(pg, "alice", "scram")
    yield pg
    pg.stop()


@pytest.fixture
def start(server):
    started = []

    def start_one(**conf):
        started.append(house.start_auth_pool([server.address], hba=RULE, passwd="alice:alice_pw\n",
                                             **{"num_init_children": 1, "authentication_timeout": 600, **conf}))
        return started[-1]

    yield start_one
    for pool in started:
        pool.stop()


def silent(pool, user: str = "alice") -> Wire:
    """Was asked for a password, and says nothing."""
    w = Wire(pool.address, seconds=30)
    w.send_startup(user, "postgres")
    assert w.read().type == "R"
    return w


def alice(pool) -> Wire:
    """Logged in, or refused."""
    w = Wire(pool.address, seconds=30)
    w.last = w.login("alice", "postgres", "alice_pw")[-1]
    return w


def is_in(w: Wire) -> bool:
    return w.last.type == "Z"


@pytest.mark.parametrize("limit", ["max_db_client_connections", "max_user_client_connections"])
def test_a_name_alone_takes_no_place_of_its_users(start, limit):
    pool = start(**{limit: 2})
    strangers = [silent(pool) for _ in range(6)]
    users = [alice(pool) for _ in range(2)]
    assert all(is_in(w) for w in users)
    third = alice(pool)
    assert third.last.sqlstate == "53300" and limit in third.last.fields["D"], "they count once they are known"
    for w in strangers + users + [third]:
        w.bye()


@pytest.mark.parametrize("user", ["alice", "nobody_of_this_name"])
def test_the_silent_give_their_places(start, user):
    """With max_clients of them a login gets in as soon as one of them has been silent for a second."""
    pool = start(max_clients=4)
    users = [alice(pool)]
    strangers = [silent(pool, user) for _ in range(3)]
    for n in range(1, 4):
        def gets_in() -> bool:
            users.append(alice(pool))
            return is_in(users[-1]) or bool(users.pop().bye())

        wait_for(f"login {n} gets in", gets_in, 60)
        ended = strangers.pop(0).read_eof()
        assert [m.sqlstate for m in ended] == ["53300"], "the oldest goes, and is told why"
    assert alice(pool).last.sqlstate == "53300", "who is in stays"
    assert [w.value("select 1") for w in users] == ["1"] * 4
    for w in users:
        w.bye()


def test_the_silent_of_another_worker_give_their_places(start):
    """The strangers fill one worker; a login that comes to the other gets in at its first attempt."""
    pool = start(max_clients=3, num_init_children=2, worker_fill=3, pool_test_load=0)
    early = alice(pool)
    wait_for("two workers", lambda: len({row[0] for row in early.rows("show pool_processes")} - {b"0"}) == 2)
    early.bye()
    strangers = [silent(pool) for _ in range(3)]
    silent_since = time.monotonic()
    wait_for("all of them have been silent for longer than a second", lambda: time.monotonic() - silent_since > 2)
    users = []
    for stranger in strangers:
        users.append(alice(pool))
        assert is_in(users[-1]), users[-1].last.fields
        assert [m.sqlstate for m in stranger.read_eof()] == ["53300"], "the one that has been silent for longest"
    assert alice(pool).last.sqlstate == "53300", "who is in stays"
    for w in users:
        w.bye()


def test_who_answers_late_gets_in_where_there_is_room(start):
    pool = start(max_clients=4)
    late = Wire(pool.address, seconds=30)
    late.send_startup("alice", "postgres")
    assert not late.is_quiet(30), "it is asked"
    others = [alice(pool) for _ in range(3)]
    assert all(is_in(o) for o in others)
    assert late.authenticate("alice", "alice_pw")[-1].type == "Z"
    for o in others + [late]:
        o.bye()
