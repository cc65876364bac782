# SPDX-License-Identifier: PostgreSQL
"""test_pool_churn: a saturated pool keeps its server connections: they change hands, also between workers, and are
not closed and opened anew. Where one has to be closed for another that is seldom. Nor do clients notice when a worker that
they are not in is killed meanwhile."""
import os
import select
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pgt import certs, postgres, procs, waits
from pgt.wire import SYNC, Wire, WireClosed, bind, execute, parse, query

from test_admin_orders import report
from test_pool_limits import BY_TCP, login, workers

LINKS = 8
CLIENTS = 64
SLACK = 3 if postgres.major() >= 15 else 4  # before, a session may be counted half a second late
# pool_int.h, POOL_SWAP_STARVED_US: within one limit no more often than this.
SWAPS_PER_S = 20
SLEEP = "\\set us random(1000, 9000)\nselect pg_sleep(:us / 1000000.0);\n"
WRITE = "update churn set n = n + 1 where id = :client_id;\n"


@pytest.fixture(autouse=True)
def alone(pg) -> None:
    """Sessions are counted at the server, some of them when they end: those of other tests' proxies go first."""
    pg.end_sessions()


@pytest.fixture(scope="module")
def churn_pg(pg):
    """With a table of which each client has a row."""
    pg.rows("drop table if exists churn; create unlogged table churn (id int primary key, n int not null); "
            "insert into churn select i, 0 from generate_series(0, 999) i; grant all on churn to public")
    yield pg
    pg.rows("drop table churn")


@pytest.fixture(scope="module")
def tls_pg():
    """A server that offers TLS."""
    server = postgres.start_postgres()
    certs.offer_tls(server)
    yield server
    server.stop()


def opened(server) -> int:
    """Sessions that the server has had, of those that have run something."""
    if postgres.major() < 14:
        pytest.skip("PostgreSQL 13 does not count sessions")
    return int(server.value("select sum(sessions)::bigint from pg_stat_database"))


def bench(pool, text: str, clients=CLIENTS, user="trust_user", database="postgres", how="simple") -> str:
    """One second of a script. Prepared statements are prepared with the thread blocked: each client has its own, for
    the others hold the links."""
    script = procs.folder("script") / "s.sql"
    script.write_text(text, encoding="utf-8")
    threads = clients if how == "prepared" else 2
    return procs.run([str(postgres.client("pgbench")), "-n", "-h", "127.0.0.1", "-p", str(pool.port), "-U", user,
                      "-f", str(script), "-c", str(clients), "-j", str(min(threads, clients)), "-T", "1", "-M", how,
                      database])


def count(server, pool, jobs: list[dict]) -> tuple[int, float]:
    """Server sessions opened while all jobs run, and for how long they ran."""
    with ThreadPoolExecutor(len(jobs)) as threads:
        before, began = opened(server), time.monotonic()
        for done in [threads.submit(bench, pool, **job) for job in jobs]:
            done.result()
        return opened(server) - before, time.monotonic() - began


LOADS = {
    "simple": {"text": SLEEP},
    "extended": {"text": SLEEP, "how": "extended"},
    "prepared": {"text": SLEEP, "how": "prepared"},
    "transaction": {"text": "begin;\n" + WRITE + SLEEP + "commit;\n"},
    "transaction_extended": {"text": "begin;\n" + WRITE + SLEEP + "commit;\n", "how": "extended"},
    "transaction_prepared": {"text": "begin;\n" + WRITE + SLEEP + "commit;\n", "how": "prepared"},
    "rolled_back": {"text": "begin;\nsavepoint a;\n" + SLEEP + "rollback to a;\nrollback;\n"},
    "settings": {"text": "\\set w 1000 + :client_id\nset work_mem = :w;\n" + SLEEP + "set timezone = 'UTC';\n" + SLEEP},
    "set_local": {"text": "begin;\nset local work_mem = 1000;\n" + SLEEP + "commit;\n"},
    "pipeline": {"text": "\\startpipeline\n" + "select pg_sleep(0.001);\n" * 4 + "\\endpipeline\n", "how": "extended"},
    "cursor": {"text": "begin;\ndeclare c cursor for select generate_series(1, 9);\nfetch 3 from c;\n" + SLEEP +
               "close c;\ncommit;\n"},
    "temporary": {"text": "begin;\ncreate temp table t (i int) on commit drop;\n" + SLEEP + "commit;\nselect 1;\n"},
    "discard": {"text": SLEEP + "discard all;\n" + SLEEP},
    "sql_prepare": {"text": "prepare p as select pg_sleep(0.003);\nexecute p;\nexecute p;\ndeallocate p;\n"},
    "lock": {"text": "select pg_advisory_xact_lock(:client_id), pg_sleep(0.003);\n"},
}


@pytest.mark.parametrize("load", LOADS)
def test_links_stay(churn_pg, start_pool, load):
    pool = start_pool(churn_pg.address, pool_mode="transaction", default_pool_size=LINKS)
    found, _ = count(churn_pg, pool, [LOADS[load]])
    assert found <= LINKS + SLACK


@pytest.mark.parametrize("conf", [
    {"num_init_children": 3}, {"num_init_children": 4}, {"pool_mode": "statement"},
    {"min_pool_size": 3, "reserve_pool_size": 2, "reserve_pool_timeout": 3}, {"virtual_begin": False}])
def test_links_stay_with(churn_pg, start_pool, conf):
    pool = start_pool(churn_pg.address, **{"pool_mode": "transaction", "default_pool_size": LINKS, **conf})
    load = "simple" if "pool_mode" in conf else "transaction"
    found, _ = count(churn_pg, pool, [LOADS[load]])
    assert found <= LINKS + int(str(conf.get("reserve_pool_size", 0))) + SLACK


def test_links_stay_on_three_nodes(churn_pg, start_pool):
    """One server is three nodes: reads go to all of them, for in this mode nobody is asked who the primary is."""
    pool = start_pool(*[churn_pg.address] * 3, pool_mode="transaction", default_pool_size=LINKS, load_balance_mode=True,
                      backend_clustering_mode="logical_replication")
    found, _ = count(churn_pg, pool, [{"text": "begin;\n" + WRITE + "commit;\n" + "select count(*) from churn;\n" * 3}])
    assert found <= 3 * LINKS + SLACK


@pytest.mark.parametrize("workers", [2, 3])
def test_links_with_tls_are_seldom_closed(tls_pg, start_pool, workers):
    """They cannot leave their worker."""
    pool = start_pool(tls_pg.address, pool_mode="transaction", default_pool_size=LINKS, num_init_children=workers,
                      backend_ssl_mode0="require")
    found, seconds = count(tls_pg, pool, [{"text": "select 1;\n"}])
    assert found <= 2 * LINKS + SLACK + SWAPS_PER_S * seconds


@pytest.mark.parametrize("conf", [{"max_backend_connections": LINKS}, {"max_db_connections": LINKS // 2},
                                  {"max_user_connections": LINKS // 2}])
@pytest.mark.parametrize("workers", [1, 2])
def test_pools_give_way_seldom(churn_pg, start_pool, conf, workers):
    """Four pools, none of which has all it wants, and one of them with a single client."""
    pool = start_pool(churn_pg.address, pool_mode="transaction", num_init_children=workers, default_pool_size=20, **conf)
    sides = [("trust_user", "postgres", 30), ("other_user", "postgres", 20), ("trust_user", "other_db", 20),
             ("other_user", "other_db", 1)]
    found, seconds = count(churn_pg, pool, [{"text": SLEEP, "user": u, "database": d, "clients": n} for u, d, n in sides])
    limits = 1 if "max_backend_connections" in conf else 2  # of two databases, or of two users
    assert found <= 2 * LINKS + SLACK + limits * SWAPS_PER_S * seconds


def many_statements(w: Wire) -> None:
    """More than 16 kB of names."""
    w.send(*[parse(f"select {i}", f"s{i}") for i in range(1500)], SYNC)
    assert [m.type for m in w.ready()].count("1") == 1500


def sql_statement(w: Wire) -> None:
    assert w.simple("prepare mine as select 4711")[-1].type == "Z"


@pytest.mark.parametrize("prepare, use", [
    (many_statements, bind(name="s1499") + execute() + SYNC), (sql_statement, query("execute mine"))],
    ids=["many", "sql"])
def test_statements_travel(pg, start_pool, prepare, use):
    """A link goes to the other worker with all that it knows of statements, and comes back: nothing is lost."""
    pool = start_pool(pg.address, pool_mode="transaction", default_pool_size=1, max_prepared_statements=3000)
    clients = [login(pool) for _ in range(4)]
    assert len({r["pid"] for r in report(clients[0], "pool_clients")}) == 2
    owner = clients[0]
    prepare(owner)
    server = owner.value("select pg_backend_pid()")
    for holder in (clients[0], clients[1], clients[2], clients[3]):
        others = [w for w in clients if w is not holder]
        holder.simple("begin")
        assert holder.value("select pg_backend_pid()") == server
        for w in others:
            w.send(query("select pg_backend_pid()"))
        waits.holds_for("nobody else is served", lambda o=others: not select.select([w.sock for w in o], [], [], 0)[0],
                        0.05)
        holder.simple("commit")
        assert {next(m.row()[0] for m in w.ready() if m.type == "D").decode() for w in others} == {server}
        owner.send(use)
        assert any(m.type == "D" and m.row()[0] in (b"1499", b"4711") for m in owner.ready())
    for w in clients:
        w.bye()

class Session:
    """A client that adds one to a row of its own, again and again, and connects anew when it is disconnected by a worker
    that was killed. Nobody else may notice anything."""

    def __init__(self, pool, number: int, killed: set[str]):
        self.pool, self.number, self.killed = pool, number, killed
        self.done = 0
        self.wrong: list[str] = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def work(self, wire: Wire) -> None:
        row = f"where id = {self.number}"
        n = int(wire.value(f"select n from churn {row}"))
        while not self.stop.is_set():
            wire.rows("begin")
            assert wire.value(f"update churn set n = n + 1 {row} returning n") == str(n + 1), "a write was lost, or not its own"
            wire.rows("commit")
            self.done, n = self.done + 1, n + 1

    def run(self) -> None:
        while not self.stop.is_set():
            worker = ""
            try:
                with Wire(self.pool.address, seconds=20) as wire:
                    assert wire.login("trust_user", "postgres")[-1].type == "Z"
                    port = str(wire.sock.getsockname()[1])
                    worker = next(r["pid"] for r in report(wire, "pool_clients") if r["client_port"] == port)
                    self.work(wire)
            except Exception as e:  # pylint: disable=broad-except
                if worker not in self.killed and (worker or not isinstance(e, OSError | WireClosed)):
                    self.wrong.append(f"{self.number}: {e!r}")
                    return


@pytest.mark.parametrize(("server", "count"), [("churn_pg", 3), ("tls_pg", 2)])
def test_others_go_on_when_a_worker_is_killed(request, start_pool, server, count):
    """Under load, with fewer links than the workers want, so that they change hands all the time. No client of another worker gets an
    error, or loses a write; what the dead one had is to be had again. With TLS clients go where links are: who could be in the dead
one by then is not known, so they are kept (their statements are logged), and links are closed and opened for them."""
    pg = request.getfixturevalue(server)
    pg.rows("drop table if exists churn; create unlogged table churn (id int primary key, n int not null); "
            "insert into churn select i, 0 from generate_series(0, 999) i; grant all on churn to public")
    pool = start_pool(pg.address, pool_mode="transaction", default_pool_size=2, num_init_children=count, worker_fill=0,
                      backend_ssl_mode0="require" if server == "tls_pg" else "disable", log_statement=server == "tls_pg")
    killed: set[str] = set()
    load = [Session(pool, i, killed) for i in range(6 * count)]
    try:
        for turn in range(4):
            before = [s.done for s in load]
            waits.wait_for("all get on", lambda b=before: any(s.wrong for s in load) or all(
                s.done > n for s, n in zip(load, b)), 20)
            victim = sorted(workers(pool))[turn % count]
            killed.add(str(victim))
            os.kill(victim, signal.SIGKILL)
            waits.wait_for("there are as many workers", lambda v=victim: v not in (now := workers(pool)) and len(now) == count, 20)
    finally:
        for s in load:
            s.stop.set()
        for s in load:
            s.thread.join(30)
    assert not [w for s in load for w in s.wrong]
    with Wire(pool.address, seconds=20) as wire:
        wire.login("postgres", "postgres")

        def counted() -> tuple[int, ...]:
            """What pgpool counts, and what there is."""
            links = sum(int(r["used"]) for r in report(wire, "pool_limits") if r["name"] == "default_pool_size")
            return links, len(report(wire, "pool_links")), len(pg.sessions(f"application_name <> 'pgpool' and {BY_TCP}"))

        waits.wait_for("the counts are the truth", lambda: len(set(counted())) == 1, 10)
