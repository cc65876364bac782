# SPDX-License-Identifier: PostgreSQL
"""test_pool_churn: a saturated pool keeps its server connections: they change hands, also between workers, and are
not closed and opened anew. Where one has to be closed for another that is seldom."""
import select
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pgt import certs, postgres, procs, waits
from pgt.wire import SYNC, Wire, bind, execute, parse, query

from test_admin_orders import report
from test_pool_limits import login

LINKS = 8
CLIENTS = 64
SLACK = 3
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
    pair = certs.Authority().issue()
    owner = server.data.stat().st_uid
    certs.give(pair.cert, server.data / "server.crt", 0o644, owner)
    certs.give(pair.key, server.data / "server.key", 0o600, owner)
    server.stop()
    server.write_conf({"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key"})
    server.start()
    yield server
    server.stop()


def opened(server) -> int:
    """Sessions that the server has had, of those that have run something."""
    return int(server.value("select sum(sessions)::bigint from pg_stat_database"))


def bench(pool, text: str, clients=CLIENTS, user="trust_user", database="postgres", how="simple") -> str:
    """One second of a script. Prepared statements are prepared with the thread blocked: each client has its own, for
    the others hold the links."""
    script = procs.folder("script") / "s.sql"
    script.write_text(text, encoding="utf-8")
    threads = clients if how == "prepared" else 2
    return procs.run([str(postgres.bindir() / "pgbench"), "-n", "-h", "127.0.0.1", "-p", str(pool.port), "-U", user,
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
    """The same server three times: reads go to all of them."""
    pool = start_pool(*[churn_pg.address] * 3, pool_mode="transaction", default_pool_size=LINKS, load_balance_mode=True)
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
