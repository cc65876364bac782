/* SPDX-License-Identifier: PostgreSQL
 * admin_rows_misc.c: rows of SHOW POOL_VERSION, POOL_STATUS and POOL_CACHE.
 * Runs in: worker, control, web. Settings come from the config module, row by row; what is not a
 * setting but stands between them (status of the nodes, counts of the cache) is added here. */
#include "config.h"

#include <stdio.h>
#include <time.h>

#include "admin_int.h"
#include "cache/cache_stats.h"
#include "config/conf_show.h"

void admin_rows_version(const struct admin_sources *src, struct admin_rows *out)
{
    admin_row_begin(out);
    admin_put_static(out, PACKAGE_VERSION " (" PGPOOL_CODENAME ")");
}

void admin_setting_row(void *ctx, const char *item, const char *value, const char *description)
{
    struct admin_rows *out = ctx;

    admin_row_begin(out);
    if (out->res->ncolumns == 1) {
        admin_put_str(out, value == NULL ? "" : value);
        return;
    }
    admin_put_str(out, item == NULL ? "" : item);
    admin_put_str(out, value == NULL ? "" : value);
    admin_put_str(out, description == NULL ? "" : description);
}

void admin_rows_status(const struct admin_sources *src, struct admin_rows *out)
{
    struct conf_show show = {.gen = src->gen,
        .ov = src->ov == NULL ? NULL : *src->ov,
        .fact = admin_fact,
        .fact_ctx = (void *)(uintptr_t)src,
        .row = admin_setting_row,
        .row_ctx = out};

    conf_show_status(&show);
}

/* Writes a time as ctime does, without its newline: "Wed Jan 31 12:00:00 2024". */
static void put_start_time(int64_t at_us, struct buf *out)
{
    char text[64] = "";
    time_t at = (time_t)(at_us / 1000000);
    struct tm tm;

    if (at_us != 0 && localtime_r(&at, &tm) != NULL)
        strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", &tm);
    buf_printf(out, "%s", text);
}

static void put_node_fact(
    const struct admin_sources *src, enum conf_fact fact, int node, struct buf *out)
{
    struct admin_node n;

    admin_node_get(src, node, &n);
    if (fact == CONF_FACT_BACKEND_STATUS)
        buf_printf(out, "%s", admin_node_status_text(n.status));
    else
        buf_printf(out, "%lld", (long long)(n.delay_is_time ? n.delay_us : n.delay_bytes));
}

void admin_fact(void *ctx, enum conf_fact fact, int node, struct buf *out)
{
    const struct admin_sources *src = ctx;
    struct cache_totals cache;

    switch (fact) {
    case CONF_FACT_BACKEND_STATUS:
    case CONF_FACT_STANDBY_DELAY:
        put_node_fact(src, fact, node, out);
        break;
    case CONF_FACT_BACKEND_WEIGHT:
        buf_printf(out, "%f", admin_weight_share(src, node));
        break;
    case CONF_FACT_CACHE_START_TIME:
        admin_cache_get(src, &cache);
        put_start_time(cache.since_us, out);
        break;
    case CONF_FACT_CACHE_MISSES:
        admin_cache_get(src, &cache);
        buf_printf(out, "%llu", (unsigned long long)cache.misses);
        break;
    case CONF_FACT_CACHE_HITS:
        admin_cache_get(src, &cache);
        buf_printf(out, "%llu", (unsigned long long)cache.hits);
        break;
    }
}
