# SPDX-License-Identifier: PostgreSQL
"""normal: messages as comparable lines of text, with what may differ between two runs taken out.

Taken out: process ids (named after the connection they belong to), cancel keys (their length stays),
salts and nonces, oids of things made in the run, names of temporary schemas, source file and line of
an error, pgpool-II's DETAIL of what a failed transaction refuses, where a cancel met its statement, and the order of ParameterStatus messages that stand together or belong to a login.
"""
import hashlib
import itertools
import re
import struct

from pgt.wire import Msg

FIRST_USER_OID = 16384
TEMP_SCHEMA = re.compile(r"pg_(toast_)?temp_\d+")
LOCATION = ("F", "L", "R")
NOT_TEXT = ("C", "P", "p")  # an SQLSTATE or a position may be somebody's process id by chance


class Line(str):
    """A message as text."""
    msg: Msg | None = None
    moves = False

    def raw(self) -> str:
        """With the numbers that were taken for process ids: any number may be somebody's by chance."""
        return self if self.msg is None else Normalizer(self.moves).text_of(self.msg)


def is_same(one: str, other: str) -> bool:
    return one == other or (isinstance(one, Line) and isinstance(other, Line) and one.raw() == other.raw())


class Normalizer:
    """One per run: learns process ids from BackendKeyData as they pass. With `moves` a session has no
    server process of its own: its pid is only a name for cancel requests, and the sender of a notification
    is any process."""

    def __init__(self, moves: bool = False) -> None:
        self.pids: dict[int, str] = {}
        self.moves = moves

    def learn(self, name: str, pid: int) -> None:
        self.pids[pid] = f"<pid of {name}>"

    def text(self, value: str) -> str:
        value = TEMP_SCHEMA.sub(lambda m: f"pg_{m.group(1) or ''}temp_N", value)
        return re.sub(r"\b\d+\b", lambda m: self.pids.get(int(m.group(0)), m.group(0)), value)

    def value(self, raw: bytes | None) -> str:
        if raw is None:
            return "NULL"
        if len(raw) > 200:
            return f"<{len(raw)} bytes {hashlib.sha256(raw).hexdigest()[:12]}>"
        text = raw.decode("latin-1")
        if text.isdigit() and int(text) in self.pids:
            return self.pids[int(text)]
        return repr(text)

    def line(self, msg: Msg) -> Line:
        line = Line(self.text_of(msg))
        line.msg, line.moves = msg, self.moves
        return line

    def text_of(self, msg: Msg) -> str:
        render = RENDER.get(msg.type)
        name = NAMES.get(msg.type, "unknown")
        detail = render(self, msg) if render else (repr(msg.body) if msg.body else "")
        return f"{msg.type} {name} {detail}".rstrip()


def _oid(value: int) -> str:
    return "<oid>" if value >= FIRST_USER_OID else str(value)


def _authentication(_n: Normalizer, msg: Msg) -> str:
    code = struct.unpack_from("!I", msg.body)[0]
    if code == 10:
        return f"SASL {msg.body[4:]!r}"
    return {5: "md5", 11: "SASL continue", 12: "SASL final"}.get(code, str(code))


def _row_description(_n: Normalizer, msg: Msg) -> str:
    count = struct.unpack_from("!H", msg.body)[0]
    at = 2
    parts = []
    for _ in range(count):
        end = msg.body.index(b"\0", at)
        table, attnum, oid, size, mod, fmt = struct.unpack_from("!IHIhih", msg.body, end + 1)
        parts.append(f"{msg.body[at:end].decode()}({_oid(table)}.{attnum} {_oid(oid)} {size} {mod} f{fmt})")
        at = end + 19
    return ", ".join(parts)


def _error(n: Normalizer, msg: Msg) -> str:
    fields = {k: v if k in NOT_TEXT else n.text(v) for k, v in msg.fields.items() if k not in LOCATION}
    if fields.get("C") == "57014":
        fields.pop("W", None)  # a cancel meets the statement where it happens to be
    if fields.get("C") == "25P02" and fields.get("D", "").startswith("statement: "):
        fields.pop("D")  # pgpool-II's, which PostgreSQL does not say: test_pool_failed
    return " ".join(f"{k}={v!r}" for k, v in sorted(fields.items()))


def _notification(n: Normalizer, msg: Msg) -> str:
    pid = struct.unpack_from("!i", msg.body)[0]
    channel, payload, _ = msg.body[4:].split(b"\0")
    if n.moves:
        return f"{'some pid' if pid > 0 else f'pid {pid}'} {channel!r} {payload!r}"
    return f"{n.pids.get(pid, f'pid {pid}')} {channel!r} {payload!r}"


def _negotiate(_n: Normalizer, msg: Msg) -> str:
    version, count = struct.unpack_from("!II", msg.body)
    return f"{version >> 16}.{version & 0xffff} {count} unknown: {msg.body[8:]!r}"


def _types(_n: Normalizer, msg: Msg) -> str:
    count = struct.unpack_from("!H", msg.body)[0]
    return " ".join(_oid(o) for o in struct.unpack_from(f"!{count}I", msg.body, 2))


RENDER = {
    "R": _authentication, "T": _row_description, "E": _error, "N": _error, "A": _notification,
    "v": _negotiate, "t": _types,
    "D": lambda n, m: ", ".join(n.value(v) for v in m.row()),
    "d": lambda n, m: n.value(m.body),
    "V": lambda n, m: n.value(m.body),
    "S": lambda n, m: "=".join(m.status()),
    "K": lambda n, m: f"{n.pids.get(struct.unpack_from('!i', m.body)[0])} key of {len(m.body) - 4} bytes",
    "C": lambda n, m: m.body.rstrip(b"\0").decode("latin-1"),
    "Z": lambda n, m: m.body.decode("latin-1"),
}
NAMES = {
    "R": "Authentication", "K": "BackendKeyData", "S": "ParameterStatus", "Z": "ReadyForQuery",
    "T": "RowDescription", "D": "DataRow", "C": "CommandComplete", "E": "ErrorResponse",
    "N": "NoticeResponse", "A": "Notification", "1": "ParseComplete", "2": "BindComplete",
    "3": "CloseComplete", "n": "NoData", "t": "ParameterDescription", "s": "PortalSuspended",
    "I": "EmptyQuery", "G": "CopyIn", "H": "CopyOut", "W": "CopyBoth", "d": "CopyData",
    "c": "CopyDone", "V": "FunctionResult", "v": "NegotiateProtocolVersion",
}


def sort_status(lines: list[str]) -> list[str]:
    """Puts ParameterStatus lines that stand together in order of their names: that of several settings that change at once is
    one of PostgreSQL's lists, which depend on how the session came to have them."""
    out: list[str] = []
    for is_status, group in itertools.groupby(lines, lambda l: l.startswith("S ")):
        out += sorted(group) if is_status else group
    return out


def tell_at_the_end(lines: list[str]) -> list[str]:
    """Puts the ParameterStatus lines of an exchange in front of its ReadyForQuery, each with its last value and only when that is
    another one than before: as servers since 14 do. One before tells a setting at once, and whenever it is set."""
    said: dict[str, str] = {}
    news: dict[str, str] = {}
    out = []
    for line in [*lines, ""]:
        name, _, value = line.partition("=")
        if line.startswith("S "):
            news[name] = value
            continue
        if line.startswith("Z ") or not line:
            out += [f"{n}={v}" for n, v in news.items() if said.get(n) != v]
            said.update(news)
            news = {}
        if line:
            out.append(line)
    return out


def sort_login(lines: list[str]) -> list[str]:
    """Puts the ParameterStatus lines before the first ReadyForQuery in order of their names."""
    end = next((i for i, l in enumerate(lines) if l.startswith("Z ")), len(lines))
    start = next((i for i, l in enumerate(lines[:end]) if l.startswith("S ")), end)
    middle = lines[start:end]
    status = sorted(l for l in middle if l.startswith("S "))
    return lines[:start] + status + [l for l in middle if not l.startswith("S ")] + lines[end:]
