# SPDX-License-Identifier: PostgreSQL
"""chaos_client: one of the clients of chaos_house. It asks what its rng says, often without waiting, and judges each answer by
what may be so (chaos_model). Whatever it sends carries its mark, and no message it gets may carry another one's.
"""
import copy
import os
import pickle
import random
import re
import threading
from pathlib import Path

from chaos_model import (EXITS, SEE, START, Bad, Bind, Close, CopyIn, CopyOut, Describe, Execute, Item, Parse, Query,
                         Sql, Sync, World)

from pgt import waits
from pgt.tls import TlsWire
from pgt.wire import FLUSH, Msg, Wire, WireClosed, WireTimeout, message

MARK = re.compile(rb"mk(\d+)s(\d+)x")
LOST = ("57P01", "08006", "57P02")  # what a client is told of a link that died
GONE = ("3B001", "34000", "26000")  # savepoint, portal, and statement, with it
LONG = "long_" * 12 + "own"  # 63 bytes: what follows does not count
NAMES = ("a", "b", "c", LONG + "1", LONG + "2")
PORTALS = ("p", "q", LONG + "p")
MANY = 24  # worlds: a client that is in more doubt has lost its way


class Verdict(AssertionError):
    """A client was told what it must not be."""


class Asker:
    """What a client asks. `ahead` is the world as it is when all goes well."""

    def __init__(self, number: int, rng: random.Random):
        self.number, self.rng = number, rng
        self.session = self.count = 0
        self.me = ""
        self.can_be = ""
        self.ahead: World | None = None

    def mark(self) -> str:
        self.count += 1
        return f"{self.me}x{self.count}"

    def padded(self) -> str:
        return self.mark() + " " + self.rng.choice("SEZADCNT") * self.rng.choice((0, 0, 1, 3, 30, 300, 3000, 9000))

    # ---- statements

    def value_of(self, name: str) -> str:
        """A value no other client sets, as the server shows it."""
        i, r = self.number, self.rng.randrange(9)
        return {"work_mem": f"{2049 + i * 50 + 2 * r}kB", "search_path": f"only_{self.mark()}",
                "TimeZone": f"<C{r}>{'+' if i % 2 else '-'}{1 + i % 11:02}:{10 + i % 40}", "my.own": self.mark(),
                "application_name": self.mark(), "role": self.rng.choice(("trust_user", "other_user", "none")),
                "session_authorization": self.rng.choice(("trust_user", "other_user"))}[name]

    def a_name(self) -> str:
        # A role that SET SESSION AUTHORIZATION has put away does not come back with a rollback: one of the two in a session.
        return self.rng.choice(("my.own", "work_mem", "search_path", "application_name", "TimeZone", self.can_be))

    def set_one(self) -> Sql:
        name = self.a_name()
        value, local = self.value_of(name), self.rng.random() < 0.3
        how = self.rng.random()
        if how < 0.15:
            return Sql("reset", f"reset {name}", name=name) if name != "my.own" else self.set_own(value)
        if how < 0.4:
            return Sql("set config", f"select set_config('{name}', '{value}', {'true' if local else 'false'})", columns=1,
                       name=name, value=value, local=local)
        text = f"{value}" if name in ("search_path", "role", "session_authorization") else f"'{value}'"
        return Sql("set", f"set {'local ' if local else ''}{name} = {text}".replace("session_authorization =", "session authorization"),
                   name=name, value=value, local=local)

    @staticmethod
    def set_own(value: str) -> Sql:
        return Sql("set", f"set my.own to '{value}'", name="my.own", value=value)

    def see(self) -> Sql:
        m = self.padded()
        if self.rng.random() < 0.3:
            return Sql("see", SEE.format(mark="$1::text", me="$2"), m, 2, 11)
        return Sql("see", SEE.format(mark=f"'{m}'", me=f"'{self.me}'"), m, columns=11)

    def write(self) -> Sql:
        m = self.mark()
        way = self.rng.randrange(4)
        if way == 0:
            return Sql("bump", "update public.chaos_n set n = n + 1 where who = $2 returning $1::text, n", m, 2, 2)
        if way == 1:
            return Sql("put", "insert into public.chaos_w values ($2, $1::text)", m, 2)
        if way == 2:
            return Sql("put", f"insert into public.chaos_w values ('{self.me}', '{m}')", m)
        return Sql("bump", f"update public.chaos_n set n = n + 1 where who = '{self.me}' returning '{m}', n", m, 0, 2)

    def series(self) -> Sql:
        m, count = self.mark(), self.rng.randrange(1, 6)
        return Sql("series", f"select '{m}', g from generate_series(1, {count}) g", m, 0, 2, count=count)

    def wrong(self) -> Sql:
        m, way = self.mark(), self.rng.randrange(3)
        if way == 0:
            return Sql("error", f"do $$ begin raise exception '{m}'; end $$", m, value="P0001")
        if way == 1:
            return Sql("error", f"select '{m}' from public.no_{m}", m, 0, 1, value="42P01")
        return Sql("error", f"select '{m}', 1/0", m, 0, 2, value="22012")

    def odd(self) -> Sql:
        m, way = self.mark(), self.rng.randrange(12)
        if way == 0:
            return Sql("word", f"do $$ begin raise notice '{m}'; end $$", m, value="DO")
        if way == 1:
            return Sql("row", f"select '{m}', pg_sleep({self.rng.choice((0.001, 0.005, 0.02))})", m, 0, 2)
        if way == 2:
            return Sql("row", "select $1::text, c.* from public.chaos_c c, (select $2::text) v", m, 2, -1)
        if way == 3:
            return Sql("row", f"select '{m}', c.* from public.chaos_c c", m, 0, -1)
        if way == 4:
            return Sql("discard all", "discard all")
        if way == 5:
            return Sql("reset all", "reset all")
        if way == 6:
            return Sql("word", "discard plans", value="DISCARD PLANS")
        if way == 7:
            return Sql("deallocate all", "deallocate all")
        return self.of_sql(m)

    def of_sql(self, m: str) -> Sql:
        name, count = self.rng.choice(("a", "b", "sq")), self.rng.randrange(1, 4)
        way = self.rng.randrange(4)
        assert self.ahead is not None
        known = self.ahead.statements.get(name)
        if way == 0 or (known is None and self.rng.random() < 0.7):
            return Sql("prepare", f"prepare {name} as select '{m}', g from generate_series(1, {count}) g", m, name=name, count=count)
        if way == 1:
            return Sql("deallocate", f"deallocate {name}", name=name)
        args = (m, self.me) if known is not None and known.params else ()
        words = "({})".format(", ".join(f"'{a}'" for a in args)) if args else ""
        return Sql("execute", f"execute {name}{words}", m, 0, -1, name=name, args=args)

    def word(self) -> Sql:
        """What begins, ends or goes back."""
        assert self.ahead is not None
        status, depth = self.ahead.status, len(self.ahead.stack)
        saves = [s.name for s in self.ahead.stack[1:]]
        way = self.rng.random()
        if status == "I":
            begins = Sql("begin", self.rng.choice(("begin", "BEGIN", "begin isolation level read committed")))
            return begins if way < 0.95 else Sql("commit", "commit")
        if saves and way < (0.7 if status == "E" else 0.4):
            return Sql("rollback to", f"rollback to {(name := self.rng.choice(saves))}", name=name)
        if saves and way < 0.5:
            return Sql("release", f"release {(name := self.rng.choice(saves))}", name=name)
        if way < 0.6 and depth < 5 and status == "T":
            return Sql("savepoint", f"savepoint {(name := f's{depth}')}", name=name)
        if way < 0.8:
            return Sql("commit", self.rng.choice(("commit", "end")))
        return Sql("rollback", self.rng.choice(("rollback", "abort")))

    def statement(self) -> Sql:
        assert self.ahead is not None
        ways: list = [(self.see, 30), (self.write, 20), (self.set_one, 14), (self.series, 6), (self.wrong, 4), (self.odd, 8),
                      (self.word, {"I": 10, "T": 22, "E": 60}[self.ahead.status])]
        return self.rng.choices([w[0] for w in ways], [w[1] for w in ways])[0]()

    # ---- messages

    def tell(self, item: Item) -> Item:
        """Notes in `ahead` what comes of it."""
        assert self.ahead is not None
        found = item.answers(self.ahead)
        self.is_skipping = bool(found) and found[-1].type == "E" and not item.ends
        return item

    def args(self, sql: Sql, mark: str) -> list[str]:
        return [mark, self.me] if sql.params else []

    def plain(self) -> list[Item]:
        """A simple query."""
        way = self.rng.random()
        if way < 0.04:
            return [self.tell(CopyIn(self.me, [self.mark() for _ in range(self.rng.randrange(3))], self.mark(), self.rng.random() < 0.3))]
        if way < 0.06:
            return [self.tell(CopyOut(self.mark(), self.rng.randrange(3)))]
        some = []
        while len(some) < (1 if way < 0.85 else 1 + self.rng.randrange(3)):
            sql = self.statement()
            # What the string of a failed transaction executes behind its end cannot be brought to the link in front of that.
            is_late = sql.kind in ("execute", "deallocate") and any(one.kind in EXITS for one in some)
            if not sql.params and not is_late:
                some.append(sql)
        return [self.tell(Query(*some))]

    def one_shot(self) -> list[Item]:
        sql = self.statement()
        name = "" if self.rng.random() < 0.7 or sql.kind not in ("see", "bump", "put", "series", "row") else self.rng.choice(NAMES)
        found: list[Item] = [Parse(sql, name), Bind(sql.mark, self.args(sql, sql.mark), "", name)]
        if self.rng.random() < 0.5:
            found.insert(self.rng.choice((1, 2)), Describe("S", name))
            if self.rng.random() < 0.5:
                found[-1:] = [found[-1], Describe("P", "")] if isinstance(found[-1], Bind) else [found[-1]]
        return [*found, Execute()]

    def again(self) -> list[Item]:
        """A name that may be known."""
        assert self.ahead is not None
        known = list(self.ahead.statements)
        name = self.rng.choice(known) if known and self.rng.random() < 0.95 else self.rng.choice(("", *NAMES))
        sql = self.ahead.statements.get(name[:63], Sql("see", ""))
        mark = self.padded() if sql.params else self.mark()
        found: list[Item] = [Bind(mark, self.args(sql, mark), "", name)]
        if self.rng.random() < 0.3:
            found.append(Describe("P", ""))
        return [*found, Execute()]

    def with_portal(self) -> list[Item]:
        assert self.ahead is not None
        known = list(self.ahead.portals)
        way = self.rng.random()
        named = [k for k in known if k]
        if named and way < 0.5:
            return [Execute(self.rng.choice(named), self.rng.choice((0, 1, 2)))]
        if named and way < 0.65:
            return [Close("P", self.rng.choice(named))]
        sql, portal = self.series(), self.rng.choice(PORTALS)
        return [Parse(sql), Bind(sql.mark, [], portal), Execute(portal, self.rng.choice((1, 1, 2, 3)))]

    def off(self) -> list[Item]:
        """What is wrong, or nothing much."""
        way = self.rng.randrange(7)
        name = self.rng.choice(NAMES)
        if way == 0:
            return [Close("S", name)]
        if way == 1:
            return [Close("S", "")]
        if way == 2:
            return [Describe("S", name)]
        if way == 3:
            return [Bind("", ["one"], "", name)]
        if way == 4:
            return [Bad("P", b"\0select '" + self.mark().encode() + b"'\0\0\7")]
        if way == 5:
            return [Bad(self.rng.choice("CD"), b"X" + name.encode() + b"\0")]
        return [Bad("E", b"\0\0\0")]

    def sequence(self) -> list[Item]:
        found: list[Item] = []
        self.is_skipping = False
        for _ in range(self.rng.choice((1, 1, 1, 2, 3, 5))):
            how = self.rng.choices((self.one_shot, self.again, self.with_portal, self.off), (50, 25, 15, 4))[0]
            for item in how():
                found.append(item)
                if not self.is_skipping:
                    self.tell(item)
        return [*found, self.tell(Sync())]

    def segment(self) -> list[Item]:
        return self.plain() if self.rng.random() < 0.4 else self.sequence()


def excuses(w: World, item: Item, state: str, allowed: tuple[str, ...]) -> bool:
    if state in allowed or (w.status == "E" and state in item.excused):
        return True
    # A failed transaction whose link died is a failed one on another link, of which nobody hears before it is to go on.
    if w.status == "E" and LOST[0] in allowed and state in GONE:
        return True
    portal = w.portals.get(getattr(item, "portal", None) or "") if isinstance(item, Execute) else None
    return state == "55000" and portal is not None and portal.is_doubtful


class Judge:
    """Follows what was told through all that may be so."""

    def __init__(self, allowed: tuple[str, ...]):
        self.allowed = allowed
        self.why: list[str] = []

    def segment(self, worlds: list[World], items: list[Item], told: list[Msg], is_end: bool) -> list[World]:
        """Worlds that agree with what was told. With `is_end` the session ended there."""
        self.why = []
        found: dict[tuple, World] = {}
        for w in worlds:
            for one in self.follow(w.copy(), items, told, is_end):
                found.setdefault(one.key(), one)
        return list(found.values())

    def follow(self, w: World, items: list[Item], told: list[Msg], is_end: bool) -> list[World]:
        at, skips = 0, False
        for i, item in enumerate(items):
            before = w.copy()
            if w.ghost:
                item.answers(w.ghost)
            if skips and not item.ends:
                continue
            expected = item.answers(w)
            good = 0
            while good < len(expected) and at + good < len(told) and expected[good].fits(told[at + good]):
                good += 1
            if good < len(expected):
                before, rest = item.in_part(before, sum(m.type == "C" for m in told[at:at + good]))
                return self.otherwise(before, [rest, *items[i + 1:]], told[at + good:], is_end, expected[good])
            at += good
            skips = bool(expected) and expected[-1].type == "E"
        if at < len(told):
            self.why.append(f"more than expected: {told[at].type} {told[at].body[:80]!r}")
            return []
        return [w]

    def otherwise(self, w: World, rest: list[Item], told: list[Msg], is_end: bool, expect) -> list[World]:
        """Not what was foreseen."""
        if is_end and not told:
            return [w]
        what = " ".join(f"{m.type} {m.fields if m.type == 'E' else m.row() if m.type == 'D' else m.body[:90]!r}" for m in told[:2])
        if not told or told[0].type != "E" or not excuses(w, rest[0], told[0].sqlstate, self.allowed):
            self.why.append(f"{rest[0]} in {w.status} {expect}: {what}")
            return []
        if is_end and len(told) == 1:
            return [w]
        if len(told) != 2 or told[1].type != "Z":
            self.why.append(f"behind an error: {what}")
            return []
        found = self.ready(w, rest, told[1].body.decode(), told[0].sqlstate in LOST + GONE)
        if not found:
            self.why.append(f"{rest[0]} in {w.status}: {what}")
        return found

    def ready(self, w: World, rest: list[Item], status: str, is_lost: bool) -> list[World]:
        """Behind an error that nobody foresaw, in doubt what was done."""
        ideal = w.copy()
        one = w.copy()
        for item in rest:
            item.answers(ideal)
            if one.ghost:
                item.answers(one.ghost)
        ghost = one.ghost or (ideal.copy() if is_lost else None)
        found = [one]
        if status == "E" and (w.status != "I" or ideal.begun > w.begun):
            one.begin()
            one.status, one.ghost = "E", ghost
            if is_lost and ghost is not None and ideal.ended > w.ended:
                two = one.copy()
                two.stack[0] = copy.copy(two.stack[0])
                two.stack[0].n, two.stack[0].m = ghost.written()
                found.append(two)
        elif status == "I" and (w.status == "I" or ideal.ended > w.ended):
            one.end(False)
            if is_lost and ghost is not None:
                two = one.copy()
                two.n, two.m = ghost.written()
                three = ghost.copy()
                three.end(False)
                found += [two, three]
        else:
            return []
        first = w.copy()
        rest[0].answers(first)
        if is_lost and first.statements.keys() != w.statements.keys():
            for other in list(found):
                found.append(other.copy())
                found[-1].statements = dict(first.statements)
        return [x for f in found for x in (f, *rest[0].in_doubt(f))]


class Client(Asker, threading.Thread):
    """One session after the other."""

    def __init__(self, house, number: int):
        threading.Thread.__init__(self, daemon=True)
        Asker.__init__(self, number, random.Random(f"{house.seed} {number}"))
        self.house = house
        self.is_super = number % 3 != 1
        self.is_hit = number % 2 == 0  # cancel requests and KILL CLIENT are for these
        self.judge = Judge(house.excused + (("57014",) if self.is_hit and house.cancels else ()))
        self.wire: Wire | None = None
        self.worlds: list[World] = []
        self.written: dict[str, tuple[int, int, int, int]] = {}
        self.old_keys: list[tuple[int, bytes]] = []
        self.segments = self.errors = self.killed = 0
        self.trouble = ""
        self.history: list[str] = []
        self.tape: list[list[list[Item]]] = []  # all that this session sent

    # ---- a session

    def connect(self) -> None:
        end = waits.deadline(60)
        self.session += 1
        self.me = f"mk{self.number}s{self.session}"
        user = "postgres" if self.is_super else "trust_user"
        self.can_be = "role" if not self.is_super else self.rng.choice(("role", "session_authorization"))
        start = {**START, "session_authorization": user}
        while True:
            self.killed = self.house.killed_workers
            w = None
            try:
                w = self.house.wire(self.rng)
                found = w.login(user)
                if found[-1].type == "Z":
                    break
                if found[-1].sqlstate not in self.house.refused:
                    raise Verdict(f"not let in: {found[-1].fields}")
            except (WireClosed, OSError) as e:
                if not self.house.killed_workers or waits.now() > end:
                    raise Verdict(f"not let in: {e!r}") from e
            if w is not None:
                w.bye()
            if waits.now() > end:
                raise Verdict("not let in for 60 s")
            self.house.ending.wait(0.02)
        for m in found:
            self.look_for_others(m, found)
        self.wire = w
        self.old_keys.append((w.pid, w.key))
        self.worlds = [World(self.me, dict(start), start)]
        self.history = []
        self.tape = []

    def look_for_others(self, m: Msg, before: list[Msg]) -> None:
        """No message may carry another client's mark, nor one of an earlier session's."""
        for found in MARK.finditer(m.body):
            if found.group(0)[:-1].decode() != self.me:
                raise Verdict(f"UNFORGIVABLE: {self.me} is told {found.group(0)!r}: {m.type} {m.body[:300]!r} behind "
                              f"{[(b.type, b.fields if b.type == 'E' else b.body[:40]) for b in before]}")

    def told(self) -> tuple[list[Msg], bool]:
        """Up to ReadyForQuery, or the end."""
        found: list[Msg] = []
        assert self.wire is not None
        try:
            while True:
                m = self.wire.read()
                self.look_for_others(m, found)
                if m.type not in "NSA":
                    found.append(m)
                if m.type == "Z":
                    return found, False
        except WireClosed:
            return found, True

    def expect(self, items: list[Item]) -> bool:
        """False when the session is over."""
        found, is_end = self.told()
        self.history.append(f"  told of {items[0]}: " + " ".join(
            m.type + (m.sqlstate if m.type == "E" else m.body.decode() if m.type == "Z" else "") for m in found))
        self.segments += 1
        self.errors += any(m.type == "E" for m in found)
        last = found[-1] if found and found[-1].type == "E" else None
        if is_end:
            farewell = last.sqlstate if last is not None and last.fields["S"] == "FATAL" else ""
            if self.wire is not None and self.wire.inbuf and not farewell:
                farewell = "57P01"  # cut off in the midst of a message, nothing can be said
            if not self.house.can_end(self, farewell):
                raise Verdict(f"cut off: {[m.fields if m.type == 'E' else m.type for m in found]}")
            if last is not None and last.fields["S"] == "FATAL":
                found.pop()
        worlds = self.judge.segment(self.worlds, items, found, is_end)
        if not worlds:
            raise Verdict("\n    ".join([*dict.fromkeys(self.judge.why), " ".join(map(str, items))]))
        if not is_end:
            self.worlds = worlds[:MANY]
        return not is_end

    def note(self, worlds: list[World], items: list[Item]) -> None:
        """The least and the most that may be written at last. `items` may or may not have been done."""
        most = [w.copy() for w in worlds]
        for w in most:
            for item in items:
                item.answers(w)
        every = [x for w in (*worlds, *most) for x in (w.written(), (w.n, w.m), w.ghost.written() if w.ghost else (0, 0))]
        sure = [w.written() for w in worlds]
        adds = sum(1 + len(getattr(i, "keys", [])) + 3 * isinstance(i, Query) for i in items)
        self.written[self.me] = (min(n for n, _ in sure), max(n for n, _ in every) + adds,
                                 min(m for _, m in sure), max(m for _, m in every) + adds)

    # ---- what it does

    def turn(self) -> None:
        if self.wire is None:
            self.connect()
        assert self.wire is not None
        self.ahead = self.worlds[0].copy()
        if self.rng.random() < 0.01:
            self.house.ending.wait(self.rng.choice((0.01, 0.05, self.house.idle)))
        batch = [self.segment() for _ in range(self.rng.choice((1, 1, 1, 1, 2, 4)))]
        self.history = self.history[-40:] + [" ".join(map(str, items)) for items in batch]
        self.tape.append(batch)
        self.exchange(batch)

    def exchange(self, batch: list[list[Item]]) -> None:
        wire = self.wire
        assert wire is not None
        done = 0
        try:
            data = b"".join(i.data for items in batch for i in items)
            if self.rng.random() < self.house.vanishing:
                self.vanish(data)
                self.lost(batch)
                return
            wire.chunk = self.rng.choice((0, 0, 0, 1 + self.rng.randrange(60)) if len(data) < 2000 else (0, 3000))
            if len(batch[0]) > 2 and self.rng.random() < 0.15:
                self.in_two(batch)
            else:
                wire.send(data)
            for done, items in enumerate(batch):
                if not self.expect(items):
                    self.lost(batch[done:])
                    return
        except WireClosed as e:
            # What was said before is in the buffer.
            while done < len(batch) and self.wire is not None and self.expect(batch[done]):
                done += 1
            if self.wire is not None and done == len(batch):
                raise Verdict(f"all was answered, but {e}") from e
            self.lost(batch[done:])

    def in_two(self, batch: list[list[Item]]) -> None:
        """The first messages, which must be answered before the others are sent."""
        assert self.wire is not None
        cut = self.rng.randrange(1, len(batch[0]))
        self.wire.send(*(i.data for i in batch[0][:cut]), FLUSH)
        self.wire.fill(5)
        self.wire.send(*(i.data for items in (batch[0][cut:], *batch[1:]) for i in items))

    def vanish(self, data: bytes) -> None:
        wire = self.wire
        assert wire is not None
        way = self.rng.randrange(5)
        if way < 4:
            wire.send(data[:self.rng.randrange(len(data) + 1)])
        if way == 0:
            wire.reset()
        elif way == 1:
            wire.half_close()
            self.to_the_end()
        elif way == 4:
            wire.send(message("z"))
            self.to_the_end()

    def to_the_end(self) -> None:
        assert self.wire is not None
        for m in self.wire.read_eof():
            self.look_for_others(m, [])

    def lost(self, batch: list[list[Item]]) -> None:
        self.note(self.worlds, [i for items in batch for i in items])
        if self.wire is not None:
            self.wire.sock.close()
        self.wire = None

    def leave(self) -> None:
        """Looks once more, and goes."""
        assert self.wire is not None
        m = self.mark()
        see = Sql("see", SEE.format(mark=f"'{m}'", me=f"'{self.me}'"), m, 0, 11)
        for sql in (Sql("rollback", "rollback"), see):
            item = Query(sql)
            try:
                self.wire.send(item.data)
            except WireClosed:
                pass
            if not self.expect([item]):
                self.lost([[item]])
                return
        self.note(self.worlds, [])
        self.wire.bye()
        self.wire = None

    def play(self, tape: list[list[list[Item]]]) -> None:
        """What a session sent that failed."""
        assert self.wire is not None
        for batch in tape:
            self.wire.send(*(i.data for items in batch for i in items))
            for items in batch:
                assert self.expect(items), "it ends"

    def run(self) -> None:
        try:
            while not self.house.ending.is_set():
                self.turn()
                if self.wire is not None and self.rng.random() < 0.01:
                    self.leave()
            if self.wire is not None:
                self.leave()
        except BaseException as e:  # pylint: disable=broad-except
            if "PGT_CHAOS_TAPE" in os.environ and self.worlds:
                tape = Path(os.environ["PGT_CHAOS_TAPE"] + "." + self.me)
                tape.write_bytes(pickle.dumps((self.me, self.worlds[0].start, self.tape)))
            self.trouble = (f"client {self.number}: {type(e).__name__}: {e}\n  in {len(self.worlds)} worlds: "
                            f"{[(w.status, w.shown(), bool(w.ghost)) for w in self.worlds[:3]]}\n  " + "\n  ".join(self.history))
            if isinstance(e, WireTimeout):
                self.trouble += self.house.what_goes_on()
            self.house.ending.set()
