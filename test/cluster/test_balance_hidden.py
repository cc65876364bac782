# SPDX-License-Identifier: PostgreSQL
"""test_balance_hidden: what a read is, behind a reason that would keep it on the primary anyway. A view that writes is
a write also when a hint, a system catalogue beside it or its being unknown kept it there; and in a read-only transaction
a temporary or unlogged table is looked for whatever stands before it. What was run without being known is looked into
when its transaction is over. Session and transaction mode."""
import pytest

from pgt import waits
from pgt.trio import wait_replayed
from pgt.wire import query
from test_balance_rules import MODES, extended
from test_monitor import column
from test_balance_tx import cluster, away, code, is_standby, login, make, ok  # noqa: F401

COUNT = "select count(*) from hidden"


@pytest.fixture(scope="module", autouse=True)
def schema(cluster):
    for sql in ("create table hidden(a int)", "insert into hidden values (0)",
                "create function hide() returns int language sql volatile as 'insert into hidden values (1) returning a'",
                "create view hides as select hide() as a", "create unlogged table plain_u(a int)",
                "insert into plain_u values (5)",
                "create function be(v text) returns text language plpgsql volatile as "
                "$$ begin return set_config('my.own', v, false); end $$",
                "create function calm(v text) returns text language sql stable as 'select v'",
                "create view being as select be('it') as v"):
        cluster.primary.rows(sql)


def asked(pool):
    """A client whose worker knows all the names."""
    w = login(pool)
    for sql in (COUNT, "select relname from pg_class limit 1", "select a from plain_u"):
        ok(w, sql)
    return w


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("sql", [
    "/*NO LOAD BALANCE*/ select a from hides", "select h.a from (select 1 from pg_class limit 1) c, hides h",
    "select a from hides", "select a from plain_u union all select a from hides"])
@pytest.mark.parametrize("how", ["simple", "extended"])
def test_view_that_writes(cluster, make, mode, known, sql, how):
    """The rest of the transaction sees what it has written."""
    w = asked(make(pool_mode=mode))
    if known:
        ok(w, "explain select a from hides")
    before = int(w.value(COUNT))
    ok(w, "begin")
    assert away(cluster, w)
    found = w.simple(sql) if how == "simple" else extended(w, sql)
    assert code(found) is None
    assert int(w.value(COUNT)) == before + 1
    assert not away(cluster, w)
    ok(w, "commit")
    assert int(w.value(COUNT)) == before + 1
    assert away(cluster, w) or mode == "session", "a function may have set something"
    w.bye()


@pytest.mark.parametrize("mode", MODES)
def test_view_that_writes_and_read_consistency(cluster, make, mode):
    """A hint does not hide from read_consistency = session that there is something to wait for."""
    w = asked(make(pool_mode=mode, read_consistency="session", read_consistency_wait=0))
    ok(w, "set synchronous_commit = local", COUNT)
    for i in cluster.standbys:
        cluster.nodes[i].rows("select pg_wal_replay_pause()")
    try:
        before = int(w.value(COUNT))
        ok(w, "/*NO LOAD BALANCE*/ select a from hides")
        assert int(w.value(COUNT)) == before + 1
    finally:
        for i in cluster.standbys:
            cluster.nodes[i].rows("select pg_wal_replay_resume()")
    wait_replayed(cluster.primary, *(cluster.nodes[i] for i in cluster.standbys))  # the next one counts from there
    w.bye()


@pytest.mark.parametrize("before", ["set work_mem to '6MB'", "set local work_mem to '6MB'", "savepoint p", "declare c cursor for select 1"])
@pytest.mark.parametrize("how", ["simple", "extended"])
def test_temporary_table_behind_a_setting(cluster, make, before, how):
    """Session mode: a transaction of a session that has one stays where it is."""
    w = asked(make())
    ok(w, "create temp table mine(a int)", "insert into mine values (3)", "begin read only")
    assert not away(cluster, w)
    ok(w, before)
    for sql in ("select a from mine", "select m.a from mine m where exists (select 1 from pg_class)",
                "select m.a from (select 1 from pg_class limit 1) c, mine m"):
        found = w.simple(sql) if how == "simple" else extended(w, sql)
        assert [m.row() for m in found if m.type == "D"] == [[b"3"]], sql
    assert not away(cluster, w)
    ok(w, "commit")
    assert w.value("select a from mine") == "3"
    w.bye()


@pytest.mark.parametrize("before", ["set work_mem to '6MB'", "savepoint p"])
@pytest.mark.parametrize("setting", ["transaction", "trans_transaction", "always", "off", "dml_adaptive"])
def test_unlogged_table_beside_a_catalogue(cluster, make, before, setting):
    """An unlogged table is read on the primary, for no standby has its rows."""
    w = asked(make(disable_load_balance_on_write=setting))
    ok(w, "begin read only", before)
    for sql in ("select a from plain_u", "select u.a from (select 1 from pg_class limit 1) c, plain_u u"):
        assert w.value(sql) == "5"
    ok(w, "commit")
    w.bye()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["execute", "text", "partly", "bind", "unread"])
def test_adaptive_and_writes_without_a_name(cluster, make, mode, how):
    """dml_adaptive: tables that no text names were written, too; the one that is named is not the only one."""
    w = asked(make(pool_mode=mode, disable_load_balance_on_write="dml_adaptive"))
    before = int(w.value(COUNT))
    ok(w, "prepare p as insert into hidden values (2)", "begin", "insert into w values (1, 'x')")
    assert int(w.value(COUNT)) == before and away(cluster, w), "they were not written"
    if how == "execute":
        ok(w, "execute p")
    elif how == "text":
        ok(w, "explain (analyze) execute p")
    elif how == "partly":
        ok(w, "select 1; execute p")
    elif how == "bind":
        assert code(extended(w, "execute p")) is None
    else:
        ok(w, "insert into hidden values (2) /*" + "x" * 200000 + "*/")
    assert int(w.value(COUNT)) == before + 1
    ok(w, "rollback")
    assert int(w.value(COUNT)) == before
    assert away(cluster, w) or (mode, how) == ("session", "unread"), "it may have set something"
    w.bye()


@pytest.mark.parametrize("mode", MODES)
def test_adaptive_and_statements_that_write_nothing(cluster, make, mode):
    w = asked(make(pool_mode=mode, disable_load_balance_on_write="dml_adaptive"))
    ok(w, "begin", "savepoint p")
    assert away(cluster, w)
    ok(w, "select nextval('s')", "release p")
    assert away(cluster, w)
    ok(w, "insert into hidden values (3)")
    assert away(cluster, w) and w.value("select inet_server_port() from hidden limit 1") == str(cluster.primary.port)
    ok(w, "rollback")
    w.bye()


OWN = "select current_setting('my.own', true), inet_server_port() from hidden limit 1"


@pytest.mark.parametrize("how", ["simple", "extended"])
@pytest.mark.parametrize("sql, want", [
    ("select be('it')", "it"), ("select v from being", "it"), ("values (be('it'))", "it"), ("select be('it') from pg_class limit 1", "it"),
    ("explain (analyze) select be('it')", "it"), ("copy (select be('it')) to stdout", "it"), ("select calm('it')", "")])
@pytest.mark.parametrize("end", ["commit", "rollback", "commit and chain; commit"])
def test_function_that_is_not_known_yet(cluster, make, how, sql, want, end):
    """Session mode: what it has set is there for all later reads; reads leave when it can set nothing."""
    w = asked(make())
    ok(w, "select current_setting('my.own', true) from hidden limit 1", "set my.own to ''", "begin")
    assert code(w.simple(sql) if how == "simple" else extended(w, sql)) is None
    if want:
        assert w.rows(OWN)[0][1] == str(cluster.primary.port).encode()
    ok(w, end)
    value, port = w.rows(OWN)[0]
    assert value.decode() == (want if end != "rollback" else "")
    assert is_standby(cluster, port) == (want == "")
    w.bye()


def test_names_that_are_not_known_in_a_pipeline(cluster, make):
    """Behind what is owed nothing can be asked first."""
    w = asked(make())
    ok(w, "set my.own to ''", OWN)
    w.send(query("select pg_sleep(0.05)") + query("select be('it')") + query("select a from plain_u"))
    assert [code(w.ready()) for _ in range(3)] == [None] * 3
    assert w.rows(OWN)[0][0] == b"it"
    ok(w, "discard all", "set my.own to ''")
    assert away(cluster, w)
    w.bye()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("end", ["commit and chain", "commit; begin", "end work and chain"])
def test_adaptive_global_and_a_commit_midway(cluster, make, mode, end):
    """What is committed counts for others at once, also when a transaction is open behind that."""
    # It counts for five times the lag, which a command says.
    pool = make(pool_mode=mode, disable_load_balance_on_write="dml_adaptive_global", replication_delay_source_cmd="echo 20000 20000 #",
                track_table_mutation_cold_start_duration=0, track_table_mutation_max_staleness=600000)
    waits.wait_for("the lag is known", lambda: column(pool, "replication_delay").count("20.000000 seconds") == 2)
    w, other = asked(pool), asked(pool)
    ok(w, "begin", "insert into hidden values (4)")
    waits.wait_for("it is read elsewhere", lambda: away(cluster, other) and other.rows("pgpool explain " + COUNT)[0][1] == b"standby")
    ok(w, end)
    assert other.rows("pgpool explain " + COUNT)[0][3] == b"a table of it was written lately"
    ok(w, "rollback")
    w.bye()
    other.bye()


@pytest.mark.slow
def test_adaptive_global_and_standbys_that_replay_nothing(cluster, make):
    """What they lack is longer ago with each check of them: it goes on counting as written. (That it does so between two replies of theirs to
    the primary, which tell replay_lag, is shown in test_decide_replay.)"""
    pool = make(disable_load_balance_on_write="dml_adaptive_global", sr_check_period=1, delay_threshold_by_time=600000,
                track_table_mutation_cold_start_duration=0, track_table_mutation_max_staleness=600000)
    w, other = asked(pool), asked(pool)

    def lags():
        return [float(delay.split()[0]) for i, delay in enumerate(column(pool, "replication_delay")) if i in cluster.standbys]
    ok(w, "set synchronous_commit = local", "insert into hidden values (5)")
    waits.wait_for("it is read elsewhere", lambda: away(cluster, other) and other.rows("pgpool explain " + COUNT)[0][1] == b"standby")
    for i in cluster.standbys:
        cluster.nodes[i].rows("select pg_wal_replay_pause()")
    try:
        ok(w, "insert into hidden values (6)")
        waits.wait_for("they are known to be behind", lambda: min(lags()) > 1)
        ok(w, "insert into hidden values (7)")
        waits.holds_for("it is read where it was written", lambda: other.value(COUNT) == w.value(COUNT)
                        and other.rows("pgpool explain " + COUNT)[0][3] == b"a table of it was written lately", 3)
    finally:
        for i in cluster.standbys:
            cluster.nodes[i].rows("select pg_wal_replay_resume()")
    w.bye()
    other.bye()
