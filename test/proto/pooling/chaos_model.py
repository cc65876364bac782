# SPDX-License-Identifier: PostgreSQL
"""chaos_model: what a session of PostgreSQL must answer, message by message, as far as clients of chaos_house ask.

A World is one thing that may be true of a session: its settings, transaction, savepoints, statements, portals, and what
it has written. Items are the messages of a client; each knows which answers it may get in a world, and the world behind
them. Where an error leaves in doubt what was done there are several worlds, until an answer tells.
"""
import copy
from dataclasses import dataclass, field

from pgt.wire import (COPY_DONE, SYNC, bind, close, copy_data, copy_fail, describe, execute, message, parse, query)

NAMES = ("my.own", "work_mem", "search_path", "application_name", "TimeZone", "role", "session_authorization")
START = {"my.own": "", "work_mem": "4MB", "search_path": '"$user", public', "application_name": "", "TimeZone": "UTC",
         "role": "none", "session_authorization": "postgres"}
KEPT_BY_RESET_ALL = ("role", "session_authorization")
SHOWN = ("coalesce(current_setting('my.own', true), '')", *(f"current_setting('{n}')" for n in NAMES[1:-1]), "session_user",
         "current_user")
COUNTS = "(select n from public.chaos_n where who = {me}), (select count(*) from public.chaos_w where who = {me})"
SEE = "select {mark}, " + ", ".join(SHOWN) + ", " + COUNTS
EXITS = ("commit", "rollback", "rollback to")
WORDS = (*EXITS, "begin", "savepoint", "release", "discard all")
FAILED = "25P02"


@dataclass
class Sql:
    """A statement. With parameters, `mark` is what $1 stands for, and comes with each Bind."""
    kind: str
    text: str
    mark: str = ""
    params: int = 0
    columns: int = 0
    name: str = ""
    value: str = ""
    local: bool = False
    count: int = 1
    args: tuple[str, ...] = ()


@dataclass
class Portal:
    sql: Sql
    mark: str
    depth: int
    at: int = 0
    is_done: bool = False
    is_doubtful: bool = False  # an error may have ended it


@dataclass
class Save:
    """What a rollback goes back to."""
    name: str
    now: dict[str, str]
    local: dict[str, str]
    n: int
    m: int


@dataclass
class Expect:
    """One message, of one of the types. `want`: values of a row, or the first; words of a tag; SQLSTATEs; None: whatever it holds."""
    type: str
    want: object = None
    text: str = ""

    def fits(self, m) -> bool:
        if m.type not in self.type:
            return False
        if self.type == "E":
            return m.sqlstate in self.want and self.text in m.text
        if self.want is None:
            return True
        if self.type == "D":
            row = [None if v is None else v.decode() for v in m.row()]
            return row == self.want if isinstance(self.want, list) else bool(row) and row[0] == self.want
        if self.type == "T":
            return int.from_bytes(m.body[:2], "big") == self.want
        return m.body.rstrip(b"\0").decode() == self.want


class Failure(Exception):
    """The statement ends with an error."""

    def __init__(self, *states: str, text: str = ""):
        super().__init__(states)
        self.expect = Expect("E", states, text)


@dataclass
class World:
    me: str
    now: dict[str, str]
    start: dict[str, str]
    local: dict[str, str] = field(default_factory=dict)
    n: int = 0
    m: int = 0
    stack: list[Save] = field(default_factory=list)
    status: str = "I"
    statements: dict[str, Sql] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    ghost: "World | None" = None  # what goes on at a server that was lost, perhaps
    begun: int = 0  # how often a transaction was
    ended: int = 0
    is_piped: bool = False  # a statement was executed, and no Sync came
    is_string: bool = False  # within a simple query of several statements

    def copy(self) -> "World":
        w = copy.copy(self)
        w.now, w.local, w.stack = dict(self.now), dict(self.local), list(self.stack)
        w.statements = dict(self.statements)
        w.portals = {k: copy.copy(p) for k, p in self.portals.items()}
        w.ghost = self.ghost.copy() if self.ghost else None
        return w

    def key(self) -> tuple:
        """Equal for worlds that nothing tells apart."""
        return (tuple(self.now.items()), tuple(sorted(self.local.items())), self.n, self.m, self.status,
                tuple((s.name, tuple(s.now.items()), s.n, s.m) for s in self.stack),
                tuple(sorted((k, s.text) for k, s in self.statements.items())),
                tuple(sorted((k, p.at, p.is_done, p.is_doubtful, p.depth) for k, p in self.portals.items())),
                self.ghost.key() if self.ghost else None)

    # ---- transactions

    def save(self, name: str) -> Save:
        return Save(name, dict(self.now), dict(self.local), self.n, self.m)

    def begin(self) -> None:
        """A statement begins, and a transaction with it when there is none."""
        if not self.stack:
            self.stack = [self.save("")]

    def restore(self, s: Save) -> None:
        self.now, self.local, self.n, self.m = dict(s.now), dict(s.local), s.n, s.m

    def end(self, is_done: bool) -> None:
        if self.stack and not is_done:
            self.restore(self.stack[0])
        self.stack, self.local, self.portals, self.status, self.ghost = [], {}, {}, "I", None
        self.is_piped = False
        self.ended += 1

    def fail(self) -> None:
        """An error, of a statement or of the server."""
        if self.status == "I":
            self.end(False)
        else:
            self.status = "E"

    def shown(self) -> list[str]:
        v = {**self.now, **self.local}
        return [*(v[n] for n in NAMES), v["session_authorization"] if v["role"] == "none" else v["role"], str(self.n), str(self.m)]

    def written(self) -> tuple[int, int]:
        """What is sure to be there when it all ends here."""
        return (self.stack[0].n, self.stack[0].m) if self.stack else (self.n, self.m)

    def depth_of(self, name: str) -> int:
        for i in range(len(self.stack) - 1, 0, -1):
            if self.stack[i].name == name:
                return i
        raise Failure("3B001")

    # ---- statements

    def run(self, sql: Sql, mark: str) -> tuple[list[list[str]], str]:
        """Rows and tag. Failure."""
        if self.status == "E" and sql.kind not in EXITS:
            raise Failure(FAILED)
        if self.ghost and sql.kind == "rollback to":
            raise Failure(FAILED, "3B001", "08006", "57P01", "57P02")
        if sql.kind not in EXITS:
            self.begin()
        return getattr(self, "do_" + sql.kind.replace(" ", "_"))(sql, mark)

    def do_see(self, _sql: Sql, mark: str):
        return [[mark, *self.shown()]], "SELECT 1"

    def do_row(self, _sql: Sql, mark: str):
        return [mark], "SELECT 1"

    def do_series(self, sql: Sql, mark: str):
        return [[mark, str(i + 1)] for i in range(sql.count)], f"SELECT {sql.count}"

    def do_bump(self, _sql: Sql, mark: str):
        self.n += 1
        return [[mark, str(self.n)]], "UPDATE 1"

    def do_put(self, _sql: Sql, _mark: str):
        self.m += 1
        return [], "INSERT 0 1"

    def do_error(self, sql: Sql, mark: str):
        raise Failure(sql.value, text="" if sql.value == "22012" else mark)

    def do_word(self, sql: Sql, _mark: str):
        """Something that leaves nothing."""
        return [], sql.value

    def do_set(self, sql: Sql, _mark: str):
        if sql.local:
            self.local[sql.name] = sql.value
        else:
            self.now[sql.name] = sql.value
            self.local.pop(sql.name, None)
        return [], "SET"

    def do_set_config(self, sql: Sql, mark: str):
        self.do_set(sql, mark)
        return [[sql.value]], "SELECT 1"

    def do_reset(self, sql: Sql, _mark: str):
        self.now[sql.name] = self.start[sql.name]
        self.local.pop(sql.name, None)
        return [], "RESET"

    def do_reset_all(self, _sql: Sql, _mark: str):
        self.now = {**self.start, **{n: self.now[n] for n in KEPT_BY_RESET_ALL}}
        self.local = {n: v for n, v in self.local.items() if n in KEPT_BY_RESET_ALL}
        return [], "RESET"

    def do_discard_all(self, _sql: Sql, _mark: str):
        if self.status != "I" or self.is_string or self.is_piped:
            raise Failure("25001")
        self.end(True)
        self.now = dict(self.start)
        self.statements = {k: s for k, s in self.statements.items() if k == ""}
        return [], "DISCARD ALL"

    def do_begin(self, _sql: Sql, _mark: str):
        self.status = "T"
        self.begun += 1
        return [], "BEGIN"

    def do_commit(self, _sql: Sql, _mark: str):
        is_done = self.status != "E"
        self.end(is_done)
        return [], "COMMIT" if is_done else "ROLLBACK"

    def do_rollback(self, _sql: Sql, _mark: str):
        self.end(False)
        return [], "ROLLBACK"

    def do_savepoint(self, sql: Sql, _mark: str):
        if self.status == "I":
            raise Failure("25P01")
        self.stack.append(self.save(sql.name))
        return [], "SAVEPOINT"

    def do_release(self, sql: Sql, _mark: str):
        if self.status == "I":
            raise Failure("25P01")
        depth = self.depth_of(sql.name)
        del self.stack[depth:]
        for p in self.portals.values():
            p.depth = min(p.depth, depth)
        return [], "RELEASE"

    def do_rollback_to(self, sql: Sql, _mark: str):
        if self.status == "I":
            raise Failure("25P01")
        depth = self.depth_of(sql.name)
        del self.stack[depth + 1:]
        self.restore(self.stack[depth])
        self.portals = {k: p for k, p in self.portals.items() if p.depth <= depth}
        self.status = "T"
        return [], "ROLLBACK"

    # A name that PREPARE or EXECUTE uses is the protocol's, too.

    def do_prepare(self, sql: Sql, _mark: str):
        if sql.name in self.statements:
            raise Failure("42P05")
        self.statements[sql.name] = Sql("series", sql.mark, sql.mark, 0, 2, count=sql.count)
        return [], "PREPARE"

    def do_execute(self, sql: Sql, _mark: str):
        known = self.statements.get(sql.name)
        if known is None:
            raise Failure("26000")
        if known.params != len(sql.args):
            raise Failure("42601")
        return self.run(known, sql.args[0] if sql.args else known.mark)

    def do_deallocate(self, sql: Sql, _mark: str):
        if self.statements.pop(sql.name, None) is None:
            raise Failure("26000")
        return [], "DEALLOCATE"

    def do_deallocate_all(self, _sql: Sql, _mark: str):
        self.statements = {k: s for k, s in self.statements.items() if k == ""}
        return [], "DEALLOCATE ALL"


def key_of(name: str) -> str:
    """PostgreSQL tells names apart by 63 bytes."""
    return name[:63]


@dataclass(repr=False)
class Item:
    """A message. answers() changes the world; the last answer may be an error."""
    data: bytes
    ends: bool = False  # ReadyForQuery follows
    can_end: bool = False  # a transaction may end with it
    excused: tuple[str, ...] = ()  # in a failed transaction

    def __str__(self) -> str:
        """Where a test failed; what all statements have in common is left out."""
        text = self.data[5:].decode("latin1").replace(", ".join(SHOWN), "..").replace("\0", "|")
        return f"{self.data[:1].decode()}[{text[:110]}]"

    def answers(self, w: World) -> list[Expect]:
        try:
            return self.ask(w)
        except Failure as e:
            w.fail()
            return [e.expect]

    def ask(self, w: World) -> list[Expect]:
        raise NotImplementedError

    def in_doubt(self, w: World) -> list[World]:
        """An error that nobody could foresee: what may be so besides."""
        return []

    def in_part(self, w: World, _count: int) -> tuple[World, "Item"]:
        """Of several statements so many were done; what is left."""
        return w, self


def rows_of(found: list) -> list[Expect]:
    return [Expect("D", r) for r in found]


class Parse(Item):
    def __init__(self, sql: Sql, name: str = ""):
        super().__init__(parse(sql.text, name))
        self.sql, self.name = sql, key_of(name)

    def ask(self, w: World) -> list[Expect]:
        if not self.name:
            w.statements.pop("", None)
        if w.status == "E" and self.sql.kind not in EXITS:
            raise Failure(FAILED)
        if self.sql.value == "42P01":
            raise Failure("42P01", text=self.sql.mark)
        if self.name and self.name in w.statements:
            raise Failure("42P05")
        w.begin()
        w.statements[self.name] = self.sql
        return [Expect("1")]

    def in_doubt(self, w: World) -> list[World]:
        other = w.copy()
        other.statements.pop(self.name, None)
        third = w.copy()
        third.statements[self.name] = self.sql
        return [other, third] if not self.name or self.name not in w.statements else []


class Bind(Item):
    def __init__(self, mark: str, args: list[str], portal: str = "", name: str = ""):
        super().__init__(bind(args, portal, name))
        self.mark, self.count, self.portal, self.name = mark, len(args), key_of(portal), key_of(name)

    def ask(self, w: World) -> list[Expect]:
        sql = w.statements.get(self.name)
        if sql is None:
            # A name that the link would have to be told in a failed transaction: nobody looks.
            raise Failure("26000", *((FAILED,) if w.status == "E" else ()))
        if sql.params != self.count:
            raise Failure("08P01", *((FAILED,) if w.status == "E" else ()))
        if w.status == "E" and sql.kind not in EXITS:
            raise Failure(FAILED, "26000")  # of SQL, and not on that link
        if self.portal and self.portal in w.portals:
            raise Failure("42P03")
        w.begin()
        if sql.value == "22012":
            raise Failure("22012")
        w.portals[self.portal] = Portal(sql, self.mark if sql.params else sql.mark, len(w.stack))
        return [Expect("2")]


class Describe(Item):
    def __init__(self, what: str, name: str):
        super().__init__(describe(name, what), excused=(FAILED, "34000"))
        self.what, self.name = what, key_of(name)

    def ask(self, w: World) -> list[Expect]:
        if self.what == "S":
            sql = w.statements.get(self.name)
            if sql is None:
                raise Failure("26000", *((FAILED,) if w.status == "E" else ()))
        else:
            if self.name not in w.portals:
                raise Failure("34000")
            sql = w.portals[self.name].sql
        if w.status == "E" and sql.columns:
            raise Failure(FAILED)
        w.begin()
        told = Expect("Tn") if sql.columns < 0 else Expect("T", sql.columns) if sql.columns else Expect("n")
        return [Expect("t"), told] if self.what == "S" else [told]


class Execute(Item):
    def __init__(self, portal: str = "", limit: int = 0):
        super().__init__(execute(portal, limit))
        self.portal, self.limit = key_of(portal), limit
        self.can_end = True

    def ask(self, w: World) -> list[Expect]:
        p = w.portals.get(self.portal)
        if p is None:
            raise Failure("34000")
        if w.status == "E" and p.sql.kind not in EXITS:
            raise Failure(FAILED, *(("34000",) if w.ghost else ()))  # a portal is gone with its link
        if p.is_done and p.sql.kind != "series":
            raise Failure("55000")
        if p.sql.kind != "series":
            p.is_done = True
            found, tag = w.run(p.sql, p.mark)
            w.is_piped = p.sql.kind not in WORDS
            return [*rows_of(found), Expect("C", tag)]
        found, _ = w.run(p.sql, p.mark)
        w.is_piped = True
        last = p.sql.count if self.limit == 0 else min(p.at + self.limit, p.sql.count)
        found = found[p.at:last]
        is_over = self.limit == 0 or p.at + self.limit > p.sql.count
        p.at = last
        return [*rows_of(found), Expect("C", f"SELECT {len(found)}") if is_over else Expect("s")]

    def in_doubt(self, w: World) -> list[World]:
        p = w.portals.get(self.portal)
        if p is not None:
            p.is_doubtful = True
        return []


class Close(Item):
    def __init__(self, what: str, name: str):
        super().__init__(close(name, what))
        self.what, self.name = what, key_of(name)

    def ask(self, w: World) -> list[Expect]:
        (w.statements if self.what == "S" else w.portals).pop(self.name, None)
        return [Expect("3")]

    def in_doubt(self, w: World) -> list[World]:
        other = w.copy()
        self.ask(other)
        return [other]


class Bad(Item):
    """A message that is refused for its form."""

    def __init__(self, kind: str, body: bytes):
        super().__init__(message(kind, body))

    def ask(self, w: World) -> list[Expect]:
        raise Failure("08P01")


class Sync(Item):
    def __init__(self):
        super().__init__(SYNC, ends=True, can_end=True)

    def ask(self, w: World) -> list[Expect]:
        if w.status == "I":
            w.end(True)
        return [Expect("Z", w.status)]


class Query(Item):
    """A string of one statement or several."""

    def __init__(self, *all_sql: Sql):
        super().__init__(query("; ".join(s.text for s in all_sql)), ends=True, can_end=True)
        self.all_sql = all_sql

    def answers(self, w: World) -> list[Expect]:
        w.statements.pop("", None)
        w.portals.pop("", None)
        told: list[Expect] = []
        try:
            w.is_string = len(self.all_sql) > 1
            for sql in self.all_sql:
                found, tag = w.run(sql, sql.mark)
                told += [Expect("T", sql.columns if sql.columns > 0 and sql.kind != "execute" else None)] if found else []
                told += [*rows_of(found), Expect("C", tag)]
            if w.status == "I":
                w.end(True)
        except Failure as e:
            w.fail()
            told.append(e.expect)
        w.is_string = False
        return [*told, Expect("Z", w.status)]

    def in_part(self, w: World, count: int) -> tuple[World, Item]:
        if count == 0:
            return w, self
        w.statements.pop("", None)
        w.portals.pop("", None)
        w.is_string = len(self.all_sql) > 1
        for sql in self.all_sql[:count]:
            w.run(sql, sql.mark)
        w.is_string = False
        return w, Query(*self.all_sql[count:])

    def in_doubt(self, w: World) -> list[World]:
        other = w.copy()
        other.statements.pop("", None)
        return [other] if "" in w.statements else []


class CopyIn(Item):
    """Rows, or a failure, sent behind the statement at once."""

    def __init__(self, me: str, keys: list[int], mark: str, is_failed: bool):
        lines = b"".join(f"{me}\t{k}\n".encode() for k in keys)
        super().__init__(query("copy public.chaos_w from stdin") + copy_data(lines) + (copy_fail(mark) if is_failed else COPY_DONE),
                         ends=True, can_end=True)
        self.keys, self.mark, self.is_failed = keys, mark, is_failed

    def answers(self, w: World) -> list[Expect]:
        w.statements.pop("", None)
        w.portals.pop("", None)
        if w.status == "E":
            return [Expect("E", (FAILED,)), Expect("Z", "E")]
        w.begin()
        if self.is_failed:
            w.fail()
            return [Expect("G"), Expect("E", ("57014",), self.mark), Expect("Z", w.status)]
        w.m += len(self.keys)
        if w.status == "I":
            w.end(True)
        return [Expect("G"), Expect("C", f"COPY {len(self.keys)}"), Expect("Z", w.status)]

    in_doubt = Query.in_doubt


class CopyOut(Item):
    def __init__(self, mark: str, count: int):
        super().__init__(query(f"copy (select '{mark}' from generate_series(1, {count})) to stdout"), ends=True, can_end=True)
        self.mark, self.count = mark, count

    def answers(self, w: World) -> list[Expect]:
        w.statements.pop("", None)
        w.portals.pop("", None)
        if w.status == "E":
            return [Expect("E", (FAILED,)), Expect("Z", "E")]
        data = [Expect("d", f"{self.mark}\n") for _ in range(self.count)]
        return [Expect("H"), *data, Expect("c"), Expect("C", f"COPY {self.count}"), Expect("Z", w.status)]

    in_doubt = Query.in_doubt
