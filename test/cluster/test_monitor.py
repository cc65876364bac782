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


def logged_in(pool) -> Wire:
    """A client; while a server is lost and not yet known to be, a login may fail."""
    def attempt():
        w = Wire(pool.address)
        if w.login()[-1].type == "Z":
            return w
        w.bye()
        return None
    return waits.wait_for("a client is let in", attempt)


def show(pool, what: str = "POOL_NODES") -> list[dict[str, str]]:
    """Rows of a SHOW as dictionaries by column name."""
    with logged_in(pool) as w:
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


def test_standby_goes_and_returns_by_itself(trio, start_pool):
    pool = pool_for(start_pool, trio)
    wait_settled(pool, trio.at)
    lost = trio.standbys[0]
    trio.nodes[lost].stop()
    waits.wait_for("the loss is seen", lambda: column(pool, "status")[lost] == "down")
    assert column(pool, "pg_status")[lost] == "down"
    assert f"health check failed on node {lost} (timeout:5)" in pool.log()
    assert f"health check retrying on DB node: {lost} (round:1)" in pool.log()
    trio.nodes[lost].start()
    wait_settled(pool, trio.at)
    assert f"request auto failback, node id:{lost}" in pool.log()


def test_everything_goes_and_returns(trio, start_pool):
    """A rolling restart that catches every node, and then all of them at once: service heals."""
    pool = pool_for(start_pool, trio, auto_failback=False)
    wait_settled(pool, trio.at)
    for node in trio.nodes:
        node.stop()
    waits.wait_for("all are down", lambda: pool.log().count("health check failed on node") == 3, 20)
    for node in [trio.nodes[i] for i in trio.standbys] + [trio.primary]:
        node.start()
    waits.wait_for("the primary is back", lambda: column(pool, "role")[trio.at] == "primary"
                   and column(pool, "status")[trio.at] == "up", 20)
    with logged_in(pool) as w:
        w.rows("create table t as select 1")


def test_promotion_is_followed(trio, start_pool):
    """Somebody else promotes a standby while the old primary still runs: it is left alone from then on."""
    pool = pool_for(start_pool, trio)
    wait_settled(pool, trio.at)
    new = trio.standbys[-1]
    trio.nodes[new].rows("select pg_promote()")
    waits.wait_for("the new primary is found", lambda: column(pool, "role")[new] == "primary")
    waits.wait_for("the old one is not used", lambda: column(pool, "status")[trio.at] == "quarantine")
    assert f"node {trio.at} is a former primary on timeline 1: it is not used" in pool.log()
    with logged_in(pool) as w:
        w.rows("create table written_here as select 1")
    assert trio.nodes[new].value("select count(*) from written_here") == "1"
    # The third follows the new primary, then the old one does after a rewind's stand-in: a new copy.
    other = next(i for i in trio.standbys if i != new)
    trio.nodes[other].stop()
    follow(trio.nodes[other], trio.nodes[new], f"node{other}", recovery_target_timeline="latest")
    trio.nodes[other].start()
    waits.wait_for("the other standby follows", lambda: show(pool)[other]["replication_state"] == "streaming"
                   and column(pool, "status")[other] == "up", 20)


def test_primary_lost_then_promoted(trio, start_pool):
    pool = pool_for(start_pool, trio)
    wait_settled(pool, trio.at)
    new = trio.standbys[-1]
    trio.primary.stop(signal.SIGQUIT)
    waits.wait_for("the loss is seen", lambda: column(pool, "status")[trio.at] == "down")
    assert "primary" not in column(pool, "role")
    trio.nodes[new].rows("select pg_promote()")
    waits.wait_for("the new primary is found", lambda: column(pool, "role")[new] == "primary", 5)
    trio.primary.start()  # it believes in itself still
    waits.wait_for("the old primary answers", lambda: column(pool, "pg_status")[trio.at] == "up")
    waits.holds_for("the old primary is not used", lambda: column(pool, "status")[trio.at] == "down"
                    and column(pool, "role")[new] == "primary", 3)


def test_lag_is_told(trio, start_pool):
    pool = pool_for(start_pool, trio, delay_threshold=1000)
    wait_settled(pool, trio.at)
    slow = trio.standbys[0]
    trio.nodes[slow].rows("select pg_wal_replay_pause()")
    trio.primary.rows("create table lag as select repeat('x', 100) from generate_series(1, 5000)")
    waits.wait_for("the lag is seen", lambda: int(show(pool)[slow]["replication_delay"]) > 100000)
    waits.wait_for("the log tells", lambda: f"Replication of node: {slow} is behind " in pool.log())
    assert column(pool, "status")[slow] == "up", "a lagging standby is not a lost one"
    trio.nodes[slow].rows("select pg_wal_replay_resume()")
    waits.wait_for("the lag is gone", lambda: int(show(pool)[slow]["replication_delay"]) == 0)


def test_refusals_are_not_losses(trio, start_pool):
    """A user that may not log in, a terminated connection: nobody is marked down for that."""
    pool = pool_for(start_pool, trio, sr_check_user="nologin", health_check_max_retries=0)
    waits.wait_for("the refusal is told", lambda: pool.log().count("is alive but does not tell its role") == 3)
    assert column(pool, "status") == ["up"] * 3
    assert set(column(pool, "role")) == {"unknown"}
    pool.reload(sr_check_user="postgres")
    wait_settled(pool, trio.at)
    trio.primary.rows("select pg_terminate_backend(pid) from pg_stat_activity "
                      "where application_name = 'pgpool monitor'")
    before = int(show(pool, "POOL_HEALTH_CHECK_STATS")[trio.at]["success_count"])
    waits.wait_for("it was asked again", lambda:
                   int(show(pool, "POOL_HEALTH_CHECK_STATS")[trio.at]["success_count"]) > before + 1)
    assert column(pool, "status") == ["up"] * 3
    assert "health check failed" not in pool.log()
    assert "retrying" not in pool.log()


def test_nothing_configured_but_hosts(trio, start_pool):
    """Both periods 0: the primary is still searched for, and the servers are then left alone."""
    pool = start_pool(*[n.address for n in trio.nodes])
    waits.wait_for("roles are found", lambda: column(pool, "role") == roles(trio.at))
    assert trio.primary.sessions("application_name = 'pgpool monitor'") == []


def test_new_node_by_reload(trio, start_pool):
    pool = start_pool(*[n.address for n in trio.nodes[:2]], **PERIOD)
    waits.wait_for("two are up", lambda: column(pool, "status") == ["up"] * 2)
    third = trio.nodes[2].address
    pool.reload(backend_hostname2=third.host, backend_port2=third.port, backend_weight2=1)
    wait_settled(pool, trio.at)
