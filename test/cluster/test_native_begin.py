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
        told = [n.log().count("statement: ") for n in it.nodes]
        for begin, tag, end, ended in (("begin", b"BEGIN\0", "commit", b"COMMIT\0"), ("START TRANSACTION READ ONLY", b"START TRANSACTION\0", "rollback", b"ROLLBACK\0"),
                                       ("begin work", b"BEGIN\0", "end", b"COMMIT\0")):
            assert tags(one(c, begin)) == [tag]
            got = one(c, end)
            assert tags(got) == [ended] and got[-1].body == b"I"
        assert [n.log().count("statement: ") for n in it.nodes] == told
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
