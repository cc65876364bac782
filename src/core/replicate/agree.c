/* SPDX-License-Identifier: PostgreSQL
 * agree.c: the answers of several nodes to one statement, compared. Runs in: workers. Pure.
 *
 * The majority decides what was answered; where nobody has one, the main node does, as in
 * pgpool-II: it is the one whose answer the client gets. */
#include "config.h"

#include "replicate/agree.h"

#include "base/assert.h"

#include <string.h>

#define QUERY_MAX 1024

void agree_rows_add(struct agree_rows *rows, const char *p, size_t n)
{
    uint64_t h = rows->row;

    if (rows->n == 0 && rows->nsample < AGREE_SAMPLE_BYTES) {
        size_t room = AGREE_SAMPLE_BYTES - rows->nsample;
        size_t take = n < room ? n : room;

        memcpy(rows->sample + rows->nsample, p, take);
        rows->nsample += (uint32_t)take;
    }
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * UINT64_C(0x100000001B3);
    rows->row = h;
}

void agree_rows_end(struct agree_rows *rows)
{
    uint64_t h = rows->row + UINT64_C(0x9E3779B97F4A7C15);

    h = (h ^ (h >> 31)) * UINT64_C(0xBF58476D1CE4E5B9);
    rows->digest += h ^ (h >> 29);
    rows->row = 0;
    rows->n++;
}

static bool same_kind(const struct agree_answer *a, const struct agree_answer *b)
{
    return a->kind == b->kind;
}

static bool same_tuples(const struct agree_answer *a, const struct agree_answer *b)
{
    return same_kind(a, b) && a->has_tuples == b->has_tuples && a->ntuples == b->ntuples;
}

static bool same_rows(const struct agree_answer *a, const struct agree_answer *b)
{
    if (a->rows == NULL || b->rows == NULL)
        return same_tuples(a, b);
    return same_tuples(a, b) && a->rows->digest == b->rows->digest && a->rows->n == b->rows->n;
}

typedef bool agree_same(const struct agree_answer *a, const struct agree_answer *b);

/* The answer that most gave: the main node's when it is one of several of that size. */
static unsigned majority(
    const struct agree_answer *answers, unsigned n, unsigned main, agree_same *same)
{
    unsigned best = main;
    unsigned best_n = 0;

    for (unsigned i = 0; i < n; i++) {
        unsigned count = 0;

        for (unsigned k = 0; k < n; k++)
            count += same(&answers[i], &answers[k]);
        if (count > best_n || (count == best_n && i == main)) {
            best = i;
            best_n = count;
        }
    }
    /* The main node speaks for its own side. */
    return same(&answers[best], &answers[main]) ? main : best;
}

void agree_judge(const struct agree_answer *answers, unsigned n, unsigned main,
    const struct agree_rules *rules, struct agree_result *out)
{
    static agree_same *const same[] = {same_kind, same_tuples, same_rows};
    static const enum agree_verdict verdict[] = {AGREE_KINDS, AGREE_TUPLES, AGREE_ROWS};
    unsigned nlevels = rules->compares_rows ? 3 : 2;

    ASSERT(n > 0 && n <= 64 && main < n);
    *out = (struct agree_result){.main = main};
    for (unsigned level = 0; level < nlevels; level++) {
        unsigned best = majority(answers, n, main, same[level]);

        for (unsigned i = 0; i < n; i++) {
            if (!same[level](&answers[best], &answers[i]))
                out->minority |= UINT64_C(1) << i;
        }
        if (out->minority == 0)
            continue;
        out->verdict = verdict[level];
        out->main = best;
        out->main_differs = (out->minority >> main & 1) != 0;
        return;
    }
}

enum agree_action agree_what_to_do(
    const struct agree_result *result, const struct agree_rules *rules)
{
    switch (result->verdict) {
    case AGREE_SAME:
        return AGREE_GO_ON;
    case AGREE_KINDS:
        return rules->stop_on_mismatch ? AGREE_DETACH : AGREE_END;
    case AGREE_TUPLES:
        return rules->failover_if_tuples ? AGREE_DETACH : AGREE_REFUSE;
    case AGREE_ROWS:
        return rules->stop_on_mismatch ? AGREE_DETACH : AGREE_REFUSE;
    }
    UNREACHED();
}

bool agree_is_lock_trouble(struct slice said)
{
    /* 25P02: what stood in front of it, as a lock. */
    static const char *const state[] = {"40P01", "40001", "55P03", "57014", "53", "57P0", "25P02"};

    for (unsigned i = 0; i < sizeof state / sizeof state[0]; i++) {
        if (said.n >= strlen(state[i]) && memcmp(said.p, state[i], strlen(state[i])) == 0)
            return true;
    }
    return false;
}

bool agree_tag_tuples(struct slice tag, uint64_t *ntuples)
{
    size_t at = tag.n;
    uint64_t n = 0;

    while (at > 0 && tag.p[at - 1] >= '0' && tag.p[at - 1] <= '9')
        at--;
    if (at == tag.n || at == 0 || tag.p[at - 1] != ' ')
        return false;
    for (; at < tag.n; at++)
        n = n * 10 + (uint64_t)(tag.p[at] - '0');
    *ntuples = n;
    return true;
}

/* The first row as it came, its lengths being dots. */
static void put_rows(const struct agree_rows *rows, struct buf *out)
{
    bool was_dot = true;

    buf_printf(out, "(%llu rows, digest %016llx", (unsigned long long)rows->n,
        (unsigned long long)rows->digest);
    if (rows->nsample > 0)
        buf_printf(out, ", first ");
    for (uint32_t i = 0; i < rows->nsample; i++) {
        char c = rows->sample[i];
        bool is_dot = c < ' ' || c == 0x7F;

        if (!is_dot || !was_dot)
            buf_put_byte(out, is_dot ? '|' : c);
        was_dot = is_dot;
    }
    buf_put_byte(out, ')');
}

void agree_put_log(const struct agree_answer *answers, unsigned n,
    const struct agree_result *result, unsigned i, struct buf *out)
{
    const struct agree_answer *a = &answers[i];
    const struct agree_answer *m = &answers[result->main];

    if (result->verdict == AGREE_KINDS) {
        buf_printf(out,
            "packet kind of backend %d ['%c'] does not match with main/majority nodes packet kind "
            "['%c']",
            a->node, a->kind, m->kind);
    } else if (result->verdict == AGREE_TUPLES) {
        buf_printf(out, "CommandComplete: Number of affected tuples are:");
        for (unsigned k = 0; k < n; k++)
            buf_printf(out, " %llu", (unsigned long long)answers[k].ntuples);
    } else {
        buf_printf(out, "rows of backend %d ", a->node);
        put_rows(a->rows, out);
        buf_printf(out, " are not those of main/majority nodes, as of backend %d ", m->node);
        put_rows(m->rows, out);
    }
}

static void put_query(struct slice query, struct buf *out)
{
    size_t n = query.n > QUERY_MAX ? QUERY_MAX : query.n;

    while (n > 0 && n < query.n && ((unsigned char)query.p[n] & 0xC0) == 0x80)
        n--;
    buf_printf(out, " Possible last query was: \"%.*s\"", (int)n, query.p);
}

void agree_put_error(const struct agree_answer *answers, unsigned n,
    const struct agree_result *result, struct slice query, struct buf *out)
{
    if (result->verdict == AGREE_TUPLES) {
        buf_printf(out, "pgpool detected difference of the number of inserted, updated or deleted "
                        "tuples.");
        put_query(query, out);
        return;
    }
    if (result->verdict == AGREE_ROWS) {
        buf_printf(out, "pgpool detected different rows on the nodes.");
        put_query(query, out);
        return;
    }
    buf_printf(out, "kind mismatch among backends.");
    put_query(query, out);
    buf_printf(out, " kind details are:");
    for (unsigned i = 0; i < n; i++) {
        buf_printf(out, " %d[%c", answers[i].node, answers[i].kind);
        if (answers[i].kind == 'E')
            buf_printf(out, ": %.*s", (int)answers[i].text.n, answers[i].text.p);
        buf_put_byte(out, ']');
    }
}

const char *agree_hint(const struct agree_result *result)
{
    return result->verdict == AGREE_KINDS ? "check data consistency among db nodes"
                                          : "check data consistency between main and other db node";
}
