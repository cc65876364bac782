# SPDX-License-Identifier: PostgreSQL
"""test_role_check: a role that was locked, expired, dropped or renamed does not come in by a connection that was
opened before, though nobody is set who could be asked (auth_user, sr_check_user): the connection is asked
about its own role before a client that has just logged in gets it. The words are the server's."""
import time

import pytest

import auth_house as house
from pgt.waits import wait_for
from pgt.wire import Wire
from test_auth_methods import peer_name

HBA = "local all all peer map=m\nhost d_trust all all trust\nhost all all all scram-sha-256\n"
ODD = "Rö'l\\e"
NAMES = ("ro_lock", "ro_old", "ro_gone", "ro_named", "ro_sly", "ro_again", ODD)
QUESTION = "FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) SESSION_USER"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture(scope="module")
def server():
    pg = house.start_server({"log_statement": "all"})
    pg.rows("; ".join(f"create role {quoted(name)} login in role srv_scram password 'word'" for name in NAMES))
    yield pg
    pg.stop()


@pytest.fixture
def pools(server):
    started = []

    def start(**conf):
        lines = "".join(f"{name}:word\n" for name in NAMES)
        conf.setdefault("role_check_delay", "1ms")
        conf.setdefault("default_pool_size", 1)  # no second connection, opened while the one is made ready for the next client
        started.append(house.start_auth_pool([server.address], hba=HBA, passwd=lines, ident=f"m {peer_name()} all\n",
                                             num_init_children=1, **conf))
        return started[-1]

    yield start
    for pool in started:
        pool.stop()


def come(address, user, database="postgres", password="word"):
    return house.try_login(address, user, database, password)[:2]


def pids(server, user) -> str:
    return server.value(f"select array_agg(pid) from pg_stat_activity where usename = $${user}$$")


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_each_way_out(server, pools, mode):
    """What the server says to a fresh login is what pgpool says, and what brings the role back brings it in again."""
    pool = pools(pool_mode=mode)
    for user, out, back in (
            ("ro_lock", "alter role ro_lock nologin", "alter role ro_lock login"),
            ("ro_old", "alter role ro_old valid until '2001-01-01'", "alter role ro_old valid until 'infinity'"),
            ("ro_gone", "drop role ro_gone", "create role ro_gone login in role srv_scram password 'word'"),
            ("ro_named", "alter role ro_named rename to ro_other", "alter role ro_other rename to ro_named"),
            (ODD, f"alter role {quoted(ODD)} nologin", f"alter role {quoted(ODD)} login")):
        assert come(pool.address, user) == ("in", user)
        opened = pids(server, user)
        assert come(pool.address, user) == ("in", user)
        assert pids(server, user) == opened, "the connection was not used again"
        for how in ("scram", "trust", "peer") if user == "ro_lock" else ("scram",):
            assert come(pool.address, user)[0] == "in"
            server.rows(out)
            assert come(server.address, user)[0] in ("28000", "28P01")
            address, database = (pool.socket if how == "peer" else pool.address), ("d_trust" if how == "trust" else "postgres")
            assert come(address, user, database) == come(server.address, user), (user, how)
            server.rows(back)


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_within_a_second(server, pools, mode):
    """The default: asked once a second at most, refused a second later at most."""
    pool = pools(pool_mode=mode, role_check_delay="1s")
    began = time.monotonic()
    assert come(pool.address, "ro_lock")[0] == "in"
    before = server.log().count(QUESTION)
    wait_for("it is asked", lambda: come(pool.address, "ro_lock")[0] == "in" and server.log().count(QUESTION) > before)
    assert time.monotonic() - began > 0.8
    for _ in range(3):
        assert come(pool.address, "ro_lock")[0] == "in"
    assert server.log().count(QUESTION) - before <= time.monotonic() - began
    server.rows("alter role ro_lock nologin")
    began = time.monotonic()
    asked_at = began
    while come(pool.address, "ro_lock")[0] == "in":
        assert asked_at - began < 2, "when this login began the last answer was older than a second"
        asked_at = time.monotonic()
    server.rows("alter role ro_lock login")
    assert "may not log in to node 0 any more" in pool.log()


def test_a_role_cannot_answer_for_itself(server, pools):
    """What the role may set and make itself: its search path, operators and a view of that name."""
    user = "ro_sly"
    server.rows("create schema sly; grant all on schema sly to ro_sly")
    pool = pools()
    w = Wire(pool.address)
    assert w.login(user, "postgres", "word")[-1].type == "Z"
    for sql in ("create view sly.pg_roles as select 'ro_sly'::name as rolname, true as rolcanlogin, null::timestamptz as rolvaliduntil",
                "create function sly.yes(name, name) returns bool language sql as 'select true'",
                "create operator sly.= (leftarg = name, rightarg = name, function = sly.yes)",
                "create function sly.now() returns timestamptz language sql as $$select '1999-01-01'::timestamptz$$",
                "alter role ro_sly set search_path = sly, pg_catalog", "alter role ro_sly set client_min_messages = debug5"):
        assert all(m.type != "E" for m in w.simple(sql)), sql
    w.bye()
    server.end_sessions("usename = 'ro_sly'")
    wait_for("a connection with the new settings", lambda: come(pool.address, user)[0] == "in")
    server.rows("alter role ro_sly nologin")
    assert come(pool.address, user)[0] == "28000"


def test_nobody_waits_for_the_question(server, pools):
    """All connections are in use: a client of a shared pool comes in, and the first that is free is asked."""
    pool = pools(pool_mode="transaction", default_pool_size=1)
    busy, other = Wire(pool.address), Wire(pool.address)
    assert busy.login("ro_lock", "postgres", "word")[-1].type == "Z"
    assert busy.value("select 1") == "1"
    assert [m.type for m in busy.simple("begin; select 1")][-1] == "Z"
    server.rows("alter role ro_lock nologin")
    try:
        assert other.login("ro_lock", "postgres", "word")[-1].type == "Z"
        busy.simple("commit")
        assert next(m for m in other.simple("select 1") if m.type == "E").sqlstate == "28000"
        server.rows("alter role ro_lock login")
        assert other.value("select 1") == "1", "the session lives on"
    finally:
        server.rows("alter role ro_lock login")
        busy.bye()
        other.bye()


def test_a_server_that_does_not_say(server, pools):
    """Who may not read pg_roles is not kept out by that; the log says so, once."""
    pool = pools()
    server.rows("revoke select on pg_roles from public")
    try:
        for _ in range(4):
            assert come(pool.address, "ro_again")[0] == "in"
        assert pool.log().count('does not say whether role "ro_again" may log in (SQLSTATE 42501)') == 1
        assert len(pids(server, "ro_again").split(",")) == 1
    finally:
        server.rows("grant select on pg_roles to public")
