# SPDX-License-Identifier: PostgreSQL
"""clients_small: of a script that differs, the part that is needed for it: turns go first, then messages."""
from dataclasses import replace

from clients_run import Difference, House
from clients_script import Step, Turn

from pgt import waits


class Smaller:
    """Takes things out as long as something differs, whatever that is; not for longer than `seconds`."""

    def __init__(self, house: House, script: list[Turn], found: Difference, seconds: float):
        self.house = house
        self.script = script[:found.turn + 1]
        self.found = found
        self.end = waits.now() + seconds

    def _try(self, script: list[Turn]) -> bool:
        found = self.house.play(script) if script and waits.now() < self.end else None
        if found is None:
            return False
        self.script, self.found = script[:found.turn + 1], found
        return True

    def _fewer_turns(self) -> None:
        size = max(1, len(self.script) // 2)
        while size >= 1:
            at = 0
            while at < len(self.script):
                if not self._try(self.script[:at] + self.script[at + size:]):
                    at += size
            size //= 2

    def _one_by_one(self) -> None:
        """Turns in which several speak at once."""
        for at in range(len(self.script) - 1, -1, -1):
            if at < len(self.script) and len(self.script[at]) > 1:
                alone: list[Turn] = [(step,) for step in self.script[at]]
                self._try(self.script[:at] + alone + self.script[at + 1:])

    def _fewer_messages(self) -> None:
        for at in range(len(self.script) - 1, -1, -1):
            which = 0
            while at < len(self.script) and which < sum(len(step.messages) for step in self.script[at]):
                if not self._try(self._without(at, which)):
                    which += 1

    def _without(self, at: int, which: int) -> list[Turn]:
        """The script without one message of that turn; none when a sequence would lose its Sync."""
        steps: list[Step] = []
        for step in self.script[at]:
            said = step.messages
            if 0 <= which < len(said):
                said = said[:which] + said[which + 1:]
            which -= len(step.messages)
            if said:
                steps.append(replace(step, messages=said))
        if not all(step.is_whole for step in steps):
            return []
        return self.script[:at] + ([tuple(steps)] if steps else []) + self.script[at + 1:]

    def run(self) -> None:
        before = 0
        while before != len(self.script):
            before = len(self.script)
            self._fewer_turns()
            self._one_by_one()
        self._fewer_messages()
        self._fewer_turns()
