# SPDX-License-Identifier: PostgreSQL
"""test_balance_tx: transactions over two servers, statements by name, several readers. Real standbys;
the primary is on node 0 and on node 2. Where a statement ran is told by the server: inet_server_port()."""
import asyncio

import asyncpg
import pytest

from pgt import waits
from pgt.wire import FLUSH, SYNC, Wire, bind, close, describe, execute, function_call, message, parse, query
from portal_scripts import FOUR, WRITE, bound, portal_scripts, told
from test_monitor import Trio, pool_for, wait_settled

PORT = "select inet_server_port() from t limit 1"


@pytest.fixture(scope="module", params=[0, 2], ids=["primary0", "primary2"])
def cluster(request):
    it = Trio(request.param)
    it.keep_in_step()
    it.primary.rows("create table t(a int)")
    it.primary.rows("insert into t values (7)")
    it.primary.rows("create table w(id int, v text)")
    it.primary.rows("create sequence s")
    it.primary.rows("create function nap(float) returns text language sql stable as 'select pg_sleep($1)::text'")
    it.primary.rows("create function volatile_one() returns int language sql volatile as 'select 1'")
    yield it
    it.stop()


def weights(cluster) -> dict:
    return {f"backend_weight{i}": 0 if i == cluster.at else 1 for i in range(3)}


@pytest.fixture
def make(cluster, start_pool):
    def start(**conf):
        one = pool_for(start_pool, cluster, **{"load_balance_mode": True, "num_init_children": 1,
                                               **weights(cluster), **conf})
        wait_settled(one, cluster.at)
        return one
    return start


@pytest.fixture
def pool(make):
    return make()


@pytest.fixture
def w(pool):
    wire = login(pool)
    yield wire
    wire.bye()


def login(pool) -> Wire:
    wire = Wire(pool.address, seconds=20)
    assert wire.login()[-1].type == "Z"
    wire.value(PORT)  # its questions are answered, its reader is open
    return wire


def is_standby(cluster, port) -> bool:
    return int(port) in [cluster.nodes[i].port for i in cluster.standbys]


def away(cluster, wire) -> bool:
    """Does a read run on a standby?"""
    return is_standby(cluster, wire.value(PORT))


def ok(wire, *sqls: str) -> None:
    for sql in sqls:
        found = wire.simple(sql)
        assert [m.fields for m in found if m.type == "E"] == [], sql


def code(found) -> str | None:
    return next((m.fields["C"] for m in found if m.type == "E"), None)


def status(found) -> str:
    return found[-1].body.decode()


def idle_in_tx(cluster) -> int:
    return sum(int(cluster.nodes[i].value("select count(*) from pg_stat_activity where state like 'idle in tr%'"))
               for i in range(3))


def test_read_leaves_a_read_write_transaction(cluster, w):
    ok(w, "begin")
    assert away(cluster, w)
    assert w.value(PORT) == w.value(PORT)
    ok(w, "insert into w values (1, 'x')")
    assert not away(cluster, w), "it has written"
    ok(w, "commit")
    assert away(cluster, w)
    waits.wait_for("both transactions are over", lambda: idle_in_tx(cluster) == 0)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_one_snapshot_is_one_server(cluster, w, level):
    ok(w, f"begin isolation level {level}")
    assert not away(cluster, w)
    ok(w, "rollback")


def test_error_of_a_read_that_left_fails_the_transaction(cluster, w):
    ok(w, "begin", "insert into t select 1 where false", "rollback", "begin")
    assert away(cluster, w)
    found = w.simple("select 1 / (a - 7) from t")
    assert (code(found), status(found)) == ("22012", "E")
    refused = w.simple("insert into w values (2, 'no')")
    assert code(refused) == "25P02" and refused[0].fields["D"] == "statement: insert into w values (2, 'no')"
    assert code(w.simple(PORT)) == "25P02"
    assert [m.body for m in w.simple("commit") if m.type == "C"] == [b"ROLLBACK\0"]
    assert away(cluster, w)


def test_error_in_a_sequence_that_left(cluster, w):
    ok(w, "begin")
    w.send(parse("select 1 / (a - 7) from t") + bind() + execute() + SYNC)
    found = w.ready()
    assert (code(found), status(found)) == ("22012", "E")
    w.send(parse("insert into w values (2, 'no')") + bind() + execute() + SYNC)
    assert code(w.ready()) == "25P02"
    ok(w, "rollback")


def test_savepoint_heals(cluster, make):
    """A savepoint counts as a write, as with pgpool-II, unless writes do not count."""
    w = login(make(disable_load_balance_on_write="off"))
    ok(w, "begin", "savepoint a")
    assert away(cluster, w)
    assert code(w.simple("select 1 / (a - 7) from t")) == "22012"
    ok(w, "rollback to a", "select 1 from t")
    ok(w, "insert into w values (30, 'kept')", "commit")
    assert cluster.primary.value("select v from w where id = 30") == "kept"


def test_a_read_that_left_counts_as_a_query(cluster, w):
    """What may only stand before the first query of a transaction is refused behind reads elsewhere."""
    ok(w, "begin", "show work_mem", "set transaction isolation level repeatable read", "commit")
    for said in ("set transaction isolation level repeatable read", "set transaction_isolation = 'serializable'",
                 "set transaction deferrable"):
        ok(w, "begin")
        assert away(cluster, w)
        assert code(w.simple(said)) == "25001", said
        ok(w, "commit", "begin", said, "commit")
    ok(w, "begin", "commit and chain", "begin")
    w.send(parse(PORT) + bind() + execute() + SYNC)
    assert is_standby(cluster, next(m for m in w.ready() if m.type == "D").row()[0])
    w.send(parse("set transaction isolation level repeatable read") + bind() + execute() + SYNC)
    assert code(w.ready()) == "25001"
    ok(w, "rollback", "begin read only")
    assert away(cluster, w)
    assert code(w.simple("set transaction read write")) == "25001"
    ok(w, "rollback", "begin")
    assert away(cluster, w)
    ok(w, "commit and chain", "set transaction isolation level repeatable read", "commit")
    assert away(cluster, w)


def test_defaults_of_transactions_are_followed(cluster, w):
    level = "select current_setting('default_transaction_isolation') from t limit 1"
    as_said = "set session characteristics as transaction "
    ok(w, "set default_transaction_read_only = on", "set default_transaction_deferrable to on",
       as_said + "isolation level read committed, read write, not deferrable")
    assert away(cluster, w)
    ok(w, "begin", "insert into w values (40, 'rw')")
    ok(w, "rollback", as_said + "read only", "begin")
    assert away(cluster, w)
    assert code(w.simple("insert into w values (40, 'ro')")) == "25006"
    ok(w, "rollback", as_said + "read write")
    for how in ("set default_transaction_isolation = 'Serializable'", as_said + "isolation level serializable"):
        ok(w, how)
        assert not away(cluster, w), "a standby has none"
        assert w.value("show transaction_isolation") == "serializable"
        ok(w, "begin", as_said + "isolation level read committed", "rollback")
        assert not away(cluster, w)
        ok(w, "set default_transaction_isolation to 'repeatable read'")
        assert away(cluster, w)
        assert w.value(level) == "repeatable read"
        ok(w, "begin")
        assert not away(cluster, w), "one snapshot"
        ok(w, "commit", "begin isolation level read committed")
        assert away(cluster, w)
        ok(w, as_said + "isolation level serializable", "rollback")
        assert away(cluster, w)
        ok(w, "reset default_transaction_isolation", "begin")
        assert away(cluster, w)
        ok(w, "commit")
        assert w.value(level) == "read committed"
    ok(w, as_said + "isolation level serializable", "discard all")
    assert away(cluster, w)


def test_settings_keep_reads_in_their_transaction(cluster, w):
    ok(w, "begin", "set local datestyle = 'German'")
    assert w.value("select date '2020-02-01'::text from t") == "01.02.2020"
    ok(w, "commit")
    assert w.value("select date '2020-02-01'::text from t") == "2020-02-01"


def test_commit_and_chain(cluster, w):
    ok(w, "begin")
    assert away(cluster, w)
    ok(w, "commit and chain")
    assert away(cluster, w)
    ok(w, "insert into w values (4, 'chain')", "rollback")
    assert cluster.primary.value("select count(*) from w where id = 4") == "0"


def test_begin_in_a_string_of_several(cluster, w):
    ok(w, "begin; insert into w values (5, 'multi')")
    assert not away(cluster, w)
    ok(w, "commit")


def test_read_only_transaction_lives_on_one_standby(cluster, w):
    ok(w, "begin read only")
    first = w.value(PORT)
    assert is_standby(cluster, first)
    assert w.value("select inet_server_port() from pg_class limit 1") == first, "its catalogue, too"
    assert {w.value(PORT) for _ in range(5)} == {first}
    found = w.simple("insert into w values (6, 'no')")
    assert (code(found), status(found)) == ("25006", "E")
    ok(w, "rollback")
    assert w.simple("select 1")[-1].body == b"I"


def test_what_cannot_run_there_leaves_a_read_only_transaction(cluster, w):
    ok(w, "create unlogged table tu(a int)", "insert into tu values (1)", "select a from tu", "begin read only")
    assert away(cluster, w)
    assert w.value("select a from tu") == "1"
    w.send(parse("select a from tu") + bind() + execute() + SYNC)
    assert rows_of(w.ready()) == [b"1"]
    assert away(cluster, w)
    found = w.simple("select 1 / (a - 1) from tu")
    assert (code(found), status(found)) == ("22012", "E")
    assert code(w.simple(PORT)) == "25P02", "an error elsewhere is one of the transaction"
    ok(w, "rollback", "drop table tu")
    assert away(cluster, w)
    waits.wait_for("all is over", lambda: idle_in_tx(cluster) == 0)


def test_set_in_a_read_only_transaction(cluster, w):
    own = "/*NO LOAD BALANCE*/ select current_setting('work_mem')"
    there = "select current_setting('work_mem') from t limit 1"
    ok(w, "begin read only", "set work_mem = '9MB'", "rollback")
    assert (w.value(own), w.value(there)) == ("4MB", "4MB")
    ok(w, "begin read only", "set work_mem = '9MB'")
    assert w.value(there) == "9MB"
    ok(w, "commit")
    assert (w.value(own), w.value(there)) == ("9MB", "9MB")


def test_read_only_transaction_dies_with_its_standby(cluster, pool):
    """Whoever ends it with COMMIT has to hear that it came to nothing; who rolls back anyhow need not."""
    for number, (end, told) in enumerate((("commit", "08006"), ("rollback", None))):
        w = login(pool)
        ok(w, "begin read only", "set work_mem = '9MB'")
        first = int(w.value(PORT))
        node = next(cluster.nodes[i] for i in cluster.standbys if cluster.nodes[i].port == first)
        node.rows("select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction'")
        waits.wait_for("it is lost", lambda: pool.log().count("was lost with its standby") == number + 1)
        found = w.simple(end)
        assert (code(found), status(found)) == (told, "I"), end
        assert w.value("select current_setting('work_mem')") == "4MB"
        w.bye()


def test_read_write_after_all(cluster, w):
    ok(w, "begin read only", "set transaction read write", "insert into w values (7, 'rw')", "commit")
    assert cluster.primary.value("select v from w where id = 7") == "rw"
    assert away(cluster, w)


def test_cursors_in_a_read_only_transaction(cluster, w):
    ok(w, "begin read only", "select 1 from t", "declare c cursor for select inet_server_port() from t")
    assert is_standby(cluster, w.value("fetch c"))
    ok(w, "close c", "commit")
    ok(w, "begin read only", "declare h cursor with hold for select a from t", "commit")
    assert w.value("fetch h") == "7"
    ok(w, "close h", "begin read only", "select 1 from t")
    assert code(w.simple("declare h cursor with hold for select a from t")) == "25006", "it would be the standby's"
    ok(w, "rollback")


def test_read_only_transaction_in_the_extended_protocol(cluster, w):
    w.send(parse("begin read only") + bind() + execute() + parse(PORT) + bind() + execute() + SYNC)
    found = w.ready()
    assert is_standby(cluster, next(m for m in found if m.type == "D").row()[0]) and status(found) == "T"
    w.send(parse("select a from t", "n1") + bind(name="n1") + execute() + SYNC)
    assert [m.row()[0] for m in w.ready() if m.type == "D"] == [b"7"]
    w.send(parse("commit") + bind() + execute() + SYNC)
    assert status(w.ready()) == "I"
    ok(w, "begin", "insert into w values (8, 'n1')")
    w.send(bind(name="n1") + execute() + SYNC)
    assert [m.row()[0] for m in w.ready() if m.type == "D"] == [b"7"], "the primary learned the name"
    ok(w, "rollback")


def test_standby_lost_in_its_read_only_transaction(cluster, w):
    ok(w, "begin read only")
    port = int(w.value(PORT))
    node = next(n for n in cluster.nodes if n.port == port)
    node.rows("select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction'")
    waits.wait_for("it is gone", lambda: idle_in_tx(cluster) <= 1)
    waits.wait_for("the transaction has failed", lambda: code(w.simple(PORT)) in ("25P02", "08006"))
    assert code(w.simple("select 1")) == "25P02"
    ok(w, "rollback", "begin", "insert into w values (9, 'after')", "commit")


@pytest.mark.parametrize("begin", ["", "begin read only"])
def test_standby_ends_in_mid_answer(cluster, w, begin):
    """The client gets one error, which does not say FATAL: its session goes on."""
    w.simple(begin)
    w.send(query("select repeat('x', 100), case when g = 900 then nap(30) end from generate_series(1, 1000) g"))
    found = w.read_until("D")
    for i in cluster.standbys:
        cluster.nodes[i].rows("select pg_terminate_backend(pid) from pg_stat_activity where query like "
                              "'select repeat(%' and state = 'active'")
    found += w.ready()
    assert [(m.fields["S"], m.fields["C"]) for m in found if m.type == "E"] == [("ERROR", "57P01")]
    assert status(found) == ("E" if begin else "I")
    ok(w, "rollback", "begin", "insert into w values (12, 'after')", "commit")


def test_sql_prepare_and_a_sequence_for_the_own_link(cluster, w):
    """What was prepared where a read-only transaction lives is there for a sequence whose beginning needs the primary."""
    ok(w, "begin read only")
    assert away(cluster, w)
    ok(w, "prepare s3 as select 9")
    w.send(parse("select volatile_one()") + describe("", "S") + FLUSH + bind(name="s3") + execute() + SYNC)
    found = w.ready()
    assert [m.row()[0] for m in found if m.type == "D"] == [b"9"], [m.fields for m in found if m.type == "E"]
    ok(w, "commit", "deallocate s3")


def test_sql_prepare(cluster, w):
    ok(w, "prepare p(int) as select inet_server_port() from t where a = $1")
    assert is_standby(cluster, w.value("execute p(7)"))
    ok(w, "begin", "insert into w values (10, 'p')")
    assert not is_standby(cluster, w.value("execute p(7)"))
    ok(w, "commit")
    assert is_standby(cluster, w.value("execute p(7)"))
    assert code(w.simple("prepare p as select 1")) == "42P05"
    assert is_standby(cluster, w.value("execute p(7)")), "the first one still"
    ok(w, "deallocate p")
    assert code(w.simple("execute p(7)")) == "26000"
    ok(w, "prepare p as select 'new' from t")
    assert w.value("execute p") == "new"
    ok(w, "deallocate all", "prepare q as insert into w values (11, 'q')", "execute q")
    assert cluster.primary.value("select v from w where id = 11") == "q"


def test_named_statement_parsed_and_executed_at_once(cluster, w):
    w.send(parse(PORT, "once") + bind(name="once") + execute() + SYNC)
    assert is_standby(cluster, next(m for m in w.ready() if m.type == "D").row()[0])
    ok(w, "begin", "insert into w values (12, 'once')")
    w.send(bind(name="once") + execute() + SYNC)
    assert not is_standby(cluster, next(m for m in w.ready() if m.type == "D").row()[0])
    ok(w, "commit")
    w.send(parse(PORT, "once") + SYNC)
    assert code(w.ready()) == "42P05"
    ok(w, "deallocate once")
    w.send(parse("select 'again' from t", "once") + bind(name="once") + execute() + SYNC)
    assert next(m for m in w.ready() if m.type == "D").row() == [b"again"]


def rows_of(found) -> list:
    return [m.row()[0] for m in found if m.type == "D"]


@pytest.mark.parametrize("how", ["transaction", "off"])
def test_portals_on_two_servers_are_as_on_one(cluster, make, how):
    """Row limits and names leave the transaction with their reads, and are gone on with where they are."""
    w = login(make(disable_load_balance_on_write=how, statement_level_load_balance=True))
    direct = Wire(cluster.primary.address, seconds=20)
    direct.login()
    for steps in portal_scripts():
        if how == "off":  # a read that leaves does not see what its transaction wrote
            steps = [s.replace("from w where id", "from t where a") if isinstance(s, str) else s for s in steps]
        assert told(w, steps) == told(direct, steps), steps


def test_several_readers(cluster, make):
    """Statement by statement both standbys, over one connection to each."""
    pool = make(statement_level_load_balance=True)
    wire = login(pool)
    ports = [int(wire.value(PORT)) for _ in range(60)]
    assert set(ports) == {cluster.nodes[i].port for i in cluster.standbys}

    def opened() -> list[str]:
        return [cluster.nodes[i].value("select count(*) from pg_stat_activity where backend_type = 'client backend' "
                                       "and query like '%inet_server_port%' and pid <> pg_backend_pid()")
                for i in cluster.standbys]
    waits.wait_for("one connection to each is left", lambda: opened() == ["1", "1"])  # those of a former pool end in their own time
    ok(wire, "begin")
    assert {int(wire.value(PORT)) for _ in range(40)} == {cluster.nodes[i].port for i in cluster.standbys}
    ok(wire, "commit")
    waits.wait_for("all transactions are over", lambda: idle_in_tx(cluster) == 0)
    wire.bye()


def test_process_by_number(cluster, make):
    """pg_terminate_backend goes where the process is."""
    pool = make()
    victim, killer = login(pool), login(pool)
    ok(victim, "begin read only", "select 'victim' from t")
    port = int(victim.value(PORT))
    node = next(n for n in cluster.nodes if n.port == port)
    ok(victim, "select 'victim' from t")
    pid = node.value("select pid from pg_stat_activity where query like '%victim%' and pid <> pg_backend_pid()")
    taken = cluster.primary.value(f"select count(*) from pg_stat_activity where pid = {pid}")
    if taken == "0":
        assert killer.value(f"select pg_terminate_backend({pid})") == "t"
        waits.wait_for("it is gone", lambda: node.value(
            f"select count(*) from pg_stat_activity where pid = {pid}") == "0")
    assert away(cluster, killer)
    ok(victim, "rollback")
    assert victim.value("select a from t") == "7"
    victim.bye()
    killer.bye()


def first(found) -> bytes:
    assert code(found) is None, found
    return next(m for m in found if m.type == "D").row()[0]


def test_names_after_deallocate_all(cluster, w):
    w.send(parse(PORT, "once") + bind(name="once") + execute() + SYNC)
    assert is_standby(cluster, first(w.ready()))
    ok(w, "deallocate all")
    w.send(bind(name="once") + execute() + SYNC)
    assert code(w.ready()) == "26000"
    w.send(parse("select 'new' || inet_server_port() from t", "once") + bind(name="once") + execute() + SYNC)
    assert is_standby(cluster, first(w.ready())[3:])


def test_name_closed_and_made_anew_in_one_sequence(cluster, w):
    w.send(parse(PORT, "n") + SYNC)
    w.ready()
    w.send(bind(name="n") + execute() + SYNC)
    assert is_standby(cluster, first(w.ready()))
    w.send(close(name="n") + parse("select 'new' from t", "n") + bind(name="n") + execute() + SYNC)
    assert first(w.ready()) == b"new"
    ok(w, "begin", "insert into w values (13, 'n')")
    w.send(bind(name="n") + execute() + SYNC)
    assert first(w.ready()) == b"new"
    ok(w, "commit")


def test_function_call_in_a_read_only_transaction(cluster, w):
    oid = int(cluster.primary.value("select 'int4inc(int)'::regprocedure::oid"))
    ok(w, "begin read only")
    assert away(cluster, w)
    w.send(function_call(oid, [b"\0\0\0\1"]))
    found = w.ready()
    assert (code(found), status(found)) == (None, "T")
    assert status(w.simple("show pool_version")) == "T"
    ok(w, "commit")
    assert status(w.simple("show pool_version")) == "I"
    waits.wait_for("all is over", lambda: idle_in_tx(cluster) == 0)


def test_client_leaves_in_the_middle(cluster, pool):
    """Whatever its transaction had on two servers is rolled back on both."""
    for sqls in (["begin", PORT], ["begin read only", PORT, "select nextval('s')"], ["begin", PORT, "insert into w values (14)"]):
        wire = login(pool)
        for sql in sqls:
            wire.simple(sql)
        wire.sock.close()
    waits.wait_for("all is over", lambda: idle_in_tx(cluster) == 0)
    again = login(pool)
    assert away(cluster, again) and status(again.simple("select 1")) == "I"
    again.bye()
    assert cluster.primary.value("select count(*) from w where id = 14") == "0"


# ------------------------------------------------------------------ settings made by functions, roles

@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_set_config_of_a_transaction(cluster, make, mode):
    """set_config(name, value, true) ends with its transaction: afterwards reads leave again."""
    w = login(make(pool_mode=mode))
    ok(w, "select set_config('work_mem', '5MB', true)")
    assert away(cluster, w)
    ok(w, "begin", "select set_config('work_mem', '5MB', true), set_config('my.own', 'x', true)")
    assert not away(cluster, w)
    assert w.value("select current_setting('work_mem') from t") == "5MB"
    ok(w, "commit")
    assert away(cluster, w)
    w.send(parse("select set_config($1, $2, true)", types=[25, 25]) + bind([b"work_mem", b"6MB"]) + execute() + SYNC)
    assert code(w.ready()) is None
    assert away(cluster, w)
    assert w.value("select current_setting('work_mem') from t") == "4MB"
    w.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_set_config_of_the_session(cluster, make, mode):
    """With literals it is a SET: repeated where the reads go. A rollback takes it back."""
    w = login(make(pool_mode=mode))
    value = "select current_setting('work_mem') from t"
    ok(w, "select set_config('work_mem', '5MB', false)")
    assert away(cluster, w) and w.value(value) == "5MB"
    ok(w, "begin", "select pg_catalog.set_config('work_mem', '6MB', false)", "rollback")
    assert away(cluster, w) and w.value(value) == "5MB"
    ok(w, "SELECT  set_config ( 'work_mem' , '7MB' , false )")
    assert away(cluster, w) and w.value(value) == "7MB"
    ok(w, "reset work_mem")
    assert away(cluster, w) and w.value(value) == "4MB"
    ok(w, "select set_config('search_path', 'pg_catalog', false)")
    assert code(w.simple("select * from t")) == "42P01"
    ok(w, "reset search_path")
    assert away(cluster, w)
    w.bye()


def test_set_config_that_may_not_run(cluster, make):
    w = login(make())
    value = "select current_setting('work_mem') from t"
    ok(w, "select set_config('work_mem', '5MB', false) where false")
    assert w.value(value) == "4MB" and not away(cluster, w), "what it did is not known"
    ok(w, "discard all")
    assert away(cluster, w)
    ok(w, "select case when false then set_config('work_mem', '5MB', false) end")
    assert w.value(value) == "4MB" and not away(cluster, w)
    # In a transaction that lives on a standby it is made on the primary: what reads it goes there, too, and what was
    # SET in front of it on the standby does not come back.
    ok(w, "discard all", "begin read only", "set work_mem to '6MB'", "set my.own to 'a'")
    assert away(cluster, w)
    ok(w, "select set_config('work_mem', '7MB', false), 1")
    assert [m.row() for m in w.simple("set my.own to 'b'; show work_mem") if m.type == "D"] == [[b"7MB"]]
    ok(w, "commit")
    assert [w.value(f"select current_setting('{name}')") for name in ("work_mem", "my.own")] == ["7MB", "b"]
    w.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_serializable_role(cluster, make, mode):
    """A standby cannot run serializable transactions: who has them by default reads from the primary."""
    cluster.primary.rows("drop role if exists ser")
    cluster.primary.rows("create role ser login superuser")
    cluster.primary.rows("alter role ser set default_transaction_isolation = serializable")
    pool = make(pool_mode=mode)
    w = Wire(pool.address, seconds=20)
    assert w.login(user="ser")[-1].type == "Z"
    for _ in range(2):
        assert not away(cluster, w)
        assert w.rows("pgpool explain " + PORT)[0][3] == b"the transaction is serializable"
        ok(w, "begin read only")
        assert not away(cluster, w)
        ok(w, "commit", "begin")
        assert not away(cluster, w)
        ok(w, "commit")
        w.send(parse(PORT) + bind() + execute() + SYNC)
        assert code(w.ready()) is None
    other = login(pool)
    assert away(cluster, other)
    other.bye()
    w.bye()
    for how in ({"default_transaction_isolation": "serializable"},
                {"options": "-c default_transaction_isolation=serializable"}):
        w = Wire(pool.address, seconds=20)
        assert w.login(**how)[-1].type == "Z"
        assert not away(cluster, w)
        ok(w, "begin read only")
        assert not away(cluster, w)
        ok(w, "commit")
        w.bye()
    w = login(pool)
    ok(w, "set session characteristics as transaction isolation level serializable")
    assert not away(cluster, w)
    ok(w, "set default_transaction_isolation to 'read committed'")
    assert w.value(PORT)
    w.bye()


@pytest.mark.parametrize("virtual", [True, False])
def test_read_only_transaction_in_transaction_mode(cluster, make, virtual):
    """It lives whole on one standby, whatever protocol begins it and whatever comes first."""
    w = login(make(pool_mode="transaction", virtual_begin=virtual))
    assert away(cluster, w)
    ok(w, "begin read only")
    first = w.value(PORT)
    assert is_standby(cluster, first) and {w.value(PORT) for _ in range(5)} == {first}
    assert code(w.simple("insert into w values (1, 'x')")) == "25006"
    ok(w, "rollback", "begin read only", "savepoint a")
    assert is_standby(cluster, w.value(PORT))
    ok(w, "rollback to a", "commit", "begin read only", "set local work_mem = '5MB'")
    assert is_standby(cluster, w.value(PORT)) and w.value("show work_mem") == "5MB"
    ok(w, "commit")
    assert w.value("show work_mem") == "4MB"
    w.send(parse("begin read only") + bind() + execute() + SYNC)
    assert status(w.ready()) == "T"
    w.send(parse(PORT) + bind() + execute() + SYNC)
    assert is_standby(cluster, next(m for m in w.ready() if m.type == "D").row()[0])
    ok(w, "commit")
    ok(w, "begin read only")
    found = w.simple("set transaction read write")
    if virtual:
        ok(w, "insert into w values (2, 'rw')")
    else:  # the standby was asked for the transaction: it says so
        assert code(found) == "0A000"
    ok(w, "rollback")
    ok(w, "begin isolation level serializable, read only", PORT, "commit")
    ok(w, "insert into w values (3, 'x')")
    assert away(cluster, w)
    w.bye()


def test_function_call_in_an_open_sequence(cluster, w):
    """In a transaction on a standby it belongs to that sequence: skipped behind an error, else answered."""
    call = function_call(177, [b"\0\0\0\1", b"\0\0\0\2"])  # int4pl
    ok(w, "begin read only")
    assert away(cluster, w)
    w.send(parse("select 1") + bind() + execute() + call + SYNC)
    assert [m.type for m in w.ready(2)] == ["1", "2", "D", "C", "V", "Z", "Z"]
    w.send(bind(name="nobody") + call + SYNC + query("rollback"))
    assert [(m.type, m.body[:1]) for m in w.ready(2) if m.type != "E"] == [("Z", b"E"), ("C", b"R"), ("Z", b"I")]


def test_advisory_locks_are_the_primarys(cluster, make):
    """In transaction mode a transaction has one connection: a standby would lock in vain."""
    w = login(make(pool_mode="transaction"))
    w.send(parse("select pg_advisory_xact_lock(2)", "lock") + SYNC)
    w.ready()
    ok(w, "begin read only", "select pg_advisory_xact_lock(1)")
    waits.wait_for("it is one lock", lambda: cluster.primary.value("select count(*) from pg_locks where locktype = 'advisory'") == "1")
    ok(w, "commit")
    for attempt in ("select pg_advisory_lock(1)", "select pg_catalog.pg_try_advisory_xact_lock_shared(1)"):
        ok(w, "begin read only")
        assert away(cluster, w)
        found = w.simple(attempt)
        assert (code(found), status(found)) == ("25006", "E")
        ok(w, "rollback")
    ok(w, "begin read only")
    assert away(cluster, w)
    w.send(bind(name="lock") + execute() + SYNC)
    assert code(w.ready()) == "25006"
    ok(w, "rollback")
    assert away(cluster, w)
    w.bye()


# ----------------------------------------------------------------- sequences that end with a Flush

FLUSH = message("H")


def prepare(wire, sql: str, name: str = "") -> list:
    """As asyncpg does at the first use of a text: what comes back without a Sync."""
    wire.send(parse(sql, name) + describe(name) + FLUSH)
    return wire.read_until("T", "n", "E")


def run(wire, name: str = "", limit: int = 0) -> list:
    wire.send(bind(name=name) + execute(limit=limit) + SYNC)
    return wire.ready()


def ran_at(found) -> bytes:
    return next(m for m in found if m.type == "D").row()[0]


def shape(found) -> list:
    return [(m.type, m.body) for m in found]


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_prepared_with_a_flush(cluster, make, mode):
    """Parse, Describe and Flush by themselves: prepared where the read will run, and nothing is different for
    who sent them. What fails is skipped up to the client's own Sync."""
    pool = make(pool_mode=mode)
    wire = login(pool)
    with Wire(cluster.primary.address) as direct:
        direct.login()
        for name in ["", "a", "b"]:
            assert shape(prepare(wire, PORT, name)) == shape(prepare(direct, PORT, name))
            assert is_standby(cluster, ran_at(run(wire, name)))
            run(direct, name)
        assert shape(run(wire, "a")) == shape(run(wire, "a"))
        # One after the other, and only the Sync in the end; a Sync right behind it.
        for w in wire, direct:
            w.send(parse(PORT, "c") + describe("c") + FLUSH)
            w.send(parse(PORT, "d") + describe("d") + FLUSH)
            w.send(bind(name="c") + execute(limit=1) + SYNC)
            w.send(parse("select 1", "e") + describe("e") + FLUSH)
            w.send(SYNC)
        assert [m.type for m in wire.ready(2)] == [m.type for m in direct.ready(2)]
        # Errors, at each place.
        for bad in ["select nothing_of_the_kind from t", "select 1 from t where", "select * from no_such_table"]:
            for behind in [b"", bind(name="c") + execute(), query("select 2"), parse("select 3") + describe() + FLUSH]:
                for w in wire, direct:
                    w.send(parse(bad, "f") + describe("f") + FLUSH)
                assert shape(wire.read_until("E"))[:-1] == shape(direct.read_until("E"))[:-1]
                for w in wire, direct:
                    w.send(behind + SYNC)
                assert shape(wire.ready()) == shape(direct.ready()), (bad, behind)
        # What is prepared on a standby can be a part of anything.
        for w in wire, direct:
            ok(w, "begin")
        said = [shape(prepare(w, "select count(*) from w", "g")) for w in (wire, direct)]
        assert said[0] == said[1]
        seen = []
        for w in wire, direct:
            ok(w, "insert into w values (1)")
            seen.append(ran_at(run(w, "g")))
            ok(w, "rollback")
        assert int(seen[0]) == int(seen[1]) == 1 + int(direct.value("select count(*) from w"))
        wire.simple("select 1")
        said = [shape(prepare(w, "delete from w where id = -7", "h")) for w in (wire, direct)]
        assert said[0] == said[1]
        assert shape(run(wire, "h")) == shape(run(direct, "h"))
    assert away(cluster, wire)
    wire.bye()


def test_prepared_with_a_flush_holds_no_link(cluster, make):
    """In transaction mode; and in a transaction that has only read it leaves, too."""
    pool = make(pool_mode="transaction", max_db_connections=1)
    one, two = login(pool), login(pool)
    prepare(one, PORT, "a")
    assert is_standby(cluster, two.value(PORT))
    assert is_standby(cluster, ran_at(run(one, "a")))
    ok(one, "begin")
    assert [m.type for m in prepare(one, "select inet_server_port(), 1 from t", "b")] == ["1", "t", "T"]
    found = run(one, "b")
    assert is_standby(cluster, ran_at(found)) and status(found) == "T"
    prepare(one, "select no_such_column from t", "c")
    one.send(SYNC)
    assert status(one.ready()) == "E"
    assert code(one.simple("select 1")) == "25P02"
    ok(one, "rollback")
    assert is_standby(cluster, ran_at(run(one, "b")))
    for w in one, two:
        w.bye()


async def asyncpg_work(port: int) -> tuple[list, list]:
    """What a program of asyncpg sees, and where its reads ran."""
    seen, ports = [], []
    c = await asyncpg.connect(host="127.0.0.1", port=port, user="postgres", database="postgres")
    for where in range(2):
        ports.append(await c.fetchval(f"select inet_server_port() from t where {where} = {where}"))
        ports.append((await c.fetchrow(f"select inet_server_port() as p from t where {where} >= {where}"))["p"])
        ports.append((await c.fetch(f"select inet_server_port() as p from t where {where} <= {where}"))[0]["p"])
        for bad in "select no_such_column from t", "select 1 from no_such_table", "selekt":
            try:
                await c.fetch(bad)
            except asyncpg.PostgresError as error:
                seen.append((error.sqlstate, str(error)))
        await c.execute("create temp table mine(a int)" if where == 0 else "drop table mine")
        statement = await c.prepare("select a, $1::int as b from t")
        seen += [tuple(r) for r in await statement.fetch(where)]
        async with c.transaction():
            ports += [await c.fetchval(f"select inet_server_port() from t where {where} < 2") for _ in range(2)]
            ports += [r["p"] async for r in c.cursor(
                f"select inet_server_port() as p from t, generate_series(1, 4) where {where} < 3", prefetch=2)]
            seen.append(await c.fetchval("select a + $1 from t", where))
            await c.execute("insert into w values ($1)", -100 - where)
            seen.append(await c.fetchval("select count(*) from w where id = $1", -100 - where))
            seen.append(await c.fetchval("delete from w where id = $1 returning id", -100 - where))
        if where == 0:
            await c.execute("discard temp")
            await c.execute("create temp table mine(a int)")
    await c.close()
    return seen, ports


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_asyncpg_reads_leave(cluster, make, mode):
    """At the first use of a text, too; and it sees what it would see of one server."""
    pool = make(pool_mode=mode)
    login(pool).bye()
    direct, _ = asyncio.run(asyncpg_work(cluster.primary.port))
    seen, ports = asyncio.run(asyncpg_work(pool.port))
    assert seen == direct
    assert [is_standby(cluster, port) for port in ports[:3]] == [True] * 3


def test_weights_of_a_reload_hold_for_sessions_that_begin_behind_it(cluster, make):
    pool = make()
    with login(pool) as w:
        assert away(cluster, w)
        pool.reload(**{f"backend_weight{i}": int(i == cluster.at) for i in range(3)})
        waits.wait_for("reads of a new session stay on the primary", lambda: not login_is_away(cluster, pool))
        assert away(cluster, w)


def login_is_away(cluster, pool) -> bool:
    with login(pool) as w:
        return away(cluster, w)
