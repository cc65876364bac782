# SPDX-License-Identifier: PostgreSQL
"""test_pool_trouble: many clients while pgpool and its server are reloaded, notifications come, links are killed, requests
are cancelled and clients vanish, all at any moment, and what servers say comes in pieces of any size. A reply may be an error;
it is never another client's, none is missing and none too many, nobody waits for ever, and a write that was acknowledged
is there once. See trouble_house.

    PGT_TROUBLE_SECONDS=60 PGT_TROUBLE_SEED=7 PGPOOL_BIN=... pytest test/proto/pooling/test_pool_trouble.py
"""
import os
import random

import pytest
from trouble_house import House

from pgt.relay import CHUNK, Relay

SECONDS = float(os.environ.get("PGT_TROUBLE_SECONDS", "1.5"))
SEED = int(os.environ.get("PGT_TROUBLE_SEED", "1"))
RELOADS = {"pool_reload": 0.05, "server_reload": 0.15, "notify": 0.03}
ASKS = {"cancel": 0.02, "pool_reload": 0.05}
KILLS = {"terminate": 0.15, "rst": 0.25, "cancel": 0.02, "notify": 0.03}
CLIENTS = 8


@pytest.mark.parametrize("what", [RELOADS, ASKS, KILLS], ids=["reloads", "cancels", "kills"])
@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_trouble(pg, start_pool, mode, what):
    """Two links in transaction mode, which go to another client each time."""
    rng = random.Random(SEED)
    relay = Relay("127.0.0.2", pg.address)
    listeners = 2 if "notify" in what and mode != "statement" else 0
    pool = start_pool(relay.address, num_init_children=1 + SEED % 2, pool_mode=mode, pool_test_rotate=mode != "session",
                      max_backend_connections=CLIENTS if mode == "session" else 2 + listeners, query_wait_timeout=60)
    try:
        relay.take = lambda: rng.choice((1 + rng.randrange(60), 1400, CHUNK, CHUNK))
        print(House(pool, [pg], SEED, mode, CLIENTS, listeners, [relay], vanishing=0.0 if what is RELOADS else 0.03,
                    **what).run(SECONDS))
    finally:
        pg.rows("alter system reset datestyle")
        pg.reload()
        relay.close()
