/* SPDX-License-Identifier: PostgreSQL
 * web_api.c: every SHOW report as JSON, and what there is. A report that is added to the table of
 * reports is here by that alone.
 * Runs in: web. Reads shared memory and settings, never waits. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "admin/admin.h"
#include "admin/column_types.h"
#include "config/conf_param.h"

#include "web_api.h"
#include "web_json.h"
#include "web_login.h"

#define STATUS_ERROR     500
#define STATUS_NOT_FOUND 404
#define PREFIX           "pool_"
/* A server whose settings nobody has touched. */
#define DEFAULTS     "backend_port0 = 5432\n"
#define NUMBER_BYTES 40

/* --- cells --- */

/* True when a JSON reader takes it for a number as it stands. */
static bool is_number(struct slice t)
{
    size_t i = t.n > 0 && t.p[0] == '-';
    size_t ndigits = 0;
    bool has_point = false;

    if (i + 1 < t.n && t.p[i] == '0' && t.p[i + 1] != '.')
        return false;
    for (; i < t.n; i++) {
        if (t.p[i] == '.' && !has_point && ndigits > 0)
            has_point = true;
        else if (t.p[i] >= '0' && t.p[i] <= '9')
            ndigits++;
        else
            return false;
    }
    return ndigits > 0 && ndigits < NUMBER_BYTES && t.p[t.n - 1] != '.';
}

static void put_cell(struct web_json *j, enum admin_column_type type, struct slice cell)
{
    bool is_bool = slice_eq_str(cell, "true") || slice_eq_str(cell, "false");

    if (type != ADMIN_COLUMN_TEXT && cell.n == 0)
        web_json_raw(j, slice_of_str("null"));
    else if ((type == ADMIN_COLUMN_INTEGER || type == ADMIN_COLUMN_REAL) && is_number(cell))
        web_json_raw(j, cell);
    else if (type == ADMIN_COLUMN_BOOLEAN && is_bool)
        web_json_raw(j, cell);
    else
        web_json_text(j, cell);
}

static bool has_text(struct slice cell, const char *wanted)
{
    return memmem(cell.p, cell.n, wanted, strlen(wanted)) != NULL;
}

static bool is_wanted(const struct admin_row *row, unsigned ncolumns, const char *wanted)
{
    unsigned i;

    if (wanted == NULL || wanted[0] == '\0')
        return true;
    for (i = 0; i < ncolumns; i++)
        if (has_text(row->cell[i], wanted))
            return true;
    return false;
}

/* --- reports --- */

static void put_columns(struct web_json *j, const struct admin_report_info *info)
{
    unsigned i;

    web_json_key(j, "columns");
    web_json_open(j, '[');
    for (i = 0; i < info->ncolumns; i++) {
        web_json_open(j, '{');
        web_json_member(j, "name", info->columns[i]);
        web_json_member(j, "type", admin_column_type_name(admin_column_type(info->columns[i])));
        web_json_member(j, "description", info->column_texts[i]);
        web_json_close(j, '}');
    }
    web_json_close(j, ']');
}

void web_api_index(const struct web_request *r, struct web_answer *a)
{
    struct web_json j = {.out = &a->body};
    char path[128];
    int i;

    web_json_open(&j, '{');
    web_json_member(&j, "version", PACKAGE_VERSION);
    web_json_key(&j, "reports");
    web_json_open(&j, '[');
    for (i = 0; i < ADMIN_REPORT_COUNT; i++) {
        const struct admin_report_info *info = admin_report_info((enum admin_report)i);

        snprintf(path, sizeof path, WEB_API "%s", info->name);
        web_json_open(&j, '{');
        web_json_member(&j, "name", info->name);
        web_json_member(&j, "path", path);
        web_json_member(&j, "description", info->text);
        web_json_key(&j, "operators_only");
        web_json_bool(&j, info->privilege == ADMIN_MAY_OPERATOR);
        put_columns(&j, info);
        web_json_close(&j, '}');
    }
    web_json_close(&j, ']');
    web_json_close(&j, '}');
    a->type = WEB_TYPE_JSON;
}

static int find_report(const char *name)
{
    int i;

    for (i = 0; i < ADMIN_REPORT_COUNT; i++) {
        const char *full = admin_report_info((enum admin_report)i)->name;

        if (strcmp(full, name) == 0 || (strncmp(full, PREFIX, strlen(PREFIX)) == 0 &&
                                           strcmp(full + strlen(PREFIX), name) == 0))
            return i;
    }
    return -1;
}

static void put_error(struct web_answer *a, unsigned status, const struct err *err)
{
    struct web_json j = {.out = &a->body};

    web_json_open(&j, '{');
    web_json_member(&j, "error", err->msg);
    web_json_member(&j, "sqlstate", err->sqlstate);
    web_json_close(&j, '}');
    a->status = status;
    a->type = WEB_TYPE_JSON;
}

/* Rows, as many as were asked for, and how many there would be. */
static void put_rows(
    const struct web_request *r, struct web_json *j, const struct admin_result *res)
{
    const char *wanted = web_request_argument(r, "q");
    const char *limit_text = web_request_argument(r, "limit");
    uint32_t limit = limit_text == NULL ? UINT32_MAX : (uint32_t)strtoul(limit_text, NULL, 10);
    const struct admin_row *row;
    int64_t n = 0;
    unsigned i;

    web_json_key(j, "rows");
    web_json_open(j, '[');
    for (row = res->rows; row != NULL; row = row->next) {
        if (!is_wanted(row, res->ncolumns, wanted) || n++ >= limit)
            continue;
        web_json_open(j, '{');
        for (i = 0; i < res->ncolumns; i++) {
            web_json_key(j, res->columns[i]);
            put_cell(j, admin_column_type(res->columns[i]), row->cell[i]);
        }
        web_json_close(j, '}');
    }
    web_json_close(j, ']');
    web_json_key(j, "total");
    web_json_int(j, n);
}

void web_api_report(const struct web_request *r, struct web_answer *a)
{
    int report = find_report(r->path + strlen(WEB_API));
    struct web_json j = {.out = &a->body};
    struct admin_result res = {0};
    struct admin_sources src;
    struct err err = {0};

    if (report < 0) {
        web_answer_text(a, STATUS_NOT_FOUND, "there is no such report: see " WEB_API "\n");
        return;
    }
    web_sources(r->web, &src);
    src.is_operator = r->who->is_operator;
    if (admin_run_report((enum admin_report)report, &src, &res, &err) == -1) {
        put_error(a, STATUS_ERROR, &err);
        return;
    }
    web_json_open(&j, '{');
    web_json_member(&j, "report", admin_report_info((enum admin_report)report)->name);
    put_rows(r, &j, &res);
    web_json_close(&j, '}');
    a->type = WEB_TYPE_JSON;
    admin_result_fini(&res);
}

/* --- settings --- */

/* What the settings in use are compared with. */
struct beside {
    const struct conf_gen *defaults;
    const struct conf_gen *files; /* as they are now; NULL: with errors */
};

static void put_setting(struct web_json *j, const struct conf_gen *gen, const struct beside *beside,
    const struct conf_ref *ref)
{
    static const char *const contexts[] = {"restart", "reload", "session"};
    struct buf value = {0};
    struct buf preset = {0};
    struct conf_ref first = *ref;
    const char *source;
    char name[128];

    snprintf(name, sizeof name, "%s", ref->param->name);
    if (ref->index >= 0)
        snprintf(name, sizeof name, "%s%d", ref->param->name, ref->index);
    conf_format_value(gen, NULL, ref, CONF_STYLE_SHOW, &value);
    if (ref->index >= 0)
        first.index = 0;
    conf_format_value(beside->defaults, NULL, &first, CONF_STYLE_SHOW, &preset);
    web_json_open(j, '{');
    web_json_member(j, "name", name);
    web_json_key(j, "value");
    web_json_text(j, buf_slice(&value));
    web_json_key(j, "default");
    web_json_text(j, buf_slice(&preset));
    web_json_key(j, "changed");
    web_json_bool(j, !slice_eq(buf_slice(&value), buf_slice(&preset)));
    source = beside->files == NULL ? NULL : conf_where(beside->files, ref);
    web_json_member(j, "source", source == NULL ? "" : source);
    web_json_member(j, "taken_up", contexts[ref->param->context]);
    web_json_member(j, "description", ref->param->brief);
    web_json_close(j, '}');
    buf_free(&value);
    buf_free(&preset);
}

/* Settings of servers are shown for those that exist; other numbered ones are the watchdog's. */
static void put_settings(
    struct web_json *j, const struct conf_gen *gen, const struct beside *beside)
{
    const struct conf *conf = conf_of(gen);
    const struct conf_param *table;
    struct conf_ref ref;
    int n;
    int i;
    int k;

    table = conf_param_table(&n);
    for (i = 0; i < n; i++) {
        ref.param = &table[i];
        ref.index = -1;
        if (table[i].flags & CONF_NO_SHOW)
            continue;
        if (table[i].scope == CONF_SCOPE_GLOBAL)
            put_setting(j, gen, beside, &ref);
        for (k = 0; table[i].scope == CONF_SCOPE_NODE && k < conf->nnodes; k++) {
            ref.index = k;
            if (conf_has_node(conf, k))
                put_setting(j, gen, beside, &ref);
        }
    }
}

void web_api_settings(const struct web_request *r, struct web_answer *a)
{
    const struct conf_gen *gen = role_loop_gen(&r->web->role);
    struct web_json j = {.out = &a->body};
    struct conf_report report;
    struct conf_gen *defaults;
    struct conf_gen *files;
    struct beside beside;

    conf_report_init(&report);
    defaults = conf_load_text("/nonexistent/pgpool.conf", slice_of_str(DEFAULTS), &report);
    files = conf_reload(gen, conf_file(gen), &report);
    beside.defaults = defaults == NULL ? gen : defaults;
    beside.files = files;
    web_json_open(&j, '{');
    web_json_member(&j, "file", conf_file(gen));
    web_json_key(&j, "generation");
    web_json_int(&j, (int64_t)conf_number(gen));
    web_json_key(&j, "rows");
    web_json_open(&j, '[');
    put_settings(&j, gen, &beside);
    web_json_close(&j, ']');
    web_json_close(&j, '}');
    conf_gen_free(&defaults);
    if (files != NULL)
        conf_gen_free(&files);
    conf_report_fini(&report);
    a->type = WEB_TYPE_JSON;
}

/* --- what is wrong --- */

void web_api_health(const struct web_request *r, struct web_answer *a)
{
    static const char *const levels[] = {"good", "note", "warning", "alarm"};
    struct web_trouble troubles[WEB_TROUBLES_MAX];
    struct web_json j = {.out = &a->body};
    struct web_facts f;
    int i;
    int n;

    web_health_look(r->web, &f);
    n = web_health_judge(&f, &r->web->view, conf_of(role_loop_gen(&r->web->role)), troubles);
    web_json_open(&j, '{');
    web_json_member(&j, "level", levels[web_trouble_level(troubles[0].kind)]);
    web_json_key(&j, "troubles");
    web_json_open(&j, '[');
    for (i = 0; i < n; i++) {
        web_json_open(&j, '{');
        web_json_member(&j, "code", web_trouble_code(troubles[i].kind));
        web_json_member(&j, "level", levels[web_trouble_level(troubles[i].kind)]);
        web_json_member(&j, "en", troubles[i].en);
        web_json_member(&j, "ja", troubles[i].ja);
        web_json_close(&j, '}');
    }
    web_json_close(&j, ']');
    web_json_close(&j, '}');
    a->type = WEB_TYPE_JSON;
}
