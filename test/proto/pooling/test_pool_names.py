# SPDX-License-Identifier: PostgreSQL
"""test_pool_names: the books of prepared statements: what a link holds at most, what a client may hold at most, what a
Close of pgpool's own that the server skipped leaves behind, and what an EXECUTE is told whose PREPARE cannot be repeated.
"""
import random

import pytest
from pooling_house import BY, MODES, login, states
from test_pool_statements import each_own_transaction

from pgt.diff import WHOLE, differential
from pgt.wire import SYNC, bind, close, describe, execute, message, parse, query
from pgt.wire import pg as pgx

LIMIT = 20


@pytest.fixture
def one(pg, start_pool):
    """One link for all."""
    def start(**conf):
        return start_pool(pg.address, **{"num_init_children": 1, "pool_mode": "transaction", "max_backend_connections": 1,
                                         "max_prepared_statements": LIMIT, "query_wait_timeout": 20, **conf})
    return start


def on_link(c) -> int:
    return int(c.value("select count(*) from pg_prepared_statements"))


def some(rng: random.Random, i: int) -> list[bytes]:
    """One exchange that makes, uses and forgets statements, well or not."""
    name = f"n{rng.randrange(30)}"
    use = bind(name=name) + describe("", "P") + execute()
    bad = pgx("select no_such_column")
    return rng.choice([
        [parse(f"select {i}", name) + use + SYNC],
        [use + SYNC],
        [bad + parse(f"select {i}", name) + use + SYNC],
        [parse(f"select {i}", name) + bad + use + SYNC],
        [b"".join(parse(f"select {i * 100 + k}", f"m{k}") for k in range(rng.randrange(25))) + bad + SYNC],
        [bad + b"".join(bind(name=f"n{k}") + execute() for k in range(rng.randrange(25))) + SYNC],
        [query(f"prepare {name} as select {i}")], [query(f"execute {name}")], [query(f"deallocate {name}")],
        [query("begin"), use + SYNC, parse(f"select {i}", name) + SYNC, use + SYNC, query("rollback")],
        [bad + pgx(f"execute {name}") + SYNC], [pgx(f"execute {name}") + bad + SYNC],
        [query("deallocate all")] if i % 7 == 0 else [use + use + SYNC],
    ])


@pytest.mark.parametrize("seed", range(6))
def test_limit_holds_exactly(one, seed):
    """However clients prepare, fail and forget: the server never has more statements than the limit says, and what one
    calls its own is never another's."""
    pool = one()
    rng = random.Random(seed)
    watcher = login(pool)
    clients = [login(pool) for _ in range(4)]
    most = 0
    for i in range(1, 150):
        c = rng.choice(clients)
        parts = some(rng, i)
        c.send(*parts)
        found = c.ready(sum(1 if p[:1] == b"Q" else 1 for p in parts))
        unexpected = set(states(found)) - {"42703", "26000", "42P05", "25P02"}
        assert not unexpected, (i, parts, unexpected)
        most = max(most, on_link(watcher))
    assert 8 < most <= LIMIT
    for w in (*clients, watcher):
        w.bye()


def test_close_that_is_skipped(one):
    """Names of another client that were to be taken off the link behind an error are there still."""
    pool = one()
    a, b = login(pool), login(pool)
    for turn in range(4):
        a.rows("deallocate all; prepare x as select 'of a'")
        assert a.value("execute x") == "of a"
        b.send(pgx("select no_such_column") + bind(name="x") + execute() + SYNC)
        assert states(b.ready()) == ["42703"]
        b.send(parse(f"select 'of b {turn}'", "x") + SYNC)
        assert not states(b.ready())
        assert b.value("execute x") == f"of b {turn}"
        assert a.value("execute x") == "of a"
        b.send(query("deallocate x"))
        assert not states(b.ready())
        assert states(b.simple("execute x")) == ["26000"]
    a.bye()
    b.bye()


def test_close_of_prepare_that_is_skipped(one):
    """A Close behind an error did not happen to a name that SQL made, in a transaction or not."""
    pool = one()
    a, b = login(pool), login(pool)
    a.rows("prepare x as select 'of a'")
    for turn in range(3):
        a.send(pgx("select no_such_column") + close("x") + parse("select 'never'", "x") + SYNC)
        assert states(a.ready()) == ["42703"]
        assert b.value("select 1") == "1"
        a.send(describe("x") + SYNC)
        assert not states(a.ready())
        a.send(parse("select 'taken'", "x") + SYNC)
        assert states(a.ready()) == ["42P05"]
        if turn == 0:
            a.rows("begin")
            assert states(a.simple("select no_such_column")) == ["42703"]
            a.send(pgx("select 1") + close("x") + parse("select 'never'", "x") + SYNC)
            assert states(a.ready()) == ["25P02"]
            a.rows("rollback")
        assert a.value("execute x") == "of a"
    a.send(close("x") + SYNC)
    assert not states(a.ready())
    assert states(a.simple("execute x")) == ["26000"]
    a.send(parse("select 'new'", "x") + bind(name="x") + execute() + SYNC)
    assert not states(a.ready())
    a.bye()
    b.bye()


def test_close_that_is_skipped_when_tied(one):
    """A Close behind an error did not happen in a session that keeps its link."""
    pool = one(max_prepared_statements=8)
    c = login(pool)
    c.rows("create temp table tied(a int)")
    for turn in range(30):
        c.send(pgx("select no_such_column") + b"".join(parse(f"select {turn * 10 + k}", f"t{turn}_{k}") for k in range(9)) + SYNC)
        assert states(c.ready()) == ["42703"]
        c.send(b"".join(parse(f"select {turn * 10 + k}", f"t{turn}_{k}") for k in range(9)) + bind(name=f"t{turn}_0") + execute() + SYNC)
        found = c.ready()
        assert not states(found)
        assert [m.row()[0] for m in found if m.type == "D"] == [str(turn * 10).encode()]
        assert on_link(c) <= 8
    c.bye()


# ---- the memory of one client

def fill(c, text: str, names: range) -> list[str]:
    found = []
    for i in names:
        c.send(parse(f"select {i} /* {text} */", f"f{i}"), SYNC)
        found += states(c.ready())
    return found


@pytest.mark.parametrize("error", [False, True])
def test_many_of_what_the_link_knows(one, error):
    """A sequence of nothing but statements that pgpool answers itself, and more of them than it keeps in mind: the server
    is asked nothing that would end a wait."""
    pool = one(max_prepared_statements=300)
    count = 200
    c, other = login(pool), login(pool)
    last = pgx("select no_such_column") if error else b""
    for w in (c, other):
        w.send(b"".join(parse(f"select {i}", f"n{i}") for i in range(count)), SYNC)
        assert len(w.ready()) == count + 1
    other.simple("deallocate all")
    other.send(b"".join(parse(f"select {i}", f"n{i}") for i in range(count)), last, SYNC)
    assert [m.type for m in other.ready()] == ["1"] * count + (["E"] if error else []) + ["Z"]
    for w in (c, other):
        w.send(bind(name=f"n{count - 1}"), execute(), SYNC)
        assert [m.row() for m in w.ready() if m.type == "D"] == [[str(count - 1).encode()]]
    for w in (c, other):  # the first one closes them on the link, the second one only its own names
        w.send(b"".join(close(f"n{i}") for i in range(count)), last, SYNC)
        assert [m.type for m in w.ready()] == ["3"] * count + (["E"] if error else []) + ["Z"]
        w.send(bind(name="n0"), SYNC, bind(name=f"n{count - 1}"), SYNC)
        assert states(w.ready(2)) == ["26000"] * 2


def test_memory_of_a_client(one):
    """A clear error when it is used up; what is closed makes room; others are not concerned; ten thousand small
    statements are no trouble."""
    pool = one(client_prepared_memory="1MB", max_prepared_statements=200)
    c, other = login(pool), login(pool)
    text = "x" * 10000
    assert not fill(c, text, range(90))
    refused = fill(c, text, range(90, 120))
    assert set(refused) == {"53400"} and len(refused) >= 10
    assert not fill(other, text, range(20))
    c.send(parse(f"select 0 /* {text} */", "f200"), SYNC, query("select 'next'"))
    found = c.ready(2)
    error = next(m for m in found if m.type == "E")
    assert error.text == "too many prepared statements" and "client_prepared_memory" in error.fields["D"]
    assert found[-1].body == b"I"
    c.send(bind(name="f3"), execute(), SYNC)
    assert not states(c.ready())
    c.simple("deallocate all")
    assert not fill(c, text, range(300, 380))
    c.simple("discard all")
    assert not fill(c, "", range(3000))
    c.bye()
    other.bye()


@BY
def test_memory_is_used_up_in_a_transaction(one, pg, extended):
    """The transaction fails, as with any error; what went before in the sequence is undone."""
    pool = one(client_prepared_memory="100kB", max_prepared_statements=200)
    pg.rows("drop table if exists names_full; create table names_full(a int)")
    c = login(pool)
    text = "x" * 20000
    fill(c, text, range(6))
    more = (pgx if extended else query)(f"prepare f6 as select '{text}'") + (SYNC if extended else b"")
    c.send(more)
    assert states(c.ready()) == ["53400"]
    c.rows("begin")
    c.rows("insert into names_full values (1)")
    c.send(parse(f"select 7 /* {text} */", "f7"), SYNC)
    found = c.ready()
    assert states(found) == ["53400"] and found[-1].body == b"E"
    assert states(c.simple("select 1")) == ["25P02"]
    c.simple("rollback")
    c.send(pgx("insert into names_full values (2)"), parse(f"select 8 /* {text} */", "f8"), SYNC, pgx("select 'next'"), SYNC)
    found = c.ready(2)
    assert states(found) == ["53400"]
    assert [m.row()[0] for m in found if m.type == "D"] == [b"next"]
    assert pg.value("select count(*) from names_full") == "0"
    c.bye()


def test_no_limit(one):
    pool = one(client_prepared_memory=0, max_prepared_statements=200)
    c = login(pool)
    assert not fill(c, "x" * 100000, range(200))
    c.bye()


# ---- PREPARE that cannot be repeated

@pytest.mark.parametrize("pool_mode", ["session", "transaction"])
@differential(chunks=(WHOLE,))
@BY
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in_transaction"])
def test_prepared_for_a_table_that_is_gone(t, extended, inside):
    """The server's reason, and all is well when the table is there again."""
    t.direct("drop table if exists names_gone; create table names_gone(a int)")
    c = t.connect()
    c.simple("prepare g(int) as select a from names_gone where a > $1")
    c.simple("execute g(0)")
    for sql in ("drop table names_gone", "create table names_gone as select 7 as a"):
        t.direct(sql)
        for _ in range(2):
            if inside:
                c.simple("begin")
                c.simple("select 'first'")
            if extended:
                c.send(pgx("execute g(0)"), SYNC)
                c.ready()
            else:
                c.simple("execute g(0)")
            if inside:
                c.simple("select 'behind'")
                c.simple("rollback")
    c.simple("execute no_such_statement")
    c.simple("deallocate g")
    c.simple("execute g(0)")


@pytest.mark.parametrize("begins", [False, True])
def test_what_is_parsed_already_waits_for_no_link(one, begins):
    """Some drivers wait for the answer to a Parse with all their sessions, also with the one that has the connection. What
    no server has parsed waits, and what came to nothing; a name that is taken is the server's to refuse."""
    pool = one()
    a, b = login(pool), login(pool)
    if begins:
        b.simple("begin")
    a.send(parse("select 41 + $1::int", "mine"), SYNC)
    assert not states(a.ready())
    a.rows("begin")
    assert a.value("select 'has the connection'")
    a.send(parse("select no_such_column", "bad"), SYNC)
    a.send(query("rollback"))
    a.send(query("begin; select 1"))
    assert states(a.ready() + a.ready() + a.ready()) == ["42703"]
    for name in ("one", "two"):
        b.send(parse("select 41 + $1::int", name), SYNC)
        found = b.ready()
        assert ("".join(m.type for m in found), found[-1].body) == ("1Z", b"T" if begins else b"I")
    waiting = [login(pool) for _ in range(5)]
    for w, messages in zip(waiting, ([parse("select 40", "new")], [parse("select no_such_column", "x")], [parse("select 41 + $1::int")],
                                     [parse("select 41 + $1::int", "one"), bind(["1"], name="one"), execute()], [query("select 1")])):
        w.send(*messages, SYNC)
    b.send(parse("select 41 + $1::int", "one"), SYNC)
    assert all(w.is_quiet(0.02) for w in [*waiting, b])
    a.rows("commit")
    assert [states(w.ready()) for w in waiting] == [[], ["42703"], [], [], []]
    assert states(b.ready()) == ["42P05"]
    if begins:
        b.simple("rollback")
    for name in ("one", "two"):
        b.send(bind(["1"], name=name), execute(), SYNC)
        assert [m.row() for m in b.ready() if m.type == "D"] == [[b"42"]]
    for w in [a, b, *waiting]:
        w.bye()


DO = "do $$ begin null; end $$"


@pytest.mark.parametrize("string", [f"execute own; {DO}", f"{DO}; execute own", f"execute own; {DO}; execute own; {DO}"])
def test_execute_beside_do(one, string):
    """The code of a DO finds nobody else's names on the link; what its string executes itself is there."""
    pool = one()
    other, w = login(pool), login(pool)
    for c, text in ((other, "theirs"), (w, "mine")):
        c.send(parse(f"select '{text}'", "own"), SYNC)
        assert not states(c.ready())
    assert other.value("execute own") == "theirs"
    found = w.simple(string)
    assert not states(found)
    assert {m.row()[0] for m in found if m.type == "D"} == {b"mine"}
    for c in (other, w):
        c.bye()


@differential()
@MODES
@pytest.mark.parametrize("end", [SYNC, query("select 1")], ids=["sync", "query"])
def test_closed_and_prepared_behind_an_error(t, end):
    """Close and PREPARE are skipped: the statement that was to be closed stays."""
    c = t.connect()
    each_own_transaction(c, parse("select 1", "n"), times=1)
    c.send(describe("no_such"), close("n"), pgx("prepare n as select 2"), SYNC, end)
    c.ready(2)
    each_own_transaction(c, bind(name="n"), execute())
    c.simple("execute n")
    c.simple("prepare n as select 3")


@differential()
@MODES
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "transaction"])
def test_parsed_twice_behind_an_error_that_was_told(t, inside):
    """The second Parse of the text is skipped, and so is what pgpool sends in front of it: the link has the statement still.
    The Sync comes when the error was told, and a sequence behind it that names the statement."""
    c = t.connect()
    text = "select 6 / $1::int"
    for i in range(3):
        if inside:
            c.simple("begin")
            c.simple("savepoint s")
        c.send(parse(text, f"a{i}"), bind(["0"], name=f"a{i}"), execute(), close(f"b{i}"), parse(text, f"b{i}"),
               bind(["1"], name=f"b{i}"), execute())
        c.until("E")
        if inside:
            c.send(SYNC, query("rollback to s"), bind(["2"], name=f"a{i}"), execute(), SYNC)
            c.ready(3)
            c.simple("commit")
        else:
            c.send(SYNC, bind(["2"], name=f"a{i}"), execute(), SYNC)
            c.ready(2)
        c.send(bind(["3"], name=f"a{i}"), execute(), bind(["3"], name=f"b{i}"), execute(), SYNC)
        c.ready()


@differential()
@MODES
def test_refused_behind_a_malformed_close(t):
    """Sent ahead: the Parse that is refused takes the unnamed statement away, the Close has not."""
    c = t.connect()
    for _ in range(3):
        each_own_transaction(c, parse("select 'unnamed'"), times=1)
        c.send(message("C", b"S\0more"), SYNC, parse("select no_such_column"), SYNC)
        c.ready(2)
        c.send(bind(), execute(), SYNC)
        c.ready()


@MODES
@differential(chunks=(WHOLE,))
def test_names_in_a_string_with_a_copy(t):
    """What the string prepares, and deallocates, behind the data that it copies in."""
    t.direct("create table if not exists copied_in(a int)")
    c = t.connect()
    for text in ("copy copied_in from stdin; prepare cp as select 1", "copy copied_in from stdin; deallocate cp",
                 "prepare cp as select 2; copy copied_in from stdin; copy copied_in from stdin; prepare cq as select 3",
                 "copy copied_in from stdin; deallocate all"):
        c.send(query(text))
        for _ in range(text.count("stdin")):
            c.until("G")
            c.send(message("d", b"1\n"), message("c", b""))
        c.ready()
        for name in ("cp", "cq", "cp"):
            c.simple(f"execute {name}")
