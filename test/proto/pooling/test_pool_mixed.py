# SPDX-License-Identifier: PostgreSQL
"""test_pool_mixed: simple queries in the middle of sequences without Sync, errors that skip what follows, names that are
not there: random short mixtures get the replies that the server itself gives, however they are cut into pieces.
"""
import random

import pytest
from pooling_house import login

from pgt.wire import FLUSH, SYNC, Wire, bind, close, describe, execute, parse, query

PIECES = (
    query("select 1"), query("select 1/0"), query("begin"), query("commit"), query("rollback"), query("savepoint a"),
    query("do $$begin raise notice 'x'; end$$"), query("set work_mem = '1MB'"), query(""),
    parse("select 1"), parse("selec"), parse("begin"), parse("commit"), parse("select 2", "s"),
    bind(), bind(name="s"), bind(name="nobody"), describe("", "P"), describe("s"), execute(), execute("nobody"),
    close("a", "P"), close("s"), SYNC, FLUSH)
END = SYNC + query("rollback") + query("deallocate all")


def replies(address, data: bytes, mark: str, piece: int) -> list:
    """What comes up to the answer of a last query, which has `mark` in it."""
    w = Wire(address, seconds=10)
    w.login()
    data += END + query(f"select '{mark}'")
    for at in range(0, len(data), piece):
        w.send(data[at:at + piece])
    found = []
    while not found or found[-1] != ("D", mark):
        m = w.read()
        if m.type == "D":
            found.append(("D", m.row()[0].decode()))
        elif m.type != "S":
            found.append((m.type, m.sqlstate if m.type in "EN" else m.body if m.type in "CZ" else None))
    w.bye()
    return found


@pytest.mark.parametrize("piece,seeds", [(1 << 20, range(250)), (7, range(1000, 1040))])
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_mixtures(pg, start_pool, mode, piece, seeds):
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode, pool_test_rotate=mode == "transaction")
    login(pool).bye()
    for seed in seeds:
        rnd = random.Random(seed)
        data = b"".join(rnd.choices(PIECES, k=rnd.randint(2, 8)))
        mark = f"m{seed}"
        assert replies(pool.address, data, mark, piece) == replies(pg.address, data, mark, piece), f"seed {seed}: {data!r}"
