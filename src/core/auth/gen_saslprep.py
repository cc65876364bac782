#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""gen_saslprep.py: writes the tables of saslprep.c (saslprep_*_tab.h) beside itself.

For developers; the tables are checked in. Classes are those of RFC 3454 (Unicode 3.2, as stringprep
demands); normalisation data is that of Python's own Unicode version, for characters that stringprep
lets through, because PostgreSQL normalises with recent data too. Hangul is left out: it is computed.
"""
import os
import stringprep
import unicodedata

LAST = 0x110000
HERE = os.path.dirname(os.path.abspath(__file__))
PROHIBITED = [stringprep.in_table_c21_c22, stringprep.in_table_c3, stringprep.in_table_c4,
              stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7,
              stringprep.in_table_c8, stringprep.in_table_c9, stringprep.in_table_a1]


def class_of(c):
    ch = chr(c)
    if 0xD800 <= c < 0xE000:
        return "P"
    if stringprep.in_table_c12(ch):
        return "S"
    if stringprep.in_table_b1(ch):
        return "N"
    if any(f(ch) for f in PROHIBITED):
        return "P"
    if stringprep.in_table_d1(ch):
        return "R"
    return "L" if stringprep.in_table_d2(ch) else "-"


def is_hangul(c):
    return 0xAC00 <= c <= 0xD7A3


def runs_of(pairs, step):
    """Joins (code, value) pairs into [first, last, value] where `step` says that they follow on."""
    runs = []
    for c, v in pairs:
        if runs and runs[-1][1] == c - 1 and step(runs[-1], c, v):
            runs[-1][1] = c
        else:
            runs.append([c, c, v])
    return runs


def write(name, what, tables):
    guard = "PGP_AUTH_" + name.upper().replace(".", "_")
    with open(os.path.join(HERE, name), "w", encoding="ascii") as f:
        f.write("/* SPDX-License-Identifier: PostgreSQL\n * %s: %s\n"
                " * Made by gen_saslprep.py; do not edit. */\n#ifndef %s\n#define %s\n\n"
                "#include \"saslprep_int.h\"\n\n/* clang-format off */\n"
                % (name, what, guard, guard))
        for head, items in tables:
            f.write("static const %s[] = {\n" % head)
            line = "   "
            for item in items:
                if len(line) + len(item) + 2 > 100:
                    f.write(line + "\n")
                    line = "   "
                line += " " + item + ","
            f.write(line + "\n};\n")
        f.write("\n#endif\n")


def main():
    classes = [class_of(c) for c in range(LAST)]
    passed = [c for c in range(LAST) if classes[c] not in "PNS"]
    single, multi = {}, {}
    for c in passed:
        d = tuple(map(ord, unicodedata.normalize("NFKD", chr(c))))
        if d != (c,) and not is_hangul(c):
            if len(d) == 1:
                single[c] = d[0]
            else:
                multi[c] = d
    reach = sorted(set(passed) | {x for d in multi.values() for x in d} | set(single.values()))

    class_runs = [r for r in runs_of(enumerate(classes), lambda r, c, v: v == r[2]) if r[2] != "-"]
    write("saslprep_class_tab.h", "what stringprep does with a character; others pass freely.",
          [("struct class_run class_runs", ["{0x%X, 0x%X, CLASS_%s}" % tuple(r) for r in class_runs])])

    single_runs = runs_of(sorted(single.items()), lambda r, c, v: v - c == r[2] - r[0])
    combining = [(c, unicodedata.combining(chr(c))) for c in reach if unicodedata.combining(chr(c))]
    write("saslprep_single_tab.h", "characters that become one other, and combining classes.",
          [("struct code_run single_runs", ["{0x%X, 0x%X, 0x%X}" % tuple(r) for r in single_runs]),
           ("struct code_run combining_runs",
            ["{0x%X, 0x%X, %d}" % tuple(r)
             for r in runs_of(combining, lambda r, c, v: v == r[2])])])

    pool = ""
    entries = []
    for c, d in sorted(multi.items(), key=lambda i: -len(i[1])):
        text = "".join(map(chr, d))
        if text not in pool:
            pool += text
        entries.append((c, pool.index(text), len(text)))
    write("saslprep_multi_tab.h", "characters that become several: where these are in the pool.",
          [("struct multi_code multi_codes", ["{0x%X, %d, %d}" % e for e in sorted(entries)]),
           ("uint32_t multi_pool", ["0x%X" % ord(x) for x in pool])])

    pairs = []
    for c in range(LAST):
        d = unicodedata.decomposition(chr(c)).split()
        if len(d) == 2 and not is_hangul(c) and not d[0].startswith("<"):
            if unicodedata.normalize("NFC", chr(c)) == chr(c):
                pairs.append((int(d[0], 16), int(d[1], 16), c))
    write("saslprep_pair_tab.h", "pairs that become one character when composed.",
          [("struct code_pair code_pairs", ["{0x%X, 0x%X, 0x%X}" % p for p in sorted(pairs)])])


if __name__ == "__main__":
    main()
