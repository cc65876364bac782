# SPDX-License-Identifier: PostgreSQL
"""test_pool_long_errors: an error that quotes what the client sent may be of any length. It undoes what it undoes, and
reaches who asked as it is."""
import pytest
from pooling_house import BY, login, states

from pgt.wire import SYNC, bind, execute, parse, query
from pgt.wire import pg as pgx

SIZES = pytest.mark.parametrize("size", [100, 32700, 33000, 100000, 3000000])
TEXT = "invalid input syntax for type integer: "


def long_error(size: int) -> str:
    """As short as it is itself."""
    return f"select repeat('x', {size})::int"


@pytest.fixture
def pool(pg, start_pool):
    return start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1)


def assert_told(found, size: int) -> None:
    errors = [m for m in found if m.type == "E"]
    assert [m.text for m in errors] == [f'{TEXT}"{"x" * size}"']


@SIZES
@BY
def test_role_of_what_failed(pool, size, extended):
    """A SET ROLE that it undoes is not believed to be there by the next client, who would run as the login user."""
    a, b = login(pool, seconds=20), login(pool, seconds=20)
    b.rows("set role trust_user")
    for _ in range(2):
        if extended:
            a.send(pgx("set role trust_user"), pgx(long_error(size)), SYNC)
        else:
            a.send(query(f"set role trust_user; {long_error(size)}"))
        assert_told(a.ready(), size)
        assert b.value("select current_user") == "trust_user"
        assert a.value("select current_user") == "postgres"
    a.bye()
    b.bye()


@SIZES
@pytest.mark.parametrize("more", [b"", pgx("select 1")], ids=["last", "skips"])
def test_what_comes_behind_it(pool, size, more):
    """All of it arrives, in one piece, and what follows is in step."""
    c = login(pool, seconds=20)
    for _ in range(2):
        c.send(parse("select 'before'", "s"), bind(name="s"), execute(), pgx(long_error(size)), more, SYNC,
               query("select 'after'"), query(long_error(size)), pgx("select 'end'"), SYNC)
        found = c.ready(4)
        assert [m.type for m in found if m.type != "n"] == list("12DC" + "1EZ" + "TDCZ" + "EZ" + "12TDCZ")
        c.send(query("deallocate all"))
        c.ready()
    c.rows("begin")
    c.send(query(long_error(size)))
    assert_told(c.ready(), size)
    assert states(c.simple("select 1")) == ["25P02"]
    c.rows("rollback")
    assert c.value("select 'alive'") == "alive"
    c.bye()
