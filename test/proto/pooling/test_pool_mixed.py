# SPDX-License-Identifier: PostgreSQL
"""test_pool_mixed: simple queries in the middle of sequences without Sync, errors that skip what follows, names that are
not there: random short mixtures get the replies that the server itself gives, however they are cut into pieces. And what
pgpool puts in front of such a query neither ends the skipping nor commits the sequence.
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
    w = Wire(address)
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


DO = query("do $$begin raise notice 'x'; end$$")
WRITE = parse("insert into mix_w values (1)") + bind() + execute()
# Statements of the same names are on the connection, left by others: they have to go, or to be brought, before the Query.
IN_SEQUENCE = {
    "do behind an error": execute("nobody") + DO,
    "execute behind an error": parse("select 2", "s") + SYNC + execute("nobody") + query("execute s"),
    "prepare behind an error": parse("select 2", "s") + SYNC + execute("nobody") + query("prepare s as select 1"),
    "do that fails": WRITE + query("do $$begin perform 1/0; end$$"),
    "execute that fails": parse("select 1/0 from mix_w", "s") + SYNC + WRITE + query("execute s"),
    "execute that does not": parse("select 2", "s") + SYNC + WRITE + query("execute s") + WRITE + query("execute s"),
    "in a failed transaction": parse("select 2", "s") + SYNC + query("begin") + query("select 1/0") + close("x") +
                               query("execute s") + SYNC + query("rollback") + query("execute s"),
    "a skipped Parse takes nothing away": WRITE + parse("selec", "x") + parse("rollback") + SYNC + bind() + SYNC,
    "a skipped Close takes nothing away": WRITE + execute("nobody") + close() + DO + SYNC + bind() + execute() + SYNC,
    "nor has it to be brought again": query("begin") + parse("select 1") + execute("nobody") + parse("select 2") + SYNC +
                                      describe() + SYNC,
    "a skipped Parse is not there": execute("nobody") + WRITE + SYNC + bind() + execute() + SYNC,
    "nor what was parsed behind it": bind(name="nobody") + parse("select 1") + SYNC + parse("select 1") + SYNC + bind() +
                                     execute() + SYNC,
    "a refused Parse is not there": parse("select 1") + SYNC + parse("selec") + SYNC + bind() + execute() + SYNC,
    "an error in front of PREPARE": parse("begin") + query("select 1/0") + parse("rollback") +
                                    query("prepare p as select 1") + SYNC + query("deallocate p"),
    "an error in front of SET": parse("begin") + query("select 1/0") + parse("rollback") +
                                query("set work_mem = '3MB'") + SYNC + query("show work_mem"),
    "an error in front of a SET by the protocol": parse("begin") + query("select 1/0") +
                                                  parse("set work_mem = '5MB'") + bind() + execute() + SYNC +
                                                  query("show work_mem"),
    "an error in front of DISCARD": query("prepare s as select 1") + bind(name="nobody") + SYNC + parse("select 1") +
                                    query("discard all") + SYNC + query("prepare s as select 1"),
    "DISCARD ALL that fails": WRITE + query("discard all") + bind() + SYNC,
    "tied to the link": parse("select 2", "s") + SYNC + query("listen mix") + bind(name="s") +
                        query("set work_mem = '4MB'") + SYNC + query("unlisten *"),
}


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_queries_in_open_sequences(pg, start_pool, mode):
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode, max_backend_connections=1)
    found = {}
    pg.rows("drop table if exists mix_w")
    pg.rows("create table mix_w(a int)")
    for what, data in IN_SEQUENCE.items():
        for piece in (1 << 20, 7):
            for address in (pg.address, pool.address):
                pg.rows("truncate mix_w")
                if address is pool.address:
                    with login(pool) as w:
                        assert w.value("show work_mem") == "4MB", what
                        w.send(parse("select 2", "s"), SYNC, parse("select 2", "s"), SYNC)
                        w.ready(2)
                        w.simple("prepare other as select 3")
                        w.send(parse("select 'another client''s'"), SYNC)
                        w.ready()
                found[what, address.port] = replies(address, data, what, piece), pg.value("select count(*) from mix_w")
            assert found[what, pool.port] == found[what, pg.port], what


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_errors_of_ours_skip_to_the_sync(pg, start_pool, mode):
    """An error of a command of ours skips what follows it, as a server's does, whatever that is."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode)
    pg.rows("drop table if exists mix_o")
    pg.rows("create table mix_o(a int)")
    write = query("insert into mix_o values (1)")
    with login(pool) as w:
        w.send(parse("insert into mix_o values (2)", "s"), SYNC)
        w.ready()
        for front in (b"", query("begin")):
            for behind in (write, bind(name="s") + execute(), write + bind(name="s") + execute()):
                w.send(front + parse("pgpool set no_such_setting = 1") + bind() + execute() + behind + FLUSH + SYNC +
                       query("rollback"))
                kinds = [m.type for m in w.ready(3 if front else 2) if m.type != "N"]
                assert kinds == (["C", "Z"] if front else []) + ["1", "2", "E", "Z", "C", "Z"], (front, behind)
        w.send(SYNC + query("begin") + write + query("select 1"))
        w.ready(4)
        assert w.value("select count(*) from mix_o") == "1"


def test_names_of_what_is_sent_again(pg, start_pool):
    """The first half of a sequence worked before a plan was found stale: sent again, its names are not taken."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction")
    pg.rows("drop table if exists mix_c")
    pg.rows("create table mix_c(a int)")
    with login(pool) as w:
        w.send(parse("select * from mix_c", "s"), bind(name="s"), execute(), SYNC)
        w.ready()
        pg.rows("alter table mix_c add b int")
        w.send(parse("select 7", "t") + parse("select 8") + bind(name="s") + execute() + SYNC)
        assert [m.type for m in w.ready()] == ["1", "1", "2", "C", "Z"]
        w.send(bind(name="t") + execute() + bind() + execute() + SYNC)
        assert [m.row() for m in w.ready() if m.type == "D"] == [[b"7"], [b"8"]]
