# SPDX-License-Identifier: PostgreSQL
"""PgJDBC over native replication: its programs as elsewhere (test_driver_programs.py), and then all nodes hold the same: rows, and large
objects by number and content, which its LargeObjectManager makes by function calls of the protocol."""
import os
import subprocess
from pathlib import Path

import pytest
from pgt import waits
from pgt.native import OBJECTS, one

CLIENTS = 12


def test_jdbc(pair):
    home = Path(os.environ.get("PGT_DRIVERS", "/nonexistent")) / "java"
    if not (home / "JdbcClients.class").exists():
        pytest.skip("jdbc is not built: test/drivers/install FOLDER, PGT_DRIVERS=FOLDER")
    it = pair()
    it.nodes[1].rows("create type skew as (a int); drop type skew")  # the nodes count oids from different numbers
    with it.client() as c:
        one(c, "create table drv_jdbc(client int, n int, unique (client, n))")
    done = subprocess.run(["java", "-cp", f"{home}:{home / 'postgresql.jar'}", "JdbcClients", "127.0.0.1", str(it.pool.port), str(CLIENTS)],
                          capture_output=True, text=True, timeout=280 * waits.SCALE, check=False, env=os.environ | {"PGT_KEEP_OBJECTS": "1"})
    assert done.returncode == 0 and f"ok {CLIENTS}" in done.stdout, (done.stdout + done.stderr)[-3000:]
    it.equal(tables=("drv_jdbc",))
    rows = it.everywhere(OBJECTS)
    assert rows[0] == rows[1] and len(rows[0]) == CLIENTS, rows
