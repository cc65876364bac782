/* SPDX-License-Identifier: PostgreSQL
 * conf_show.c: rows of SHOW POOL_STATUS and PGPOOL SHOW.
 * Runs in: whoever answers administrators. It allocates while it works, never on the path of a
 * client's query. Secrets are never formatted here. */
#include "config.h"

#include "config/conf_show.h"

#include "conf_int.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one row ---- */

static const char *conf_show_text(struct buf *b)
{
    buf_put_byte(b, '\0');
    return b->data;
}

static void conf_show_row(const struct conf_show *show, const struct conf_ref *ref,
    const char *item, enum conf_style style)
{
    char name[CONF_NAME_SIZE];
    struct buf value = {0};
    conf_ref_name(ref, name);
    conf_format_value(show->gen, show->ov, ref, style, &value);
    show->row(show->row_ctx, item == NULL ? name : item, conf_show_text(&value), ref->param->brief);
    buf_free(&value);
}

static void conf_show_fact(const struct conf_show *show, const char *item, enum conf_fact fact,
    int node, const char *description)
{
    struct buf value = {0};
    if (show->fact != NULL)
        show->fact(show->fact_ctx, fact, node, &value);
    show->row(show->row_ctx, item, conf_show_text(&value), description);
    buf_free(&value);
}

/* ---- SHOW POOL_STATUS ---- */

static void conf_status_param(const struct conf_show *show, enum conf_scope scope, const char *name,
    int index, const char *item, enum conf_style style)
{
    struct conf_ref ref = {conf_param_named(scope, name), index};
    ASSERT(ref.param != NULL);
    conf_show_row(show, &ref, item, style);
}

/* The share of reads, 0 to 1. */
static void conf_status_weight(const struct conf_show *show, int node)
{
    const struct conf *c = &show->gen->conf;
    char item[CONF_NAME_SIZE];
    struct buf value = {0};
    double sum = 0;
    for (int i = 0; i < c->nnodes; i++)
        sum += c->nodes[i].backend_port == 0 ? 0 : c->nodes[i].backend_weight;
    if (show->fact != NULL)
        show->fact(show->fact_ctx, CONF_FACT_BACKEND_WEIGHT, node, &value);
    if (buf_unread(&value) == 0)
        buf_printf(&value, "%f", sum > 0 ? c->nodes[node].backend_weight / sum : 0.0);
    snprintf(item, sizeof(item), "backend_weight%d", node);
    show->row(show->row_ctx, item, conf_show_text(&value),
        conf_param_named(CONF_SCOPE_NODE, "backend_weight")->brief);
    buf_free(&value);
}

static void conf_status_node(const struct conf_show *show, int k)
{
    static const enum conf_style style = CONF_STYLE_STATUS;
    char item[CONF_NAME_SIZE];
    conf_status_param(show, CONF_SCOPE_NODE, "backend_hostname", k, NULL, style);
    conf_status_param(show, CONF_SCOPE_NODE, "backend_port", k, NULL, style);
    conf_status_weight(show, k);
    conf_status_param(show, CONF_SCOPE_NODE, "backend_data_directory", k, NULL, style);
    snprintf(item, sizeof(item), "backend_status%d", k);
    conf_show_fact(show, item, CONF_FACT_BACKEND_STATUS, k, "state of the server");
    snprintf(item, sizeof(item), "standby_delay%d", k);
    conf_show_fact(show, item, CONF_FACT_STANDBY_DELAY, k, "lag of the server behind the primary");
    conf_status_param(show, CONF_SCOPE_NODE, "backend_flag", k, NULL, style);
    conf_status_param(show, CONF_SCOPE_NODE, "backend_application_name", k, NULL, style);
}

static void conf_status_each(const struct conf_show *show, enum conf_scope scope)
{
    static const enum conf_style style = CONF_STYLE_STATUS;
    for (int k = 0; k < conf_scope_count(scope); k++) {
        if (!conf_exists(&show->gen->conf, scope, k))
            continue;
        if (scope == CONF_SCOPE_NODE) {
            conf_status_node(show, k);
        } else if (scope == CONF_SCOPE_WD_NODE) {
            conf_status_param(show, scope, "hostname", k, NULL, style);
            conf_status_param(show, scope, "pgpool_port", k, NULL, style);
            conf_status_param(show, scope, "wd_port", k, NULL, style);
        } else {
            conf_status_param(show, scope, "heartbeat_hostname", k, NULL, style);
            conf_status_param(show, scope, "heartbeat_device", k, NULL, style);
            conf_status_param(show, scope, "heartbeat_port", k, NULL, style);
        }
    }
}

struct conf_status_row {
    enum { CONF_ROW_PARAM, CONF_ROW_FACT, CONF_ROW_EACH } kind;
    const char *item; /* NULL: the parameter's name */
    const char *name;
    enum conf_style style;
    enum conf_fact fact;
    const char *description;
    enum conf_scope scope;
};

static const struct conf_status_row conf_status_rows[] = {
#define CONF_STATUS(n)      {.kind = CONF_ROW_PARAM, .name = #n, .style = CONF_STYLE_STATUS},
#define CONF_STATUS_TEXT(n) {.kind = CONF_ROW_PARAM, .name = #n, .style = CONF_STYLE_SHOW},
#define CONF_STATUS_AS(i, n)                                                                       \
    {.kind = CONF_ROW_PARAM, .item = i, .name = #n, .style = CONF_STYLE_STATUS},
#define CONF_STATUS_FACT(i, f, d)                                                                  \
    {.kind = CONF_ROW_FACT, .item = i, .fact = CONF_FACT_##f, .description = d},
#define CONF_STATUS_EACH(s) {.kind = CONF_ROW_EACH, .scope = CONF_SCOPE_##s},
#include "conf_status.def"
};

void conf_show_status(const struct conf_show *show)
{
    size_t n = sizeof(conf_status_rows) / sizeof(conf_status_rows[0]);
    for (size_t i = 0; i < n; i++) {
        const struct conf_status_row *r = &conf_status_rows[i];
        if (r->kind == CONF_ROW_PARAM)
            conf_status_param(show, CONF_SCOPE_GLOBAL, r->name, -1, r->item, r->style);
        else if (r->kind == CONF_ROW_FACT)
            conf_show_fact(show, r->item, r->fact, -1, r->description);
        else
            conf_status_each(show, r->scope);
    }
}

/* ---- PGPOOL SHOW ---- */

/* pgpool-II's groups: names of parameters with a number, in the order in which they are listed. */
struct conf_show_group {
    const char *name;
    enum conf_scope scope;
    bool has_common; /* these names without number come first */
    const char *const *params;
};

static const char *const conf_group_backend[] = {"backend_hostname", "backend_port",
    "backend_weight", "backend_data_directory", "backend_application_name", "backend_flag",
    "backend_ssl_mode", "backend_ssl_negotiation", "backend_ssl_ca_cert", "backend_ssl_crl_file",
    "backend_ssl_cert", "backend_ssl_key", "backend_ssl_ciphers",
    "backend_ssl_min_protocol_version", NULL};
static const char *const conf_group_watchdog[] = {"hostname", "pgpool_port", "wd_port", NULL};
static const char *const conf_group_heartbeat[] = {
    "heartbeat_device", "heartbeat_hostname", "heartbeat_port", NULL};
static const char *const conf_group_health[] = {"health_check_period", "health_check_timeout",
    "health_check_user", "health_check_password", "health_check_database",
    "health_check_max_retries", "health_check_retry_delay", "connect_timeout", NULL};

static const struct conf_show_group conf_show_groups[] = {
    {"backend", CONF_SCOPE_NODE, false, conf_group_backend},
    {"watchdog", CONF_SCOPE_WD_NODE, false, conf_group_watchdog},
    {"heartbeat", CONF_SCOPE_HEARTBEAT, false, conf_group_heartbeat},
    {"health_check", CONF_SCOPE_NODE, true, conf_group_health}};

#define CONF_NGROUPS (sizeof(conf_show_groups) / sizeof(conf_show_groups[0]))

static void conf_show_group(const struct conf_show *show, const struct conf_show_group *g)
{
    for (int i = 0; g->has_common && g->params[i] != NULL; i++)
        conf_status_param(show, CONF_SCOPE_GLOBAL, g->params[i], -1, NULL, CONF_STYLE_SHOW);
    for (int k = 0; k < conf_scope_count(g->scope); k++)
        for (int i = 0; g->params[i] != NULL; i++)
            if (conf_exists(&show->gen->conf, g->scope, k))
                conf_status_param(show, g->scope, g->params[i], k, NULL, CONF_STYLE_SHOW);
}

/* All values of a list named without its number. */
static void conf_show_list(const struct conf_show *show, const struct conf_param *param)
{
    for (int k = 0; k < conf_scope_count(param->scope); k++) {
        struct conf_ref ref = {param, k};
        if (conf_exists(&show->gen->conf, param->scope, k))
            conf_show_row(show, &ref, NULL, CONF_STYLE_SHOW);
    }
}

/* True for what stands in a group already. */
static bool conf_show_in_group(const struct conf_param *param)
{
    if (param->scope != CONF_SCOPE_GLOBAL)
        return true;
    for (int i = 0; conf_group_health[i] != NULL; i++)
        if (strcmp(conf_group_health[i], param->name) == 0)
            return true;
    return false;
}

/* Longest name first, as pgpool-II; equal lengths in the order of the table. */
static int conf_show_order(const void *a, const void *b)
{
    const struct conf_param *const *pa = a;
    const struct conf_param *const *pb = b;
    size_t na = strlen((*pa)->name);
    size_t nb = strlen((*pb)->name);
    if (na != nb)
        return na > nb ? -1 : 1;
    return *pa < *pb ? -1 : 1;
}

void conf_show_all(const struct conf_show *show)
{
    int n;
    int count = 0;
    const struct conf_param *t = conf_param_table(&n);
    const struct conf_param *sorted[CONF_MAX_GLOBALS];
    for (size_t i = 0; i < CONF_NGROUPS; i++)
        conf_show_group(show, &conf_show_groups[i]);
    for (int i = 0; i < n; i++) {
        if (conf_show_in_group(&t[i]) || (t[i].flags & CONF_NO_SHOW) != 0)
            continue;
        ASSERT(count < CONF_MAX_GLOBALS);
        sorted[count++] = &t[i];
    }
    qsort(sorted, (size_t)count, sizeof(sorted[0]), conf_show_order);
    for (int i = 0; i < count; i++) {
        struct conf_ref ref = {sorted[i], -1};
        conf_show_row(show, &ref, NULL, CONF_STYLE_SHOW);
    }
}

static const struct conf_show_group *conf_show_find_group(const char *name)
{
    for (size_t i = 0; i < CONF_NGROUPS; i++)
        if (strcasecmp(conf_show_groups[i].name, name) == 0)
            return &conf_show_groups[i];
    return NULL;
}

static int conf_show_find(const char *name, struct conf_ref *ref, struct err *err)
{
    struct err found = {0};
    if (conf_param_find(name, ref, &found) == 0)
        return 0;
    if (strcmp(found.sqlstate, "42704") == 0) {
        err_set(err, "42704", "config variable \"%s\" not found", name);
    } else {
        err_set(err, found.sqlstate, "%s", found.msg);
        err_detail(err, "%s", found.detail);
    }
    return -1;
}

int conf_show_columns(const char *name, struct err *err)
{
    struct conf_ref ref;
    if (strcasecmp(name, "all") == 0 || conf_show_find_group(name) != NULL)
        return 3;
    if (conf_show_find(name, &ref, err) == -1)
        return -1;
    return ref.index < 0 && ref.param->scope != CONF_SCOPE_GLOBAL ? 3 : 1;
}

int conf_show_one(const struct conf_show *show, const char *name, struct err *err)
{
    struct conf_ref ref;
    const struct conf_show_group *group = conf_show_find_group(name);
    int columns = conf_show_columns(name, err);
    if (columns == -1)
        return -1;
    if (group != NULL) {
        conf_show_group(show, group);
    } else if (strcasecmp(name, "all") == 0) {
        conf_show_all(show);
    } else if (conf_show_find(name, &ref, err) == -1) {
        return -1;
    } else if (columns == 3) {
        conf_show_list(show, ref.param);
    } else {
        conf_show_row(show, &ref, name, CONF_STYLE_SHOW);
    }
    return columns;
}
