# SPDX-License-Identifier: PostgreSQL
"""test_pool_lost: links that die at a bad moment, in transaction mode: what a client was told of parameters is put right
by the next link that answers it, and what is certain is not answered with an error.
"""
import re

import pytest
from pooling_house import login, states, table

from pgt import fake as fakes
from pgt import waits
from pgt.wire import FLUSH, SYNC, bind, close, describe, execute, parse, query


def greet(conn) -> None:
    conn.greet(status={"server_version": "15.0", "client_encoding": "UTF8", "standard_conforming_strings": "on",
                       "IntervalStyle": "postgres", "application_name": ""})


class Doomed:
    """A server whose process ends when it reads "die", or for the first time "once", or a Bind of what is called "last...",
    or before it says ReadyForQuery of "leave"; in a transaction it is made to cancel what sets "cancelled".
    """

    def __init__(self):
        self.texts: list[str] = []

    def answer(self, conn, sql: str, tx: str) -> tuple[bytes, str]:
        low = sql.lower().split(" /*")[0]
        if low.startswith("set intervalstyle"):
            return fakes.parameter("IntervalStyle", "green") + fakes.complete("SET"), tx
        if "'cancelled'" in low and tx == "T":
            return fakes.error("57014", "canceling statement due to user request"), "E"
        if "fail" in low or "was_lost" in low:
            return fakes.error("22012", "division by zero"), "E"
        if low in ("begin", "commit", "rollback"):
            return fakes.complete(low.upper()), "T" if low == "begin" else "I"
        if low.startswith("select"):
            return fakes.one_row("1"), tx
        return fakes.complete(sql.split()[0].upper()), tx

    def __call__(self, conn):
        greet(conn)
        tx = "I"
        while True:
            kind, body = conn.read()
            sql = body[:-1].decode()
            self.texts.append(sql)
            if kind == "X" or "die" in sql or "\0last" in sql or ("once" in sql and self.texts.count(sql) == 1):
                return
            if kind != "Q":
                conn.send(conn.answer(kind, body))
                continue
            out, tx = self.answer(conn, sql, tx)
            conn.send(out, b"" if "leave" in sql else fakes.ready(tx))
            if "leave" in sql:
                return


def test_what_a_lost_transaction_set(fake, start_pool):
    """The first answer behind it says what holds, also when its link dies in turn and the read is made again."""
    pool = start_pool(fake(Doomed()).address, num_init_children=1, pool_mode="transaction", health_check_period=0,
                      sr_check_period=0)
    c = login(pool, user="fake")
    for again in ("select 2", "select once"):
        c.simple("begin")
        found = c.simple("set intervalstyle to green")
        assert [m.status() for m in found if m.type == "S"] == [("IntervalStyle", "green")]
        assert states(c.simple("select die")) == ["08006"]
        c.simple("rollback")
        found = c.simple(again)
        assert states(found) == []
        assert [m.status() for m in found if m.type == "S"] == [("IntervalStyle", "postgres")], again
    c.bye()


class InFront(Doomed):
    """A server that has read what was sent behind a string before it answers that, and ends then."""

    def __call__(self, conn):
        greet(conn)
        tx = "I"
        while True:
            kind, body = conn.read()
            sql = body[:-1].decode()
            if kind == "X":
                return
            behind = conn.read() if "; " in sql else None
            for one in sql.split("; "):
                out, after = self.answer(conn, one, tx)
                conn.send(out)
                if "fail" in one:
                    after = "I" if tx == "I" else "E"
                    break
                tx = after
            tx = after
            conn.send(fakes.ready(tx))
            if behind is not None:
                return


@pytest.mark.parametrize("string", ["select 1; select fail; begin", "select 1; select fail; commit"])
def test_a_string_that_failed_and_a_query_behind_it(fake, start_pool, string):
    """Its first statement's tag is none of a word of a transaction behind it, however many queries it has behind itself: no transaction is
    told that there is not, none is taken for committed.
    """
    pool = start_pool(fake(InFront()).address, num_init_children=1, pool_mode="transaction", health_check_period=0,
                      sr_check_period=0)
    c = login(pool, user="fake")
    in_block = "commit" in string
    if in_block:
        c.simple("begin")
        assert ("IntervalStyle", "green") in [m.status() for m in c.simple("set intervalstyle to green") if m.type == "S"]
    c.send(query(string) + query("select 2"))
    found = c.ready(2)
    assert states(found) == ["22012", "08006"]
    assert [m.body for m in found if m.type == "Z"] == ([b"E", b"E"] if in_block else [b"I", b"I"])
    c.simple("rollback")
    found += c.simple("select 3")
    assert not states(found[-1:])
    assert [m.status() for m in found if m.type == "S"] == ([("IntervalStyle", "postgres")] if in_block else [])
    c.bye()


ENDS = {"simple": lambda word: [query(word)],
        "extended": lambda word: [parse(word), bind(), execute(), SYNC],
        "in_front": lambda word: [query(word), query("select 2")]}


def test_rollback_whose_link_dies(fake, start_pool):
    """It is an error like that of anything else, and the transaction a failed one: the next ROLLBACK is done."""
    pool = start_pool(fake(Doomed()).address, num_init_children=1, pool_mode="transaction", health_check_period=0,
                      sr_check_period=0)
    c = login(pool, user="fake")
    for how, messages in ENDS.items():
        for first, word in (("select 1", "rollback"), ("select fail", "rollback"), ("select fail", "commit"), ("select 1", "commit")):
            c.simple("begin")
            c.simple("set intervalstyle to green")
            c.simple(first)
            c.send(*messages(f"{word} /* die */"))
            found = c.ready()
            assert (states(found), found[-1].body) == (["08006"], b"E"), (how, first, word)
            if how == "in_front":
                c.ready()
            found = c.simple("rollback")
            assert (states(found), found[-1].body) == ([], b"I"), (how, first, word)
            assert not states(c.simple("select 2"))
    c.bye()


def test_rollback_whose_link_dies_with_a_session_that_lives_on(fake, start_pool):
    doomed = Doomed()
    server = fake(doomed).address
    pool = start_pool(server, server, num_init_children=1, load_balance_mode=True, health_check_period=0,
                      sr_check_period=0)
    c = login(pool, user="fake")
    for first, word in (("select 1", "rollback"), ("select fail", "rollback"), ("select fail", "commit"), ("select 1", "commit"),
                        ("select 1", "rollback prepared 'x'")):
        c.simple("set work_mem to 9")
        c.simple("begin")
        c.simple("set intervalstyle to green")
        c.simple(first)
        found = c.simple(f"{word} /* die */")
        assert (states(found), found[-1].body) == (["08006"], b"E"), (first, word)
        c.simple("rollback")
        found = c.simple("select 2")
        assert (states(found), found[-1].body) == ([], b"I"), (first, word)
    # Behind a failed statement in one go, and its answer heard: it is over.
    c.simple("begin")
    c.send(query("select fail"), query("rollback /* leave */"))
    assert [(states(found), found[-1].body) for found in (c.ready(), c.ready())] == [(["22012"], b"E"), ([], b"I")]
    # What is in front of another request that is lost: the end of a transaction, and with it what that has set.
    c.simple("begin")
    c.simple("set my.own to kept")
    c.send(query("commit"), query("insert into t values (die)"))
    assert [(states(found), found[-1].body) for found in (c.ready(), c.ready())] == [([], b"I"), (["08006"], b"I")]
    doomed.texts.clear()
    assert states(c.simple("select 2")) == []
    assert any("set my.own to kept" in text for text in doomed.texts)
    c.bye()


WORDS = {"simple": (lambda word: [query(word)], "", ""),
         "extended": (lambda word: [parse(word), bind(), execute(), SYNC], "12", ""),
         "described": (lambda word: [parse(word), bind(), describe("", "P"), execute(), SYNC], "12n", ""),
         "known": (lambda word: [bind(name=f"a {word}"), execute(), SYNC], "2", ""),
         "new": (lambda word: [parse(word, f"b {word}"), bind(name=f"b {word}"), execute(), SYNC], "12", ""),
         "more": (lambda word: [parse(word), bind(), execute(), parse("insert into lost_words values (1)"), bind(),
                                execute(), SYNC], "12", "12C")}


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_commit_of_what_was_lost_before(pg, start_pool, mode):
    """The connection died between two statements: COMMIT is an error, for nothing is committed, and the transaction is over
    with it, as when a server cannot commit. Who rolls back anyhow is not told. What follows an error is skipped.
    """
    pg.rows("drop table if exists lost_words")
    pg.rows("create table lost_words(a int)")
    pool = start_pool(pg.address, pg.address, num_init_children=1, load_balance_mode=True, health_check_period=0,
                      sr_check_period=0, pool_mode=mode)
    c, other = login(pool), login(pool)
    for how, (messages, front, behind) in WORDS.items():
        for word in ("commit", "rollback"):
            if how == "known":
                c.send(parse(word, f"a {word}"), SYNC)
                assert not states(c.ready())
            c.simple("set work_mem = '5MB'")
            c.simple("begin")
            c.simple("set work_mem = '6MB'")
            pid = c.value("select pg_backend_pid()")
            seen = len(pool.log())
            pg.rows(f"select pg_terminate_backend({pid})")
            waits.wait_for("pgpool knows", lambda: "goes on without its" in pool.log()[seen:] or
                           pid not in [r["server_pid"] for r in table(other, "show pool_clients")])
            c.send(*messages(word))
            found = c.ready()
            if word == "commit":
                assert (states(found), found[-1].body) == (["08006"], b"I"), how
                assert "".join(m.type for m in found if m.type != "S") == front + "EZ", how
                (cause,) = [m.fields.get("D", "") for m in found if m.type == "E"]
                assert re.search(r"administrator command|\(node \d\)", cause), "what ended it is told"
            elif how != "more" or not states(found):
                assert (states(found), found[-1].body) == ([], b"I"), how
                assert "".join(m.type for m in found if m.type != "S") == front + "C" + behind + "Z", how
            assert c.value("show work_mem") == "5MB", how
            if how == "new":
                c.send(bind(name=f"b {word}"), close(f"b {word}"), SYNC)
                assert not states(c.ready()), how
    c.bye()
    other.bye()


def test_cancel_meets_what_puts_a_reset_right(fake, start_pool):
    """The transaction fails by it: the client is told so, behind its RESET."""
    pool = start_pool(fake(Doomed()).address, num_init_children=1, pool_mode="transaction", health_check_period=0,
                      sr_check_period=0)
    c = login(pool, user="fake", application_name="cancelled")
    c.simple("begin")
    c.simple("select 1")
    found = c.simple("reset application_name")
    assert [m.type for m in found if m.type != "S"] == ["C", "E", "Z"]
    assert (states(found), found[-1].body) == (["57014"], b"E")
    assert not states(c.simple("rollback"))
    assert not states(c.simple("select 1"))
    c.bye()


def test_cancel_meets_a_statement_that_is_repeated(fake, start_pool):
    """Who names the statement is told; what the client does besides it goes on, on the same link."""
    made: list[str] = []

    def script(conn):
        conn.greet()
        is_there = False
        while True:
            kind, body = conn.read()
            sql = body[:-1].decode()
            if kind == "X" or "leave" in sql:
                return
            if sql.startswith("prepare"):
                made.append(sql)
                is_there = len(made) not in (2, 3)
                out = fakes.complete("PREPARE") if is_there else fakes.error("57014", "canceling statement")
                conn.send(out, fakes.ready())
            elif sql.startswith("execute") and not is_there:
                conn.send(fakes.error("26000", 'prepared statement "q" does not exist'), fakes.ready())
            else:
                conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address, num_init_children=1, pool_mode="transaction", health_check_period=0,
                      sr_check_period=0)
    c = login(pool, user="fake")
    c.simple("prepare q as select 1")
    assert states(c.simple("update t set leave = 1")) == ["08006"]
    c.send(parse("insert into t values (1)"), bind(), execute(), SYNC)
    assert states(c.ready()) == []
    assert len(made) == 2
    links = len(server.links())
    assert states(c.simple("execute q")) == ["57014"]
    assert states(c.simple("execute q")) == []
    assert (len(made), len(server.links())) == (4, links)
    c.bye()


def test_sequence_without_its_sync(pg, start_pool):
    """Session mode: what was executed is not committed before Sync, so the session that lives on is told. It is skipped
    to its Sync then, also when an error of the server's own had been told before.
    """
    pg.rows("drop table if exists lost_rows")
    pg.rows("create table lost_rows(a int)")
    pool = start_pool(pg.address, pg.address, num_init_children=1, load_balance_mode=True, health_check_period=0,
                      sr_check_period=0)
    c = login(pool)
    for number, (sql, told) in enumerate([("insert into lost_rows values (1)", ["57P01"]), ("select 1/0", [])]):
        c.simple("set work_mem = '5MB'")
        c.send(parse(sql), bind(), execute(), FLUSH)
        assert c.read_until("C", "E")[-1].type == ("E" if number else "C")
        pg.rows("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
                "and backend_type = 'client backend' and usename = 'postgres'")
        waits.wait_for("pgpool knows", lambda: pool.log().count("goes on without its server connection") == number + 1)
        c.send(parse("insert into lost_rows values (2)"), bind(), execute(), SYNC)
        found = c.ready()
        assert ([m.type for m in found], states(found), found[-1].body) == (["E", "Z"] if told else ["Z"], told, b"I")
        assert c.value("show work_mem") == "5MB"
        assert pg.rows("select * from lost_rows") == []
    c.bye()


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_query_behind_what_no_sync_has_ended(pg, start_pool, mode):
    """The link dies with all of a sequence answered, and the client is told. Be that the error of a Query, it has an end of its
    own, with a Sync behind it or without; the error of anything else has that of its Sync, be a Query in front of that or not.
    """
    pool = start_pool(pg.address, pg.address, num_init_children=1, load_balance_mode=True, health_check_period=0,
                      sr_check_period=0, pool_mode=mode)
    c = login(pool)
    for behind, ends in [([query("select 1")], 1), ([query("select 1"), SYNC], 2), ([FLUSH, query("select 1"), SYNC], 2),
                         ([SYNC], 1), ([parse("select 1"), query("select 1"), SYNC], 1)]:
        c.send(parse("/*NO LOAD BALANCE*/ select 2"), bind(), execute(), FLUSH)
        assert not states(c.read_until("C"))
        pg.end_sessions("pid <> pg_backend_pid() and backend_type = 'client backend' and usename = 'postgres'")
        assert states(c.read_until("E")) == ["57P01"]
        c.send(*behind)
        assert [[m.type for m in c.ready()] for _ in range(ends)] == [["Z"]] * ends
        assert c.value("select 3") == "3"
    c.bye()


def test_error_right_behind_a_commit(pg, start_pool):
    """What the transaction had set in a way that is not followed holds, and so does the tie to its connection."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=2,
                      pool_test_rotate=True)
    c, other = login(pool), login(pool)
    c.simple("begin")
    c.simple("select set_config('work_mem', '9' || 'MB', false)")
    c.send(parse("commit"), bind(), execute(), SYNC, query("select 1/0"))
    assert [(states(found), found[-1].body) for found in (c.ready(), c.ready())] == [([], b"I"), (["22012"], b"I")]
    assert other.value("show work_mem") == "4MB"
    assert c.value("show work_mem") == "9MB"
    c.bye()
    other.bye()


@pytest.mark.parametrize("sql", ["prepare p as select 'leave'", "deallocate p -- leave"])
def test_prepare_whose_link_dies(fake, start_pool, sql):
    """What the server has said the tag of holds, though its client is told an error: names are in no transaction."""
    doomed = Doomed()
    pool = start_pool(fake(doomed).address, num_init_children=1, pool_mode="transaction", health_check_period=0,
                      sr_check_period=0)
    c = login(pool, user="fake")
    if sql.startswith("deallocate"):
        c.simple("prepare p as select 'kept'")
    c.simple("begin")
    c.simple("select 1")
    assert states(c.simple(sql)) == ["08006"]
    c.simple("rollback")
    doomed.texts.clear()
    c.simple("execute p")
    prepared = [text for text in doomed.texts if text.startswith("prepare p")]
    assert (sql in prepared) if sql.startswith("prepare") else not prepared, doomed.texts
    c.bye()


def test_refused_sequence_whose_link_dies(fake, start_pool):
    """A write met a server that takes none, and whose process ends before ReadyForQuery: it is sent again, and is the
    first of its name there, too.
    """
    refused: list[str] = []
    parsed: list[str] = []

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if kind == "P":
                parsed.append(body.split(b"\0")[1].decode())
            if kind == "E" and not refused:
                refused.append(kind)
                conn.send(fakes.error("25006", "cannot execute INSERT in a read-only transaction"))
                return
            conn.send(conn.answer(kind, body))

    pool = start_pool(fake(script).address, num_init_children=1, pool_mode="transaction", health_check_period=0,
                      sr_check_period=0)
    c = login(pool, user="fake")
    sql = "insert into t values (1)"
    c.send(parse(sql, "s"), bind(name="s"), execute(), SYNC)
    found = c.ready()
    assert (states(found), "".join(m.type for m in found if m.type != "S")) == ([], "12CZ")
    assert (refused, parsed) == (["E"], [sql, sql])
    c.bye()


def test_begin_dies_with_half_a_message_behind_it(fake, start_pool):
    """BEGIN was answered before a server knew of it, and is lost in front of the first statement: that is told so."""
    begun: list[str] = []

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if body == b"begin\0":
                begun.append(kind)
                if len(begun) == 1:
                    return
            conn.send(conn.answer(kind, body))

    server = fake(script)
    pool = start_pool(server.address, num_init_children=1, pool_mode="transaction", health_check_period=0,
                      sr_check_period=0)
    c, other = login(pool, user="fake"), login(pool, user="fake")
    c.simple("begin")
    message = bind(name="s")
    c.send(message[:7])
    waits.wait_for("BEGIN reaches the server", lambda: begun)
    pid = str(server.links()[-1].pid)
    waits.wait_for("pgpool knows", lambda: pid not in [r["server_pid"] for r in table(other, "show pool_clients")])
    c.send(message[7:], execute(), SYNC)
    found = c.ready()
    assert (states(found), found[-1].body) == (["08006"], b"E")
    c.simple("rollback")
    c.bye()
    other.bye()


def test_notification_in_front_of_a_lost_read(fake, start_pool):
    """Session mode: it is no answer, so the read is made again."""
    reads: list[str] = []

    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if b"noticed" in body:
                reads.append(kind)
                if len(reads) == 1:
                    conn.send(fakes.notification(7, "news", "something"))
                    return
            conn.send(conn.answer(kind, body))

    server = fake(script).address
    pool = start_pool(server, server, num_init_children=1, load_balance_mode=True, health_check_period=0,
                      sr_check_period=0)
    c = login(pool, user="fake")
    found = c.simple("/*NO LOAD BALANCE*/ select noticed from t")
    assert (states(found), reads) == ([], ["Q", "Q"])
    assert [m.type for m in found].count("A") == 1
    c.bye()


# ---- is there a transaction that has failed?

SLEEP = "select pg_sleep(60) /* dies */"


def sequence(*sqls: str) -> bytes:
    return b"".join(parse(sql) + bind() + execute() for sql in sqls) + SYNC


@pytest.mark.parametrize("word", ["commit and chain", "rollback and chain"])
@pytest.mark.parametrize("block, status", [(False, b"I"), (True, b"E")], ids=["no_block", "block"])
def test_chain_whose_link_dies(fake, start_pool, word, block, status):
    """AND CHAIN is an error outside of a transaction block, so a sequence with one of them leaves no failed transaction."""
    def script(conn):
        conn.greet()
        for kind, body in conn.messages():
            if kind == "P" and b" and chain" in body:
                return
            conn.send(conn.answer(kind, body))

    pool = start_pool(fake(script).address, num_init_children=1, pool_mode="transaction", health_check_period=0,
                      sr_check_period=0)
    c = login(pool, user="fake")
    if block:
        assert not states(c.simple("begin"))
    c.send(sequence("select 1", word))
    found = c.ready()
    assert ("C" in [m.type for m in found], states(found), found[-1].body) == (True, ["08006"], status)
    c.bye()


@pytest.mark.parametrize("sent, status", [
    ([sequence(SLEEP, "commit")], b"I"), ([sequence("set my.own = 'x'", SLEEP, "rollback")], b"I"),
    ([query(f"{SLEEP}; commit")], b"I"), ([query("select 1/0; begin"), sequence(SLEEP)], b"I"),
    ([query("begin"), sequence("select 1", "commit", SLEEP)], b"I"), ([sequence("select 1/0"), sequence("commit", SLEEP)], b"I"),
    ([sequence(SLEEP, "begin")], b"I"), ([query("select 1/0; begin"), sequence("begin", SLEEP)], b"E")],
    ids=["commit", "rollback", "string", "begun_in_vain", "committed", "skipped", "behind", "begins_again"])
def test_status_of_what_died(pg, start_pool, sent, status):
    """An end of a transaction that was on its way, or a BEGIN that an error kept from happening, makes none, be it the error of
    what died in front of it; a BEGIN that is on its way does, for what was sent behind it."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1)
    c = login(pool)
    c.send(*sent)
    pid = waits.wait_for("it sleeps", lambda: pg.sessions("wait_event = 'PgSleep' and query like '%dies%'"))[0]
    pg.rows(f"select pg_terminate_backend({pid})")
    found = c.ready(len(sent))
    assert states(found)[-1] == "57P01"
    assert found[-1].body == status
    if status == b"E":
        assert states(c.simple("select 1")) == ["25P02"]
        assert not states(c.simple("rollback"))
    assert c.value("select 1") == "1"
    c.bye()
