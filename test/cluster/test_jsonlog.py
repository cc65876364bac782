# SPDX-License-Identifier: PostgreSQL
"""test_jsonlog: the whole log of a pgpool with errors, slow statements and a failover is JSON, a line an object, with PostgreSQL's names and
ours: client, server, fingerprint as in SHOW POOL_STATEMENTS, and the trace that a library has put into a comment (sqlcommenter)."""
import json
import signal

import pytest

from pgt import waits
from pgt.trio import Trio
from pgt.wire import SYNC, Wire, bind, execute, parse

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
COMMENT = f"/*db_driver='x',route='%2Fcart',traceparent='00-{TRACE}-{SPAN}-01'*/"
KINDS = {"timestamp": str, "pid": int, "line_num": int, "ps": str, "backend_type": str, "user": str, "dbname": str, "application_name": str,
         "remote_host": str, "remote_port": int, "client_id": int, "node": int, "server_pid": int, "fingerprint": str, "trace_id": str,
         "span_id": str, "error_severity": str, "state_code": str, "message": str, "detail": str, "hint": str, "func_name": str,
         "file_name": str, "file_line_num": int, "suppressed": int}


@pytest.fixture
def trio():
    one = Trio(0)
    yield one
    one.stop()


def events_of(text: str) -> list[dict]:
    """Every line is an object with fields that are known, each of its kind; the last one may still be being written."""
    events = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]
    for event in events:
        assert {"timestamp", "pid", "line_num", "error_severity", "state_code", "message"} <= set(event), event
        assert all(isinstance(value, KINDS[name]) and value != "" for name, value in event.items() if name != "message"), event
    return events


def said(events: list[dict], text: str) -> list[dict]:
    return [e for e in events if text in e["message"]]


def run_statements(w: Wire) -> None:
    """Slow ones of each kind, and a wrong one."""
    w.simple(f"select pg_sleep(0.05), 'é \x01 \"' {COMMENT}")
    w.simple("select pg_sleep(0.06);")
    w.send(parse(f"select pg_sleep($1) as three /* of driver's */ {COMMENT}"), bind([b"0.07"]), execute(), SYNC)
    w.ready()
    w.send(parse("select pg_sleep($1) as four", "kept") + SYNC)
    w.ready()
    w.send(bind([b"0.05"], name="kept"), execute(), SYNC)
    w.ready()
    w.simple("select nope" + COMMENT)


def settings(mode: str) -> dict[str, object]:
    return {"log_destination": "jsonlog", "log_min_duration_statement": "40ms", "log_statement": True, "log_per_node_statement": True,
            "log_connections": True, "log_disconnections": True, "log_error_verbosity": "verbose", "log_min_messages": "info",
            "pool_mode": mode, "health_check_user": "postgres", "sr_check_user": "postgres", "health_check_period": 1, "sr_check_period": 1,
            "health_check_max_retries": 0, "auto_promote": True, "num_init_children": 2, "load_balance_mode": False}


def speak(pool) -> dict[str, str]:
    """Returns the fingerprints of the statements."""
    with Wire(pool.address, seconds=30) as w:
        assert w.login(application_name='a "b" \\ c')[-1].type == "Z"
        run_statements(w)
        return {r[-1].decode(): r[0].decode() for r in w.rows("show pool_statements")}


def check(events: list[dict], fingerprints: dict[str, str]) -> None:
    slow = said(events, "duration: ")
    for text, traced in zip(("select pg_sleep($1), $2", "select pg_sleep($1)", "select pg_sleep($1) as three", "select pg_sleep($1) as four"),
                                   (True, False, True, False)):
        event = next(e for e in slow if e.get("fingerprint") == fingerprints[text] and e["message"].count("pg_sleep"))
        assert (event.get("trace_id"), event.get("span_id")) == ((TRACE, SPAN) if traced else (None, None)), event
        assert (event["user"], event["dbname"], event["remote_host"], event["node"]) == ("postgres", "postgres", "127.0.0.1", 0)
        assert event["application_name"] == 'a "b" \\ c' and event["client_id"] > 0 and event["server_pid"] > 0
        assert "waited for a server connection" in event["detail"] and event["func_name"] == "lines_duration"
    for head in ("statement: select nope", "DB node id: 0 backend pid: "):
        wrong = [e for e in said(events, head) if "nope" in e["message"]]
        assert wrong and all(e["fingerprint"] == fingerprints["select nope"] and e["trace_id"] == TRACE for e in wrong), wrong
    assert said(events, "new connection received")[0]["error_severity"] == "LOG"
    for pid in {e["pid"] for e in events}:
        numbers = [e["line_num"] for e in events if e["pid"] == pid]
        assert numbers == sorted(set(numbers)), pid


def test_statements_of_a_session(pg, start_pool):
    pool = start_pool(pg.address, **settings("session"))
    fingerprints = speak(pool)
    check(waits.wait_for("it has left", lambda: (lambda e: e if said(e, "frontend disconnection") else None)(events_of(pool.log()))), fingerprints)


def test_a_day(start_pool, trio):
    """With a refused login, a reload, a mistake in the settings, and a primary that is lost."""
    pool = start_pool(*[n.address for n in trio.nodes], **settings("transaction"))
    fingerprints = speak(pool)
    with Wire(pool.address, seconds=30) as w:
        w.login(database="no such\nplace")
    pool.reload(**{**settings("transaction"), "log_min_duration_statement": "30ms"})
    waits.wait_for("the settings are read", lambda: '"log_min_duration_statement\\" changed' in pool.log())
    pool.write_conf(**{**settings("transaction"), "max_clients": "nonsense"})
    pool.daemon.signal(signal.SIGHUP)
    waits.wait_for("the mistake is told", lambda: "generation 2 stays in use" in pool.log())
    trio.primary.stop(signal.SIGKILL)
    waits.wait_for("another primary is found", lambda: any("primary node is" in e["message"] and "primary node is 0" not in e["message"]
                                                           for e in events_of(pool.log())), 60)
    events = events_of(pool.log())
    check(events, fingerprints)
    assert any("nonsense" in e["message"] and e["error_severity"] == "ERROR" and e["hint"] for e in events)
    assert any(f"port {trio.primary.port}" in e.get("detail", "") for e in events), "why it is lost"
    assert said(events, "no such\nplace"), "a name with a line break stays within its line"
