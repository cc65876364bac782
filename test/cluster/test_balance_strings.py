# SPDX-License-Identifier: PostgreSQL
"""test_balance_strings: where a string ends can depend on standard_conforming_strings and on the client's encoding. What
our parser would read otherwise than the server goes to the primary; everything else is balanced as before. The
primary is on node 0 and on node 2."""
import pytest

from pgt.wire import SYNC, Wire, bind, execute, message, parse
from test_balance_tx import code, is_standby, ok
from test_monitor import Trio, pool_for, wait_settled

# Texts of which our parser sees one SELECT, with 'a\' for a string; the server goes on to the next quote.
HIDDEN = {"off": rb"select 'a\', '; insert into w values (1); --'",
          "sjis": b"select E'\x95\x5c'; insert into w values (1); --'"}
WHERE = {"off": rb"select 'a\', ' , inet_server_port() --'", "sjis": b"select E'\x95\x5c', inet_server_port() --'"}


@pytest.fixture(scope="module", params=[0, 2], ids=["primary0", "primary2"])
def cluster(request):
    it = Trio(request.param)
    it.keep_in_step()
    it.primary.rows("create table w(a int)")
    it.primary.rows("create role odd superuser login")
    it.primary.rows("alter role odd set standard_conforming_strings = off")
    yield it
    it.stop()


@pytest.fixture
def pool(cluster, start_pool, request):
    weights = {f"backend_weight{i}": 0 if i == cluster.at else 1 for i in range(3)}
    one = pool_for(start_pool, cluster, load_balance_mode=True, num_init_children=1, pool_mode=request.param, **weights)
    wait_settled(one, cluster.at)
    return one


both_modes = pytest.mark.parametrize("pool", ["session", "transaction"], indirect=True)


def odd_client(pool, how: str) -> Wire:
    w = Wire(pool.address, seconds=20)
    options = {"startup": {"standard_conforming_strings": "off"}, "role": {"user": "odd"},
               "encoding": {"client_encoding": "SJIS"}}
    assert w.login(**{"user": "postgres", "database": "postgres", **options.get(how, {})})[-1].type == "Z"
    if how == "set":
        ok(w, "set standard_conforming_strings = off")
    elif how == "function":
        assert code(w.simple("select set_config('standard_conforming_strings', 'off', false)")) is None
    elif how == "set encoding":
        ok(w, "set client_encoding to 'sjis'")
    return w


def ask(w: Wire, sql: bytes, extended: bool):
    w.send(message("P", b"\0" + sql + b"\0\0\0") + bind() + execute() + SYNC if extended else message("Q", sql + b"\0"))
    return w.ready()


@both_modes
@pytest.mark.parametrize("how", ["set", "function", "startup", "role", "encoding", "set encoding"])
def test_a_write_that_only_the_server_sees(cluster, pool, how):
    kind = "sjis" if "encoding" in how else "off"
    plain = Wire(pool.address, seconds=20)
    assert plain.login()[-1].type == "Z"
    for _ in range(3):  # known as a read by now
        plain.simple("select 'b', '; insert into w values (1); --'")
        assert code(ask(plain, rb"select 'a\', '; insert into w values (1); --'", False)) is None
    w = odd_client(pool, how)
    before = int(cluster.primary.value("select count(*) from w"))
    for n in range(1, 4):
        found = ask(w, HIDDEN[kind], False)
        assert code(found) is None, found
        assert int(cluster.primary.value("select count(*) from w")) == before + n
    w.bye()
    w = odd_client(pool, how)
    for _ in range(3):
        found = ask(w, WHERE[kind], True)
        assert code(found) is None, found
        assert next(m for m in found if m.type == "D").row()[-1] == str(cluster.primary.port).encode()
    assert pool_says_why(w, WHERE[kind])
    w.bye()
    plain.bye()


def pool_says_why(w: Wire, sql: bytes) -> bool:
    found = ask(w, b"pgpool explain " + sql, False)
    return b"where its strings end" in next(m for m in found if m.type == "D").row()[3]


@both_modes
def test_other_texts_are_balanced(cluster, pool):
    w = Wire(pool.address, seconds=20)
    assert w.login()[-1].type == "Z"
    for extended in (False, True):
        for _ in range(3):
            found = ask(w, rb"select 'a\', inet_server_port()", extended)
            assert is_standby(cluster, next(m for m in found if m.type == "D").row()[1]), "strings are as the standard has them"
    w.bye()
    for how in ("startup", "encoding", "role"):
        w = odd_client(pool, how)
        for sql in (b"select inet_server_port(), 'x'", rb"select inet_server_port(), 'C:\\dir', E'\n'"):
            if how == "encoding" or pool.conf["pool_mode"] == "session" or b"\\" not in sql:
                found = ask(w, sql, False)
                assert code(found) is None, (how, sql, found)
                assert is_standby(cluster, next(m for m in found if m.type == "D").row()[0]), (how, sql)
        w.bye()
    w = Wire(pool.address, seconds=20)
    assert w.login()[-1].type == "Z"
    w.send(parse(r"select inet_server_port(), 'a\'", "s") + SYNC)
    w.ready()
    for _ in range(3):
        w.send(bind(name="s") + execute() + SYNC)
        assert is_standby(cluster, next(m for m in w.ready() if m.type == "D").row()[0])
    w.bye()
