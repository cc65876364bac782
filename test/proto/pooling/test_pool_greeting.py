# SPDX-License-Identifier: PostgreSQL
"""What servers say at a login is known to all workers: where all links are in use, a client is let in by what
another worker's client was told, and waits for a link only with its first statement.
"""
import os
import signal

import pytest
from pooling_house import login, states, table

from pgt import waits
from pgt.wire import Wire, WireClosed, query, startup

ONE_LINK = {"pool_mode": "transaction", "num_init_children": 2, "worker_fill": 0, "default_pool_size": 1,
            "query_wait_timeout": 30}


def holder_of(pool, **params) -> Wire:
    """It has the only link."""
    w = login(pool, **params)
    w.simple("begin")
    w.simple("select 1")
    return w


def workers_of(w: Wire) -> dict[str, str]:
    return {row["application_name"]: row["pid"] for row in table(w, "show pool_clients")}


def come(pool, n: int, **params) -> list[Wire]:
    """Clients that are let in at once, though no link is free."""
    return [login(pool, application_name=f"c{i}", **params) for i in range(n)]


@pytest.mark.parametrize("params", [{}, {"DateStyle": "SQL, DMY", "options": "-c timezone=Asia/Tokyo"}],
                         ids=["plain", "settings"])
def test_first_client_of_a_worker(pg, start_pool, params):  # pylint: disable=unused-argument
    pool = start_pool(pg.address, **ONE_LINK)
    holder = holder_of(pool, application_name="holder", **params)
    clients = come(pool, 5, **params)
    assert len(set(workers_of(clients[0]).values())) == 2
    for i, w in enumerate(clients):
        assert w.status == {**holder.status, "application_name": f"c{i}"}
        w.send(query("show timezone; show datestyle"))
    holder.simple("commit")
    for w in clients:
        assert [m.row()[0].decode() for m in w.ready() if m.type == "D"] == \
            [holder.status["TimeZone"], holder.status["DateStyle"]]
    for w in (holder, *clients):
        w.bye()


def test_role_has_other_settings_by_now(pg, start_pool):
    """Who was greeted with what was true before is told what is true with its first statement."""
    pool = start_pool(pg.address, **ONE_LINK)
    first = login(pool, application_name="first")
    pg.rows("alter role postgres set timezone = 'Asia/Tokyo'")
    try:
        pg.end_process(first.value("select pg_backend_pid()"))
        first.simple("begin")
        assert first.value("show timezone") == "Asia/Tokyo"
        clients = come(pool, 4)
        assert len(set(workers_of(clients[0]).values())) == 2
        first.simple("commit")
        for w in clients:
            assert w.value("show timezone") == "Asia/Tokyo"
            assert w.status["TimeZone"] == "Asia/Tokyo"
        assert first.status["TimeZone"] == "Asia/Tokyo"
    finally:
        pg.rows("alter role postgres reset timezone")


def test_what_a_dead_worker_knew(pg, start_pool):
    """Its successor's first client needs no link, for the other worker has it."""
    pool = start_pool(pg.address, **ONE_LINK)
    holder = holder_of(pool, application_name="holder")
    others = come(pool, 3)
    found = workers_of(others[0])
    victim = next(pid for pid in found.values() if pid != found["holder"])
    os.kill(int(victim), signal.SIGKILL)

    def is_back() -> bool:
        try:
            w = login(pool, application_name=f"new{len(others)}")
        except (WireClosed, OSError):
            return False  # it was on its way to the worker that died
        others.append(w)
        return len(set(workers_of(w).values())) == 2

    waits.wait_for("clients in both workers", is_back)
    assert states(holder.simple("commit")) == []


def test_let_in_while_paused(pg, start_pool):
    """Who was let in without a link hears on its first one what is so for it, and nothing of who had that before."""
    pool = start_pool(pg.address, **ONE_LINK | {"num_init_children": 1})
    first = login(pool, application_name="the other's", TimeZone="Asia/Tokyo")
    assert not states(first.simple("set intervalstyle to iso_8601; set role trust_user"))
    assert not states(first.simple("pgpool pause"))
    second = login(pool, application_name="own")
    assert not states(first.simple("pgpool resume"))
    assert first.value("show intervalstyle") == "iso_8601"
    for sql in ("select 1", "select 2"):
        told = [m.status() for m in second.simple(sql) if m.type == "S"]
        assert not {"the other's", "Asia/Tokyo", "iso_8601"} & {value for _, value in told}, told
        assert ("is_superuser", "off") not in told
    for name in ("application_name", "TimeZone", "IntervalStyle", "is_superuser"):
        assert second.status[name] == second.value(f"show {name}")
    assert second.status["application_name"] == "own" and second.status["is_superuser"] == "on"
    for w in (first, second):
        w.bye()


def test_a_reload_heard_before_a_session_keeps_its_link(pg, start_pool):
    """The server tells it with the answer to what brings the link up to date; no later loan does."""
    pool = start_pool(pg.address, **ONE_LINK)
    other, listener = come(pool, 2)
    other.simple("set work_mem = '5MB'")
    before = pg.value("show datestyle")
    try:
        pg.rows("alter system set datestyle = 'SQL, DMY'")
        pg.reload()
        waits.wait_for("it is known", lambda: pg.value("show datestyle") == "SQL, DMY")
        listener.simple("listen x")
        assert listener.value("show datestyle") == listener.status["DateStyle"] == "SQL, DMY"
    finally:
        pg.rows("alter system reset datestyle")
        pg.reload()
        waits.wait_for("it is as it was", lambda: pg.value("show datestyle") == before)
    for w in (other, listener):
        w.bye()


@pytest.mark.parametrize("encoding", ["SJIS", "GBK"])
def test_a_backslash_that_is_half_a_character(pg, start_pool, encoding):
    """A start-up parameter is said again on a connection that is there already. Whatever its bytes mean in the client's encoding,
    and where the server takes \\' for a quote, it does not end early and go on as SQL."""
    pg.rows("drop role if exists quoter; create role quoter login; alter role quoter set backslash_quote = on")
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", default_pool_size=1)
    with Wire(pool.address, seconds=20) as first:
        assert first.login("quoter", "postgres")[-1].type == "Z"
        assert first.value("show backslash_quote") == "on"
    broken = b"\x95\\', false), set_config($$application_name$$, $$broken$$, false) -- "
    with Wire(pool.address, seconds=20) as w:
        w.send(startup([("user", "quoter"), ("database", "postgres"), ("client_encoding", encoding), ("my.own", broken)]))
        found = w.authenticate("quoter", "")
        assert found[-1].type == "E" and found[-1].sqlstate == "22021", found[-1]
    with Wire(pool.address, seconds=20) as after:
        assert after.login("quoter", "postgres")[-1].type == "Z"
        assert after.value("show application_name") == ""
