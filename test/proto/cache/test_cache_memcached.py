# SPDX-License-Identifier: PostgreSQL
"""test_cache_memcached: results in memcached, shared by two pgpools. What one of them writes the other does not answer from the cache any more
once the writer has heard of it; a memcached that dies, hangs, comes back empty or is not there makes nothing wrong."""
import random
import struct

import pytest
from cache_house import ASKED, ask, login, run, when_on
from memcached_house import IS_MISSING, Server, sasl_server

from pgt import postgres, procs, relay
from pgt.waits import wait_for
from pgt.wire import SYNC, Wire, bind, cancel, describe, execute, parse, query

pytestmark = pytest.mark.skipif(IS_MISSING, reason="no memcached is installed, or pgpool was built without libmemcached")
READ = "select b from far where a = 1"
PATIENT_MS = 10000  # an answer of a busy machine is no lost one
SHORT_MS = 1500     # where one hangs, and that is waited for


@pytest.fixture
def made(pg):
    pg.rows("drop table if exists far cascade; create table far (a int primary key, b int); insert into far values (1, 0), (2, 0)")
    return pg


@pytest.fixture
def servers():
    all_of_them = [Server(), Server()]
    yield all_of_them
    for server in all_of_them:
        server.stop()


@pytest.fixture
def start(made, start_pool, servers):
    def start_one(hosts=None, **settings):
        hosts = hosts or ", ".join(f"127.0.0.1:{s.port}" for s in servers)
        settings = {"memqcache_invalidation": "statement", "num_init_children": 1, "memqcache_timeout": PATIENT_MS, **ASKED, **settings}
        pool = start_pool(made.address, memory_cache_enabled="on", memqcache_method="memcached",
                          memqcache_memcached_host=hosts, **settings)
        when_on(pool)
        return pool
    return start_one


def hits(w):
    return int(w.rows("show pool_cache")[0][0])


def change(pg, to):
    """Around both pgpools, which do not follow the WAL: what is kept does not show it."""
    pg.rows(f"update far set b = {to} where a = 1")


def value(w, **kwargs):
    return int(ask(w, READ, **kwargs)[0][0])


def when_kept(w, found, **kwargs):
    """It is kept on a thread, behind the answer."""
    before = hits(w)

    def is_hit():
        assert value(w, **kwargs) == found
        return hits(w) > before
    wait_for("it is kept", is_hit)


def knows(w):
    """A hit shows that this pgpool knows in what state the catalogue is, by the words that are in memcached: of two who begin them
    in one moment one does not know it until its next look."""
    before = hits(w)

    def is_hit():
        ask(w, "select a from far where a = 2")
        return hits(w) > before
    wait_for("it knows the catalogue", is_hit)


@pytest.mark.parametrize("mode", ["transaction", "session", "statement"])
@pytest.mark.parametrize("values", [None, ()])
def test_one_keeps_for_the_other(made, start, mode, values):
    one, other = (start(pool_mode=mode) for _ in range(2))
    with login(one) as a, login(other) as b:
        knows(b)
        when_kept(a, 0, values=values)
        change(made, 5)
        before = hits(b)
        assert value(a, values=values) == 0 and value(b, values=values) == 0
        assert hits(b) == before + 1
        run(b, "update far set b = 7 where a = 1")
        assert value(a, values=values) == 7 and value(b, values=values) == 7


AT_SERVER = "select 5"  # needs a server, and is not kept


@pytest.mark.parametrize("mode", ["transaction", "session"])
@pytest.mark.parametrize("values", [None, ()])
def test_in_a_transaction(made, start, mode, values):
    """What another pgpool has kept is told, what is not kept is; behind a write nothing is looked up, and the transaction goes on."""
    one, other = (start(pool_mode=mode) for _ in range(2))
    with login(one) as a, login(other) as b:
        knows(b)
        when_kept(a, 0, values=values)
        change(made, 5)
        run(b, "begin", AT_SERVER)
        before = hits(b)
        for _ in range(3):
            assert value(b, values=values) == 0 and ask(b, AT_SERVER) == [[b"5"]]
        assert hits(b) == before + 3
        run(a, "update far set b = 7 where a = 1")
        assert value(b, values=values) == 7
        when_kept(a, 7, values=values)
        assert value(b, values=values) == 7
        run(b, "update far set b = 8 where a = 1")
        assert value(b, values=values) == 8 and value(a, values=values) == 7
        run(b, "rollback")
        assert value(b, values=values) == 7


STATE_BEHIND = {"begin": b"T", "select 1 / 0": b"E", "create temp table far_mine ()": b"E"}


@pytest.mark.parametrize("values", [None, ()])
@pytest.mark.parametrize("sql", STATE_BEHIND)
def test_a_transaction_goes_on_behind_a_result(made, start, sql, values):
    """Its connection is its own again: a BEGIN in it begins nothing, what is refused fails it, and behind its end nothing is open."""
    one, other = start(), start(pool_mode="transaction", pin_on_session_state="error")
    with login(one) as a, login(other) as b:
        knows(b)
        when_kept(a, 0, values=values)
        run(b, "begin", AT_SERVER)
        before = hits(b)
        assert value(b, values=values) == 0 and hits(b) == before + 1
        assert b.simple(sql)[-1].body == STATE_BEHIND[sql]
        assert b.simple("commit")[-1].body == b"I"
        assert b.simple("update far set b = 3 where a = 2")[-1].body == b"I"
        assert made.value("select b from far where a = 2") == "3"


def test_cancelled_while_it_is_looked_up(made, start, servers):
    """It fails, and its transaction; nothing of the look-up is left."""
    pool = start()
    with login(pool) as w:
        when_kept(w, 0)
        for read in (READ, f"begin; {AT_SERVER}"):
            run(w, *read.split("; "))
            for server in servers:
                server.freeze()
            w.send(query(READ))
            wait_for("it waits", lambda: [r for r in queue(pool) if b"result" in r])
            cancel(pool.address, w.pid, w.key)
            found = w.ready()
            for server in servers:
                server.thaw()
            assert [m.sqlstate for m in found if m.type == "E"] == ["57014"]
            assert found[-1].body == (b"E" if read != READ else b"I")
            run(w, "rollback")
            assert value(w) == 0


def queue(pool):
    with login(pool) as w:
        return w.rows("show pool_queue")


def test_the_server_goes_while_it_is_looked_up(made, start, servers):
    """The transaction is lost, and the client told so."""
    pool = start(memqcache_timeout=5000)
    with login(pool) as w:
        when_kept(w, 0)
        run(w, "begin", AT_SERVER)
        pid, = made.held(f"state = 'idle in transaction' and query = '{AT_SERVER}'")
        for server in servers:
            server.freeze()
        w.send(query(READ))
        wait_for("it waits", lambda: [r for r in queue(pool) if b"result" in r])
        made.rows(f"select pg_terminate_backend({pid})")
        wait_for("it is gone", lambda: made.value(f"select count(*) from pg_stat_activity where pid = {pid}") == "0")
        found = w.ready()
        assert [m.sqlstate for m in found if m.type == "E"][0] in ("08006", "57P01") and found[-1].body == b"E"
        for server in servers:
            server.thaw()
        run(w, "rollback")
        wait_for("it is kept", lambda: value(w) == 0 and hits(w) > 1, 30)


PIPELINE = ("select b from far where a = $1", "select a from far order by a", "select count(*) from far")


def pipeline(w, describes=True):
    w.send(b"".join(parse(sql) + bind(v) + (describe("", "P") if describes else b"") + execute() for sql, v in
                    zip(PIPELINE, ([b"1"], [], []))), SYNC)
    return [(m.type, m.body) for m in w.ready()]


@pytest.mark.parametrize("mode", ["transaction", "session"])
@pytest.mark.parametrize("begin", ["", "begin"])
def test_a_pipeline(made, start, mode, begin):
    """Its statements are looked up together, and answered when all are there; each is kept by itself."""
    one, other = (start(pool_mode=mode) for _ in range(2))
    with login(one) as a, login(other) as b:
        knows(b)
        run(b, *(sql.replace("$1", "2") for sql in PIPELINE * 2))  # from here on the other knows what the names are
        first = pipeline(a)
        assert [kind for kind, _ in first] == ["1", "2", "T", "D", "C"] + ["1", "2", "T", "D", "D", "C"] + ["1", "2", "T", "D", "C", "Z"]

        def are_hits():
            before = hits(a)
            assert pipeline(a) == first
            return hits(a) == before + 3
        wait_for("all are kept", are_hits)
        change(made, 5)
        if begin:
            run(b, begin, AT_SERVER)
        before = hits(b)
        assert pipeline(b)[:-1] == first[:-1] and hits(b) == before + 3
        made.rows("insert into far values (3, 0)")
        assert ask(b, PIPELINE[1], values=()) == [[b"1"], [b"2"]] and hits(b) == before + 4
        run(a, "update far set b = 7 where a = 1")
        assert [body[-1:] for kind, body in pipeline(b) if kind == "D"] == [b"7", b"1", b"2", b"3", b"3"]
        if begin:
            run(b, "commit")


WRITES = {
    "plain": [query("update far set b = b + 1 where a = 1")],
    "in a block": [query("begin"), query("update far set b = b + 1 where a = 1"), query("commit")],
    "several": [query("update far set b = b + 1 where a = 1; select count(*) from generate_series(1, 3)")],
    "extended": [parse("update far set b = b + 1 where a = $1", types=(23,)) + bind([b"1"]) + execute() + SYNC],
    "with many rows": [query("update far set b = b + 1 where a = 1 returning repeat('x', 300000)")],
    "two at once": [query("begin; update far set b = b + 1 where a = 1; commit") + query("select repeat('y', 200000) from far")],
    "ddl": [query("alter table far alter b type bigint using b + 1")],
    "do": [query("do $$begin update far set b = b + 1 where a = 1; end$$")],
    "copied": [query("delete from far where a = 1; insert into far values (1, 1)")],
}


@pytest.mark.parametrize("kind", WRITES)
def test_a_write_is_seen_by_all_once_it_is_heard_of(start, kind):
    one, other = (start() for _ in range(2))
    with login(one) as a, login(other) as b:
        when_kept(b, 0)
        for frame in WRITES[kind]:
            a.send(frame)
            found = a.ready()
            if frame.count(b"Q\0") > 1:
                found += a.ready()
            assert not [m for m in found if m.type == "E"], [m.fields for m in found]
        assert value(b) == 1
        assert value(a) == 1


def test_a_rollback_drops_nothing(made, start):
    with login(start()) as w:
        when_kept(w, 0)
        run(w, "begin", "update far set b = 9 where a = 1", "rollback")
        change(made, 5)
        assert value(w) == 0


def test_own_write_is_seen_behind_it_at_once(start):
    with login(start()) as w:
        for n in range(1, 20):
            when_kept(w, n - 1)
            w.send(query(f"update far set b = {n} where a = 1"), query(READ))
            w.ready()
            assert [int(m.row()[0]) for m in w.ready() if m.type == "D"] == [n]


def test_servers_that_have_one_number(start):
    """Of a server of pools.conf nothing is known but its address: another pgpool may have the number for another server."""
    theirs, pools = [postgres.start_postgres() for _ in range(2)], []
    try:
        for n, pg in enumerate(theirs):
            pg.rows(f"create table far (a int, b int); insert into far values (1, {n})")
            path = procs.folder("pools") / "pools.conf"
            path.write_text(f"[database far]\nhost = '{pg.address.host}'\nport = {pg.address.port}\ndbname = postgres\n", encoding="utf-8")
            pools.append(start(pools_file=path))
        with login(pools[0], database="far") as a, login(pools[1], database="far") as b:
            ask(b, "select a from far")  # from here on it knows in what state the catalogue is
            when_kept(a, 0)
            when_kept(b, 1)
            when_kept(a, 0)
    finally:
        for pg in theirs:
            pg.stop()


def test_orders_reach_all(made, start):
    one, other = (start() for _ in range(2))
    with login(one) as a, login(other) as b:
        when_kept(b, 0)
        change(made, 5)
        assert value(b) == 0
        run(a, f"pgpool set cache delete '{READ}'")
        assert value(b) == 5
        when_kept(b, 5)
        change(made, 6)
        run(a, "create role far_role")  # everything
        run(a, "drop role far_role")
        assert value(b) == 6


def test_a_dead_memcached_costs_little_and_revives_nothing(made, start, servers):
    one, other = (start() for _ in range(2))
    with login(one) as a, login(other) as b:
        when_kept(a, 0)
        for server in servers:
            server.stop()
        assert value(b) == 0
        run(b, "update far set b = 1 where a = 1")
        assert value(a) == 1 and value(b) == 1
        wait_for("the log has it", lambda: "does not answer" in one.log())
        change(made, 2)
        assert value(a) == 2 and value(b) == 2
        for server in servers:
            server.start()
        wait_for("it is kept again", lambda: is_kept_again(a), 30)
        wait_for("the log has it", lambda: "answers again" in one.log())


def is_kept_again(w):
    before = hits(w)
    assert value(w) == 2
    return hits(w) > before


def test_one_that_hangs_is_waited_for_once(made, start, servers):
    pool = start(memqcache_timeout=SHORT_MS)
    with login(pool) as w:
        when_kept(w, 0)
        for server in servers:
            server.freeze()
        run(w, "update far set b = 1 where a = 1")
        assert value(w) == 1
        change(made, 2)
        assert value(w) == 2
        for server in servers:
            server.thaw()
        wait_for("it is kept again", lambda: is_kept_again(w), 30)


def test_a_restarted_memcached_is_empty(made, start, servers):
    one, other = (start() for _ in range(2))
    with login(one) as a, login(other) as b:
        when_kept(a, 0)
        for server in servers:
            server.stop()
            server.start()
        change(made, 3)
        wait_for("it is asked for anew", lambda: value(a) == 3 and value(b) == 3)


def test_wrong_host(made, start):
    with login(start(hosts="127.0.0.1:1")) as w:
        for n in range(3):
            change(made, n)
            assert value(w) == n
        run(w, "update far set b = 8 where a = 1")
        assert value(w) == 8
        assert hits(w) == 0


def of_servers(w):
    """By port, what SHOW POOL_CACHE_SERVERS says."""
    return {int(row[1]): [v.decode() if v is not None else "" for v in row] for row in w.rows("show pool_cache_servers")}


def asked_for_many(w):
    for n in range(20):  # some belong to the one, some to the other
        ask(w, f"select b from far where a = {n}")
    return of_servers(w)


def test_show_tells_of_the_servers(start, servers):
    one = start(memqcache_timeout=SHORT_MS)
    with login(one) as a:
        assert {port: row[2:4] for port, row in of_servers(a).items()} == {s.port: ["up", ""] for s in servers}
        for n in (1, 2):
            wait_for("it is kept", lambda: ask(a, f"select b from far where a = {n}") and hits(a) >= n)  # noqa: B023
        rows = of_servers(a)
        assert sum(int(row[4]) for row in rows.values()) == hits(a)
        assert sum(int(row[5]) for row in rows.values()) >= 2 and sum(int(row[6]) for row in rows.values()) >= 2
        run(a, "update far set b = 9 where a = 1")
        wait_for("it is told", lambda: sum(int(row[7]) for row in of_servers(a).values()) > 0)
        assert all(row[8:] == ["0", "0", ""] for row in of_servers(a).values())
        for fail, heal, server, column in (("freeze", "thaw", servers[0], 8), ("stop", "start", servers[1], 9)):
            getattr(server, fail)()
            wait_for("it is seen to be down", lambda: asked_for_many(a)[server.port][2] == "down")  # noqa: B023
            row = of_servers(a)[server.port]
            assert int(row[column]) > 0 and row[3] != "" and row[10] != ""
            getattr(server, heal)()
            wait_for("it is up again", lambda: asked_for_many(a)[server.port][2:4] == ["up", ""], 30)  # noqa: B023


def test_who_goes_in_mid_commit(start):
    one, other = (start() for _ in range(2))
    with login(other) as b:
        when_kept(b, 0)
        with login(one) as a:
            a.send(query("update far set b = 1 where a = 1"))
        wait_for("it is seen", lambda: value(b) == 1)
        wait_for("nothing is left behind", lambda: is_back(b))


def is_back(w):
    before = hits(w)
    assert value(w) == 1
    return hits(w) > before


class Shears(relay.Relay):
    """In place of the ReadyForQuery behind the armed tag comes what ends the connection: pgpool learns of both in one turn of its loop."""

    tag = b""

    def _forward(self, one, other) -> None:
        try:
            data = one.recv(relay.CHUNK)
            needle = struct.pack("!cI", b"C", len(Shears.tag) + 5) + Shears.tag + b"\0"
            at = data.find(needle) if Shears.tag else -1
            if at != -1:
                Shears.tag = b""
                other.sendall(data[:at + len(needle)] + b"?\0\0\0\1")
            elif data:
                other.sendall(data)
                return
        except OSError:
            pass
        self._close(one, other)


@pytest.fixture
def shears(made):
    one = Shears("127.0.0.2", made.address)
    yield one
    one.close()


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_link_that_dies_behind_its_commit(made, start, start_pool, servers, shears, mode):
    """The writer hears that it is committed, and with it the other pgpool knows: what it has kept since the warning goes."""
    one = start()
    two = start_pool(shears.address, memory_cache_enabled="on", memqcache_method="memcached", memqcache_timeout=PATIENT_MS, pool_mode=mode,
                     memqcache_invalidation="statement", num_init_children=1,
                     memqcache_memcached_host=", ".join(f"127.0.0.1:{s.port}" for s in servers), **ASKED)
    when_on(two)
    with login(one) as a, login(two) as b:
        for n in range(1, 4):
            holder = Wire(made.address, seconds=20)
            holder.login()
            run(holder, "begin", "select 1 from far where a = 1 for update")
            b.send(query(f"update far set b = {n} where a = 1"))
            wait_for("it waits for the row", lambda: made.value(
                "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like 'update far%'") == "1")
            when_kept(a, n - 1)
            Shears.tag = b"UPDATE 1"
            run(holder, "rollback")
            holder.bye()
            assert [m.type for m in b.ready() if m.type != "S"] == ["C", "Z"] and not Shears.tag
            assert value(a) == n


@pytest.mark.parametrize("seed", [8001, *(pytest.param(n, marks=pytest.mark.slow) for n in range(8002, 8022))])
def test_random_writes_through_two(made, start, seed):
    """One step at a time: whoever reads, by whichever pgpool, is told what was committed last."""
    pick = random.Random(seed)
    made.rows("insert into far select i, 0 from generate_series(3, 8) i")
    now = dict.fromkeys(range(1, 9), 0)
    pools = [start(num_init_children=2, worker_fill=1) for _ in range(2)]
    clients = [login(pools[i % 2]) for i in range(4)]
    for step in range(1, 601):
        w, key = pick.choice(clients), pick.choice(list(now))
        if pick.random() < 0.85:
            sql = f"select b from far where a = {key}"
            assert int(ask(w, sql, values=pick.choice([None, ()]))[0][0]) == now[key], (seed, step)
            continue
        write, ends = f"update far set b = {step} where a = {key}", pick.choice(["", "commit", "rollback"])
        for sql in [write] if ends == "" else ["begin", write, ends]:
            run(w, sql)
        if ends != "rollback":
            now[key] = step
    assert all(hits(w) > 20 for w in clients[:2])


def test_ddl_by_one_is_known_to_the_other(made, start):
    """A cascade that came by one pgpool is heeded by the other, which had judged before."""
    made.rows("drop table if exists part; create table part (a int, b int); insert into part values (1, 0)")
    one, other = (start() for _ in range(2))
    with login(one) as a, login(other) as b:
        for _ in range(3):
            ask(a, "select b from part")
            ask(b, "select b from part")
            run(b, "update far set b = b where a = 1")
        run(a, "alter table part add foreign key (a) references far on delete cascade")
        assert len(ask(a, "select b from part")) == 1
        run(b, "delete from far where a = 1")
        assert ask(a, "select b from part") == [] and ask(b, "select b from part") == []


def test_the_wal_tells_all(start_pool, servers):
    pg = postgres.start_postgres({"wal_level": "logical", "max_replication_slots": "10"})
    try:
        pg.rows("create table far (a int primary key, b int); insert into far values (1, 0)")
        pools = [start_pool(pg.address, memory_cache_enabled="on", memqcache_method="memcached", num_init_children=1,
                            memqcache_memcached_host=f"127.0.0.1:{servers[0].port}", **ASKED) for _ in range(2)]
        for pool in pools:
            when_on(pool)
        with login(pools[0]) as a, login(pools[1]) as b:
            for w in (a, b):
                ask(w, READ)
                wait_for("the WAL is followed", lambda: [r for r in w.rows("show pool_cache_streams") if r[1] == b"streaming"], 20)  # noqa: B023
            when_kept(a, 0)
            when_kept(b, 0)
            change(pg, 4)
            wait_for("it has gone", lambda: value(a) == 4 and value(b) == 4)
            when_kept(b, 4)
        for pool in pools:
            pool.stop()
    finally:
        pg.stop()


def test_a_server_that_asks_for_a_password(made, start):
    """SASL: who has it keeps and finds results, and his writes make them invalid; who has another is told nothing, and reads from PostgreSQL."""
    server = sasl_server("cache", "the secret")
    if server is None:
        pytest.skip("no libsasl2 with a sasldb to keep the password in")
    try:
        host = f"127.0.0.1:{server.port}"
        one, other, wrong = (start(hosts=host, memqcache_memcached_user="cache", memqcache_memcached_password=word)
                             for word in ("the secret", "the secret", "another"))
        with login(one) as a, login(other) as b, login(wrong) as c:
            knows(b)
            when_kept(a, 0)
            change(made, 5)
            before = hits(b)
            assert value(a) == 0 and value(b) == 0 and hits(b) == before + 1
            assert value(c) == 5
            wait_for("it is let in nowhere", lambda: value(c) == 5 and of_servers(c)[server.port][2] == "down")
            assert hits(c) == 0
            run(b, "update far set b = 7 where a = 1")
            assert value(a) == 7 and value(b) == 7
            run(a, *(f"insert into far values ({n}, 0)" for n in range(10, 60)))
            run(a, "begin", *(f"update far set b = b + 1 where a = {n}" for n in range(10, 60)), "commit")
            assert ask(b, "select sum(b) from far where a >= 10") == [[b"50"]]
    finally:
        server.stop()
