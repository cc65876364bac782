# SPDX-License-Identifier: PostgreSQL
"""Native replication with real servers that know nothing of each other: what was written through pgpool is equal on all."""
import os
import random
import signal
import threading
import time

import pytest
from pgt import postgres, waits
from pgt import wire as w
from pgt.native import error_of, kill_workers, one

END_ALL = "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"


def test_writes_are_everywhere(pair):
    it = pair()
    with it.client() as c:
        got = one(c, "insert into t (id, v) values (1, 'a'), (2, 'b') returning id")
        assert [m.type for m in got] == ["T", "D", "D", "C", "Z"] and got[-1].body == b"I"
        one(c, "insert into s (v) values (5); update t set v = now()::text where id = 2; delete from t where id = 1")
        one(c, "insert into t (id, u) select i, null from generate_series(10, 15) i where i <> 12 and random() >= 0")
        one(c, "create table more as select now() as at, 1 as n")
        assert len({r[0][0] for r in it.everywhere("select at::text from more")}) == 1
        it.equal()


def test_a_transaction_is_one_everywhere(pair):
    it = pair()
    with it.client() as c:
        assert one(c, "begin")[-1].body == b"T"
        one(c, "insert into t (id, v) values (1, current_timestamp::text)")
        one(c, "savepoint a")
        assert error_of(c.simple("insert into t (id) values (1)")).sqlstate == "23505"
        refused = error_of(c.simple("select 1"))
        assert (refused.sqlstate, refused.fields["D"]) == ("25P02", "statement: select 1")
        assert one(c, "rollback to a")[-1].body == b"T"
        one(c, "insert into t (id) values (2)")
        assert one(c, "commit")[-1].body == b"I"
        assert [r for r in it.everywhere("select id from t order by 1")] == [[[b"1"], [b"2"]]] * 2
        one(c, "begin")
        one(c, "insert into t (id) values (3)")
        one(c, "rollback")
        one(c, "begin")
        error_of(c.simple("selec"))
        assert [m.type for m in c.simple("commit")] == ["C", "Z"]
        it.equal()
        assert it.nodes[1].value("select count(*) from t") == "2"


def test_an_error_on_the_main_node_reaches_nobody_else(pair):
    it = pair()
    with it.client() as c:
        assert error_of(c.simple("insert into t (id) values (1); insert into t (id) values (1)")).sqlstate == "23505"
        assert error_of(c.simple("insert into nowhere values (1)")).sqlstate == "42P01"
        one(c, "insert into t (id) values (1)")
        one(c, "alter table q add unique (v); insert into q (v) values (1)")
        assert error_of(c.simple("insert into q (v) values (1)")).sqlstate == "23505"
        one(c, "begin")
        assert error_of(c.simple("insert into q (v) values (1)")).sqlstate == "23505"
        one(c, "rollback")
        one(c, "insert into q (v) values (2)")
        it.equal()


@pytest.mark.parametrize("bad", ["select 1 / 0", "insert into t (id) values (1)", "notify a, 'b'; selec"])
def test_what_failed_on_the_main_node_holds_locks_nowhere(pair, bad):
    """As with one server: others go on, and need not wait for the ROLLBACK. A savepoint in front of it is still there."""
    it = pair()
    with it.client() as c, it.client() as other:
        one(c, "insert into t (id) values (1)")
        one(other, "set lock_timeout = '20s'")
        for _ in range(2):
            one(c, "begin")
            one(c, "savepoint a")
            one(c, "update accounts set amount = amount + 1 where id = 1")
            error_of(c.simple(bad))
            one(other, "update accounts set amount = amount - 1 where id = 1")
            assert error_of(c.simple("select 1")).sqlstate == "25P02"
            assert one(c, "rollback to a")[-1].body == b"T"
            one(c, "update accounts set amount = amount + 5 where id = 1")
            one(c, "commit")
        it.equal()


@pytest.mark.parametrize("how, state", [("idle_in_transaction_session_timeout", "25P03"), ("idle_session_timeout", "57P05"),
                                        ("somebody", "57P01")])
def test_why_the_main_node_ended_the_session(pair, how, state):
    if how == "idle_session_timeout" and postgres.major() < 14:
        pytest.skip("PostgreSQL 13 has none")
    it = pair()
    with it.client() as c:
        if how == "idle_in_transaction_session_timeout":
            one(c, "begin")
            one(c, "insert into t (id) values (1)")
        if how == "somebody":
            one(c, "select 1")
            it.nodes[0].rows(END_ALL)
        else:  # a machine that stands still may answer behind that
            c.send(w.query(f"set {how} = '2s'"))
        last = c.read_eof()[-1]
        assert (last.type, last.sqlstate) == ("E", state), last
        waits.wait_for("the log says so", lambda: f"ends: {last.text}" in it.pool.log())


@pytest.mark.parametrize("end", ["rollback", "select 1"])
def test_the_node_where_it_failed_is_gone(pair, end):
    """Who waits for a lock of one server alone fails there first. Where that server is gone, the main one says how it stands."""
    it = pair()
    with it.client() as c, w.Wire(it.nodes[1].address) as direct:
        direct.login()
        one(c, "insert into t (id) values (1)")
        one(c, "set lock_timeout = '300ms'")
        one(direct, "begin")
        one(direct, "update t set v = 1 where id = 1")
        one(c, "begin")
        assert error_of(c.simple("update t set v = 2 where id = 1")).sqlstate == "55P03"
        it.nodes[1].stop(signal.SIGKILL)
        waits.wait_for("node 1 is down", lambda: it.status()[1][3] == "down")
        waits.wait_for("its connection is lost", lambda: "connection to node 1 was lost" in it.pool.log())
        got = c.simple(end)
        if end != "rollback":
            assert error_of(got).sqlstate == "25P02"
            got = c.simple("rollback")
        assert got[-1].body == b"I"
        one(c, "insert into t (id) values (2)")


def test_a_session_stays_in_session_mode(pair):
    it = pair()
    with it.client() as c:
        assert error_of(c.simple("set pool_mode = 'transaction'")).sqlstate == "0A000"
        assert c.value("show pool_mode") == "session"
        one(c, "insert into t (id) values (1)")
        it.equal()
    # role, pg_role, replication_delay, _state, _sync_state: as pgpool-II shows nodes that do not follow each other.
    assert [r[6:8] + r[10:13] for r in it.status()] == [["main", "main", "0", "", ""], ["replica", "replica", "0", "", ""]]


def test_reads_are_spread(pair):
    it = pair()
    ports = set()
    for _ in range(12):
        with it.client() as c:
            ports.add(c.value("select current_setting('port') from t right join (select 1) x on true"))
            one(c, "begin")
            one(c, "update accounts set amount = amount where id = 1")
            assert c.value("select current_setting('port')") == str(it.nodes[0].port), "it has written"
            one(c, "commit")
    assert ports == {str(n.port) for n in it.nodes}


def test_reads_of_one_level_are_in_one_place(pair):
    """No two nodes see half of a cycle of serializable transactions, or of a repeatable snapshot."""
    it = pair()
    with it.client() as c:
        one(c, "create table doctors (name text primary key, on_call bool); insert into doctors values ('a', true), ('b', true)")
    for _ in range(4):
        with it.client() as x, it.client() as y:
            one(x, "update doctors set on_call = true")
            for c in (x, y):
                one(c, "begin isolation level serializable")
                assert c.value("select count(*) from doctors where on_call") == "2"
            one(x, "update doctors set on_call = false where name = 'a'")
            one(x, "commit")
            refused = [m.sqlstate for sql in ("update doctors set on_call = false where name = 'b'", "commit")
                       for m in y.simple(sql) if m.type == "E"]
            assert refused[:1] == ["40001"], refused
            one(y, "rollback")
    it.equal(tables=("doctors",))


def test_strings_that_end_elsewhere(pair):
    """Where strings end is the server's to say: such a text goes to all nodes as it is, with the DELETE that is in it."""
    it = pair()
    with it.client() as c:
        one(c, "insert into t (id) values (1), (2)")
        one(c, "set standard_conforming_strings = off")
        assert c.simple("select 'a\\' || ' ; delete from t where id = 1; --'")[-1].body == b"I"
        one(c, "reset standard_conforming_strings")
        assert c.simple("select 'a\\' || ' ; delete from t where id = 2; --'")[-1].body == b"I"
        it.equal()
        assert [n.value("select string_agg(id::text, ',') from t") for n in it.nodes] == ["2", "2"]


def test_another_node_cannot(pair):
    """What one node cannot do is undone on all."""
    it = pair()
    with it.client() as c:
        one(c, f"set my.bad = '{it.nodes[1].port}'")
        c.send(w.query("insert into t (id, u) select fails_here(), null"))
        assert "kind mismatch" in error_of(c.read_eof()).text
    assert it.nodes[0].value("select count(*) from t") == "0"
    it.equal()


def test_other_numbers_of_rows(pair):
    it = pair()
    with it.client() as c:
        one(c, f"set my.bad = '{it.nodes[1].port}'")
        error = error_of(c.simple("insert into t (id) select * from counts_here()"))
        assert error.sqlstate == "XX001" and "difference of the number of inserted, updated or deleted tuples" in error.text
        one(c, "select 1")
    assert it.nodes[0].value("select count(*) from t") == "0" == it.nodes[1].value("select count(*) from t")


def test_the_minority_is_detached(pair):
    it = pair(3, replication_stop_on_mismatch=True)
    with it.client() as c:
        one(c, f"set my.bad = '{it.nodes[2].port}'")
        one(c, "insert into t (id, u) select fails_here(), null")
        waits.wait_for("node 2 is down", lambda: it.status()[2][3] == "down")
        one(c, "insert into t (id) values (5)")
    it.equal(it.nodes[:2])
    assert it.nodes[2].value("select count(*) from t") == "0"
    log = it.pool.log()
    assert "packet kind of backend 2 ['E'] does not match with main/majority nodes packet kind ['C']" in log
    assert "kind details are: 0[C] 1[C] 2[E: " in log and "not here" in log


@pytest.mark.parametrize("bad", [2, 0], ids=["other", "main"])
def test_who_changes_another_number_of_rows_is_detached(pair, bad):
    """The majority decides, also against the main node, whose client is sent away: it has the answer of the minority."""
    it = pair(3, failover_if_affected_tuples_mismatch=True)
    rest = [n for i, n in enumerate(it.nodes) if i != bad]
    with it.client() as c:
        one(c, f"set my.bad = '{it.nodes[bad].port}'")
        c.send(w.query("insert into t (id, u) select k, null from counts_here() k"))
        got = c.read_eof() if bad == 0 else c.ready()
        assert [m.sqlstate for m in got if m.type == "E"] == (["XX001"] if bad == 0 else [])
    waits.wait_for("it is down", lambda: [r[3] for r in it.status()] == ["down" if i == bad else "up" for i in range(3)])
    with it.client() as c:
        one(c, "insert into t (id) values (5)")
    it.equal(rest)
    assert [n.value("select count(*) from t") for n in rest] == ["2" if bad else "1"] * 2
    assert "Number of affected tuples are: " + ("1 1 2" if bad else "2 1 1") in it.pool.log()


def test_rows_are_compared(pair):
    """replication_compare = rows: a server that was made different is found by what it returns, and the log has both answers."""
    it = pair(3, replication_compare="rows", replicate_select=True, replication_stop_on_mismatch=True)
    with it.client() as c:
        one(c, "insert into s (v) values (1), (2) returning *; update accounts set amount = 5 returning id")
        it.nodes[2].rows("update accounts set id = -id where id = 3; update accounts set id = -id where id = -3")
        one(c, "select * from accounts where id > 0")  # in another order
        one(c, "select oid, relname, xmin from pg_class; explain (analyze) select * from accounts")
        assert it.status()[2][3] == "up"
        it.nodes[2].rows("update accounts set amount = 77 where id = 3")
        got = one(c, "select id, amount from accounts where id = 3")
        assert got[1].body.endswith(b"5")
        waits.wait_for("node 2 is down", lambda: it.status()[2][3] == "down")
        line = next(x for x in it.pool.log().split("\n") if "rows of backend 2" in x)
        assert "first D|3|77)" in line and "as of backend 0" in line and "first D|3|5)" in line, line
        one(c, "update accounts set amount = 6 where id = 3 returning amount")
    with it.client() as c:
        it.nodes[1].rows("update accounts set amount = 78 where id = 3")
        c.send(w.parse("update accounts set amount = amount + 1 where id = 3 returning amount"), w.bind(), w.execute(), w.SYNC)
        assert [m.type for m in c.ready()] == ["1", "2", "D", "C", "Z"]
        waits.wait_for("node 1 is down", lambda: it.status()[1][3] == "down")
    assert it.nodes[0].value("select amount from accounts where id = 3") == "7"


def test_rows_that_differ_are_refused(pair):
    it = pair(replication_compare="rows")
    with it.client() as c:
        it.nodes[1].rows("update accounts set amount = 77 where id = 3")
        error = error_of(c.simple("update accounts set amount = amount + 1 where id = 3 returning amount"))
        assert error.sqlstate == "XX001" and "different rows" in error.text
        one(c, "update accounts set amount = amount + 1 where id = 3")
    assert [r[0][0] for r in it.everywhere("select amount from accounts where id = 3")] == [b"101", b"78"]


def test_a_node_that_dies(pair):
    it = pair(3)
    with it.client() as c, it.client() as d:
        one(c, "insert into t (id) values (1)")
        one(d, "begin")
        one(d, "insert into t (id) values (2)")
        it.nodes[1].stop(signal.SIGKILL)
        waits.wait_for("node 1 is down", lambda: it.status()[1][3] == "down")
        one(c, "insert into t (id) values (3)")
        d.simple("commit")
        one(d, "insert into t (id) values (4)")
    it.equal([it.nodes[0], it.nodes[2]])


@pytest.mark.parametrize("commit", ["plain", "two_phase"])
def test_a_connection_that_goes_while_the_main_node_works(pair, commit):
    """The other node was not asked yet, and is in use: what it would lack is undone on all."""
    it = pair(replication_commit=commit, conf_of_nodes={"max_prepared_transactions": "20"})
    lock = w.Wire(it.nodes[0].address)
    lock.login()
    for first, sql in (("select 1", "insert into t (id) values (2)"),
                       ("select 1", "insert into accounts values (99, 3); select count(*) from t"),
                       ("begin", "insert into t (id) values (4); commit")):
        with it.client() as c:
            one(c, "update t set v = 'all are connected'")
            one(c, first)
            one(lock, "begin; lock table t in access exclusive mode")
            c.send(w.query(sql))
            waits.wait_for("the main node waits", lambda: it.nodes[0].rows("select 1 from pg_locks where not granted"))
            seen = len(it.pool.log())
            it.nodes[1].rows(END_ALL)
            waits.wait_for("it is noticed", lambda n=seen: "connection to node 1 was lost" in it.pool.log()[n:])
            one(lock, "rollback")
            assert error_of(c.ready()).sqlstate == "40000"
        assert it.equal() and [r[3] for r in it.status()] == ["up", "up"]
    lock.bye()


def test_a_procedure_commits_and_fails(pair):
    """What it has committed on the main node before it failed is on all."""
    it = pair()
    with it.client() as c:
        one(c, "create procedure fills(x int) language plpgsql as $$ begin insert into t (id, at, u) values (x, null, null); commit; "
               "insert into t (id) values (x); end $$")
        assert error_of(c.simple("call fills(1)")).sqlstate == "23505"
        c.send(w.parse("call fills(2)"), w.bind(), w.execute(), w.SYNC)
        assert error_of(c.ready()).sqlstate == "23505"
        assert error_of(c.simple("do $$ begin insert into accounts values (99, 1); commit; perform 1 / 0; end $$")).sqlstate == "22012"
        assert it.equal() and it.nodes[1].value("select count(*) from t") == "2"
        one(c, "insert into t (id) values (3)")
    assert it.equal()


def test_a_cancel_comes_too_late(pair):
    """The main node has committed: nobody cancels the COMMIT of the other one, which would be taken out of service for that."""
    it = pair()
    lock = w.Wire(it.nodes[1].address)
    lock.login()
    with it.client() as c:
        one(c, "create function waits() returns trigger language plpgsql as $$ begin "
               "perform pg_advisory_xact_lock(5); return null; end $$")
        one(c, "create constraint trigger late after insert on t deferrable initially deferred for each row execute function waits()")
        for k, sql in enumerate(["insert into t (id) values (0)", "begin; insert into t (id) values (1); commit"]):
            one(lock, "select pg_advisory_lock(5)")
            c.send(w.query(sql))
            waits.wait_for("the other one commits",
                           lambda: it.nodes[1].rows("select 1 from pg_stat_activity where wait_event = 'advisory'"))
            w.cancel(it.pool.address, c.pid, c.key)
            one(lock, "select pg_sleep(0.3), pg_advisory_unlock(5)")
            assert not [m for m in c.ready() if m.type == "E"]
            assert it.equal() and it.nodes[1].value("select count(*) from t") == str(k + 1)
        assert [r[3] for r in it.status()] == ["up", "up"]
    lock.bye()


def test_what_is_not_supported_says_so(pair):
    it = pair()
    with it.client() as c:
        for sql in ("copy t (id) from '/tmp/x'", "select lo_import('x')", "prepare transaction 'x'"):
            assert error_of(c.simple(sql)).sqlstate == "0A000", sql
            one(c, "begin")
            got = c.simple(sql)
            assert error_of(got).sqlstate == "0A000" and got[-1].body == b"E", sql
            one(c, "rollback")


def pipeline(c, *parts):
    c.send(*parts, w.message("S"))
    return c.ready()


def test_the_extended_protocol(pair):
    it = pair()
    with it.client() as c:
        got = pipeline(c, w.parse("insert into t (id, v) values ($1, $2) returning id", "ins"), w.bind(["1", "x"], name="ins"),
                       w.describe("", "P"), w.execute())
        assert [m.type for m in got] == ["1", "2", "T", "D", "C", "Z"], got
        for i in range(2, 6):
            got = pipeline(c, w.bind([str(i), None], name="ins"), w.execute())
            assert [m.type for m in got] == ["2", "D", "C", "Z"], got
        got = pipeline(c, w.parse("insert into s (v) values ($1)"), w.bind(["7"]), w.execute(),
                       w.bind(["8"]), w.execute())
        assert [m.type for m in got] == ["1", "2", "C", "2", "C", "Z"], got
        got = pipeline(c, w.parse("select id from t where id < $1"), w.bind(["3"]), w.describe("", "P"), w.execute())
        assert [m.type for m in got] == ["1", "2", "T", "D", "D", "C", "Z"], got
        got = pipeline(c, w.parse("begin"), w.bind(), w.execute(), w.parse("insert into s (v) values (9)"), w.bind(),
                       w.execute())
        assert got[-1].body == b"T"
        got = pipeline(c, w.parse("insert into t (id) values (1)"), w.bind(), w.execute())
        assert error_of(got).sqlstate == "23505" and got[-1].body == b"E"
        got = pipeline(c, w.parse("commit"), w.bind(), w.execute())
        assert got[-1].body == b"I", got
        it.equal()
        assert it.nodes[1].value("select count(*) from s") == "2"


def test_flush(pair):
    it = pair()
    with it.client() as c:
        c.send(w.parse("insert into t (id) values ($1)", "p"), w.describe("p"), w.message("H"))
        assert [m.type for m in (c.read(), c.read(), c.read())] == ["1", "t", "n"]
        got = pipeline(c, w.bind(["1"], name="p"), w.execute())
        assert [m.type for m in got] == ["2", "C", "Z"], got
        c.send(w.parse("nonsense"), w.message("H"))
        assert c.read().type == "E"
        got = pipeline(c, w.bind(), w.execute())
        assert [m.type for m in got] == ["Z"], got
        it.equal()


def in_conflict(it, sqls, clients=6, rounds=12):
    errors = []

    def work(k):
        with it.client() as c:
            for i in range(rounds):
                for sql in sqls:
                    c.send(w.parse(sql), w.bind(), w.execute(), w.SYNC) if (k + i) % 2 else c.send(w.query(sql))
                    errors.extend((k, i, sql, m.text) for m in c.ready() if m.type == "E")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors


def test_numbers_of_sequences_in_conflict(pair):
    """The table is locked, or a row of pgpool_catalog.insert_lock when there is that table; comments decide otherwise."""
    it = pair(3)
    with it.client() as c:
        one(c, "create sequence n; create table numbers (id int default 0, v int, k int)")
    insert = ["insert into q (v) values (1), (2)", "insert into numbers values (nextval('n'), 1)"]
    in_conflict(it, insert)
    it.equal(tables=("q", "numbers"))
    assert it.nodes[2].rows("select count(*), count(distinct id) from numbers") == [[b"72", b"72"]]
    assert "LOCK TABLE q IN SHARE ROW" in it.nodes[0].log()
    with it.client() as c:
        one(c, "create schema pgpool_catalog; create table pgpool_catalog.insert_lock (reloid oid primary key)")
        one(c, "insert into pgpool_catalog.insert_lock values (0); grant all on pgpool_catalog.insert_lock to public")
        before = it.nodes[0].log().count("LOCK TABLE")
        in_conflict(it, insert)
        one(c, "begin isolation level repeatable read; select 1; insert into q (v) values (7); commit")
        it.equal(tables=("q", "numbers"))
        log = it.nodes[0].log()
        assert log.count("LOCK TABLE") == before and "INSERT INTO pgpool_catalog.insert_lock" in log
        mine = log.count("insert_lock (reloid)")
        one(c, "/*NO INSERT LOCK*/ insert into q (v) values (8)")
        assert it.nodes[0].log().count("insert_lock (reloid)") == mine
        one(c, "/*INSERT LOCK*/ insert into accounts values (500, 1)")
        assert it.nodes[0].log().count("insert_lock (reloid)") == mine + 1
        one(c, "drop table pgpool_catalog.insert_lock")
        one(c, "insert into q (v) values (9)")
        it.equal(tables=("q",))


def conflicts(it, clients, seconds):
    """Rows in any order, numbers of sequences, by both protocols; a transaction that deadlocks is given up. How many were committed."""
    until = time.monotonic() + seconds
    errors = []
    done = []

    def work(seed):
        rnd = random.Random(seed)
        with it.client() as c:
            while time.monotonic() < until:
                a, b = rnd.sample(range(1, 8), 2)
                c.simple("begin")
                ok = True
                for sql in (f"update accounts set amount = amount - 1 where id = {a}",
                            f"update accounts set amount = amount + 1 where id = {b}",
                            f"insert into s (v) values ({seed})"):
                    if rnd.random() < 0.5:
                        c.send(w.parse(sql), w.bind(), w.execute(), w.SYNC)
                        got = c.ready(seconds=120)
                    else:
                        got = c.simple(sql, seconds=120)
                    bad = [m for m in got if m.type == "E"]
                    if bad:
                        ok = False
                        if bad[0].sqlstate != "40P01":
                            errors.append(bad[0].text)
                        break
                c.simple("commit" if ok else "rollback", seconds=120)
                if ok:
                    done.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors[:5]
    assert done
    it.equal()
    assert it.nodes[2].value("select sum(amount) from accounts") == "2000"
    assert it.nodes[2].value("select count(*) from s") == str(len(done))


@pytest.mark.parametrize("seconds", [5, pytest.param(int(os.environ.get("PGT_NATIVE_SECONDS", "20")), marks=pytest.mark.slow)])
def test_deadlocks_end_equal(pair, seconds):
    """64 clients in conflict: it is decided on the main node, and all nodes end equal."""
    it = pair(3, max_clients=100)
    conflicts(it, 64, seconds)


FILLS = """\
create procedure fills(x int, commits bool, key int default 9) language plpgsql as $$ begin
  insert into accounts values (x, 1); if commits then commit; end if;
  perform pg_advisory_xact_lock(key); insert into accounts values (x + 1, 1); end $$"""


def waits_for_advisory(it, node=0):
    waits.wait_for("it waits", lambda: it.nodes[node].rows("select 1 from pg_stat_activity where wait_event = 'advisory'"))


@pytest.mark.parametrize("how", ["simple", "extended", "lock_timeout"])
def test_a_procedure_that_commits_is_cancelled(pair, how):
    """What has committed nothing is undone on the main node; where it had, the others are not like that any more."""
    it = pair()
    lock = w.Wire(it.nodes[0].address)
    lock.login()
    one(lock, "select pg_advisory_lock(9)")
    with it.client() as c:
        one(c, FILLS)
        for x, commits in ((100, False), (200, True)):
            sql = f"call fills({x}, {commits}); " if how != "extended" else f"call fills({x}, {commits})"
            if how == "lock_timeout":
                one(c, "set lock_timeout = '100ms'")
            c.send(*([w.parse(sql), w.bind(), w.execute(), w.SYNC] if how == "extended" else [w.query(sql)]))
            if how != "lock_timeout":
                waits_for_advisory(it)
                w.cancel(it.pool.address, c.pid, c.key)
                w.cancel(it.pool.address, c.pid, c.key)
            got = c.ready()
            assert error_of(got).sqlstate in ("57014", "55P03") and got[-1].body == b"I"
            if not commits:
                assert [r[3] for r in it.status()] == ["up", "up"] and it.equal()
        waits.wait_for("node 1 is down", lambda: it.status()[1][3] == "down")
        assert it.nodes[0].value("select count(*) from accounts where id >= 100") == "1"
        one(c, "insert into q (v) values (1)")
    lock.bye()


def test_a_client_leaves_amid_a_procedure(pair):
    """It goes on, on all nodes."""
    it = pair()
    lock = w.Wire(it.nodes[0].address)
    lock.login()
    one(lock, "select pg_advisory_lock(9)")
    c = it.client()
    one(c, FILLS)
    c.send(w.query("call fills(300, true)"))
    waits_for_advisory(it)
    c.reset()
    waits.wait_for("the other one does it", lambda: it.nodes[1].value("select count(*) from accounts where id >= 300") == "2")
    lock.bye()
    waits.wait_for("it ends", lambda: it.nodes[0].value("select count(*) from accounts where id >= 300") == "2")
    assert it.equal() and [r[3] for r in it.status()] == ["up", "up"]


LATE = """\
create function waits() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(9); return null; end $$;
create constraint trigger late after insert on q deferrable initially deferred for each row execute function waits()"""


@pytest.mark.parametrize("how", ["call", "do", "extended", "in a transaction", "statement", "commit", "commit extended"])
def test_a_worker_is_killed_amid_what_stays(pair, how):
    """What the main node has committed, or is about to, and the others may not have done, is not forgotten with who knew of it."""
    it = pair(3)
    lock = w.Wire(it.nodes[0].address)
    lock.login()
    one(lock, "select pg_advisory_lock(9)")
    c = it.client()
    one(c, FILLS)
    for sql in LATE.split(";\n"):
        one(c, sql)
    sql = {"call": "call fills(100, true)", "do": "do $$ begin call fills(100, true); end $$", "extended": "call fills(100, true)",
           "in a transaction": "call fills(100, false)"}.get(how, "insert into q (v) values (1)")
    if how not in ("call", "do", "extended", "statement"):
        one(c, "begin")
    if how.startswith("commit"):
        one(c, sql)
        sql = "commit"
    c.send(*([w.parse(sql), w.bind(), w.execute(), w.SYNC] if how.endswith("extended") else [w.query(sql)]))
    waits_for_advisory(it)
    kill_workers(it, c)
    lock.bye()
    waits.wait_for("it ends there", lambda: not it.nodes[0].rows("select 1 from pg_stat_activity where query ~ 'fills|commit|values' and state <> 'idle' "
                                                                 "and pid <> pg_backend_pid()"))
    if how == "in a transaction":
        with it.client() as other:
            one(other, "insert into q (v) values (2)")
        assert it.equal()
        return
    waits.wait_for("the others are down", lambda: [r[3] for r in it.status()] == ["up", "down", "down"])
    assert "a worker process died while node 0 did what the others had not done" in it.pool.log()
    with it.client() as other:
        one(other, "insert into accounts values (500, 1)")


@pytest.mark.parametrize("how", ["stop", "child_max_connections"])
def test_a_worker_ends_amid_what_stays(pair, how):
    """Its client has gone, or is sent away, while the main node commits: it does not end before all nodes have it."""
    it = pair(2, **({"child_max_connections": 1} if how == "child_max_connections" else {}))
    lock = w.Wire(it.nodes[0].address)
    lock.login()
    one(lock, "select pg_advisory_lock(9)")
    with it.client() as c:
        for sql in LATE.split(";\n"):
            one(c, sql)
    c = it.client()
    c.send(w.query("insert into q (v) values (1)"))
    waits_for_advisory(it)
    if how == "stop":
        it.pool.daemon.signal(signal.SIGINT)
        with pytest.raises((w.WireClosed, OSError)):
            c.ready(seconds=60)
    else:
        c.reset()
    waits.holds_for("no node is detached", lambda: "is detached" not in it.pool.log(), 1)
    lock.bye()
    if how == "stop":
        it.pool.stop()
        it.pool.start()
    waits.wait_for("it is on all", lambda: it.everywhere("select v from q") == [[[b"1"]]] * 2)
    assert [r[3] for r in it.status()] == ["up", "up"]
    assert "is detached" not in it.pool.log()


def test_a_statement_that_could_not_be_committed(pair):
    """What was done in front of it was told; of itself the error alone, as a server says it."""
    it = pair()
    with it.client() as c:
        one(c, "alter table q add constraint late unique (v) deferrable initially deferred")
        assert [m.type for m in c.simple("insert into q (v) values (1), (1)")] == ["E", "Z"]
        assert [m.type for m in c.simple("insert into q (v) values (2); insert into q (v) values (2)")] == ["C", "E", "Z"]
        c.send(w.parse("insert into q (v) values (3), (3)"), w.bind(), w.execute(), w.SYNC)
        assert [m.type for m in c.ready()] == ["1", "2", "C", "E", "Z"]
        one(c, "insert into q (v) values (4)")
        assert it.equal() and it.nodes[1].value("select count(*) from q") == "1"
