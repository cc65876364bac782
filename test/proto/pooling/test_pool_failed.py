# SPDX-License-Identifier: PostgreSQL
"""test_pool_failed: a statement that a failed transaction refuses: the error names it as pgpool-II's does: of simple queries,
up to 255 bytes."""
import pytest
from pooling_house import login, states

from pgt.wire import SYNC, Wire, bind, describe, execute, parse, pg, query

WHAT = "current transaction is aborted, commands ignored until end of transaction block"


@pytest.fixture(params=["session", "transaction"])
def c(request, pg, start_pool):
    wire = Wire(start_pool(pg.address, num_init_children=1, pool_mode=request.param).address)
    wire.login()
    wire.send(parse("select 42", "named"), SYNC)
    wire.ready()
    wire.simple("begin")
    assert refused(wire.simple("select 1/0")).sqlstate == "22012"
    yield wire
    wire.bye()


def refused(found: list):
    errors = [m for m in found if m.type == "E"]
    assert len(errors) == 1 and found[-1].type == "Z" and found[-1].body == b"E", found
    return errors[0]


def detail(found: list) -> str | None:
    m = refused(found)
    assert (m.sqlstate, m.text, m.fields["S"]) == ("25P02", WHAT, "ERROR"), m.fields
    return m.fields.get("D")


@pytest.mark.parametrize("sql", ["select   42 as x;", "savepoint a", "begin", "select nosuch('q')", "select 1; select 2",
                                 "select 1; rollback", "insert into nowhere values (1)", "set work_mem = '1MB'", "show work_mem",
                                 "show pool_version", "pgpool show all", "copy (select 1) to stdout", "listen a"])
def test_the_statement_is_named(c, sql):
    assert detail(c.simple(sql)) == f"statement: {sql}"
    assert detail(c.simple("select 2")) == "statement: select 2"
    assert c.simple("rollback")[-1].body == b"I"
    assert c.value("select 3") == "3"


def test_a_long_statement_is_cut_between_characters(c):
    said = detail(c.simple(f"select '{'x' * 100}{'é' * 50_000}'"))
    assert said == f"statement: select '{'x' * 100}", "nobody knows where a character ends that is not ASCII"
    assert detail(c.simple(f"select '{'x' * 5000}'")) == ("statement: select '" + "x" * 5000)[:255]


def test_what_other_errors_say_is_left_alone(c):
    """A syntax error is one in a failed transaction, too; so is a bad message."""
    m = refused(c.simple("selekt 1"))
    assert m.sqlstate == "42601" and "D" not in m.fields


@pytest.mark.parametrize("parts", [(pg("select 7"), SYNC), (parse("select 7", "other"), SYNC), (execute("nowhere"), SYNC)])
def test_the_extended_protocol_has_none(c, parts):
    c.send(*parts)
    assert "D" not in refused(c.ready()).fields


def test_no_error_is_told_another_statement(c):
    """A pipeline of several: the one that each is about, or none."""
    c.send(query("select 1"), query("select 2"), query("select 3"))
    found = c.ready(3)
    for i, m in enumerate([m for m in found if m.type == "E"], 1):
        assert m.sqlstate == "25P02" and m.fields.get("D") in (None, f"statement: select {i}")
    c.send(query("select 4"), pg("select 5"), SYNC)
    last = [m for m in c.ready(2) if m.type == "E"][1]
    assert last.sqlstate == "25P02" and "D" not in last.fields


def test_in_pieces(c):
    message = query("select 'in pieces'")
    for i in range(len(message)):
        c.send(message[i:i + 1])
    assert detail(c.ready()) == "statement: select 'in pieces'"


def test_what_a_repair_took_is_there_behind_the_transaction(pg, start_pool):
    """A statement prepared by SQL, which the repair behind ROLLBACK TO took from the connection: where the transaction fails once more
    before it is named, a description of it is an error, and nothing else differs (known-gaps). Behind the transaction it runs."""
    pg.rows("drop table if exists repaired; create table repaired (n int)")
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", pool_test_rotate=True)
    c = login(pool)
    for sql in ("begin", "prepare w1 (int) as insert into repaired values ($1)", "savepoint a"):
        assert not states(c.simple(sql))
    assert states(c.simple("selekt 1")) == ["42601"]
    c.send(bind(name="nobody") + execute() + SYNC)
    assert states(c.ready()) in (["25P02"], ["26000"])
    assert not states(c.simple("rollback to a"))
    assert states(c.simple("selekt 1")) == ["42601"]
    c.send(describe("w1") + SYNC)
    found = c.ready()
    assert states(found) in ([], ["26000"]) and found[-1].body == b"E"
    assert states(c.simple("execute w1 (1)")) == ["25P02"]
    assert c.simple("rollback")[-1].body == b"I"
    c.send(bind(name="w1", params=("2",)) + execute() + SYNC)
    assert not states(c.ready())
    assert not states(c.simple("execute w1 (3)"))
    assert [r[0] for r in pg.rows("select n from repaired order by n")] == [b"2", b"3"]
    c.bye()
