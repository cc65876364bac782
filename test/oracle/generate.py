#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
# generate.py: writes random SQL texts, each ended by a NUL byte, for the parser's oracle test.
# Seed, count and grammar give the same bytes on every machine. The grammar is read from
# grammar_*.ebnf (notation: README.md). Of every four texts one is mutated, so that many are just
# not SQL any more. Standard library only.
import argparse
import os
import random
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GLUE = "^"
CARET = "\x02"  # the operator ^, written `^ in the grammar
TOKEN = re.compile(
    r"--[^\n]*|/\*.*?\*/|[eE]'(?:\\.|''|[^'\\])*'|(?:[bBxXnN]|[uU]&)?'(?:''|[^'])*'"
    r"|(?:[uU]&)?\"(?:\"\"|[^\"])*\"|\$(\w*)\$.*?\$\1\$|\$\d+|[A-Za-z_\x80-\uffff][\w$\x80-\uffff]*"
    r"|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|::|:=|=>|[-+*/<>=~!@#%^&|?]+|\s+|.", re.S)
NOISE = ["SELECT", "FROM", "WHERE", "AND", "NOT", "NULL", "(", ")", ",", ";", ".", "*", "=", "1",
         "'x'", "AS", "ON", "IN", "IS", "SET", "TABLE", "WITH", "ALL", "ORDER BY", "LIMIT", "USING",
         "INTO", "VALUES", "END", "CASE", "::", "[", "]", "$1", "\"q\"", "-", "||", "BETWEEN",
         "LIKE", "FOR UPDATE", "JOIN", "GROUP BY", "DISTINCT", "UNION", "DEFAULT", "ONLY", ":=",
         "=>", "TO", "BY", "DO", "IF", "EXISTS", "ROW", "ARRAY", "CAST", "DATE", "INTERVAL", "x",
         "COLLATE", "OVER", "FILTER", "ANY", "LATERAL", "RETURNING", "TEMP", "ESCAPE", "0", "\\"]
COMMENTS = ["/* c */", "/* a /* nested */ b */", "-- line\n", "/**/", "/* ' */", "-- \" ' $$\n",
            "/*+ hint */", "/* ; */", "--\n"]
SPACES = ["  ", "\t", "\n", "\r\n", "\n\n  ", " \f "]


# Where a word may or may not be a name, alias, label, function, type, option or the like.
PLACES = [
    "SELECT %s", "SELECT %s FROM t", "SELECT a %s FROM t", "SELECT a AS %s FROM t",
    "SELECT * FROM %s", "SELECT * FROM %s.t", "SELECT * FROM s.%s", "SELECT * FROM t %s",
    "SELECT * FROM t AS %s", "SELECT * FROM t %s (a)", "SELECT * FROM t %s JOIN u ON true",
    "SELECT %s.a FROM t", "SELECT t.%s FROM t", "SELECT %s(1)", "SELECT %s()", "SELECT %s.f(1)",
    "SELECT s.%s(1)", "SELECT %s 'x'", "SELECT %s(3) 'x'", "SELECT a::%s", "SELECT a::%s(3)",
    "SELECT a::s.%s", "SELECT CAST(a AS %s[])", "SELECT a %s b", "SELECT a IS %s", "SELECT a COLLATE %s",
    "SELECT * FROM %s(1)", "SELECT f(%s => 1)", "SELECT f(%s 1)", "SELECT 1 ORDER BY a %s",
    "SELECT 1 WINDOW %s AS ()", "SELECT f() OVER %s", "SELECT f() OVER (%s)", "SELECT EXTRACT(%s FROM a)",
    "WITH %s AS (SELECT 1) SELECT * FROM %s", "SELECT * FROM t FOR UPDATE OF %s", "SELECT %s a",
    "INSERT INTO %s VALUES (1)", "INSERT INTO t (%s) VALUES (1)", "INSERT INTO t AS %s VALUES (1)",
    "UPDATE %s SET a = 1", "UPDATE t SET %s = 1", "UPDATE t %s SET a = 1", "UPDATE t SET a = %s",
    "DELETE FROM %s", "DELETE FROM t %s", "MERGE INTO t %s USING u ON true WHEN MATCHED THEN DELETE",
    "INSERT INTO t VALUES (1) RETURNING %s", "INSERT INTO t VALUES (1) RETURNING a %s",
    "CREATE TABLE %s (a int)", "CREATE TABLE t (%s int)", "CREATE TABLE t (a %s)", "CREATE %s a",
    "CREATE TABLE t (a int %s)", "CREATE TABLE t (a int DEFAULT %s)", "CREATE TYPE %s AS (a int)",
    "CREATE FUNCTION %s() RETURNS int AS ''", "CREATE FUNCTION f(%s int) RETURNS int AS ''",
    "CREATE FUNCTION f(a %s) RETURNS int AS ''", "CREATE FUNCTION f() RETURNS %s AS ''",
    "CREATE INDEX %s ON t (a)", "CREATE INDEX ON t (%s)", "CREATE INDEX ON t (a %s)",
    "CREATE INDEX ON t USING %s (a)", "CREATE ROLE %s", "CREATE ROLE a %s", "CREATE DATABASE %s",
    "CREATE SCHEMA %s", "CREATE EXTENSION %s", "CREATE VIEW %s AS SELECT 1", "CREATE SEQUENCE s %s",
    "CREATE VIEW v (%s) AS SELECT 1", "CREATE TABLE t (a int) WITH (%s = %s)", "DROP TABLE %s",
    "CREATE TRIGGER %s BEFORE INSERT ON t EXECUTE FUNCTION f(%s)", "DROP %s a", "DROP FUNCTION %s(int)",
    "ALTER TABLE t ADD %s int", "ALTER TABLE t DROP %s", "ALTER TABLE t RENAME %s TO %s",
    "ALTER TABLE t %s", "ALTER %s a RENAME TO b", "ALTER TABLE t ALTER %s DROP DEFAULT",
    "GRANT %s ON t TO u", "GRANT SELECT ON t TO %s", "GRANT %s TO u", "GRANT ALL ON %s a TO u",
    "COMMENT ON %s a IS 'x'", "SET %s = 1", "SET a = %s", "SET a.%s TO 1", "SET %s TO DEFAULT", "SET %s",
    "SHOW %s", "RESET %s", "SET ROLE %s", "BEGIN %s", "COMMIT %s", "ROLLBACK TO %s", "SAVEPOINT %s",
    "PREPARE %s AS SELECT 1", "EXECUTE %s", "DEALLOCATE %s", "DECLARE %s CURSOR FOR SELECT 1",
    "FETCH %s", "FETCH %s FROM c", "FETCH %s c", "CLOSE %s", "LISTEN %s", "NOTIFY %s", "LOCK %s",
    "LOCK t IN %s MODE", "TRUNCATE %s", "VACUUM %s", "VACUUM (%s)", "ANALYZE %s", "CLUSTER %s",
    "REINDEX %s a", "EXPLAIN %s", "EXPLAIN (%s) SELECT 1", "EXPLAIN (a %s) SELECT 1", "COPY %s TO STDOUT",
    "COPY t (%s) FROM STDIN", "COPY t FROM STDIN WITH (%s)", "COPY t FROM STDIN WITH (a %s)",
    "COPY t FROM STDIN %s", "CALL %s()", "DO LANGUAGE %s ''", "DISCARD %s", "%s", "%s a", "CHECKPOINT %s",
]


class GrammarError(Exception):
    pass


class Node:
    """One element of a rule: kind is lit, ref, alt, seq, opt or rep."""

    def __init__(self, kind, value, extra=None):
        self.kind = kind
        self.value = value
        self.extra = extra
        self.uses = None
        self.cost = 0
        self.costs = None


class Reader:
    """Reads the notation of the .ebnf files into Nodes."""

    def __init__(self, where, words):
        self.where = where
        self.words = words
        self.at = 0

    def fail(self, text):
        raise GrammarError("%s: %s" % (self.where, text))

    def peek(self):
        return self.words[self.at] if self.at < len(self.words) else None

    def alternatives(self, closers):
        choices = [self.sequence(closers)]
        while self.peek() == "|":
            self.at += 1
            choices.append(self.sequence(closers))
        return choices[0] if len(choices) == 1 else Node("alt", choices)

    def sequence(self, closers):
        parts = []
        while self.peek() is not None and self.peek() != "|" and self.peek() not in closers:
            parts.append(self.element())
        return Node("seq", parts)

    def group(self, close):
        self.at += 1
        inner = self.alternatives(("]", "]+", "]*", "}", "}+", "}*", "}+,"))
        word = self.peek()
        if word is None or word[0] != close:
            self.fail("missing %s" % close)
        self.at += 1
        return inner, word[1:]

    def element(self):
        word = self.peek()
        if word == "[":
            inner, suffix = self.group("]")
            if suffix:
                self.fail("no repetition after ]")
            return Node("opt", inner)
        if word == "{":
            inner, suffix = self.group("}")
            return self.repeated(inner, suffix)
        self.at += 1
        if word[0] == "`":
            return Node("lit", CARET if word[1:] == GLUE else word[1:])
        match = re.fullmatch(r"([A-Za-z_]\w*)(\+,|\+|\*)?", word)
        if match is None:
            return Node("lit", word)
        return self.repeated(Node("word", match.group(1)), match.group(2) or "")

    @staticmethod
    def repeated(inner, suffix):
        if suffix == "":
            return inner
        return Node("rep", inner, {"+": (1, None), "+,": (1, ","), "*": (0, None)}[suffix])


class Grammar:
    def __init__(self, paths):
        self.rules = {}
        self.order = []
        for path in paths:
            self.load(path)
        for name in self.order:
            self.resolve(name, self.rules[name])
        self.cost = {name: 1000 for name in self.order}
        changed = True
        while changed:
            changed = False
            for name in self.order:
                cost = 1 + self.measure(self.rules[name])
                if cost < self.cost[name]:
                    self.cost[name] = cost
                    changed = True
        for name in self.order:
            if self.cost[name] >= 1000:
                raise GrammarError("rule %s never ends" % name)

    def load(self, path):
        name = None
        bodies = {}
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                head = re.match(r"([A-Za-z_]\w*):(?=\s)", line)
                if line.startswith("#") or not line.strip():
                    continue
                if head:
                    name = head.group(1)
                    if name in self.rules or name in bodies:
                        raise GrammarError("%s: %s stands twice" % (path, name))
                    bodies[name] = []
                    line = line[head.end():]
                bodies[name].extend(line.split())
        for name, words in bodies.items():
            reader = Reader("%s: %s" % (os.path.basename(path), name), words)
            self.rules[name] = reader.alternatives(())
            if reader.peek() is not None:
                reader.fail("stray %s" % reader.peek())
            self.order.append(name)

    def resolve(self, rule, node):
        if node.kind == "word":
            node.kind = "ref" if node.value in self.rules else "lit"
        elif node.kind in ("alt", "seq"):
            for part in node.value:
                self.resolve(rule, part)
            if node.kind == "alt":
                node.uses = [0] * len(node.value)
        elif node.kind in ("opt", "rep"):
            self.resolve(rule, node.value)

    def measure(self, node):
        """How deep the shallowest text of a node nests; remembered in the node."""
        if node.kind == "lit":
            node.cost = 0
        elif node.kind == "ref":
            node.cost = self.cost[node.value]
        elif node.kind == "alt":
            node.costs = [self.measure(part) for part in node.value]
            node.cost = min(node.costs)
        elif node.kind == "seq":
            node.cost = max([self.measure(part) for part in node.value], default=0)
        else:
            node.cost = self.measure(node.value)
            if node.kind == "opt" or node.extra[0] == 0:
                return 0
        return node.cost


class Writer:
    """Makes one text from the grammar; `depth` bounds the nesting of rules."""

    def __init__(self, grammar, rng, depth):
        self.grammar = grammar
        self.rng = rng
        self.depth = depth
        self.words = []

    def text(self, rule):
        self.words = []
        self.rule(rule, self.depth)
        out = []
        glued = True
        for word in self.words:
            if word == GLUE:
                glued = True
                continue
            if not glued:
                out.append(" ")
            out.append("^" if word == CARET else word)
            glued = False
        return "".join(out)

    def rule(self, name, left):
        self.node(self.grammar.rules[name], left - 1)

    def node(self, node, left):
        if node.kind == "lit":
            self.words.append(node.value)
        elif node.kind == "ref":
            self.rule(node.value, left)
        elif node.kind == "seq":
            for part in node.value:
                self.node(part, left)
        elif node.kind == "alt":
            self.choose(node, left)
        elif node.kind == "opt":
            if node.cost < max(left, 2) and self.rng.random() < 0.4:
                self.node(node.value, left)
        else:
            self.repeat(node, left)

    def choose(self, node, left):
        """Half the time takes what was taken least, so that every alternative has its turn."""
        fit = [i for i, cost in enumerate(node.costs) if cost < left]
        if not fit:
            least = min(node.costs)
            fit = [i for i, cost in enumerate(node.costs) if cost == least]
        if self.rng.random() < 0.5:
            rare = min(node.uses[i] for i in fit)
            fit = [i for i in fit if node.uses[i] == rare]
        pick = fit[self.rng.randrange(len(fit))]
        node.uses[pick] += 1
        self.node(node.value[pick], left)

    def repeat(self, node, left):
        least, comma = node.extra
        count = least
        while count < 4 and node.cost < left and left > 2 and self.rng.random() < 0.3:
            count += 1
        for i in range(count):
            if i > 0 and comma:
                self.words.append(comma)
            self.node(node.value, left)


def flip_case(rng, word):
    how = rng.randrange(4)
    if how == 0:
        return word.lower()
    if how == 1:
        return word.upper()
    if how == 2:
        return word.title()
    return "".join(rng.choice((c.lower(), c.upper())) if c.isascii() else c for c in word)


def decorate(rng, text):
    """Changes what must not matter: case, white space and comments between tokens."""
    out = []
    for match in TOKEN.finditer(text):
        word = match.group(0)
        if re.fullmatch(r"[A-Za-z_]\w*", word) and rng.random() < 0.3:
            word = flip_case(rng, word)
        elif word.isspace():
            dice = rng.random()
            if dice < 0.12:
                word = " " + rng.choice(COMMENTS) + " "
            elif dice < 0.25:
                word = rng.choice(SPACES)
        out.append(word)
    return "".join(out)


def mutate(rng, text):
    """Breaks a text in one to three places."""
    words = [m.group(0) for m in TOKEN.finditer(text)]
    for _ in range(rng.randint(1, 3)):
        if not words:
            break
        at = rng.randrange(len(words))
        how = rng.randrange(7)
        if how == 0:
            del words[at]
        elif how == 1:
            words.insert(at, words[at])
        elif how == 2:
            other = rng.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        elif how == 3:
            words[at] = " " + rng.choice(NOISE) + " "
        elif how == 4:
            words.insert(at, " " + rng.choice(NOISE) + " ")
        elif how == 5:
            del words[at:]
        else:
            word = words[at]
            cut = rng.randrange(len(word)) if word else 0
            words[at] = word[:cut] + word[cut + 1:]
    return "".join(words)


def generate(seed, count, rule="top", plain=False):
    """Returns `count` texts; `plain` leaves out mutation and decoration."""
    names = sorted(n for n in os.listdir(HERE) if re.fullmatch(r"grammar_\w+\.ebnf", n))
    grammar = Grammar([os.path.join(HERE, n) for n in names])
    rng = random.Random(seed)
    texts = []
    while len(texts) < count:
        writer = Writer(grammar, rng, rng.choice((6, 8, 10, 12, 14, 18)))
        text = writer.text(rule)
        if len(text) > 6000:
            continue
        dice = rng.random()
        if not plain and dice < 0.03:
            text = "; ".join([text, writer.text("utility" if rule == "top" else rule),
                              rng.choice(("", ";", writer.text("insert")))])
        if not plain and rng.random() < 0.3:
            text = decorate(rng, text)
        if not plain and rng.random() < 0.25:
            text = mutate(rng, text)
        texts.append(text.replace("\0", " "))
    return texts


def keyword_texts():
    """Every key word in every place of PLACES."""
    with open(os.path.join(HERE, "keywords.txt"), encoding="ascii") as lines:
        words = [w for line in lines if not line.startswith("#") for w in line.split()]
    return [place.replace("%s", word) for word in words for place in PLACES]


def main():
    parser = argparse.ArgumentParser(description="write random SQL texts, each ended by NUL")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rule", default="top", help="grammar rule to start from")
    parser.add_argument("--plain", action="store_true", help="neither mutate nor decorate")
    args = parser.parse_args()
    for text in generate(args.seed, args.count, args.rule, args.plain):
        sys.stdout.buffer.write(text.encode("utf-8") + b"\0")
    return 0


if __name__ == "__main__":
    sys.exit(main())
