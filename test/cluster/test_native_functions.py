# SPDX-License-Identifier: PostgreSQL
"""Native replication and functions that were there before pgpool was: what in them is another thing on each node is named in the log by the
first session of a database, and refused with replication_nondeterministic = error."""
from pgt import waits
from pgt import wire as w
from pgt.native import error_of, one

NAMED = 'functions of database "postgres" tell the time, are random or take numbers of a sequence'
BEFORE = """\
create table stamped (id int primary key, at timestamptz);
create table plain (id int primary key);
create function stamp() returns trigger language plpgsql as $$ begin new.at := NOW(); return new; end $$;
create trigger stamps before insert or update on stamped for each row execute function stamp();
create function dice() returns float8 language sql volatile as $$ select Random() $$;
create procedure puts() language sql as $$ insert into plain values ((extract(epoch from current_timestamp))::int) $$;
create function adds(a int) returns int language sql volatile as $$ insert into plain values (a) returning id $$;
create function knows() returns text language sql volatile as $$ select 'what is known now, and randomly' $$;
"""


def made_before(pair, **conf):
    it = pair(**conf)
    for node in it.nodes:
        for sql in BEFORE.split(";\n"):
            if sql.strip():
                node.rows(sql)
    it.pool.stop()
    it.pool.start()
    waits.wait_for("somebody is let in", lambda: let_in(it)).bye()
    return it


def let_in(it, **params):
    try:
        return it.client(**params)
    except (w.WireClosed, OSError):
        return None


def lines(it):
    return [line for line in it.pool.log().splitlines() if NAMED in line]


def test_the_log_names_them_once(pair):
    it = made_before(pair)
    for _ in range(6):  # whichever worker they come to
        with it.client() as c:
            one(c, "insert into stamped values (1) on conflict do nothing")
    found = lines(it)
    assert len(found) == 1, found
    for name in ("public.stamp()", "public.dice()", "public.puts()", "public.stamped by its trigger stamps"):
        assert name in found[0], found
    for name in ("adds", "knows", "fails_here"):
        assert name not in found[0], found


def test_what_uses_them_is_refused(pair):
    it = made_before(pair, replication_nondeterministic="error")
    refused = {"select dice()": "dice", "call puts()": "puts", "insert into stamped values (2)": "stamped",
               "update stamped set id = 3 where id = 1": "stamped", "insert into plain select 5 where dice() > 2": "dice"}
    with it.client() as c:
        for sql, name in refused.items():
            for parts in ((w.query(sql),), (w.parse(sql), w.bind(), w.execute(), w.SYNC)):
                c.send(*parts)
                got = error_of(c.ready())
                assert got.sqlstate == "0A000" and f'"{name}" may differ' in got.text, (sql, got.text)
        for sql in ("select adds(7)", "select knows()", "delete from plain", "select * from stamped"):
            one(c, sql)
        # Another one takes its place.
        one(c, "create or replace function dice() returns float8 language sql volatile as $$ select 0.5::float8 $$")
        one(c, "select dice()")
    assert len(lines(it)) == 1


def test_a_short_time_out_is_none_for_the_question(pair):
    """Else it was asked again and again, and the client got no answer."""
    it = made_before(pair, replication_nondeterministic="error", num_init_children=1)
    it.nodes[0].rows("do $do$ begin for k in 1 .. 600 loop execute format('create function f%s() returns int language sql as $$ "
                     "select 1 /* %s */ $$', k, repeat('x', 2000)); end loop; end $do$")
    it.pool.stop()
    it.pool.start()
    with waits.wait_for("somebody is let in", lambda: let_in(it, options="-c statement_timeout=3ms")) as c:
        assert error_of(c.simple("insert into stamped values (2)")).sqlstate == "0A000"
        assert c.value("show statement_timeout") == "3ms"


def test_a_cancel_that_meets_the_question(pair):
    """It is the client's, who is told; nothing runs that would have to be refused."""
    it = made_before(pair, replication_nondeterministic="error", num_init_children=1)
    it.pool.stop()
    it.pool.start()
    lock = w.Wire(it.nodes[0].address)
    lock.login()
    with waits.wait_for("somebody is let in", lambda: let_in(it)) as c:
        one(lock, "begin; lock table pg_catalog.pg_trigger in access exclusive mode")
        c.send(w.query("insert into stamped values (2)"))
        waits.wait_for("it is asked for functions", lambda: lock.value("select count(*) from pg_locks where not granted") != "0")
        w.cancel(it.pool.address, c.pid, c.key)
        assert error_of(c.ready()).sqlstate == "57014"
        one(lock, "commit")
        assert error_of(c.simple("insert into stamped values (2)")).sqlstate == "0A000"
    lock.bye()


def test_nobody_asks_where_it_is_allowed(pair):
    it = made_before(pair, replication_nondeterministic="allow")
    with it.client() as c:
        one(c, "insert into stamped values (1)")
    assert not lines(it)
