# SPDX-License-Identifier: PostgreSQL
"""test_balance_role: who was there before ALTER ROLE ... SET or ALTER DATABASE ... SET keeps what the role had, as on a server. A standby's
connection that is opened for a read has the new settings, so the reads of such a session stay on the connection that it has."""
import pytest

from pgt import waits
from pgt.wire import SYNC, Wire, bind, execute, parse
from test_balance_tx import cluster, is_standby, make, ok  # noqa: F401

ALTERS = pytest.mark.parametrize("alter", ["role settled", "database postgres"])


@pytest.fixture(scope="module", autouse=True)
def tables(cluster):
    cluster.primary.rows("create role settled login; create schema before; create schema behind; "
                         "create table before.named(a text); create table behind.named(a text); "
                         "insert into before.named values ('before'); insert into behind.named values ('behind'); "
                         "grant usage on schema before, behind to settled; grant select on before.named, behind.named to settled")


def enter(pool) -> Wire:
    w = Wire(pool.address, seconds=20)
    assert w.login("settled")[-1].type == "Z"
    return w


def extended(w) -> str:
    return answer(w, parse("select a from named"), bind())


def prepared(w) -> str:
    return answer(w, bind(name="n"))


def answer(w, *parts: bytes) -> str:
    w.send(*parts, execute(), SYNC)
    return next(m.row()[0].decode() for m in w.ready() if m.type == "D")


def is_away(cluster, w) -> bool:
    return is_standby(cluster, w.value("select inet_server_port() from named limit 1"))


def same_everywhere(cluster) -> bool:
    counted = "select array_agg(setconfig::text order by setdatabase, setrole) from pg_db_role_setting"
    return len({cluster.nodes[i].value(counted) for i in range(3)}) == 1


@ALTERS
@pytest.mark.parametrize("inside", [False, True], ids=["idle", "transaction"])
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_who_was_there_reads_as_before(cluster, make, mode, inside, alter):
    if mode == "transaction" and not inside:
        pytest.skip("between its transactions such a session is on no connection")
    boss = cluster.primary
    boss.rows(f"alter {alter} set search_path = before")
    waits.wait_for("the standbys know it", lambda: same_everywhere(cluster))
    try:
        pool = make(pool_mode=mode, virtual_begin=False)
        with enter(pool) as old, Wire(pool.address, seconds=20) as other:
            assert other.login()[-1].type == "Z"
            assert old.value("select a from named") == extended(old) == "before"
            ok(old, "prepare named as select a from named")
            old.send(parse("select a from named", "n") + SYNC)
            old.ready()
            if inside:
                ok(old, "begin")
            assert is_away(cluster, old)
            ok(other, f"alter {alter} set search_path = behind")
            waits.wait_for("the standbys know it", lambda: same_everywhere(cluster))
            with enter(pool) as new:
                assert new.value("select a from named") == extended(new) == "behind"
                assert is_away(cluster, new)
            for _ in range(5):
                assert old.value("select a from named") == extended(old) == "before"
                assert old.value("show search_path") == "before"
                assert old.value("execute named") == prepared(old) == "before"
                if not inside:
                    ok(old, "begin read only")
                    assert old.value("select a from named") == "before"
                    ok(old, "commit")
            if inside:
                ok(old, "commit")
    finally:
        boss.rows(f"alter {alter} reset search_path")
