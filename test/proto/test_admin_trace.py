# SPDX-License-Identifier: PostgreSQL
"""test_admin_trace: messages of the protocol in the log and notices: log_client_messages, log_backend_messages,
notice_per_node_statement, client_min_messages."""
import re

import pytest

from pgt import waits
from pgt.wire import FLUSH, SYNC, bind, cancel, close, copy_data, describe, execute, function_call, message, parse, query

from test_admin_orders import login

MODES = ["session", "transaction"]


def lines(pool, what: str) -> list[str]:
    """Messages of the log that match, with their DETAIL behind them."""
    found = []
    for line in pool.log().splitlines():
        kind, _, text = line.partition("LOG:  ")
        if text and re.search(what, text):
            found.append(text)
        elif found and "DETAIL:  " in line and "|" not in found[-1]:
            found[-1] += "|" + line.partition("DETAIL:  ")[2]
    return found


@pytest.mark.parametrize("mode", MODES)
def test_client_messages(pg, start_pool, mode):
    pool = start_pool(pg.address, num_init_children=1, log_client_messages=True, pool_mode=mode)
    w = login(pool)
    w.simple("select 'one'")
    w.send(parse("select $1", "s1", [25]), bind(["x"], "p1", "s1"), describe("p1", "P"), execute("p1"),
           close("p1", "P"), describe("s1", "S"), FLUSH, SYNC)
    w.ready()
    w.simple("show pool_version")
    w.bye()
    waits.wait_for("the goodbye is logged", lambda: lines(pool, "Terminate message"))
    assert lines(pool, "message from frontend") == [
        "Query message from frontend.|query: \"select 'one'\"",
        'Parse message from frontend.|statement: "s1", query: "select $1"',
        'Bind message from frontend.|portal: "p1", statement: "s1"',
        'Describe message from frontend.|portal: "p1"',
        'Execute message from frontend.|portal: "p1"',
        'Close message from frontend.|portal: "p1"',
        'Describe message from frontend.|statement: "s1"',
        "Flush message from frontend.",
        "Sync message from frontend.",
        'Query message from frontend.|query: "show pool_version"',
        "Terminate message from frontend."]


def test_client_messages_are_logged_once(pg, start_pool):
    """Also when the client had to wait for a connection, and what comes in pieces."""
    pool = start_pool(pg.address, num_init_children=1, pool_mode="transaction", max_backend_connections=1)
    w, busy = login(pool), login(pool)
    w.simple("pgpool set log_client_messages = on")
    busy.simple("begin")
    busy.simple("select 1")
    for byte in query("select 'waited'"):
        w.send(bytes([byte]))
    assert w.is_quiet(0.5)
    busy.simple("commit")
    w.ready()
    assert lines(pool, "message from frontend") == ["Query message from frontend.|query: \"select 'waited'\""]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("detail", ["verbose", "terse"])
def test_backend_messages(pg, start_pool, mode, detail):
    pool = start_pool(pg.address, num_init_children=1, log_backend_messages=detail, pool_mode=mode)
    w = login(pool)
    w.simple("select repeat('x', 100000) from generate_series(1, 4)")
    w.send(parse("select 1"), bind(), execute(), SYNC)
    w.ready()
    w.simple("select 1/0")
    rows = ["DataRow message from backend 0"]
    rows = rows * 4 if detail == "verbose" else rows + ["last DataRow message from backend 0 repeated 3 times"]
    expected = (["RowDescription message from backend 0"] + rows +
                [f"{m} message from backend 0" for m in (
                    "CommandComplete", "ReadyForQuery", "ParseComplete", "BindComplete", "DataRow", "CommandComplete",
                    "ReadyForQuery", "ErrorResponse", "ReadyForQuery")])
    assert lines(pool, "message from backend") == expected
    found = w.simple("pgpool set log_backend_messages = none")
    assert [m.type for m in found] == ["C", "Z"], [m.fields for m in found]
    w.simple("select 2")
    assert lines(pool, "message from backend") == expected


@pytest.mark.parametrize("mode", MODES)
def test_notice_per_node(pg, start_pool, mode):
    pool = start_pool(pg.address, num_init_children=1, pool_mode=mode)
    w = login(pool)
    w.simple("pgpool set notice_per_node_statement = on")
    found = w.simple("select 'noticed'")
    assert [m.type for m in found] == ["N", "T", "D", "C", "Z"]
    assert found[0].fields["S"] == "NOTICE" and found[0].text == "DB node id: 0 statement: select 'noticed'"
    w.send(parse("select 2"), bind(), execute(), SYNC)
    notices = [m.text for m in w.ready() if m.type == "N"]
    assert notices == [f"DB node id: 0 statement: {m}: select 2" for m in ("Parse", "Bind", "Execute")]
    w.simple("pgpool set client_min_messages = warning")
    assert [m.type for m in w.simple("select 'hidden'")] == ["T", "D", "C", "Z"]


def test_server_notices_are_untouched(pg, start_pool):
    """client_min_messages is about what pgpool says, not about the server's notices."""
    pool = start_pool(pg.address, num_init_children=1, client_min_messages="error")
    w = login(pool)
    assert [m.type for m in w.simple("do $$ begin raise notice 'from the server'; end $$")] == ["N", "C", "Z"]


def test_unknown_message_is_named(pg, start_pool):
    pool = start_pool(pg.address, num_init_children=1, log_client_messages=True)
    w = login(pool)
    w.send(message("Q", b"select 1"))  # without its NUL: the server's to refuse
    w.read_until("E", "Z")
    assert lines(pool, "Query message")


@pytest.mark.parametrize("mode", MODES)
def test_copy_calls_and_cancels_of_clients(pg, start_pool, mode):
    """A COPY is one line with a count, a function call tells which, and a cancel request is a message, too."""
    pool = start_pool(pg.address, num_init_children=1, log_client_messages=True, pool_mode=mode)
    w = login(pool)
    w.rows("create temporary table copied (n int)")
    w.send(query("copy copied from stdin"))
    w.read_until("G")
    w.send(copy_data(b"1\n") + copy_data(b"2\n") + copy_data(b"3\n") + message("c", b""))
    w.ready()
    oid = int(w.value("select 'pg_catalog.abs(int4)'::regprocedure::oid"))
    w.send(function_call(oid, [(-7 & 0xffffffff).to_bytes(4, "big")]))
    w.ready()
    cancel(pool.address, 12345, b"1234")
    waits.wait_for("the cancel", lambda: lines(pool, "Cancel message"))
    assert lines(pool, "Cancel message") == ["Cancel message from frontend.|process id: 12345"]
    assert lines(pool, "CopyData message") == ["CopyData message from frontend.|count: 3"]
    assert lines(pool, "FunctionCall message") == [f"FunctionCall message from frontend.|oid: {oid}"]


def test_lines_of_the_log_reach_a_client_that_wants_them(pg, start_pool):
    pool = start_pool(pg.address, num_init_children=1, log_statement=True, log_per_node_statement=True)
    w = login(pool)
    assert "N" not in [m.type for m in w.simple("select 1")], "by default it does not"
    w.simple("pgpool set client_min_messages = 'log'")
    told = [(m.fields["S"], m.fields["M"]) for m in w.simple("select 2") if m.type == "N"]
    assert [s for s, _ in told] == ["LOG", "LOG"]
    assert told[0][1] == "statement: select 2" and re.fullmatch(r"DB node id: 0 backend pid: \d+ statement: select 2", told[1][1])
