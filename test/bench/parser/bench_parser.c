/* SPDX-License-Identifier: PostgreSQL
 * bench_parser.c: our parser against libpg_query's raw parse, in one run, as a table of ratios.
 * Runs by hand: bench_parser [FILE...]; a FILE holds SQL texts that end with NUL bytes. Budget: a
 * full parse with all facts at most 1.0 times libpg_query's bare raw parse, a fingerprint with
 * cached facts at most 0.5 times. Each figure is the best of several rounds, taken in turns. */
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

#define ROUNDS     7
#define ROUND_NS   120e6
#define CACHE_SIZE 100000

/* What libpg_query exports but does not declare without PostgreSQL's own headers. */
struct raw_result {
    void *tree;
    char *stderr_buffer;
    PgQueryError *error;
};
struct raw_result pg_query_raw_parse(const char *input);
void *pg_query_enter_memory_context(void);
void pg_query_exit_memory_context(void *context);

struct corpus {
    const char *name;
    struct slice *texts;
    size_t count;
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

static void work_fingerprint(struct bench *b, struct slice text)
{
    struct sql_fingerprint fp = {0, 0};

    arena_reset(b->arena);
    (void)sql_fingerprint(b->arena, text, &fp);
    b->sum += fp.lo & 1;
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

static double time_once(struct bench *b, const struct corpus *c, work_fn *fn)
{
    double start = now_ns();
    double spent;
    unsigned long passes = 0;
    unsigned long block = 1 + 2000 / c->count; /* the clock is dear: look at it rarely */

    do {
        for (unsigned long n = 0; n < block; n++) {
            for (size_t i = 0; i < c->count; i++)
                fn(b, c->texts[i]);
        }
        passes += block;
        spent = now_ns() - start;
    } while (spent < ROUND_NS);
    return spent / (double)passes / (double)c->count;
}

static void run(struct bench *b, const struct corpus *c)
{
    static work_fn *const works[] = {work_libpg, work_parse, work_fingerprint, work_cached};
    double best[4] = {0};

    for (int round = 0; round < ROUNDS; round++) {
        for (int w = 0; w < 4; w++) {
            double ns = time_once(b, c, works[w]);
            if (round == 0 || ns < best[w])
                best[w] = ns;
        }
    }
    printf("%-22.22s %7zu %6zu %9.0f %9.0f %9.0f %9.0f %7.2f %7.2f %8.0f\n", c->name, c->count,
        c->bytes / c->count, best[0], best[1], best[2], best[3], best[1] / best[0],
        best[3] / best[0], (double)c->bytes / (double)c->count / best[1] * 1e3);
}

static void add_text(struct corpus *c, const char *p, size_t n)
{
    struct slice *more = realloc(c->texts, (c->count + 1) * sizeof(*more));

    if (more == NULL)
        abort();
    c->texts = more;
    c->texts[c->count++] = slice_of(p, n);
    c->bytes += n;
}

static int read_corpus(struct corpus *c, const char *path, struct buf *data)
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
            add_text(c, data->data + i, len);
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
        struct slice text = slice_of_str(texts[i][1]);
        struct corpus c = {texts[i][0], &text, 1, text.n};
        run(b, &c);
    }
}

int main(int argc, char **argv)
{
    struct bench b = {arena_new("bench", 0), sql_cache_new(CACHE_SIZE, 1u << 28), 0};
    int rc = 0;

    printf("%-22s %7s %6s %9s %9s %9s %9s %7s %7s %8s\n", "texts", "count", "bytes", "libpg ns",
        "parse ns", "fp ns", "hit ns", "parse/l", "hit/l", "MB/s");
    run_builtin(&b);
    for (int i = 1; i < argc; i++) {
        struct corpus c = {0};
        struct buf data = {0};
        if (read_corpus(&c, argv[i], &data) == 0)
            run(&b, &c);
        else
            rc = 1;
        free(c.texts);
        buf_free(&data);
    }
    sql_cache_free(&b.cache);
    arena_free(&b.arena);
    return b.sum == 0 ? 1 : rc;
}
