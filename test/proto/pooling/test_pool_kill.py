# SPDX-License-Identifier: PostgreSQL
"""test_pool_kill: transaction mode, pg_terminate_backend() and pg_cancel_backend() of the number that pgpool told a client:
an order about that client, for who has the right to it by the server's own word."""
import struct

import pytest
from pooling_house import login, states

from pgt import fake as fakes
from pgt import waits
from pgt.wire import FLUSH, SYNC, bind, cancel, close, describe, execute, parse, query

INT4 = 23


@pytest.fixture
def pool(pg, start_pool):
    return start_pool(pg.address, num_init_children=2, worker_fill=1, pool_mode="transaction", max_backend_connections=0)


def call(c, what: str, how: str, pid: int) -> list:
    """The value, or the SQLSTATE."""
    name = f"pg_{what}_backend"
    if how == "simple":
        found = c.simple(f"select {name}({pid})")
    elif how == "literal":
        c.send(parse(f"SELECT pg_catalog.{name}({pid});") + bind() + describe("", "P") + execute() + SYNC)
        found = c.ready()
    elif how == "text":
        c.send(parse(f"select {name}($1)") + bind(params=(str(pid),)) + describe("", "P") + execute() + SYNC)
        found = c.ready()
    elif how == "binary":
        c.send(parse(f"select {name}($1)", "k") + describe("k") + SYNC)
        assert not states(c.ready())
        c.send(bind(name="k", params=(struct.pack("!i", pid),), formats=(1,), results=(1,)) + execute() + SYNC)
        found = c.ready()
        c.send(close("k") + SYNC)
        assert not states(c.ready())
    return states(found) or [m.row()[0] for m in found if m.type == "D"]


YES = {"simple": b"t", "literal": b"t", "text": b"t", "binary": b"\1"}


@pytest.mark.parametrize("how", YES)
def test_terminate(pool, how):
    one, other = login(pool), login(pool)
    assert one.pid != other.pid and other.pid >= 1 << 30
    assert call(one, "terminate", how, other.pid) == [YES[how]]
    assert [m.fields["C"] for m in other.read_eof() if m.type == "E"] == ["57P01"]
    assert one.value("select 1") == "1"
    assert one.simple("begin")[-1].body == b"T"
    one.simple("select 1")
    third = login(pool)
    assert call(one, "terminate", how, third.pid) == [YES[how]], "in a transaction, too"
    assert third.read_eof()
    assert one.simple("commit")[-1].body == b"I"
    one.bye()


@pytest.mark.parametrize("blanks", [" ", "\n\t  "])
@pytest.mark.parametrize("how", ["simple", "extended"])
def test_blanks_in_front(pool, how, blanks):
    one, other = login(pool), login(pool)
    sql = f"{blanks}select pg_terminate_backend({other.pid})"
    one.send(query(sql) if how == "simple" else parse(sql) + bind() + describe("", "P") + execute() + SYNC)
    assert [m.row()[0] for m in one.ready() if m.type == "D"] == [b"t"]
    assert [m.fields["C"] for m in other.read_eof() if m.type == "E"] == ["57P01"]
    one.bye()


@pytest.mark.parametrize("how", YES)
def test_cancel(pg, pool, how):
    one, other = login(pool), login(pool)
    other.send(query("select pg_sleep(60), 'to be cancelled'"))
    waits.wait_for("it runs", lambda: pg.sessions("query like '%to be cancelled%' and state = 'active'"))
    assert call(one, "cancel", how, other.pid) == [YES[how]]
    assert states(other.read_until("Z")) == ["57014"]
    assert other.value("select 1") == "1"
    one.bye()
    other.bye()


@pytest.mark.parametrize("how", YES)
def test_rights(pg, pool, how):
    """Of another role, of a superuser, and of somebody who acts as a role."""
    boss = login(pool)
    one, two = (login(pool, user=user, password=user + "_pw") for user in ("plain_user", "trust_user"))
    again = login(pool, user="plain_user", password="plain_user_pw")
    for what in ("terminate", "cancel"):
        assert call(one, what, how, two.pid) == ["42501"]
        assert call(one, what, how, boss.pid) == ["42501"]
    assert call(one, "terminate", how, again.pid) == [YES[how]]
    assert again.read_eof()
    assert two.value("select 1") == boss.value("select 1") == "1"
    assert not states(boss.simple("set role plain_user"))
    assert call(boss, "terminate", how, two.pid) == ["42501"]
    assert not states(boss.simple("reset role"))
    assert call(boss, "terminate", how, two.pid) == [YES[how]]
    assert two.read_eof()
    for c in (boss, one):
        c.bye()


MEMBERS = """
    create role kill_member login in role plain_user;
    create role kill_idle login noinherit in role plain_user;
    create role kill_signaller login in role pg_signal_backend;
    create table kill_notes (n int);
    grant all on kill_notes to public"""


@pytest.fixture
def members(pg):
    """Roles that have plain_user's rights, might take them, and may signal anybody's; and a table."""
    pg.rows(MEMBERS)
    yield
    pg.rows("drop table kill_notes; drop role kill_member, kill_idle, kill_signaller")


@pytest.mark.parametrize("mode", ["transaction", "statement", "session"])
@pytest.mark.parametrize("how", YES)
def test_rights_of_members(pool, members, how, mode):
    """Membership counts as in PostgreSQL: what is inherited, or was taken by SET ROLE; of pg_signal_backend, but not over superusers."""
    boss, other = login(pool), login(pool, user="trust_user")
    plain = {"user": "plain_user", "password": "plain_user_pw"}
    member, idle, signaller = (login(pool, user=f"kill_{name}") for name in ("member", "idle", "signaller"))
    for c in (member, idle, signaller):
        assert not states(c.simple(f"set pool_mode = '{mode}'"))
    for what in ("cancel", "terminate"):
        assert call(signaller, what, how, boss.pid) == ["42501"]
        assert call(member, what, how, boss.pid) == ["42501"]
        assert call(member, what, how, other.pid) == ["42501"]
    for c in (member, signaller):
        target = login(pool, **plain)
        assert call(c, "cancel", how, target.pid) == [YES[how]]
        assert call(c, "terminate", how, target.pid) == [YES[how]]
        assert [m.fields["C"] for m in target.read_eof() if m.type == "E"] == ["57P01"]
    target = login(pool, **plain)
    assert call(idle, "terminate", how, target.pid) == ["42501"]
    assert target.value("select 1") == "1"
    assert not states(idle.simple("set role plain_user"))
    assert call(idle, "terminate", how, target.pid) == [YES[how]]
    assert target.read_eof()
    assert other.value("select 1") == boss.value("select 1") == "1"
    for c in (boss, other, member, idle, signaller):
        c.bye()


def test_what_is_said(pg, pool, members):
    """Every word but the hint is the server's."""
    direct, c = (login(at, user="kill_member") for at in (pg, pool))
    for name, user in (("a superuser", "postgres"), ("another role", "trust_user")):
        servers, ours = login(pg, user=user), login(pool, user=user)
        for what in ("cancel", "terminate"):
            said = [next(m.fields for m in one.simple(f"select pg_{what}_backend({target.pid})") if m.type == "E")
                    for one, target in ((direct, servers), (c, ours))]
            assert "SHOW POOL_CLIENTS" in said[1].get("H", "")
            assert [{k: f[k] for k in "SVCMD" if k in f} for f in said][0] == {k: said[1][k] for k in "SVCMD" if k in said[1]}, name
        servers.bye()
        ours.bye()
    direct.bye()
    c.bye()


def test_rights_are_asked_anew(pg, pool, members):
    """What a role was allowed a moment ago is not remembered."""
    c = login(pool, user="kill_member")
    one, two = (login(pool, user="plain_user", password="plain_user_pw") for _ in range(2))
    assert call(c, "terminate", "simple", one.pid) == [b"t"]
    pg.rows("revoke plain_user from kill_member")
    assert call(c, "terminate", "simple", two.pid) == ["42501"]
    pg.rows("alter role plain_user superuser; grant plain_user to kill_member")
    try:
        assert call(c, "terminate", "simple", two.pid) == ["42501"], "of a superuser by now"
    finally:
        pg.rows("alter role plain_user nosuperuser")
    assert two.value("select 1") == "1"
    for w in (c, two):
        w.bye()


def test_names_of_ones_own_are_not_asked(pg, pool, members):
    """Functions and operators that somebody puts in front of the catalogue's do not answer for it."""
    pg.rows("""create schema kill_own authorization kill_idle;
        set role kill_idle;
        create function kill_own.yes(name, name) returns bool language sql as 'select true';
        create operator kill_own.= (leftarg = name, rightarg = name, function = kill_own.yes);
        create function kill_own.pg_has_role(oid, text) returns bool language sql as 'select true';
        create function kill_own.pg_has_role(text, text) returns bool language sql as 'select true';
        create view kill_own.pg_roles as select rolname, oid, true as rolsuper from pg_catalog.pg_roles""")
    c, target = login(pool, user="kill_idle"), login(pool, user="trust_user")
    assert not states(c.simple("set search_path = kill_own, pg_catalog"))
    assert call(c, "terminate", "simple", target.pid) == ["42501"]
    assert target.value("select 1") == "1"
    c.bye()
    target.bye()
    pg.rows("drop schema kill_own cascade")


@pytest.mark.parametrize("begin", ["begin", "begin; select 1"])
def test_refused_in_a_transaction(pg, pool, members, begin):
    """It fails the transaction, as at a server, begun there or not."""
    c, target = login(pool, user="kill_member"), login(pool, user="trust_user")
    for sql in begin.split(";"):
        c.simple(sql)
    found = c.simple(f"select pg_terminate_backend({target.pid})")
    assert states(found) == ["42501"] and found[-1].body == b"E"
    assert states(c.simple("select 1")) == ["25P02"]
    assert states(c.simple(f"select pg_terminate_backend({target.pid})")) == ["25P02"]
    assert c.simple("rollback")[-1].body == b"I"
    assert c.simple("begin")[-1].body == b"T"
    c.simple("insert into kill_notes values (1)")
    c.simple("savepoint s")
    assert states(c.simple(f"select pg_cancel_backend({target.pid})")) == ["42501"]
    assert not states(c.simple("rollback to s"))
    assert c.simple("commit")[-1].body == b"I"
    assert pg.value("select count(*) from kill_notes") == "1"
    assert target.value("select 1") == c.value("select 1") == "1"
    c.bye()
    target.bye()


@pytest.mark.parametrize("in_transaction", [False, True])
def test_in_the_midst_of_a_sequence(pg, pool, members, in_transaction):
    """The question belongs to the sequence: it commits nothing in front of it, and what is refused undoes that."""
    c, other = login(pool, user="kill_member"), login(pool, user="trust_user")
    insert = parse("insert into kill_notes values (1)") + bind() + execute()

    def kill(pid: int) -> bytes:
        return parse(f"select pg_terminate_backend({pid})") + bind() + execute()

    def send(*parts: bytes) -> list:
        if in_transaction:
            assert c.simple("begin")[-1].body == b"T"
        c.send(b"".join(parts) + SYNC)
        found = c.ready()
        if in_transaction:
            assert found[-1].body == (b"E" if states(found) else b"T")
            c.simple("commit")
        return found

    targets = [login(pool, user="plain_user", password="plain_user_pw") for _ in range(3)]
    assert not states(send(insert, kill(targets[0].pid), insert))
    assert pg.value("select count(*) from kill_notes") == "2"
    assert states(send(insert, kill(targets[1].pid), parse("select 1/0") + bind() + execute(), insert)) == ["22012"]
    assert pg.value("select count(*) from kill_notes") == "2", "what fails behind it undoes what was in front"
    found = send(insert, kill(other.pid), insert)
    assert states(found) == ["42501"] and [m.type for m in found].count("C") == 1
    assert pg.value("select count(*) from kill_notes") == "2"
    for gone in targets[:2]:
        assert gone.read_eof()
    c.send(insert + FLUSH)
    c.read_until("C")
    c.send(kill(targets[2].pid) + FLUSH)
    assert c.read_until("C")[-2].row() == [b"t"]
    c.send(SYNC)
    assert not states(c.ready())
    assert pg.value("select count(*) from kill_notes") == "3"
    assert targets[2].read_eof()
    assert other.value("select 1") == c.value("select 1") == "1"
    c.bye()
    other.bye()


ASKED = """select pid from pg_locks join pg_stat_activity using (pid)
    where relation = 'pg_authid'::regclass and not granted and query like '%pgpool: of another role%'"""


@pytest.fixture
def held(pg, pool, members):
    """The question waits for a lock: a session that holds it, who asks, and whom that is about."""
    lock = login(pg)
    c, target = login(pool, user="kill_member"), login(pool, user="plain_user", password="plain_user_pw")

    def ask(begin: str | None = None) -> int:
        assert c.value("select 1") == "1"
        if begin:
            assert not states(c.simple(begin))
            assert not states(c.simple("insert into kill_notes values (1)"))
        assert not states(lock.simple("begin"))
        assert not states(lock.simple("lock table pg_catalog.pg_authid in access exclusive mode"))
        c.send(query(f"select pg_terminate_backend({target.pid})"))
        waits.wait_for("it is asked", lambda: lock.rows("select pg_stat_clear_snapshot()") and lock.rows(ASKED))
        return int(lock.value(ASKED))

    yield lock, c, target, ask
    lock.bye()
    c.bye()


@pytest.mark.parametrize("begin", [None, "begin"])
def test_cancelled_while_it_is_asked(pool, held, begin):
    lock, c, target, ask = held
    ask(begin)
    cancel(pool.address, c.pid, c.key)
    found = c.ready()
    assert states(found) == ["57014"] and found[-1].body == (b"E" if begin else b"I")
    assert not states(lock.simple("rollback"))
    assert c.simple("rollback")[-1].body == b"I"
    assert target.value("select 1") == c.value("select 1") == "1"
    assert call(c, "terminate", "simple", target.pid) == [b"t"]


def test_the_server_dies_while_it_is_asked(held):
    """Outside of a transaction it is asked anew."""
    lock, c, target, ask = held
    assert lock.value(f"select pg_terminate_backend({ask()})") == "t"
    assert not states(lock.simple("rollback"))
    assert [m.row()[0] for m in c.ready() if m.type == "D"] == [b"t"]
    assert target.read_eof()


def test_the_server_dies_while_it_is_asked_in_a_transaction(pg, held):
    """What that had done is lost, and the client is told."""
    lock, c, target, ask = held
    assert lock.value(f"select pg_terminate_backend({ask('begin')})") == "t"
    assert not states(lock.simple("rollback"))
    found = c.ready()
    assert states(found) == ["57P01"] and found[-1].body == b"E"
    assert c.simple("rollback")[-1].body == b"I"
    assert pg.value("select count(*) from kill_notes") == "0"
    assert target.value("select 1") == "1"
    target.bye()


def test_settings_cut_short_in_front_of_the_question(fake, start_pool):
    """The question ran with somebody else's settings: it is asked anew on a connection that has the client's."""
    refuses, said = [], []

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if kind == "Q":
                said.append((conn.number, body[:-1].decode()))
            if kind == "Q" and b"work_mem" in body and refuses and refuses.pop():
                conn.send(fakes.error("57014", "canceling statement due to user request"), fakes.ready())
            elif kind == "E":
                conn.send(fakes.data_row("t"), fakes.complete("SELECT 1"))
            else:
                conn.send(conn.answer(kind, body))

    pool = start_pool(fake(script).address, num_init_children=1, pool_mode="transaction", health_check_period=0,
                      max_backend_connections=1)
    c, target = login(pool, user="fake"), login(pool, user="fake")
    c.simple("set work_mem = '6MB'")
    target.simple("select 1")
    first = said[-1][0]
    refuses.append(True)
    assert call(c, "terminate", "simple", target.pid) == [b"t"]
    assert not refuses and target.read_eof()
    asked = [sql for number, sql in said if number != first and "work_mem" in sql]
    assert asked and "RESET" not in asked[-1], said
    assert said[-1][0] != first, "the connection with the wrong settings is nobody's"
    c.bye()


@pytest.mark.parametrize("how", YES)
def test_numbers_of_nobody_go_to_the_server(pg, pool, how):
    c = login(pool)
    no = b"\0" if how == "binary" else b"f"
    assert call(c, "cancel", how, (1 << 30) + 123456) == [no]
    server = login(pg)
    assert call(c, "terminate", how, int(server.value("select pg_backend_pid()"))) == [YES[how]]
    assert server.read_eof()
    c.bye()


def test_a_name_that_is_used_again(pool):
    """What a name stands for is not remembered longer than the server knows it."""
    c, other = login(pool), login(pool)
    c.send(parse("select pg_terminate_backend($1)", "k") + SYNC)
    assert not states(c.ready())
    assert not states(c.simple("deallocate all"))
    c.send(parse("select $1", "k", (INT4,)) + SYNC)
    assert not states(c.ready())
    c.send(bind(name="k", params=(str(other.pid),)) + execute() + SYNC)
    assert [m.row()[0] for m in c.ready() if m.type == "D"] == [str(other.pid).encode()]
    assert other.value("select 1") == "1"
    c.bye()
    other.bye()
