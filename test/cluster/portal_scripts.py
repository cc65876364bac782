# SPDX-License-Identifier: PostgreSQL
"""portal_scripts: what clients do with portals in transactions, message by message, for test_balance_tx: tables t and w."""
from pgt.wire import SYNC, bind, close, describe, execute, parse

FOUR = "select generate_series(1, 4) from t"
AT = "select inet_server_port() from t, generate_series(1, 4)"
WRITE = parse("insert into w values (50, 'with portals')") + bind() + execute()


def bound(sql: str, portal: str = "", limit: int = 2) -> bytes:
    return parse(sql) + bind(portal=portal) + execute(portal, limit)


def portal_scripts() -> list[list]:
    """Messages up to a Sync, or a text: what is gone on with, closed, bound anew and forgotten in transactions."""
    go, c1, c2 = execute(limit=2), execute("c1", 2), execute("c2", 2)
    return [
        ["begin", bound(FOUR), go, go, go, "commit", go],
        ["begin", bound(FOUR, "c1", 1), bound(FOUR, "c2", 3), c1, c2, describe("c1", "P") + c1, close("c1", "P"), c1],
        ["begin", bound(FOUR, "c1"), bound(FOUR, "c1")],
        ["begin", bound(FOUR, "c1"), close("c1", "P") + bound(FOUR, "c1", 3), c1, "commit", c1],
        ["begin", bound(FOUR, "c1"), WRITE, c1, "select count(*) from w where id = 50", c1, "rollback"],
        ["begin", bound(FOUR, "c1"), c1 + WRITE, close("c1", "P") + WRITE, c1],
        ["begin", bound(FOUR, "c1"), parse(FOUR) + bind() + execute() + c1 + WRITE, "commit"],
        ["begin", bound(FOUR, "c1"), close("c2", "P") + describe("c1", "P") + c1 + describe("c2", "P"), "rollback"],
        ["begin", WRITE, bound(FOUR, "c2"), close("c2", "P") + bound(FOUR, "c2"), "rollback"],
        ["begin", bound(FOUR), WRITE + SYNC + parse(FOUR) + SYNC + bind() + execute(limit=1), go, "rollback"],
        ["begin", bound(FOUR), "select 1", go],
        ["begin", bound(FOUR), WRITE, go, "rollback"],
        ["begin", bound(FOUR), parse(FOUR) + bind() + execute()],
        ["begin", bound(FOUR, "c1"), "fetch 1 from c1", "move c1", "fetch all c1", "close c1", c1],
        ["begin", bound(FOUR, "c1"), "close all", c1],
        ["begin", bound(FOUR, "c1"), parse("fetch c1") + bind() + execute(), "commit and chain", c1],
        ["begin", "savepoint a", bound(FOUR, "c1"), "rollback to a", bound(FOUR, "c1"), "commit"],
        ["begin", bound(FOUR, "c1"), "savepoint a", "select 1 / (a - 7) from t", "rollback to a", c1, "commit"],
        ["begin", bound("select 1 / (2 - g) from t, generate_series(1, 4) g", "c1", 1), c1, WRITE, "commit"],
        ["begin", bound(FOUR, "c1"), c1 + parse("select 1 / (a - 7) from t") + bind() + execute(), "commit"],
        ["begin", bound("select 1 / (2 - g) from t, generate_series(1, 4) g", "c1", 1), c1 + WRITE, c1, "rollback"],
        ["begin", bound(FOUR, "c1"), "insert into no_such values (1)", "fetch c1", "rollback", c1],
        ["begin read only", bound(FOUR, "c1"), c1, "commit", c1],
        [bound(FOUR, "c1"), c1],
    ]


def told(wire, steps: list) -> list:
    out = []
    for step in steps:
        found = wire.simple(step) if isinstance(step, str) else wire.send(step + SYNC) or \
            wire.ready(step.count(SYNC) + 1)
        out.append([(m.type, m.fields["C"] if m.type == "E" else m.body) for m in found])
    wire.simple("rollback")
    return out
