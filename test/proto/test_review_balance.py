# SPDX-License-Identifier: PostgreSQL
"""test_review_balance: the second link of a session, with real standbys: what the extended protocol, long
messages and failed transactions do to what is known of it."""
import struct
import sys
from pathlib import Path

import pytest

from pgt import waits
from pgt.wire import FLUSH, SYNC, Wire, bind, close, describe, execute, message, parse, query

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cluster"))
from test_monitor import Trio, pool_for, wait_settled  # noqa: E402  pylint: disable=wrong-import-position


@pytest.fixture(scope="module")
def cluster():
    it = Trio(0)
    it.keep_in_step()
    it.primary.rows("create table t(a int)")
    it.primary.rows("insert into t values (7)")
    yield it
    it.stop()


@pytest.fixture
def pool(cluster, start_pool):
    """No read goes to the primary by weight."""
    one = pool_for(start_pool, cluster, load_balance_mode=True, num_init_children=1,
                   backend_weight0=0, backend_weight1=1, backend_weight2=0)
    wait_settled(one, 0)
    return one


@pytest.fixture
def w(pool, cluster):
    wire = Wire(pool.address, seconds=20)
    assert wire.login()[-1].type == "Z"
    assert on_standby(wire, cluster), "reads are not balanced: the test would prove nothing"
    yield wire
    wire.bye()


SLOW_READ = "select count(*) from t, generate_series(1, 3000000)"


def on_standby(wire: Wire, cluster) -> bool:
    return wire.value("select inet_server_port() from t") != str(cluster.primary.port)


def types(found) -> str:
    return "".join(m.type for m in found)


def values(found) -> list[bytes | None]:
    return [m.row()[0] for m in found if m.type == "D"]


def bx(name: str) -> bytes:
    return bind((), name=name) + execute()


def test_two_named_statements_in_one_sequence(w):
    for name, sql in (("s1", "select 'one' from t"), ("s2", "select 'two' from t")):
        w.send(parse(sql, name), SYNC)
        w.ready()
    w.send(bx("s1") + bx("s2") + SYNC)
    found = w.ready(seconds=20)
    assert (types(found), values(found)) == ("2DC2DCZ", [b"one", b"two"])


def test_unnamed_of_an_earlier_sequence(w):
    w.send(parse("select 'named' from t", "s1"), SYNC)
    w.ready()
    w.send(parse("select 'stale' from t") + bx("") + SYNC)
    assert values(w.ready()) == [b"stale"]
    w.send(parse("select 'fresh' from t"), SYNC)
    w.ready()
    w.send(bx("s1") + bx("") + SYNC)
    assert values(w.ready(seconds=20)) == [b"named", b"fresh"]


def test_long_parse_in_parts_replaces_the_unnamed(w):
    w.send(parse("select 'read' from t") + bx("") + SYNC)
    assert values(w.ready()) == [b"read"]
    long = parse("insert into t(a) select 8 where false returning 'w' || '" + "x" * 30000 + "'")
    w.send(long[:20000])
    assert w.is_quiet(0.3)
    w.send(long[20000:] + bx("") + SYNC)
    found = w.ready(seconds=20)
    assert types(found) == "12CZ", [m.fields for m in found if m.type == "E"]
    assert [m.body for m in found if m.type == "C"] == [b"INSERT 0 0\0"]


def test_long_write_behind_a_read(w):
    long = query("insert into t select 9 where length('" + "x" * 30000 + "') = 0")
    w.send(query(SLOW_READ) + long[:20000])
    assert w.is_quiet(0.3)
    w.send(long[20000:])
    found = w.ready(2, seconds=20)
    assert [m.fields for m in found if m.type == "E"] == []


def test_function_call_behind_a_read(cluster, w):
    oid = int(cluster.primary.value("select 'lo_creat(int)'::regprocedure::oid"))
    call = message("F", struct.pack("!IHHHi", oid, 1, 1, 1, 4) + struct.pack("!iH", -1, 1))
    w.send(query(SLOW_READ) + call)
    found = w.ready(2, seconds=20)
    assert [m.fields for m in found if m.type == "E"] == []


def test_long_setting_in_parts(w):
    long = query("set work_mem = '9MB' -- " + "x" * 30000)
    w.send(long[:20000])
    assert w.is_quiet(0.3)
    w.send(long[20000:])
    w.ready()
    assert w.value("select current_setting('work_mem') from t limit 1") == "9MB"


def test_commit_of_a_failed_transaction(w):
    for sql in ("begin", "set work_mem = '9MB'", "select 1/0", "commit"):
        w.simple(sql)
    assert w.value("select current_setting('work_mem') from t limit 1") == "4MB"


def test_commit_and_chain_keeps_settings(w):
    for sql in ("begin", "set work_mem = '9MB'", "commit and chain", "rollback"):
        w.simple(sql)
    assert w.value("select current_setting('work_mem') from t limit 1") == "9MB"


def test_failed_sequence_rolls_settings_back(w):
    w.send(parse("set work_mem = '9MB'") + bx("") + parse("select 1/0 from t") + bx("") + SYNC)
    w.ready()
    assert w.value("select current_setting('work_mem') from t limit 1") == "4MB"


def test_prepared_set_that_is_not_executed(w):
    w.send(parse("set work_mem = '9MB'", "later"), SYNC)
    w.ready()
    assert w.value("select current_setting('work_mem') from t limit 1") == "4MB"


def test_same_fingerprint_another_layout(w):
    w.simple("set work_mem = '9MB'")
    assert w.value("select current_setting('work_mem') from t limit 1") == "9MB"
    w.simple("insert into t select 1 where 1 = 2; reset work_mem")
    assert w.value("select current_setting('work_mem') from t limit 1") == "4MB"
    w.simple("set work_mem = '8MB'")
    assert w.value("select current_setting('work_mem') from t limit 1") == "8MB"
    w.simple("insert into t select 123456789 where 1 = 2; reset work_mem")
    assert w.value("select current_setting('work_mem') from t limit 1") == "4MB"


def test_show_of_ours_in_the_extended_protocol(w):
    w.send(parse("show pool_version") + bx("") + SYNC)
    assert types(w.ready(seconds=20)) == "12DCZ"


def test_serializable_default(w):
    w.simple("set session characteristics as transaction isolation level serializable")
    found = w.simple("select count(*) from t")
    assert [m.fields for m in found if m.type == "E"] == []


def test_begin_set_rollback_set_in_one_string(w):
    w.simple("begin; set work_mem = '9MB'; rollback; set work_mem = '8MB'")
    assert w.value("select current_setting('work_mem') from t limit 1") == "8MB"


def test_discard_all_in_between(w, cluster):
    w.simple("set work_mem = '9MB'")
    assert on_standby(w, cluster)
    w.simple("discard all")
    assert w.value("select current_setting('work_mem') from t limit 1") == "4MB"


CLOSES = {"close": [close("s"), SYNC], "deallocate": [query("deallocate s")], "all": [query("deallocate all")]}


@pytest.mark.parametrize("how", list(CLOSES))
def test_close_behind_a_sequence_that_fails(cluster, w, how):
    """What a failed sequence closed, or closed and made anew, is what it was, until the next one closes it, sent ahead or
    not: the name is free then.
    """
    w.simple("drop table if exists closed_twice")
    w.simple("create table closed_twice(a int)")
    for again in ([], [parse("select 2", "s")]):
        w.send(parse("select a from closed_twice", "s"), SYNC)
        w.ready()
        w.send(bind(name="nobody"), close("s"), *again, SYNC, *CLOSES[how])
        assert types(w.ready()) == "EZ"
        assert types(w.ready()) == ("3Z" if how == "close" else "CZ")
        w.send(parse("insert into closed_twice values (1)", "s"), SYNC)
        assert types(w.ready()) == "1Z"
        w.send(bind(name="s"), execute(), close("s"), SYNC)
        assert [m.body for m in w.ready() if m.type == "C"] == [b"INSERT 0 1\0"]
    assert cluster.primary.rows("select * from closed_twice") == [[b"1"], [b"1"]]


def test_use_behind_a_sequence_that_fails(w):
    """Sent ahead: what the statement is that it names is not known before the sequence in front of it is answered."""
    w.send(parse("select a, a from t", "s"), describe("s"), FLUSH)
    w.read_until("T")
    w.send(bind(name="nobody"), execute(), close("s"), parse("select 2", "s"), SYNC, describe("s"), SYNC)
    assert types(w.ready()) == "EZ"
    assert types(w.ready()) == "tTZ"


def extended(sql: str) -> list[bytes]:
    return [parse(sql), bind(), execute(), SYNC]


def test_sql_by_the_protocol_names_what_a_standby_knows(w):
    """It is put in front, and nothing gets an answer that is not its own."""
    w.send(parse("select a from t", "s"), bind(name="s"), execute(), SYNC)
    assert values(w.ready()) == [b"7"]
    w.send(*extended("prepare s as select 2"))
    assert types(w.ready()) == "12EZ"
    w.send(*extended("select 1"), *extended("prepare s as select 2"), *extended("deallocate s"))
    assert [types(w.ready()) for _ in range(3)] == ["12DCZ", "12EZ", "12CZ"]
    w.send(*extended("prepare s as select 2"))
    assert types(w.ready()) == "12CZ"


def test_prepare_that_failed_is_not_made_again(cluster, pool, w):
    """In a failed transaction, by the protocol; the session goes on behind it on another connection."""
    w.simple("create table not_again(a int)")
    w.simple("begin")
    w.simple("select 1/0")
    w.send(*extended("prepare again as insert into not_again values (1)"))
    assert types(w.ready()) == "EZ"
    w.simple("rollback")
    pid = w.value("/*NO LOAD BALANCE*/ select pg_backend_pid()")
    lost = pool.log().count("goes on without its server connection")
    cluster.primary.end_process(pid)
    # What is sent before pgpool has heard of it may get the server's last words as its answer.
    waits.wait_for("it is noticed", lambda: pool.log().count("goes on without its server connection") > lost)
    assert w.value("/*NO LOAD BALANCE*/ select pg_backend_pid()") != pid
    assert types(w.simple("execute again")) == "EZ"
    assert cluster.primary.rows("select * from not_again") == []


def test_unnamed_behind_a_question_of_ours(cluster, start_pool):
    """What names mean is asked anew between Parse and Bind, by a simple query on the own link."""
    pool = pool_for(start_pool, cluster, load_balance_mode=True, num_init_children=1, backend_weight0=1, backend_weight1=0,
                    backend_weight2=0)
    wait_settled(pool, 0)
    with Wire(pool.address, seconds=20) as w, Wire(pool.address, seconds=20) as other:
        assert w.login()[-1].type == "Z" and other.login()[-1].type == "Z"
        w.send(parse("select a from t where a = 7"), SYNC)
        w.ready()
        other.rows("create table forgotten(a int)")
        other.rows("drop table forgotten")
        w.send(bx(""), SYNC)
        found = w.ready(seconds=20)
        assert (types(found), values(found)) == ("2DCZ", [b"7"]), [m.fields for m in found if m.type == "E"]


@pytest.mark.parametrize("protocol", ["simple", "extended"])
def test_a_view_that_writes_is_not_made_again(cluster, start_pool, protocol):
    """Its commit may have been lost with the answer."""
    one = pool_for(start_pool, cluster, load_balance_mode=True, num_init_children=1, pool_mode="transaction")
    wait_settled(one, 0)
    with Wire(one.address, seconds=20) as wire:
        wire.login()
        wire.simple("create or replace function view_adds() returns int language sql volatile as $$ insert into t values (8) returning a $$")
        wire.simple("create or replace view view_adds_all as select view_adds() as a, pg_sleep(30)::text as b")
        sql = "select a from view_adds_all where b = ''"
        wire.send(query(sql) if protocol == "simple" else parse(sql) + bind() + execute() + SYNC)
        asleep = "select pid from pg_stat_activity where wait_event = 'PgSleep' and query like 'select a from view_adds_all%'"
        waits.wait_for("it runs", lambda: cluster.primary.rows(asleep))
        cluster.primary.end_process(int(cluster.primary.value(asleep)))
        assert wire.read_until("E", seconds=10)[-1].sqlstate in ("57P01", "08006")
