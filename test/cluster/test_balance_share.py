# SPDX-License-Identifier: PostgreSQL
"""test_balance_share: how evenly reads are shared, and that every one of them is counted: pgbench over three
nodes, sessions drawn once or anew for each statement. What the servers' own logs say counts beside what SHOW says.
The primary is on node 0 and on node 2."""
import collections
import os
import re
import subprocess
import threading

import pytest

from pgt import waits
from pgt.postgres import client
from pgt.trio import wait_replayed
from pgt.wire import SYNC, Wire, bind, execute, parse
from test_monitor import Trio, column, pool_for, show, wait_settled

CLIENTS, EACH = 10, 200
# What log_statement = all says of an execution; the first line of the text will do.
EXECUTED = re.compile(r"LOG:  (?:statement|execute [^:]*): (.*)")
READ = "SELECT abalance FROM pgbench_accounts WHERE aid = "
# How a primary's statements begin that reads none of its clients': what a session's link is brought to and cleaned
# with, what the catalogue is asked, the monitor's look, and the catalogue itself, which pgbench asks before it begins.
LOOK = "SELECT f.*, "  # the monitor's
NO_READS = ("SET application_name TO ", "SELECT pg_catalog.set_config('application_name',", "DISCARD ALL",
            "WITH RECURSIVE q(i, kind, s, n, a) AS (VALUES ", LOOK, "select o.n, p.partstrat, ",
            "SELECT 1 FROM pg_catalog.pg_roles WHERE")  # the last one every role_check_delay


@pytest.fixture(scope="module", params=[0, 2], ids=["primary0", "primary2"])
def cluster(request):
    it = Trio(request.param)
    pgbench(it.primary.port, "-i", "-q", "-s", "1")
    for i in it.standbys:
        waits.wait_for("the tables are there", lambda i=i: it.nodes[i].value(
            "select count(*) from pg_class where relname = 'pgbench_accounts_pkey'") == "1", 60)
    for node in it.nodes:
        node.rows("alter system set log_statement = 'all'")
        node.reload()
        waits.wait_for("statements are logged", lambda n=node: n.value("show log_statement") == "all")
    yield it
    it.stop()


@pytest.fixture
def make(cluster, start_pool):
    def start(weights=(0, 0.5, 0.5), **conf):
        """`weights`: of the primary and of the two standbys."""
        nodes = [cluster.at, *cluster.standbys]
        conf = {"num_init_children": 2, **{f"backend_weight{i}": w for i, w in zip(nodes, weights)}, **conf}
        pool = pool_for(start_pool, cluster, load_balance_mode=True, **conf)
        wait_settled(pool, cluster.at)
        return pool
    return start


def pgbench(port: int, *options: str) -> str:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
    done = subprocess.run([client("pgbench"), "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", *options,
                           "postgres"], env=env, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def selects(pool) -> list[int]:
    return [int(v) for v in column(pool, "select_cnt")]


def stats_selects(pool) -> list[int]:
    return [int(row["select_cnt"]) for row in show(pool, "POOL_BACKEND_STATS")]


def counted(pool, work) -> list[int]:
    before = selects(pool)
    work()
    after = selects(pool)
    assert after == stats_selects(pool)
    return [b - a for a, b in zip(before, after)]


def login(pool) -> Wire:
    wire = Wire(pool.address, seconds=20)
    assert wire.login()[-1].type == "Z"
    return wire


@pytest.mark.parametrize("pooling", ["session", "transaction"])
@pytest.mark.parametrize("how", ["simple", "extended", "prepared"])
def test_pgbench_shares_the_standbys(cluster, make, how, pooling):
    """Ten clients, the standbys of equal weight: each gets half of the work, the primary none."""
    pool = make(pool_mode=pooling)
    pgbench(pool.port, "-n", "-S", "-t", "1")  # what the catalogue says is known now
    done = counted(pool, lambda: pgbench(pool.port, "-n", "-S", "-M", how, "-c", str(CLIENTS), "-j", "2", "-t",
                                         str(EACH)))
    total = CLIENTS * EACH
    # Before it begins, pgbench looks at its tables with three reads of its own.
    assert total <= sum(done) <= total + 4, done
    assert done[cluster.at] <= 3, done
    for i in cluster.standbys:
        assert 0.49 * total <= done[i] <= 0.51 * total + 3, done


def executed(cluster, work) -> list[collections.Counter]:
    """What each server ran meanwhile, by its own log: how often which text."""
    before = [len(node.log()) for node in cluster.nodes]
    work()
    return [collections.Counter(EXECUTED.findall(node.log()[at:])) for node, at in zip(cluster.nodes, before)]


@pytest.mark.parametrize("pooling", ["session", "transaction"])
@pytest.mark.parametrize("workers,clients", [(2, 10), (1, 50)])
@pytest.mark.parametrize("how", ["simple", "extended", "prepared", "connect"])
def test_the_primary_runs_none_of_the_reads(cluster, make, how, workers, clients, pooling):
    """Statement by statement, from the very first one, when nothing is known of the tables yet."""
    pool = make(pool_mode=pooling, num_init_children=workers)
    options = ["-M", "simple", "-C"] if how == "connect" else ["-M", how]
    each = 10 if how == "connect" else 40
    done = executed(cluster, lambda: pgbench(pool.port, "-n", "-S", *options, "-c", str(clients), "-j", "2", "-t",
                                             str(each)))
    reads = [sum(n for text, n in texts.items() if text.startswith(READ)) for texts in done]
    total = clients * each
    assert reads[cluster.at] == 0 and sum(reads) == total, reads
    for i in cluster.standbys:
        assert 0.49 * total <= reads[i] <= 0.51 * total, reads
    strange = [text for text in done[cluster.at] if not text.startswith(NO_READS)]
    assert not strange, strange


def test_what_was_not_used_is_not_reset(cluster, make):
    """Session mode: a link on which nothing was asked since its login goes to the next one as it is, settings and all;
    one that was used is cleaned, and what was set on it is gone."""
    pool = make(pool_mode="session", num_init_children=1, role_check_delay=600)

    def session(name: str, *queries: str) -> list:
        wire = Wire(pool.address, seconds=20)
        assert wire.login(application_name=name)[-1].type == "Z"
        values = [wire.value(sql) for sql in queries]
        wire.bye()
        return values

    cluster.primary.rows("create sequence if not exists counted")
    at = len(cluster.primary.log())
    for _ in range(3):  # the first one's link is used, for what the catalogue says
        session("one", "select 1")
    waits.wait_for("that link is cleaned", lambda: "DISCARD ALL" in cluster.primary.log()[at:])
    done = executed(cluster, lambda: [session("one", "select 1") for _ in range(10)])
    asked = [text for text in done[cluster.at] if not text.startswith(LOOK)]
    assert not asked, asked
    assert session("two", "select nextval('counted')", "select set_config('work_mem', '77MB', false)",
                   "select current_setting('work_mem')")[-1] == "77MB"
    waits.wait_for("it is cleaned", lambda: "DISCARD ALL" in cluster.primary.log().rsplit("work_mem", 1)[-1], 60)
    assert session("three", "select nextval('counted')", "show work_mem", "show application_name")[1:] == ["4MB", "three"]


@pytest.mark.parametrize("statement_level", [False, True])
def test_any_weights(cluster, make, statement_level):
    pool = make(weights=(1, 2, 3), statement_level_load_balance=statement_level)
    nodes = [cluster.at, *cluster.standbys]
    sessions, each = (60, 1) if not statement_level else (3, 200)

    def work():
        for _ in range(sessions):
            wire = login(pool)
            for _ in range(each):
                assert wire.value("select 1") == "1"
            wire.bye()
    login(pool).bye()
    done = counted(pool, work)
    for share, i in zip((1 / 6, 2 / 6, 3 / 6), nodes):
        assert abs(done[i] - share * sessions * each) <= (3 if not statement_level else 0.02 * sessions * each), done
    assert sum(done) == sessions * each


def test_two_statements_by_turns(cluster, make):
    """With a draw for each statement, one that is always the second does not always get the same node."""
    pool = make(statement_level_load_balance=True)
    wire = login(pool)
    places = {"select inet_server_port()": {}, "select inet_server_port() + 0": {}}
    for _ in range(100):
        for sql, where in places.items():
            port = wire.value(sql)
            where[port] = where.get(port, 0) + 1
    for where in places.values():
        assert len(where) == 2 and all(45 <= n <= 55 for n in where.values()), places
    wire.bye()


def test_preference_lists_are_even_too(cluster, make):
    pool = make(weights=(1, 1, 1), app_name_redirect_preference_list="bench:standby(0.5)")

    def work():
        for _ in range(40):
            wire = Wire(pool.address, seconds=20)
            assert wire.login(application_name="bench")[-1].type == "Z"
            assert wire.value("select 1") == "1"
            wire.bye()
    done = counted(pool, work)
    assert abs(done[cluster.at] - 20) <= 1 and all(abs(done[i] - 10) <= 1 for i in cluster.standbys), done


def test_counts_under_load(cluster, make):
    """Four programs at once, reads and writes: the sum of select_cnt is the SELECTs sent, and of insert_cnt the
    INSERTs; by simple queries, unnamed statements and strings of several."""
    pool = make()
    before = show(pool, "POOL_BACKEND_STATS")
    sent = [0, 0]
    lock = threading.Lock()

    def work(seed: int) -> None:
        wire = login(pool)
        for n in range(200):
            if (n + seed) % 3 == 0:
                assert wire.value("select 1") == "1"
            elif (n + seed) % 3 == 1:
                wire.send(parse("select 2") + bind() + execute() + SYNC)
                assert wire.ready()[-1].type == "Z"
            else:
                wire.simple("insert into pgbench_history values (1)")
            with lock:
                sent[(n + seed) % 3 == 2] += 1
        wire.bye()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    after = show(pool, "POOL_BACKEND_STATS")
    for name, want in (("select_cnt", sent[0]), ("insert_cnt", sent[1])):
        assert sum(int(a[name]) - int(b[name]) for a, b in zip(after, before)) == want, (name, after)


@pytest.mark.parametrize("pooling", ["session", "transaction"])
def test_one_node_goes_and_comes_back(cluster, make, pooling):
    """While a standby is down the other has all sessions; new ones share evenly when it is back."""
    pool = make(pool_mode=pooling)
    first, second = cluster.standbys

    def work():
        wires = [login(pool) for _ in range(10)]
        for wire in wires:
            for _ in range(20):
                assert wire.value("select 1") == "1"
        for wire in wires:
            wire.bye()
    login(pool).bye()
    done = counted(pool, work)
    assert done[first] == done[second] == 100, done
    cluster.nodes[second].stop()
    waits.wait_for("it is known to be down", lambda: column(pool, "status")[second] == "down", 60)
    done = counted(pool, work)
    assert (done[first], done[second], done[cluster.at]) == (200, 0, 0)
    cluster.nodes[second].start()
    wait_settled(pool, cluster.at, 30)
    done = counted(pool, work)
    assert done[first] == done[second] == 100, done


@pytest.mark.parametrize("pooling", ["session", "transaction"])
def test_answers_hold_for_the_search_path_they_were_asked_with(cluster, make, pooling):
    """One name, two functions: what is known of the one says nothing of the other."""
    pool = make(pool_mode=pooling)
    maker = login(pool)
    for text in ("drop schema if exists calm, wild cascade", "create schema calm", "create schema wild",
                 "create table wild.seen (a int)",
                 "create function calm.which() returns text language sql stable as $$ select 'calm' $$",
                 "create function wild.which() returns text language sql volatile as "
                 "$$ insert into wild.seen values (1) returning 'wild' $$"):
        maker.simple(text)
    maker.bye()
    wait_replayed(cluster.primary, *(cluster.nodes[i] for i in cluster.standbys))
    clients = []
    for schema in ("calm", "wild") * 3:
        wire = login(pool)
        wire.simple(f"set search_path = {schema}")
        clients.append((schema, wire))
    for schema, wire in clients:
        assert wire.value("select which()") == schema
    for _, wire in clients:
        wire.bye()
