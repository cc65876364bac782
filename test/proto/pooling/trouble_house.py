# SPDX-License-Identifier: PostgreSQL
"""trouble_house: clients of which each knows to the message what it must be told, and what befalls them meanwhile:
reloads, notifications, bytes in any pieces, links that are killed, cancel requests, clients that vanish.

A client sends units; each ends with one Query or Sync, so with one ReadyForQuery. What comes must be exactly what
the unit asks for, or a beginning of it, one error and ReadyForQuery. Rows, notices and error texts hold tokens that nobody
else has. Of each row that is written it is known whether it must be there, may be, or must not.
"""
import random
import threading
from dataclasses import dataclass, field

from pgt import waits
from pgt.relay import Relay
from pgt.wire import (COPY_DONE, FLUSH, SYNC, Msg, Wire, WireClosed, WireTimeout, bind, cancel, copy_data, describe,
                      execute, parse, pg, query)

LOST = ("57P01", "08006", "57P02")  # what a client is told of a link that died
STYLES = ("ISO, MDY", "German, DMY", "SQL, DMY", "Postgres, MDY")


@dataclass
class Unit:
    """`types` of the messages but for unasked ones, without ReadyForQuery; `rows` are first columns."""
    data: bytes
    types: str
    rows: list[str] = field(default_factory=list)
    notice: str = ""
    error: str = ""
    writes: list[str] = field(default_factory=list)
    sets: str = ""
    name: str = ""  # a statement that is parsed here
    ends: str = ""  # commit, rollback
    what: str = ""  # show: a setting of the client's own; style: one that the server's file changes


class Verdict(AssertionError):
    """A client was told what it must not be."""


class Client(threading.Thread):
    """One session after the other."""

    def __init__(self, house: "House", number: int):
        super().__init__(daemon=True)
        self.house, self.number = house, number
        self.rng = random.Random(f"{house.seed} {number}")
        self.sure: list[str] = []
        self.never: list[str] = []
        self.maybe: list[str] = []
        self.pending: list[str] = []  # written in the transaction that is open
        self.why: dict[str, str] = {}  # what was told of each write
        self.values: set[str] = set()  # what the setting of its own may be
        self.before: set[str] = set()  # and what it was when the transaction began
        self.names: list[str] = []
        self.wire: Wire | None = None
        self.status = "I"
        self.count = self.units = self.errors = self.sessions = 0
        self.heard = -1
        self.trouble = ""
        self.history: list[str] = []
        self.is_listener = house.mode != "statement" and number < house.listeners

    # ---- what is asked

    def token(self) -> str:
        self.count += 1
        return f"c{self.number}.{self.count}"

    def padded(self) -> str:
        """A token, and a text of any length whose letters are types of messages."""
        return self.token() + " " + self.rng.choice("SEZADCNT") * self.rng.choice((0, 1, 3, 30, 300, 3000, 9000))

    def read_unit(self) -> Unit:
        t, way = self.padded(), self.rng.randrange(8)
        sql = f"select '{t}'"
        if way == 0:
            return Unit(query(sql), "TDC", [t])
        if way == 1:
            return Unit(pg(sql) + SYNC, "12TDC", [t])
        if way == 2:
            return Unit(pg("select $1::text", [t]) + SYNC, "12TDC", [t])
        if way == 3:
            return Unit(parse(sql) + bind() + execute() + FLUSH + SYNC, "12DC", [t])
        if way == 4:
            u = self.token()
            return Unit(query(f"{sql}; select '{u}'"), "TDCTDC", [t, u])
        if way == 5:
            u = self.token()
            return Unit(pg(sql) + pg(f"select '{u}'") + SYNC, "12TDC12TDC", [t, u])
        if way == 6:
            return Unit(pg(f"select '{t}' from generate_series(1, 3)", limit=2) + SYNC, "12TDDs", [t] * 2)
        return self.named("select $1::text", t, True)

    def named(self, sql: str, t: str, is_read: bool) -> Unit:
        """Parsed once, used again under its name."""
        known = [n for n in self.names if n.startswith("r" if is_read else "w")]
        if known and self.rng.random() < 0.8:
            return Unit(bind([t], name=self.rng.choice(known)) + execute() + SYNC, "2DC" if is_read else "2C",
                        [t] if is_read else [])
        name = ("r" if is_read else "w") + self.token()
        return Unit(parse(sql, name) + bind([t], name=name) + execute() + SYNC, "12DC" if is_read else "12C",
                    [t] if is_read else [], name=name)

    def write_unit(self) -> Unit:
        t, u, way = self.token(), self.token(), self.rng.randrange(7)
        sql = "insert into tr_w values ('{}')"
        if way == 0:
            unit = Unit(query(sql.format(t)), "C")
        elif way == 1:
            unit = Unit(pg(sql.format(t)) + SYNC, "12nC")
        elif way == 2:
            unit = self.named("insert into tr_w values ($1)", t, False)
        elif way == 3:
            return Unit(query(f"{sql.format(t)}; {sql.format(u)}"), "CC", writes=[t, u])
        elif way == 4:
            return Unit(pg(sql.format(t)) + pg(sql.format(u)) + SYNC, "12nC12nC", writes=[t, u])
        elif way == 5:
            unit = Unit(query(sql.format(t) + " returning a"), "TDC", [t])
        else:
            unit = Unit(query("copy tr_w from stdin") + copy_data(t.encode() + b"\n") + COPY_DONE, "GC")
        unit.writes = [t]
        return unit

    def other_unit(self) -> Unit:
        t, way = self.padded(), self.rng.randrange(9)
        if way == 0:
            return Unit(query(f"do $$ begin raise notice '{t}'; end $$"), "C", notice=t)
        if way == 1:
            return Unit(pg(f"do $$ begin raise notice '{t}'; end $$") + SYNC, "12nC", notice=t)
        if way == 2:
            return Unit(query(f"do $$ begin raise exception '{t}'; end $$"), "", error=t)
        if way == 3:
            return Unit(pg(f"select '{t}'") + pg("select 1/0") + pg("select 'never'") + SYNC, "12TDC12T", [t], error="division by zero")
        if way in (4, 5):
            value = f"{100 + self.number * 50 + self.rng.randrange(50)}MB"
            sql = self.rng.choice((f"set work_mem = '{value}'", f"select set_config('work_mem', '{value}', false)"))
            if sql.startswith("set"):
                return Unit(query(sql), "C", sets=value)
            return Unit(query(sql), "TDC", [value], sets=value)
        if way == 6 and self.sure:
            seen = self.rng.choice(self.sure[-20:])
            return Unit(query(f"select a from tr_w where a = '{seen}'"), "TDC", [seen])
        if way == 7 and self.house.reloads:
            return Unit(query("show datestyle"), "TDC", what="style")
        return Unit(query("show work_mem"), "TDC", what="show")

    def one(self) -> Unit:
        return self.rng.choice((self.read_unit, self.read_unit, self.write_unit, self.other_unit))()

    def batch(self) -> list[Unit]:
        if self.house.mode == "statement" or self.rng.random() < 0.6:
            return [self.one() for _ in range(self.rng.choice((1, 1, 1, 2, 4)))]
        begin = self.rng.choice((Unit(query("begin"), "C"), Unit(pg("begin") + SYNC, "12nC")))
        end = self.rng.choice(("commit", "commit", "rollback"))
        last = self.rng.choice((Unit(query(end), "C", ends=end), Unit(pg(end) + SYNC, "12nC", ends=end)))
        return [begin, *(self.one() for _ in range(self.rng.randrange(4))), last]

    # ---- what is told

    def forget(self) -> None:
        """A new session."""
        self.status, self.names, self.heard, self.pending = "I", [], -1, []
        self.values = set()

    def connect(self) -> None:
        """While links are killed a login may fail."""
        end = waits.deadline(30)
        while True:
            w = Wire(self.house.pool.address, seconds=self.house.patience)
            try:
                found = w.login(application_name=f"client {self.number}")
                if found[-1].type == "Z":
                    break
                if not self.house.kills or waits.now() > end:
                    raise Verdict(f"not let in: {found[-1].fields}")
            except (WireClosed, OSError) as e:
                if not self.house.kills or waits.now() > end:
                    raise Verdict(f"not let in: {e!r}") from e
            w.bye()
        self.forget()
        self.sessions += 1
        self.wire = w
        if self.is_listener:
            self.exchange([Unit(query(f"listen ch{self.number}"), "C")])

    def unasked(self, m: Msg) -> bool:
        if m.type == "A":
            channel, payload = m.body[4:].split(b"\0")[:2]
            if channel.decode() != f"ch{self.number}" or not self.is_listener:
                raise Verdict(f"hears {channel!r}")
            number = int(payload.split()[0])
            if self.heard not in (-1, number - 1):
                raise Verdict(f"hears {number} behind {self.heard}")
            self.heard = number
        return m.type in "AS"

    def segment(self) -> tuple[list[Msg], bool]:
        """Messages up to ReadyForQuery, or until the end."""
        found: list[Msg] = []
        assert self.wire is not None
        try:
            while True:
                m = self.wire.read()
                if self.unasked(m):
                    continue
                found.append(m)
                if m.type == "Z":
                    return found, False
        except WireClosed:
            return found, True

    def judge_types(self, unit: Unit, found: list[Msg], is_end: bool) -> Msg | None:
        """The error, if there is one."""
        types = "".join(m.type for m in found if m.type not in "NZ")
        if is_end and types.endswith("EE") and found[-1].sqlstate in LOST:
            types = types[:-1]  # it was lost behind the error, before ReadyForQuery
        error = next((m for m in found if m.type == "E"), None)
        told = f"{types} of {unit.types}, rows {unit.rows}: {[m.fields if m.type in 'EN' else m.body[:60] for m in found]}"
        if error is None:
            if (unit.error or types != unit.types) if not is_end else not unit.types.startswith(types):
                raise Verdict(told)
        elif types.count("E") > 1 or types[-1] != "E" or not unit.types.startswith(types[:-1]):
            raise Verdict(told)
        rows = [m.row()[0].decode() for m in found if m.type == "D"]
        if unit.rows and rows != unit.rows[:len(rows)]:
            raise Verdict(told)
        notices = [m.text for m in found if m.type == "N" and m.sqlstate == "00000"
                   and not m.text.startswith("No server connection")]  # query_wait_notify
        if any(n != unit.notice for n in notices) or len(notices) > 1 or (unit.notice and error is None and not is_end and not notices):
            raise Verdict(told)
        if error is not None and error.sqlstate not in self.house.excused and not (
                unit.error and error.text == unit.error) and not (self.status == "E" and error.sqlstate == "25P02"):
            raise Verdict(told)
        return error

    def judge(self, unit: Unit) -> bool:
        """False when the session is over."""
        found, is_end = self.segment()
        error = self.judge_types(unit, found, is_end)
        self.units += 1
        self.errors += error is not None
        if is_end:
            if not self.house.kills:
                raise Verdict(f"cut off: {[m.fields for m in found if m.type == 'E']}")
            return False
        status = found[-1].body.decode()
        tag = next((m.body for m in found if m.type == "C"), b"")
        if unit.what == "show" and error is None:
            self.judge_value(found)
        if unit.what == "style" and error is None:
            assert self.wire is not None
            seen = next(m.row()[0].decode() for m in found if m.type == "D")
            # Links hear of a reload one after the other: where they are shared it holds when all have (last_words).
            if self.house.mode == "session" and seen != self.wire.status["DateStyle"]:
                raise Verdict(f"DateStyle is {seen}, told {self.wire.status['DateStyle']}")
        if unit.sets:
            self.set_value(unit, error)
        if unit.name and (error is None or "1" in [m.type for m in found]):
            self.names.append(unit.name)
        is_lost = error is not None and error.sqlstate in LOST
        if unit.ends:
            self.end_tx(unit, error, tag, is_lost, status)
        elif unit.writes:
            self.wrote(unit, error, is_lost)
        if self.status == "I" and status != "I":
            self.before = set(self.values)
        if self.status != "I" and status == "I" and not unit.ends:
            raise Verdict(f"from {self.status} to I without an end: {error and error.fields}")
        self.status = status
        return True

    def judge_value(self, found: list[Msg]) -> None:
        seen = next(m.row()[0].decode() for m in found if m.type == "D")
        if self.values and seen not in self.values:
            raise Verdict(f"work_mem is {seen}, set {self.values}")
        if not self.values and seen != "4MB":
            raise Verdict(f"work_mem is {seen}, never set")
        if self.status == "I" and self.values:
            self.values = {seen}

    def set_value(self, unit: Unit, error: Msg | None) -> None:
        if error is None:
            self.values = {unit.sets}
        elif self.status != "E" and error.sqlstate in LOST:
            self.values = (self.values or {"4MB"}) | {unit.sets}

    def end_tx(self, unit: Unit, error: Msg | None, tag: bytes, is_lost: bool, status: str) -> None:
        # Who was told that BEGIN failed has written each by itself.
        fate = self.maybe
        if unit.ends == "rollback" or tag == b"ROLLBACK\0" or (error is not None and not is_lost):
            fate = self.never
        elif tag == b"COMMIT\0" and error is None:
            fate = self.sure
        if fate is self.sure and self.status == "E":
            raise Verdict("a failed transaction is committed")
        fate += self.pending
        for t in self.pending:
            self.why[t] = f"{unit.ends} from {self.status}: {tag!r} {error and error.fields}"
        self.pending = []
        if self.status != "I" and fate is not self.sure:
            self.values = self.before if fate is self.never else (self.values | self.before if self.values else set())
            if fate is self.maybe and not self.before:
                self.values = self.values and self.values | {"4MB"}
        if error is None and status != "I":
            raise Verdict(f"{unit.ends} leaves {status}")

    def wrote(self, unit: Unit, error: Msg | None, is_lost: bool) -> None:
        if error is None and self.status == "I":
            self.sure += unit.writes
        elif error is None:
            self.pending += unit.writes
        elif is_lost and self.status == "I":
            self.maybe += unit.writes
        elif is_lost:
            self.pending += unit.writes  # its COMMIT may have gone out with it: what is said of that counts
        else:
            self.never += unit.writes
        for t in unit.writes:
            self.why[t] = f"{unit.data[:40]!r} from {self.status}: {error and error.fields}"

    # ---- one after the other

    def exchange(self, units: list[Unit]) -> None:
        assert self.wire is not None
        data = b"".join(u.data for u in units)
        self.history = self.history[-8:] + [f"{u.data[:90]!r}" for u in units]
        at = 0
        try:
            if self.rng.random() < self.house.vanishing:
                self.wire.send(data[:self.rng.randrange(len(data) + 1)])
                self.vanish(units)
                return
            self.wire.chunk = self.rng.choice((0, 0, 1 + self.rng.randrange(60)) if len(data) < 3000 else (0, 3000))
            self.wire.send(data)
            for at, unit in enumerate(units):
                if not self.judge(unit):
                    self.lost(units[at:])
                    return
        except WireClosed as e:
            if not self.house.kills:
                raise Verdict(f"cut off: {e}") from e
            self.lost(units[at:])

    def lost(self, units: list[Unit]) -> None:
        assert self.wire is not None
        for u in units:
            self.maybe += u.writes
        self.maybe += self.pending
        self.wire.sock.close()
        self.wire = None

    def vanish(self, units: list[Unit]) -> None:
        assert self.wire is not None
        if self.rng.random() < 0.5:
            self.wire.reset()
        self.lost(units)

    def turn(self) -> None:
        if self.wire is None:
            self.connect()
        if self.wire is not None:
            self.exchange(self.batch())
        if self.wire is not None and self.wire.inbuf and chr(self.wire.inbuf[0]) not in "SANE":
            raise Verdict(f"a reply too many: {bytes(self.wire.inbuf[:60])!r}")

    def run(self) -> None:
        try:
            while not self.house.ending.is_set():
                self.turn()
            self.last_words()
        except BaseException as e:  # pylint: disable=broad-except
            self.trouble = f"client {self.number}: {type(e).__name__}: {e}\n  " + "\n  ".join(self.history[-8:])
            if isinstance(e, WireTimeout):
                self.trouble += self.house.what_goes_on()
            self.house.ending.set()

    def last_words(self) -> None:
        """Nothing disturbs any more; what a session was told of its parameters is so."""
        self.house.calm.wait(60)
        if self.wire is None:
            self.connect()
        for name in ("DateStyle",) * 12 + ("DateStyle!", "IntervalStyle!", "TimeZone!", "application_name!"):
            is_sure, name = name.endswith("!"), name.rstrip("!")
            unit = Unit(query(f"show {name}"), "TDC")
            for _ in range(3):
                if self.wire is None:
                    self.connect()
                assert self.wire is not None
                self.wire.send(unit.data)
                found, is_end = self.segment()
                if is_end:
                    self.lost([])
                    continue
                seen = [m.row()[0].decode() for m in found if m.type == "D"]
                if seen and is_sure and seen[0] != self.wire.status[name]:
                    raise Verdict(f"{name} is {seen[0]}, told {self.wire.status[name]}")
                if seen:
                    break
        if self.wire is not None:
            self.wire.bye()


class House:
    """A pgpool in trouble. `calls` name what befalls it, with the seconds between."""

    def __init__(self, pool, servers, seed: int, mode: str, clients: int, listeners: int = 0, relays: list[Relay] = (),
                 vanishing: float = 0.0, patience: float = 20, **every: float):
        self.pool, self.servers, self.seed, self.mode, self.relays = pool, servers, seed, mode, list(relays)
        self.every, self.vanishing, self.patience, self.listeners = every, vanishing, patience, listeners
        self.kills = bool({"terminate", "rst"} & set(every))
        self.reloads = "server_reload" in every
        self.excused = (("57014",) if "cancel" in every else ()) + (LOST if self.kills else ())
        self.ending, self.calm = threading.Event(), threading.Event()
        self.rng = random.Random(seed)
        self.done: dict[str, int] = {}
        self.notified = 0
        self.trouble = ""
        servers[0].rows("create table if not exists tr_w(a text)")
        servers[0].rows("truncate tr_w")
        self.clients = [Client(self, i) for i in range(clients)]

    # ---- what befalls

    def pool_reload(self) -> None:
        self.pool.reload()

    def server_reload(self) -> None:
        self.direct(f"alter system set datestyle = '{self.rng.choice(STYLES)}'")
        for s in self.servers:
            s.reload()

    def direct(self, sql: str) -> None:
        self.servers[0].rows(sql)

    def notify(self) -> None:
        for i in range(self.listeners):
            text = f"{self.notified} " + self.rng.choice("SEZADCNT") * self.rng.choice((0, 1, 30, 300, 7000))
            self.direct(f"select pg_notify('ch{i}', '{text}')")
        self.notified += 1

    def terminate(self) -> None:
        server = self.rng.choice(self.servers)
        server.rows("select pg_terminate_backend(pid) from (select pid from pg_stat_activity where backend_type = 'client "
                    "backend' and client_addr is not null order by random() limit 1) v")

    def rst(self) -> None:
        self.rng.choice(self.relays).reset_one()

    def cancel(self) -> None:
        w = self.rng.choice(self.clients).wire
        if w is not None and w.pid:
            cancel(self.pool.address, w.pid, w.key)

    def disturb(self, what: str) -> None:
        pause = random.Random(f"{self.seed} {what}")
        try:
            while not self.ending.wait(self.every[what] * 2 * pause.random()):
                getattr(self, what)()
                self.done[what] = self.done.get(what, 0) + 1
        except BaseException as e:  # pylint: disable=broad-except
            self.trouble = f"{what}: {e!r}"
            self.ending.set()

    # ---- all of it

    def what_goes_on(self) -> str:
        told = ["", "pg: " + repr(self.servers[0].rows("select pid, state, wait_event, left(query, 60) from pg_stat_activity "
                                                       "where backend_type = 'client backend'"))]
        for what in ("POOL_CLIENTS", "POOL_LINKS", "POOL_QUEUE"):
            try:
                with Wire(self.pool.address, seconds=5) as w:
                    w.login()
                    told.append(what + ": " + "\n    ".join(repr(m.row()) for m in w.simple(f"show {what}") if m.type == "D"))
            except (OSError, WireTimeout, WireClosed) as e:
                told.append(f"{what}: {e!r}")
        return "\n  ".join(told) + "\n" + self.pool.log()[-3000:]

    def run(self, seconds: float) -> str:
        """A line of figures; fails when anybody was told what it must not be."""
        threads = [threading.Thread(target=self.disturb, args=(what,), daemon=True) for what in self.every]
        for t in (*self.clients, *threads):
            t.start()
        self.ending.wait(seconds)
        self.ending.set()
        for t in threads:
            t.join(60)
        self.calm.set()
        for c in self.clients:
            c.join(90)
        trouble = [c.trouble for c in self.clients if c.trouble] + ([self.trouble] if self.trouble else [])
        trouble += [f"client {c.number} does not end" for c in self.clients if c.is_alive()]
        assert not trouble, "\n".join(trouble)
        self.check_writes()
        return (f"{sum(c.units for c in self.clients)} units, {sum(c.errors for c in self.clients)} errors, "
                f"{sum(c.sessions for c in self.clients)} sessions, {sum(len(c.sure) for c in self.clients)} sure, "
                f"{sum(len(c.maybe) for c in self.clients)} maybe, {self.done}")

    def check_writes(self) -> None:
        waits.wait_for("nothing is open", lambda: not self.servers[0].sessions("state not in ('idle')"))
        there: dict[str, int] = {}
        for row in self.servers[0].rows("select a from tr_w"):
            there[row[0].decode()] = there.get(row[0].decode(), 0) + 1
        for c in self.clients:
            missing = [t for t in c.sure if there.get(t, 0) != 1]
            extra = [t for t in c.never if t in there]
            twice = [t for t in c.maybe if there.get(t, 0) > 1]
            assert not (missing or extra or twice), (f"client {c.number}: not once {missing}, never {extra}, twice {twice}: "
                                                     f"{[c.why.get(t) for t in missing + extra]}")
