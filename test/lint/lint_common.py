# SPDX-License-Identifier: PostgreSQL
"""lint_common: what the lints share: which files there are, C without its comments and strings.

Every lint prints one line per violation as file:line: text, and a last line with its counts. A rule
is broken only with a mark that carries a reason; marks are counted and printed.
"""
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Iterable, NamedTuple

TOP = Path(__file__).resolve().parent.parent.parent


class Violation(NamedTuple):
    path: str
    line: int
    text: str


def all_files() -> list[str]:
    """Files of the project, tracked or new, without what .gitignore names; paths from the top."""
    git = ["git", "-C", str(TOP), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(git, capture_output=True, check=False)
    if run.returncode == 0:
        names = [n for n in run.stdout.decode().split("\0") if n]
    else:
        names = walk_files()
    return sorted(n for n in set(names) if (TOP / n).is_file())


def walk_files() -> list[str]:
    """Files of the project without git: of an unpacked `make dist` archive."""
    found = []
    for folder, dirs, files in os.walk(TOP):
        dirs[:] = [d for d in dirs if not d.startswith((".git", "build", "venv", "autom4te"))
                   and d != "__pycache__"]
        found += [str((Path(folder) / f).relative_to(TOP)) for f in files]
    return found


def files_of(*suffixes: str, under: Iterable[str] = ("",)) -> list[str]:
    return [f for f in all_files() if f.endswith(suffixes) and f.startswith(tuple(under))]


def read(path: str) -> str:
    return (TOP / path).read_text(encoding="utf-8", errors="replace")


_TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def _blank(match: re.Match) -> str:
    text = match.group(0)
    if text[0] == '"' or text[0] == "'":
        return text[0] + " " * (len(text) - 2) + text[0]
    return re.sub(r"[^\n]", " ", text)


def code_only(text: str) -> str:
    """C text with comments and the inside of strings blanked; lines and columns stay."""
    return _TOKEN.sub(_blank, text)


def comments_only(text: str) -> list[tuple[int, str]]:
    """(line, text) of every comment."""
    return [(text.count("\n", 0, m.start()) + 1, m.group(0))
            for m in _TOKEN.finditer(text) if m.group(0).startswith("/")]


def no_preprocessor(code: str) -> str:
    """Blanks preprocessor lines with their continuations. Of #if ... #else ... #endif only the first
    branch stays, so that braces stay balanced."""
    out = []
    skipping: list[bool] = []
    continued = False
    for line in code.split("\n"):
        stripped = line.strip()
        directive = not continued and stripped.startswith("#")
        if directive:
            _track_branch(stripped, skipping)
        dead = directive or continued or any(skipping)
        continued = (directive or continued) and line.endswith("\\")
        out.append("" if dead else line)
    return "\n".join(out)


def _track_branch(stripped: str, skipping: list[bool]) -> None:
    word = stripped[1:].strip()
    if word.startswith("if"):
        skipping.append(False)
    elif word.startswith(("else", "elif")) and skipping:
        skipping[-1] = True
    elif word.startswith("endif") and skipping:
        skipping.pop()


class Function(NamedTuple):
    name: str
    path: str
    first: int  # line of the name's declarator
    last: int   # line of the closing brace
    body: str   # code between the outer braces

    @property
    def lines(self) -> int:
        return self.last - self.first + 1


_HEAD = re.compile(r"([A-Za-z_]\w*)\s*\(")


def _head_name(head: str) -> str | None:
    """The function's name when `head`, the text before a brace at file level, starts one."""
    flat = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head, flags=re.S)
    match = _HEAD.search(flat)
    if match is None or "=" in flat or not flat.rstrip().endswith(")"):
        return None
    if match.group(1) in ("if", "for", "while", "switch", "return", "extern"):
        return None
    return match.group(1)


def functions(path: str, text: str | None = None) -> list[Function]:
    """Function definitions of a C file."""
    code = no_preprocessor(code_only(read(path) if text is None else text))
    found = []
    depth = start = body_at = 0
    name = None
    for i, c in enumerate(code):
        if c == "{":
            if depth == 0:
                name, body_at = _head_name(code[start:i]), i
            depth += 1
        elif c == "}":
            depth = max(0, depth - 1)
            if depth == 0 and name is not None:
                found.append(_function(path, code, start, body_at, i, name))
                name = None
            if depth == 0:
                start = i + 1
        elif c == ";" and depth == 0:
            start = i + 1
    return found


def _function(path: str, code: str, start: int, body_at: int, end: int, name: str) -> Function:
    lead = len(code[start:]) - len(code[start:].lstrip())
    first = code.count("\n", 0, start + lead) + 1
    return Function(name, path, first, code.count("\n", 0, end) + 1, code[body_at + 1:end])


def report(name: str, violations: list[Violation], checked: str, exceptions: int = 0) -> int:
    """Prints violations and the count line; the exit status."""
    for v in sorted(set(violations)):
        print(f"{v.path}:{v.line}: {v.text}")
    print(f"{name}: {len(set(violations))} violations, {exceptions} marked exceptions, {checked}")
    return 1 if violations else 0


def main(run) -> None:
    sys.exit(run(sys.argv[1:]))
