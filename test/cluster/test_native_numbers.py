# SPDX-License-Identifier: PostgreSQL
"""Native replication: what takes a number of a sequence and is cut short has taken it on some nodes only. Who takes the next one, by whatever
pgpool, gets the same number everywhere, and the sequences stand alike again."""
import signal

import pytest
from pgt import waits
from pgt import wire as w
from pgt.native import error_of, kill_workers, one

INSERT = "insert into child (parent) values (1)"
SEQUENCE = "select last_value, is_called from child_id_seq"
WAITS = "select pid from pg_stat_activity where wait_event_type = 'Lock' and datname is not null"
PROTOCOLS = pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])


def sent(c, extended, sql=INSERT):
    c.send(*((w.parse(sql), w.bind(), w.execute(), w.SYNC) if extended else (w.query(sql),)))


def let_in(it):
    try:
        return it.client()
    except (w.WireClosed, OSError):
        return None


def taken(it, extended=False):
    """A number that is the same on all nodes, in front of sequences that are."""
    with waits.wait_for("somebody is let in", lambda: let_in(it)) as c:
        sent(c, extended)
        assert not [m for m in c.ready(seconds=60) if m.type == "E"]
    assert it.equal(tables=("child",))
    assert len({str(r) for r in it.everywhere(SEQUENCE)}) == 1, it.everywhere(SEQUENCE)
    return it.nodes[0].rows("select max(id) from child")


def started(pair, **conf):
    it = pair(**conf)
    with it.client() as c:
        one(c, "create table child (id serial primary key, parent int references accounts)")
    taken(it)
    return it


def waits_at(it, node):
    return waits.wait_for(f"it waits on node {node}", lambda: it.nodes[node].rows(WAITS))


def holds(it, node):
    """Somebody at a server lets what comes wait: on the main node behind its number, on another in front of it."""
    d = w.Wire(it.nodes[node].address)
    d.login()
    one(d, "begin")
    one(d, "select 1 from accounts where id = 1 for update" if node == 0 else "lock table child in share mode")
    return d


def cancelled(it, c, node):
    w.cancel(it.pool.address, c.pid, c.key)
    assert error_of(c.ready(seconds=60)).sqlstate == "57014"


def timed_out(it, c, node):
    assert error_of(c.ready(seconds=60)).sqlstate in ("57014", "55P03")


def link_lost(it, c, node):
    it.nodes[node].rows(f"select pg_terminate_backend(pid) from ({WAITS}) x")
    try:
        error_of(c.ready(seconds=60))
    except w.WireClosed:
        pass


def client_gone(it, c, node):
    c.reset()
    waits.wait_for("nothing waits", lambda: not it.nodes[node].rows(WAITS))


def worker_killed(it, c, node):
    kill_workers(it, c)


CUTS = {"cancel": (cancelled, None), "statement_timeout": (timed_out, "statement_timeout"), "lock_timeout": (timed_out, "lock_timeout"),
        "link": (link_lost, None), "client": (client_gone, None), "worker": (worker_killed, None)}


@PROTOCOLS
@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize("cut", CUTS)
def test_cut_short(pair, cut, node, extended):
    it = started(pair)
    ends, limit = CUTS[cut]
    with it.client() as c, holds(it, node) as d:
        if limit:
            one(c, f"set {limit} = '300ms'")
        sent(c, extended)
        waits_at(it, node)
        ends(it, c, node)
        one(d, "rollback")
    waits.wait_for("servers have noticed", lambda: not any(it.everywhere(
        "select 1 from pg_stat_activity where state <> 'idle' and query ~ 'insert into child' and pid <> pg_backend_pid()")))
    if node == 0 and cut != "worker":
        assert len({str(r) for r in it.everywhere(SEQUENCE)}) == 2  # else nothing is shown
    taken(it, extended)


def behind(it, sql=INSERT, extended=False, before=(), **who):
    """`sql` takes its number on the main node alone."""
    with it.client(**who) as c, holds(it, 0) as d:
        for s in before:
            one(c, s)
        sent(c, extended, sql)
        waits_at(it, 0)
        cancelled(it, c, 0)
        one(d, "rollback")
    assert len({str(r) for r in it.everywhere(SEQUENCE)}) == 2


@PROTOCOLS
def test_the_next_one_by_another_pgpool(pair, start_pool, extended):
    it = started(pair)
    beside = start_pool(*[n.address for n in it.nodes], **it.pool_settings)
    behind(it)
    c = w.Wire(beside.address)
    with c:
        c.login()
        sent(c, extended)
        assert not [m for m in c.ready(seconds=60) if m.type == "E"]
    assert it.equal(tables=("child",))
    assert len({str(r) for r in it.everywhere(SEQUENCE)}) == 1


NEXT = {
    "nextval": ["select nextval('child_id_seq')"],
    "transaction": ["begin", "select 1 from accounts limit 1", INSERT, INSERT, "commit"],
    "written": ["begin; insert into child values (nextval('child_id_seq'), 1); insert into child (parent) values (2); commit"],
    "execute": ["prepare p as insert into child (parent) values ($1)", "execute p (1)"],
    "two tables": ["create table other (id int default nextval('child_id_seq'), n serial)", "insert into other select from generate_series(1, 3)"],
    "fails": ["insert into child (parent) values (1), (99)"],
}


@PROTOCOLS
@pytest.mark.parametrize("what", NEXT)
def test_whatever_takes_the_next_one(pair, what, extended):
    if extended and what in ("written", "execute"):
        pytest.skip("several statements, and PREPARE by SQL, are not for the extended protocol")
    it = started(pair, **({"replication_compare": "rows"} if what != "two tables" else {}))
    behind(it, extended=extended)
    with it.client() as c:
        for sql in NEXT[what]:
            sent(c, extended, sql)
            got = c.ready(seconds=60)
            if what == "fails":
                assert error_of(got).sqlstate == "23503"
            else:
                assert not [m for m in got if m.type == "E"], [m.text for m in got if m.type == "E"]
    assert len({str(r) for r in it.everywhere(SEQUENCE)}) == 1
    taken(it)
    if what == "two tables":
        assert it.equal(tables=("other",))


def test_rows_of_copy(pair):
    it = started(pair)
    behind(it)
    with it.client() as c:
        c.send(w.query("copy child (parent) from stdin"))
        c.read_until("G")
        c.send(w.copy_data(b"1\n2\n"), w.COPY_DONE)
        assert not [m for m in c.ready() if m.type == "E"]
    taken(it)


@PROTOCOLS
def test_who_may_only_use_it(pair, extended):
    """GRANT USAGE does not allow setval()."""
    it = started(pair)
    with it.client() as c:
        one(c, "create role clerk login; grant insert, update, select on child to clerk; grant select on accounts to clerk; grant usage on child_id_seq to clerk")
    for _ in range(3):
        behind(it)
    with it.client(user="clerk") as c:
        sent(c, extended)
        assert not [m for m in c.ready() if m.type == "E"]
    assert it.equal(tables=("child",))
    assert len({str(r) for r in it.everywhere(SEQUENCE)}) == 1


@PROTOCOLS
def test_who_may_not_even_see_it(pair, extended):
    """An identity column needs no right to its sequence: who has none is told, and whoever has one puts it right."""
    it = pair()
    with it.client() as c:
        one(c, "create table child (id int generated always as identity primary key, parent int references accounts)")
        one(c, "create role clerk login; grant insert, update, select on child to clerk; grant select on accounts to clerk")
    told = "a statement that takes numbers of a sequence was cut short"
    behind(it, extended=extended)
    assert told not in it.pool.log()
    behind(it, user="clerk", extended=extended)
    waits.wait_for("it is told", lambda: told in it.pool.log())
    taken(it, extended)


def test_the_first_number_and_a_sequence_that_descends(pair):
    it = pair()
    with it.client() as c:
        one(c, "create sequence child_id_seq increment -3 start 100 maxvalue 1000")
        one(c, "create table child (id int default nextval('child_id_seq') primary key, parent int references accounts)")
        one(c, "create role clerk login; grant insert, update, select on child to clerk; grant select on accounts to clerk; grant usage on child_id_seq to clerk")
    for user in ("postgres", "clerk"):
        behind(it)
        with it.client(user=user) as c:
            one(c, INSERT)
        assert it.equal(tables=("child",))
        assert it.everywhere(SEQUENCE)[0] == it.everywhere(SEQUENCE)[1]


FURTHER = "a sequence was further on another node"
AHEAD = {
    "statement": [INSERT],
    "transaction": ["begin", "select 1 from accounts limit 1", INSERT],
    "nextval": ["select nextval('child_id_seq')"],
    "returning": ["insert into child (parent) select 1 from generate_series(1, 3) returning id"],
    "fails": ["insert into child (parent) values (99)", INSERT],
    "copy": ["copy child (parent) from stdin"],
}


@PROTOCOLS
@pytest.mark.parametrize("what", AHEAD)
def test_another_node_is_further(pair, what, extended):
    """As behind a crash of that server, which leaves out up to 32 numbers. Nobody gets other numbers there: who comes first is to do it again."""
    it = started(pair, **({"replication_compare": "rows"} if what == "returning" else {}))
    it.nodes[1].rows("select nextval('child_id_seq') from generate_series(1, 7)")
    with it.client() as c:
        for sql in AHEAD[what]:
            sent(c, extended and what != "copy", sql)
            if what == "copy":
                c.read_until("G")
                c.send(w.copy_data(b"1\n2\n"), w.COPY_DONE)
            got = c.ready(seconds=60)
            if sql.startswith("insert into child (parent) values (99)"):
                assert error_of(got).sqlstate == "23503"
        e = error_of(got)
        assert (e.sqlstate, e.text.startswith(FURTHER)) == ("40001", True)
        if what == "transaction":
            assert got[-1].body == b"E"
            one(c, "rollback")
        assert it.equal(tables=("child",))
        sent(c, extended, AHEAD[what][-1] if what != "copy" else INSERT)
        assert not [m for m in c.ready(seconds=60) if m.type == "E"]
    assert [r[3] for r in it.status()] == ["up", "up"]
    taken(it, extended)
    assert it.pool.log().count(FURTHER) == 0  # it is the client's, like any 40001


@PROTOCOLS
def test_two_are_further_and_the_user_may_only_use_it(pair, extended):
    it = started(lambda **conf: pair(3, **conf))
    with it.client() as c:
        one(c, "create role clerk login; grant insert, update, select on child to clerk; grant select on accounts to clerk; grant usage on child_id_seq to clerk")
    for node, more in ((1, 3), (2, 5)):
        it.nodes[node].rows(f"select nextval('child_id_seq') from generate_series(1, {more})")
    with it.client(user="clerk") as c:
        sent(c, extended)
        assert error_of(c.ready(seconds=60)).sqlstate == "40001"
        sent(c, extended)
        assert not [m for m in c.ready(seconds=60) if m.type == "E"]
    assert it.equal(tables=("child",))
    taken(it, extended)


@PROTOCOLS
@pytest.mark.parametrize("within", [False, True], ids=["alone", "transaction"])
def test_a_node_cannot_tell_where_it_stands(pair, within, extended):
    """What is not known to be equal is not done, and nobody is told that it is."""
    it = started(pair)
    with it.client() as c:
        one(c, f"create function hides() returns text language plpgsql as $$ begin if current_setting('port') = '{it.nodes[0].port}' then "
               "return set_config('search_path', 'pg_catalog', true); end if; return ''; end $$")
    it.nodes[1].rows("select nextval('child_id_seq') from generate_series(1, 7)")
    with it.client() as c:
        if within:
            one(c, "begin")
        sent(c, extended, "insert into child (parent) select 1 from (select nextval('child_id_seq'), hides()) x")
        got = c.ready(seconds=60)
        assert error_of(got).sqlstate == "42P01" and got[-1].body == (b"E" if within else b"I")
        assert "C" not in [m.type for m in got]
        one(c, "rollback" if within else "select 1")
        assert it.equal(tables=("child",))


@PROTOCOLS
def test_the_user_may_only_look_at_it(pair, extended):
    """An identity column needs no right to its sequence: nothing is put right by who has none, and nobody is refused for ever."""
    it = started(pair)
    with it.client() as c:
        one(c, "create role clerk login; create table own (id int generated by default as identity, v int); grant insert, update, select on own to clerk; "
               "grant select on own_id_seq to clerk; insert into own (v) values (1)")
    for further in (1, 0):
        it.nodes[further].rows("select nextval('own_id_seq') from generate_series(1, 3)")
        with it.client(user="clerk") as c:
            sent(c, extended, "insert into own (v) values (2)")
            assert not [m for m in c.ready(seconds=60) if m.type == "E"]


def test_a_server_crashes_and_its_sequences_are_further(pair):
    """Back before anybody has missed it: it has left out numbers, as it had written down some in advance."""
    it = started(pair, conf_of_nodes={"synchronous_commit": "on"}, health_check_max_retries=100, health_check_retry_delay=1)
    it.nodes[1].stop(signal.SIGKILL)
    it.nodes[1].start()
    assert len({str(r) for r in it.everywhere(SEQUENCE)}) == 2
    assert [r[3] for r in it.status()] == ["up", "up"]
    with waits.wait_for("somebody is let in", lambda: let_in(it)) as c:
        sent(c, False)
        got = c.ready(seconds=60)
        assert error_of(got).sqlstate == "40001"
    taken(it)


def test_the_main_node_is_lost_behind_it(pair):
    """What was cut short was told to nobody: the next main node gives that number, and no other twice."""
    it = started(pair)
    behind(it)
    it.nodes[0].stop(signal.SIGKILL)
    waits.wait_for("it is down", lambda: it.status()[0][3] == "down" and it.status()[1][3] == "up", 60)
    with it.client() as c:
        for _ in range(3):
            one(c, INSERT)
    assert it.nodes[1].rows("select id from child order by 1") == [[b"1"], [b"2"], [b"3"], [b"4"]]


def test_what_has_no_lock_and_comes_between(pair):
    """A function takes numbers without the lock. What read where the sequence stands, and waited for it, sets no server back: a number would be given twice."""
    it = started(pair)
    with it.client() as c:
        one(c, "create function adds() returns int language plpgsql volatile as $$ begin insert into child (parent) values (1); "
               "insert into child (parent) values (2); insert into child (parent) values (3); return 1; end $$")
    with it.client() as a, it.client() as b, holds(it, 0) as d:
        d.simple("rollback")
        one(d, "begin; select 1 from accounts where id = 2 for update")
        a.send(w.query("select adds()"))
        waits_at(it, 0)  # it has taken two of three
        b.send(w.query(INSERT))
        waits.wait_for("both wait", lambda: len(it.nodes[0].rows(WAITS)) == 2)
        one(d, "rollback")
        for c in (a, b):
            assert not [m for m in c.ready(seconds=60) if m.type == "E"]
    for node in it.nodes:
        assert node.rows("select id, parent from child order by 1") == [[b"1", b"1"], [b"2", b"1"], [b"3", b"2"], [b"4", b"3"], [b"5", b"1"]]
    taken(it)
