/* SPDX-License-Identifier: PostgreSQL
 * admin_rows_statements.c: rows of SHOW POOL_STATEMENTS, what took most time in all first. Runs in:
 * worker, control, web. The rows of all workers are read one after the other and added up. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin_int.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/list.h"
#include "ipc/stmtstats.h"

/* One statement, as all workers have counted it. */
struct statement {
    struct hash_node node;
    struct stmtstats_sum sum;
};

struct statements {
    struct hash_table table;
    struct arena *arena;
};

static int by_identity(const struct stmtstats_sum *x, const struct stmtstats_sum *y)
{
    if (x->fingerprint != y->fingerprint)
        return x->fingerprint < y->fingerprint ? -1 : 1;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return strcmp(x->database, y->database);
}

static int by_total_time(const void *a, const void *b)
{
    const struct stmtstats_sum *x = *(const struct stmtstats_sum *const *)a;
    const struct stmtstats_sum *y = *(const struct stmtstats_sum *const *)b;

    if (x->total_us != y->total_us)
        return x->total_us > y->total_us ? -1 : 1;
    return by_identity(x, y);
}

static int is_this(const struct hash_node *node, const void *key)
{
    return by_identity(&LIST_ENTRY(node, struct statement, node)->sum, key) == 0;
}

/* Each once, however many workers know it: they may know many. */
static void take_rows(const struct shm *shm, struct statements *s)
{
    struct stmtstats_sum sum;
    struct hash_node *known;
    struct statement *st;
    uint32_t at = 0;
    uint64_t hash;

    while (stmtstats_next(shm, &at, &sum)) {
        hash = hash_bytes(sum.database, strlen(sum.database),
            hash_pair(sum.fingerprint, (uint64_t)(int64_t)sum.node));
        known = hash_table_find(&s->table, hash, is_this, &sum);
        if (known != NULL) {
            stmtstats_sum_add(&LIST_ENTRY(known, struct statement, node)->sum, &sum);
            continue;
        }
        st = arena_alloc(s->arena, sizeof *st);
        st->sum = sum;
        hash_table_add(&s->table, &st->node, hash);
    }
}

/* What took most time first. */
static const struct stmtstats_sum **in_order(const struct statements *s)
{
    const struct stmtstats_sum **all =
        arena_alloc(s->arena, (s->table.count + 1) * sizeof(const struct stmtstats_sum *));
    const struct hash_node *node;
    uint32_t i;
    size_t n = 0;

    for (i = 0; s->table.count > 0 && i <= s->table.mask; i++)
        for (node = s->table.bucket[i]; node != NULL; node = node->next)
            all[n++] = &LIST_ENTRY(node, struct statement, node)->sum;
    qsort(all, n, sizeof(const struct stmtstats_sum *), by_total_time);
    return all;
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
    struct statements s = {.arena = arena_new("statements", 0)};
    const struct stmtstats_sum **all;
    uint32_t i;

    hash_table_init(&s.table);
    take_rows(src->shm, &s);
    all = in_order(&s);
    for (i = 0; i < s.table.count; i++)
        put_statement(src, all[i], out);
    hash_table_fini(&s.table);
    arena_free(&s.arena);
}
