# SPDX-License-Identifier: PostgreSQL
"""test_failover_cut: all of pgpool ends in the midst of a switchover, and is started again."""
import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from pgt import procs, waits
from pgt.wire import Wire
from test_failover import orders, primaries, streams_from, wait_primary, write  # noqa: F401
from test_monitor import trio  # noqa: F401


def wait_everywhere_but(trio, node: int, table: str) -> None:
    waits.wait_for(f"{table} is on the others", lambda: all(n.value(
        f"select count(*) from pg_class where relname = '{table}'") == "1" for n in trio.nodes if n is not trio.nodes[node]))


@contextlib.contextmanager
def asleep(pid: int):
    """A process that does nothing for a while."""
    procs.stand_still(pid)
    try:
        yield
    finally:
        procs.go_on(pid)


def end_amid_switchover(pool, new: int, what: str, reached) -> None:
    """Orders a switchover, and kills all of pgpool when it has got as far as that."""
    with ThreadPoolExecutor(1) as one:
        order = one.submit(pool.pcp.run, "promote_node", "-s", str(new))
        waits.wait_for(what, reached)
        pool.daemon.kill()
        pool.daemon = None
        assert order.result().returncode == 1


@pytest.mark.parametrize("trio", [2], indirect=True)
def test_all_of_pgpool_is_killed_in_a_switchover(trio, orders):
    """What it did to servers is taken back by the next one, or gone on with where the new primary may come by itself;
    what was acknowledged stays."""
    pool = orders(failover_wait=12)  # of which a transaction has up to five seconds to end, once the old primary is fenced
    new, other = trio.standbys
    note = pool.home / "pgpool_status.switch"

    def fenced():
        return trio.primary.value("show default_transaction_read_only") == "on"
    trio.primary.rows("create table kept (a int)")
    # A transaction has its time to end.
    with Wire(trio.primary.socket) as lazy:
        assert lazy.login()[-1].type == "Z"
        lazy.rows("begin")
        lazy.rows("insert into kept values (1)")
        end_amid_switchover(pool, new, "the old primary is fenced", fenced)
    assert f"fenced\t127.0.0.1\t{trio.primary.port}\n" in note.read_text(encoding="utf-8")
    pool.start()
    write(pool, "one")
    waits.wait_for("what was noted is done", lambda: not note.exists())
    assert not fenced() and primaries(trio) == [trio.at]
    # The third one has left, and the new one does not receive all.
    with asleep(int(trio.nodes[new].value("select pid from pg_stat_wal_receiver"))):
        end_amid_switchover(pool, new, "the third one has left", lambda: f"port='{trio.nodes[new].port}'" in
                            trio.nodes[other].value("show primary_conninfo"))
    pool.start()
    write(pool, "two")
    waits.wait_for("the third one is led back", lambda: streams_from(trio, other, trio.at, 1) and not note.exists(), 60)
    # It was told to become the primary: nobody can take that back, so the old one must not write.
    (startup,) = [pid for pid in procs.children(trio.nodes[new].daemon.pid) if "startup" in procs.command_line(pid)]
    with asleep(startup):
        end_amid_switchover(pool, new, "it is told", lambda: note.exists() and "pending" in note.read_text(encoding="utf-8"))
        pool.start()
        waits.holds_for("the old one does not write", fenced, 1)
    wait_primary(pool, new)
    write(pool, "three")
    wait_everywhere_but(trio, trio.at, "three")
    # That it keeps its fence until it is restarted is all there is to know now.
    waits.wait_for("all is done", lambda: note.read_text(encoding="utf-8") == f"fenced\t127.0.0.1\t{trio.primary.port}\n")
    assert "read_only" not in (trio.primary.data / "postgresql.auto.conf").read_text(encoding="utf-8")
    assert [trio.nodes[other].value(f"select count(*) from {t}") for t in ("one", "two", "three")] == ["1", "1", "1"]
