# SPDX-License-Identifier: PostgreSQL
"""test_pool_columns: who was told the columns of a statement gets rows of these or an error, whichever link runs it."""
import pytest
from pooling_house import login, states

from pgt import fake as fk
from pgt import waits
from pgt.wire import FLUSH, SYNC, bind, close, describe, execute, parse, query

STALE = ("0A000", "cached plan must not change result type", "RevalidateCachedQuery")


@pytest.fixture
def pool(pg, start_pool):
    """Two transactions of a client never run on the same link."""
    pg.rows("drop table if exists shape; create table shape(a int, b text); insert into shape values (1, 'x')")
    return start_pool(pg.address, num_init_children=1, pool_mode="transaction", pool_test_rotate=True)


def shape(messages) -> str:
    return "".join(m.type for m in messages)


def prepare(c, name: str = "s", sql: str = "select * from shape") -> list:
    c.send(parse(sql, name), describe(name), SYNC)
    found = c.ready()
    assert not states(found), [m.fields for m in found]
    return found


def use(c, name: str = "s", results=(), more: bytes = b"") -> list:
    c.send(bind(name=name, results=results) + more + execute() + SYNC)
    return c.ready()


def assert_stale(found, status: bytes = b"I") -> None:
    assert shape(found) == "EZ", [m.fields for m in found]
    assert tuple(found[0].fields[k] for k in "CMR") == STALE
    assert found[-1].body == status


@pytest.mark.parametrize("results", [(), (0,), (1,), (1, 0)], ids=["none", "text", "binary", "each"])
@pytest.mark.parametrize("change", ["add c int", "alter a type bigint", "rename b to bb", "drop b"])
@pytest.mark.parametrize("is_everywhere", [False, True], ids=["anew", "stale"])
def test_columns_change(pg, pool, change, results, is_everywhere):
    """It is told so on each link, as by a server, until it asks; what is prepared since then is right at once."""
    c = login(pool)
    prepare(c)
    for _ in range(3 if is_everywhere else 0):
        assert shape(use(c, results=results)) == "2DCZ"
    columns = 3 if "add" in change else 1 if "drop" in change else 2
    pg.rows(f"alter table shape {change}")
    for _ in range(3):
        assert_stale(use(c, results=results))
    prepare(c, "t")
    results = results if len(results) < 2 else (1,) * columns
    for _ in range(3):
        found = use(c, "t", results)
        assert shape(found) == "2DCZ", [m.fields for m in found]
        assert len(found[1].row()) == columns
        assert_stale(use(c))
    c.send(describe("s"), SYNC)
    assert not states(c.ready())
    assert [shape(use(c, results=results)) for _ in range(3)] == ["2DCZ"] * 3
    c.bye()


def test_parameter_of_a_type_that_has_changed(pg, pool):
    """Where a server's own session goes on: the connection has to parse it, finds another type, and what is sent may not be one of it.
    Who prepares it anew goes on, as does a statement without such a parameter."""
    counted, other = "select count(*) from shape where a = $1", "select count(*) from shape where b = $1"
    with login(pool) as c:
        prepare(c, sql=counted)
        prepare(c, "o", other)
        pg.rows("alter table shape alter a type bigint")
        for name, value in (("s", "1"), ("o", "x")):
            found = []
            for _ in range(4):
                c.send(bind([value], name=name) + execute() + SYNC)
                found += [m for m in c.ready() if m.type in "ED"]
            assert {m.sqlstate if m.type == "E" else m.row()[0] for m in found} <= ({"0A000", b"1"} if name == "s" else {b"1"})
        prepare(c, "t", counted)
        for _ in range(4):
            c.send(bind(["1"], name="t") + execute() + SYNC)
            assert not states(c.ready())


def test_new_plan_of_a_new_name(pg, pool):
    """What drivers do about it: Close, and the same text once more, which other links have an old plan of."""
    c = login(pool)
    others = [login(pool) for _ in range(3)]
    for w in (c, *others):
        prepare(w)
        assert [shape(use(w)) for _ in range(3)] == ["2DCZ"] * 3
    pg.rows("alter table shape add c int")
    for w in (c, *others):
        assert_stale(use(w))
        w.send(close("s"), SYNC)
        w.ready()
        prepare(w, "again")
        for _ in range(4):
            found = use(w, "again")
            assert shape(found) == "2DCZ", [m.fields for m in found]
            assert len(found[1].row()) == 3
        w.bye()


@pytest.mark.parametrize("results", [(), (0, 1)], ids=["none", "each"])
def test_columns_change_in_front_of_a_transaction(pg, pool, results):
    """The transaction fails by it."""
    c = login(pool)
    prepare(c)
    pg.rows("alter table shape add c int")
    for _ in range(2):
        c.rows("begin")
        assert_stale(use(c, results=results), b"E")
        assert states(c.simple("select 1")) == ["25P02"]
        c.rows("rollback")
    assert c.value("select 1") == "1"
    c.bye()


def test_who_asks_is_answered(pg, pool):
    """The columns come with each portal: no error, as long as it does not count them beforehand."""
    c = login(pool)
    prepare(c)
    portal = describe("", "P")
    for columns in (2, 3, 4):
        for _ in range(3):
            found = use(c, more=portal)
            assert shape(found) == "2TDCZ", [m.fields for m in found]
            assert len(found[2].row()) == columns
        pg.rows(f"alter table shape add c{columns} int")
    for _ in range(3):
        assert_stale(use(c, results=(1,) * 4, more=portal))
    c.bye()


@pytest.mark.parametrize("sql, rows", [("select * from shape", "D"), ("insert into shape values (2)", ""),
                                       ("select 1 / count(*) from shape", "D")])
def test_nothing_changes(pg, pool, sql, rows):
    """It is asked once for each link, and unseen; all clients are answered."""
    many = [login(pool) for _ in range(6)]
    for c in many:
        prepare(c, sql=sql)
    for _ in range(3):
        for c in many:
            c.send(bind(name="s") + execute() + SYNC)
        for c in many:
            assert {m.type for m in c.ready()} == set(f"2{rows}CZ")
    for c in many:
        c.bye()


def test_it_is_gone(pg, pool):
    """The error is the client's own; with it back all is well."""
    c = login(pool)
    prepare(c)
    pg.rows("alter table shape rename to shape_was")
    for _ in range(3):
        assert states(use(c)) == ["42P01"]
    pg.rows("alter table shape_was rename to shape")
    for _ in range(3):
        assert shape(use(c)) == "2DCZ"
    c.bye()


def test_columns_are_known_behind_an_error(pg, pool):
    """A Describe that was skipped tells nothing: what was told before is not relied on any more, nor anything else."""
    c = login(pool)
    prepare(c)
    c.send(parse("select no_such_column"), describe("s"), SYNC)
    assert states(c.ready()) == ["42703"]
    for _ in range(3):
        assert shape(use(c)) == "2DCZ"
    c.send(describe("s"), SYNC)
    assert not states(c.ready())
    pg.rows("alter table shape add c int")
    for _ in range(3):
        assert_stale(use(c))
    c.bye()


def test_settings_in_front_are_cut_short(fake, start_pool):
    """Where the link is asked for its columns: the client's statement does not run with another's settings."""
    cut: list[fk.FakeConn] = []
    is_armed: list[bool] = []

    def script(conn: fk.FakeConn) -> None:
        conn.greet()
        for kind, body in conn.messages():
            if kind == "Q" and b"search_path" in body and is_armed and not cut:
                cut.append(conn)
                conn.send(fk.error("57014", "canceling statement due to user request") + fk.ready())
            else:
                conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address, num_init_children=1, pool_mode="transaction", health_check_period=0,
                      pool_test_rotate=True)
    c, other = (login(pool, user="fake", database="fake") for _ in range(2))
    c.rows("set search_path = mine")
    c.send(parse("select 1", "s"), describe("s"), SYNC)
    c.ready()
    for _ in range(2):
        other.value("select 1")
    is_armed.append(True)
    for _ in range(4):
        c.send(bind(name="s"), execute(), SYNC)
        c.ready()
    assert cut
    assert "E" not in cut[0].seen
    c.bye()
    other.bye()


@pytest.mark.parametrize("change", ["add c int", "alter a type bigint", "rename b to bb", "drop b"])
@pytest.mark.parametrize("has_been", [False, True], ids=["anew", "stale"])
def test_columns_change_and_a_transaction_has_its_link(pg, pool, change, has_been):
    """As outside: who was told the old ones is told so, which fails it; who was told the new ones has rows of them."""
    c, other = login(pool), login(pool)
    for w in (c, other):
        prepare(w)
        for _ in range(3 if has_been else 0):
            assert shape(use(w)) == "2DCZ"
    pg.rows(f"alter table shape {change}")
    prepare(other, "t")
    columns = 3 if "add" in change else 1 if "drop" in change else 2
    for _ in range(3):
        for w, name in ((c, "s"), (other, "s"), (other, "t")):
            w.rows("begin")
            w.rows("select 1")
            found = use(w, name)
            if name == "s":
                assert_stale(found, b"E")
            else:
                assert shape(found) == "2DCZ" and found[-1].body == b"T", [m.fields for m in found]
                assert len(found[1].row()) == columns
            w.rows("rollback")
    c.bye()
    other.bye()


def test_what_is_prepared_in_a_transaction_is_new(pg, pool):
    """The connection's plan of the same text may be older, and would be refused there."""
    c = login(pool)
    prepare(c)
    assert [shape(use(c)) for _ in range(3)] == ["2DCZ"] * 3
    pg.rows("alter table shape add c int")
    for n in range(3):
        c.rows("begin")
        c.rows("select 1")
        prepare(c, f"t{n}")
        found = use(c, f"t{n}")
        assert shape(found) == "2DCZ" and len(found[1].row()) == 3, [m.fields for m in found]
        c.rows("commit")
    c.bye()


def test_what_is_prepared_with_a_flush_is_new(pg, pool):
    """asyncpg's way: a sequence without an end yet cannot be sent again with another plan."""
    c = login(pool)
    prepare(c)
    assert [shape(use(c)) for _ in range(3)] == ["2DCZ"] * 3
    pg.rows("alter table shape add c int")
    for n in range(3):
        c.send(parse("select * from shape", f"t{n}"), describe(f"t{n}"), FLUSH)
        assert shape(c.read_until("T", "E")) == "1tT"
        found = use(c, f"t{n}")
        assert shape(found) == "2DCZ" and len(found[1].row()) == 3, [m.fields for m in found]
    c.bye()


def test_sent_behind_something_else(pg, pool):
    """The question waits for the end of that."""
    c = login(pool)
    prepare(c)
    pg.rows("alter table shape add c int")
    c.rows("begin")
    c.rows("select 1")
    c.send(query("select 2"), bind(name="s") + execute() + SYNC, query("select 3"))
    assert shape(c.ready()) == "TDCZ"
    assert_stale(c.ready(), b"E")
    assert states(c.ready()) == ["25P02"]
    c.rows("rollback")
    c.bye()


def test_it_is_gone_in_a_transaction(pg, pool):
    """The error is the one of the client's own message."""
    c = login(pool)
    prepare(c)
    pg.rows("alter table shape rename to shape_was")
    for _ in range(2):
        c.rows("begin")
        c.rows("select 1")
        found = use(c)
        assert states(found) == ["42P01"] and found[-1].body == b"E"
        assert states(c.simple("select 1")) == ["25P02"]
        c.rows("rollback")
    pg.rows("alter table shape_was rename to shape")
    c.rows("begin")
    c.rows("select 1")
    assert shape(use(c)) == "2DCZ"
    c.rows("commit")
    c.bye()


def test_the_link_dies_while_it_is_asked(pg, pool):
    """What was to be done in the transaction is not done outside of it."""
    pg.rows("drop table if exists shaped; create table shaped(a int)")
    c = login(pool)
    prepare(c, sql="insert into shaped values (1) returning a")
    c.rows("begin")
    pid = c.value("select pg_backend_pid()")
    with login(pg) as lock:
        lock.rows("begin; lock table shaped in access exclusive mode")
        c.send(bind(name="s") + execute() + SYNC)
        waits.wait_for("it is asked", lambda: pg.value("select count(*) from pg_locks where not granted") == "1")
        pg.rows(f"select pg_terminate_backend({pid})")
        found = c.ready()
        assert states(found) == ["08006"] and found[-1].body == b"E"
        lock.rows("commit")
    assert states(c.simple("select 1")) == ["25P02"]
    c.rows("rollback")
    assert pg.value("select count(*) from shaped") == "0"
    assert shape(use(c)) == "2DCZ"
    c.bye()


def test_a_bind_within_a_copy(pg, pool):
    """It is what fails the COPY, as by a server: nothing of ours goes in front."""
    c = login(pool)
    prepare(c)
    pg.rows("alter table shape add c int")
    c.rows("begin")
    c.rows("select 1")
    c.send(query("copy shape from stdin"))
    c.read_until("G")
    c.send(bind(name="s") + execute() + SYNC)
    found = c.ready()
    assert "unexpected message type 0x42" in found[0].fields["M"], [m.fields for m in found]
    if c.is_quiet(0.2):
        c.send(query("rollback"))
        c.ready()
    c.bye()
