# SPDX-License-Identifier: PostgreSQL
"""test_cache_several: several statements up to one Sync, as drivers send them in a pipeline: they are kept each, and answered from the cache when all of
them are kept; what a client gets is what a server would send, message by message."""
import pytest
from cache_house import ask, login, run, start_cached

from pgt.wire import FLUSH, SYNC, bind, close, describe, execute, parse

READS = ("select b from sv where a = $1", "select a, b from sv order by a", "select count(*) from sw")
VALUES = ([b"1"], [], [])


@pytest.fixture(params=["transaction", "session"])
def pool(pg, start_pool, request):
    pg.rows("drop table if exists sv, sw; create table sv (a int primary key, b int); create table sw (a int);"
            "insert into sv values (1, 10), (2, 20); insert into sw values (1)")
    return start_cached(pg, start_pool, num_init_children=1, pool_mode=request.param)


def sequence(texts=READS, values=VALUES, describes=True) -> bytes:
    return b"".join(parse(sql) + bind(v) + (describe("", "P") if describes else b"") + execute() for sql, v in zip(texts, values))


def send(w, data: bytes) -> list:
    """All messages of the answer, as they are."""
    w.send(data, SYNC)
    return [(m.type, m.body) for m in w.ready()]


def hits(w) -> int:
    return int(w.rows("show pool_cache")[0][0])


def is_hit(w, data: bytes, n: int = len(READS)) -> bool:
    before = hits(w)
    send(w, data)
    return hits(w) == before + n


def rows(found) -> list:
    return [body for kind, body in found if kind == "D"]


@pytest.mark.parametrize("describes", [True, False])
def test_a_pipeline_is_kept_and_answered(pg, pool, describes):
    w, other = login(pool), login(pool)
    send(w, sequence())  # their names are asked for
    first = send(w, sequence(describes=describes))
    assert [kind for kind, _ in first] == (["1", "2", "T", "D", "C"] + ["1", "2", "T", "D", "D", "C"] + ["1", "2", "T", "D", "C", "Z"] if describes else
                                           ["1", "2", "D", "C"] + ["1", "2", "D", "D", "C"] + ["1", "2", "D", "C", "Z"])
    before = hits(other)
    assert send(other, sequence(describes=describes)) == first
    assert hits(other) == before + 3
    pg.rows("update sv set b = b + 1")  # around pgpool: what is kept shows that it was
    assert send(w, sequence(describes=describes)) == first
    assert send(w, b"") == [("Z", b"I")]
    assert ask(w, "select 1 + 1", ()) == [[b"2"]]  # and the session goes on


def test_each_is_kept_for_itself(pg, pool):
    w = login(pool)
    send(w, sequence())
    send(w, sequence())
    before = hits(w)
    assert ask(w, READS[1], []) == [[b"1", b"10"], [b"2", b"20"]] and ask(w, READS[0], [b"1"]) == [[b"10"]]
    assert hits(w) == before + 2
    # One that is not kept yet: all go to the server, and it is kept as the others are.
    more = sequence((READS[0], READS[0], READS[2]), ([b"1"], [b"2"], []))
    pg.rows("update sv set b = b + 1")
    assert len(rows(send(w, more))) == 3 and hits(w) == before + 2
    assert is_hit(w, more)


def test_a_write_is_seen(pg, pool):
    w, writer = login(pool), login(pool)
    for _ in range(2):
        send(w, sequence())
    assert is_hit(w, sequence())
    run(writer, "insert into sw values (2)")
    assert rows(send(w, sequence()))[-1].endswith(b"2")
    assert is_hit(w, sequence())
    run(writer, "update sv set b = 77")
    assert rows(send(w, sequence()))[0].endswith(b"77")


def test_a_write_among_them(pg, pool):
    """Reads behind a write of their own sequence are of an open transaction: nothing of it is told to others, nor kept."""
    w, other = login(pool), login(pool)
    run(w, "explain insert into sw values (1)")
    for _ in range(2):
        send(w, sequence())
    mixed = (READS[2], "insert into sw values (5)", READS[2], "select 1 / (count(*) - 2) from sw")
    found = send(w, sequence(mixed, ([], [], [], [])))
    assert [kind for kind, _ in found][-2:] == ["E", "Z"] and rows(found)[-1].endswith(b"2")
    assert ask(other, READS[2], []) == [[b"1"]] == pg.rows(READS[2])  # it was rolled back
    found = send(w, sequence(mixed[:3], ([], [], [])))
    assert rows(found)[-1].endswith(b"2")
    assert ask(other, READS[2], []) == [[b"2"]] == pg.rows(READS[2])


def test_an_error_among_them(pg, pool):
    w = login(pool)
    texts = (READS[0], "select a / (a - 1) from sv where a = 1", READS[2])
    for _ in range(3):
        found = send(w, sequence(texts, ([b"1"], [], [])))
        assert [kind for kind, _ in found][-2:] == ["E", "Z"] and len(rows(found)) == 1
    pg.rows("update sv set b = 11 where a = 1")
    assert rows(send(w, sequence(texts, ([b"1"], [], []))))[0].endswith(b"11")  # nothing of a sequence that failed is kept


def test_named_and_unnamed(pg, pool):
    """Bound once more without a Parse; a name that was made before; the unnamed one goes on behind an answer from the cache."""
    w = login(pool)
    w.send(parse(READS[0], name="p", types=(23,)), SYNC)
    w.ready()
    data = (bind([b"1"], name="p") + describe("", "P") + execute() + parse(READS[0]) + bind([b"1"]) + describe("", "P") + execute() +
            bind([b"2"]) + describe("", "P") + execute())
    first = send(w, data)
    assert [r[-2:] for r in rows(first)] == [b"10", b"10", b"20"]
    assert send(w, data) == first
    assert is_hit(w, data)
    assert rows(send(w, bind([b"2"]) + describe("", "P") + execute()))[0].endswith(b"20")
    assert rows(send(w, bind([b"2"], name="p") + describe("", "P") + execute()))[0].endswith(b"20")


@pytest.mark.parametrize("odd", [FLUSH, close("", "S"), describe("", "S"), parse("select 1", name="q")], ids=["flush", "close", "describe", "named"])
def test_what_is_in_between(pg, pool, odd):
    """It is not answered from the cache, and answered."""
    w = login(pool)
    half = sequence(READS[:1], VALUES[:1])
    for _ in range(2):
        found = send(w, half + odd + sequence(READS[1:], VALUES[1:]))
        assert len(rows(found)) == 4 and found[-1] == ("Z", b"I")
        w.send(close("q", "S"), SYNC)
        w.ready()


def test_more_than_are_looked_at(pg, pool):
    w = login(pool)
    many = sequence(READS[:1] * 20, [[b"1"]] * 20)
    for _ in range(3):
        found = send(w, many)
        assert len(rows(found)) == 20 and found[-1] == ("Z", b"I")


def test_rows_with_a_limit(pg, pool):
    w = login(pool)
    data = sequence(READS[:1], VALUES[:1]) + parse(READS[1]) + bind([]) + execute(limit=1)
    for _ in range(3):
        found = send(w, data)
        assert [kind for kind, _ in found][-3:] == ["D", "s", "Z"]


def test_two_sequences_at_once(pg, pool):
    w = login(pool)
    for _ in range(3):
        w.send(sequence() + SYNC + sequence(READS[::-1], VALUES[::-1]) + SYNC)
        assert len([m for m in w.ready() if m.type == "D"]) == 4
        assert len([m for m in w.ready() if m.type == "D"]) == 4


def test_in_a_transaction(pg, pool):
    w, other = login(pool), login(pool)
    for _ in range(2):
        send(w, sequence())
    run(w, "begin", "select 1")
    found = send(w, sequence())
    assert found[-1] == ("Z", b"T") and len(rows(found)) == 4
    run(w, "insert into sw values (9)")
    assert rows(send(w, sequence()))[-1].endswith(b"2")
    assert rows(send(other, sequence()))[-1].endswith(b"1")
    run(w, "rollback")
    assert rows(send(w, sequence()))[-1].endswith(b"1")
