# SPDX-License-Identifier: PostgreSQL
"""test_balance_ended: session mode over several servers, a transaction that the primary ended by a time-out of its own."""
from pgt import waits
from test_balance_tx import cluster, code, idle_in_tx, make, ok, pool, w  # noqa: F401


def test_a_transaction_that_the_server_ended_by_a_time_out(cluster, w):
    """The session goes on; what its client is told are the server's words."""
    ok(w, "begin", "insert into w values (9, 'x')", "set idle_in_transaction_session_timeout = '100ms'")
    waits.wait_for("the server has ended it", lambda: idle_in_tx(cluster) == 0)
    assert code(w.simple("select 1")) == "25P03"
    assert code(w.simple("select 1")) == "25P02"
    ok(w, "rollback", "select 1")
