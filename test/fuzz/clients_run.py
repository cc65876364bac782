# SPDX-License-Identifier: PostgreSQL
"""clients_run: a script of clients_script played twice at once: each client has a connection through pgpool and one of
its own to PostgreSQL, and what the two say is the same, message by message, and so is what they believe of parameters.
"""
import contextlib
import re
from dataclasses import dataclass
from typing import Callable

from clients_script import Step, Turn

from pgt import postgres, proxy, waits
from pgt.normal import Normalizer
from pgt.wire import Address, Wire, WireClosed, WireTimeout

CLIENTS = 4
# Those who are tied to their link keep it: one that waits for them would wait for ever.
CONF: dict[str, object] = {"pool_mode": "transaction", "num_init_children": 1, "default_pool_size": CLIENTS + 2,
                           "pool_test_rotate": True}
# Locks and channels of the two runs are not in each other's way.
DIRECT, POOLED = "fuzz_direct", "fuzz_pooled"
# What each client brings with it, and goes back to by RESET.
STARTUP: tuple[dict[str, str], ...] = (
    {}, {"application_name": "second"}, {"options": "-c work_mem=9MB -c my.own=third"},
    {"TimeZone": "Europe/Paris", "DateStyle": "SQL, DMY"})
SECONDS = 20.0
CLOSED, SILENT = "closed", "silent"


class ServerCrashed(Exception):
    """PostgreSQL itself has ended in the direct run."""


@dataclass(frozen=True)
class Answers:
    """What one step was answered in two ways."""
    theirs: list[str]
    ours: list[str]
    said: list[Step]  # by this client, up to this step

    @property
    def at(self) -> int:
        """The first line that differs."""
        same = (a == b for a, b in zip(self.theirs, self.ours))
        return next((i for i, is_same in enumerate(same) if not is_same), min(len(self.theirs), len(self.ours)))

    @property
    def pair(self) -> tuple[str, str]:
        theirs, ours = self.theirs[self.at:self.at + 1], self.ours[self.at:self.at + 1]
        return theirs[0] if theirs else "", ours[0] if ours else ""


@dataclass(frozen=True)
class Known:
    """A difference that is known, and why it is one."""
    why: str
    is_it: Callable[[Answers], bool]
    goes_on: Callable[[Answers], bool]  # the two sessions are the same afterwards


def _is_refused_first(a: Answers) -> bool:
    theirs, ours = a.pair
    asked = ("t ", "n ", "T ", "E ErrorResponse C='08P01'")
    return "C='25P02'" in ours and theirs.startswith(asked) and a.theirs[-1] == a.ours[-1]


def _is_portal_elsewhere(a: Answers) -> bool:
    """In a transaction that has failed: both refuse what is executed, in other words."""
    _, ours = a.pair
    has_failed = all("Z ReadyForQuery E" in lines for lines in (a.theirs, a.ours))
    return "C='34000' M='portal \"\" does not exist'" in ours and has_failed and a.theirs[-1] == a.ours[-1]


def _is_portal_of_begin(a: Answers) -> bool:
    theirs, ours = a.pair
    return theirs == "n NoData" and "C='34000' M='portal \"\" does not exist'" in ours


def _is_parsed_elsewhere(a: Answers) -> bool:
    """A statement is described, and its client has changed the path since it was parsed."""
    theirs, ours = a.pair
    return theirs.startswith("t ") and "C='42P01'" in ours and any(b"search_path" in m for step in a.said for m in step.messages)


def _keeps_names(a: Answers) -> bool:
    return not any(m[:1] in (b"P", b"C") for m in a.said[-1].messages)


def _is_closed(a: Answers) -> bool:
    return a.theirs[-1] == CLOSED and all("C='XX000'" in "".join(lines) for lines in (a.theirs, a.ours))


def _is_snapshot(a: Answers) -> bool:
    return any("SET TRANSACTION ISOLATION LEVEL must be called before any query" in line for line in a.pair)


def _is_told_to_another(a: Answers) -> bool:
    return [line for line in a.theirs if "C='42622'" not in line] == a.ours


def _is_of_execute(a: Answers) -> bool:
    """What is described is an EXECUTE or FETCH by its text."""
    described = {m[6:] for m in a.said[-1].messages if m[:1] == b"D" and m[5:6] == b"S"}
    parsed = {m[5:].split(b"\0")[0] + b"\0" for step in a.said for m in step.messages if m[:1] == b"P" and (b"execute" in m or b"fetch" in m)}
    theirs, ours = a.pair
    return theirs[:2] in ("n ", "T ") and ours[:2] in ("n ", "T ") and not described.isdisjoint(parsed)


def _always(_a: Answers) -> bool:
    return True


def _never(_a: Answers) -> bool:
    return False


KNOWN = (
    Known("in a failed transaction a statement that the link lacks cannot be brought to it: 25P02 comes before what PostgreSQL "
          "says of it, and what is behind it is skipped (known-gaps.md)", _is_refused_first, _keeps_names),
    Known("the unnamed portal of a BEGIN that was answered here, or of a sequence that ran elsewhere, is not there: 34000 (known-gaps.md)",
          _is_portal_elsewhere, _keeps_names),
    Known("nor is it there to be described, where its transaction goes on (known-gaps.md)", _is_portal_of_begin, _never),
    Known("a statement that is described on a connection which lacks it is parsed there by the search_path of now (known-gaps.md)", _is_parsed_elsewhere, _never),
    Known("PostgreSQL closes the connection at an EXECUTE of SAVEPOINT, RELEASE or ROLLBACK TO outside of a transaction: "
          "the session goes on with another link (known-gaps.md)", _is_closed, _never),
    Known("a Parse takes a snapshot, behind which SET TRANSACTION is refused: one that is answered here takes none, one of ours, "
          "for a Describe, takes one (known-gaps.md)", _is_snapshot, _never),
    Known("an EXECUTE or FETCH is described as what it names now, not as what that was when it was parsed (known-gaps.md)", _is_of_execute, _always),
    Known("a text that another client has parsed there is not parsed again, nor what is wrong with its names told again",
          _is_told_to_another, _always),
)


@dataclass(frozen=True)
class Difference:
    """What a turn of a script was answered in two ways."""
    turn: int
    who: int
    answers: Answers

    def __str__(self) -> str:
        at = self.answers.at
        theirs, ours = self.answers.theirs[at:at + 2], self.answers.ours[at:at + 2]
        return f"turn {self.turn}, client {self.who}, reply {at}\n    PostgreSQL: {theirs}\n    pgpool:     {ours}"


# The client's names of one text are one statement on a link: which of them a server's error means is not known.
NAME = re.compile(r"prepared statement \\?\"[^\"]*\"")
NORMAL = Normalizer(moves=True)


def _line(kind: str, text: str) -> str:
    return NAME.sub("prepared statement", text) if kind in "EN" else text


def _answers(wire: Wire, step: Step) -> list[str]:
    """What comes up to the last ReadyForQuery, and what the client believes then."""
    lines: list[str] = []
    left = step.ends
    try:
        while left > 0:
            found = wire.read()
            left -= found.type == "Z"
            if found.type != "S":
                lines.append(_line(found.type, NORMAL.line(found)))
    except WireClosed:
        return lines + [CLOSED]
    except WireTimeout:
        return lines + [SILENT]
    return lines + [f"{name}={value}" for name, value in sorted(wire.status.items())]


def _is_crash(theirs: list[str]) -> bool:
    said = "".join(theirs)
    return theirs[-1] == CLOSED and ("ErrorResponse" not in said or "C='57P02'" in said)


class House:
    """A server, and a pgpool in front of it."""

    def __init__(self, pg: postgres.Postgres, pool: proxy.Pgpool):
        self.pg = pg
        self.pool = pool
        self.known: dict[str, int] = {}
        for database in (DIRECT, POOLED):
            if not pg.rows(f"select 1 from pg_database where datname = '{database}'"):
                pg.rows(f"create database {database}")
                tables = "".join(f"create table of_{i}(i int);" for i in range(CLIENTS))
                pg.rows(f"create schema other; {tables}", database)

    @staticmethod
    def _login(address: Address, database: str, who: int = 0) -> Wire:
        wire = Wire(address, seconds=SECONDS)
        assert wire.login(database=database, **STARTUP[who])[-1].type == "Z"
        return wire

    def _fresh_links(self) -> None:
        """Nothing of the script before is left on a link."""
        with self._login(self.pool.address, POOLED) as admin:
            assert admin.simple("pgpool reconnect")[-1].type == "Z"

    def play(self, script: list[Turn]) -> Difference | None:
        """The first difference that is not known. Whatever comes of it, the house is as before."""
        self._fresh_links()
        clients = sorted({step.who for turn in script for step in turn})
        direct = {who: self._login(self.pg.address, DIRECT, who) for who in clients}
        pooled = {who: self._login(self.pool.address, POOLED, who) for who in clients}
        try:
            return self._play(script, direct, pooled)
        finally:
            for wire in (*direct.values(), *pooled.values()):
                wire.sock.close()

    def _play(self, script: list[Turn], direct: dict[int, Wire], pooled: dict[int, Wire]) -> Difference | None:
        said: dict[int, list[Step]] = {who: [] for who in direct}
        for number, turn in enumerate(script):
            for step in turn:
                said[step.who].append(step)
                for wires in (direct, pooled):
                    with contextlib.suppress(WireClosed):  # what it said before that is still to be read
                        wires[step.who].send(*step.messages)
            for step in turn:
                answers = Answers(_answers(direct[step.who], step), _answers(pooled[step.who], step), said[step.who])
                if answers.theirs == answers.ours:
                    continue
                if _is_crash(answers.theirs):
                    raise ServerCrashed(number)
                known = next((k for k in KNOWN if k.is_it(answers)), None)
                if known is None:
                    return Difference(number, step.who, answers)
                self.known[known.why] = self.known.get(known.why, 0) + 1
                if not known.goes_on(answers):
                    return None
        return None

    def recover(self) -> None:
        """The server has crashed."""
        waits.wait_for("PostgreSQL is there again", self._is_there, 30)

    def _is_there(self) -> bool:
        try:
            return self.pg.rows("select 1") == [[b"1"]] and bool(self._login(self.pool.address, POOLED).bye() is None)
        except (AssertionError, WireClosed, OSError):
            return False
