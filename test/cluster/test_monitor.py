# SPDX-License-Identifier: PostgreSQL
"""test_monitor: roles, status and lag of real servers with streaming replication, as SHOW POOL_NODES
tells them; losses, returns and promotions are followed. The primary is on node 0 and on node 2."""
import signal

import pytest

from pgt import postgres, procs, waits
from pgt.wire import Wire

PERIOD = {"health_check_period": 1, "sr_check_period": 1, "health_check_timeout": 5,
          "health_check_max_retries": 1, "health_check_retry_delay": 1, "delay_threshold": 0}


def make_standby(primary: postgres.Postgres, name: str) -> postgres.Postgres:
    """A streaming standby of `primary`, started."""
    home = procs.folder("standby", postgres.OS_USER)
    procs.run([str(postgres.bindir() / "pg_basebackup"), "-D", str(home / "data"), "-c", "fast", "-X", "stream",
               "-R", "-d", f"host=127.0.0.1 port={primary.port} user=postgres application_name={name}"],
              user=postgres.OS_USER, cwd="/")
    (home / "data").chmod(0o700)
    pg = postgres.Postgres(home / "data", procs.free_port())
    follow(pg, primary, name)
    pg.start()
    return pg


def follow(pg: postgres.Postgres, primary: postgres.Postgres, name: str, **conf: str) -> None:
    """Writes settings that make `pg` a standby of `primary`."""
    pg.write_conf({"primary_conninfo": f"host=127.0.0.1 port={primary.port} user=postgres "
                                       f"application_name={name}", "cluster_name": name, **conf})
    (pg.data / "standby.signal").touch()


class Trio:
    """A primary at place `at` of three, the others its standbys."""

    def __init__(self, at: int):
        self.at = at
        self.primary = postgres.start_postgres({"wal_keep_size": "64MB"}, roles=False)
        self.nodes = [self.primary if i == at else make_standby(self.primary, f"node{i}") for i in range(3)]
        self.standbys = [i for i in range(3) if i != at]

    def stop(self) -> None:
        for node in self.nodes:
            node.stop(signal.SIGQUIT)


@pytest.fixture(params=[0, 2], ids=["primary0", "primary2"])
def trio(request):
    it = Trio(request.param)
    yield it
    it.stop()


def show(pool, what: str = "POOL_NODES") -> list[dict[str, str]]:
    """Rows of a SHOW as dictionaries by column name."""
    with Wire(pool.address) as w:
        assert w.login()[-1].type == "Z"
        messages = w.simple(f"SHOW {what}")
    names = column_names(next(m.body for m in messages if m.type == "T"))
    return [dict(zip(names, [(v or b"").decode() for v in m.row()])) for m in messages if m.type == "D"]


def column_names(body: bytes) -> list[str]:
    """Names in a RowDescription: each is followed by 18 bytes."""
    at, names = 2, []
    while at < len(body):
        end = body.index(b"\0", at)
        names.append(body[at:end].decode())
        at = end + 1 + 18
    return names


def column(pool, name: str) -> list[str]:
    return [row[name] for row in show(pool)]


def pool_for(start_pool, trio, **conf):
    conf = {**PERIOD, **{f"backend_application_name{i}": f"node{i}" for i in range(3)}, **conf}
    return start_pool(*[n.address for n in trio.nodes], **conf)


def roles(at: int) -> list[str]:
    return ["primary" if i == at else "standby" for i in range(3)]


def wait_settled(pool, at: int, seconds: float = 15) -> None:
    waits.wait_for(f"node {at} is the primary and all are up", lambda: column(pool, "role") == roles(at)
                   and column(pool, "status") == ["up"] * 3, seconds)


def test_roles_and_status(trio, start_pool):
    pool = pool_for(start_pool, trio)
    wait_settled(pool, trio.at)
    waits.wait_for("standbys stream", lambda: [r["replication_state"] for r in show(pool)] ==
                   ["" if i == trio.at else "streaming" for i in range(3)])
    rows = show(pool)
    assert [r["pg_role"] for r in rows] == roles(trio.at)
    assert [r["pg_status"] for r in rows] == ["up"] * 3
    assert [r["replication_sync_state"] for r in rows] == ["" if i == trio.at else "async" for i in range(3)]
    assert f"find_primary_node: primary node is {trio.at}" in pool.log()
