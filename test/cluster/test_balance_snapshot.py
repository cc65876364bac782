# SPDX-License-Identifier: PostgreSQL
"""test_balance_snapshot: a snapshot that one session exports and another one, READ ONLY like it, takes over: both are on one server."""
import pytest

from test_balance_tx import away, cluster, login, make, ok  # noqa: F401

BEGIN = "begin isolation level repeatable read read only"


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("how", ["apart", "one string"])
def test_a_snapshot_is_taken_over(cluster, make, mode, how):
    pool = make(pool_mode=mode)
    with login(pool) as giver, login(pool) as taker:
        ok(giver, "truncate w", "insert into w values (1, 'seen')")
        assert away(cluster, taker)
        ok(giver, BEGIN)
        snapshot = f"set transaction snapshot '{giver.value('select pg_export_snapshot()')}'"
        with login(pool) as other:
            ok(other, "insert into w values (2, 'behind it')")
        ok(taker, *([BEGIN, snapshot] if how == "apart" else [f"{BEGIN}; {snapshot}"]))
        assert taker.value("select count(*) from w") == giver.value("select count(*) from w") == "1"
        ok(giver, "commit")
        ok(taker, "commit")
        assert taker.value("select count(*) from w") == "2"
