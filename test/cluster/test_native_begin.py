# SPDX-License-Identifier: PostgreSQL
"""virtual_begin in native replication: BEGIN is answered at once, and each node begins with the first statement that it runs."""
from pgt import wire as w
from pgt.native import error_of, one
from pgt.wire import Wire

IN_TX = "select count(*) from pg_stat_activity where state like 'idle in transaction%'"


def tags(messages):
    return [m.body for m in messages if m.type == "C"]


def lines(node, word):
    """What the server was told that begins so."""
    return [line.split("statement: ", 1)[1] for line in node.log().splitlines() if f"statement: {word}" in line]


def told_by_clients(node):
    """What the server was told, but for the questions of the health checks, which may come at any time."""
    return [line for line in lines(node, "") if "pg_stat_wal_receiver" not in line]


def test_each_node_begins_with_what_it_runs(pair):
    it = pair()
    with it.client() as c:
        assert [(m.type, m.body) for m in one(c, "begin")] == [("C", b"BEGIN\0"), ("Z", b"T")]
        assert [n.value(IN_TX) for n in it.nodes] == ["0", "0"]
        assert c.simple("show pool_version")[-1].body == b"T"
        got = one(c, "update accounts set amount = 1 where id = 1 returning id")
        assert [m.type for m in got] == ["T", "D", "C", "Z"] and got[-1].body == b"T"
        assert [n.value(IN_TX) for n in it.nodes] == ["1", "1"]
        assert one(c, "commit")[-1].body == b"I"
        assert it.equal() and it.nodes[1].value("select amount from accounts where id = 1") == "1"
        for n in it.nodes:
            assert lines(n, "begin") == ["begin;update accounts set amount = 1 where id = 1 returning id"]
        # Who only reads begins on one node.
        one(c, "start transaction isolation level repeatable read")
        assert c.value("select current_setting('transaction_isolation')") == "repeatable read"
        assert [n.value(IN_TX) for n in it.nodes] == ["1", "0"]
        assert tags(one(c, "end")) == [b"COMMIT\0"]
        assert not lines(it.nodes[1], "start") and not lines(it.nodes[1], "end")
        one(c, "begin isolation level repeatable read")
        one(c, "select count(*) from t")
        one(c, "insert into t (id, v) values (2, current_setting('transaction_isolation'))")
        one(c, "commit")
        assert it.everywhere("select v from t where id = 2") == [[[b"repeatable read"]]] * 2
        # An empty one is told to nobody.
        told = [told_by_clients(n) for n in it.nodes]
        for begin, tag, end, ended in (("begin", b"BEGIN\0", "commit", b"COMMIT\0"), ("START TRANSACTION READ ONLY", b"START TRANSACTION\0", "rollback", b"ROLLBACK\0"),
                                       ("begin work", b"BEGIN\0", "end", b"COMMIT\0")):
            assert tags(one(c, begin)) == [tag]
            got = one(c, end)
            assert tags(got) == [ended] and got[-1].body == b"I"
        assert [told_by_clients(n) for n in it.nodes] == told
        one(c, "begin")
        one(c, "commit and chain")
        one(c, "update accounts set amount = 2 where id = 1")
        one(c, "rollback")
        assert it.everywhere("select amount from accounts where id = 1") == [[[b"1"]]] * 2
    it.equal()


def test_what_cannot_bring_the_begin_with_it(pair):
    it = pair()
    with it.client() as c:
        for first in ("savepoint a", "set transaction isolation level serializable", "lock table t", "declare x cursor for select 1", "begin", "",
                      "set local work_mem = '1MB'; insert into q (v) values (1)"):
            one(c, "begin")
            one(c, first)
            assert [n.value(IN_TX) for n in it.nodes] == ["1", "1"], first
            one(c, "insert into t (id) values (7)")
            one(c, "rollback")
        c.send(w.parse("insert into t (id) values (3)", "ins") + w.SYNC)
        c.ready()
        one(c, "begin")
        c.send(w.bind((), "", "ins") + w.execute() + w.SYNC)
        assert c.ready()[-1].body == b"T"
        assert [n.value(IN_TX) for n in it.nodes] == ["1", "1"]
        c.send(w.parse("commit") + w.bind() + w.execute() + w.SYNC)
        assert c.ready()[-1].body == b"I"
        assert it.everywhere("select id from t") == [[[b"3"]]] * 2 and it.equal()
        one(c, "begin")
        one(c, "select 1")
    with it.client() as c:  # on a connection that was left within one
        assert c.simple("select 1")[-1].body == b"I"
        one(c, "insert into t (id) values (4)")
    assert it.everywhere("select count(*) from t") == [[[b"2"]]] * 2


def test_errors_are_those_of_the_client_s_text(pair):
    it = pair()
    with it.client() as c, Wire(it.nodes[0].address) as direct:
        direct.login()
        for sql in ("select nothing from t", "  insert into accounts (id) values (91), ('\u00f6' || nothing)", "update accounts set id = 1 / 0 where id = 1 / (id - id)",
                    "merge into t using q on t.id = q.id when matched then delete returning 1"):
            one(c, "begin")
            one(direct, "begin")
            theirs = direct.simple(sql.strip())
            ours = c.simple(sql)
            assert [m.type for m in ours] == [m.type for m in theirs] and ours[-1].body == theirs[-1].body, sql
            if ours[0].type == "E":
                for field in "CMP":
                    assert error_of(ours).fields.get(field) == error_of(theirs).fields.get(field), (sql, field)
                assert error_of(c.simple("insert into accounts (id) values (92)")).sqlstate == "25P02"
            assert tags(one(c, "commit")) == tags(one(direct, "commit"))
        for begin, set_it in (("begin read only", "select 1"), ("begin", "set default_transaction_read_only = on")):
            one(c, set_it)
            one(c, begin)
            assert error_of(c.simple("insert into accounts (id) values (93)")).sqlstate == "25006"
            assert error_of(c.simple("select 1")).sqlstate == "25P02"
            one(c, "rollback")
        one(c, "reset default_transaction_read_only")
        one(c, "begin")
        one(c, "insert into accounts (id) values (94)")
        assert error_of(c.simple("insert into accounts (id) values (94)")).sqlstate == "23505"
        one(c, "rollback")
        one(c, "insert into accounts (id) values (96)")
        assert it.everywhere("select id from accounts where id > 90") == [[[b"96"]]] * 2 and it.equal()


def test_the_main_node_runs_it_behind_the_question(pair):
    """In the client's transaction a statement that tells the time is sent with the question what time it is."""
    it = pair()
    with it.client() as c:
        one(c, "create table stamps (id serial primary key, a timestamptz default now(), b date, c time(2) with time zone, d text)")
        one(c, "begin")
        one(c, "select 1")
        got = one(c, "insert into stamps (b, c, d) values (current_date, current_time(2), now()::text) returning a, d")
        assert [m.type for m in got] == ["T", "D", "C", "Z"]
        one(c, "update stamps set d = transaction_timestamp()::text, a = default")
        assert error_of(c.simple("insert into stamps (id, b) values (1, localtimestamp)")).sqlstate == "23505"
        one(c, "rollback")
        one(c, "begin")
        one(c, "savepoint a")
        got = one(c, "insert into stamps (b, c, d) values (current_date, current_time(2), now()::text), (null, localtime, localtimestamp::text)")
        assert tags(got) == [b"INSERT 0 2\0"]
        assert error_of(c.simple("insert into stamps (id, b) values (2, current_date)")).sqlstate == "23505"
        one(c, "rollback to a")
        one(c, "insert into stamps (b) values (current_date)")
        one(c, "commit")
        told = [n.log() for n in it.nodes]
        assert "values (current_date, current_time(2), now()::text), (null" in told[0] and "values (current_date, current_time(2), now()::text), (null" not in told[1]
        # A lock that is refused: nothing runs, on no node.
        one(c, "set lock_timeout = '300ms'")
        with Wire(it.nodes[0].address) as other:
            other.login()
            one(other, "begin; lock table stamps in share mode")
            one(c, "begin")
            one(c, "select 1")
            assert error_of(c.simple("insert into stamps (b) values (current_date)")).sqlstate == "55P03"
            assert error_of(c.simple("select 1")).sqlstate == "25P02"
            one(c, "rollback")
            one(other, "rollback")
        one(c, "insert into stamps (d) values (now()::text)")
        one(c, "begin")
        one(c, "insert into stamps (d) values ('x')")
        one(c, "commit")
    it.equal(tables=("stamps",))
    assert len(it.everywhere("select id from stamps")[0]) == 3
    assert len({r[0][0] for r in it.everywhere("select last_value from stamps_id_seq")}) == 1


def test_off(pair):
    it = pair(virtual_begin=False)
    with it.client() as c:
        one(c, "begin")
        assert [n.value(IN_TX) for n in it.nodes] == ["1", "1"]
        one(c, "insert into t (id) values (1)")
        one(c, "commit")
        assert it.equal()


def run(sql, *params):
    return w.parse(sql) + w.bind(params) + w.execute()


def pipeline(c, *parts):
    c.send(*parts, w.SYNC)
    return c.ready()


def test_by_the_extended_protocol(pair):
    """As PgJDBC sends it: by itself, in front of the first statement, by a name."""
    it = pair()

    def open_transactions():
        return [n.value(IN_TX) for n in it.nodes]

    with it.client() as c:
        got = pipeline(c, run("begin"))
        assert [(m.type, m.body) for m in got] == [("1", b""), ("2", b""), ("C", b"BEGIN\0"), ("Z", b"T")]
        assert open_transactions() == ["0", "0"]
        for i in (1, 2):
            got = pipeline(c, run("insert into t (id, v) values ($1, now()::text)", str(i)))
            assert [m.type for m in got] == ["1", "2", "C", "Z"] and got[-1].body == b"T"
        assert open_transactions() == ["1", "1"]
        assert pipeline(c, run("commit"))[-1].body == b"I"
        assert len(lines(it.nodes[0], "begin;SELECT ")) == 1 and "execute pgpool_native_begin/pgpool_native_begin: begin" in it.nodes[1].log()
        assert it.everywhere("select count(distinct v) from t") == [[[b"1"]]] * 2, "the time is the transaction's"
        got = pipeline(c, w.parse("START TRANSACTION"), w.bind(), w.describe("", "P"), w.execute(), run("insert into t (id) values (3)"), run("commit"))
        assert [m.type for m in got] == ["1", "2", "n", "C", "1", "2", "C", "1", "2", "C", "Z"]
        assert tags(got) == [b"START TRANSACTION\0", b"INSERT 0 1\0", b"COMMIT\0"]
        # By a name; who only reads begins on one node.
        assert pipeline(c, w.parse("begin isolation level repeatable read", "b"))[-1].body == b"I"
        got = pipeline(c, w.bind((), "", "b"), w.execute())
        assert [m.type for m in got] == ["2", "C", "Z"] and open_transactions() == ["0", "0"]
        got = pipeline(c, run("select current_setting('transaction_isolation')"))
        assert [m.row() for m in got if m.type == "D"] == [[b"repeatable read"]] and open_transactions() == ["1", "0"]
        assert tags(pipeline(c, run("begin"))) == [b"BEGIN\0"]  # with a warning
        assert tags(pipeline(c, run("rollback"))) == [b"ROLLBACK\0"] and open_transactions() == ["0", "0"]
        # It fails at once; an empty one; a function call; a Query behind it.
        pipeline(c, run("begin"))
        assert error_of(pipeline(c, run("insert into t (id) values (1)"))).sqlstate == "23505"
        assert error_of(pipeline(c, run("select 1"))).sqlstate == "25P02"
        assert pipeline(c, run("rollback"))[-1].body == b"I" and open_transactions() == ["0", "0"]
        for ends in ("commit", "rollback"):
            assert pipeline(c, run("begin"))[-1].body == b"T"
            assert pipeline(c, run(ends))[-1].body == b"I"
        pipeline(c, run("begin"))
        c.send(w.function_call(957, [b"\xff\xff\xff\xff"]))
        assert [m.type for m in c.ready()] == ["V", "Z"]
        one(c, "rollback")
        pipeline(c, run("begin"))
        one(c, "insert into t (id) values (5)")
        assert pipeline(c, run("commit"))[-1].body == b"I" and open_transactions() == ["0", "0"]
        assert error_of(pipeline(c, w.parse("begin"), w.bind(("1",)), w.execute())).sqlstate == "08P01"
        assert it.equal() and it.nodes[1].value("select count(*) from t") == "4"


def test_our_own_goes_with_the_statement(pair):
    """Nothing runs outside of it: it is in one text, or in one sequence, with what it is for."""
    it = pair()
    with it.client() as c, Wire(it.nodes[0].address) as direct:
        direct.login()
        one(c, "insert into t (id) values (1)")
        one(c, "update t set v = 'x'")
        pipeline(c, run("update t set v = $1", "2"))
        for n in it.nodes:
            assert len(lines(n, "BEGIN;update t ")) == 1
            assert n.log().count("execute pgpool_native_begin/pgpool_native_begin: BEGIN") == 1
        for sql in ("insert into nowhere values (1)", "update t set v = nothing", "delete from t where", "insert into t (id) values (1)"):
            mine, his = (error_of(x.simple(sql)) for x in (c, direct))
            assert (mine.sqlstate, mine.text, mine.fields.get("P")) == (his.sqlstate, his.text, his.fields.get("P")), sql
            assert not [n for n in it.nodes if n.value(IN_TX) != "0"], sql
        # The unnamed statement outlives it.
        pipeline(c, w.parse("insert into q (v) values (4)"))
        assert pipeline(c, w.bind(), w.execute())[-1].body == b"I"
        log = it.nodes[0].log()
        assert log.count("pgpool_native_begin: BEGIN") == 2 and "pgpool_native_lock: LOCK TABLE q" in log
        assert it.equal() and it.nodes[1].value("select count(*) from q") == "1"
