# SPDX-License-Identifier: PostgreSQL
"""test_pool_chaos: many clients on few links whose every answer can be judged by itself, while everything goes wrong that can
(chaos_house). The model by which they judge is tried on PostgreSQL directly.

    PGT_CHAOS_SECONDS=60 PGT_CHAOS_SEED=7 PGPOOL_BIN=... pytest --slow test/proto/pooling/test_pool_chaos.py

With PGT_CHAOS_TAPE=/tmp/tape a session that fails leaves all that it sent in /tmp/tape.MARK; PGT_CHAOS_PLAY=/tmp/tape.MARK sends it
again, alone, with -k play.
"""
import os
import pickle
from pathlib import Path

import pytest
from chaos_client import Client
from chaos_house import House
from chaos_model import World

from pgt import certs, postgres

SECONDS = float(os.environ.get("PGT_CHAOS_SECONDS", "0.7"))
SEED = int(os.environ.get("PGT_CHAOS_SEED", "1"))
SMALL = {"cancel": 0.01, "reload": 0.1, "columns": 0.1, "reconnect": 0.2, "pause": 0.2, "kill_client": 0.1}
LINKS = {**SMALL, "terminate": 0.1}
WORKERS = {**LINKS, "worker": 0.7, "drain": 0.9}
SERVER = {**LINKS, "crash": 1.5, "workers": 2.3}
CASES = {"calm": {}, "small": SMALL, "links": LINKS, "workers": WORKERS, "server": SERVER,
         "timeouts": {"cancel": 0.02, "terminate": 0.5}}
RELOADS = {"max_backend_connections": (4, 5, 6, 7), "worker_fill": (0, 1), "reset_between_clients": (False, True),
           "server_lifetime": (0, 1, 3600), "virtual_begin": (True, False), "max_prepared_statements": (1, 20, 200)}


@pytest.fixture(scope="module")
def own_pg():
    """A server that may crash: what it has acknowledged it has."""
    server = postgres.start_postgres()
    server.stop()
    ca = certs.Authority()
    pair, owner = ca.issue(), server.data.stat().st_uid
    certs.give(pair.cert, server.data / "server.crt", 0o644, owner)
    certs.give(pair.key, server.data / "server.key", 0o600, owner)
    server.write_conf({"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key", "synchronous_commit": "on"})
    server.start()
    server.pair = pair
    yield server
    server.stop()


def pool_for(start_pool, server, is_tls: bool, **conf):
    tls = {"ssl": True, "ssl_cert": server.pair.cert, "ssl_key": server.pair.key, "backend_ssl_mode0": "require"} if is_tls else {}
    return start_pool(server.address, **{"pool_mode": "transaction", "pool_test_rotate": True, "max_backend_connections": 5,
                                         "num_init_children": 2, "query_wait_timeout": 60, **tls, **conf})


def chaos(start_pool, server, is_tls: bool, what: str, clients: int, **conf) -> None:
    is_timed = what == "timeouts"
    if is_timed:
        conf |= {"query_timeout": "1s", "idle_transaction_timeout": "1s", "server_lifetime": "1s"}
    pool = pool_for(start_pool, server, is_tls, **conf)
    house = House(pool, server, SEED, clients, is_tls=is_tls, timeouts=("08P01",) if is_timed else (), idle=1.3 if is_timed else 0.1,
                  reloads=RELOADS, **CASES[what])
    print(house.run(SECONDS))
    pool.check_log()


class Direct:
    """PostgreSQL in a pgpool's place."""

    def __init__(self, server):
        self.address, self.reload, self.log = server.address, lambda **_: None, lambda: ""


def test_the_model_is_right(own_pg):
    house = House(Direct(own_pg), own_pg, SEED, 10, cancel=0.01)
    house.check_rest = house.resume = lambda: True
    print(house.run(SECONDS))


def test_chaos(own_pg, start_pool):
    chaos(start_pool, own_pg, False, "links", 12)


@pytest.mark.skipif("PGT_CHAOS_PLAY" not in os.environ, reason="PGT_CHAOS_PLAY names no tape")
@pytest.mark.parametrize("is_direct", [True, False], ids=["postgres", "pgpool"])
def test_play(own_pg, start_pool, is_direct):
    me, start, tape = pickle.loads(Path(os.environ["PGT_CHAOS_PLAY"]).read_bytes())
    house = House(Direct(own_pg) if is_direct else pool_for(start_pool, own_pg, False, num_init_children=1), own_pg, SEED, 100)
    client = Client(house, 0 if start["session_authorization"] == "postgres" else 1)
    client.connect()
    client.me, client.worlds = me, [World(me, start, start)]
    client.play(tape)


@pytest.mark.slow
@pytest.mark.parametrize("workers, fill", [(2, 1), (3, 0), (4, 1)])
@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("what", CASES)
def test_chaos_long(own_pg, start_pool, what, is_tls, workers, fill):
    chaos(start_pool, own_pg, is_tls, what, 30, num_init_children=workers, worker_fill=fill)
