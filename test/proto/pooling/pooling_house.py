# SPDX-License-Identifier: PostgreSQL
"""pooling_house: what the tests of pooling share.

A scenario runs in session mode and in transaction mode; in the latter pgpool is told never to give a
client the link of its last transaction (pool_test_rotate), and the noise of the harness has left the state
of other clients on the links.
"""
import pytest

from pgt.wire import SYNC, Wire, pg

MODES = pytest.mark.parametrize("pool_mode", ["session", "transaction"])
BY = pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])

# A custom setting that was never set is NULL in a session, but '' for ever once anybody has set and reset it
# on that connection; PostgreSQL has no way to take the name back. So both count as the same here.
OWN = "coalesce(current_setting('my.own', true), '') as own"
SEEN = ("work_mem", "search_path", "TimeZone", "DateStyle", "IntervalStyle", "application_name", "client_encoding",
        "statement_timeout", "lock_timeout", "extra_float_digits", "bytea_output", "standard_conforming_strings",
        "default_transaction_isolation", "default_transaction_read_only", "transaction_isolation",
        "transaction_read_only", "client_min_messages")
LOOK = (f"select current_user as u, session_user as su, current_setting('role') as r, {OWN}, "
        + ", ".join(f"current_setting('{name}') as {name.lower()}" for name in SEEN))


def run(c, sql: str, extended: bool = False) -> None:
    """One recorded exchange."""
    if extended:
        c.send(pg(sql), SYNC)
        c.ready()
    else:
        c.simple(sql)


def look(c, times: int = 2, extended: bool = False) -> None:
    """What the session sees, on one link and on the next."""
    for _ in range(times):
        run(c, LOOK, extended)


def login(pool, seconds: float = 20, **params) -> Wire:
    """A raw client that is logged in."""
    w = Wire(pool.address, seconds=seconds)
    found = w.login(**params)
    assert found[-1].type == "Z", found[-1].fields
    return w


def states(messages) -> list[str]:
    """SQLSTATEs of the errors among messages."""
    return [m.sqlstate for m in messages if m.type == "E"]


def table(w: Wire, sql: str) -> list[dict[str, str]]:
    """Rows of a SHOW or PGPOOL command by column name."""
    names: list[str] = []
    rows = []
    for m in w.simple(sql):
        assert m.type != "E", m.fields
        if m.type == "T":
            names = _columns(m.body)
        elif m.type == "D":
            rows.append({n: "" if v is None else v.decode() for n, v in zip(names, m.row())})
    return rows


def _columns(body: bytes) -> list[str]:
    names = []
    at = 2
    for _ in range(int.from_bytes(body[:2], "big")):
        end = body.index(b"\0", at)
        names.append(body[at:end].decode())
        at = end + 19
    return names
