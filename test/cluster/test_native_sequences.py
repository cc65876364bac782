# SPDX-License-Identifier: PostgreSQL
"""Native replication and what drivers put into one sequence of the extended protocol: transactions with their COMMIT, many rows at once,
DEALLOCATE, the words that mean a time."""
import pytest
from pgt import waits
from pgt import wire as w
from pgt.native import error_of, one

TWO_PHASE = {"conf_of_nodes": {"max_prepared_transactions": "40"}, "replication_commit": "two_phase"}


def pipeline(c, *parts):
    c.send(*parts, w.SYNC)
    return c.ready()


def run(sql, *params):
    return w.parse(sql) + w.bind(params) + w.execute()


def fine(got):
    assert not [m for m in got if m.type == "E"], [m.text for m in got if m.type == "E"]
    return got


def tags(got):
    return [m.body.rstrip(b"\0").decode() for m in got if m.type == "C"]


@pytest.mark.parametrize("conf", [{}, TWO_PHASE], ids=["plain", "two_phase"])
def test_a_transaction_in_one_sequence(pair, conf):
    """As pipelines send it: BEGIN, writes and COMMIT in front of one Sync; also two of them, and what follows."""
    it = pair(**conf)
    with it.client() as c:
        got = fine(pipeline(c, run("begin"), run("insert into t (id) values ($1)", "1"), run("commit")))
        assert tags(got) == ["BEGIN", "INSERT 0 1", "COMMIT"] and got[-1].body == b"I"
        got = fine(pipeline(c, run("begin"), run("insert into t (id) values (2)"), run("commit"),
                            run("begin"), run("insert into t (id) values (3)"), run("commit"), run("select 1")))
        assert tags(got) == ["BEGIN", "INSERT 0 1", "COMMIT"] * 2 + ["SELECT 1"] and got[-1].body == b"I"
        one(c, "begin")
        got = fine(pipeline(c, run("insert into t (id) values (4)"), run("commit"), run("insert into t (id) values (5)")))
        assert tags(got) == ["INSERT 0 1", "COMMIT", "INSERT 0 1"] and got[-1].body == b"I"
        got = fine(pipeline(c, run("insert into t (id) values (6)"), run("commit")))
        assert tags(got) == ["INSERT 0 1", "COMMIT"]
        got = pipeline(c, run("begin"), run("insert into t (id) values (1)"), run("commit"))
        assert error_of(got).sqlstate == "23505" and tags(got) == ["BEGIN"] and got[-1].body == b"E"
        one(c, "rollback")
        one(c, "alter table q add constraint late unique (v) deferrable initially deferred")
        got = pipeline(c, run("begin"), run("insert into q (v) values (1), (1)"), run("commit"), run("insert into t (id) values (99)"))
        assert error_of(got).sqlstate == "23505" and tags(got) == ["BEGIN", "INSERT 0 2"] and got[-1].body == b"I"
        c.send(run("begin"), run("insert into t (id) values (7)"), w.message("H"))
        assert [c.read().type for _ in range(6)] == ["1", "2", "C"] * 2
        c.send(run("commit"), w.message("H"))
        assert [c.read().type for _ in range(3)] == ["1", "2", "C"]
        assert it.everywhere("select count(*) from t where id = 7") == [[[b"1"]]] * 2, "told, and there"
        assert fine(pipeline(c))[-1].body == b"I"
        it.equal()
        assert it.everywhere("select string_agg(id::text, ',' order by id), count(*) from t")[0] == [[b"1,2,3,4,5,6,7", b"7"]]
        if conf:
            assert it.nodes[1].log().count("PREPARE TRANSACTION 'pgpool_") >= 7
            assert it.everywhere("select count(*) from pg_prepared_xacts") == [[[b"0"]]] * 2


def test_what_would_pass_by_is_refused(pair):
    """A portal of COMMIT that is bound in one part and executed in another; a client of the replication protocol."""
    it = pair()
    with it.client() as c:
        for end in (w.message("H"), w.SYNC):
            one(c, "begin; insert into t (id) values (1)")
            c.send(w.parse("commit"), w.bind(), end)
            assert error_of([c.read()]).sqlstate == "0A000"
            assert [m.type for m in (pipeline(c, w.execute()) if end == w.message("H") else c.ready())] == ["Z"]
            assert c.simple("rollback")[-1].body == b"I"
        it.equal()
        assert it.nodes[0].value("select count(*) from t") == "0"
    with w.Wire(it.pool.address) as c:  # `replication=database` would write to one node alone
        c.send(w.startup({"user": "postgres", "database": "postgres", "replication": "database"}))
        error = error_of(c.read_eof())
        assert error.sqlstate == "0A000" and "replication" in error.text


@pytest.mark.parametrize("behind", [w.execute(), w.execute("none")], ids=["again", "another"])
def test_nothing_is_executed_behind_a_commit(pair, behind):
    """What follows would tell whether all nodes are prepared."""
    it = pair(**TWO_PHASE)
    with it.client() as c:
        one(c, "begin; insert into t (id) values (1)")
        got = pipeline(c, w.parse("commit"), w.bind(), w.execute(), behind)
        assert error_of(got).sqlstate == "0A000" and tags(got) == []
        assert c.simple("rollback")[-1].body == b"I"
        it.equal()
        assert it.everywhere("select count(*) from pg_prepared_xacts") == [[[b"0"]]] * 2
        assert it.nodes[0].value("select count(*) from t") == "0"


def test_names_are_as_long_as_the_servers(pair):
    """Of two that differ behind 63 bytes PostgreSQL makes one."""
    it = pair()
    with it.client() as c:
        fine(pipeline(c, w.parse("insert into t (id) values ($1)", "x" * 63 + "a")))
        fine(pipeline(c, w.bind(["1"], name="x" * 63 + "b"), w.execute()))
        it.equal()


def test_many_rows_in_one_sequence(pair):
    """executemany of a driver: each row has values that the main node gives, more than one SELECT can have columns."""
    it = pair()
    with it.client() as c:
        rows = [w.bind([str(i)], name="ins") + w.execute() for i in range(2000)]
        got = fine(pipeline(c, w.parse("insert into t (id) values ($1)", "ins"), *rows))
        assert len(tags(got)) == 2000
        one(c, "insert into t (id) values " + ",".join(f"({i})" for i in range(3000, 5000)))
        it.equal()
        assert it.nodes[1].value("select count(distinct u) from t") == "4000"


def test_deallocate_that_does_not_happen(pair):
    """Behind what failed, and in a transaction that DISCARD ALL cannot be in: the name is known as before, and what it runs rewritten."""
    it = pair()
    insert = "insert into t (id) values ($1)"
    with it.client() as c:
        fine(pipeline(c, w.parse(insert, "p")))
        got = pipeline(c, run("insert into nowhere values (1)"), run("deallocate p"))
        assert error_of(got).sqlstate == "42P01"
        fine(pipeline(c, w.bind(["1"], name="p"), w.execute()))
        one(c, "begin")
        assert error_of(c.simple("discard all")).sqlstate == "25001"
        one(c, "rollback")
        fine(pipeline(c, w.bind(["2"], name="p"), w.execute()))
        assert error_of(c.simple("select 1/0; deallocate p")).sqlstate == "22012"
        fine(pipeline(c, w.bind(["3"], name="p"), w.execute()))
        got = fine(pipeline(c, run("deallocate p"), w.parse("insert into t (id, v) values ($1, now()::text)", "p"),
                            w.bind(["4"], name="p"), w.execute(), run("insert into t (id) values (5)")))
        assert tags(got) == ["DEALLOCATE", "INSERT 0 1", "INSERT 0 1"]
        one(c, "discard all")
        assert error_of(pipeline(c, w.bind(["6"], name="p"), w.execute())).sqlstate == "26000"
        it.equal()
        assert it.nodes[1].value("select count(*) from t") == "5"


def test_bound_words_that_mean_a_time(pair):
    """'now' as the text of a parameter is each node's own time, if the parameter is one: it is named."""
    it = pair(replication_nondeterministic="error")
    with it.client() as c:
        refused = error_of(pipeline(c, run("insert into t (id, at) values ($1, $2)", "1", "now")))
        assert refused.sqlstate == "0A000" and "$2" in refused.text
        assert error_of(pipeline(c, run("update t set at = $1", " Yesterday 10:00"))).sqlstate == "0A000"
        fine(pipeline(c, run("insert into t (id, v, at) values ($1, $2, $3)", "1", "nowhere", "2020-01-01")))
        fine(pipeline(c, run("select $1", "today")))
        fine(pipeline(c, w.parse("insert into t (id, v) values ($1, $2)", types=[0, 25]), w.bind(["2", "today"]), w.execute()))
        it.equal()
