/* SPDX-License-Identifier: PostgreSQL
 * bench_parser.c: our parser against libpg_query's raw parse, statement by statement, as Markdown.
 * Runs by hand, or by test/bench/parser/run: bench_parser [FILE...]; a FILE holds SQL texts that
 * end with NUL bytes. Budget, for each text: a full parse with all facts at most 1.0 times
 * libpg_query's bare raw parse, a fingerprint with cached facts at most 0.5 times. Each text is
 * parsed alone, by all parsers in turns, and the best of several turns counts: what disturbs the
 * machine disturbs all of them. Texts that one of the two refuses are counted, not compared. */
#include "config.h"

#include "base/arena.h"
#include "base/buf.h"
#include "parser/parser.h"
#include "parser/sql_cache.h"

#include <pg_query.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS     9
#define BLOCK_NS   30e3
#define CACHE_SIZE 200000
#define WORST      10
#define SHOWN      120

enum { LIBPG, PARSE, HIT, WORKS };

/* What libpg_query exports but does not declare without PostgreSQL's own headers. */
struct raw_result {
    void *tree;
    char *stderr_buffer;
    PgQueryError *error;
};
struct raw_result pg_query_raw_parse(const char *input);
void *pg_query_enter_memory_context(void);
void pg_query_exit_memory_context(void *context);

/* Best times of one text. */
struct timed {
    struct slice text;
    double ns[WORKS];
};

struct corpus {
    const char *name;
    struct timed *texts;
    size_t count;
    size_t refused;
    size_t bytes;
};

struct bench {
    struct arena *arena;
    struct sql_cache *cache;
    unsigned long sum; /* keeps the work from being optimised away */
};

typedef void work_fn(struct bench *b, struct slice text);

static void work_libpg(struct bench *b, struct slice text)
{
    void *context = pg_query_enter_memory_context();
    struct raw_result r = pg_query_raw_parse(text.p);

    b->sum += r.error == NULL;
    pg_query_exit_memory_context(context);
}

static void work_parse(struct bench *b, struct slice text)
{
    struct sql_facts facts;

    arena_reset(b->arena);
    (void)sql_parse(b->arena, text, &facts);
    b->sum += facts.nstmts;
}

static void work_cached(struct bench *b, struct slice text)
{
    bool same;

    arena_reset(b->arena);
    b->sum += sql_cache_get(b->cache, b->arena, text, &same)->nstmts;
}

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double time_block(struct bench *b, struct slice text, work_fn *fn, unsigned n)
{
    double start = now_ns();

    for (unsigned i = 0; i < n; i++)
        fn(b, text);
    return (now_ns() - start) / n;
}

/* As many times as the clock is fine enough for. */
static unsigned block_of(struct bench *b, struct slice text)
{
    double once = time_block(b, text, work_libpg, 2) + 100;

    return once >= BLOCK_NS ? 1 : (unsigned)(BLOCK_NS / once) + 1;
}

static void time_text(struct bench *b, struct timed *t)
{
    static work_fn *const works[WORKS] = {work_libpg, work_parse, work_cached};
    unsigned n = block_of(b, t->text);

    for (int round = 0; round < ROUNDS; round++) {
        for (int w = 0; w < WORKS; w++) {
            double ns = time_block(b, t->text, works[w], n);
            if (round == 0 || ns < t->ns[w])
                t->ns[w] = ns;
        }
    }
}

static double ratio_of(const struct timed *t, int work)
{
    return t->ns[work] / t->ns[LIBPG];
}

static int compare_parse(const void *x, const void *y)
{
    double d = ratio_of(x, PARSE) - ratio_of(y, PARSE);

    return (d > 0) - (d < 0);
}

static int compare_hit(const void *x, const void *y)
{
    double d = ratio_of(x, HIT) - ratio_of(y, HIT);

    return (d > 0) - (d < 0);
}

/* Sorts the texts by a ratio, and returns the median. */
static double median(struct corpus *c, int work)
{
    qsort(c->texts, c->count, sizeof c->texts[0], work == HIT ? compare_hit : compare_parse);
    return ratio_of(&c->texts[c->count / 2], work);
}

static double total(const struct corpus *c, int work)
{
    double sum = 0.0;

    for (size_t i = 0; i < c->count; i++)
        sum += c->texts[i].ns[work];
    return sum;
}

static void print_head(void)
{
    printf(
        "| texts | count | refused | bytes each | libpg_query ns | parse ns | cached ns | parse: "
        "median | parse: total | parse: over 1.0 | cached: median | cached: total | cached: over "
        "0.5 |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
}

static void run(struct bench *b, struct corpus *c)
{
    size_t slow = 0;
    size_t slow_hits = 0;
    double libpg;
    double hit;

    if (c->count == 0)
        return;
    for (size_t i = 0; i < c->count; i++)
        time_text(b, &c->texts[i]);
    for (size_t i = 0; i < c->count; i++) {
        slow += ratio_of(&c->texts[i], PARSE) > 1.0;
        slow_hits += ratio_of(&c->texts[i], HIT) > 0.5;
    }
    libpg = total(c, LIBPG);
    hit = median(c, HIT);
    printf(
        "| %s | %zu | %zu | %zu | %.0f | %.0f | %.0f | %.2f | %.2f | %zu | %.2f | %.2f | %zu |\n",
        c->name, c->count, c->refused, c->bytes / c->count, libpg / (double)c->count,
        total(c, PARSE) / (double)c->count, total(c, HIT) / (double)c->count, median(c, PARSE),
        total(c, PARSE) / libpg, slow, hit, total(c, HIT) / libpg, slow_hits);
}

static void print_text(struct slice text)
{
    for (size_t i = 0; i < text.n && i < SHOWN; i++) {
        char ch = text.p[i];
        putchar(ch == '|' || ch == '`' || (unsigned char)ch < ' ' ? ' ' : ch);
    }
    if (text.n > SHOWN)
        printf(" …");
}

/* The texts with the largest ratio. */
static void print_worst(struct corpus *c, int work)
{
    const char *what = work == HIT ? "cached facts" : "a full parse";

    if (c->count == 0)
        return;
    (void)median(c, work);
    printf("\n## %s: %s, the largest ratios\n\n| ratio | libpg_query ns | ns | text |\n"
           "| --- | --- | --- | --- |\n",
        c->name, what);
    for (size_t i = 0; i < c->count && i < WORST; i++) {
        const struct timed *t = &c->texts[c->count - 1 - i];
        printf("| %.2f | %.0f | %.0f | `", ratio_of(t, work), t->ns[LIBPG], t->ns[work]);
        print_text(t->text);
        printf("` |\n");
    }
}

/* Do both parsers take it? What libpg_query refuses costs it an exception. */
static bool is_taken(struct bench *b, struct slice text)
{
    struct sql_facts facts;
    void *context = pg_query_enter_memory_context();
    bool taken = pg_query_raw_parse(text.p).error == NULL;

    pg_query_exit_memory_context(context);
    arena_reset(b->arena);
    return taken && sql_parse(b->arena, text, &facts) == 0 && facts.status == SQL_OK;
}

static void add_text(struct bench *b, struct corpus *c, const char *p, size_t n)
{
    struct timed *more;

    if (!is_taken(b, slice_of(p, n))) {
        c->refused++;
        return;
    }
    more = realloc(c->texts, (c->count + 1) * sizeof *more);
    if (more == NULL)
        abort();
    c->texts = more;
    c->texts[c->count++] = (struct timed){.text = slice_of(p, n)};
    c->bytes += n;
}

static int read_corpus(struct bench *b, struct corpus *c, const char *path, struct buf *data)
{
    FILE *f = fopen(path, "rb");
    size_t n;

    if (f == NULL) {
        perror(path);
        return -1;
    }
    do {
        n = fread(buf_reserve(data, 65536), 1, 65536, f);
        buf_advance(data, n);
    } while (n > 0);
    fclose(f);
    buf_put_byte(data, '\0');
    for (size_t i = 0; i < data->len;) {
        size_t len = strlen(data->data + i);
        if (len > 0)
            add_text(b, c, data->data + i, len);
        i += len + 1;
    }
    c->name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    return c->count > 0 ? 0 : -1;
}

static void run_builtin(struct bench *b)
{
    static const char *const texts[][2] = {
        {"pgbench select", "SELECT abalance FROM pgbench_accounts WHERE aid = 12345;"},
        {"pgbench update",
            "UPDATE pgbench_accounts SET abalance = abalance + -1234 WHERE aid = 12345;"},
        {"begin", "BEGIN"},
        {"orm select",
            "SELECT \"users\".\"id\", \"users\".\"name\", \"users\".\"email\", "
            "\"users\".\"created_at\" FROM \"users\" INNER JOIN \"orders\" ON \"orders\"."
            "\"user_id\" = \"users\".\"id\" WHERE \"orders\".\"state\" = $1 AND \"users\"."
            "\"active\" = TRUE ORDER BY \"users\".\"id\" ASC LIMIT $2"},
        {"insert", "INSERT INTO t (a, b, c) VALUES (1, 'text', now()), (2, 'more', NULL)"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct corpus c = {.name = texts[i][0]};
        add_text(b, &c, texts[i][1], strlen(texts[i][1]));
        run(b, &c);
        free(c.texts);
    }
}

int main(int argc, char **argv)
{
    struct bench b = {arena_new("bench", 0), sql_cache_new(CACHE_SIZE, 1u << 28), 0};
    struct corpus *corpora = calloc((size_t)argc, sizeof *corpora);
    struct buf *data = calloc((size_t)argc, sizeof *data);
    int rc = 0;

    if (corpora == NULL || data == NULL)
        abort();
    print_head();
    run_builtin(&b);
    for (int i = 1; i < argc; i++) {
        if (read_corpus(&b, &corpora[i], argv[i], &data[i]) == -1)
            rc = 1;
        run(&b, &corpora[i]);
    }
    for (int i = 1; i < argc; i++) {
        print_worst(&corpora[i], PARSE);
        print_worst(&corpora[i], HIT);
        free(corpora[i].texts);
        buf_free(&data[i]);
    }
    free(corpora);
    free(data);
    sql_cache_free(&b.cache);
    arena_free(&b.arena);
    return b.sum == 0 ? 1 : rc;
}
