# SPDX-License-Identifier: PostgreSQL
"""test_driver_programs: drivers of other languages in their ordinary use, 20 clients at each place (conftest.py).

The programs are built by `test/drivers/install FOLDER`; PGT_DRIVERS names the folder. One that is not there is
skipped by name.
"""
import os
import subprocess
from pathlib import Path

import pytest

from pgt import waits

CLIENTS = 20
PROGRAMS = {
    "pgx": (["go/pgx_clients"], "drv_pgx"),
    "jdbc": (["java/JdbcClients.class"], "drv_jdbc"),
    "dbd": (["perl/dbd_clients.pl"], "drv_dbd"),
    "node": (["node/node_modules/pg-cursor/package.json"], "drv_node"),
    "pdo": (["php/pdo_clients.php"], "drv_pdo"),
    "postgresjs": (["node/node_modules/postgres/package.json"], "drv_pjs"),
    "rails": (["ruby/rails_clients.rb"], "drv_rails"),
    "tokio": (["rust/target/release/tokio_clients"], "drv_tokio"),
}


def command(name: str, home: Path) -> list[str]:
    return {"pgx": [str(home / "go/pgx_clients")],
            "jdbc": ["java", "-cp", f"{home / 'java'}:{home / 'java/postgresql.jar'}", "JdbcClients"],
            "dbd": ["perl", str(home / "perl/dbd_clients.pl")],
            "node": ["node", str(home / "node/node_clients.js")],
            "pdo": ["php", str(home / "php/pdo_clients.php")],
            "postgresjs": ["node", str(home / "node/postgresjs_clients.js")],
            "rails": ["ruby", str(home / "ruby/rails_clients.rb")],
            "tokio": [str(home / "rust/target/release/tokio_clients")]}[name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(pg, place, pool, name):
    home = Path(os.environ.get("PGT_DRIVERS", "/nonexistent"))
    needs, table = PROGRAMS[name]
    if not all((home / n).exists() for n in needs):
        pytest.skip(f"{name} is not built: test/drivers/install FOLDER, PGT_DRIVERS=FOLDER")
    pg.rows(f"drop table if exists {table}")
    pg.rows(f"create table {table}(client int, n int, unique (client, n))")
    env = os.environ | ({"PGT_READERS": "1"} if place.has_readers else {})
    done = subprocess.run([*command(name, home), "127.0.0.1", str(pool.port), str(CLIENTS)], capture_output=True,
                          text=True, timeout=280 * waits.SCALE, check=False, env=env)
    assert done.returncode == 0 and f"ok {CLIENTS}" in done.stdout, (done.stdout + done.stderr)[-3000:]
    assert int(pg.value(f"select count(*) from {table}")) >= CLIENTS * 5
