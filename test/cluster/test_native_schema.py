# SPDX-License-Identifier: PostgreSQL
"""Native replication while somebody changes tables: what is known of them is never older than what the statement meets."""
import itertools

import pytest

from pgt import waits
from pgt import wire as w
from pgt.native import error_of, one


def same_times(it, sql):
    got = it.everywhere(sql)
    assert all(r == got[0] for r in got), got


def test_other_sessions_see_new_defaults(pair):
    it = pair()
    with it.client() as c, it.client() as d:
        one(d, "insert into accounts values (101, 1)")
        one(c, "alter table accounts add at timestamptz default clock_timestamp()")
        one(c, "alter table accounts alter at set default clock_timestamp()")
        one(d, "insert into accounts (id) values (102)")
        same_times(it, "select at from accounts where id = 102")
        one(c, "begin")
        one(c, "alter table q add at timestamptz; alter table q alter at set default clock_timestamp()")
        one(c, "insert into q (v) values (1)")
        one(c, "rollback")
        one(c, "insert into q (v) values (2)")
        it.equal(tables=("q",))


def test_a_statement_that_waited_for_a_change(pair):
    it = pair()
    with it.client() as c, it.client() as d, it.client() as e:
        one(d, "insert into accounts values (101, 1)")
        one(c, "begin")
        one(c, "alter table accounts add at timestamptz; alter table accounts alter at set default clock_timestamp()")
        d.send(w.query("insert into accounts (id) values (102)"))
        e.send(w.query("copy accounts (id) from stdin"))
        waits.wait_for("both wait for the lock", lambda: it.nodes[0].value(
            "select count(*) from pg_locks where not granted and relation = 'accounts'::regclass") == "2")
        one(c, "commit")
        assert error_of(d.ready()).sqlstate == "40001"
        assert error_of(e.ready()).sqlstate == "40001"
        one(d, "insert into accounts (id) values (103)")
        # One who waited for a change that leaves the table as it was goes on.
        one(c, "begin")
        one(c, "alter table accounts set (fillfactor = 90)")
        one(c, "lock table accounts")
        d.send(w.query("insert into accounts (id) values (104)"))
        waits.wait_for("it waits for the lock", lambda: it.nodes[0].value(
            "select count(*) from pg_locks where not granted and relation = 'accounts'::regclass") == "1")
        one(c, "commit")
        assert [m.type for m in d.ready()] == ["C", "Z"]
        it.equal(tables=("accounts",))
        assert it.nodes[1].value("select count(*) from accounts where id > 100") == "3"


def test_names_mean_what_they_mean_now(pair):
    """The table that a name means changes with search_path, however that is set, and back with the end of a transaction."""
    it = pair()
    with it.client() as c:
        one(c, "create schema one; create table one.x (i int, at timestamptz default clock_timestamp())")
        one(c, "create schema two; create table two.x (at timestamptz, i int)")
        for how in ("set search_path to one", "select set_config('search_path', 'one', false)"):
            one(c, "set search_path to two")
            one(c, "insert into x (i) values (1)")
            one(c, how)
            one(c, "insert into x (i) values (1)")
        one(c, "set search_path to two")
        one(c, "begin; set local search_path to one; insert into x (i) values (2); commit")
        one(c, "insert into x (i) values (3)")
        one(c, "begin; set search_path to one; savepoint a; set search_path to two; insert into x (i) values (4); rollback to a")
        one(c, "insert into x (i) values (5)")
        one(c, "rollback")
        one(c, "insert into x (i) values (6)")
        it.equal(tables=("one.x", "two.x"))
        assert it.nodes[1].rows("select count(*), count(at) from one.x") == [[b"3", b"3"]]


@pytest.mark.parametrize("by_parse", [False, True])
def test_a_known_read_that_writes_by_now(pair, by_parse):
    """A text that was found to read goes to one node without being looked at again. What its names mean is looked at: the view has become
    one that writes, by another session or in the own transaction, or another one is meant."""
    it = pair()

    def read(c):
        if by_parse:
            c.send(w.parse("select n from v where n < 3"), w.bind(), w.execute(), w.SYNC)
            assert [m.type for m in c.ready()] == ["1", "2", "D", "C", "Z"]
        else:
            one(c, "select n from v where n < 3")

    def same(count):
        it.equal(tables=("accounts",))
        assert it.nodes[1].value("select count(*) from accounts") == str(count)

    with it.client() as c, it.client() as d:
        one(d, "create schema a; create schema b; create view a.v as select 1 as n")
        one(d, "create function b.f() returns int language sql as "
               "'insert into public.accounts select max(id) + 1, 0 from public.accounts returning 1'")
        one(d, "create view b.v as select b.f() as n")
        one(c, "set search_path to a, public")
        for _ in range(3):
            read(c)
        same(20)
        one(d, "create or replace view a.v as select b.f() as n")
        read(c)
        same(21)
        one(d, "create or replace view a.v as select 1 as n")
        for _ in range(3):
            read(c)
        one(c, "begin; set local search_path to b")
        read(c)
        one(c, "commit")
        same(22)
        read(c)
        one(c, "begin; create or replace view a.v as select b.f() as n")
        read(c)
        one(c, "commit")
        same(23)
        one(c, "create or replace view a.v as select 1 as n")
        for _ in range(3):
            read(c)
        one(c, "set search_path to b, public")
        read(c)
        same(24)


def test_known_reads_go_where_the_settings_say_now(pair):
    it = pair()
    ids = itertools.count(1)

    with it.client() as c:
        def runs_on():
            sql = f"select amount from accounts where id = {next(ids)}"
            one(c, sql)
            return sum(sql in n.log() for n in it.nodes)

        assert [runs_on() for _ in range(3)] == [1, 1, 1]
        it.pool.reload(replicate_select=True)
        waits.wait_for("reads go to all", lambda: runs_on() == 2)
        assert [runs_on() for _ in range(3)] == [2, 2, 2]
        it.pool.reload(replicate_select=False)
        waits.wait_for("reads go to one", lambda: runs_on() == 1)


def test_views_take_the_defaults_of_their_tables(pair):
    """A view that can be updated: what its table fills in is made equal, also through another view, under another name; what it does not
    show is named; numbers are drawn in one order."""
    it = pair()
    with it.client() as c:
        one(c, "create view all_of_t as select * from t; create view bits (number, \"to k\", stamp) as select id, u, at from all_of_t where id > 0")
        one(c, "create view less as select id, v from t; create view more as select q.*, 1 as one from q")
        one(c, "create view own as select id, at, u from t; alter view own alter at set default now()")
        one(c, "insert into all_of_t (id) values (1), (2)")
        one(c, "insert into bits (number) values (3), (4)")
        one(c, "insert into own (id) values (5)")
        c.send(w.parse("insert into bits (number, stamp) values ($1, default)"), w.bind(["6"]), w.execute(), w.SYNC)
        assert not [m.text for m in c.ready() if m.type in "EN"]
        one(c, "update bits set stamp = default where number = 1")
        it.equal()
        one(c, "insert into more (v) values (1)")
        assert "LOCK TABLE more IN SHARE ROW" in it.nodes[0].log()
        warned = c.simple("insert into less (id) values (7)")
        assert "may differ" in next(m.text for m in warned if m.type == "N")
        assert not [m for m in c.simple("insert into all_of_t (id) values (8)") if m.type == "N"]


def test_functions_are_named_when_they_are_made(pair):
    """What runs on the servers alone, and is another thing on each; nothing of it can be replaced, so somebody is told."""
    it = pair()
    touch = "create function touch() returns trigger language plpgsql as $$ begin new.at := now(); return new; end $$"
    notices = {touch: "now", touch.replace("create", "create or replace").replace("now()", "current_timestamp"): "current_timestamp",
               "create procedure p() language sql as 'insert into q (v) values (random() * 9)'": "random",
               "do $$ begin perform clock_timestamp(); end $$": "clock_timestamp",
               "create function two() returns int language sql as $$ select 2 $$": None}

    def told(got):
        return [m.text for m in got if m.type == "N"]

    with it.client() as c:
        for sql, what in notices.items():
            assert told(one(c, sql)) == ([f'the result of "{what}" may differ between nodes'] if what else []), sql
        assert it.pool.log().count('the result of "now" may differ between nodes') == 1
        c.send(w.parse(touch.replace("create", "create or replace")), w.bind(), w.execute(), w.SYNC)
        assert told(c.ready()) == ['the result of "now" may differ between nodes']
    strict = pair(replication_nondeterministic="error")
    with strict.client() as c:
        assert error_of(c.simple(touch)).sqlstate == "0A000"
        one(c, "create function two() returns int language sql as $$ select 2 $$")
