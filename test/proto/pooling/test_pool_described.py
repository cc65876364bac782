# SPDX-License-Identifier: PostgreSQL
"""test_pool_described: transaction mode, the unnamed statement in the steps of lib/pq and pgx: Parse and Describe, Sync, then Bind
and Execute. Its parameters have the types that the client was told, as on one server, whatever DDL comes between."""
import struct

import pytest
from pooling_house import login, states

from pgt.postgres import start_postgres
from pgt.wire import SYNC, bind, describe, execute, parse

INTO = "insert into moment values ($1, $2)"
SECONDS = struct.pack("!q", 1700000000)


@pytest.fixture
def pool(pg, start_pool):
    pg.rows("drop table if exists moment; create table moment(id int, at bigint)")
    return start_pool(pg.address, num_init_children=1, pool_mode="transaction", default_pool_size=2)


def prepare(c, sql: str, types=()) -> None:
    c.send(parse(sql, types=types) + describe() + SYNC)
    assert not states(c.ready())


def use(c, number: int, value: bytes = SECONDS) -> list[str]:
    c.send(bind([struct.pack("!i", number), value], formats=[1]) + execute() + SYNC)
    return states(c.ready())


def moments(pg) -> list:
    return pg.rows("select id from moment order by id")


@pytest.mark.parametrize("where", ["through pgpool", "beside it"])
def test_what_is_sent_is_not_taken_for_another_type(pg, pool, where):
    """These eight bytes are a timestamp, too: one of the year 2000."""
    alter = "alter table moment alter at type timestamp using to_timestamp(at)"
    with login(pool) as c, login(pool) as other:
        prepare(c, INTO)
        assert use(c, 1) == []
        prepare(c, INTO)
        if where == "beside it":
            pg.rows(alter)
        else:
            assert not states(other.simple(alter))
        assert use(c, 2) == ["42804"]
        assert len(moments(pg)) == 1
        prepare(c, INTO)
        assert use(c, 3, struct.pack("!q", 0)) == [], "it was told the new type"


def test_its_types_hold_on_every_connection(pg, pool):
    """One connection is lent to another client, who has an unnamed statement of his own."""
    with login(pool) as c, login(pool) as other:
        prepare(c, INTO)
        for number in range(3):
            other.send(parse("select $1::text") + bind(["x"]) + execute() + SYNC)
            assert not states(other.ready())
            assert not states(other.simple("begin"))
            assert not states(other.simple("insert into moment values (9, 9)"))
            assert use(c, number) == []
            assert not states(other.simple("rollback"))
        assert len(moments(pg)) == 3


def test_the_last_one_of_a_sequence_counts(pool):
    """Two texts that are described, and a third one that is not; one text with two declarations."""
    with login(pool) as c:
        c.send(parse("select $1 + 1::bigint") + describe() + parse("select $1 || 'x'") + describe() + SYNC)
        assert not states(c.ready())
        c.send(bind(["a"]) + execute() + SYNC)
        assert [m.row() for m in c.ready() if m.type == "D"] == [[b"ax"]]
        c.send(parse("select $1::int") + describe() + parse("select $1 || 'y'") + SYNC)
        assert not states(c.ready())
        c.send(bind(["b"]) + execute() + SYNC)
        assert [m.row() for m in c.ready() if m.type == "D"] == [[b"by"]]
        c.send(parse("select $1", types=[23]) + describe() + parse("select $1", types=[25]) + SYNC)
        assert not states(c.ready())
        c.send(bind(["word"]) + execute() + SYNC)
        assert [m.row() for m in c.ready() if m.type == "D"] == [[b"word"]]


def test_a_text_that_is_refused_leaves_the_one_before(pool):
    with login(pool) as c:
        c.send(parse("select $1 + 1::bigint") + describe() + SYNC)
        assert not states(c.ready())
        c.send(parse("select nonsense from nowhere") + describe() + SYNC)
        assert states(c.ready()) == ["42P01"]
        c.send(bind(["4"]) + execute() + SYNC)
        assert states(c.ready()) == ["26000"], "as PostgreSQL, which drops it first"


@pytest.fixture(scope="module")
def two_servers():
    """With the same tables, as logical replication has them: a type has another number on each."""
    servers = [start_postgres() for _ in range(2)]
    for server, before in zip(servers, ("create type x as enum ()", "create table x(); create table y()")):
        server.rows(f"{before}; create type mood as enum ('sad', 'ok'); create table moods(m mood); insert into moods values ('ok')")
    yield servers
    for server in servers:
        server.stop()


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("name", ["", "s"], ids=["unnamed", "named"])
def test_type_that_has_another_number_on_the_next_server(two_servers, start_pool, mode, name):
    """What one server has told of it says nothing to the other."""
    pool = start_pool(*[server.address for server in two_servers], backend_clustering_mode="logical_replication", pool_mode=mode,
                      num_init_children=1, load_balance_mode=True, statement_level_load_balance=True)
    answered = set()
    with login(pool) as c:
        for i in range(12):
            one = f"{name}{i}" if name else ""
            c.send(parse("select current_setting('port'), m from moods where m = $1", one) + describe(one) + SYNC)
            assert not states(c.ready())
            for _ in range(4):
                c.send(bind(["ok"], name=one) + execute() + SYNC)
                found = c.ready()
                assert not states(found), [m.fields for m in found if m.type == "E"]
                answered.update(m.row()[0] for m in found if m.type == "D")
    assert len(answered) == 2
