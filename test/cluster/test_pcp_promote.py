# SPDX-License-Identifier: PostgreSQL
"""test_pcp_promote: pcp_promote_node on real servers: a switchover, by our tool and by pgpool-II's, and what is
refused. Exit status and JSON as documented."""
import json
import re
import shutil

import pytest

from pgt import postgres, procs, proxy, shadow, waits

from recovery_lab import Cluster, Pcp, statuses

pytestmark = [
    pytest.mark.skipif(not postgres.is_installed() or shadow.pg_config() is None,
                       reason="postgresql-server-dev is not installed"),
    pytest.mark.skipif(proxy.pgpool_bin() is None, reason="PGPOOL_BIN does not name a program")]
THEIRS = shutil.which("pcp_promote_node", path="/usr/sbin:/usr/bin")


@pytest.fixture
def cluster():
    it = Cluster(2)
    yield it
    it.end()


@pytest.fixture
def pool(cluster, start_pool):
    it = start_pool(*[n.address for n in cluster.nodes], **cluster.pool_conf(health_check_max_retries=0))
    it.pcp = Pcp(it)
    waits.wait_for("both nodes are up", lambda: statuses(it) == [("up", "primary"), ("up", "standby")], 60)
    return it


def check_switched(cluster, pool) -> None:
    waits.wait_for("node 1 is the primary", lambda: statuses(pool)[1] == ("up", "primary"))
    assert cluster.nodes[1].value("select pg_is_in_recovery()") == "f"
    cluster.nodes[1].rows("create table after_switch (n int)")
    # The old one comes back as a standby, by the scripts.
    waits.wait_for("the old primary is out", lambda: statuses(pool)[0][0] in ("down", "quarantine"), 60)
    done = pool.pcp.run("recovery_node", "0")
    assert done.returncode == 0, done.stderr
    assert statuses(pool) == [("up", "standby"), ("up", "primary")]
    waits.wait_for("it has what was written", lambda: cluster.nodes[0].ask("select to_regclass('after_switch') is not null") == "t")


def test_switchover(cluster, pool):
    done = pool.pcp.run("promote_node", "-s", "-v", "1")
    assert (done.returncode, done.stdout) == (0, "pcp_promote_node -- Command Successful\n"), done.stderr
    steps = ["is kept from writing", "its transactions may end", "it receives what is left", "it is promoted", "has to show up"]
    assert [s for s in re.findall(r"NOTICE:  node 1: (.*)", done.stderr) if any(x in s for x in steps)] == \
        ["the old primary is kept from writing", "its transactions may end", "it receives what is left", "it is promoted",
         "it has to show up as the primary"]
    check_switched(cluster, pool)


@pytest.mark.skipif(THEIRS is None, reason="pgpool-II is not installed")
def test_switchover_by_their_tool(cluster, pool):
    done = pool.pcp.run("promote_node", "-g", "-s", "-n", "1", program=THEIRS)
    assert done.stdout == "pcp_promote_node -- Command Successful\n", done
    check_switched(cluster, pool)


def test_what_is_refused(cluster, pool):
    for args, why in ((["-s", "0"], "already primary node"), (["0"], "already primary node"),
                      (["1"], "with --switchover it is made the primary"), (["-g", "1"], "it is a standby"),
                      (["-s", "5"], "node id 5 is not valid")):
        done = pool.pcp.run("promote_node", *args)
        assert done.returncode == 1 and why in done.stderr, (args, done)
    assert pool.pcp.run("detach_node", "1").returncode == 0
    done = pool.pcp.run("promote_node", "-s", "1")
    assert done.returncode == 1 and "not in use" in done.stderr
    rows = json.loads(pool.pcp.run("node_info", "--json").stdout)
    assert [(r["status_name"], r["role"]) for r in rows] == [("up", "primary"), ("down", "standby")]
    assert cluster.nodes[1].value("select pg_is_in_recovery()") == "t"
