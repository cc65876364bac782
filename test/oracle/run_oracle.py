#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
# run_oracle.py: compares parse-dump with oracle_dump (libpg_query) over the corpus and generated
# texts. Fails when parse-dump calls a statement read-only that is not, crashes, or agrees less than
# the limits below. How to read its report, and what is known to differ: README.md here.
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import time

import generate

HERE = os.path.dirname(os.path.abspath(__file__))
FIELDS = ["kind", "read_only", "tables", "functions", "locking", "dml_in_cte", "into", "temp",
          "params"]
# Least agreement in per cent; fields not named here must agree in OTHER_LIMIT of the texts.
LIMITS = {"accept": 99.5, "tables": 99.5, "functions": 99.5}
OTHER_LIMIT = 99.0
SELF_CHECK_TEXTS = 4000  # enough to spoil one in fifty of; more is only slower
# Grammar later than libpg_query's: a text that it refuses and we accept is not compared when it
# has one of these. The files corpus/newer_*.sql say what is expected there.
NEWER = [
    ("numbers", r"\b0[xob][0-9a-f_]|\d_\d"),
    ("merge", r"\bby\s+(source|target)\b|\bmerge\b[\s\S]*\breturning\b|\bmerge_action\b"),
    ("json", r"\bjson(_\w+)?\s*\(|\bis\s+(not\s+)?json\b|\bjson_table\b"),
    ("returning", r"\breturning\s+with\s*\("),
    ("constraints", r"\benforced\b|\bwithout\s+overlaps\b|\bperiod\b|\bvirtual\b|\bgenerated\b"
                    r"|\bnot\s+null\s+\w|\binherit\b"),
    ("roles", r"\bwith\s+(admin|inherit|set)\b|\bsystem_user\b"),
    ("time", r"\bat\s+local\b"),
    ("xml", r"\bindent\b"),
    ("maintenance", r"^\W*(vacuum|analy[sz]e|reindex|cluster|copy|explain|checkpoint)\b"),
    ("definitions", r"\bstatistics\b|\bstorage\b|\bset\s+expression\b|\baccess\s+method\b"
                    r"|\bforce_(not_)?null\b|\bforce\b|\bdefault\s+privileges\b|\bset\s*\("),
]


class Refused(Exception):
    pass


def read_corpus(folder):
    """Yields (file, text, expected or None). The format is told in README.md."""
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".sql"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8", newline="\n") as lines:
            yield from read_corpus_file(name, lines)


def read_corpus_file(name, lines):
    text = None
    block = None
    expected = None
    for line in lines:
        line = line.rstrip("\n")
        if block is not None:
            if line == "--}}":
                text, block, expected = "\n".join(block), None, None
            else:
                block.append(line)
            continue
        if line.startswith("--= "):
            expected = json.loads(line[4:])
            continue
        if line.startswith("--#"):
            continue
        if text is not None and (line.strip() or expected is not None):
            yield name, text, expected
            text, expected = None, None
        if line == "--{{":
            block = []
        elif line.strip():
            text, expected = line, None
    if block is not None:
        raise Refused("%s: a block is not closed" % name)
    if text is not None:
        yield name, text, expected


def run_dump(program, texts):
    """Runs a dump over texts; a text at which it dies has {"crash": …} and the rest is tried."""
    out = []
    while len(out) < len(texts):
        data = b"".join(t.encode("utf-8") + b"\0" for t in texts[len(out):])
        done = subprocess.run([program], input=data, stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.PIPE, timeout=300)
        lines = done.stdout.split(b"\n")[:-1]
        if len(lines) > len(texts) - len(out):
            raise Refused("%s printed %d lines too many" % (
                program, len(lines) - len(texts) + len(out)))
        for line in lines:
            try:
                out.append(json.loads(line.decode("utf-8", "replace")))
            except ValueError:
                out.append({"crash": "not JSON: %r" % line[:200]})
        if len(out) < len(texts):
            out.append({"crash": "exit %d %s" % (done.returncode, done.stderr.decode(
                "utf-8", "replace")[-300:])})
    return out


def newer_class(text):
    for name, pattern in NEWER:
        if re.search(pattern, text, re.I):
            return name
    return None


def field_differs(field, text, ours, truth):
    """Compares one field of two statements."""
    if field in ("tables", "functions"):
        return ours.get(field) != sorted(set(truth[field]), key=lambda n: n.encode("utf-8"))
    if field == "temp" and ours.get(field) and re.search(r"pg_temp", text, re.I):
        return False  # by name it is temporary; the tree does not tell
    return ours.get(field) != truth[field]


class Tally:
    """Counts agreement per field and keeps the disagreements."""

    def __init__(self):
        self.compared = collections.Counter()
        self.agreed = collections.Counter()
        self.newer = collections.Counter()
        self.bad = []  # (field, source, text, ours, truth)
        self.unsafe = []
        self.crashes = []

    def note(self, field, ok, source, text, ours, truth):
        self.compared[field] += 1
        if ok:
            self.agreed[field] += 1
        else:
            self.bad.append((field, source, text, ours, truth))

    def add(self, source, text, ours, truth, expected):
        if "crash" in ours:
            self.crashes.append((source, text, ours["crash"]))
            return
        if "crash" in truth:
            raise Refused("the oracle died of %r: %s" % (text, truth["crash"]))
        accept = bool(ours.get("ok"))
        if accept and not truth["ok"] and expected is None and newer_class(text):
            self.newer[newer_class(text)] += 1
            return
        self.note("accept", accept == truth["ok"], source, text, accept, truth.get(
            "why", truth["ok"]))
        if accept and truth["ok"]:
            self.add_statements(source, text, ours.get("stmts", []), truth["stmts"])

    def add_statements(self, source, text, ours, truth):
        if len(ours) != len(truth):
            self.note("kind", False, source, text, len(ours), "%d statements" % len(truth))
            return
        for field in FIELDS:
            wrong = [(a.get(field), b[field]) for a, b in zip(ours, truth)
                     if field_differs(field, text, a, b)]
            self.note(field, not wrong, source, text, *(wrong[0] if wrong else (None, None)))
        for mine, real in zip(ours, truth):
            if mine.get("read_only") and not real["read_only"]:
                self.unsafe.append((source, text))

    def percent(self, field):
        if self.compared[field] == 0:
            return 0.0
        return 100.0 * self.agreed[field] / self.compared[field]

    def checks(self):
        """Returns (name, passed) of everything that decides."""
        out = [(f, self.percent(f) >= LIMITS.get(f, OTHER_LIMIT)) for f in ["accept"] + FIELDS]
        out.append(("nothing unsafe", not self.unsafe))
        out.append(("no crash", not self.crashes))
        return out


def compare(items, ours, truths):
    tally = Tally()
    for (source, text, expected), mine, truth in zip(items, ours, truths):
        tally.add(source, text, mine, truth if expected is None else expected, expected)
    return tally


class Oracle:
    """Asks libpg_query 15 and, where that refuses and a newer one is at hand, the newer one."""

    def __init__(self, program, newer):
        self.program = program
        self.newer = newer

    def ask(self, texts):
        out = run_dump(self.program, texts)
        # Later releases of libpg_query scan $1a, which the server refuses.
        again = [i for i, truth in enumerate(out) if self.newer and not truth.get("ok")
                 and "junk after parameter" not in truth.get("why", "")]
        for i, truth in zip(again, run_dump(self.newer, [texts[i] for i in again])):
            if truth.get("ok"):
                out[i] = truth
        return out


class Minimizer:
    """Takes tokens away from a text as long as the same field still differs the same way."""

    def __init__(self, parser, oracle):
        self.parser = parser
        self.oracle = oracle

    def differs(self, field, accept, texts):
        items = [("", t, None) for t in texts]
        tally = compare(items, run_dump(self.parser, texts), self.oracle.ask(texts))
        return {bad[2] for bad in tally.bad
                if bad[0] == field and (field != "accept" or bad[3] == accept)}

    @staticmethod
    def smaller(words):
        """Every text with one stretch of tokens left out, or replaced by a name."""
        out = []
        size = len(words) // 2
        while size > 0:
            for i in range(0, len(words) - size + 1, max(size // 2, 1)):
                out.append(words[:i] + words[i + size:])
                if size > 1:
                    out.append(words[:i] + ["a"] + words[i + size:])
            size //= 2
        opened = []
        for i, word in enumerate(words):
            if word in "([":
                opened.append(i)
            elif word in ")]" and opened:
                j = opened.pop()
                out.append(words[:j] + words[i + 1:])
                out.append(words[:j] + words[j + 1:i] + words[i + 1:])
                out.append(words[:j] + ["a"] + words[i + 1:])
        return sorted((w for w in out if w), key=len)[:1200]

    def run(self, field, accept, text):
        words = [m.group(0) for m in generate.TOKEN.finditer(text) if m.group(0).strip()]
        if not self.differs(field, accept, [" ".join(words)]):
            return text
        for _ in range(60):
            tries = self.smaller(words)
            bad = self.differs(field, accept, [" ".join(w) for w in tries])
            hit = next((w for w in tries if " ".join(w) in bad), None)
            if hit is None:
                break
            words = hit
        return " ".join(words)


def skeleton(text):
    """A text less its names and constants, so that the same cause looks the same."""
    words = []
    for match in generate.TOKEN.finditer(text):
        word = match.group(0)
        if re.fullmatch(r"[A-Za-z_\x80-\uffff].*", word) and word[-1] != "'":
            words.append(word if word.isupper() and len(word) > 1 else "a")
        elif not word.isspace():
            words.append("'s'" if word.endswith("'") else "1" if word[0].isdigit() else word)
    return " ".join(words)[:160]


def first_words(text):
    return " ".join(re.findall(r"[A-Za-z_]+", text)[:3]).upper()


def group_bad(tally, minimizer, most):
    """Groups disagreements by cause: the skeleton of the smallest text that still shows it."""
    groups = collections.OrderedDict()
    rest = {}
    for field, source, text, ours, truth in sorted(tally.bad, key=lambda b: (b[0], len(b[2]))):
        key = (field, first_words(text), str(truth)[:60] if field == "accept" else "")
        rest.setdefault(key, []).append((field, source, text, ours, truth))
    order = sorted(rest.values(), key=len, reverse=True)
    for found in order:
        field, source, text, ours, truth = found[0]
        small = text
        if minimizer is not None and most > 0:
            most -= 1
            small = minimizer.run(field, ours, text)
        key = (field, skeleton(small))
        groups.setdefault(key, []).extend((small, f) for f in found)
    return sorted(groups.items(), key=lambda g: len(g[1]), reverse=True)


def write_report(path, tally, groups):
    with open(path, "w", encoding="utf-8") as out:
        out.write("%s UTC, %d texts compared, %d disagreements in %d groups\n" % (
            time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()), tally.compared["accept"],
            len(tally.bad), len(groups)))
        for field in ["accept"] + FIELDS:
            out.write("  %-10s %8.3f %%  (%d of %d)\n" % (
                field, tally.percent(field), tally.agreed[field], tally.compared[field]))
        for name, found in (("UNSAFE (read_only said wrongly)", tally.unsafe),
                            ("CRASH", tally.crashes)):
            out.write("\n%s: %d\n" % (name, len(found)))
            for item in found[:20]:
                out.write("  %s\n" % "  |  ".join(str(part)[:1500] for part in item))
        for (field, key), found in groups:
            small, (_, source, text, ours, truth) = found[0]
            out.write("\n%d x %s: parse-dump %r, oracle %r  [%s]\n    %s\n" % (
                len(found), field, ours, truth, source, small))
            if text != small:
                out.write("    from: %s\n" % text[:600])


def print_table(tally):
    print("%-12s %10s %10s %9s" % ("field", "compared", "agreed", "per cent"))
    for field in ["accept"] + FIELDS:
        print("%-12s %10d %10d %9.3f" % (
            field, tally.compared[field], tally.agreed[field], tally.percent(field)))
    print("unsafe: %d, crashes: %d, newer grammar not compared: %s" % (
        len(tally.unsafe), len(tally.crashes),
        ", ".join("%s %d" % pair for pair in tally.newer.most_common()) or "none"))


def finish(checks):
    failed = [name for name, ok in checks if not ok]
    for name in failed:
        print("FAILED: %s" % name)
    print("%d passed, %d failed" % (len(checks) - len(failed), len(failed)))
    return 1 if failed else 0


def build_programs(folder):
    """Makes both programs in a configured build folder; returns whether they are there."""
    done = subprocess.run(["make", "-s", "-C", folder, "oracle_dump", "parse-dump"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        print(done.stdout.decode("utf-8", "replace")[-2000:])
        print("oracle_dump needs libpg_query (Debian: libpg-query-dev) when configure runs")
    return done.returncode == 0


def spoil(truths, how, every):
    """A copy of the oracle's answers with every n-th statement made wrong by `how`."""
    out = json.loads(json.dumps(truths))
    hits = 0
    for answer in out:
        if answer.get("ok") and answer["stmts"]:
            hits += 1
            if hits % every == 0:
                how(answer)
    return out


def self_check(items, truths):
    """A comparer that cannot fail proves nothing: wrong answers must fail, right ones pass."""
    def put(field, value):
        def how(answer):
            answer["stmts"][0][field] = value
        return how

    def refuse(answer):
        answer["ok"] = False

    checks = []
    right = compare(items, spoil(truths, refuse, 10 ** 9), truths)
    checks.append(("texts were compared", right.compared["accept"] > 100))
    checks.append(("the right answers pass", all(ok for _, ok in right.checks())))
    cases = [("accept", refuse), ("kind", put("kind", "nonsense")), ("tables", put("tables", ["?"])),
             ("functions", put("functions", ["?"])), ("params", put("params", 99)),
             ("locking", put("locking", None)), ("dml_in_cte", put("dml_in_cte", None)),
             ("into", put("into", None)), ("temp", put("temp", None)),
             ("read_only", put("read_only", None))]
    for field, how in cases:
        failed = {n for n, ok in compare(items, spoil(truths, how, 50), truths).checks() if not ok}
        checks.append(("a wrong %s is noticed" % field, field in failed))
    one = spoil(truths, put("read_only", True), 1)
    checks.append(("an unsafe answer is noticed", bool(compare(items, one, truths).unsafe)))
    last = json.loads(json.dumps(truths))
    last[len(last) // 2] = {"crash": "exit -11"}
    checks.append(("a crash is noticed", not dict(compare(items, last, truths).checks())[
        "no crash"]))
    wrong = [("x", "SELECT 1", {"ok": False})]
    checks.append(("a wrong expectation is noticed",
                   not dict(compare(wrong, [{"ok": True, "stmts": []}], [{"ok": True}]).checks())[
                       "accept"]))
    return checks


def arguments():
    parser = argparse.ArgumentParser(description="compare parse-dump with libpg_query")
    parser.add_argument("--parser", default="./parse-dump", help="program under test")
    parser.add_argument("--oracle", default="./oracle_dump", help="program to believe")
    parser.add_argument("--build", help="build folder: makes both programs there, checks the "
                        "comparer, then compares with --keywords")
    parser.add_argument("--newer-oracle", help="oracle_dump of a newer libpg_query, asked where "
                        "the first refuses")
    parser.add_argument("--corpus", default=os.path.join(HERE, "corpus"))
    parser.add_argument("--count", type=int, default=20000, help="generated texts")
    parser.add_argument("--keywords", action="store_true",
                        help="also every key word in every place (some 60,000 texts)")
    parser.add_argument("--rule", default="top", help="grammar rule that generated texts start from")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", help="file for the disagreements, grouped by cause")
    parser.add_argument("--minimize", type=int, default=0,
                        help="groups to reduce to a smallest example (slow)")
    parser.add_argument("--self-check", action="store_true",
                        help="check that the comparer notices wrong answers; needs no parse-dump")
    return parser.parse_args()


def collect(args, plain):
    """The texts to compare; `plain` leaves out those with an expected answer."""
    items = list(read_corpus(args.corpus))
    print("corpus: %d texts, generated: %d (seed %d)" % (len(items), args.count, args.seed))
    if plain:
        items = [item for item in items if item[2] is None]
    items += [("seed %d" % args.seed, text, None)
              for text in generate.generate(args.seed, args.count, args.rule)]
    if args.keywords:
        items += [("keywords", text, None) for text in generate.keyword_texts()]
    return items


def main():
    args = arguments()
    if args.build:
        if not build_programs(args.build):
            return finish([("the programs can be built", False)])
        args.parser = os.path.join(args.build, "parse-dump")
        args.oracle = os.path.join(args.build, "oracle_dump")
        args.keywords = True
    oracle = Oracle(args.oracle, args.newer_oracle)
    items = collect(args, args.self_check)
    truths = oracle.ask([item[1] for item in items])
    if args.self_check:
        return finish(self_check(items, truths))
    tally = compare(items, run_dump(args.parser, [item[1] for item in items]), truths)
    print_table(tally)
    if args.report:
        minimizer = Minimizer(args.parser, oracle)
        write_report(args.report, tally, group_bad(tally, minimizer, args.minimize))
    checks = tally.checks()
    if args.build:
        plain = [i for i, item in enumerate(items) if item[2] is None][:SELF_CHECK_TEXTS]
        checks += self_check([items[i] for i in plain], [truths[i] for i in plain])
    return finish(checks)


if __name__ == "__main__":
    sys.exit(main())
