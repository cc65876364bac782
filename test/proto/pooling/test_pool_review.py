# SPDX-License-Identifier: PostgreSQL
"""test_pool_review: what an adversarial reading of transaction pooling found: half messages when a link is given
back, links that die between the messages of a sequence, exchanges behind one that is sent again, savepoints and
skipped words of transactions.
"""
import random
import threading

import pytest
from pooling_house import login, states

from pgt import postgres, waits
from pgt.wire import FLUSH, SYNC, bind, cancel, close, copy_data, describe, execute, parse, pg as pgx, query


@pytest.fixture
def pool(pg, start_pool):
    """One link for everybody."""
    return start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1,
                      query_wait_timeout=10)


@pytest.mark.parametrize("sql", ["copy rev_nowhere from stdin", "copy rev_copy from stdin"])
def test_half_a_copy_message_when_the_copy_fails(pg, pool, sql):
    """The server is done with the COPY while a CopyData is half way: the rest of it is not what the next
    client says."""
    pg.rows("drop table if exists rev_copy")
    pg.rows("create table rev_copy(a int)")
    a, b = login(pool), login(pool)
    big = copy_data(b"x" * 50000)
    a.send(query(sql), copy_data(b"not a number\n"), big[:1000])
    assert len(states(a.ready())) == 1
    b.send(query("select 'b'"))
    b.is_quiet(0.1)
    a.send(big[1000:])
    assert [m.row() for m in b.ready() if m.type == "D"] == [[b"b"]]
    assert a.value("select 'a'") == "a"
    assert b.value("select 'b2'") == "b2"
    a.bye()
    b.bye()


@pytest.mark.parametrize("first", ["parsed", "failed"])
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in_transaction"])
def test_link_dies_between_messages_of_a_sequence(pg, pool, first, inside):
    """Nothing is owed at that moment: one error all the same, and one ReadyForQuery for the Sync."""
    c = login(pool)
    if inside:
        c.rows("begin")
        assert c.value("select 1") == "1"
    c.send(parse("select 5" if first == "parsed" else "selec", "s"), FLUSH)
    c.read_until("1", "E")
    pg.end_sessions()
    c.send(bind(name="s"), execute(), SYNC)
    found = c.ready()
    assert len(states(found)) == (1 if first == "parsed" else 0), [m for m in found]
    assert not [m for m in found if m.type == "D"]
    assert found[-1].body == (b"E" if inside else b"I")
    c.simple("rollback")
    assert c.value("select 'alive'") == "alive"
    c.bye()


def test_writes_in_a_pipeline_to_a_server_that_takes_none(pg, pool):
    """Each has its error and its ReadyForQuery."""
    pg.rows("drop table if exists rev_ro")
    pg.rows("create table rev_ro(a int)")
    c = login(pool)
    pg.rows("alter database postgres set default_transaction_read_only = on")
    try:
        pg.end_sessions()
        c.send(query("insert into rev_ro values (1)"), query("insert into rev_ro values (2)"), query("select 3"))
        found = c.ready(3)
        assert [m.type for m in found if m.type in "EDZ"] == ["E", "Z", "E", "Z", "D", "Z"]
        c.send(pgx("insert into rev_ro values (1)"), SYNC, pgx("select 4"), SYNC)
        assert [m.type for m in c.ready(2) if m.type in "EDZ"] == ["E", "Z", "D", "Z"]
        c.send(query("insert into rev_ro values (1)"), SYNC, SYNC)
        assert [m.type for m in c.ready(3) if m.type in "EDZ"] == ["E", "Z", "Z", "Z"]
    finally:
        pg.rows("begin read write; alter database postgres reset default_transaction_read_only; commit")
        pg.end_sessions()
    c.bye()


def test_stale_plans_in_a_pipeline(pg, pool):
    """As many answers as questions, in their order."""
    pg.rows("drop table if exists rev_stale")
    pg.rows("create table rev_stale(a int); insert into rev_stale values (1)")
    c = login(pool)
    c.send(parse("select * from rev_stale", "s"), SYNC)
    c.ready()
    c.send(bind(name="s"), execute(), SYNC)
    c.ready()
    pg.rows("alter table rev_stale add b int default 2")
    seq = bind(name="s") + describe("", "P") + execute() + SYNC
    c.send(seq, seq, query("select 'behind'"))
    found = c.ready(3)
    zs = [i for i, m in enumerate(found) if m.type == "Z"]
    for part in (found[:zs[0]], found[zs[0]:zs[1]]):
        assert [m.type for m in part if m.type in "DE"] in (["D"], ["E"]), [m.type for m in found]
    assert found[-3].row() == [b"behind"]
    c.send(seq)
    assert [m.row() for m in c.ready() if m.type == "D"] == [[b"1", b"2"]]
    c.bye()


@pytest.mark.parametrize("wait", [False, True])
def test_many_statements_behind_an_error(pool, wait):
    """All of them are skipped up to the Sync."""
    c = login(pool)
    c.send(parse("selec"), FLUSH)
    if wait:
        c.read_until("E")
    c.send(*(parse(f"select {i}", f"n{i}") for i in range(300)), SYNC)
    assert len(states(c.ready())) == (0 if wait else 1)
    c.send(*(parse(f"select {i}", f"n{i}") for i in range(300)), SYNC)
    assert not states(c.ready())
    c.send(bind(name="n299"), execute(), SYNC)
    assert [m.row() for m in c.ready() if m.type == "D"] == [[b"299"]]
    c.bye()


@pytest.mark.parametrize("name", ["pgp_" + "z" * 32, "pgp_" + "0" * 32, "pgp_"])
def test_names_like_ours(pool, name):
    c = login(pool)
    c.send(bind(name=name), execute(), SYNC)
    assert states(c.ready()) == ["26000"]
    c.send(close(name), SYNC)
    assert not states(c.ready())
    c.send(parse("select 1", name), bind(name=name), execute(), SYNC)
    assert [m.row() for m in c.ready() if m.type == "D"] == [[b"1"]]
    c.bye()


def test_discard_temp_is_rolled_back_to_a_savepoint(pool):
    """The temporary table is there still, and the session tied to it."""
    c, other = login(pool), login(pool)
    c.rows("create temp table rev_temp(a int)")
    for sql in ("begin", "savepoint a", "discard temp", "rollback to a", "commit"):
        c.rows(sql)
    assert c.value("select count(*) from rev_temp") == "0"
    other.send(query("select to_regclass('rev_temp') is null"))
    assert other.is_quiet(0.3), "the link is lent with a temporary table on it"
    c.bye()
    assert [m.row() for m in other.ready() if m.type == "D"] == [[b"t"]]
    other.bye()


LONG = "p" * 70
SAVEPOINTS = {
    "long_name": [f"savepoint {LONG}", "set work_mem = '7MB'", f"rollback to {LONG}"],
    "quoted": ['savepoint "A b"', "set work_mem = '7MB'", 'savepoint "a B"', 'rollback to "A b"'],
    "skipped_to_older": ["savepoint a", "set work_mem = '7MB'", "savepoint b", ("select 1/0", "rollback to a"), "rollback to b"],
    "skipped_rollback": ["savepoint a", "set work_mem = '7MB'", "savepoint b", ("select 1/0", "rollback"), "rollback to b"],
    "skipped_release": ["savepoint a", "set work_mem = '7MB'", "savepoint b", "set work_mem = '8MB'", ("select 1/0", "release b"),
                        "rollback to b"],
    "skipped_savepoint": ["savepoint a", "set work_mem = '7MB'", ("select 1/0", "savepoint a"), "rollback to a"],
    "skipped_commit": ["savepoint a", "set work_mem = '7MB'", "savepoint b", ("select 1/0", "commit"), "rollback to b"],
    "recovered_commit": ["savepoint a", (), ("select 1/0",), ("rollback to a", "set work_mem = '7MB'", "commit")],
    "recovered_anew": [("select 1/0",), ("rollback", "begin", "set work_mem = '7MB'", "commit")],
    "recovered_chain": [("select 1/0",), ("rollback and chain", "set work_mem = '7MB'", "commit and chain", "set work_mem = '8MB'",
                                          "rollback")],
    "reset_inside": ["set work_mem = '7MB'", "savepoint a", "reset work_mem", ("select 1/0", "rollback"), "rollback to a"],
    "skipped_set": ["savepoint a", ("select 1/0", "set work_mem = '7MB'"), "rollback to a"],
}


@pytest.mark.parametrize("steps", SAVEPOINTS.values(), ids=SAVEPOINTS.keys())
@pytest.mark.parametrize("way", ["string", "sequence"])
def test_settings_and_savepoints(pg, pool, steps, way):
    """What a transaction leaves is what the server says, and nobody else's."""
    with login(pg) as direct:
        expected = walk(direct, steps, way)
    c, other = login(pool), login(pool)
    assert walk(c, steps, way) == expected
    c.simple("rollback")
    assert c.value("show work_mem") == expected
    c.bye()
    assert other.value("show work_mem") == "4MB"
    other.bye()


def walk(c, steps, way) -> str:
    c.rows("begin")
    assert c.value("select 1") == "1"
    for step in steps:
        if isinstance(step, str):
            c.rows(step)
        elif way == "string":
            if step:
                c.simple("; ".join(step))
        else:
            c.send(*(pgx(sql) for sql in step), SYNC)
            c.ready()
    c.simple("commit")
    return c.value("show work_mem")


def test_prepared_in_sql_for_a_table_that_is_gone(pg, pool):
    """A statement that cannot be made any more is no trouble for those that do not name it."""
    pg.rows("drop table if exists rev_gone")
    pg.rows("create table rev_gone(a int)")
    c = login(pool)
    c.rows("prepare q as select * from rev_gone")
    other = login(pool)
    assert other.value("select 1") == "1"
    pg.rows("drop table rev_gone")
    pg.end_sessions()
    for begin in ("begin", "begin isolation level serializable"):
        c.rows(begin)
        c.send(pgx("select 5"), SYNC)
        found = c.ready()
        assert not states(found) and found[-1].body == b"T"
        c.rows("commit")
    c.rows("begin")
    assert c.value("select 5") == "5"
    c.send(pgx("select 5"), SYNC)
    assert not states(c.ready())
    c.rows("commit")
    assert c.value("select 'alive'") == "alive"
    c.bye()
    other.bye()


def test_a_read_that_kills_its_server_process(pg, pool):
    """It is not made again for ever: that would be the end of the whole server, again and again."""
    pg.rows("drop table if exists rev_big")
    pg.rows("create table rev_big as select generate_series(1, 20000) a")
    c = login(pool, seconds=20)
    c.send(query("select x.a, y.a from rev_big x, rev_big y where x.a + y.a < 0 /* big */"))
    for _ in range(8):
        waits.wait_for("it runs, or it is told", lambda: not c.is_quiet(0.01) or pg.sessions("query like '%* big *%' and state = 'active'"))
        if not c.is_quiet(0.01):
            break
        for pid in pg.sessions("query like '%* big *%' and state = 'active'"):
            pg.rows(f"select pg_terminate_backend({pid})")
            waits.wait_for("it is gone", lambda: pid not in pg.sessions())
    assert not c.is_quiet(0.01), "made again for the eighth time"
    assert len(states(c.ready())) == 1
    assert c.value("select 'alive'") == "alive"
    c.bye()


@pytest.mark.parametrize("sql", ["begin", "set work_mem = '7MB'", "select 1", "select 1/0", "discard all"])
@pytest.mark.parametrize("wait", [False, True])
def test_query_behind_an_error_without_sync(pg, pool, sql, wait):
    """The server skips it; so does nobody wait for an answer to it."""
    c = login(pool)
    c.send(parse("selec"), FLUSH)
    if wait:
        c.read_until("E")
    c.send(query(sql), SYNC)
    assert len(states(c.ready())) == (0 if wait else 1)
    assert c.value("show work_mem") == "4MB"
    c.bye()


def test_large_write_to_a_server_that_takes_none(pg, pool):
    """It comes in pieces, and is refused once."""
    pg.rows("drop table if exists rev_ro")
    pg.rows("create table rev_ro(a int)")
    c = login(pool)
    pg.rows("alter database postgres set default_transaction_read_only = on")
    try:
        pg.end_sessions()
        for size in (20000, 400000):
            sql = "insert into rev_ro values (1) /* " + "x" * size + " */"
            for piece in (query(sql), pgx(sql) + SYNC):
                c.send(piece[:10000])
                c.is_quiet(0.05)
                c.send(piece[10000:])
                assert states(c.ready()) == ["25006"]
                assert c.value("select 'alive'") == "alive"
    finally:
        pg.rows("begin read write; alter database postgres reset default_transaction_read_only; commit")
        pg.end_sessions()
    c.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_parameter_changes_with_what_is_sent_again(pg, start_pool, mode):
    """A reload makes servers read-only, or a plan is stale: the server tells a parameter between its error and its
    ReadyForQuery. Nothing of the sequence is answered twice."""
    if postgres.major() < 14:
        pytest.skip("PostgreSQL 13 tells of a reload in front of the error, and of one of the two settings never")
    pg.rows("drop table if exists rev_twice")
    pg.rows("create table rev_twice(a int)")
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode)
    c = login(pool)
    c.send(parse("select * from rev_twice", "s"), bind(name="s"), execute(), SYNC)
    c.ready()
    sequences = (parse("insert into rev_twice values (1)") + bind() + describe(what="P") + execute() + SYNC,
                 bind(name="s") + describe(what="P") + execute() + SYNC)
    answers = []
    try:
        pg.rows("alter table rev_twice add b int")
        for name, value, sequence in (("default_transaction_read_only", "on", sequences[0]),
                                      ("IntervalStyle", "iso_8601", sequences[1])):
            pg.rows(f"alter system set {name} = {value}")
            pg.reload()
            waits.wait_for("it is known", lambda: pg.value(f"show {name}") == value)  # noqa: B023
            c.send(sequence)
            answers.append([m.type for m in c.ready()])
    finally:
        for name in ("default_transaction_read_only", "IntervalStyle"):
            pg.rows(f"alter system reset {name}")
        pg.reload()
    assert [t for t in answers[0] if t != "S"] == ["1", "2", "n", "E", "Z"]
    assert [t for t in answers[1] if t != "S"] == (["2", "T", "C", "Z"] if mode == "transaction" else ["E", "Z"])
    # A shared client is told all that nobody has SET when a reload has changed some of it.
    assert all(a[:-1].count("S") == 1 if mode == "session" else "S" in a for a in answers), answers
    c.bye()


def test_unlooked_parse_with_pins_off(pg, start_pool):
    """A statement too long to be kept is lost with the link, not left to the next client."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1,
                      pin_on_session_state="off")
    a, b = login(pool), login(pool)
    a.send(parse("select 'of a' /* " + "x" * 400000 + " */", "s"), SYNC)
    a.ready()
    b.send(bind(name="s"), execute(), SYNC)
    assert states(b.ready()) == ["26000"]
    a.rows("create temp table rev_off(a int)")
    assert b.value("select to_regclass('rev_off') is null") == "t"
    a.rows("select set_config(n, '9MB', false) from (values ('work_mem')) v(n)")
    assert b.value("show work_mem") == "4MB"
    a.bye()
    b.bye()


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in_transaction"])
def test_refused_statement_in_a_pipeline(pg, start_pool, inside):
    """Errors and ReadyForQuery in the order of what was asked."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", pin_on_session_state="error")
    c = login(pool)
    if inside:
        c.rows("begin")
        assert c.value("select 1") == "1"
    c.send(query("create temp table rev_refused(a int)"), query("select 2"), query("listen x"), query("select 3"))
    kinds = [m.type for m in c.ready(4) if m.type in "EDZ"]
    assert kinds == (["E", "Z"] * 4 if inside else ["E", "Z", "D", "Z"] * 2)
    c.simple("rollback")
    c.send(pgx("create temp table rev_refused(a int)"), SYNC, query("select 2"), SYNC)
    assert [m.type for m in c.ready(3) if m.type in "EDZ"] == ["E", "Z", "D", "Z", "Z"]
    c.bye()


def test_cancel_at_any_moment(pg, pool):
    """Aimed at what is put in front of a client's statement: BEGIN and settings are not what it hits."""
    pg.rows("drop table if exists rev_cancel")
    pg.rows("create table rev_cancel(a int)")
    c, other = login(pool), login(pool)
    c.rows("set work_mem = '9MB'")
    for i in range(60):
        assert other.value("show work_mem") == "4MB"
        c.rows("begin")
        c.send(query(f"insert into rev_cancel values ({i}) returning current_setting('work_mem')"))
        cancel(pool.address, c.pid, c.key)
        found = c.ready()
        assert found[-1].body in (b"T", b"E")
        assert [m.row() for m in found if m.type == "D"] in ([], [[b"9MB"]])
        c.simple("rollback")
    assert pg.value("select count(*) from rev_cancel") == "0"
    assert c.value("show work_mem") == "9MB"
    c.bye()
    other.bye()


def test_settings_under_a_timeout_of_the_last_client(pg, pool):
    """A statement_timeout that another left on the link does not keep its settings there."""
    hasty, c = login(pool), login(pool)
    hasty.rows("set statement_timeout = '1ms'")
    for _ in range(100):
        hasty.simple("select 1")
        assert c.value("show statement_timeout") == "0"
    hasty.bye()
    c.bye()


class Writer(threading.Thread):
    """Writes tokens one way or another; keeps which were confirmed, and which may not be there."""

    def __init__(self, pool, number: int):
        super().__init__()
        self.pool, self.number = pool, number
        self.rng = random.Random(number)
        self.sure: list[str] = []
        self.never: list[str] = []
        self.trouble = ""
        self.last: list[tuple[int, int, str]] = []

    def run(self) -> None:
        try:
            c = login(self.pool, seconds=20)
            c.send(parse("insert into rev_w values ($1)", "ins"), SYNC)
            c.ready()
            for i in range(150):
                self.write(c, f"{self.number}-{i}")
            c.bye()
        except BaseException as e:  # pylint: disable=broad-except
            self.trouble = f"{self.number}: {type(e).__name__}: {e}"

    def write(self, c, token: str) -> None:
        insert = f"insert into rev_w values ('{token}')"
        named = bind([token], name="ins") + execute()
        way = self.rng.randrange(6)
        if way == 0:
            parts, readies = [query(insert)], 1
        elif way == 1:
            parts, readies = [named, SYNC], 1
        elif way == 2:
            parts, readies = [query("begin"), query(insert), query("commit")], 3
        elif way == 3:
            parts, readies = [pgx("begin"), named, pgx("commit"), SYNC], 1
        elif way == 4:
            parts, readies = [query("begin"), named, SYNC, query("rollback"), SYNC], 4
        else:
            parts, readies = [query(insert + "; select 1/0")], 1
        if way in (2, 4) and self.rng.random() < 0.5:
            found = []
            for part in parts:
                c.send(part)
                found += c.ready() if part[:1] in b"QS" else []
        else:
            c.send(*parts)
            found = c.ready(readies)
        tags = [m.body for m in found if m.type == "C"]
        self.last = [*self.last[-3:], (way, len(parts), "".join(m.type + (m.sqlstate if m.type == "E" else m.body.decode() if m.type == "Z" else "") for m in found))]
        assert tags or states(found), self.last
        if way >= 4:
            self.never.append(token)
        elif not states(found) and tags[-1] in (b"COMMIT\0", b"INSERT 0 1\0") and b"INSERT 0 1\0" in tags:
            self.sure.append(token)
        if found[-1].body != b"I":
            c.simple("rollback")


@pytest.mark.parametrize("links", [1, 3])
def test_no_write_is_lost_or_doubled(pg, start_pool, links):
    """Server processes are ended all the time: what was confirmed is there once, what was rolled back is not,
    and nobody waits for ever."""
    pool = start_pool(pg.address, num_init_children=2, pool_mode="transaction", max_backend_connections=links,
                      query_wait_timeout=60, pool_test_rotate=True)
    pg.rows("drop table if exists rev_w")
    pg.rows("create table rev_w(a text)")
    writers = [Writer(pool, i) for i in range(6)]
    for w in writers:
        w.start()
    while any(w.is_alive() for w in writers):
        pg.rows("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
                "and backend_type = 'client backend' and random() < 0.2")
        writers[0].join(0.02)
        next((w for w in writers if w.is_alive()), writers[0]).join(0.02)
    assert not [w.trouble for w in writers if w.trouble]
    there = [r[0].decode() for r in pg.rows("select a from rev_w")]
    assert len(there) == len(set(there)), "written twice"
    assert not [t for w in writers for t in w.sure if t not in there], "confirmed, and lost"
    assert not [t for w in writers for t in w.never if t in there], "kept though rolled back"
    assert sum(len(w.sure) for w in writers) > 100


def test_savepoints_without_end(start_pool, pg):
    """More savepoints than are followed tie the session to its link until the transaction is over."""
    pool = start_pool(pg.address, pool_mode="transaction", num_init_children=1)
    c = login(pool)
    c.rows("begin; set work_mem = '7MB'")
    for i in range(1100):
        c.rows(f"savepoint s{i}; set work_mem = '{i + 64}kB'")
    c.rows("rollback to s1050")
    assert c.value("show work_mem") == "1113kB"
    c.rows("rollback to s10")
    assert c.value("show work_mem") == "73kB"
    c.rows("commit")
    assert c.value("show work_mem") == "73kB"
    c.bye()


FAILING = {"string": [query("select 1; end")],
           "sequence": [parse("select 1"), bind(), execute(), parse("abort"), bind(), execute(), SYNC]}


@pytest.mark.parametrize("second", FAILING)
@pytest.mark.parametrize("first", FAILING)
def test_skipped_ends_of_a_failed_transaction(start_pool, pg, first, second):
    """Ends that are skipped, sent ahead of each other, do not let the session go: what a ROLLBACK TO takes back is put on no link."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", pool_test_rotate=True)
    c = login(pool)
    c.send(query("begin"), query("savepoint s1"))
    c.ready(2)
    c.simple("select 1/0")
    c.send(*FAILING[first], *FAILING[second])
    c.ready(2)
    c.simple("rollback to s1")
    c.simple("set my.own = 'undone'")
    c.send(query("rollback to s1"), query("commit"))
    c.ready(2)
    assert c.value("select coalesce(current_setting('my.own', true), '')") == ""
