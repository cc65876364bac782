# SPDX-License-Identifier: PostgreSQL
"""Native replication: a name means what it means to its session. What was learned for one that reads is not taken for another's that
writes, which would write on one node alone."""
import pytest
from pgt import wire as w
from pgt.native import one

SCHEMAS = """\
create schema a; create schema b;
create function a.f() returns int language sql stable as 'select 1';
create function b.f() returns int language sql volatile as 'insert into public.q (v) values (5) returning v';
create function public.go(text) returns int language plpgsql volatile as $$ begin perform set_config('search_path', $1, false); return 1; end $$;
"""


@pytest.fixture(name="apart")
def _apart(pair):
    """Reads go to node 1; one worker, whose sessions share what the catalogue said."""
    def make():
        it = pair(2, backend_weight0=0, backend_weight1=1, num_init_children=1)
        with it.client() as c:
            for sql in SCHEMAS.split(";\n"):
                if sql.strip():
                    one(c, sql)
        return it
    return make


def written(it):
    counts = [n.value("select count(*) from q") for n in it.nodes]
    assert len(set(counts)) == 1, counts
    return int(counts[0])


def by_protocol(c, path):
    c.send(w.parse("select set_config('search_path', $1, false)"), w.bind([path]), w.execute(), w.SYNC)
    assert not [m for m in c.ready() if m.type == "E"]


WAYS = {
    "set": lambda c, path: one(c, f"set search_path = {path}"),
    "set_config": by_protocol,
    "function": lambda c, path: one(c, f"select public.go('{path}')"),
    "do": lambda c, path: one(c, f"do $$ begin perform set_config('search_path', '{path}', false); end $$"),
    "execute": lambda c, path: one(c, f"prepare p as select set_config('search_path', '{path}', false); execute p"),
    "local": lambda c, path: one(c, f"begin; set local search_path = {path}"),
}


@pytest.mark.parametrize("how", WAYS)
def test_two_sessions_mean_different_functions(apart, how):
    it = apart()
    with it.client() as c, it.client() as d:
        WAYS[how](c, "a")
        WAYS[how](d, "b")
        for _ in range(3):
            one(c, "select f()")
        for _ in range(2):
            one(d, "select f()")
        for _ in range(3):
            one(c, "select f()")
        if how == "local":
            one(d, "commit")
        else:
            WAYS[how](c, "b") if how != "execute" else one(c, "deallocate p; prepare p as select set_config('search_path', 'b', false); execute p")
            one(c, "select f()")
    assert written(it) == (2 if how == "local" else 3)


@pytest.mark.parametrize("how", ["search_path", "options"])
def test_the_start_up_packet_says_so(apart, how):
    it = apart()
    said = {"a": {"search_path": "a"}, "b": {"search_path": "b"}} if how == "search_path" else \
        {p: {"options": f"-csearch_path={p}"} for p in "ab"}
    with it.client(**said["a"]) as c, it.client(**said["b"]) as d:
        for _ in range(3):
            one(c, "select f()")
        one(d, "select f()")
    assert written(it) == 1


def test_a_temporary_view_hides_a_table(apart):
    it = apart()
    with it.client() as c, it.client() as d:
        one(c, "create view v as select 1 as n")
        for _ in range(3):
            one(c, "select n from v")
        one(d, "create temp view v as select b.f() as n")
        for _ in range(3):
            one(c, "select n from v")
        one(d, "select n from v")
    assert written(it) == 1


@pytest.mark.parametrize("end, count", [
    ("begin; set local search_path = b; commit", 0), ("begin; set local search_path = b; rollback", 0),
    ("begin; set search_path = b; rollback", 0), ("begin; set search_path = b; commit", 1),
    ("begin; set search_path = b; savepoint s; set search_path = a; rollback to s; commit", 1),
    ("begin; set local search_path = a; commit; set search_path = b", 1),
    ("set search_path = b; begin; set local search_path = a; commit", 1)])
def test_a_transaction_ends(apart, end, count):
    """In one string or several, with the read behind it or alone."""
    it = apart()
    expected = 0
    for alone in (False, True):
        with it.client() as c:
            one(c, "set search_path = a")
            for _ in range(2):
                one(c, "select f()")
            if alone:
                for sql in end.split(";"):
                    one(c, sql)
                one(c, "select f()")
            else:
                one(c, end + "; select f()")
        expected += count
        assert written(it) == expected


def test_a_failed_transaction_ends(apart):
    it = apart()
    with it.client() as c:
        one(c, "set search_path = b")
        one(c, "begin; set local search_path = a")
        one(c, "select f()")
        c.simple("select 1 / 0")
        one(c, "rollback; select f()")
    assert written(it) == 1


def test_sessions_that_said_the_same_share(apart):
    """And a SET LOCAL is forgotten with its transaction: nobody asks the catalogue again."""
    it = apart()

    def asked():
        return it.nodes[0].log().count("WITH RECURSIVE q(i")

    with it.client() as c, it.client() as d:
        for x in (c, d):
            one(x, "set search_path = a")
        one(c, "select f()")
        before = asked()
        assert before > 0
        one(d, "select f()")
        one(d, "begin; set local statement_timeout = 60000; commit")
        one(d, "select f()")
        assert asked() == before
    assert written(it) == 0
