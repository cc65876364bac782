/* SPDX-License-Identifier: PostgreSQL
 * admin_rows_cached.c: SHOW POOL_CACHE, POOL_CACHE_TABLES, POOL_CACHE_QUERIES, POOL_CACHE_SERVERS.
 * Runs in: worker, control, web. Reads the query cache's counters in shared memory, never waits. */
#include "config.h"

#include <stdio.h>

#include "admin_int.h"
#include "base/mem.h"
#include "cache/cache_stats.h"

#define TOP_QUERIES 100

void admin_cache_get(const struct admin_sources *src, struct cache_totals *out)
{
    struct cache *c = src->shm == NULL ? NULL : cache_open(src->shm, 0);

    *out = (struct cache_totals){0};
    if (c == NULL)
        return;
    cache_totals(c, out);
    cache_close(&c);
}

/* Zeros when there is no cache, as pgpool-II shows it. */
void admin_rows_cache(const struct admin_sources *src, struct admin_rows *out)
{
    struct cache_totals t;
    uint64_t all;
    char ratio[16];

    admin_cache_get(src, &t);
    all = t.hits + t.misses;
    snprintf(ratio, sizeof ratio, "%.2f", all == 0 ? 0.0 : (double)t.hits / (double)all);
    admin_row_begin(out);
    admin_put_uint(out, t.hits);
    admin_put_uint(out, t.misses);
    admin_put_str(out, ratio);
    admin_put_uint(out, t.nhash);
    admin_put_uint(out, t.nentries);
    admin_put_uint(out, t.nentries);
    admin_put_uint(out, t.used_bytes);
    admin_put_uint(out, t.free_bytes);
    admin_put_uint(out, t.wasted_bytes);
}

/* Results that were not kept: how many, and of what reasons, in one cell each. */
static void put_refused(const struct cache_table_row *row, struct admin_rows *out)
{
    char why[512] = "";
    size_t at = 0;
    uint64_t n = 0;
    int i;

    for (i = CACHE_FILL_OK + 1; i < CACHE_FILL_REASON_COUNT; i++) {
        if (row->fills[i] == 0)
            continue;
        n += row->fills[i];
        if (at < sizeof why)
            at += (size_t)snprintf(why + at, sizeof why - at, "%s%s: %llu", at == 0 ? "" : ", ",
                cache_fill_reason_text((enum cache_fill_reason)i),
                (unsigned long long)row->fills[i]);
    }
    admin_put_uint(out, n);
    admin_put_str(out, why);
}

static void put_table(const struct cache_table_row *row, struct admin_rows *out)
{
    const char *last = row->last_by_stream ? "stream" : "statement";

    admin_row_begin(out);
    admin_put_str(out, row->name[0]);
    admin_put_str(out, row->name[1]);
    admin_put_str(out, row->name[2][0] == '\0' ? "<others>" : row->name[2]);
    admin_put_uint(out, row->nentries);
    admin_put_uint(out, row->bytes);
    admin_put_uint(out, row->hits);
    admin_put_uint(out, row->misses);
    put_refused(row, out);
    admin_put_uint(out, row->row_writes);
    admin_put_uint(out, row->table_writes);
    admin_put_static(out, row->last_us == 0 ? "" : last);
    admin_put_time(out, row->last_us);
    admin_put_real(out, (double)row->lag_us / 1000);
}

void admin_rows_cache_tables(const struct admin_sources *src, struct admin_rows *out)
{
    struct cache *c = src->shm == NULL ? NULL : cache_open(src->shm, 0);
    struct cache_table_row row;
    unsigned i;

    if (c == NULL)
        return;
    for (i = 0; i < CACHE_TABLES; i++)
        if (cache_table_row(c, i, &row))
            put_table(&row, out);
    cache_close(&c);
}

void admin_rows_cache_queries(const struct admin_sources *src, struct admin_rows *out)
{
    struct cache *c = src->shm == NULL ? NULL : cache_open(src->shm, 0);
    struct cache_query_row *top;
    unsigned n;
    unsigned i;

    if (c == NULL)
        return;
    top = mem_alloc(TOP_QUERIES * sizeof *top);
    n = cache_top_queries(c, top, TOP_QUERIES);
    for (i = 0; i < n; i++) {
        admin_row_begin(out);
        admin_put_str(out, src->is_operator ? top[i].text : "");
        admin_put_uint(out, top[i].hits);
        admin_put_real(out, (double)top[i].saved_us / 1000);
    }
    mem_free(top);
    cache_close(&c);
}

void admin_rows_cache_servers(const struct admin_sources *src, struct admin_rows *out)
{
    struct cache *c = src->shm == NULL ? NULL : cache_open(src->shm, 0);
    struct cache_far_row row;
    unsigned i;

    for (i = 0; c != NULL && cache_far_row(c, i, &row); i++) {
        admin_row_begin(out);
        admin_put_str(out, row.host);
        admin_put_int(out, row.port);
        admin_put_static(out, row.is_down ? "down" : "up");
        admin_put_time(out, row.retry_at_us);
        admin_put_uint(out, row.hits);
        admin_put_uint(out, row.misses);
        admin_put_uint(out, row.kept);
        admin_put_uint(out, row.told);
        admin_put_uint(out, row.timeouts);
        admin_put_uint(out, row.errors);
        admin_put_time(out, row.failed_at_us);
    }
    cache_close(&c);
}
