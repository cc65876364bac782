# SPDX-License-Identifier: PostgreSQL
"""test_admin_stats: SHOW POOL_STATS, POOL_LINKS, POOL_LIMITS, POOL_PINS: figures that are known."""
import os
import signal

from pgt import waits
from pgt.wire import FLUSH, SYNC, Wire, bind, close, describe, execute, parse, query

from test_admin_orders import login, report


def stats_of(w: Wire, database: str) -> dict[str, int]:
    rows = [r for r in report(w, "pool_stats") if r["database"] == database]
    assert len(rows) == 1, rows
    return {k: int(v) for k, v in rows[0].items() if k != "database"}


def test_counts(pg, start_pool):
    """Statements, transactions and bytes of two workers are added up; pgpool's own commands do not count."""
    pool = start_pool(pg.address, num_init_children=2)
    admin = login(pool)
    clients = [login(pool, database="other_db") for _ in range(4)]
    for w in clients:
        for _ in range(5):
            w.simple("select 1")
        w.simple("begin")
        w.simple("select 2")
        w.simple("commit")
        w.simple("show pool_version")
    waits.wait_for("the workers have counted all", lambda: stats_of(admin, "other_db")["transactions"] >= 4 * 6)
    got = stats_of(admin, "other_db")
    assert got["logins"] == got["assignments"] == 4
    assert got["queries"] == 4 * 8
    assert got["transactions"] == 4 * 6
    sent = 4 * (5 * len(b"Q....select 1.") + len(b"Q....begin.") + len(b"Q....select 2.") + len(b"Q....commit."))
    assert got["bytes_received"] == sent
    assert got["bytes_sent"] > sent
    assert not any(r["database"] not in ("postgres", "other_db") for r in report(admin, "pool_stats"))


def test_pipeline_counts(pg, start_pool):
    """What is sent without waiting counts statement by statement."""
    pool = start_pool(pg.address, num_init_children=1)
    w = login(pool, database="other_db")
    w.send(*[part for _ in range(50) for part in (parse("select 1"), bind(), execute(), SYNC)])
    w.ready(50)
    got = stats_of(w, "other_db")
    assert (got["queries"], got["transactions"]) == (50, 50)


SEVERAL = [parse("select 1"), bind(), describe("", "P"), execute(), SYNC, query("select 2;"),
           parse("insert into kept values (1)", "w"), bind(name="w"), execute(), execute(), FLUSH, bind(name="w"), execute(),
           SYNC, query("update kept set a = 2"), parse("show pool_version"), bind(), execute(), SYNC, parse("select x"), bind(),
           execute(), parse("select 7"), SYNC, close("w"), parse("delete from kept", "w"), bind(name="w"), execute(), SYNC,
           query("pgpool show pool_mode"), query("select 3 -- last")]


def test_one_read_or_many(pg, start_pool):
    """Messages that come together are looked at together: the answers are the same as one by one, and so is what is counted."""
    pg.rows("create table if not exists kept (a int); truncate kept")
    pool = start_pool(pg.address, num_init_children=1)
    watcher, found = login(pool), []
    for together in (False, True):
        w = login(pool, application_name=f"together_{together:d}")
        before = counted(watcher)
        took = []
        if together:
            w.send(*SEVERAL)
            took = w.ready(SEVERAL.count(SYNC) + 4)
        else:
            for message in SEVERAL:
                w.send(message)
                if message == SYNC or message[:1] == b"Q":
                    took += w.ready()
        row = [r for r in report(watcher, "pool_clients") if r["application_name"] == f"together_{together:d}"]
        after = counted(watcher)
        found.append(("".join(m.type for m in took), [m.body for m in took if m.type == "C"], row[0]["statement"],
                      {name: after[name] - before[name] for name in after}))
        w.bye()
    assert found[0] == found[1]
    assert found[0][2] == "select 3 -- last" and found[0][3]["select"] == 4


def counted(w: Wire) -> dict[str, int]:
    nodes = report(w, "pool_backend_stats")
    figures = {name: int(value) for name, value in stats_of(w, "postgres").items() if not name.endswith("_us")}
    return figures | {name[:-4]: int(value) for name, value in nodes[0].items() if name.endswith("_cnt")}


def test_quantiles(pg, start_pool):
    """Nine quick ones and a slow one: the median is quick, the 99th percentile slow, within 1/16."""
    pool = start_pool(pg.address, num_init_children=1)
    w = login(pool, database="other_db")
    took = []  # as it is seen from here, which is longer
    for sql in ["select 1"] * 9 + ["select pg_sleep(0.5)"]:
        begin = waits.now()
        w.simple(sql)
        took.append((waits.now() - begin) * 1e6)
    quick, most, total = sorted(took)[len(took) // 2] * 17 / 16, max(took) * 17 / 16, sum(took) + 1
    got = stats_of(w, "other_db")
    assert got["query_p50_us"] < got["query_p99_us"]
    assert 0 < got["query_p50_us"] < quick
    assert 470000 < got["query_p99_us"] < most
    assert got["query_p999_us"] == got["query_p99_us"]
    assert 500000 <= got["query_time_us"] < total
    assert got["transaction_time_us"] >= got["query_time_us"]
    assert got["transaction_p50_us"] < got["transaction_p99_us"] and 470000 < got["transaction_p999_us"] < most
    node = report(w, "pool_node_times")[0]
    assert int(node["requests"]) >= 10 and int(node["query_time_us"]) >= 500000
    assert 0 < int(node["query_p50_us"]) < 470000 < int(node["query_p999_us"]) < most


def test_wait_is_counted(pg, start_pool):
    pool = start_pool(pg.address, max_backend_connections=1, num_init_children=1)
    begin = waits.now()
    holder = login(pool, database="other_db")
    first_us = (waits.now() - begin) * 1e6  # it had to wait for a connection to be opened
    w = Wire(pool.address, seconds=20)
    w.send_startup("postgres", "other_db")

    def long_waits() -> list[dict[str, str]]:
        found = report(holder, "pool_queue")
        return found if found and int(found[0]["longest_wait_ms"]) >= max(400, first_us * 2 / 1000) else []
    rows = waits.wait_for("it waits for long", long_waits)
    assert [(r["database"], r["username"], r["waiting"], r["reason"]) for r in rows] == [
        ("other_db", "postgres", "1", "node limit")]
    assert w.is_quiet(0)
    limits = {(r["name"], r["node"]): r for r in report(holder, "pool_limits")}
    node = limits[("max_backend_connections", "0")]
    assert (node["used"], node["limit"], node["waiting"]) == ("1", "1", "1")
    assert limits[("max_clients", "")]["used"] == "2"
    holder.bye()
    assert w.authenticate("postgres", "")[-1].type == "Z"
    got = stats_of(w, "other_db")
    assert got["wait_time_us"] >= 400000
    assert got["wait_p50_us"] <= first_us * 17 / 16 < got["wait_p999_us"] >= 400000


def test_stats_outlive_a_worker(pg, start_pool):
    """Counters never go back, also when the worker that counted is gone."""
    pool = start_pool(pg.address, num_init_children=1)
    w = login(pool, database="other_db")
    for _ in range(10):
        w.simple("select 1")
    before = stats_of(w, "other_db")
    pid = int(report(w, "pool_clients")[0]["pid"])
    os.kill(pid, signal.SIGKILL)
    w.read_eof(10)

    def again() -> bool:
        with Wire(pool.address) as new:
            if new.login(database="other_db")[-1].type != "Z":
                return False
            new.simple("select 1")
            after = stats_of(new, "other_db")
            assert after["queries"] == before["queries"] + 1
            return after["logins"] == before["logins"] + 1

    waits.wait_for("a worker serves again", again)


def test_links(pg, start_pool):
    pool = start_pool(pg.address, num_init_children=1)
    w = login(pool)
    other = login(pool, database="other_db")
    clients = {r["server_pid"]: r["id"] for r in report(w, "pool_clients")}
    other.simple("begin")
    rows = {r["server_pid"]: r for r in report(w, "pool_links")}
    row = rows[str(other.pid)]
    assert (row["database"], row["user"], row["node"], row["state"]) == ("other_db", "postgres", "0", "idle in transaction")
    assert row["client_id"] == clients[str(other.pid)] and row["pin_reason"] == "session mode"
    assert row["statement"] == "begin" and row["tls"] == "false"
    pid = other.pid
    other.bye()
    waits.wait_for("it is idle", lambda: next(
        r for r in report(w, "pool_links") if r["server_pid"] == str(pid))["state"] == "idle")
    row = next(r for r in report(w, "pool_links") if r["server_pid"] == str(pid))
    assert row["client_id"] == "" and row["returned_at"]


def test_pins(pg, start_pool):
    pool = start_pool(pg.address, num_init_children=2)
    w = login(pool)
    for _ in range(3):
        login(pool, database="other_db").bye()
    stays = login(pool, database="other_db")
    rows = [r for r in report(w, "pool_pins") if r["database"] == "other_db"]
    assert len(rows) == 1 and (rows[0]["reason"], rows[0]["total"]) == ("session mode", "4")
    waits.wait_for("one is tied now", lambda: [
        r["clients"] for r in report(w, "pool_pins") if r["database"] == "other_db"] == ["1"])
    stays.bye()
