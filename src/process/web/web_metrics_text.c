/* SPDX-License-Identifier: PostgreSQL
 * web_metrics_text.c: figures as text: OpenMetrics, or the form that Prometheus had before. They
 * differ in how a counter is called in its head, in units, and at the end.
 * Runs in: web. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "web_json.h"
#include "web_metrics.h"

#define NUMBER_BYTES 64

static const char *const units[] = {"seconds", "bytes", "ratio"};

/* Upper limits of the buckets of a histogram, microseconds. */
static const int64_t limits_us[] = {100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000,
    250000, 500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000};
#define NLIMITS (sizeof limits_us / sizeof limits_us[0])

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name);
    size_t m = strlen(end);

    return n > m && name[n - m - 1] == '_' && strcmp(name + n - m, end) == 0;
}

void web_metric_family(
    struct web_scrape *s, const char *name, enum web_metric_type type, const char *help)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    const char *suffix = type == WEB_COUNTER && !s->is_openmetrics ? "_total" : "";
    size_t i;

    s->name = name;
    s->type = type;
    buf_printf(s->out, "# TYPE %s%s %s\n", name, suffix, types[type]);
    for (i = 0; s->is_openmetrics && i < sizeof units / sizeof units[0]; i++)
        if (ends_with(name, units[i]))
            buf_printf(s->out, "# UNIT %s %s\n", name, units[i]);
    buf_printf(s->out, "# HELP %s%s %s\n", name, suffix, help);
}

void web_metric_begin(struct web_scrape *s)
{
    buf_printf(s->out, "%s%s", s->name, s->type == WEB_COUNTER ? "_total" : "");
    s->has_labels = false;
}

/* Names in other encodings keep apart, and one of them does not cost Prometheus the whole scrape.
 */
void web_metric_label(struct web_scrape *s, const char *name, struct slice value)
{
    const unsigned char *p = (const unsigned char *)value.p;
    size_t len;
    size_t i;

    buf_printf(s->out, "%s%s=\"", s->has_labels ? "," : "{", name);
    s->has_labels = true;
    for (i = 0; i < value.n; i += len == 0 ? 1 : len) {
        len = web_utf8_len(p + i, value.n - i);
        if (len == 0)
            buf_printf(s->out, "\\\\x%02x", p[i]);
        else if (p[i] == '\n')
            buf_put(s->out, "\\n", 2);
        else if (p[i] == '"' || p[i] == '\\')
            buf_printf(s->out, "\\%c", p[i]);
        else
            buf_put(s->out, p + i, len);
    }
    buf_put_byte(s->out, '"');
}

void web_metric_label_int(struct web_scrape *s, const char *name, int64_t value)
{
    buf_printf(s->out, "%s%s=\"%" PRId64 "\"", s->has_labels ? "," : "{", name, value);
    s->has_labels = true;
}

void web_metric_value(struct web_scrape *s, double value)
{
    buf_printf(s->out, s->has_labels ? "} " : " ");
    if (value == floor(value) && fabs(value) < 1e15)
        buf_printf(s->out, "%.0f\n", value);
    else
        buf_printf(s->out, "%.9g\n", value);
}

void web_metric_single(struct web_scrape *s, const char *name, enum web_metric_type type,
    const char *help, double value)
{
    web_metric_family(s, name, type, help);
    web_metric_begin(s);
    web_metric_value(s, value);
}

static void put_bucket(
    struct web_scrape *s, const char *label, struct slice value, const char *le, uint64_t n)
{
    buf_printf(s->out, "%s_bucket", s->name);
    s->has_labels = false;
    web_metric_label(s, label, value);
    web_metric_label(s, "le", slice_of_str(le));
    web_metric_value(s, (double)n);
}

void web_metric_buckets(struct web_scrape *s, const char *label, struct slice value,
    const int64_t *limit_us, const uint64_t *count, size_t nlimits, uint64_t sum_us)
{
    char le[NUMBER_BYTES];
    uint64_t n = 0;
    size_t i;

    for (i = 0; i < nlimits; i++) {
        n += count[i];
        snprintf(le, sizeof le, "%g", (double)limit_us[i] / 1e6);
        put_bucket(s, label, value, le, n);
    }
    n += count[nlimits];
    put_bucket(s, label, value, "+Inf", n);
    buf_printf(s->out, "%s_sum", s->name);
    s->has_labels = false;
    web_metric_label(s, label, value);
    web_metric_value(s, (double)sum_us / 1e6);
    buf_printf(s->out, "%s_count", s->name);
    s->has_labels = false;
    web_metric_label(s, label, value);
    web_metric_value(s, (double)n);
}

void web_metric_histogram(struct web_scrape *s, const char *label, struct slice value,
    const struct histogram_sum *h, uint64_t sum_us)
{
    uint64_t count[NLIMITS + 1] = {0};
    unsigned bucket = 0;
    size_t i;

    for (i = 0; i < NLIMITS; i++)
        while (bucket < HISTOGRAM_BUCKETS && histogram_bucket_start(bucket + 1) <= limits_us[i] + 1)
            count[i] += h->bucket[bucket++];
    while (bucket < HISTOGRAM_BUCKETS)
        count[NLIMITS] += h->bucket[bucket++];
    web_metric_buckets(s, label, value, limits_us, count, NLIMITS, sum_us);
}

/* --- columns of reports --- */

static int find_column(const struct admin_result *res, const char *name)
{
    unsigned i;

    for (i = 0; i < res->ncolumns; i++)
        if (strcmp(res->columns[i], name) == 0)
            return (int)i;
    return -1;
}

double web_metric_number(struct slice cell)
{
    static const char *const words[] = {
        "up", "waiting", "true", "LEADER", "STANDBY", "QUORUM EXIST"};
    char text[NUMBER_BYTES] = "";
    size_t i;

    for (i = 0; i < sizeof words / sizeof words[0]; i++)
        if (slice_eq_str(cell, words[i]))
            return 1;
    memcpy(text, cell.p, cell.n < sizeof text ? cell.n : sizeof text - 1);
    return strtod(text, NULL);
}

static void put_rows(struct web_scrape *s, const struct admin_result *res,
    const struct web_column *c, const struct web_label *labels, size_t nlabels)
{
    int at = find_column(res, c->column);
    const struct admin_row *row;
    size_t i;
    int k;

    for (row = at < 0 ? NULL : res->rows; row != NULL; row = row->next) {
        web_metric_begin(s);
        for (i = 0; i < nlabels; i++) {
            k = find_column(res, labels[i].column);
            if (k >= 0)
                web_metric_label(s, labels[i].name, row->cell[k]);
        }
        if (c->kind_label != NULL)
            web_metric_label(s, c->kind_label, slice_of_str(c->kind));
        web_metric_value(s, web_metric_number(row->cell[at]) * c->scale);
    }
}

void web_metric_result(struct web_scrape *s, const struct admin_result *res,
    const struct web_column *columns, size_t ncolumns, const struct web_label *labels,
    size_t nlabels)
{
    size_t i;

    for (i = 0; i < ncolumns; i++) {
        if (i == 0 || strcmp(columns[i].name, columns[i - 1].name) != 0)
            web_metric_family(s, columns[i].name, columns[i].type, columns[i].help);
        put_rows(s, res, &columns[i], labels, nlabels);
    }
}

void web_metric_columns(struct web_scrape *s, enum admin_report report,
    const struct web_column *columns, size_t ncolumns, const struct web_label *labels,
    size_t nlabels)
{
    struct admin_result res = {0};
    struct err err = {0};

    if (admin_run_report(report, &s->src, &res, &err) == -1)
        return;
    web_metric_result(s, &res, columns, ncolumns, labels, nlabels);
    admin_result_fini(&res);
}
