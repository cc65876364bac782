/* SPDX-License-Identifier: PostgreSQL
 * fuzz_changes.c: fuzz target over what a replication stream says. Invariants checked: nothing is
 * read outside the input, views stay inside it, every step goes forward, and what was understood is
 * made of its parts. */
#include "config.h"

#include "changes/changes.h"

#include "fuzz_bytes.h"

static void fuzz_row(struct slice in, struct slice row)
{
    struct change_column c;
    struct slice rest = row;
    const char *before = rest.p;
    char *value;
    size_t n;

    require_inside(in, row);
    while (change_next_column(&rest, &c) == CHANGE_COLUMN) {
        require(rest.p > before, "no way forward");
        before = rest.p;
        require_inside(row, c.name);
        require_inside(row, c.type);
        require_inside(row, c.value);
        require(c.name.n > 0 && c.type.n > 0, "a column without name or type");
        value = malloc(c.value.n + 1);
        n = value == NULL ? 0 : change_unquote(c.value, value);
        require(n <= c.value.n, "a value grew");
        free(value);
    }
}

static void fuzz_tables(struct slice in, struct slice tables)
{
    struct slice name;

    require_inside(in, tables);
    while (change_next_table(&tables, &name)) {
        require_inside(in, name);
        require(name.n > 0, "a table without a name");
    }
}

static void fuzz_event(struct slice in)
{
    struct change c;

    change_read(in, &c);
    if (c.kind == CHANGE_BAD)
        return;
    fuzz_tables(in, c.tables);
    if (c.has_old)
        fuzz_row(in, c.old_row);
    if (c.has_new)
        fuzz_row(in, c.new_row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly that size: the sanitizer sees a read one byte too far. */
    char *copy = calloc(1, size == 0 ? 1 : size);
    struct slice in = slice_of(copy, size);
    struct stream_msg m;

    if (copy == NULL)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    stream_read(in, &m);
    if (m.kind == STREAM_DATA) {
        require_inside(in, m.text);
        fuzz_event(m.text);
    }
    fuzz_event(in);
    fuzz_row(in, in);
    free(copy);
    return 0;
}

#ifndef FUZZ_LIBFUZZER
static const struct slice seeds[] = {SEED("BEGIN 724"),
    SEED("COMMIT 724 (at 2026-11-24 00:10:28.991001+00)"),
    SEED("table public.t: INSERT: id[integer]:1 v[text]:'it''s' a[integer[]]:'{1}' b[bit]:B'1'"),
    SEED("table a.t: UPDATE: old-key: id[integer]:2 new-tuple: id[integer]:3 v[text]:null"),
    SEED("table \"S: x\".\"T, \"\"q\"\"\": DELETE: (no-tuple-data)"),
    SEED("table a.t, \"b\".\"c\": TRUNCATE: restart_seqs"),
    SEED(" \"Odd \"\"Name\"[\"char\"]:'x y' t[text]:unchanged-toast-datum"),
    SEED("w\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0COMMIT 1"),
    SEED("k\0\0\0\1\0\0\0\2\0\2\xe7\x11\x22\x33\x44\x55\1")};

FUZZ_MAIN(seeds)
#endif
