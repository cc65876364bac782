/* SPDX-License-Identifier: PostgreSQL
 * web_metrics_bouncer.c: figures under the names that exporters of PgBouncer give them, so that
 * dashboards and alerts made for those go on (http_metrics_names). Runs in: web.
 * They read PgBouncer's reports; so does this, and each figure is what an exporter in front of the
 * virtual database would say. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "web_metrics.h"

#define COUNT_OF(a)  (sizeof(a) / sizeof(a)[0])
#define LABELS_COUNT 6

/* Which columns of a report become labels, under which names. A name of pools.conf is one database,
 * also where two of them lead to the same at the server. */
struct label_set {
    struct web_label label[LABELS_COUNT];
    size_t n;
};
static const struct label_set labels_database = {{{"database", "database"}}, 1};
static const struct label_set labels_name = {{{"name", "database"}}, 1};
static const struct label_set labels_pool = {{{"database", "database"}, {"user", "user"}}, 2};
static const struct label_set labels_address = {
    {{"name", "name"}, {"host", "host"}, {"port", "port"}, {"database", "database"},
        {"force_user", "force_user"}, {"pool_mode", "pool_mode"}},
    6};

static const struct {
    const char *report;
    const struct label_set *labels;
    struct web_column column;
} metrics[] = {
#define BOUNCER_METRIC(report, labels, column, family, type, scale, help)                          \
    {#report, &labels_##labels, {column, family, WEB_##type, scale, NULL, NULL, help}},
#define BOUNCER_ITEM(report, key, family, help)
#include "web_metrics_bouncer.def"
#undef BOUNCER_METRIC
#undef BOUNCER_ITEM
};

static const struct {
    const char *report;
    const char *key;
    const char *family;
    const char *help;
} items[] = {
#define BOUNCER_METRIC(report, labels, column, family, type, scale, help)
#define BOUNCER_ITEM(report, key, family, help) {#report, key, family, help},
#include "web_metrics_bouncer.def"
#undef BOUNCER_METRIC
#undef BOUNCER_ITEM
};

static bool ask(const struct web_scrape *s, const char *report, struct admin_result *res)
{
    struct admin_cmd cmd = {.kind = ADMIN_KIND_BOUNCER};
    struct err err = {0};

    snprintf(cmd.name, sizeof cmd.name, "%s", report);
    return admin_run(&cmd, &s->src, res, &err) == 0;
}

/* The lines that begin at `first` and are of one report; it is asked once. Returns the next line.
 */
static size_t put_metrics(struct web_scrape *s, size_t first)
{
    struct admin_result res = {0};
    bool is_there = ask(s, metrics[first].report, &res);
    size_t i;

    for (i = first; i < COUNT_OF(metrics) && strcmp(metrics[i].report, metrics[first].report) == 0;
         i++)
        if (is_there)
            web_metric_result(
                s, &res, &metrics[i].column, 1, metrics[i].labels->label, metrics[i].labels->n);
    admin_result_fini(&res);
    return i;
}

static size_t put_items(struct web_scrape *s, size_t first)
{
    struct admin_result res = {0};
    bool is_there = ask(s, items[first].report, &res);
    const struct admin_row *row;
    size_t i;

    for (i = first; i < COUNT_OF(items) && strcmp(items[i].report, items[first].report) == 0; i++)
        for (row = is_there ? res.rows : NULL; row != NULL; row = row->next)
            if (slice_eq_str(row->cell[0], items[i].key))
                web_metric_single(
                    s, items[i].family, WEB_GAUGE, items[i].help, web_metric_number(row->cell[1]));
    admin_result_fini(&res);
    return i;
}

/* SHOW POOLS has whole seconds and the rest of them in two columns. */
static void put_longest_waits(struct web_scrape *s)
{
    const struct admin_totals *t = s->totals;
    uint32_t i;

    web_metric_family(s, "pgbouncer_pools_client_maxwait_seconds", WEB_GAUGE,
        "how long the oldest waiting client has waited");
    for (i = 0; i < t->npools; i++) {
        web_metric_begin(s);
        web_metric_label(s, "database", slice_of_str(t->pool[i].database));
        web_metric_label(s, "user", slice_of_str(t->pool[i].user));
        web_metric_value(s, (double)t->pool[i].longest_wait_us / 1e6);
    }
}

void web_metrics_pgbouncer(struct web_scrape *s)
{
    size_t i;

    web_metric_single(s, "pgbouncer_up", WEB_GAUGE, "1: pgpool answers", 1);
    web_metric_family(s, "pgbouncer_version_info", WEB_GAUGE, "1, with the version");
    web_metric_begin(s);
    web_metric_label(s, "version", slice_of_str("pgpool " PACKAGE_VERSION));
    web_metric_value(s, 1);
    for (i = 0; i < COUNT_OF(metrics);)
        i = put_metrics(s, i);
    put_longest_waits(s);
    for (i = 0; i < COUNT_OF(items);)
        i = put_items(s, i);
}
