# SPDX-License-Identifier: PostgreSQL
"""test_balance_savepoint: savepoints of a read-only transaction that lives on a standby, while the session's own link
on the primary is its guest: what is set on either side goes and stays as it would on one server."""
import pytest

from test_balance_tx import away, cluster, code, make, ok, pool, status, w  # noqa: F401
from pgt.wire import SYNC, bind, close, execute, parse

OPAQUE = "select set_config('my.own', '{}', false), 1"
MINE = "select current_setting('my.own', true)"


def begin(cluster, w) -> None:
    ok(w, "discard all", "begin read only", "set work_mem to '6MB'")
    assert away(cluster, w)


def shown(w) -> list:
    """As the own link has them: after a set_config() that cannot be repeated, and outside of transactions."""
    return [w.value("/*NO LOAD BALANCE*/ show work_mem"), w.value("/*NO LOAD BALANCE*/ " + MINE)]


@pytest.mark.parametrize("how", ["guest", "home"])
def test_error_behind_a_savepoint(cluster, w, how):
    """The error is the guest's, and the home is made to fail with it; or the other way round."""
    begin(cluster, w)
    ok(w, OPAQUE.format("a"), "savepoint p", "set work_mem to '7MB'", OPAQUE.format("b"))
    found = w.simple("select 1/0" if how == "guest" else "set work_mem to green")
    assert status(found) == "E"
    ok(w, "rollback to p")
    assert shown(w) == ["6MB", "a"]
    ok(w, "release p", OPAQUE.format("c"), "commit")
    assert shown(w) == ["6MB", "c"]


def test_rollback_to_without_an_error(cluster, w):
    begin(cluster, w)
    ok(w, OPAQUE.format("a"), "savepoint p", OPAQUE.format("b"), "savepoint q", OPAQUE.format("c"), "rollback to q")
    assert shown(w) == ["6MB", "b"]
    ok(w, "rollback to p", "commit")
    assert shown(w) == ["6MB", "a"]


def test_what_is_only_set_at_home(cluster, w):
    begin(cluster, w)
    ok(w, "savepoint p", "set work_mem to '7MB'", "rollback to p", "set my.own to 'x'", "commit")
    assert shown(w) == ["6MB", "x"]


@pytest.mark.parametrize("how", ["string", "sequence"])
def test_savepoint_that_was_not_reached(cluster, w, how):
    """Behind an error in the same string or sequence nothing is done: the older savepoint of that name is meant."""
    begin(cluster, w)
    ok(w, OPAQUE.format("a"), "savepoint p", OPAQUE.format("b"))
    if how == "string":
        found = w.simple("set work_mem to green; savepoint p")
    else:
        w.send(b"".join(parse(sql) + bind() + execute() for sql in ("set work_mem to green", "savepoint p")) + SYNC)
        found = w.ready()
    assert status(found) == "E"
    ok(w, "rollback to p")
    assert code(w.simple(MINE)) in (None, "25P02"), "an error, but never the value that was taken back"
    ok(w, "rollback")


def test_refused_release(cluster, w):
    begin(cluster, w)
    ok(w, OPAQUE.format("a"), "savepoint p", OPAQUE.format("b"))
    assert code(w.simple("set work_mem to green")) == "22023"
    assert code(w.simple("release p")) == "25P02"
    assert code(w.simple("savepoint p")) == "25P02"
    ok(w, "rollback to p")
    assert shown(w) == ["6MB", "a"]
    ok(w, "rollback")


@pytest.mark.parametrize("end, left", [("rollback", "4MB"), ("commit", "6MB")])
def test_and_chain(cluster, w, end, left):
    """The next transaction's guest is not given the settings of the one before, nor its savepoints."""
    begin(cluster, w)
    ok(w, "savepoint p", "set work_mem to '7MB'", "rollback to p", f"{end} and chain")
    ok(w, OPAQUE.format("a"))
    assert shown(w) == [left, "a"]
    assert code(w.simple("rollback to p")) == "3B001"
    ok(w, "rollback")


def test_closed_name_between(cluster, w):
    """What is closed on the own link before it has seen ROLLBACK TO is no reason to fail."""
    w.send(parse("select 1", "n") + SYNC)
    assert code(w.ready()) is None
    begin(cluster, w)
    ok(w, OPAQUE.format("a"), "savepoint p")
    assert code(w.simple("/*NO LOAD BALANCE*/ select 1/0")) == "22012"
    ok(w, "rollback to p")
    w.send(close("n") + SYNC)
    assert code(w.ready()) is None
    assert shown(w) == ["6MB", "a"]
    ok(w, "commit")


def test_more_savepoints_than_are_kept(cluster, w):
    """However many there were, what was set behind one is taken back."""
    begin(cluster, w)
    ok(w, OPAQUE.format("a"))
    for _ in range(500):
        ok(w, "savepoint a_name_of_some_length", "release a_name_of_some_length")
    assert shown(w) == ["6MB", "a"]
    ok(w, "savepoint p", OPAQUE.format("b"), "rollback to p")
    assert w.value(MINE) == "a"
    ok(w, "rollback")
