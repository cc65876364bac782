/* SPDX-License-Identifier: PostgreSQL
 * oracle_text.c: repairs a text before and after libpg_query looks at it.
 * Runs in: the test program oracle_dump only. Each repair works on the tokens of libpg_query's own
 * scanner and parses again; nothing here knows grammar, so that a mistake of ours cannot hide one
 * of the parser under test. */
#include "config.h"

#include "oracle_text.h"

#include <pg_query.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "oracle_json.h"

/* Sub-selects without alias that one text may have repaired. */
#define ORACLE_ALIAS_MAX 200

struct token {
    size_t start;
    size_t end;
};

struct tokens {
    struct token *v;
    size_t n;
};

/* One protobuf varint; scan results are protobuf and their three fields are all we need. */
static uint64_t read_varint(const uint8_t **p, const uint8_t *end)
{
    uint64_t v = 0;

    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        uint8_t byte = *(*p)++;

        v |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) {
            break;
        }
    }
    return v;
}

/* A ScanToken: field 1 is the start, field 2 the end; all fields are varints. */
static struct token read_token(const uint8_t *p, const uint8_t *end)
{
    struct token t = {0, 0};

    while (p < end) {
        uint64_t tag = read_varint(&p, end);
        uint64_t value = read_varint(&p, end);

        if (tag >> 3 == 1) {
            t.start = (size_t)value;
        } else if (tag >> 3 == 2) {
            t.end = (size_t)value;
        }
    }
    return t;
}

/* Scans `sql`; no tokens when the scanner fails (the parser will then fail too). */
static struct tokens scan(struct arena *a, const char *sql)
{
    PgQueryScanResult res = pg_query_scan(sql);
    const uint8_t *p = (const uint8_t *)res.pbuf.data;
    struct tokens out = {NULL, 0};

    if (res.error == NULL && p != NULL) {
        const uint8_t *end = p + res.pbuf.len;

        /* A token takes at least two bytes of the message. */
        out.v = arena_alloc_zero(a, (res.pbuf.len / 2 + 1) * sizeof *out.v);
        while (p < end) {
            uint64_t tag = read_varint(&p, end);
            uint64_t value = read_varint(&p, end);

            if (tag == ((2 << 3) | 2) && value <= (uint64_t)(end - p)) {
                out.v[out.n++] = read_token(p, p + value);
                p += value;
            }
        }
    }
    pg_query_free_scan_result(res);
    return out;
}

static bool is_comment(const char *sql, struct token t)
{
    return strncmp(sql + t.start, "--", 2) == 0 || strncmp(sql + t.start, "/*", 2) == 0;
}

static bool is_param(const char *sql, struct token t)
{
    return sql[t.start] == '$' && sql[t.start + 1] >= '0' && sql[t.start + 1] <= '9';
}

/* A C comment between two string constants must stay: blanked, white space with a newline would be
 * left and join them, which the server does not do. */
static bool parts_strings(const char *sql, const struct tokens *toks, size_t at)
{
    size_t before = at;
    size_t after = at;

    if (strncmp(sql + toks->v[at].start, "/*", 2) != 0) {
        return false;
    }
    while (before > 0 && is_comment(sql, toks->v[before])) {
        before--;
    }
    while (after + 1 < toks->n && is_comment(sql, toks->v[after])) {
        after++;
    }
    return toks->v[before].end > 0 && sql[toks->v[before].end - 1] == '\'' &&
           sql[toks->v[after].start] == '\'';
}

/* Replaces comments by spaces of the same length, so that locations keep. */
static char *blank_comments(struct arena *a, const char *sql)
{
    struct tokens toks = scan(a, sql);
    char *out = arena_strdup(a, sql);

    for (size_t i = 0; i < toks.n; i++) {
        if (is_comment(sql, toks.v[i]) && !parts_strings(sql, &toks, i)) {
            memset(out + toks.v[i].start, ' ', toks.v[i].end - toks.v[i].start);
        }
    }
    return out;
}

static const struct oracle_json *parse(
    struct arena *a, const char *sql, const char **why_r, int *cursor_r)
{
    PgQueryParseResult res = pg_query_parse(sql);
    const struct oracle_json *tree = NULL;

    *cursor_r = 0;
    if (res.error == NULL) {
        tree = oracle_json_parse(a, res.parse_tree);
        *why_r = tree == NULL ? ORACLE_TEXT_TOO_DEEP : NULL;
    } else {
        *why_r = arena_strdup(a, res.error->message);
        *cursor_r = res.error->cursorpos;
    }
    pg_query_free_parse_result(res);
    return tree;
}

/* The byte offset of 1-based character `cursor`. */
static size_t byte_of_char(const char *sql, int cursor)
{
    size_t at = 0;

    for (int left = cursor - 1; sql[at] != '\0'; at++) {
        if (((unsigned char)sql[at] & 0xC0) != 0x80 && left-- == 0) {
            break;
        }
    }
    return at;
}

/* Puts an alias behind the parenthesis that opens at character `cursor`; NULL when none does. */
static const char *add_alias(struct arena *a, const char *sql, int cursor, int number)
{
    struct tokens toks = scan(a, sql);
    size_t at = byte_of_char(sql, cursor);
    int depth = 0;

    for (size_t i = 0; i < toks.n; i++) {
        if (toks.v[i].start < at) {
            continue;
        }
        depth += sql[toks.v[i].start] == '(';
        depth -= sql[toks.v[i].start] == ')';
        if (depth == 0 && toks.v[i].start > at) {
            size_t end = toks.v[i].end;

            /* Column names need an alias before them, in later grammar too. */
            if (i + 1 < toks.n && sql[toks.v[i + 1].start] == '(') {
                return NULL;
            }
            return arena_printf(a, "%.*s oracle_alias_%d %s", (int)end, sql, number, sql + end);
        }
    }
    return NULL;
}

/* Puts a constant expression in the place of every parameter. The server's grammar has parameters
 * only where it has CASE … END (or, before a subscript or field, a parenthesis); libpg_query was
 * made to take them also where a literal must stand. */
static const char *replace_params(struct arena *a, const char *sql)
{
    struct tokens toks = scan(a, sql);
    struct buf out = {0};
    const char *copy = NULL;
    size_t done = 0;

    for (size_t i = 0; i < toks.n; i++) {
        char next = i + 1 < toks.n ? sql[toks.v[i + 1].start] : '\0';
        bool indirect =
            next == '[' || (next == '.' && toks.v[i + 1].end == toks.v[i + 1].start + 1);

        if (is_param(sql, toks.v[i])) {
            buf_put(&out, sql + done, toks.v[i].start - done);
            buf_printf(&out, "%s", indirect ? " (a) " : " CASE WHEN a THEN a END ");
            done = toks.v[i].end;
        }
    }
    if (done > 0) {
        buf_put_cstr(&out, sql + done);
        copy = arena_strdup(a, buf_slice(&out).p);
    }
    buf_free(&out);
    return copy;
}

static bool wants_alias(const char *why)
{
    return why != NULL && strstr(why, "in FROM must have an alias") != NULL;
}

struct oracle_text oracle_text_parse(struct arena *a, const char *sql)
{
    struct oracle_text t = {blank_comments(a, sql), NULL, NULL};
    const char *bare;
    int cursor;

    t.tree = parse(a, t.sql, &t.why, &cursor);
    for (int i = 0; t.tree == NULL && wants_alias(t.why) && i < ORACLE_ALIAS_MAX; i++) {
        const char *repaired = add_alias(a, t.sql, cursor, i);

        if (repaired == NULL) {
            break;
        }
        t.sql = repaired;
        t.tree = parse(a, t.sql, &t.why, &cursor);
    }
    bare = t.tree == NULL ? NULL : replace_params(a, t.sql);
    if (bare != NULL && parse(a, bare, &t.why, &cursor) == NULL) {
        t.tree = NULL;
    }
    return t;
}
