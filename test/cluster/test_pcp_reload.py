# SPDX-License-Identifier: PostgreSQL
"""test_pcp_reload: what pcp_reload_config does, refuses, and tells whoever gave the order."""
import json
import os
import re
import subprocess

import pytest

from pgt import certs, procs, waits
from pgt.proxy import pgpool_bin

from test_pcp import PCP, Side, pool, secured  # noqa: F401  a fixture, too

pytestmark = pytest.mark.skipif(not os.access(PCP, os.X_OK), reason="PGPOOL_BIN has no pcp beside it")


@pytest.fixture(scope="module")
def authority():
    return certs.Authority()


def test_reload(pool):
    pool.write_conf(log_disconnections=True)
    assert pool.pcp.ok("reload_config") == "pcp_reload_config -- Command Successful\n"
    settings = {s["name"]: s["value"] for s in json.loads(pool.pcp.ok("pool_status", "--json"))}
    assert settings["log_disconnections"] == "1"
    pool.write_conf(log_disconnections="perhaps")
    assert "the settings stay as they are" in pool.pcp.refused("reload_config")
    assert pool.log().count("is in use") == 1


def test_reload_tells_what_it_did_not_take(pool):
    """The order is obeyed, and what needs a restart is told to whoever gave it, not to the log alone."""
    pool.write_conf(log_disconnections=True, max_clients=77, num_init_children=3)
    done = pool.pcp.run("reload_config")
    assert (done.returncode, done.stdout) == (0, "pcp_reload_config -- Command Successful\n"), done
    told = re.findall(r'^WARNING:  (\S+):\d+: parameter "(\w+)" cannot be changed without restarting$', done.stderr, re.M)
    assert told == [(str(pool.conf_path), "num_init_children"), (str(pool.conf_path), "max_clients")], done.stderr
    assert done.stderr.count("HINT:  It keeps its old value until then.") == 2
    settings = {s["name"]: s["value"] for s in json.loads(pool.pcp.ok("pool_status", "--json"))}
    assert settings["log_disconnections"] == "1"


def test_reload_of_rules_with_a_mistake(pg, start_pool):
    """Workers keep the rules they have: who asked is told, and nothing else is taken either."""
    port = procs.free_port()
    second = start_pool(pg.address, pcp_listen_addresses="127.0.0.1", pcp_port=port, enable_pool_hba=False)
    side = Side(second.home, port)
    rules = second.home / "pool_hba.conf"
    rules.write_text("host all all all trust\nhost all all 10.0.0.0/33 reject\n", encoding="ascii")
    second.write_conf(enable_pool_hba=True)
    said = side.refused("reload_config")
    assert "the rules of client authentication have errors: all stays as it is" in said
    assert f'{rules}:2: invalid CIDR mask in address: "10.0.0.0/33"' in said
    rules.unlink()
    assert f'DETAIL:  {rules}: could not open file' in side.refused("reload_config")
    assert "is in use" not in second.log()
    rules.write_text("host all all all trust\n", encoding="ascii")
    assert side.ok("reload_config") == "pcp_reload_config -- Command Successful\n"


def test_tls_follows_a_reload(start_pool, pg, authority):
    pair, later = authority.issue(), certs.Authority("later CA")
    pool = secured(start_pool, pg, pair)
    fresh = later.issue()
    pool.reload(ssl_cert=fresh.cert, ssl_key=fresh.key)
    waits.wait_for("the new certificate is shown", lambda: pool.pcp.run("node_count", "--tls-ca", str(later.cert)).returncode == 0)


def test_reload_of_a_certificate_that_is_none(start_pool, pg, authority):
    """Who renews certificates and orders a reload is told that the old one stays, be it by PCP or by the command line."""
    pair = authority.issue()
    pool = secured(start_pool, pg, pair)
    pool.write_conf(ssl_key=authority.issue().key)
    said = pool.pcp.refused("reload_config")
    assert "TLS with clients" in said and "key values mismatch" in said and "All stays as it is" in said
    assert "is in use" not in pool.log()
    done = subprocess.run([pgpool_bin(), "-f", str(pool.conf_path), "reload"], capture_output=True, text=True, timeout=30 * waits.SCALE, check=False)
    assert done.returncode == 0 and "key values mismatch" in done.stderr and "What was in use before stays in use" in done.stderr
    pool.write_conf(ssl_key=pair.key)
    if os.getuid() == 0:  # as root, where pgpool is another user, who alone may read its key
        for path in (pool.home / "pgpool.pid", pair.key):
            os.chown(path, 65534, 65534)
        done = subprocess.run([pgpool_bin(), "-f", str(pool.conf_path), "reload"], capture_output=True, text=True, timeout=30 * waits.SCALE, check=False)
        assert done.returncode == 0 and "owned by" not in done.stderr, done.stderr
        os.chown(pair.key, 0, 0)
    assert pool.pcp.ok("reload_config") == "pcp_reload_config -- Command Successful\n"
