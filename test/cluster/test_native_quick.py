# SPDX-License-Identifier: PostgreSQL
"""Reads that native replication sends to their node in one step, as they are known to read: what can happen to one that runs, and
when it is not one any more."""
import signal

import pytest
from pgt import waits
from pgt import wire as w
from pgt.native import error_of, one

WEIGHTS = {"backend_weight0": 0, "backend_weight1": 1}
READ = "select v from accounts_text where id = 1"
WAITING = "select pid from pg_stat_activity where wait_event_type = 'Lock'"


def pipeline(c, *parts):
    c.send(*parts, w.SYNC)
    return c.ready()


def ask(c, how, sql=READ):
    """As it is asked from the second time on."""
    if how == "simple":
        return w.query(sql)
    if how == "extended":
        return w.parse(sql) + w.bind() + w.describe("", "P") + w.execute() + w.SYNC
    if not [m for m in pipeline(c, w.bind(name="read"), w.execute()) if m.type == "Z"]:
        raise AssertionError("no end")
    return w.bind(name="read") + w.execute() + w.SYNC


def known(it, c, how, sql=READ):
    """The read is known, and so is where it goes."""
    if how == "prepared":
        pipeline(c, w.parse(sql, "read"))
    for _ in range(3):
        c.send(ask(c, how, sql))
        assert not [m for m in c.ready() if m.type == "E"]
    return it


@pytest.fixture(name="apart")
def _apart(pair):
    """Reads go to node 1, whose rows are others."""
    def make(count=2, **conf):
        it = pair(count, **WEIGHTS, **conf)
        with it.client() as c:
            one(c, "create table accounts_text (id int primary key, v text)")
            one(c, "insert into accounts_text values (1, 'both')")
        return it
    return make


def held(node):
    lock = w.Wire(node.address)
    lock.login()
    one(lock, "begin; lock table accounts_text in access exclusive mode")
    return lock


def begins_to_wait(node):
    return waits.wait_for("it waits on the node for reads", lambda: node.rows(WAITING))


HOWS = pytest.mark.parametrize("how", ["simple", "extended", "prepared"])


@HOWS
def test_a_read_is_cancelled(apart, how):
    it = apart()
    with it.client() as c:
        known(it, c, how)
        sent = ask(c, how)
        lock = held(it.nodes[1])
        c.send(sent)
        begins_to_wait(it.nodes[1])
        w.cancel(it.pool.address, c.pid, c.key)
        got = c.ready()
        assert error_of(got).sqlstate == "57014" and got[-1].body == b"I"
        one(lock, "rollback")
        c.send(sent)
        assert [m.row() for m in c.ready() if m.type == "D"] == [[b"both"]]
        lock.bye()


@HOWS
def test_the_node_goes_while_it_reads(apart, how):
    """The client is told, and its session goes on, on all nodes; but for one with a prepared statement, which the new connection would
    lack."""
    it = apart()
    with it.client() as c:
        known(it, c, how)
        sent = ask(c, how)
        lock = held(it.nodes[1])
        c.send(sent)
        begins_to_wait(it.nodes[1])
        it.nodes[1].rows("select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'")
        got = c.ready()
        assert error_of(got).sqlstate == "40000" and got[-1].body == b"I", got
        one(lock, "rollback")
        lock.bye()
        c.send(w.query("insert into accounts_text values (2, 'behind it')"))
        if how == "prepared":
            assert c.read_eof()[-1].sqlstate == "57P01"
        else:
            assert not [m for m in c.ready() if m.type == "E"]
            assert c.value(READ) == "both"
    assert it.equal(tables=("accounts_text",))


def test_the_main_node_goes_while_it_reads(apart):
    it = apart(load_balance_mode=False)
    c = it.client()
    known(it, c, "simple")
    lock = held(it.nodes[0])
    c.send(w.query(READ))
    begins_to_wait(it.nodes[0])
    it.nodes[0].rows("select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'")
    assert [m.sqlstate for m in c.read_eof() if m.type == "E"] == ["57P01"]
    lock.bye()


def test_the_node_goes_amid_a_row(apart):
    """No error stands where the rest of a row was to come."""
    it = apart()
    with it.client() as c:
        one(c, "insert into accounts_text values (7, repeat('x', 90000000))")
        big = "select v from accounts_text where id = 7"
        c.seconds = 90
        for _ in range(2):
            assert len(c.value(big)) == 90000000
        c.send(w.query(big))
        waits.wait_for("the node cannot send", lambda: it.nodes[1].rows(
            "select 1 from pg_stat_activity where wait_event = 'ClientWrite'"))
        it.nodes[1].rows("select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'ClientWrite'")
        with pytest.raises(w.WireClosed):
            c.ready()


@HOWS
def test_a_read_becomes_a_write(apart, how):
    """Somebody makes a function anew that it calls: it is judged again, and what it writes is on all nodes."""
    it = apart()
    with it.client() as c, it.client() as d:
        one(d, "create function looks() returns int language sql stable as 'select 1'")
        known(it, c, how, "select looks()")
        one(d, "create or replace function looks() returns int language sql volatile as "
               "'insert into q (v) values (5) returning v'")
        for _ in range(2):
            c.send(w.query("select looks()") if how == "simple" else
                   w.parse("select looks()") + w.bind() + w.execute() + w.SYNC if how == "extended" else
                   w.bind(name="read") + w.execute() + w.SYNC)
            assert [m.row() for m in c.ready() if m.type == "D"] == [[b"5"]]
    assert it.equal() and it.nodes[1].value("select count(*) from q") == "2"


def test_a_name_means_another_statement(apart):
    it = apart()
    with it.client() as c:
        known(it, c, "prepared")
        pipeline(c, w.close("read"), w.parse("insert into q (v) values (1) returning v::text", "read"))
        for _ in range(2):
            assert [m.row() for m in pipeline(c, w.bind(name="read"), w.execute()) if m.type == "D"] == [[b"1"]]
        one(c, "deallocate all")
        assert error_of(pipeline(c, w.bind(name="read"), w.execute())).sqlstate == "26000"
    assert it.equal() and it.nodes[1].value("select count(*) from q") == "2"


def test_the_statement_without_a_name(apart):
    """It is where it was parsed, and counts as the server has it: also behind a Bind that fails."""
    it = apart()
    sql = "select v from accounts_text where id = $1::int"
    with it.client() as c:
        for _ in range(3):
            got = pipeline(c, w.parse(sql), w.bind(["1"]), w.describe("", "P"), w.execute())
            assert [m.type for m in got] == ["1", "2", "T", "D", "C", "Z"], got
        got = pipeline(c, w.parse(sql), w.bind(["none"]), w.describe("", "P"), w.execute())
        assert [m.type for m in got] == ["1", "E", "Z"], got
        got = pipeline(c, w.bind(["1"]), w.execute())
        assert [m.type for m in got] == ["2", "D", "C", "Z"], got
        got = pipeline(c, w.parse("insert into q (v) values ($1)"), w.bind(["1"]), w.execute())
        assert [m.type for m in got] == ["1", "2", "C", "Z"], got
        got = pipeline(c, w.bind(["2"]), w.execute())
        assert [m.type for m in got] == ["2", "C", "Z"], got
    assert it.equal() and it.nodes[1].value("select count(*) from q") == "2"


def test_many_at_once(apart):
    """What stands behind one is not lost, nor taken for a part of it."""
    it = apart()
    with it.client() as c:
        known(it, c, "prepared")
        read = w.bind(name="read") + w.execute() + w.SYNC
        write = w.query("insert into q (v) values (1)")
        c.send(read, read, write, w.query(READ), read[:9])
        got = c.ready(4)
        assert [m.type for m in got] == ["2", "D", "C", "Z", "2", "D", "C", "Z", "C", "Z", "T", "D", "C", "Z"], got
        c.send(read[9:])
        assert [m.type for m in c.ready()] == ["2", "D", "C", "Z"]
        bad = w.bind(["x"], name="read") + w.execute() + w.SYNC
        c.send(bad, read)
        assert [m.type for m in c.ready(2)] == ["E", "Z", "2", "D", "C", "Z"]
    assert it.equal()


def test_in_a_transaction_it_sees_what_was_written(apart):
    it = apart()
    with it.client() as c:
        known(it, c, "prepared")
        known(it, c, "simple")
        for begin in ("begin", "begin isolation level repeatable read"):
            one(c, begin)
            one(c, "update accounts_text set v = 'mine' where id = 1")
            assert c.value(READ) == "mine"
            assert [m.row() for m in pipeline(c, w.bind(name="read"), w.execute()) if m.type == "D"] == [[b"mine"]]
            one(c, "rollback")
            assert c.value(READ) == "both"


def test_a_notification_is_told_once(apart):
    """A function listens on every node; the client hears of what the main node says."""
    it = apart()
    with it.client() as c:
        known(it, c, "simple")
        one(c, "do $$ begin execute 'listen news'; end $$")
        it.nodes[1].rows("select pg_notify('news', 'not said by the main node')")
        it.nodes[0].rows("select pg_notify('news', 'said by it')")
        heard = []
        waits.wait_for("it is told", lambda: heard.extend(
            m.body[4:].split(b"\0")[1] for m in one(c, READ) if m.type == "A") or heard)
        for _ in range(3):
            heard += [m.body[4:].split(b"\0")[1] for m in one(c, READ) if m.type == "A"]
        assert heard == [b"said by it"]


def test_the_node_for_reads_goes(apart):
    """Between two reads: the next one is answered by another node."""
    it = apart()
    with it.client() as c:
        known(it, c, "simple")
        it.nodes[1].rows("update accounts_text set v = 'other' where id = 1")
        assert c.value(READ) == "other"
        it.nodes[1].stop(signal.SIGKILL)
        waits.wait_for("it is down", lambda: it.status()[1][3] == "down")
        assert c.value(READ) == "both"


def test_replicate_select(apart):
    """A read that is known goes to all nodes all the same."""
    it = apart(replicate_select=True)
    with it.client() as c:
        for _ in range(3):
            one(c, "select v, 'everywhere' from accounts_text where id = 1")
    assert all(n.log().count("'everywhere'") >= 3 for n in it.nodes)
