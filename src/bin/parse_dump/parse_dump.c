/* SPDX-License-Identifier: PostgreSQL
 * parse_dump.c: a developer's tool: SQL texts on stdin, each ended by a NUL byte, to one line of
 * JSON facts each on stdout. Runs in: a process of its own, by hand and in tests. */
#include "config.h"

#include "base/arena.h"
#include "base/buf.h"
#include "parser/parser.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536

/* A list of names, to be sorted and freed of repetitions. */
struct names {
    struct slice *items;
    uint32_t count;
};

static void put_json(struct buf *out, struct slice s)
{
    buf_put_byte(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '"' || c == '\\') {
            buf_put_byte(out, '\\');
            buf_put_byte(out, (char)c);
        } else if (c < 0x20) {
            buf_printf(out, "\\u%04x", c);
        } else {
            buf_put_byte(out, (char)c);
        }
    }
    buf_put_byte(out, '"');
}

static struct slice join(
    struct arena *a, struct slice catalog, struct slice schema, struct slice name)
{
    char *p = arena_alloc(a, catalog.n + schema.n + name.n + 2);
    size_t n = 0;

    if (catalog.n != 0) {
        memcpy(p, catalog.p, catalog.n);
        n = catalog.n;
        p[n++] = '.';
    }
    if (schema.n != 0) {
        memcpy(p + n, schema.p, schema.n);
        n += schema.n;
        p[n++] = '.';
    }
    if (name.n != 0)
        memcpy(p + n, name.p, name.n);
    return slice_of(p, n + name.n);
}

static int compare(const void *x, const void *y)
{
    const struct slice *a = x;
    const struct slice *b = y;
    size_t n = a->n < b->n ? a->n : b->n;
    int c = memcmp(a->p, b->p, n);

    return c != 0 ? c : (a->n > b->n) - (a->n < b->n);
}

static void put_names(struct buf *out, const char *key, struct names *names)
{
    bool first = true;

    buf_printf(out, ",\"%s\":[", key);
    if (names->count != 0)
        qsort(names->items, names->count, sizeof(names->items[0]), compare);
    for (uint32_t i = 0; i < names->count; i++) {
        if (i > 0 && slice_eq(names->items[i], names->items[i - 1]))
            continue;
        if (!first)
            buf_put_byte(out, ',');
        put_json(out, names->items[i]);
        first = false;
    }
    buf_put_byte(out, ']');
}

static void put_tables(struct buf *out, struct arena *a, const struct sql_stmt *s)
{
    struct names names = {arena_alloc(a, s->ntables * sizeof(struct slice) + 1), s->ntables};

    for (uint32_t i = 0; i < s->ntables; i++)
        names.items[i] = join(a, s->tables[i].catalog, s->tables[i].schema, s->tables[i].name);
    put_names(out, "tables", &names);
}

static void put_functions(struct buf *out, struct arena *a, const struct sql_stmt *s)
{
    struct names names = {arena_alloc(a, s->nfuncs * sizeof(struct slice) + 1), s->nfuncs};

    names.count = 0;
    for (uint32_t i = 0; i < s->nfuncs; i++) {
        if ((s->funcs[i].flags & SQL_FUNC_FIELD) == 0)
            names.items[names.count++] =
                join(a, s->funcs[i].catalog, s->funcs[i].schema, s->funcs[i].name);
    }
    put_names(out, "functions", &names);
}

static void put_bool(struct buf *out, const char *key, const struct sql_stmt *s, uint32_t flag)
{
    buf_printf(out, ",\"%s\":%s", key, s->flags & flag ? "true" : "false");
}

static void put_stmt(struct buf *out, struct arena *a, struct slice text, const struct sql_stmt *s)
{
    struct sql_fingerprint fp = {0, 0};
    struct slice own = slice_of(text.p + s->offset, s->len);

    buf_printf(out, "{\"kind\":\"%s\"", sql_kind_text(s->kind));
    put_bool(out, "read_only", s, SQL_F_READ_ONLY);
    put_tables(out, a, s);
    put_functions(out, a, s);
    put_bool(out, "locking", s, SQL_F_LOCKING);
    put_bool(out, "dml_in_cte", s, SQL_F_DML_IN_CTE);
    put_bool(out, "into", s, SQL_F_INTO);
    put_bool(out, "temp", s, SQL_F_TEMP);
    (void)sql_fingerprint(a, own, &fp);
    buf_printf(out, ",\"params\":%" PRIu32 ",\"fingerprint\":\"%016" PRIx64 "%016" PRIx64 "\"}",
        s->max_param, fp.hi, fp.lo);
}

/* The length of the UTF-8 character at p, 0 when there is none: the shortest form only, no
 * surrogates, nothing beyond U+10FFFF. */
static size_t utf8_len(const unsigned char *p, size_t n)
{
    unsigned c = p[0];
    size_t len = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

    if (len == 0 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) || (c == 0xf0 && p[1] < 0x90) ||
        (c == 0xf4 && p[1] > 0x8f))
        return 0;
    return len;
}

static bool is_utf8(struct slice text)
{
    size_t len = 0;

    for (size_t i = 0; i < text.n; i += len) {
        len = utf8_len((const unsigned char *)text.p + i, text.n - i);
        if (len == 0)
            return false;
    }
    return true;
}

/* The parser takes any encoding; the texts here are UTF-8, and a server of that encoding refuses
 * others before it parses them. The answers are JSON, which nothing but UTF-8 may stand in. */
static void dump(struct buf *out, struct arena *a, struct slice text)
{
    struct sql_facts facts;

    arena_reset(a);
    buf_clear(out);
    if (!is_utf8(text) || sql_parse(a, text, &facts) == -1) {
        buf_printf(out, "{\"ok\":false}\n");
    } else {
        buf_printf(out, "{\"ok\":true,\"stmts\":[");
        for (uint32_t i = 0; i < facts.nstmts; i++) {
            if (i > 0)
                buf_put_byte(out, ',');
            put_stmt(out, a, text, &facts.stmts[i]);
        }
        buf_printf(out, "]}\n");
    }
    fwrite(out->data, 1, out->len, stdout);
}

/* Answers every text of `in` that is ended; `seen` bytes of the last one have no NUL. */
static void dump_ended(struct buf *in, struct buf *out, struct arena *a, size_t *seen)
{
    for (;;) {
        struct slice rest = buf_slice(in);
        const char *nul = rest.n == *seen ? NULL : memchr(rest.p + *seen, '\0', rest.n - *seen);

        if (nul == NULL) {
            *seen = rest.n;
            return;
        }
        dump(out, a, slice_of(rest.p, (size_t)(nul - rest.p)));
        buf_consume(in, (size_t)(nul - rest.p) + 1);
        *seen = 0;
    }
}

/* Nothing waits for the end of the input: whoever asks one text at a time gets its answer. */
static int dump_all(struct buf *in, struct buf *out, struct arena *a)
{
    size_t seen = 0;
    ssize_t n;

    for (;;) {
        n = read(STDIN_FILENO, buf_reserve(in, READ_BYTES), READ_BYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        buf_advance(in, (size_t)n);
        dump_ended(in, out, a, &seen);
        if (fflush(stdout) == EOF)
            return -1;
    }
    if (n == 0 && buf_unread(in) != 0)
        dump(out, a, buf_slice(in));
    return n < 0 || fflush(stdout) == EOF ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new("parse-dump", 0);
    struct buf in = {0};
    struct buf out = {0};
    int rc;

    if (argc != 1 || argv[1] != NULL) {
        fputs("usage: parse-dump < texts\nEach SQL text ends with a NUL byte.\n", stderr);
        return 2;
    }
    rc = dump_all(&in, &out, a);
    if (rc == -1)
        fputs("parse-dump: cannot read standard input or write standard output\n", stderr);
    buf_free(&in);
    buf_free(&out);
    arena_free(&a);
    return rc == 0 ? 0 : 1;
}
