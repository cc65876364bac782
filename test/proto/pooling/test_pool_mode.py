# SPDX-License-Identifier: PostgreSQL
"""test_pool_mode: the pool mode of one session: pool_mode as a start-up parameter, SET, RESET and SHOW pool_mode."""
import pytest
from pooling_house import BY, login, states, table

from pgt.wire import FLUSH, SYNC, Wire, bind, close, describe, execute, parse, pg, query

MODES = ["session", "transaction", "statement"]


@pytest.fixture(params=MODES)
def pool(request, pg, start_pool):
    """One worker, links that change whenever they can; .mode is what is configured."""
    found = start_pool(pg.address, num_init_children=1, pool_mode=request.param, pool_test_rotate=True)
    found.mode = request.param
    return found


def shown(c: Wire, extended: bool = False) -> str:
    if not extended:
        return c.value("show pool_mode")
    c.send(parse("show pool_mode"), bind(), describe("", "P"), execute(), SYNC)
    found = c.ready()
    assert [m.type for m in found] == ["1", "2", "T", "D", "C", "Z"]
    return found[3].row()[0].decode()


def run(c: Wire, sql: str, extended: bool) -> list:
    if extended:
        c.send(pg(sql), SYNC)
        return c.ready()
    return c.simple(sql)


def set_mode(c: Wire, mode: str, extended: bool = False) -> None:
    found = run(c, f"set pool_mode = '{mode}'", extended)
    assert not states(found), [m.fields for m in found if m.type == "E"]
    assert [m.body for m in found if m.type == "C"] == [b"SET\0"]


def behaves_as(c: Wire, other: Wire, mode: str) -> None:
    """`other` is a client of the same pool that makes links change."""
    found = c.simple("begin; select 1/0; commit")
    assert states(found) == ["22012"] and found[-1].body == (b"I" if mode == "statement" else b"E")
    if mode != "statement":
        c.simple("rollback")
    pids = set()
    for _ in range(4):
        pids.add(c.value("select pg_backend_pid()"))
        other.simple("select 1")
    assert (len(pids) == 1) == (mode == "session"), pids


@BY
@pytest.mark.parametrize("wanted", MODES)
def test_set_at_the_start(pool, wanted, extended):
    """The first statement of a session says how it is pooled; SHOW and SHOW POOL_CLIENTS say so, too."""
    c, other = login(pool, application_name="moded", options="-c work_mem=5MB"), login(pool)
    assert shown(c, extended) == pool.mode
    set_mode(c, wanted, extended)
    assert shown(c, extended) == wanted
    row = next(r for r in table(other, "show pool_clients") if r["application_name"] == "moded")
    assert row["pool_mode"] == wanted
    assert ("session mode" in row["pin_reason"]) == (wanted == "session")
    behaves_as(c, other, wanted)
    for _ in range(2):
        assert c.value("show work_mem") == "5MB", "start-up parameters are there"
        assert c.value("show application_name") == "moded"
    c.rows("set work_mem = '6MB'")
    assert c.value("show work_mem") == "6MB"
    c.rows("reset work_mem")
    assert c.value("show work_mem") == "5MB"
    c.bye()
    other.bye()


@pytest.mark.parametrize("how", ["alone", "options", "both", "glued", "long"])
@pytest.mark.parametrize("wanted", MODES)
def test_startup_parameter(pool, wanted, how):
    params = {"alone": {"pool_mode": wanted, "options": "-c work_mem=5MB"},
              "options": {"options": f"-c work_mem=5MB -c pool_mode={wanted}"},
              "both": {"pool_mode": wanted, "options": "-c pool_mode=session -c work_mem=5MB"},
              "glued": {"options": f"-cpool_mode={wanted.upper()} -cwork_mem=5MB"},
              "long": {"options": f"--work_mem=5MB  --pool-mode={wanted}"}}[how]
    c, other = login(pool, **params), login(pool)
    assert shown(c) == wanted
    behaves_as(c, other, wanted)
    assert c.value("show work_mem") == "5MB"
    if wanted == "session":
        assert c.value("select pg_backend_pid()") == str(c.pid), "as bit for bit as in a pool of this mode"
    c.bye()
    other.bye()


@pytest.mark.parametrize("params", [{"pool_mode": "none"}, {"pool_mode": ""}, {"options": "-c pool_mode=trans"}])
def test_startup_parameter_is_wrong(pool, params):
    w = Wire(pool.address, seconds=20)
    found = w.login(**params)
    assert [(m.fields["S"], m.sqlstate) for m in found if m.type == "E"] == [("FATAL", "22023")]
    assert "pool_mode" in found[-1].text


WORDS = {"to": "set pool_mode to {}", "session": "SET SESSION pool_mode = '{}'", "upper": "Set Pool_Mode = '{}' ;",
         "comment": "/* a */ set pool_mode -- b\n = {}", "quoted": "set \"pool_mode\" = '{}'"}


@pytest.mark.parametrize("sql", WORDS.values(), ids=WORDS.keys())
def test_spellings(pool, sql):
    c = login(pool)
    assert not states(c.simple(sql.format("transaction")))
    assert shown(c) == "transaction"
    c.bye()


@BY
@pytest.mark.parametrize("sql", ["reset pool_mode", "set pool_mode to default"])
def test_reset(pool, sql, extended):
    """Back to what is configured."""
    c = login(pool)
    set_mode(c, "transaction")
    if pool.mode == "session":
        assert not states(run(c, sql, extended)), "nothing stands against it"
    else:
        found = run(c, sql, extended)
        assert not states(found)
    assert shown(c) == pool.mode
    c.bye()


@BY
def test_wrong_values(pool, extended):
    c = login(pool)
    for sql, code in (("set pool_mode = 'trans'", "22023"), ("set pool_mode = ''", "22023"),
                      ("set pool_mode = 1", "22023"), ("set local pool_mode = 'session'", "42704")):
        assert states(run(c, sql, extended)) == [code], sql
    assert shown(c) == pool.mode
    assert c.value("select 1") == "1"
    c.bye()


REFUSED = {
    "in_transaction": ["begin", "select 1"],
    "begun": ["begin"],
    "tied": ["create temp table mode_t(a int)"],
    "prepared": ["prepare mode_p as select 1"],
}


@BY
@pytest.mark.parametrize("before", REFUSED.values(), ids=REFUSED.keys())
def test_refused(pg, start_pool, before, extended):
    """55000 while something could be lost; the session goes on as it was."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction")
    c = login(pool)
    for sql in before:
        assert not states(c.simple(sql))
    for mode in ("session", "statement"):
        assert states(run(c, f"set pool_mode = '{mode}'", extended)) == ["55000"]
    assert shown(c) == "transaction"
    assert not states(c.simple("set pool_mode = 'transaction'")), "no change"
    c.simple("rollback")
    c.simple("discard all")
    set_mode(c, "statement")
    c.send(query("begin"))
    assert states(c.read_eof()) == ["08P01"]


def test_refused_in_a_failed_transaction(pg, start_pool):
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction")
    c = login(pool)
    c.simple("begin; select 1/0")
    assert states(c.simple("set pool_mode = 'session'")) == ["25P02"]
    c.simple("rollback")
    c.bye()


@pytest.mark.parametrize("first", ["select 1", "set work_mem = '5MB'", "begin"])
def test_session_mode_is_left_only_at_the_start(pg, start_pool, first):
    pool = start_pool(pg.address, num_init_children=1, pool_mode="session")
    c = login(pool)
    assert not states(c.simple(first))
    found = c.simple("set pool_mode = 'transaction'")
    assert states(found) == ["55000"]
    assert shown(c) == "session"
    c.bye()


def test_there_and_back(pg, start_pool):
    """A session that asked for session mode keeps its link; it may go back when nothing is left on it."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=2)
    c, other = login(pool), login(pool)
    for _ in range(3):
        set_mode(c, "session")
        behaves_as(c, other, "session")
        c.rows("create temp table mode_back(a int)")
        assert states(c.simple("reset pool_mode")) == ["55000"]
        c.rows("drop table mode_back")
        assert not states(c.simple("reset pool_mode"))
        both = [login(pool) for _ in range(2)]
        for w in both:
            w.rows("begin")
            assert w.value("select 'the link is free'")
        for w in both:
            w.rows("commit")
            w.bye()
    c.bye()
    other.bye()


def test_links_that_sessions_leave_serve_transactions(pg, start_pool):
    """Two links with start-up parameters of sessions stand in the way of none."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=2,
                      query_wait_timeout=10)
    for size in ("5MB", "6MB"):
        c = login(pool, pool_mode="session", options=f"-c work_mem={size}")
        assert c.value("show work_mem") == size
        c.bye()
    both = [login(pool) for _ in range(2)]
    for w in both:
        w.rows("begin")
        assert w.value("show work_mem") == "4MB"
    for w in both:
        w.bye()


def test_many_of_all_modes(pg, start_pool):
    """Sessions of three modes on the links of one pool, in turn."""
    pool = start_pool(pg.address, num_init_children=2, pool_mode="transaction", max_backend_connections=4,
                      query_wait_timeout=20)
    for turn in range(4):
        clients = [(login(pool, **({"pool_mode": m} if turn % 2 else {})), m) for m in MODES * 2]
        for i, (c, mode) in enumerate(clients):
            if not turn % 2:
                set_mode(c, mode)
            assert c.value(f"select '{turn}-{i}'") == f"{turn}-{i}"
            c.rows(f"set application_name = 'm{i}'")
            if mode == "session":
                c.rows(f"create temp table only_mine as select {i} as a")
                assert c.value("select a from only_mine") == str(i)
        for i, (c, mode) in enumerate(clients):
            assert c.value("show application_name") == f"m{i}"
            assert c.value("select to_regclass('only_mine') is null") == ("f" if mode == "session" else "t")
        for c, _ in clients:
            c.bye()


def test_policy_error(pg, start_pool):
    """Where nobody may be tied to a connection, nobody asks for one."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", pin_on_session_state="error")
    c = login(pool)
    assert states(c.simple("set pool_mode = 'session'")) == ["0A000"]
    set_mode(c, "statement")
    c.bye()
    w = Wire(pool.address, seconds=20)
    assert states(w.login(pool_mode="session")) == ["0A000"]


def test_in_a_pipeline(pool):
    """In its place among what was asked before and after."""
    c = login(pool)
    c.send(query("set pool_mode = 'transaction'"), query("select 1"), query("show pool_mode"), query("select 2"))
    rows = [m.row()[0] for m in c.ready(4) if m.type == "D"]
    assert rows == [b"1", b"transaction", b"2"]
    c.send(pg("show pool_mode"), pg("select 3"), SYNC, pg("set pool_mode to statement"), SYNC, pg("select 4"), SYNC)
    found = c.ready(3)
    assert not states(found)
    assert [m.row()[0] for m in found if m.type == "D"] == [b"transaction", b"3", b"4"]
    assert shown(c) == "statement"
    c.bye()


@pytest.mark.parametrize("flushes", [False, True], ids=["pipelined", "flushed"])
def test_link_stays_until_the_sequence_is_over(pg, start_pool, flushes):
    """Session mode is left behind a statement whose Sync is to come: nobody else has the link before."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=2)
    c, other = login(pool), login(pool)
    set_mode(c, "session")
    pid = c.value("select pg_backend_pid()")
    c.send(parse("select pg_backend_pid()"), bind(), execute(), FLUSH if flushes else b"")
    c.send(parse("set pool_mode = 'transaction'"), bind(), execute(), FLUSH)
    found = c.read_until("C") + c.read_until("C")
    assert not states(found)
    assert [m.row()[0].decode() for m in found if m.type == "D"] == [pid]
    assert not states(other.simple("begin"))
    assert other.value("select pg_backend_pid()") != pid, "the client's sequence goes on there"
    c.send(parse("select 2"), bind(), execute(), SYNC)
    found = c.ready()
    assert [m.row()[0] for m in found if m.type == "D"] == [b"2"]
    assert found[-1].body == b"I"
    assert not states(other.simple("commit"))
    w = login(pool)
    for client in (other, w):
        client.rows("begin")
        assert client.value("select 'the link is free'")
    for client in (other, w):
        client.rows("commit")
        client.bye()
    c.bye()


def test_held_cursor_of_session_mode_is_closed(pg, start_pool):
    """Close of a cursor that outlives its transaction goes to the server that has it, also where no other link is
    free."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1)
    c = login(pool)
    set_mode(c, "session")
    assert not states(c.simple("declare held cursor with hold for select 1 union all select 2"))
    assert [m.row()[0] for m in c.simple("fetch held") if m.type == "D"] == [b"1"]
    c.send(close("held", "P"), SYNC)
    assert [m.type for m in c.ready()] == ["3", "Z"]
    assert c.value("select count(*) from pg_cursors where name = 'held'") == "0"
    assert states(c.simple("fetch held")) == ["34000"]
    c.bye()


def test_databases_and_users(pg, start_pool, tmp_path):
    """What pools.conf says is the default."""
    conf = tmp_path / "pools.conf"
    conf.write_text("[database other_db]\npool_mode = statement\n[user plain_user]\npool_mode = transaction\n")
    conf.chmod(0o644)
    pool = start_pool(pg.address, num_init_children=1, pool_mode="session", pools_file=str(conf))
    c = login(pool, database="other_db")
    assert shown(c) == "statement"
    set_mode(c, "transaction")
    c.rows("begin")
    assert c.value("select 1") == "1"
    c.rows("commit")
    assert not states(c.simple("reset pool_mode"))
    assert shown(c) == "statement"
    c.bye()
    d = login(pool)
    assert shown(d) == "session"
    d.bye()
