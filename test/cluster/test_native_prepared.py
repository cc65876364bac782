# SPDX-License-Identifier: PostgreSQL
"""Prepared statements and sequences of native replication: what is executed does the same on all nodes, however it was prepared, and
whatever of a sequence failed."""
import psycopg
import pytest
from pgt import wire as w
from pgt.native import error_of, one


def pipeline(c, *parts):
    c.send(*parts, w.SYNC)
    return c.ready()


def fine(got):
    assert not [m for m in got if m.type == "E"], [m.text for m in got if m.type == "E"]
    return got


def run(sql, *params):
    return w.parse(sql) + w.bind(params) + w.execute()


def test_prepare_by_sql(pair):
    it = pair(3)
    with it.client() as c:
        one(c, "prepare p (int, text) as insert into t (id, v) values ($1, $2) returning id")
        for i in range(1, 4):
            got = one(c, f"execute p ({i}, 'x')")
            assert [m.type for m in got] == ["T", "D", "C", "Z"] and got[-2].body == b"INSERT 0 1\0"
        one(c, "begin; execute p(4, 'y'); commit")
        assert error_of(c.simple("execute p(4, 'y')")).sqlstate == "23505"
        one(c, "begin")
        assert error_of(c.simple("execute p(4, 'y')")).sqlstate == "23505"
        one(c, "rollback")
        one(c, "execute p (5, 'z')")
        assert error_of(c.simple("prepare p as select 1")).sqlstate == "42P05"
        assert error_of(c.simple("prepare bad as insert into nowhere values (now())")).sqlstate == "42P01"
        one(c, "prepare bad (int) as update t set at = now() where id = $1; execute bad(2)")
        one(c, "prepare n as insert into q (v) values (1); prepare r as select id from t where id < $1")
        one(c, "execute n")
        one(c, "execute r(3)")
        assert c.rows("select name, statement from pg_prepared_statements where name = 'bad'")[0][1].endswith(
            b"update t set at = now() where id = $1"), "the client's is as it wrote it"
        one(c, "alter table accounts add at timestamptz")
        one(c, "prepare a as insert into accounts (id) values (200)")
        one(c, "alter table accounts alter at set default clock_timestamp()")
        one(c, "execute a")
        one(c, "deallocate a")
        assert error_of(c.simple("execute a")).sqlstate == "26000"
        assert error_of(c.simple("create table x as execute bad(1)")).sqlstate == "0A000"
        it.equal()
        assert "LOCK TABLE q" in it.nodes[0].log()


def test_names_are_what_the_servers_know(pair):
    """A Parse that failed, one that succeeded in a sequence that failed, Close, DEALLOCATE: what is rewritten is always the right text."""
    it = pair(3)
    insert = "insert into t (id, v) values ($1, 'p')"
    with it.client() as c:
        error_of(pipeline(c, w.parse("insert into nowhere (id) values ($1)", "p")))
        fine(pipeline(c, w.parse(insert, "p")))
        fine(pipeline(c, w.bind(["1"], name="p"), w.execute()))
        # It was made on the main node alone, for the sequence failed there.
        got = pipeline(c, w.parse(insert, "late"), w.bind(["1"], name="late"), w.execute())
        assert [m.type for m in got] == ["1", "2", "E", "Z"]
        fine(pipeline(c, w.bind(["2"], name="late"), w.execute()))
        # And closed there alone, and made anew.
        got = pipeline(c, w.close("late"), w.parse("insert into t (id, v) values ($1, 'new')", "late"), w.bind(["1"], name="late"), w.execute())
        assert [m.type for m in got] == ["3", "1", "2", "E", "Z"]
        fine(pipeline(c, w.bind(["3"], name="late"), w.execute()))
        # A Close that no server has seen.
        got = pipeline(c, w.bind(["1"], name="p"), w.execute(), w.close("p"))
        assert [m.type for m in got] == ["2", "E", "Z"]
        fine(pipeline(c, w.bind(["4"], name="p"), w.execute()))
        one(c, "deallocate late")
        fine(pipeline(c, w.bind(["5"], name="p"), w.execute()))
        one(c, "begin")
        got = pipeline(c, w.parse(insert, "inner"), w.bind(["1"], name="inner"), w.execute())
        assert error_of(got).sqlstate == "23505"
        one(c, "rollback")
        fine(pipeline(c, w.bind(["6"], name="inner"), w.execute()))
        it.equal()
        assert it.nodes[2].rows("select id, v from t order by id") == [
            [b"%d" % i, v] for i, v in ((1, b"p"), (2, b"p"), (3, b"new"), (4, b"p"), (5, b"p"), (6, b"p"))]


def test_ends_of_transactions_within_a_sequence(pair):
    it = pair()
    with it.client() as c:
        got = fine(pipeline(c, run("begin"), run("insert into t (id) values (1)"), run("insert into s (v) values (1)"), run("commit")))
        assert [m.type for m in got] == ["1", "2", "C"] * 4 + ["Z"] and got[-1].body == b"I"
        got = fine(pipeline(c, run("insert into t (id) values (2)"), run("commit"), run("begin"), run("insert into t (id) values (3)")))
        assert got[-1].body == b"T"
        assert [r[0][0] for r in it.everywhere("select count(*) from t")] == [b"2", b"2"]
        fine(pipeline(c, run("rollback"), run("insert into t (id) values (4)")))
        got = pipeline(c, run("begin"), run("insert into t (id) values (5)"), run("insert into t (id) values (1)"), run("commit"))
        assert [m.type for m in got] == ["1", "2", "C"] * 2 + ["1", "2", "E", "Z"] and got[-1].body == b"E"
        fine(pipeline(c, run("rollback")))
        got = pipeline(c, run("insert into t (id) values (6)"), run("create table more (at timestamptz)"),
                       run("alter table more alter at set default clock_timestamp()"), run("insert into more default values"),
                       run("insert into t (id) values (1)"))
        assert error_of(got).sqlstate == "23505" and got[-1].body == b"I"
        assert error_of(c.simple("select from more")).sqlstate == "42P01", "all of it is undone"
        fine(pipeline(c, run("create table more (i int)"), run("alter table more add at timestamptz"),
                      run("alter table more alter at set default clock_timestamp()"), run("insert into more (i) values (1)")))
        it.equal(tables=("t", "s", "more"))
        assert it.nodes[1].rows("select id from t order by id") == [[b"1"], [b"2"], [b"4"]]
    address = it.pool.address
    with psycopg.connect(host=address.host, port=address.port, user="postgres", dbname="postgres") as conn:
        with conn.pipeline():
            for i in range(10, 15):
                conn.execute("insert into t (id, v) values (%s, %s)", [i, "x"])
                conn.commit()
        with pytest.raises(psycopg.errors.UniqueViolation), conn.pipeline():
            conn.execute("insert into t (id, v) values (15, 'x')")
            conn.execute("insert into t (id, v) values (10, 'x')")
            conn.commit()
        conn.rollback()
        conn.execute("insert into t (id, v) values (%s, 'y')", [16])
    it.equal()
    assert it.nodes[1].value("select count(*) from t where id >= 10") == "6"


def test_a_sequence_with_flushes_is_one(pair):
    """What was done before a Flush is undone on all nodes when the sequence fails behind it."""
    it = pair(3)
    with it.client() as c:
        c.send(run("insert into t (id, v) values (1, now()::text)"), w.FLUSH)
        assert [m.type for m in (c.read(), c.read(), c.read())] == ["1", "2", "C"]
        got = pipeline(c, run("insert into t (id) values (1)"))
        assert error_of(got).sqlstate == "23505" and got[-1].body == b"I"
        assert [r[0][0] for r in it.everywhere("select count(*) from t")] == [b"0"] * 3
        c.send(run("insert into t (id) values (2)"), w.FLUSH)
        assert [m.type for m in (c.read(), c.read(), c.read())] == ["1", "2", "C"]
        fine(pipeline(c, run("insert into t (id) values (3)")))
        c.send(run("insert into t (id) values (4)"), w.FLUSH)
        assert [m.type for m in (c.read(), c.read(), c.read())] == ["1", "2", "C"]
        fine(pipeline(c, run("rollback")))
        c.send(w.parse("select i from generate_series(1, 5) i"), w.bind(portal="x"), w.execute("x", 2), w.FLUSH)
        assert [m.type for m in [c.read() for _ in range(5)]] == ["1", "2", "D", "D", "s"]
        assert [m.type for m in pipeline(c, w.execute("x", 2))] == ["D", "D", "s", "Z"], "the portal is there"
        c.send(run("begin"), w.FLUSH)
        assert [m.type for m in (c.read(), c.read(), c.read())] == ["1", "2", "C"]
        got = pipeline(c, run("insert into t (id) values (5)"))
        assert got[-1].body == b"T"
        one(c, "rollback")
        it.equal()
        assert it.nodes[1].rows("select id from t order by id") == [[b"2"], [b"3"]]


def test_a_savepoint_in_front_of_what_fails(pair):
    """As PgJDBC (autosave) sends it: in one sequence with the statement that it saves; all nodes can go back to it."""
    it = pair(3)
    with it.client() as c:
        one(c, "insert into t (id) values (1)")
        fine(pipeline(c, run("begin"), run("insert into t (id) values (2)")))
        got = pipeline(c, run("savepoint a"), run("insert into t (id) values (1)"))
        assert error_of(got).sqlstate == "23505" and got[-1].body == b"E"
        got = fine(pipeline(c, run("rollback to savepoint a")))
        assert got[-1].body == b"T"
        fine(pipeline(c, run("insert into t (id) values (3)")))
        # One of two that have the same name is released: what is behind the other one goes.
        one(c, "savepoint a")
        one(c, "insert into t (id) values (4)")
        fine(pipeline(c, run("savepoint a")))
        assert error_of(pipeline(c, run("release a"), run("insert into t (id) values (1)"))).sqlstate == "23505"
        one(c, "rollback to a")
        # Where a cursor stands is not taken back.
        one(c, "declare x cursor for select id from accounts order by id for update")
        one(c, "savepoint b")
        assert error_of(pipeline(c, run("fetch 3 from x"), run("insert into t (id) values (1)"))).sqlstate == "23505"
        one(c, "rollback to b")
        one(c, "fetch from x")
        one(c, "update accounts set amount = 0 where current of x")
        fine(pipeline(c, run("commit")))
        assert it.equal() and it.nodes[2].rows("select id from t order by id") == [[b"1"], [b"2"], [b"3"]]


def test_numbers_that_a_failed_sequence_has_taken(pair):
    """A statement that fails has taken its numbers, on all nodes, also by the extended protocol."""
    it = pair(3)
    with it.client() as c:
        one(c, "create table z (id serial, v int unique)")
        fine(pipeline(c, run("insert into z (v) values (1)")))
        assert error_of(pipeline(c, run("insert into z (v) values (1)"))).sqlstate == "23505"
        assert error_of(pipeline(c, run("insert into z (v) values (2)"), run("insert into z (v) values (1)"))).sqlstate == "23505"
        fine(pipeline(c, run("begin"), run("savepoint a")))
        assert error_of(pipeline(c, run("insert into z (v) values ($1)", "1"))).sqlstate == "23505"
        fine(pipeline(c, run("rollback to a"), run("insert into z (v) values (3)"), run("commit")))
        assert error_of(pipeline(c, run("select nextval('z_id_seq') / 0"))).sqlstate == "22012"
        fine(pipeline(c, run("insert into z (v) values (4)")))
        assert it.equal(tables=("z",)), it.everywhere("select * from z")


def test_what_is_prepared_in_a_failed_transaction(pair):
    """PgJDBC parses and describes its ROLLBACK TO first (prepareThreshold = -1); what is closed with a read is closed on all nodes."""
    it = pair()
    with it.client() as c:
        one(c, "insert into t (id) values (1)")
        for name in ("s", ""):
            one(c, "begin")
            one(c, "savepoint a")
            assert error_of(c.simple("insert into t (id) values (1)")).sqlstate == "23505"
            fine(pipeline(c, w.parse("rollback to savepoint a", name), w.describe(name)))
            got = fine(pipeline(c, w.bind((), "", name), w.execute()))
            assert got[-1].body == b"T"
            one(c, "commit")
        one(c, "begin")
        assert error_of(c.simple("insert into t (id) values (1)")).sqlstate == "23505"
        fine(pipeline(c, w.close("s")))
        got = pipeline(c, w.parse("rollback", "s"), w.parse("insert into t (id) values (2)", "u"))
        assert error_of(got).sqlstate == "25P02"
        got = fine(pipeline(c, w.bind((), "", "s"), w.execute()))
        assert got[-1].body == b"I"
        for _ in range(6):
            fine(pipeline(c, w.close("s"), run("select 1")))
            fine(pipeline(c, w.parse("insert into q (v) values (1)", "s")))
            fine(pipeline(c, w.bind((), "", "s"), w.execute()))
        assert it.equal() and it.nodes[1].value("select count(*) from q") == "6"


def test_what_was_parsed_ends_what_has_failed(pair):
    """On all nodes: the others are made to fail by a query, which takes their unnamed statement away."""
    it = pair()
    with it.client() as c, it.client() as other:
        fine(pipeline(c, w.parse("select 1 / $1::int", "bad")))
        one(other, "set lock_timeout = '20s'")
        for end, row in (("rollback", 1), ("rollback to a", 2)):
            one(c, "begin")
            one(c, "savepoint a")
            one(c, f"update accounts set amount = amount + 1 where id = {row}")
            fine(pipeline(c, w.parse(end)))
            assert error_of(pipeline(c, w.bind(["0"], name="bad"), w.execute())).sqlstate == "22012"
            one(other, f"update accounts set amount = amount - 1 where id = {row}")
            got = fine(pipeline(c, w.bind(), w.execute()))
            assert [m.type for m in got] == ["2", "C", "Z"]
            assert got[-1].body == (b"I" if end == "rollback" else b"T")
        one(c, "update accounts set amount = amount + 7 where id = 2")
        one(c, "commit")
        it.equal()
