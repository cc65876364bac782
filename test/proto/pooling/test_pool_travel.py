# SPDX-License-Identifier: PostgreSQL
"""Idle clients go to another worker: nothing of their sessions is lost, nobody notices.

With pool_test_rotate and worker_fill each client goes to the next worker behind every exchange.
"""
import os
import signal

import pytest

from pgt import waits
from pgt.wire import SYNC, WireClosed, bind, cancel, close, describe, execute, parse, query

from pooling_house import login, states, table

MODE = {"pool_mode": "transaction", "num_init_children": 2, "default_pool_size": 4}
ROTATE = {**MODE, "pool_test_rotate": True, "worker_fill": 1}


def rows_of(pool) -> list[dict[str, str]]:
    """SHOW POOL_CLIENTS. Who is on the way to another worker is not seen for a moment."""
    asks = login(pool, application_name="asks")
    found = table(asks, "show pool_clients")
    asks.bye()
    return found


def workers_of(pool, *names: str) -> dict[str, str]:
    """Process id of the worker by application_name, once all of those names have one."""
    def look() -> dict[str, str] | None:
        found = {row["application_name"]: row["pid"] for row in rows_of(pool)}
        return found if set(names) <= set(found) else None

    return waits.wait_for(f"{names} are seen", look)


def row_of(pool, name: str) -> dict[str, str]:
    """The client's row in SHOW POOL_CLIENTS."""
    (row,) = waits.wait_for(f"{name} is seen", lambda: [row for row in rows_of(pool) if row["application_name"] == name])
    return row


def walk(pool, w, name: str, times: int = 2) -> None:
    """Until the client has been with another worker so many times."""
    for _ in range(times):
        before = workers_of(pool, name)[name]

        def is_elsewhere(before=before) -> bool:
            w.simple("select 1")
            return workers_of(pool).get(name, before) != before

        waits.wait_for("another worker", is_elsewhere)


@pytest.fixture(name="rotating")
def rotating_pool(pg, start_pool):  # pylint: disable=redefined-outer-name
    return start_pool(pg.address, **ROTATE)


def test_few_workers_do_little_work(pg, start_pool):  # pylint: disable=redefined-outer-name
    """Clients that were spread come together when they do something, but only those that do."""
    pool = start_pool(pg.address, **{**MODE, "worker_fill": 0})
    clients = [login(pool, application_name=f"c{i}") for i in range(6)]
    quiet = [login(pool, application_name=f"q{i}") for i in range(6)]
    before = workers_of(pool)
    assert len(set(before.values())) == 2, before
    pool.reload(worker_fill=1)

    def are_together() -> bool:
        for w in clients:
            assert w.value("select 1") == "1"
        now = workers_of(pool, *(f"c{i}" for i in range(6)))
        return len({now[f"c{i}"] for i in range(6)}) == 1

    waits.wait_for("one worker for all", are_together)
    now = workers_of(pool)
    assert [now[f"q{i}"] for i in range(6)] == [before[f"q{i}"] for i in range(6)]
    for w in quiet:
        assert w.value("select 1") == "1"
    late = [login(pool, application_name=f"l{i}") for i in range(6)]
    now = workers_of(pool, "c0", *(f"l{i}" for i in range(6)))
    assert {now[f"l{i}"] for i in range(6)} == {now["c0"]}
    for w in late:
        w.bye()


def test_who_is_spread_stays(pg, start_pool):  # pylint: disable=redefined-outer-name
    """worker_fill = 0: from the first client on, and for ever."""
    pool = start_pool(pg.address, **{**MODE, "worker_fill": 0})
    clients = [login(pool, application_name=f"c{i}") for i in range(6)]
    before = workers_of(pool)
    assert len(set(before.values())) == 2, before
    began = waits.now()
    while waits.now() < began + 0.8:
        for w in clients:
            assert w.value("select 1") == "1"
    now = workers_of(pool)
    assert all(now[f"c{i}"] == before[f"c{i}"] for i in range(6))


def test_a_busy_worker_gives_clients_away(pg, start_pool):  # pylint: disable=redefined-outer-name
    """Those who are at work, half of them, and back when there is little to do. What is little and much is a setting here."""
    pool = start_pool(pg.address, **MODE, worker_fill=1, pool_test_load=1)
    clients = [login(pool, application_name=f"c{i}") for i in range(8)]
    quiet = [login(pool, application_name=f"q{i}") for i in range(4)]
    before = workers_of(pool)

    def work() -> list[int]:
        """How many of them are in each worker, the fewest first."""
        for w in clients * 5:
            assert w.value("select 1") == "1"
        now = [pid for name, pid in workers_of(pool).items() if name.startswith("c")]
        return sorted(now.count(pid) for pid in set(now))

    waits.wait_for("they are together", lambda: len(work()) == 1)
    pool.reload(pool_test_load=10000)
    waits.wait_for("they are spread", lambda: len(work()) == 2 and min(work()) >= 2)
    now = workers_of(pool)
    assert [now[f"q{i}"] for i in range(4)] == [before[f"q{i}"] for i in range(4)]
    pool.reload(pool_test_load=1)
    waits.wait_for("they are together again", lambda: len(work()) == 1)
    for w in clients + quiet:
        assert w.value("select 1") == "1"


def test_session_comes_along(rotating):
    w = login(rotating, application_name="me", options="-c work_mem=3MB")
    w.simple("set search_path = pg_catalog, public")
    w.simple("set my.own = 'kept'")
    w.simple("set datestyle = 'SQL, DMY'")
    w.send(parse("select $1::int + 1", "named", [23]), parse("select $1::text || 'x'", ""), SYNC)
    w.ready()
    w.send(describe("named"), SYNC)
    w.ready()
    first = row_of(rotating, "me")
    for _ in range(3):
        walk(rotating, w, "me")
        assert [w.value(f"show {name}") for name in ("work_mem", "search_path", "my.own", "datestyle")] == \
            ["3MB", "pg_catalog, public", "kept", "SQL, DMY"]
        w.send(bind(["41"], name="named"), execute(), SYNC)
        assert [m.row() for m in w.ready() if m.type == "D"] == [[b"42"]]
    now = row_of(rotating, "me")
    for column in ("id", "client_port", "application_name", "connected_at", "pool_mode"):
        assert now[column] == first[column], column
    assert now["statement"] == "show datestyle", now
    w.simple("reset work_mem")
    walk(rotating, w, "me", 1)
    assert w.value("show work_mem") == "3MB"
    w.send(close("named"), SYNC)
    w.ready()
    walk(rotating, w, "me", 1)
    w.send(bind(["41"], name="named"), execute(), SYNC)
    assert states(w.ready()) == ["26000"]
    w.simple("set application_name = 'other'")
    walk(rotating, w, "other", 1)
    assert w.value("show application_name") == "other"


def test_unnamed_statement_comes_along(rotating):
    w = login(rotating, application_name="me")
    w.send(parse("select $1::int + 1", "", [23]), SYNC)
    w.ready()
    seen = set()

    def has_been_with_both() -> bool:
        w.send(bind(["41"]), execute(), SYNC)
        assert [m.row() for m in w.ready() if m.type == "D"] == [[b"42"]]
        seen.add(workers_of(rotating, "me")["me"])
        return len(seen) == 2

    waits.wait_for("both workers", has_been_with_both)


def test_key_comes_along(rotating, pg):  # pylint: disable=redefined-outer-name
    """A cancel request hits the client wherever it is, and nobody else."""
    w = login(rotating, application_name="me")
    other = login(rotating, application_name="other")
    assert w.pid != other.pid
    for times in (1, 1):
        walk(rotating, w, "me", times)
        other.send(query("select pg_sleep(0.5)"))
        w.send(query("select pg_sleep(60) /* mine */"))
        waits.wait_for("its statement runs", lambda: pg.value(
            "select count(*) from pg_stat_activity where state = 'active' and query like '%mine%' and query like '%60%'"
            " and pid <> pg_backend_pid()") == "1")
        cancel(rotating.address, w.pid, w.key)
        assert states(w.ready()) == ["57014"]
        assert states(other.ready()) == []


def test_orders_find_it(rotating):
    w = login(rotating, application_name="me")
    walk(rotating, w, "me", 1)
    asks = login(rotating, application_name="asks")
    number = row_of(rotating, "me")["id"]
    asks.simple(f"pgpool kill client {number}")
    assert states(w.read_eof()) == ["57P01"]


@pytest.mark.parametrize("tie, untie", [
    ("listen a_channel", "unlisten a_channel"),
    ("create temp table tied(x int)", "drop table tied"),
    ("prepare tied as select 1", "deallocate tied"),
])
def test_who_is_tied_stays(rotating, tie, untie):
    """What cannot be told to another worker keeps the client, as long as it is there."""
    w = login(rotating, application_name="me")
    assert states(w.simple(tie)) == []
    home = workers_of(rotating, "me")["me"]
    for _ in range(5):
        w.simple("select 1")
        assert workers_of(rotating, "me")["me"] == home
    w.simple(untie)
    walk(rotating, w, "me", 1)


def test_within_a_transaction_it_stays(rotating):
    w = login(rotating, application_name="me")
    w.simple("begin")
    w.simple("select 1")
    home = workers_of(rotating, "me")["me"]
    for _ in range(5):
        w.simple("select 1")
        assert workers_of(rotating, "me")["me"] == home
    w.simple("commit")
    walk(rotating, w, "me", 1)


@pytest.mark.parametrize("links", [4, 1], ids=["idle", "waiting"])
def test_pipelines_of_many(pg, start_pool, links):  # pylint: disable=redefined-outer-name
    """Clients that send ahead of their answers, with a name for each: nobody gets another's."""
    pool = start_pool(pg.address, **{**ROTATE, "default_pool_size": links})
    clients = [login(pool, application_name=f"c{i}") for i in range(8)]
    for i, w in enumerate(clients):
        w.send(parse(f"select {i} * 1000 + $1::int", "s", [23]), SYNC)
        w.ready()
    for turn in range(60):
        for w in clients:
            w.send(bind([str(turn)], name="s"), execute(), SYNC, query(f"select {turn}"))
        for i, w in enumerate(clients):
            found = [m.row() for m in w.ready(2) if m.type == "D"]
            assert found == [[str(i * 1000 + turn).encode()], [str(turn).encode()]]


@pytest.mark.parametrize("links", [4, 1], ids=["idle", "waiting"])
def test_counts_when_a_worker_dies(pg, start_pool, links):  # pylint: disable=redefined-outer-name
    """Killed while clients come and go: they are counted as they are afterwards."""
    pool = start_pool(pg.address, **{**ROTATE, "max_db_client_connections": 30, "default_pool_size": links})
    clients = [login(pool, application_name=f"c{i}") for i in range(16)]
    for w in clients:
        w.send(*[query("select 1")] * 40)
    victim = int(workers_of(pool, "c3")["c3"])
    os.kill(victim, signal.SIGKILL)
    left = 0
    for w in clients:
        try:
            w.ready(40)
            left += 1
        except (WireClosed, OSError):
            w.sock.close()

    def counts_are_true() -> bool:
        try:
            asks = login(pool, application_name="asks")
        except WireClosed:
            return False  # it was on its way to the worker that died
        limits = table(asks, "show pool_limits")
        rows = table(asks, "show pool_clients")
        asks.bye()
        used = {int(row["used"]) for row in limits if row["name"] in ("max_clients", "max_db_client_connections")}
        return len(rows) == left + 1 and used == {left + 1}

    waits.wait_for("true counts", counts_are_true)


def test_numbers_when_a_worker_is_replaced(pg, start_pool):  # pylint: disable=redefined-outer-name
    """Those of clients that have left a worker are not given again by its successor."""
    pool = start_pool(pg.address, **ROTATE)
    clients = [login(pool, application_name=f"c{i}") for i in range(6)]
    home = workers_of(pool, "c0")["c0"]

    def are_away() -> bool:
        seen = workers_of(pool)
        where = [seen.get(f"c{i}", home) for i in range(6)]  # who is on the way is not seen
        for i, w in enumerate(clients):
            if seen.get(f"c{i}") == home:
                w.simple("select 1")
        return home not in where

    waits.wait_for("an empty worker", are_away)
    before = pool.pids()
    os.kill(int(home), signal.SIGKILL)
    waits.wait_for("its successor", lambda: int(home) not in pool.pids() and len(pool.pids()) == len(before))
    late = [login(pool, application_name=f"l{i}") for i in range(12)]
    asks = login(pool)
    rows = table(asks, "show pool_clients")
    numbers = [row["id"] for row in rows]
    assert len(set(numbers)) == len(numbers), rows
    pids = [w.pid for w in clients + late]
    assert len(set(pids)) == len(pids), pids
