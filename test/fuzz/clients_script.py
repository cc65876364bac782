# SPDX-License-Identifier: PostgreSQL
"""clients_script: what the clients of fuzz_clients say, from a seed.

A script is a list of turns; in a turn one client says something, or several do at once. What a client says is a step: one
write of whole exchanges, simple queries and sequences of the extended protocol, well formed or not. All clients use the
same few names, texts and values: what a link keeps of one is what another trips over.
"""
import random
from dataclasses import dataclass
from typing import Callable

from pgt.wire import FLUSH, SYNC, bind, close, describe, execute, message, parse, query

# What the session is. Own settings that were never set count as empty: see pooling_house.
LOOK = query(
    "select current_setting('work_mem'), current_setting('search_path'), current_user, session_user, "
    "coalesce(current_setting('my.own', true), ''), current_setting('application_name'), current_setting('DateStyle'), "
    "current_setting('TimeZone'), current_setting('default_transaction_read_only'), "
    "(select count(*) from pg_listening_channels()), (select count(*) from pg_cursors where is_holdable), "
    "to_regclass('pg_temp.made') is not null")

# {who} is the number of the client: what would have one wait for another.
OFTEN = ("select 1", "select 2", "select $1::int + 1", "select 'a' || $1", "set work_mem = '3MB'", "savepoint s")
TEXTS = OFTEN + (
    # settings
    "set work_mem = '4MB'", "set local work_mem = '6MB'", "show work_mem", "reset work_mem", "reset all",
    "select set_config('work_mem', '5MB', false)", "select set_config('work_mem', $1, false)",
    "select set_config('work_mem', '7MB', true)", "select set_config('my.own', 'local', true), 1",
    "set my.own = '1'", "set local my.own = '2'", "select coalesce(current_setting('my.own', true), '')",
    "set search_path = other", "show search_path", "set application_name = 'x'", "set timezone = 'Asia/Tokyo'",
    "reset timezone", "set datestyle = 'German'", "set session characteristics as transaction read only",
    # who one is
    "set role other_user", "set local role other_user", "reset role", "select current_user",
    "set session authorization other_user", "reset session authorization",
    # transactions
    "begin", "begin", "commit", "rollback", "savepoint s", "rollback to s", "rollback to s", "release s",
    "commit and chain", "rollback and chain", "begin read only", "set transaction isolation level serializable",
    # statements by name
    "prepare q1 as select 11", "execute q1", "deallocate q1", "prepare n1 as select 12", "execute n1", "deallocate n1",
    "explain (costs off) execute q1", "deallocate all",
    # what stays on a link
    "listen heard", "unlisten *", "select count(*) from pg_listening_channels()", "create temp table made(i int)",
    "drop table made", "select count(*) from made", "select pg_advisory_lock(1{who})", "select pg_advisory_unlock(1{who})",
    "declare held cursor with hold for select 3", "fetch held", "close held", "discard temp", "discard all",
    # reads and writes, and what is wrong
    "select generate_series(1, 5)", "insert into of_{who} values (1)", "select count(*) from of_{who} where false",
    "copy (select 4) to stdout", "do $$begin perform set_config('my.own', 'done', false); end$$",
    "select 1/0", "select bogus", "", " ", "select 1; select 2")

NAMES = ("", "", "n1", "n2", "n3", "n4")
PORTALS = ("", "", "p", "q")
# What SQL cuts off, and the protocol does not; the last one within a letter.
LONG_NAMES = ("n" * 63, "n" * 64, "n" * 70, "n" * 1100, "n" * 62 + "é")
# More than pgpool looks at in one piece (CLIENT_COLLECT_MAX).
LONG_TEXT = "select 1 /*" + "x" * 140_000 + "*/"
# Refused while it is read; Describe and Execute are done before PostgreSQL looks at their ends.
MALFORMED = (message("P", b"\0select 1\0\0\0more"), message("P", b"n1\0select 1"), message("C", b"S\0more"),
             message("B", b"\0\0\0\0"), message("H", b"more"))


@dataclass(frozen=True)
class Step:
    """One write of one client."""
    who: int
    messages: tuple[bytes, ...]

    @property
    def ends(self) -> int:
        """How many ReadyForQuery answer it."""
        return sum(m[:1] in (b"Q", b"S") for m in self.messages)


    @property
    def is_whole(self) -> bool:
        """Each sequence ends with its Sync: else how many ReadyForQuery come depends on its errors."""
        kinds = [m[:1] in (b"Q", b"S") for m in self.messages]
        begins_query = [m[:1] == b"Q" for m in self.messages]
        return kinds[-1] and all(end or not query for end, query in zip(kinds, begins_query[1:]))


Turn = tuple[Step, ...]
Group = tuple[bytes, ...]


class Speaker:
    """One client's choice of words."""

    def __init__(self, rng: random.Random, who: int):
        self.rng = rng
        self.who = who
        self.makers: list[tuple[int, Callable[[], Group]]] = [
            (24, self.prepares), (16, self.uses), (14, self.at_once), (6, self.by_name), (6, self.executes_again),
            (12, self.closes), (5, self.describes), (3, lambda: (FLUSH,)), (3, self.other_portal), (5, self.long_name),
            (2, lambda: (self.rng.choice(MALFORMED),)), (1, self.short_lived), (0.2, self.long_text)]

    def text(self) -> str:
        words = TEXTS if self.rng.random() < 0.6 else OFTEN
        return self.rng.choice(words).replace("{who}", str(self.who))

    def name(self) -> str:
        return self.rng.choice(NAMES)

    @staticmethod
    def values(text: str) -> list[str]:
        return ["3"] if "$1" in text else []

    def prepares(self) -> Group:
        return (parse(self.text(), self.name()),)

    def uses(self) -> Group:
        """A statement of before, and perhaps another portal than was bound."""
        values = ["3"] if self.rng.random() < 0.3 else []
        bound = bind(values, portal=self.rng.choice(PORTALS), name=self.name())
        shown = (describe("", "P"),) if self.rng.random() < 0.2 else ()
        return bound, *shown, execute(self.rng.choice(PORTALS), self.rng.choice((0, 0, 0, 2)))

    def at_once(self) -> Group:
        text = self.text()
        return parse(text), bind(self.values(text)), execute()

    def by_name(self) -> Group:
        text, name = self.text(), self.name()
        return parse(text, name), bind(self.values(text), name=name), execute()

    def executes_again(self) -> Group:
        return (execute(self.rng.choice(PORTALS), self.rng.choice((0, 0, 1))),)

    def closes(self) -> Group:
        return (close(self.name()),)

    def describes(self) -> Group:
        return (describe(self.name()),)

    def other_portal(self) -> Group:
        portal = self.rng.choice(PORTALS)
        return (close(portal, "P"),) if self.rng.random() < 0.5 else (describe(portal, "P"),)

    def long_name(self) -> Group:
        name = self.rng.choice(LONG_NAMES)
        kind = self.rng.randrange(4)
        if kind == 0:
            return parse(self.text(), name), bind(name=name), execute()
        if kind == 1:
            return bind(name=name), execute()
        if kind == 2:
            cut = f"prepare {name} as select 13" if self.rng.random() < 0.5 else f"execute {name}"
            return parse(cut), bind(), execute()
        return (close(name),)

    def short_lived(self) -> Group:
        text = self.text()
        return parse(text), bind(self.values(text), portal="sp"), execute("sp"), close("sp", "P")

    def long_text(self) -> Group:
        return parse(LONG_TEXT), bind(), execute()

    def sequence(self) -> Group:
        said: list[bytes] = []
        weights = [w for w, _ in self.makers]
        for _, make in self.rng.choices(self.makers, weights, k=self.rng.randrange(1, 7)):
            said += make()
            if self.rng.random() < 0.05:
                said.append(SYNC)
        return (*said, SYNC)

    def exchange(self) -> Group:
        if self.rng.random() < 0.45:
            return (query(self.text().replace("$1", "'3'")),)
        return self.sequence()

    def step(self) -> Step:
        """Mostly one exchange; some are sent while the one before is not answered yet."""
        said = self.exchange()
        while self.rng.random() < 0.12:
            said += self.exchange()
        return Step(self.who, said)

    def life(self) -> list[Step]:
        """Something of everything, and then a look at what came of it; mostly it is undone, and looked at again."""
        steps = [self.step() for _ in range(self.rng.randrange(6, 14))]
        ends = [query("rollback"), LOOK]
        if self.rng.random() < 0.6:
            ends += [query("reset session authorization"), query("discard all"), LOOK]
        return steps + [Step(self.who, (m,)) for m in ends]


def script_of(seed: int, clients: int) -> list[Turn]:
    """Each client lives three times; whose turn it is, and who speaks at once, the seed says, too."""
    rng = random.Random(seed)
    speakers = [Speaker(rng, who) for who in range(clients)]
    left = [[step for _ in range(3) for step in speaker.life()] for speaker in speakers]
    turns: list[Turn] = []
    while any(left):
        waiting = [steps for steps in left if steps]
        if rng.random() < 0.2:
            turns.append(tuple(steps.pop(0) for steps in rng.sample(waiting, rng.randrange(1, len(waiting) + 1))))
            continue
        steps = rng.choice(waiting)
        for _ in range(min(rng.choice((1, 1, 2, 4)), len(steps))):
            turns.append((steps.pop(0),))
    return turns


# ---- how it is shown

def _cut(text: bytes) -> str:
    return repr(text.decode("latin-1") if len(text) < 200 else f"{text[:40].decode('latin-1')}... {len(text)} bytes")


def _strings(body: bytes, count: int) -> list[bytes]:
    parts = body.split(b"\0", count)
    return parts if len(parts) > count else parts + [b""] * (count + 1 - len(parts))


def _shown_bind(body: bytes) -> str:
    portal, name, rest = _strings(body, 2)
    values = "['3']" if b"\0\0\0\x013" in rest else "[]"
    return f"bind({values}, portal={_cut(portal)}, name={_cut(name)})"


def _shown_parse(body: bytes) -> str:
    name, text, _ = _strings(body, 2)
    return f"parse({_cut(text)}, {_cut(name)})"


def _shown_execute(body: bytes) -> str:
    return f"execute({_cut(body[:-5])}, {int.from_bytes(body[-4:], 'big')})"


SHOWN: dict[bytes, Callable[[bytes], str]] = {
    b"Q": lambda body: f"query({_cut(body[:-1])})", b"P": _shown_parse, b"B": _shown_bind, b"E": _shown_execute,
    b"C": lambda body: f"close({_cut(body[1:-1])}, {chr(body[0])!r})",
    b"D": lambda body: f"describe({_cut(body[1:-1])}, {chr(body[0])!r})",
    b"S": lambda body: "SYNC", b"H": lambda body: "FLUSH"}


def shown(raw: bytes) -> str:
    """A message as it is written in a test."""
    kind, body = raw[:1], raw[5:]
    if raw in MALFORMED:
        return f"message({kind.decode()!r}, {body!r})"
    return "LOOK" if raw == LOOK else SHOWN[kind](body)


def shown_turn(turn: Turn) -> str:
    return "\n".join(f"    {'together: ' if len(turn) > 1 else ''}c{s.who}.send({', '.join(map(shown, s.messages))})"
                     for s in turn)
