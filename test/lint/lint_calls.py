# SPDX-License-Identifier: PostgreSQL
"""lint_calls: which file calls which, for check_house (cycles) and check_layers (parts of the session).
"""
import collections
import re

from lint_common import functions

NAME = re.compile(r"(?<![.>\w])[A-Za-z_]\w+")
TAG = re.compile(r"\b(?:struct|union|enum)\s+\w+")
Graph = dict[str, set[str]]


class Source:
    """A .c file: what it defines and which names it has."""

    def __init__(self, path: str, code: str):
        self.path = path
        self.functions = functions(path)
        lines = code.split("\n")
        self.own: set[str] = set()
        self.exported: set[str] = set()
        for f in self.functions:
            head = "\n".join(lines[f.first - 1:f.first + 2]).partition("(")[0]
            (self.own if re.search(r"\bstatic\b", head) else self.exported).add(f.name)
        # A struct may have the name of a function: `struct conf_load` is no call of conf_load().
        self.names = set(NAME.findall(TAG.sub("", code)))

    @property
    def area(self) -> str:
        return self.path.rsplit("/", 1)[0].rsplit("/", 1)[-1]


def calls(sources: list[Source]) -> Graph:
    """Which file needs which."""
    homes: dict[str, list[str]] = collections.defaultdict(list)
    for s in sources:
        for name in s.exported:
            homes[name].append(s.path)
    home = {name: paths[0] for name, paths in homes.items() if len(paths) == 1}
    return {s.path: {home[n] for n in s.names - s.own if n in home} - {s.path} for s in sources}
