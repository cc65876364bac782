# SPDX-License-Identifier: PostgreSQL
"""test_balance_unread: what writes although nobody here can read it: function calls of the protocol, and texts that are
too long. Session and transaction mode."""
import pytest

from pgt.wire import SYNC, bind, execute, function_call, parse, query
from test_balance_tx import away, cluster, code, login, make, ok, status  # noqa: F401


def unread(sql: str) -> str:
    """Longer than what is looked into."""
    return sql + " /*" + "x" * 100_000 + "*/"


UNSEEN = {"function call": function_call(957, [b"\xff\xff\xff\xff"]),  # lo_creat
          "parse": parse(unread("insert into w values (80, 'x')")) + bind() + execute() + SYNC,
          "query": query(unread("with x as (select 1) insert into w select 80, 'x' from x"))}


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("what", list(UNSEEN))
def test_what_nobody_reads_is_a_write(cluster, make, mode, what):
    """Reads of its transaction stay where it was made, and what the settings say of a write holds."""
    w = login(make(pool_mode=mode, disable_load_balance_on_write="trans_transaction"))
    ok(w, "begin")
    assert away(cluster, w)
    w.send(UNSEEN[what])
    found = w.ready()
    assert (code(found), status(found)) == (None, "T")
    assert not away(cluster, w), "it has written"
    ok(w, "commit", "begin")
    assert not away(cluster, w), "a transaction of this session has written"
    ok(w, "rollback", "discard all", "begin")
    assert not away(cluster, w), "nothing ties it any more, but that it has written is so"
    ok(w, "rollback")
    w.bye()


def test_a_function_called_by_the_protocol_may_set_something(cluster, make):
    """Session mode: behind one of users' own reads stay where what it has set is, behind a built-in one they leave."""
    cluster.primary.rows("create or replace function sets_it() returns text language sql volatile as "
                         "$$ select set_config('work_mem', '7MB', false) $$")
    w = login(make())
    w.send(function_call(177, [b"\0\0\0\1", b"\0\0\0\2"]))  # int4pl
    assert code(w.ready()) is None
    assert away(cluster, w)
    w.send(function_call(int(cluster.primary.value("select 'sets_it()'::regprocedure::oid")), []))
    assert code(w.ready()) is None
    assert w.value("select current_setting('work_mem') from t") == "7MB"
    ok(w, "discard all")
    assert away(cluster, w)
    w.bye()
