# SPDX-License-Identifier: PostgreSQL
"""test_balance_known: what is remembered of the catalogue: who is asked (relcache_query_target), that one
worker's answer serves the others (enable_shared_relcache), and that every change of the schema that passes
us is known to all of them. What was asked is read in the servers' logs."""

import pytest

from pgt import procs, waits
from pgt.wire import SYNC, bind, close, execute, parse, query
from test_balance_tx import PORT, code, is_standby, login, ok, rows_of, status, weights
from test_monitor import Trio, pool_for, wait_settled

MODES = pytest.mark.parametrize("mode", ["session", "transaction"])


@pytest.fixture(scope="module")
def cluster():
    it = Trio(2)
    it.keep_in_step()
    it.primary.rows("create table t(a int)")
    it.primary.rows("insert into t values (7)")
    it.primary.rows("alter database postgres set log_statement = 'all'")
    yield it
    it.stop()


@pytest.fixture
def make(cluster, start_pool):
    def start(mode, **conf):
        pool = pool_for(start_pool, cluster, load_balance_mode=True, pool_mode=mode,
                        **{"num_init_children": 2, **weights(cluster), **conf})
        wait_settled(pool, cluster.at)
        return pool
    return start


def served(wire) -> list[int]:
    """How many clients each worker has had."""
    return [int(row[2]) for row in wire.rows("show pool_processes")]


@pytest.fixture
def sessions(make):
    """Sessions of both workers, their own reads known."""
    wires = []

    def start(mode, **conf):
        pool = make(mode, **conf)
        wires.append(login(pool))
        before = served(wires[0])

        def both():
            wires.append(login(pool))
            return all(now > then for now, then in zip(served(wires[0]), before))
        waits.wait_for("both workers have clients", both)
        return wires
    yield start
    for wire in wires:
        wire.bye()


def asked(cluster, name: str) -> list[int]:
    """How often each node was asked about the function."""
    return [sum(1 for line in node.log().splitlines() if "WITH RECURSIVE q(i, kind" in line and f"${name}$" in line)
            for node in cluster.nodes]


def function(name: str, volatility: str) -> str:
    return f"create or replace function {name}() returns int language sql {volatility} as 'select 1'"


def call(name: str) -> str:
    return f"select inet_server_port() from t, {name}() limit 1"


def known(cluster, wires, name: str) -> list[bool]:
    return [is_standby(cluster, w.value(call(name))) for w in wires]


@MODES
def test_one_worker_asks_for_all(cluster, sessions, mode):
    cluster.primary.rows(function(f"one_{mode}", "stable"))
    wires = sessions(mode)
    assert all(known(cluster, wires, f"one_{mode}"))
    assert asked(cluster, f"one_{mode}") == [0, 0, 1]


@MODES
def test_each_worker_asks_for_itself(cluster, sessions, mode):
    cluster.primary.rows(function(f"each_{mode}", "stable"))
    wires = sessions(mode, enable_shared_relcache=False)
    assert all(known(cluster, wires, f"each_{mode}"))
    assert asked(cluster, f"each_{mode}") == [0, 0, 2]


@MODES
def test_a_standby_is_asked(cluster, sessions, mode):
    """Where the reads go; but not for a while after the schema has changed."""
    name = f"away_{mode}"
    cluster.primary.rows(function(name, "stable"))
    wires = sessions(mode, relcache_query_target="load_balance_node")
    assert all(known(cluster, wires, name))
    found = asked(cluster, name)
    assert sum(found) == 1 and found[cluster.at] == 0
    # Names are looked up anew, with what was SET; what its role's defaults are the primary says.
    ok(wires[0], "set search_path = pg_catalog, public", PORT)
    assert known(cluster, wires[:1], name) == [True]
    found = asked(cluster, name)
    assert sum(found) == 2 and found[cluster.at] == 0
    ok(wires[0], function(name, "volatile"))
    assert not any(known(cluster, wires, name))
    assert asked(cluster, name)[cluster.at] > 0


def prepared(wire, sql: str, name: str) -> None:
    """DDL by the protocol, the statement made in one sequence and executed in another."""
    wire.send(parse(sql, name) + SYNC)
    wire.ready()
    wire.send(bind(name=name) + execute() + close(name) + SYNC)
    assert code(wire.ready()) is None


WAYS = {
    "replace": lambda w, name, v: ok(w, function(name, v)),
    "alter": lambda w, name, v: ok(w, f"alter function {name}() {v}"),
    "transaction": lambda w, name, v: ok(w, "begin", function(name, v), "commit"),
    "string": lambda w, name, v: ok(w, f"select 1; {function(name, v)}; select 2"),
    "do": lambda w, name, v: ok(w, f"do $$begin execute 'alter function {name}() {v}'; end$$"),
    "prepared": lambda w, name, v: prepared(w, f"alter function {name}() {v}", "ddl"),
    "drop": lambda w, name, v: ok(w, f"drop function {name}()", function(name, v)),
    "long": lambda w, name, v: ok(w, f"/* {'x' * 140000} */ {function(name, v)}"),
}


@MODES
def test_every_change_is_known(cluster, sessions, mode):
    """However it is written: both workers know, though they had asked. What calls the function once it is
    volatile has to stay (the session may have changed anything), so each way has a function of its own."""
    wires = sessions(mode)
    for way, change in WAYS.items():
        name = f"f_{way}_{mode}"
        ok(wires[0], function(name, "stable"))
        assert all(known(cluster, wires[1:], name)), way
        change(wires[0], name, "volatile")
        explained = [w.rows(f"pgpool explain {call(name)}")[0] for w in wires[1:]]
        assert {row[0] for row in explained} == {str(cluster.at).encode()}, (way, explained)


def test_standby_ends_in_a_sequence_that_waits_here(cluster, make):
    """The second Parse of a name waits for the answer to the first: when all is made again it is not there twice."""
    pool = make("session", num_init_children=1)
    w = login(pool)
    node = next(n for n in cluster.nodes if n.port == int(w.value(PORT)))
    pid = node.value(f"select pid from pg_stat_activity where query = '{PORT}' order by backend_start desc limit 1")
    other = login(pool)
    procs.stand_still(int(pid))
    try:
        one = parse(PORT, "n") + bind(name="n") + execute()
        w.send(one + one + SYNC)
        other.value("select 2")  # the worker has seen both
        node.rows(f"select pg_terminate_backend({int(pid)})")
    finally:
        procs.go_on(int(pid))
    found = w.ready()
    assert [m.fields["C"] if m.type == "E" else m.type for m in found] == ["1", "2", "D", "C", "42P05", "Z"]
    assert rows_of(found) == [str(cluster.primary.port).encode()]
    assert w.value("select 'once'") == "once"
    other.bye()
    w.bye()


@pytest.mark.parametrize("how", ["simple", "extended"])
def test_a_read_leaves_though_the_primary_is_slow(cluster, make, how):
    """The own link still closes the unnamed portal when the standby has answered: the next read leaves all the same."""
    pool = make("session", num_init_children=1, disable_load_balance_on_write="off")
    w, other = login(pool), login(pool)
    ok(w, "begin")
    w.send(parse("insert into t values (8) returning pg_backend_pid()") + bind() + execute() + SYNC)
    pid = int(rows_of(w.ready())[0])
    procs.stand_still(pid)
    try:
        assert is_standby(cluster, w.value(PORT))
        w.send(query(PORT) if how == "simple" else parse(PORT) + bind() + execute() + SYNC)
        other.value("select 2")  # the worker has seen both
    finally:
        procs.go_on(pid)
    assert is_standby(cluster, rows_of(w.ready())[0])
    ok(w, "rollback")
    other.bye()
    w.bye()


@pytest.mark.parametrize("mode, virtual", [("session", True), ("transaction", True), ("transaction", False)])
@pytest.mark.parametrize("how", ["queries", "sequences", "one sequence", "long"])
def test_a_write_right_behind_its_begin_keeps_the_reads(cluster, make, mode, how, virtual):
    """It came before the BEGIN was answered: the reads of the transaction stay where it wrote all the same."""
    w = login(make(mode, num_init_children=1, virtual_begin=virtual))
    write = "insert into t values (5)"
    if how == "queries":
        w.send(query("begin") + query(write))
    elif how == "long":
        w.send(query("begin") + query(f"{write} /* {'x' * 100000} */"))
    else:
        sync = SYNC if how == "sequences" else b""
        w.send(parse("begin") + bind() + execute() + sync + parse(write) + bind() + execute() + SYNC)
    for _ in range(1 if how == "one sequence" else 2):
        assert code(w.ready()) is None
    assert not is_standby(cluster, w.value(PORT))
    assert w.value("select count(*) from t where a = 5") == "1"
    ok(w, "rollback")
    w.bye()


@MODES
def test_a_prepared_read_is_judged_anew(cluster, sessions, mode):
    """What was found of it holds while the session and the schema are as they were."""
    name = f"anew_{mode}"
    cluster.primary.rows(function(name, "stable"))
    other, wire = sessions(mode)[:2]
    wire.send(parse(call(name), name) + SYNC)
    assert code(wire.ready()) is None

    def is_away() -> list[bool]:
        """Each time bound anew."""
        wire.send((bind(name=name) + execute() + SYNC) * 3)
        found = wire.ready(3)
        assert code(found) is None
        return [is_standby(cluster, m.row()[0]) for m in found if m.type == "D"]

    assert is_away() == [True] * 3
    ok(wire, "set default_transaction_isolation = 'serializable'")
    assert is_away() == [False] * 3
    ok(wire, "reset default_transaction_isolation")
    assert is_away() == [True] * 3
    ok(other, f"alter function {name}() volatile")
    assert is_away() == [False] * 3
