/* SPDX-License-Identifier: PostgreSQL
 * web_metrics.h: /metrics: figures in the text forms that Prometheus reads. Runs in: web. */
#ifndef PGP_PROCESS_WEB_METRICS_H
#define PGP_PROCESS_WEB_METRICS_H

#include "admin/admin.h"
#include "admin/totals.h"
#include "base/histogram.h"

#include "web_int.h"

enum web_metric_type { WEB_COUNTER, WEB_GAUGE, WEB_HISTOGRAM };

/* One answer under construction. */
struct web_scrape {
    struct web *web;
    struct admin_sources src;
    struct admin_totals *totals;
    struct buf *out;
    bool is_openmetrics; /* else Prometheus's older text form */
    /* The family being written. */
    const char *name;
    enum web_metric_type type;
    bool has_labels; /* in the present sample */
};

/* --- web_metrics_text.c --- */

/* Begins a family. Names of counters come without "_total"; names that end in a unit say which. */
void web_metric_family(
    struct web_scrape *s, const char *name, enum web_metric_type type, const char *help);
/* A sample: begin, labels, value. */
void web_metric_begin(struct web_scrape *s);
void web_metric_label(struct web_scrape *s, const char *name, struct slice value);
void web_metric_label_int(struct web_scrape *s, const char *name, int64_t value);
void web_metric_value(struct web_scrape *s, double value);
/* A family with one sample that has no labels. */
void web_metric_single(struct web_scrape *s, const char *name, enum web_metric_type type,
    const char *help, double value);
/* A histogram of seconds, with one label: `count` has for each of the `nlimits` limits what is not
 * above it, but above the one before, and then what is above all. */
void web_metric_buckets(struct web_scrape *s, const char *label, struct slice value,
    const int64_t *limit_us, const uint64_t *count, size_t nlimits, uint64_t sum_us);
/* A histogram of microseconds as one of seconds, with one label. */
void web_metric_histogram(struct web_scrape *s, const char *label, struct slice value,
    const struct histogram_sum *h, uint64_t sum_us);
/* The number that a cell of a report begins with; words that mean "in use" count as 1. */
double web_metric_number(struct slice cell);
/* A family from a column of a report: a sample for each row, labelled with the columns
 * `labels`[0..nlabels-1] under their names there. */
struct web_column {
    const char *column;
    const char *name;
    enum web_metric_type type;
    double scale;
    const char *kind_label; /* one more label with a fixed value; NULL: none */
    const char *kind;
    const char *help;
};
struct web_label {
    const char *column;
    const char *name;
};
void web_metric_result(struct web_scrape *s, const struct admin_result *res,
    const struct web_column *columns, size_t ncolumns, const struct web_label *labels,
    size_t nlabels);
/* As web_metric_result, of a report that is run for it; nothing where it cannot be run. */
void web_metric_columns(struct web_scrape *s, enum admin_report report,
    const struct web_column *columns, size_t ncolumns, const struct web_label *labels,
    size_t nlabels);

/* --- web_metrics.c --- */
web_page_fn web_metrics_page;

/* --- web_metrics_cache.c: of the query cache, where there is one --- */
void web_metrics_cache(struct web_scrape *s);

/* --- web_metrics_alias.c, web_metrics_bouncer.c: under the names of other exporters --- */
void web_metrics_pgpool2(struct web_scrape *s);
void web_metrics_pgbouncer(struct web_scrape *s);

#endif
