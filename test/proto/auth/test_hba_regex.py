# SPDX-License-Identifier: PostgreSQL
"""test_hba_regex: what expressions of pool_hba.conf and pg_ident.conf match, and what \\1 is, by PostgreSQL's own word: random ones and those
that people write. PostgreSQL matches bytes while it authenticates: the oracle is a data base without an encoding. The program is hba_gate
(test/unit/auth)."""
import os
import random
import re
import subprocess

import pytest
from pgt import postgres
from pgt.wire import Wire

GATE = os.path.join(os.path.dirname(os.environ.get("PGPOOL_BIN", "")) or os.getcwd(), "hba_gate")
pytestmark = [pytest.mark.skipif(not os.access(GATE, os.X_OK), reason="hba_gate is not built"),
              pytest.mark.skipif(not postgres.is_installed(), reason="no PostgreSQL server is installed")]

PROBE = """create function probe(re text, has_group bool, names text[]) returns text language plpgsql as $$
declare n text; m text[]; out text := '';
begin
  foreach n in array names loop
    m := regexp_match(n collate "C", re);
    if not (n collate "C" ~ re) then out := out || '- ';
    elsif m is null or m[1] is null or not has_group then out := out || '? ';
    else out := out || '=' || encode(convert_to(m[1], 'SQL_ASCII'), 'hex') || ' ';
    end if;
  end loop;
  return out;
exception when invalid_regular_expression then return 'error';
end $$"""
# As people write them, and one of each thing that may stand in an expression.
WRITTEN = [
    r"^(.*)@example\.com$", r"^(\w+)@(?:example|other)\.(com|org)$", r"^(?:cn|CN)=([^,]+),", r"(?i)^(.*)@EXAMPLE\.com$", r"^([^@]*)@.*$",
    r"^\x61(\u0062)\U00000063", r"^[\D]+$", r"^[\w.-]+$", r"[^\W\d]", r"[\s\S]", r"[[:<:]]ab[[:>:]]", r"\mab\M", r"\yab\y", r"a\Yb", r"\Aab\Z",
    r"(a)(?:b)(c)\2", r"(?:a|(b))\1", r"***:ab", r"***=a.b", r"***a", r"(?q)a.b", r"(?x) a b # c", r"(?x)a {2}", r"(?n)^b", r"(?p)a.b", r"(?w)^b", r"(?s)^b",
    r"(?nw)a.b$", r"a(?#note)*b", r"a{2}", r"a{2,}", r"a{,2}", r"a{0,1}", r"a{256}", r"a{3,2}", r"a{1", r"a{1,2,3}", r"a{0}b", r"a**", r"a*?", r"a+?b",
    r"(a*?)(b*)", r"^*", r"a|*", r"(*a)", r"a||b", r"()", r"(|a)b", r"a)", r"(a", r"[a", r"[]a]", r"[^]a]", r"[a-]", r"[-a]", r"[--a]", r"[a--]", r"[a-b-c]",
    r"[b-a]", r"[[.a.]-c]", r"[[=a=]b]", r"[[=a=]-c]", r"[[:alpha:]-z]", r"[[:foo:]]", r"[a-\d]", r"[\m]", r"[\1]", r"[\x41-\x43]", r"[\]]", r"[a\-c]",
    r"[[.hyphen.]]", r"[[.ab.]]", r"\101", r"\18", r"(a)\11", r"\1", r"(\1)", r"\8", r"\0", r"[\0a]", r"\777", r"\x", r"\xg", r"\u12", r"\q", r"\ca", "\\", r"\.",
    r"\@", r"(?=a)", r"(?!a)", r"(?<=a)b", r"(?<!a)b", r"(?<=(?:a))b", r"(?<=a|ab)b(?=c)", r"^(?!root)(.*)@x$", r"(a+?)(b*)", r"^(.*?)@(.*)$", r"(?:a*?b)(a*)", r"((a*)(b*?))c?", r"(?e)a", r"(?b)a", r"(?z)a", r"(?i", r"(?)a", r"(?ia)", r"[[]", r"[[a]", r"[^-^[]", r"[^[]", r"[\^]", r"[\^\-]",
    r"[[:upper:]]", r"(?i)[[:upper:]]", r"(?i)[^a]", r"(?i)(a)\1", "\\x80", "[\\x80-\\xff]", "\xe9", "[\xe9]", r"\u0100", r"[^\u0100]", r"[[:cntrl:]]", r"$a", r"a^",
    r"(^a|b$)", r"a$|^b", r"(a|ab)(c|bcd)", r"(a|ab)(bc|c)?", r"((a)|b)*c", "[[:alnum:]_.]{1,3}", r"(.*)(b|c)", r"^([^,]+),([^,]+)$", r"(a{1,2}){2}", r"{a", r"a{b",
    r"(?:a(b)?)+", r"([ab]*)b", r"(ab|a)(bab|b)?", r"\D\W\S", "[\\e\\a\\b\\B]", r"(?x)[ a]", r"(?i)\x41", r"a{ 1}", r"(?x)a{ 1 , 2 }",
]
REFUSED = [b"(?e", b"(?b", b"[[.hyphen.]]"]  # and what error says "complex" or "not supported"
NAMES = ["", "a", "b", "ab", "abc", "abab", "ba", "aab", "abbc", "A", "Ab", "ann@example.com", "Ann@EXAMPLE.COM", "cn=ann,dc=x", "CN=b", "x.y-z_9", "a.b", "a b", "1", "a1",
         "9", "a\nb", "b\na", "-", "]", "[", "^", "\\", "é", "{a", "a{b", "a{1", " ", "aa", "aaa", "abcbcd", "\x01", "\x1b", "\x07", "S", "?7", "ac", "acc", "abcb", "bb", "a1b", "A1", "a,b"]
ATOMS = ["a", "b", "c", ".", r"\w", r"\d", "[ab]", "[^a]", "[^ab]", r"[\w]", r"[\D]", r"\x61", r"[\x61-b]", r"\W", "[[:alpha:]]", r"\.", "-", "[a-c]"]
ANCHORS = ["^", "$", r"\y", r"\m", r"\M", r"\A", r"\Z", r"\Y"]
COUNTS = ["", "", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}", "*?", "+?", "??", "{1,2}?"]


def make(rng: random.Random, depth: int = 0, is_looking: bool = False) -> str:
    """A random expression that is right, mostly. Nothing is caught within look-around."""
    out = []
    for _ in range(rng.randrange(1, 4)):
        kind = rng.random()
        if kind < 0.12:
            out.append(rng.choice(ANCHORS))
        elif kind < 0.15 and depth < 3:
            out.append(rng.choice(["(?=", "(?!", "(?<=", "(?<!"]) + make(rng, depth + 1, True) + ")")
        elif kind < 0.19 and not is_looking and re.search(r"\([^?]", "".join(out)):
            out.append(r"\1" + rng.choice(COUNTS))
        elif kind < 0.4 and depth < 3:
            out.append(("(?:" if is_looking else rng.choice(["(", "(", "(?:"])) + make(rng, depth + 1, is_looking) + ")" + rng.choice(COUNTS))
        else:
            out.append(rng.choice(ATOMS) + rng.choice(COUNTS))
    text = "".join(out)
    if rng.random() < 0.25:
        text += "|" + make(rng, depth + 1, is_looking)
    if depth == 0 and rng.random() < 0.2:
        text = rng.choice(["(?i)", "(?n)", "(?p)", "(?w)", "(?x)"]) + text
    return text


def names_for(rng: random.Random) -> list[str]:
    return ["".join(rng.choice("aabbcA1.-\n") for _ in range(rng.randrange(7))) for _ in range(8)]


def ours(cases: list[tuple[bytes, list[bytes]]]) -> list[str]:
    text = "".join(" ".join("x" + part.hex() for part in [expression, *names]) + "\n" for expression, names in cases)
    done = subprocess.run([GATE, "-"], input=text, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split("\n")[:-1]


def has_group(expression: bytes) -> bool:
    """regexp_match gives the whole match where there is none."""
    return re.search(rb"(?<!\\)\((?!\?)", expression) is not None and not expression.startswith((b"(?q)", b"***="))


def theirs(pg: postgres.Postgres, cases: list[tuple[bytes, list[bytes]]]) -> list[str]:
    def text(raw: bytes) -> str:
        return "convert_from('\\x%s', 'SQL_ASCII')" % raw.hex()

    out = []
    with Wire(pg.socket) as w:
        assert w.login(database="bytes")[-1].type == "Z"
        w.rows(PROBE)
        for expression, names in cases:
            given = ",".join(text(name) for name in names)
            out.append((w.rows(f"select probe({text(expression)}, {has_group(expression)}, array[{given}])")[0][0] or b"").decode())
    return out


def differs(mine: str, want: str) -> str | None:
    """What we say against what is right; None when that is the same, or we refuse what we may."""
    if mine.startswith("vague "):
        mine = mine[6:]
        want = " ".join("?" if word[0] == "=" else word for word in want.split())
    if mine.startswith("error") or want == "error":
        return None if mine.startswith("error") == (want == "error") else f"we {mine}, PostgreSQL {want}"
    return None if mine.split() == want.split() else f"we {mine}, PostgreSQL {want}"


def test_same_matches():
    rng = random.Random(int(os.environ.get("HBA_REGEX_SEED", "16")))
    number = int(os.environ.get("HBA_REGEX_CASES", "700"))
    cases = [(expression.encode("latin-1"), [n.encode() for n in NAMES]) for expression in WRITTEN]
    cases += [(make(rng).encode(), [n.encode() for n in names_for(rng)]) for _ in range(number)]
    pg = postgres.start_postgres(roles=False)
    try:
        pg.rows("create database bytes encoding 'SQL_ASCII' template template0 lc_collate 'C' lc_ctype 'C'")
        want = theirs(pg, cases)
    finally:
        pg.stop()
    found = ours(cases)
    assert len(found) == len(want) == len(cases)
    wrong = []
    refused = 0
    for (expression, _), mine, right in zip(cases, found, want):
        if mine.startswith("error") and right != "error" and (any(part in expression for part in REFUSED) or re.search("complex|not supported", mine)):
            refused += 1
            continue
        what = differs(mine, right)
        if what is not None:
            wrong.append(f"{expression!r}: {what}")
    assert wrong == [], f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong)
    assert sum(right != "error" for right in want) > number * 0.9, "most expressions are right"
    assert refused < number * 0.05
