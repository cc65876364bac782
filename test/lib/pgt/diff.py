# SPDX-License-Identifier: PostgreSQL
"""diff: the oracle. A scenario runs directly against PostgreSQL and through the proxy; what each
connection received must be the same, message by message.

A scenario is a function of a Trace:

    @differential()
    def test_flush(t):
        c = t.connect("c1")
        c.send(parse("select 1"), describe(), FLUSH)
        c.until("T")
        c.send(SYNC)
        c.ready()

Reads say what they wait for (a ReadyForQuery, a message type, the end of file); what the direct run
needed less than a moment for, the other run gets 20 s for, and then a line TIMEOUT ends its transcript.
"""
import difflib
import inspect
from typing import Callable

import pytest

from pgt import normal, postgres, waits
from pgt.postgres import Postgres
from pgt.wire import PROTO_3_0, Address, Msg, Wire, WireClosed, WireTimeout, cancel


# What statement mode says instead of beginning a transaction block.
REFUSAL = ("08P01", "transaction blocks not allowed in statement pooling mode")


class ScenarioOver(Exception):
    """A read failed: the transcript says how."""


class Refused(ScenarioOver):
    """A transaction block met statement mode: what comes behind it would be another scenario."""


class Conn:
    """A connection whose received messages are recorded."""

    def __init__(self, trace: "Trace", name: str):
        self.trace = trace
        self.name = name
        self.lines: list[str] = []
        self.wire = Wire(trace.address, chunk=trace.chunk, seconds=trace.seconds)

    def _record(self, msg: Msg) -> Msg:
        if msg.type == "K":
            self.trace.normal.learn(self.name, self.wire.pid)
        if self.trace.no_blocks and msg.type == "E" and (msg.sqlstate, msg.text) == REFUSAL:
            self.trace.refused = self.name
            raise Refused(f"{self.name}: {msg.text}")
        self.lines.append(self.trace.normal.line(msg))
        return msg

    def _read(self) -> Msg:
        try:
            return self._record(self.wire.read())
        except WireTimeout as e:
            self.lines.append("TIMEOUT: nothing more arrives")
            raise ScenarioOver(f"{self.name}: {e}") from e
        except WireClosed as e:
            self.lines.append("END OF FILE")
            raise ScenarioOver(f"{self.name}: {e}") from e

    def login(self, user: str = "postgres", database: str = "postgres", password: str = "",
              version: int = PROTO_3_0, **params: str) -> list[Msg]:
        try:
            found = self.wire.login(user, database, password, version, **params)
        except (WireTimeout, WireClosed) as e:
            self.lines.append(f"LOGIN FAILED: {type(e).__name__}")
            raise ScenarioOver(f"{self.name}: {e}") from e
        for msg in found:
            self._record(msg)
        return found

    def send(self, *parts: bytes) -> None:
        """What the peer said before it closed decides, not when a piece could not be sent."""
        try:
            self.wire.send(*parts)
        except WireClosed:
            pass
        except WireTimeout as e:
            self.lines.append("CANNOT SEND: the peer takes no more bytes")
            raise ScenarioOver(str(e)) from e

    def until(self, *kinds: str) -> list[Msg]:
        found = [self._read()]
        while found[-1].type not in kinds:
            found.append(self._read())
        return found

    def ready(self, count: int = 1) -> list[Msg]:
        return [m for _ in range(count) for m in self.until("Z")]

    def simple(self, sql: str) -> list[Msg]:
        from pgt.wire import query
        self.send(query(sql))
        return self.ready()

    def eof(self) -> None:
        """Records everything up to the end of file."""
        try:
            while True:
                self._record(self.wire.read())
        except WireClosed:
            self.lines.append("END OF FILE")
        except WireTimeout as e:
            self.lines.append("TIMEOUT: the connection stays open")
            raise ScenarioOver(str(e)) from e

    def settle(self) -> None:
        """Reads to the end of a marker query's reply, or to the end of file: for messages after which
        nobody can say how many ReadyForQuery come."""
        from pgt.wire import query
        self.send(query("select 'the marker'"))
        try:
            while "'the marker'" not in self.lines[-1]:
                self._record(self.wire.read())
            while not self.lines[-1].startswith("Z"):
                self._record(self.wire.read())
        except WireClosed:
            self.lines.append("END OF FILE")
        except WireTimeout as e:
            self.lines.append("TIMEOUT: nothing more arrives")
            raise ScenarioOver(str(e)) from e

    def quiet(self, seconds: float = 0.3) -> None:
        """Records whether anything arrives unasked within so long."""
        self.note("quiet" if self.wire.is_quiet(seconds) else "NOT QUIET")

    def note(self, text: str) -> None:
        self.lines.append(f"# {text}")

    def end(self) -> None:
        """Terminate, then whatever still arrives."""
        from pgt.wire import TERMINATE
        self.send(TERMINATE)
        self.eof()


class Trace:
    """One run of a scenario against one target."""

    def __init__(self, pg: Postgres, address: Address, chunk: int, seconds: float, moves: bool = False,
                 no_blocks: bool = False):
        self.pg = pg
        self.no_blocks = no_blocks
        self.refused = ""  # the connection that was
        self.behind: list[str] = []
        self.address = address
        self.chunk = chunk
        self.seconds = seconds
        self.normal = normal.Normalizer(moves)
        self.conns: dict[str, Conn] = {}
        self.over = ""

    def open(self, name: str = "c1") -> Conn:
        """A connection without startup."""
        self.conns[name] = Conn(self, name)
        return self.conns[name]

    def connect(self, name: str = "c1", **login: str) -> Conn:
        conn = self.open(name)
        conn.login(**login)
        return conn

    def direct(self, sql: str) -> list[list[bytes | None]]:
        """SQL at the server itself, not recorded."""
        return self.pg.rows(sql)

    def cut(self, name: str) -> None:
        """The connection vanishes without a goodbye; what it received so far stays in the transcript."""
        self.conns[name].wire.reset()

    def process_of(self, conn: Conn) -> str:
        """SQL: pid is that of the server process which works for the connection. Where a session has none
        of its own: of any process that works for somebody."""
        if not self.normal.moves:
            return f"pid = {conn.wire.pid}"
        return ("pid in (select pid from pg_stat_activity where backend_type = 'client backend' "
                "and state <> 'idle' and pid <> pg_backend_pid())")

    def wait_sql(self, sql: str) -> None:
        """Waits until a query at the server itself yields true."""
        waits.wait_for(sql, lambda: self.pg.value(sql) == "t")

    def cancel(self, conn: Conn) -> None:
        answer = cancel(self.address, conn.wire.pid, conn.wire.key)
        conn.note(f"cancel answered {answer!r}")

    def finish(self) -> None:
        if self.refused:
            self.behind = self.after_refusal()
        for conn in self.conns.values():
            if not self.over and not conn.wire.eof and conn.wire.sock.fileno() >= 0:
                try:
                    conn.end()
                except ScenarioOver as e:
                    self.over = str(e)
            conn.wire.bye()

    def after_refusal(self) -> list[str]:
        """The refused session is over: what it then receives."""
        conn = self.conns[self.refused]
        return [self.normal.line(msg) for msg in conn.wire.read_eof()]

    def transcript(self) -> dict[str, list[str]]:
        tells_at_once = postgres.major() < 14
        return {name: normal.sort_status(normal.sort_login(normal.tell_at_the_end(c.lines) if tells_at_once else c.lines))
                for name, c in self.conns.items()}


class Oracle:
    """Runs scenarios against both targets and compares. `moves`: a session has no server process of its
    own (see Normalizer); `before` runs before each run through the proxy; `no_blocks`: that has to refuse
    transaction blocks, and must be the same up to there."""

    def __init__(self, pg: Postgres, via: Address, moves: bool = False,
                 before: Callable[[], None] | None = None, no_blocks: bool = False):
        self.pg = pg
        self.no_blocks = no_blocks
        self.via = via
        self.moves = moves
        self.before = before

    def run(self, scenario: Callable, address: Address, chunk: int, seconds: float, no_blocks: bool = False) -> Trace:
        trace = Trace(self.pg, address, chunk, seconds, self.moves, no_blocks)
        try:
            scenario(trace)
        except ScenarioOver as e:
            trace.over = str(e)
        finally:
            trace.finish()
        return trace

    def check(self, scenario: Callable, chunk: int = 0) -> None:
        direct = self.run(scenario, self.pg.address, 0, 20)
        assert not direct.over, f"the scenario itself is wrong, direct run: {direct.over}\n{show(direct)}"
        if self.before is not None:
            self.before()
        through = self.run(scenario, self.via, chunk, 20, self.no_blocks)
        if through.refused:
            wrong = compare_refused(direct, through)
            if wrong:
                pytest.fail(f"not as statement mode has to be: {wrong}", pytrace=False)
            return
        if self.no_blocks and any(in_block(line) for lines in through.transcript().values() for line in lines):
            pytest.fail(f"a transaction block was not refused:\n{show(through)}", pytrace=False)
        difference = compare(direct.transcript(), through.transcript())
        if difference or through.over:
            pytest.fail(f"not the same as PostgreSQL ({through.over}):\n{difference}", pytrace=False)


def show(trace: Trace) -> str:
    return "\n".join(f"-- {name}\n" + "\n".join(lines) for name, lines in trace.transcript().items())


def are_same(a: list[str], b: list[str]) -> bool:
    return len(a) == len(b) and all(map(normal.is_same, a, b))


def compare(direct: dict[str, list[str]], through: dict[str, list[str]]) -> str:
    """A readable difference; empty when the same."""
    out = []
    for name in direct:
        a, b = direct[name], through.get(name, [])
        if not are_same(a, b):
            out += list(difflib.unified_diff(a, b, f"{name} direct", f"{name} through", n=4, lineterm=""))
    return "\n".join(out)


def in_block(line: str) -> bool:
    return line in ("Z ReadyForQuery T", "Z ReadyForQuery E")


def begins_block(lines: list[str]) -> bool:
    """True when a transaction block begins in the exchange at the front of what the server itself said."""
    for line in lines:
        if line in ("C CommandComplete BEGIN", "C CommandComplete START TRANSACTION"):
            return True
        if line.startswith("Z "):
            return line[-1] != "I"
    return False


def compare_refused(direct: Trace, through: Trace) -> str:
    """What is wrong with a refusal; empty when nothing is: the same up to there, for each connection; the
    server would have begun a block; and the session ends."""
    a, b = direct.transcript(), through.transcript()
    for name, lines in b.items():
        if not are_same(a.get(name, [])[:len(lines)], lines):
            return f"another reply in front of it\n{compare({name: a.get(name, [])[:len(lines)]}, b)}"
        if any(in_block(line) for line in lines):
            return f"{name} was told of a transaction\n" + "\n".join(lines)
    rest = a[through.refused][len(b[through.refused]):]
    if not begins_block(rest):
        return "no transaction block was refused; the server says\n" + "\n".join(rest[:8])
    if through.behind:
        return "the session does not end\n" + "\n".join(through.behind)
    return ""


WHOLE, BYTES = 0, 1


def differential(chunks: tuple[int, ...] = (WHOLE, BYTES)) -> Callable:
    """Makes a pytest test of a scenario, run once with whole writes and once byte by byte. Other
    arguments of the scenario are pytest parameters or fixtures as usual."""
    def decorate(scenario: Callable) -> Callable:
        params = list(inspect.signature(scenario).parameters)[1:]

        def test(oracle, chunk, **kwargs):
            oracle.check(lambda trace: scenario(trace, **kwargs), chunk)

        names = ["oracle", "chunk", *params]
        test.__signature__ = inspect.Signature(
            [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in names])
        test.__name__ = scenario.__name__
        test.__doc__ = scenario.__doc__
        test.__module__ = scenario.__module__
        test.pytestmark = [*getattr(scenario, "pytestmark", []), pytest.mark.oracle]
        ids = [{WHOLE: "whole", BYTES: "bytes"}.get(c, f"by{c}") for c in chunks]
        return pytest.mark.parametrize("chunk", chunks, ids=ids)(test)
    return decorate
