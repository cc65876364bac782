/* SPDX-License-Identifier: PostgreSQL
 * web_metrics_alias.c: figures under the names that pgpool2_exporter gives them, so that dashboards
 * and alerts made for it go on (http_metrics_names); those of PgBouncer's are in
 * web_metrics_bouncer.c.
 * Runs in: web. What a name means is that exporter's matter, its types included: it calls counters
 * of health checks gauges, and has the role as a label. */
#include "config.h"

#include "config/conf.h"

#include "web_metrics.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

/* --- pgpool2_exporter --- */

#define P2(prefix, column, help)                                                                   \
    {                                                                                              \
        column, prefix column, WEB_GAUGE, 1, NULL, NULL, help                                      \
    }
/* The exporter's counters have no "_total": they are what the older form calls untyped, so gauges
 * here. */
static const struct web_label p2_labels[] = {
    {"hostname", "hostname"}, {"port", "port"}, {"role", "role"}};

static const struct web_column p2_nodes[] = {
    P2("pgpool2_pool_nodes_", "status", "1 when the server is up or waiting"),
    P2("pgpool2_pool_nodes_", "select_cnt", "reads sent to the server"),
    P2("pgpool2_pool_nodes_", "replication_delay", "how far a standby is behind"),
};

static const struct web_column p2_stats[] = {
    P2("pgpool2_pool_backend_stats_", "status", "1 when the server is up or waiting"),
    P2("pgpool2_pool_backend_stats_", "select_cnt", "SELECT sent to the server"),
    P2("pgpool2_pool_backend_stats_", "insert_cnt", "INSERT sent to the server"),
    P2("pgpool2_pool_backend_stats_", "update_cnt", "UPDATE sent to the server"),
    P2("pgpool2_pool_backend_stats_", "delete_cnt", "DELETE sent to the server"),
    P2("pgpool2_pool_backend_stats_", "ddl_cnt", "DDL sent to the server"),
    P2("pgpool2_pool_backend_stats_", "other_cnt", "other statements sent to the server"),
    P2("pgpool2_pool_backend_stats_", "panic_cnt", "PANIC from the server"),
    P2("pgpool2_pool_backend_stats_", "fatal_cnt", "FATAL from the server"),
    P2("pgpool2_pool_backend_stats_", "error_cnt", "ERROR from the server"),
};

static const struct web_column p2_health[] = {
    P2("pgpool2_pool_health_check_stats_", "status", "1 when the server is up or waiting"),
    P2("pgpool2_pool_health_check_stats_", "total_count", "health checks"),
    P2("pgpool2_pool_health_check_stats_", "success_count", "that succeeded"),
    P2("pgpool2_pool_health_check_stats_", "fail_count", "that failed"),
    P2("pgpool2_pool_health_check_stats_", "skip_count", "that were not made"),
    P2("pgpool2_pool_health_check_stats_", "retry_count", "repetitions"),
    P2("pgpool2_pool_health_check_stats_", "average_retry_count", "repetitions per health check"),
    P2("pgpool2_pool_health_check_stats_", "max_retry_count", "most repetitions of one check"),
    P2("pgpool2_pool_health_check_stats_", "max_duration", "milliseconds"),
    P2("pgpool2_pool_health_check_stats_", "min_duration", "milliseconds"),
    P2("pgpool2_pool_health_check_stats_", "average_duration", "milliseconds"),
};

#undef P2
#define P2(column, name)                                                                           \
    {                                                                                              \
        column, "pgpool2_pool_cache_" name, WEB_GAUGE, 1, NULL, NULL, "of the query cache"         \
    }
static const struct web_column p2_cache[] = {
    P2("cache_hit_ratio", "cache_hit_ratio"),
    P2("num_hash_entries", "num_hash_entries"),
    P2("used_hash_entries", "used_hash_entries"),
    P2("num_cache_entries", "num_cache_entries"),
    P2("used_cache_entries_size", "used_cache_entries_size"),
    P2("free_cache_entries_size", "free_cache_entries_size"),
};
#undef P2

static uint32_t sum_of(const uint32_t *counts, int n)
{
    uint32_t sum = 0;
    int i;

    for (i = 1; i < n; i++)
        sum += counts[i];
    return sum;
}

static void put_frontends(struct web_scrape *s)
{
    const struct admin_totals *t = s->totals;
    int total = conf_of(s->src.gen)->max_clients;
    uint32_t i;

    web_metric_single(
        s, "pgpool2_frontend_total", WEB_GAUGE, "clients there may be (max_clients)", total);
    web_metric_family(s, "pgpool2_frontend_used", WEB_GAUGE, "clients, by user and database");
    for (i = 0; i < t->npools; i++) {
        web_metric_begin(s);
        web_metric_label(s, "username", slice_of_str(t->pool[i].user));
        web_metric_label(s, "database", slice_of_str(t->pool[i].database));
        web_metric_value(s, sum_of(t->pool[i].clients, CLIENT_STATE_COUNT));
    }
    web_metric_single(s, "pgpool2_frontend_used_ratio", WEB_GAUGE, "clients of max_clients",
        (double)sum_of(t->clients, CLIENT_STATE_COUNT) / total);
}

static void put_backends(struct web_scrape *s)
{
    const struct admin_totals *t = s->totals;
    double total = 0;
    double used = 0;
    uint32_t i;

    for (i = 0; i < t->npools; i++) {
        uint32_t all = sum_of(t->pool[i].links, LINK_STATE_COUNT);

        total += all;
        used += all - t->pool[i].links[LINK_STATE_IDLE];
    }
    web_metric_single(s, "pgpool2_backend_total", WEB_GAUGE, "server connections", total);
    web_metric_single(
        s, "pgpool2_backend_used", WEB_GAUGE, "server connections that clients have", used);
    web_metric_single(s, "pgpool2_backend_used_ratio", WEB_GAUGE, "part of them that clients have",
        total > 0 ? used / total : 0);
}

void web_metrics_pgpool2(struct web_scrape *s)
{
    web_metric_single(s, "pgpool2_up", WEB_GAUGE, "1: pgpool answers", 1);
    web_metric_family(s, "pgpool2_version", WEB_GAUGE, "1, with the version");
    web_metric_begin(s);
    web_metric_label(s, "version", slice_of_str(PACKAGE_VERSION));
    web_metric_value(s, 1);
    web_metric_single(s, "pgpool2_last_scrape_error", WEB_GAUGE, "0: nothing failed", 0);
    put_frontends(s);
    put_backends(s);
    web_metric_columns(
        s, ADMIN_REPORT_NODES, p2_nodes, COUNT_OF(p2_nodes), p2_labels, COUNT_OF(p2_labels));
    web_metric_columns(s, ADMIN_REPORT_BACKEND_STATS, p2_stats, COUNT_OF(p2_stats), p2_labels,
        COUNT_OF(p2_labels));
    web_metric_columns(s, ADMIN_REPORT_HEALTH_CHECK_STATS, p2_health, COUNT_OF(p2_health),
        p2_labels, COUNT_OF(p2_labels));
    if (conf_of(s->src.gen)->memory_cache_enabled)
        web_metric_columns(s, ADMIN_REPORT_CACHE, p2_cache, COUNT_OF(p2_cache), NULL, 0);
}
