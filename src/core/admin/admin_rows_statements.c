/* SPDX-License-Identifier: PostgreSQL
 * admin_rows_statements.c: rows of SHOW POOL_STATEMENTS, what took most time in all first. Runs in:
 * worker, control, web. The rows of all workers are read one after the other and added up. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin_int.h"
#include "base/mem.h"
#include "ipc/stmtstats.h"

#define FIRST_ROOM 64

struct statements {
    struct stmtstats_sum *sum;
    size_t n;
    size_t room;
};

static int by_identity(const void *a, const void *b)
{
    const struct stmtstats_sum *x = a;
    const struct stmtstats_sum *y = b;

    if (x->fingerprint != y->fingerprint)
        return x->fingerprint < y->fingerprint ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return strcmp(x->database, y->database);
}

static int by_total_time(const void *a, const void *b)
{
    const struct stmtstats_sum *x = a;
    const struct stmtstats_sum *y = b;

    if (x->total_us != y->total_us)
        return x->total_us > y->total_us ? -1 : 1;
    return by_identity(a, b);
}

static void take_rows(const struct shm *shm, struct statements *s)
{
    uint32_t at = 0;

    for (;; s->n++) {
        if (s->n == s->room) {
            s->room = s->room == 0 ? FIRST_ROOM : 2 * s->room;
            s->sum = mem_resize(s->sum, s->room * sizeof *s->sum);
        }
        if (!stmtstats_next(shm, &at, &s->sum[s->n]))
            break;
    }
}

static void merge(struct statements *s)
{
    size_t to = 0;
    size_t i;

    if (s->n == 0)
        return;
    qsort(s->sum, s->n, sizeof *s->sum, by_identity);
    for (i = 1; i < s->n; i++) {
        if (by_identity(&s->sum[to], &s->sum[i]) == 0)
            stmtstats_sum_add(&s->sum[to], &s->sum[i]);
        else if (++to != i)
            s->sum[to] = s->sum[i];
    }
    s->n = to + 1;
    qsort(s->sum, s->n, sizeof *s->sum, by_total_time);
}

static void put_statement(
    const struct admin_sources *src, const struct stmtstats_sum *sum, struct admin_rows *out)
{
    bool is_other = sum->node == STMTSTATS_OTHER;
    char fingerprint[17] = "";

    if (!is_other)
        snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)sum->fingerprint);
    admin_row_begin(out);
    admin_put_str(out, fingerprint);
    admin_put_str(out, sum->database);
    admin_put_optional_int(out, !is_other, sum->node);
    admin_put_uint(out, sum->calls);
    admin_put_uint(out, sum->total_us);
    admin_put_uint(out, sum->calls == 0 ? 0 : sum->total_us / sum->calls);
    admin_put_int(out, stmtstats_quantile(sum, 990));
    admin_put_uint(out, sum->max_us);
    admin_put_uint(out, sum->nrows);
    admin_put_uint(out, sum->nerrors);
    admin_put_uint(out, sum->hits);
    if (is_other)
        admin_put_static(out, "<all others>");
    else if (admin_sees_statement(src, slice_of("", 0), slice_of("", 0)))
        admin_put_str(out, sum->text);
    else
        admin_put_static(out, ADMIN_HIDDEN_STATEMENT);
}

void admin_rows_statements(const struct admin_sources *src, struct admin_rows *out)
{
    struct statements s = {NULL, 0, 0};
    size_t i;

    take_rows(src->shm, &s);
    merge(&s);
    for (i = 0; i < s.n; i++)
        put_statement(src, &s.sum[i], out);
    mem_free(s.sum);
}
