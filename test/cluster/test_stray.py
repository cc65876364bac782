# SPDX-License-Identifier: PostgreSQL
"""test_stray: somebody promotes a standby while the primary lives. By accident: the primary keeps the writes. On purpose,
as an operator says or as other tools fail over: the new one is followed."""
import pytest

from pgt import postgres, waits
from pgt.pcp_tool import pcp
from pgt.trio import Trio, follow
from test_monitor import column, logged_in, logs, pool_for, show, wait_settled


@pytest.fixture(params=[0, 2], ids=["primary0", "primary2"])
def trio(request):
    it = Trio(request.param)
    yield it
    it.stop()


def stray(trio, start_pool):
    """A pool beside which the last standby was promoted by accident, which was seen."""
    pool = pool_for(start_pool, trio)
    wait_settled(pool, trio.at)
    new = trio.standbys[-1]
    trio.nodes[new].rows("select pg_promote()")
    waits.wait_for("the stray is not used", lambda: column(pool, "status")[new] == "quarantine")
    return pool, new


def write_lands_on(pool, node: postgres.Postgres, table: str) -> bool:
    with logged_in(pool) as w:
        w.rows(f"create table {table} as select 1")
    return node.value(f"select count(*) from pg_class where relname = '{table}'") == "1"


def test_an_accident_takes_no_writes(trio, start_pool):
    pool, new = stray(trio, start_pool)
    logs(pool, f"WARNING:  node {new} was promoted beside the primary, node {trio.at}, which lives and is followed: it is not used")
    assert write_lands_on(pool, trio.primary, "at_home")
    other = next(i for i in trio.standbys if i != new)
    trio.nodes[other].stop()  # for a moment nobody follows
    waits.wait_for("it is noticed", lambda: column(pool, "pg_status")[other] == "down")
    waits.holds_for("the primary keeps the writes", lambda: column(pool, "role")[trio.at] == "primary", 3)
    assert write_lands_on(pool, trio.primary, "still_at_home")
    events = [e for e in show(pool, "POOL_EVENTS") if e["event"] == "quarantine"]
    assert [e["node_id"] for e in events] == [str(new)]


@pytest.mark.parametrize("order", ["attach_node", "promote_node"])
def test_an_operator_says_it_was_meant(trio, start_pool, order):
    pool, new = stray(trio, start_pool)
    order = pcp(pool, order, "-n", str(new))
    out, err = order.communicate(timeout=100 * waits.SCALE)
    assert order.returncode == 0, out + err
    waits.wait_for("it is the primary", lambda: column(pool, "role")[new] == "primary"
                   and column(pool, "status")[trio.at] == "quarantine")
    assert write_lands_on(pool, trio.nodes[new], "moved")


def test_the_standbys_were_led_to_it(trio, start_pool):
    """As repmgr or scripts do: the old one lives on, and most standbys follow the new one."""
    pool, new = stray(trio, start_pool)
    other = next(i for i in trio.standbys if i != new)
    trio.nodes[other].stop()
    follow(trio.nodes[other], trio.nodes[new], f"node{other}", recovery_target_timeline="latest")
    trio.nodes[other].start()
    waits.wait_for("it is the primary", lambda: column(pool, "role")[new] == "primary"
                   and column(pool, "status")[trio.at] == "quarantine")
    assert write_lands_on(pool, trio.nodes[new], "moved")


def test_a_failover_is_followed(trio, start_pool):
    """As Patroni does: the old primary is stopped, or has died, then another one is promoted."""
    pool = pool_for(start_pool, trio, health_check_max_retries=1000)  # it is not given up in between
    wait_settled(pool, trio.at)
    new = trio.standbys[-1]
    trio.primary.stop()
    trio.nodes[new].rows("select pg_promote()")
    waits.wait_for("it is the primary", lambda: column(pool, "role")[new] == "primary")
    assert write_lands_on(pool, trio.nodes[new], "moved")


def test_of_strangers_the_lowest_is_taken(start_pool):
    """Servers that share nothing, all primaries; the one with the lowest number is not the first to answer."""
    nodes = [postgres.start_postgres(roles=False) for _ in range(2)]
    try:
        pool = start_pool(*[n.address for n in nodes], health_check_period=1, sr_check_period=1)
        waits.wait_for("there is a primary", lambda: "primary" in column(pool, "role"))
        assert column(pool, "role")[0] == "primary"
    finally:
        for node in nodes:
            node.stop()
