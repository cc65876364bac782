# SPDX-License-Identifier: PostgreSQL
"""A client that waits for a link goes to the worker that has one, when that cannot come: with all it has sent.

One link with TLS for two workers. Clients are spread and stay where they are (worker_fill = 0), but for those who wait.
"""

import pytest

from pgt import certs, postgres, procs, waits
from pgt.wire import FLUSH, SYNC, Wire, bind, cancel, cancel_request, close, describe, execute, parse, query

from pooling_house import login, states, table

SETTINGS = {"pool_mode": "transaction", "num_init_children": 2, "default_pool_size": 1, "worker_fill": 0,
            "backend_ssl_mode0": "require", "query_wait_timeout": 20}
# pool_int.h: whoever waits longer than this is called for certain.
STUCK_S = 0.05
PID = "select pg_backend_pid()"


@pytest.fixture(name="tls_pg", scope="module")
def server_with_tls():
    server = postgres.start_postgres()
    certs.offer_tls(server)
    yield server
    server.stop()


@pytest.fixture(name="pool")
def pool_of_one(tls_pg, start_pool):
    return start_pool(tls_pg.address, **SETTINGS)


class House:
    """Clients of two workers, one of whom has the one link, in a transaction."""

    def __init__(self, pool):
        self.pool = pool
        self.asks = login(pool, application_name="asks")
        self.holder = self.asks
        self.pid = ""
        self.home = ""
        self.others: list[Wire] = []

    def worker_of(self, name: str) -> str:
        return {r["application_name"]: r["pid"] for r in table(self.asks, "show pool_clients")}.get(name, "")

    def hold_elsewhere(self, name: str) -> None:
        """Somebody takes the link who is not with that client's worker."""
        for _ in range(20):
            name_of = f"holder{len(self.others)}"
            holder = login(self.pool, application_name=name_of)
            a_while()  # a link that nobody uses is closed and opened where it is wanted
            holder.simple("begin")
            self.pid = holder.value(PID)
            self.home = self.worker_of(name_of)
            if self.home != self.worker_of(name):
                self.holder = holder
                return
            holder.simple("rollback")
            self.others.append(holder)  # as long as it is there, the next one goes elsewhere
        raise AssertionError("all clients are with one worker")

    def wait_for_waiting(self, n: int) -> None:
        waits.wait_for(f"{n} that wait", lambda: sum(
            r["state"] == "waiting" for r in table(self.asks, "show pool_clients")) == n)
        a_while()

    def let_go(self) -> None:
        self.holder.simple("commit")


def a_while() -> None:
    began = waits.now()
    waits.wait_for("a while", lambda: waits.now() > began + STUCK_S)


def rows(messages) -> list:
    return [m.row() for m in messages if m.type == "D"]


FIRST = {
    "simple": ([query(PID)], 1),
    "two": ([query(PID), query("select 'second'")], 2),
    "string": ([query(PID + "; select 'second'")], 1),
    "extended": ([parse(PID, ""), bind([]), describe("", "P"), execute(), SYNC], 1),
    "flushed": ([parse(PID, ""), bind([]), execute(), FLUSH, SYNC], 1),
    "named": ([bind([], name="mine"), execute(), SYNC], 1),
    "closed": ([bind([], name="mine"), execute(), close("mine"), SYNC, query("select 'second'")], 2),
    "begin": ([query("begin"), query(PID), query("commit")], 3),
    "begin extended": ([parse("begin", ""), bind([]), execute(), SYNC, parse(PID, ""), bind([]), execute(), SYNC,
                        query("commit")], 3),
    "set": ([query("set work_mem = '3MB'"), query(PID), query("show work_mem")], 3),
    "long": ([query(PID + " -- " + "x" * 20000)], 1),
}


@pytest.mark.parametrize("first", FIRST)
def test_it_comes_to_the_link(pool, first):
    house = House(pool)
    w = login(pool, application_name="waits", options="-c statement_timeout=12345")
    w.send(parse(PID, "mine"), SYNC)
    w.ready()
    w.simple("set my.own = 'kept'")
    house.hold_elsewhere("waits")
    messages, answers = FIRST[first]
    w.send(*messages)
    house.wait_for_waiting(1)
    assert house.worker_of("waits") != house.home
    house.let_go()
    found = w.ready(answers)
    assert states(found) == []
    assert rows(found)[0] == [house.pid.encode()], "not by another link"
    assert house.worker_of("waits") == house.home
    if first == "set":
        assert rows(found)[1] == [b"3MB"]
    elif answers == 2 or first == "string":
        assert rows(found)[1] == [b"second"]
    assert [w.value(f"show {name}") for name in ("my.own", "statement_timeout")] == ["kept", "12345ms"]
    if first != "closed":
        w.send(bind([], name="mine"), execute(), SYNC)
        assert rows(w.ready()) == [[house.pid.encode()]]


def test_virtual_transaction_comes_along(pool):
    """BEGIN was answered, and no server has seen it."""
    house = House(pool)
    w = login(pool, application_name="waits")
    house.hold_elsewhere("waits")
    w.simple("begin isolation level repeatable read read only")
    w.send(query("show transaction_isolation"))
    house.wait_for_waiting(1)
    house.let_go()
    assert rows(w.ready()) == [[b"repeatable read"]]
    assert house.worker_of("waits") == house.home
    assert w.value("show transaction_read_only") == "on"
    assert states(w.simple("select 1/0")) == ["22012"]
    assert states(w.simple("select 1")) == ["25P02"]
    w.simple("rollback")
    assert w.value("show transaction_read_only") == "off"


def test_it_keeps_its_place(pool, tls_pg):
    """First come, first served, but for one whose turn it is while the others are on their way."""
    house = House(pool)
    clients = {f"c{i}": login(pool, application_name=f"c{i}") for i in range(10)}
    house.asks.simple("create sequence if not exists turns")
    house.asks.simple("alter sequence turns restart")
    house.hold_elsewhere("c0")
    here = [name for name in clients if house.worker_of(name) == house.home]
    there = [name for name in clients if name not in here]
    assert len(here) > 2 and len(there) > 1
    order = [there[0], there[1], here[0], here[1], here[2]]
    with login(tls_pg) as lock:
        lock.rows("select pg_advisory_lock(5)")
        for i, name in enumerate(order):  # the one whose turn it is has the link until the others have come
            clients[name].send(query(f"select nextval('turns'), {'pg_advisory_xact_lock(5)' if name == here[0] else 'pg_sleep(0.05)'}"))
            house.wait_for_waiting(i + 1)
        house.let_go()
        waits.wait_for("all have come", lambda: {house.worker_of(name) for name in order} == {house.home})
        lock.rows("select pg_advisory_unlock(5)")
        turns = [int(rows(clients[name].ready())[0][0]) for name in order]
    assert turns == [2, 3, 1, 4, 5]
    assert {house.worker_of(name) for name in order} == {house.home}


@pytest.mark.parametrize("why", ["too long", "prepared by SQL"])
def test_who_cannot_come_gets_a_link(pool, why):
    """Behind each exchange of the holder's the link is free for a moment."""
    house = House(pool)
    w = login(pool, application_name="waits")
    if why == "prepared by SQL":
        assert states(w.simple("prepare tied as select 1")) == []
    house.hold_elsewhere("waits")
    home = house.worker_of("waits")
    w.send(query(PID + (" -- " + "x" * 40000 if why == "too long" else "")))
    house.wait_for_waiting(1)
    house.let_go()

    def is_served() -> bool:
        house.holder.simple("select 1")
        return not w.is_quiet(0.001)

    waits.wait_for("an answer", is_served)
    assert rows(w.ready()) != [[house.pid.encode()]], "by a link of its own worker"
    assert house.worker_of("waits") == home


def test_it_can_be_cancelled_here_and_there(pool):
    house = House(pool)
    w = login(pool, application_name="waits")
    house.hold_elsewhere("waits")
    w.send(query("select 1"))
    house.wait_for_waiting(1)
    cancel(pool.address, w.pid, w.key)
    assert states(w.ready()) == ["57014"]
    w.send(query("select pg_sleep(60) /* mine */"))
    house.wait_for_waiting(1)
    house.let_go()
    waits.wait_for("it has come", lambda: house.worker_of("waits") == house.home)
    cancel(pool.address, w.pid, w.key)
    assert states(w.ready()) == ["57014"]
    assert states(house.holder.simple("select 1")) == []


def test_it_can_be_cancelled_on_its_way(pool):
    """A client's old and new worker are stopped, one after the other: the request comes while it is in neither."""
    house = House(pool)
    w = login(pool, application_name="waits")
    house.hold_elsewhere("waits")
    away = house.worker_of("waits")
    asks = [login(pool, application_name=f"asks{i}") for i in range(6)]
    sees = next(a for i, a in enumerate(asks) if house.worker_of(f"asks{i}") == away)
    w.send(query("select pg_sleep(60)"))
    house.wait_for_waiting(1)
    procs.stand_still(int(away))
    try:
        house.let_go()
        for _ in range(2):  # who answers these is done with what the end of the transaction began: it has been called
            table(house.holder, "show pool_version")
        a_while()
        procs.stand_still(int(house.home))
        procs.go_on(int(away))
        waits.wait_for("it has left", lambda: "waits" not in {
            r["application_name"] for r in table(sees, "show pool_clients")})
        sock = pool.address.connect()
        sock.sendall(cancel_request(w.pid, w.key))
        a_while()
    finally:
        procs.go_on(int(away))
        procs.go_on(int(house.home))
    assert states(w.ready()) == ["57014"]
    sock.close()
    assert w.value("select 1") == "1"


def test_a_busy_worker_gives_places_away(tls_pg, start_pool):
    """Nobody is given to a worker without links, but links are opened there, and clients come to them."""
    pool = start_pool(tls_pg.address, **{**SETTINGS, "default_pool_size": 4, "worker_fill": 50, "pool_test_load": 1})
    clients = [login(pool, application_name=f"c{i}") for i in range(16)]
    asks = login(pool, application_name="asks")
    held = []

    def work() -> int:
        """How many workers they are with."""
        for w in clients:
            w.send(query("select pg_sleep(0.005)"), query("select 1") * 20)  # so that it costs something, on any machine
        for w in clients:
            assert states(w.ready(21)) == []
        held.append(len(tls_pg.held("application_name <> 'asks'")))
        return len({r["pid"] for r in table(asks, "show pool_clients") if r["application_name"].startswith("c")})

    waits.wait_for("they are together", lambda: work() == 1)
    pool.reload(pool_test_load=10000)
    waits.wait_for("they are spread", lambda: work() == 2)
    assert max(held) <= 5, "four, and one that is ending"
    for w in clients:
        assert w.value("select 1") == "1"


def test_who_goes_while_it_waits(pool):
    """Its place is not kept, and the link is for others."""
    house = House(pool)
    gone = login(pool, application_name="gone")
    house.hold_elsewhere("gone")
    gone.send(query(PID))
    house.wait_for_waiting(1)
    gone.sock.close()
    house.let_go()
    waits.wait_for("it is gone", lambda: house.worker_of("gone") == "")
    assert house.holder.value("select 1") == "1"
