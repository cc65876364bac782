/* SPDX-License-Identifier: PostgreSQL
 * web_metrics_cache.c: figures of the query cache.
 * Runs in: web. */
#include "config.h"

#include "cache/cache_stats.h"
#include "ipc/proc.h"

#include "web_metrics.h"

static void put_fills(struct web_scrape *s, const struct cache_totals *t)
{
    int i;

    web_metric_family(s, "pgpool_cache_fills", WEB_COUNTER,
        "results that came from servers, by whether they were kept, or why not");
    for (i = 0; i < CACHE_FILL_REASON_COUNT; i++) {
        const char *text = cache_fill_reason_text((enum cache_fill_reason)i);

        web_metric_begin(s);
        web_metric_label(s, "outcome", slice_of_str(i == CACHE_FILL_OK ? "kept" : text));
        web_metric_value(s, (double)t->fills[i]);
    }
}

static void put_writes(struct web_scrape *s, const struct cache_totals *t)
{
    web_metric_family(s, "pgpool_cache_invalidations", WEB_COUNTER,
        "writes that made results invalid, by how much of the table was concerned");
    web_metric_begin(s);
    web_metric_label(s, "of", slice_of_str("row"));
    web_metric_value(s, (double)t->row_writes);
    web_metric_begin(s);
    web_metric_label(s, "of", slice_of_str("table"));
    web_metric_value(s, (double)t->table_writes);
}

static void put_off(struct web_scrape *s, const struct cache_totals *t)
{
    int i;

    web_metric_family(s, "pgpool_cache_off", WEB_GAUGE,
        "1 while nothing is answered from the query cache for this reason");
    for (i = 0; i < CACHE_OFF_COUNT; i++) {
        web_metric_begin(s);
        web_metric_label(s, "reason", slice_of_str(cache_off_text((enum cache_off)i)));
        web_metric_value(s, (t->off_bits >> i & 1) != 0);
    }
}

void web_metrics_cache(struct web_scrape *s)
{
    struct cache *c = cache_open(s->src.shm, 0);
    struct cache_totals t;

    if (c == NULL)
        return;
    cache_totals(c, &t);
    cache_close(&c);
    web_metric_single(
        s, "pgpool_cache_hits", WEB_COUNTER, "reads answered from the query cache", (double)t.hits);
    web_metric_single(s, "pgpool_cache_misses", WEB_COUNTER,
        "reads that could have been, and went to a server", (double)t.misses);
    web_metric_single(
        s, "pgpool_cache_entries", WEB_GAUGE, "results that are kept", (double)t.nentries);
    web_metric_single(
        s, "pgpool_cache_used_bytes", WEB_GAUGE, "memory of results", (double)t.used_bytes);
    web_metric_single(
        s, "pgpool_cache_free_bytes", WEB_GAUGE, "memory that no result has", (double)t.free_bytes);
    web_metric_single(s, "pgpool_cache_evictions", WEB_COUNTER, "results that made room for others",
        (double)t.evicted);
    web_metric_single(s, "pgpool_cache_resets", WEB_COUNTER,
        "parts of the cache that were emptied because a process died while it changed them",
        (double)t.resets);
    web_metric_single(s, "pgpool_cache_memcached_down", WEB_GAUGE,
        "memcached servers that do not answer", (double)t.far_down);
    web_metric_single(s, "pgpool_cache_memcached_failures", WEB_COUNTER,
        "times that a memcached server did not answer", (double)t.far_failures);
    web_metric_single(s, "pgpool_cache_memcached_untold", WEB_COUNTER,
        "writes that memcached was not told: all results were made invalid behind them",
        (double)t.far_untold);
    put_fills(s, &t);
    put_writes(s, &t);
    put_off(s, &t);
}
