/* SPDX-License-Identifier: PostgreSQL
 * fuzz_parser.c: fuzz target over sql_parse, sql_fingerprint and sql_cache_get. With libFuzzer:
 * clang -fsanitize=fuzzer,address -DFUZZ_LIBFUZZER. Without it a main replays the files given, or
 * mutates its own seeds, a fixed number of times or for the seconds asked for. Invariants checked:
 * all spans inside the text and inside their statement, a statement alone means what it means in
 * the text, the cache answers what the parser answers. How to run it: fuzz_parser.md. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "fingerprint.h"
#include "parser/parser.h"
#include "parser/sql_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_parser: %s\n", what);
    abort();
}

static void require_span(struct slice text, const struct sql_stmt *s, uint32_t offset, uint32_t len)
{
    require(offset <= text.n && len <= text.n - offset, "span outside of the text");
    require(
        offset >= s->offset && offset + len <= s->offset + s->len, "span outside of its statement");
}

static void check_stmt(struct slice text, const struct sql_stmt *s)
{
    require((unsigned)s->kind < SQL_KIND_COUNT, "impossible kind");
    require_span(text, s, s->offset, s->len);
    require(s->len > 0, "empty statement");
    require(s->hint.offset + s->hint.len <= s->offset, "hint behind the statement");
    for (uint32_t i = 0; i < s->ntables; i++) {
        require_span(text, s, s->tables[i].offset, s->tables[i].len);
        require(s->tables[i].name.n <= 63 && s->tables[i].schema.n <= 63, "name too long");
    }
    for (uint32_t i = 0; i < s->nfuncs; i++) {
        require_span(text, s, s->funcs[i].offset, s->funcs[i].call_len);
        require(s->funcs[i].len <= s->funcs[i].call_len, "call shorter than its name");
    }
    for (uint32_t i = 0; i < s->ntimes; i++)
        require_span(text, s, s->times[i].span.offset, s->times[i].span.len);
    for (uint32_t i = 0; i < s->nliterals; i++)
        require_span(text, s, s->literals[i].span.offset, s->literals[i].span.len);
    if (s->body.len != 0)
        require_span(text, s, s->body.offset, s->body.len);
}

static bool is_same(const struct sql_stmt *a, const struct sql_stmt *b)
{
    return a->kind == b->kind && a->flags == b->flags && a->verb == b->verb &&
           a->inner == b->inner && a->max_param == b->max_param && a->ntables == b->ntables &&
           a->nfuncs == b->nfuncs && a->ntimes == b->ntimes && a->tx.op == b->tx.op &&
           slice_eq(a->name, b->name) && slice_eq(a->set.name, b->set.name);
}

static void check_alone(struct arena *a, struct slice text, const struct sql_stmt *s)
{
    struct sql_facts alone;

    (void)sql_parse(a, slice_of(text.p + s->offset, s->len), &alone);
    require(alone.status == SQL_OK && alone.nstmts == 1, "a statement alone is rejected");
    require(is_same(&alone.stmts[0], s), "a statement alone means something else");
}

static void check_cache(struct arena *a, struct slice text, const struct sql_facts *facts)
{
    struct sql_cache *c = sql_cache_new(4, 1 << 16);
    bool layout = false;

    for (int pass = 0; pass < 2; pass++) {
        const struct sql_facts *f = sql_cache_get(c, a, text, &layout);
        require(layout, "the same text has another layout");
        require(f->status == facts->status && f->nstmts == facts->nstmts, "cache differs");
        for (uint32_t i = 0; i < f->nstmts; i++)
            require(is_same(&f->stmts[i], &facts->stmts[i]), "cached facts differ");
    }
    sql_cache_free(&c);
}

/* By hand where the text is plain, and by the scanner: no difference. */
static void check_fingerprint(struct arena *a, struct slice text)
{
    struct sqlfp either = {.seed = 5};
    struct sqlfp scanned = {.seed = 5};
    int rc = sqlfp_text(a, text, false, &either);

    require(rc == sqlfp_text(a, text, true, &scanned), "broken for one of two");
    require(rc == -1 || (either.sum.lo == scanned.sum.lo && either.sum.hi == scanned.sum.hi &&
                            either.layout == scanned.layout),
        "another fingerprint without the scanner");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly that size: the sanitizer sees a read one byte too far. */
    char *copy = malloc(size == 0 ? 1 : size);
    struct arena *a = arena_new("fuzz", (size_t)1 << 28);
    struct slice text = slice_of(copy, size);
    struct sql_facts facts;
    struct sql_fingerprint fp;

    if (copy == NULL)
        abort();
    if (size > 0)
        memcpy(copy, data, size);
    (void)sql_parse(a, text, &facts);
    require(facts.status == SQL_OK || (facts.nstmts == 0 && facts.error != NULL), "no reason");
    if (facts.status == SQL_OK && size > 0)
        require(sql_fingerprint(a, text, &fp) == 0, "accepted, but has no fingerprint");
    for (uint32_t i = 0; i < facts.nstmts && i < 8; i++) {
        check_stmt(text, &facts.stmts[i]);
        check_alone(a, text, &facts.stmts[i]);
    }
    check_fingerprint(a, text);
    check_cache(a, text, &facts);
    arena_free(&a);
    free(copy);
    return 0;
}

#ifndef FUZZ_LIBFUZZER

#define MUTATIONS      60000
#define MAX_TEXT_BYTES 4096

static const char *const seeds[] = {
    "SELECT a, b.c[1], count(*) FILTER (WHERE x > 1) OVER (PARTITION BY y) FROM t, LATERAL f(2) z "
    "WHERE a IN (1, 2) AND b LIKE 'x' ESCAPE '!' GROUP BY ROLLUP (a) ORDER BY 1 NULLS FIRST",
    "WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t), d AS (DELETE FROM u "
    "RETURNING *) SELECT * FROM t JOIN d USING (n) FOR UPDATE OF t SKIP LOCKED LIMIT 5",
    "INSERT INTO s.t AS x (a, b) VALUES (1, DEFAULT), ($2, E'\\u0041\\'') ON CONFLICT (a) DO "
    "UPDATE "
    "SET b = excluded.b RETURNING now()",
    "MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN INSERT VALUES (1) WHEN MATCHED THEN "
    "UPDATE SET a = 1",
    "CREATE TEMP TABLE IF NOT EXISTS t (a int PRIMARY KEY DEFAULT 1, CHECK (a > 0) NOT VALID, LIKE "
    "u INCLUDING ALL) PARTITION BY RANGE (lower(a)) WITH (fillfactor = 10)",
    "CREATE FUNCTION f(a int = 1) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; RETURN 2; END",
    "SELECT JSON_VALUE(a, '$' RETURNING int DEFAULT 1 ON EMPTY), json_array(1, 2), x IS JSON, "
    "U&\"d!0061t\" UESCAPE '!', $tag$a$b$tag$, 0x1F, 1_0.5e-1, X'1f', N'a' -- c\n'b'",
    "BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL a.b TO 'c', 1; SAVEPOINT s; ROLLBACK TO s; END",
    "EXPLAIN (ANALYZE, FORMAT json) SELECT CURRENT_TIMESTAMP(3); /*h*/ COPY (SELECT 1) TO STDOUT",
    "ALTER TABLE ONLY t ADD COLUMN a int, ALTER b SET DEFAULT 1, ATTACH PARTITION p DEFAULT",
    "GRANT SELECT (a), UPDATE ON t TO PUBLIC WITH GRANT OPTION; PREPARE p AS SELECT $1::int[]",
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Replaces some bytes of `text` by a piece of another seed, or by nothing, or by a sign. */
static size_t mutate(uint64_t *state, char *text, size_t n)
{
    static const char signs[] = "'\"$;()[],.:*/-+<>=!@\\ \n\tEUaux019_&%^|#?~`{}\x80\xff";
    const char *other = seeds[next_random(state) % (sizeof(seeds) / sizeof(seeds[0]))];
    size_t from = n == 0 ? 0 : next_random(state) % n;
    size_t gone = next_random(state) % 12;
    size_t start = next_random(state) % strlen(other);
    size_t added = next_random(state) % 24;
    unsigned how = (unsigned)(next_random(state) % 4);

    if (gone > n - from || how == 1)
        gone = n - from < 1 ? 0 : 1;
    if (added > strlen(other) - start || how == 0)
        added = 0;
    if (how == 1) {
        other = &signs[next_random(state) % (sizeof(signs) - 1)];
        start = 0;
        added = 1;
    }
    if (n - gone + added > MAX_TEXT_BYTES)
        return n;
    memmove(text + from + added, text + from + gone, n - from - gone);
    memcpy(text + from, other + start, added);
    return n - gone + added;
}

static void run_mutations(uint64_t seed, unsigned long count, time_t until)
{
    char text[MAX_TEXT_BYTES];
    uint64_t state = seed * 2654435769u + 88172645463325252u;
    unsigned long done = 0;

    while (until != 0 ? time(NULL) < until : done < count) {
        const char *s = seeds[next_random(&state) % (sizeof(seeds) / sizeof(seeds[0]))];
        size_t n = strlen(s);
        unsigned steps = 1 + (unsigned)(next_random(&state) % 6);

        memcpy(text, s, n);
        for (unsigned i = 0; i < steps; i++)
            n = mutate(&state, text, n);
        LLVMFuzzerTestOneInput((const uint8_t *)text, n);
        done++;
    }
    printf("fuzz_parser: %lu texts\n", done);
}

static int replay(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *f = fopen(path, "rb");
    size_t n;

    if (f == NULL) {
        perror(path);
        return 1;
    }
    n = fread(data, 1, sizeof(data), f);
    fclose(f);
    LLVMFuzzerTestOneInput(data, n);
    return 0;
}

int main(int argc, char **argv)
{
    int rc = 0;

    if (argc >= 3 && strcmp(argv[1], "--seconds") == 0) {
        run_mutations(
            argc > 3 ? strtoull(argv[3], NULL, 10) : 1, 0, time(NULL) + strtol(argv[2], NULL, 10));
        return 0;
    }
    for (int i = 1; i < argc; i++)
        rc |= replay(argv[i]);
    if (argc == 1) {
        for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
            LLVMFuzzerTestOneInput((const uint8_t *)seeds[i], strlen(seeds[i]));
        run_mutations(1, MUTATIONS, 0);
    }
    return rc;
}

#endif
