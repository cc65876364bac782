/* SPDX-License-Identifier: PostgreSQL
 * admin_run.c: runs what admin_recognise found.
 * Runs in: worker, control, web. Who may do what stands in the tables, and nothing is done before
 * that was looked up. Never waits, never talks to a server. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "admin_int.h"
#include "base/assert.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "config/conf_show.h"
#include "ipc/orders.h"
#include "ipc/stmtstats.h"
#include "wire/writer.h"

#define COUNT_OF(a)  (sizeof(a) / sizeof(a)[0])
#define BAD_AT_CHARS 64

/* --- the tables --- */

#define REPORT_BEGIN(SYM, sym, name, privilege, text) static const char *const columns_##sym[] = {
#define COLUMN(name, text)                            name,
#define REPORT_END                                                                                 \
    }                                                                                              \
    ;
#include "admin/reports.def"
#undef REPORT_BEGIN
#undef COLUMN
#undef REPORT_END

#define REPORT_BEGIN(SYM, sym, name, privilege, text) static const char *const texts_##sym[] = {
#define COLUMN(name, text)                            text,
#define REPORT_END                                                                                 \
    }                                                                                              \
    ;
#include "admin/reports.def"
#undef REPORT_BEGIN
#undef COLUMN
#undef REPORT_END

static const struct admin_report_info reports[ADMIN_REPORT_COUNT] = {
#define REPORT_BEGIN(SYM, sym, name, privilege, text)                                              \
    {name, text, ADMIN_MAY_##privilege, columns_##sym, texts_##sym, COUNT_OF(columns_##sym)},
#define COLUMN(name, text)
#define REPORT_END
#include "admin/reports.def"
#undef REPORT_BEGIN
#undef COLUMN
#undef REPORT_END
};

static admin_rows_fn *const report_rows[ADMIN_REPORT_COUNT] = {
#define REPORT_BEGIN(SYM, sym, name, privilege, text) admin_rows_##sym,
#define COLUMN(name, text)
#define REPORT_END
#include "admin/reports.def"
#undef REPORT_BEGIN
#undef COLUMN
#undef REPORT_END
};

static const char *const explain_columns[] = {
    "node_id", "role", "class", "reason", "tables", "functions", "cache"};
static const char *const mode_columns[] = {"pool_mode"};
static const char *const setting_columns[] = {"item", "value", "description"};

/* What a command is run with. */
struct run {
    const struct admin_cmd *cmd;
    const struct admin_sources *src;
    struct admin_result *res;
    struct err *err;
};
typedef int run_fn(struct run *r);

#define ADMIN_COMMAND(SYM, sym, words, arguments, privilege, tag) static run_fn admin_run_##sym;
#include "admin/commands.def"
#undef ADMIN_COMMAND
static run_fn run_mode;

static const struct command {
    enum admin_privilege privilege;
    const char *words;
    const char *tag;
    run_fn *run;
} commands[ADMIN_KIND_COUNT] = {
    [ADMIN_KIND_MODE_SHOW] = {ADMIN_MAY_ANYONE, "pool_mode", NULL, run_mode},
    [ADMIN_KIND_MODE_SET] = {ADMIN_MAY_ANYONE, "pool_mode", "SET", run_mode},
    [ADMIN_KIND_MODE_RESET] = {ADMIN_MAY_ANYONE, "pool_mode", "RESET", run_mode},
#define ADMIN_COMMAND(SYM, sym, words, arguments, privilege, tag)                                  \
    [ADMIN_KIND_##SYM] = {ADMIN_MAY_##privilege, words, tag, admin_run_##sym},
#include "admin/commands.def"
#undef ADMIN_COMMAND
};

const struct admin_report_info *admin_report_info(enum admin_report report)
{
    return &reports[report];
}

/* --- commands --- */

static int too_long(struct err *err)
{
    err_set(err, "53200", "the answer is too long");
    err_hint(err, "Ask over HTTP with a filter: /api/v1/NAME?q=TEXT&limit=N.");
    err_detail(err, "The limit is %d MB.", ADMIN_RESULT_MAX_BYTES >> 20);
    return -1;
}

static int no_session(struct err *err)
{
    err_set(err, "0A000", "this command changes a session, and there is none here");
    err_hint(err, "Give it in the session that it is about.");
    return -1;
}

/* PGPOOL EXPLAIN: where the statement would go, and why. Nothing is sent anywhere. */
static int admin_run_explain(struct run *r)
{
    struct admin_explain e = {.role = "", .class = "", .reason = "", .cache = ""};
    struct admin_rows rows;

    if (r->src->explain == NULL) {
        err_set(r->err, "0A000", "statements are not routed here");
        return -1;
    }
    r->src->explain(r->src->explain_ctx, r->cmd->value, &e);
    r->res->columns = explain_columns;
    r->res->ncolumns = COUNT_OF(explain_columns);
    admin_rows_init(&rows, r->res);
    admin_row_begin(&rows);
    admin_put_int(&rows, e.node);
    admin_put_str(&rows, e.role);
    admin_put_str(&rows, e.class);
    admin_put_str(&rows, e.reason);
    admin_put_str(&rows, e.tables);
    admin_put_str(&rows, e.functions);
    admin_put_str(&rows, e.cache);
    admin_rows_end(&rows);
    return rows.full ? too_long(r->err) : 0;
}

static int admin_run_show(struct run *r)
{
    struct admin_rows rows;
    struct conf_show show = {.gen = r->src->gen,
        .ov = r->src->ov == NULL ? NULL : *r->src->ov,
        .fact = admin_fact,
        .fact_ctx = (void *)(uintptr_t)r->src,
        .row = admin_setting_row,
        .row_ctx = &rows};
    int n = conf_show_columns(r->cmd->name, r->err);
    const char **columns;

    if (n < 0)
        return -1;
    r->res->columns = setting_columns;
    r->res->ncolumns = (unsigned)n;
    if (n == 1) {
        columns = arena_alloc(r->res->arena, sizeof *columns);
        columns[0] = arena_strdup(r->res->arena, r->cmd->name);
        r->res->columns = columns;
    }
    admin_rows_init(&rows, r->res);
    if (conf_show_one(&show, r->cmd->name, r->err) < 0)
        return -1;
    admin_rows_end(&rows);
    return rows.full ? too_long(r->err) : 0;
}

/* The value of an assignment as one text: the items of a list joined by ", ". */
static char *value_text(struct slice value, struct arena *a)
{
    struct buf text = {0};
    struct admin_token t = admin_lex(&value);
    char *part;

    for (; t.kind != ADMIN_TOKEN_END; t = admin_lex(&value)) {
        part = admin_token_text(&t, a);
        if (part == NULL)
            break;
        if (admin_token_is_symbol(&t, ','))
            part = arena_strdup(a, ", ");
        if (part != NULL)
            buf_put(&text, part, strlen(part));
    }
    part = t.kind == ADMIN_TOKEN_END ? arena_strndup(a, buf_slice(&text).p, text.len) : NULL;
    buf_free(&text);
    return part;
}

/* A file with this is warned of where it is read. */
static int warn_of_commits(struct run *r)
{
    const struct conf *conf = conf_of(r->src->gen);
    struct admin_notice *notice;

    if (strcmp(r->cmd->name, "replication_commit") != 0 || !conf_forgets_commits(conf) ||
        conf_session_of(r->src->gen, *r->src->ov)->replication_commit != CONF_COMMIT_TWO_PHASE)
        return 0;
    notice = arena_alloc_zero(r->res->arena, sizeof *notice);
    if (notice == NULL)
        return too_long(r->err);
    notice->severity = "WARNING";
    notice->sqlstate = "01000";
    notice->msg = arena_printf(r->res->arena,
        "work_dir \"%s\" is emptied when the machine starts: what this session decides by "
        "replication_commit = two_phase would be forgotten",
        conf->work_dir);
    r->res->notices = notice;
    return notice->msg == NULL ? too_long(r->err) : 0;
}

static int admin_run_set(struct run *r)
{
    char *value;

    if (r->src->ov == NULL)
        return no_session(r->err);
    if (r->cmd->is_default)
        return conf_override_reset(r->src->ov, r->cmd->name, r->err);
    value = value_text(r->cmd->value, r->res->arena);
    if (value == NULL)
        return too_long(r->err);
    if (conf_override_set(r->src->ov, r->cmd->name, value, r->err) == -1)
        return -1;
    return warn_of_commits(r);
}

static int admin_run_reset(struct run *r)
{
    if (r->src->ov == NULL)
        return no_session(r->err);
    return conf_override_reset(r->src->ov, r->cmd->name, r->err);
}

static int admin_run_reset_statements(struct run *r)
{
    stmtstats_reset(r->src->shm);
    return 0;
}

/* SHOW, SET and RESET pool_mode. */
static int run_mode(struct run *r)
{
    const char *wanted = r->cmd->kind == ADMIN_KIND_MODE_SHOW ? NULL : "";
    struct admin_rows rows;
    const char *mode;

    if (r->src->mode == NULL)
        return no_session(r->err);
    if (r->cmd->kind == ADMIN_KIND_MODE_SET && !r->cmd->is_default) {
        wanted = value_text(r->cmd->value, r->res->arena);
        if (wanted == NULL)
            return too_long(r->err);
        if (wanted[0] == '\0')
            wanted = " "; /* no mode is called so, and "" means the configured one */
    }
    mode = r->src->mode(r->src->mode_ctx, wanted, r->err);
    if (mode == NULL)
        return -1;
    if (r->cmd->kind != ADMIN_KIND_MODE_SHOW)
        return 0;
    r->res->columns = mode_columns;
    r->res->ncolumns = COUNT_OF(mode_columns);
    admin_rows_init(&rows, r->res);
    admin_row_begin(&rows);
    admin_put_static(&rows, mode);
    admin_rows_end(&rows);
    return rows.full ? too_long(r->err) : 0;
}

static int admin_run_cache_delete(struct run *r)
{
    struct slice raw = r->cmd->value;
    struct admin_token t = admin_lex(&raw);
    struct admin_notice *notice = arena_alloc_zero(r->res->arena, sizeof *notice);
    char *sql = admin_token_text(&t, r->res->arena);
    bool found;

    if (notice == NULL || sql == NULL)
        return too_long(r->err);
    if (r->src->cache_delete == NULL) {
        err_set(r->err, "55000", "query cache is not enabled");
        err_hint(r->err, "memory_cache_enabled = on, and a restart.");
        return -1;
    }
    found =
        r->src->cache_delete(r->src->cache_ctx, slice_of_str(sql), r->src->user, r->src->database);
    notice->severity = "NOTICE";
    notice->sqlstate = "00000";
    notice->msg = arena_printf(r->res->arena,
        found ? "query cache deleted. query: \"%s\""
              : "query cache does not exist for query: \"%s\"",
        sql);
    if (notice->msg == NULL)
        return too_long(r->err);
    r->res->notices = notice;
    return 0;
}

/* --- orders --- */

static int give_order(struct run *r, const struct admin_order *order)
{
    if (r->src->order == NULL) {
        err_set(r->err, "0A000", "this command is not taken here");
        err_hint(r->err, "Give it over an SQL connection to pgpool.");
        return -1;
    }
    switch (r->src->order(r->src->order_ctx, order, r->err)) {
    case ADMIN_ORDER_REFUSED:
        return -1;
    case ADMIN_ORDER_WAITS:
        r->res->is_waiting = true;
        break;
    case ADMIN_ORDER_DONE:
        break;
    }
    return 0;
}

/* A name that is mistyped is one that nobody uses, and so may be one that is right. */
static int tell_unused(struct run *r)
{
    struct admin_notice *notice = arena_alloc_zero(r->res->arena, sizeof *notice);

    if (notice == NULL)
        return too_long(r->err);
    notice->severity = "NOTICE";
    notice->sqlstate = "00000";
    notice->msg = arena_printf(r->res->arena, ORDERS_UNUSED_TEXT, r->cmd->name);
    if (notice->msg == NULL)
        return too_long(r->err);
    r->res->notices = notice;
    return 0;
}

static int order_database(struct run *r, enum admin_order_kind kind)
{
    bool is_unused = false;
    struct admin_order order = {
        .kind = kind, .database = slice_of_str(r->cmd->name), .is_unused = &is_unused};
    int rc = give_order(r, &order);

    return rc == 0 && is_unused ? tell_unused(r) : rc;
}

static int admin_run_pause(struct run *r)
{
    return order_database(r, ADMIN_ORDER_PAUSE);
}

static int admin_run_resume(struct run *r)
{
    return order_database(r, ADMIN_ORDER_RESUME);
}

static int admin_run_drain(struct run *r)
{
    return order_database(r, ADMIN_ORDER_DRAIN);
}

static int admin_run_reconnect(struct run *r)
{
    return order_database(r, ADMIN_ORDER_RECONNECT);
}

static int order_client(struct run *r, enum admin_order_kind kind)
{
    struct admin_order order = {.kind = kind};
    uint64_t id = 0;
    size_t i;

    for (i = 0; i < r->cmd->value.n && id <= UINT32_MAX; i++) {
        if (r->cmd->value.p[i] < '0' || r->cmd->value.p[i] > '9')
            break;
        id = id * 10 + (uint64_t)(r->cmd->value.p[i] - '0');
    }
    if (i < r->cmd->value.n || id > UINT32_MAX) {
        err_set(r->err, "22023", "invalid number of a client: %.*s",
            (int)(r->cmd->value.n > BAD_AT_CHARS ? BAD_AT_CHARS : r->cmd->value.n),
            r->cmd->value.p);
        err_hint(r->err, "SHOW POOL_CLIENTS lists them.");
        return -1;
    }
    order.client_id = (uint32_t)id;
    return give_order(r, &order);
}

static int admin_run_kill_client(struct run *r)
{
    return order_client(r, ADMIN_ORDER_KILL_CLIENT);
}

static int admin_run_cancel_client(struct run *r)
{
    return order_client(r, ADMIN_ORDER_CANCEL_CLIENT);
}

/* --- orders that PgBouncer has --- */

/* Sends all clients of a database away; it stays paused. */
static int admin_run_kill(struct run *r)
{
    return order_database(r, ADMIN_ORDER_KILL_DATABASE);
}

static int admin_run_wait_close(struct run *r)
{
    return order_database(r, ADMIN_ORDER_WAIT_CLOSE);
}

/* What shuts or opens a database has to name one. */
static int order_door(struct run *r, enum admin_order_kind kind)
{
    if (r->cmd->name[0] == '\0') {
        err_set(r->err, "42601", "a database has to be named");
        err_hint(r->err, "KILL database, for example.");
        return -1;
    }
    return order_database(r, kind);
}

static int admin_run_disable(struct run *r)
{
    return order_door(r, ADMIN_ORDER_DISABLE);
}

static int admin_run_enable(struct run *r)
{
    return order_door(r, ADMIN_ORDER_ENABLE);
}

static int admin_run_suspend(struct run *r)
{
    err_set(r->err, "0A000", "there is no SUSPEND: pgpool hands no sockets to a successor");
    err_hint(r->err, "PAUSE holds all clients between two transactions.");
    return -1;
}

static int admin_run_shutdown_servers(struct run *r)
{
    err_set(r->err, "0A000", "pgpool does not stop by itself when servers are free");
    err_hint(r->err, "DRAIN sends the clients away between two transactions and is answered when "
                     "they have left; then SHUTDOWN.");
    return -1;
}

static int admin_run_shutdown_clients(struct run *r)
{
    struct admin_order order = {.kind = ADMIN_ORDER_SHUTDOWN_WAIT};

    return give_order(r, &order);
}

static int admin_run_shutdown(struct run *r)
{
    struct admin_order order = {.kind = ADMIN_ORDER_SHUTDOWN};

    return give_order(r, &order);
}

/* The main process reads the file; whoever asked cannot wait for what it finds. */
static int admin_run_reload(struct run *r)
{
    struct admin_order order = {.kind = ADMIN_ORDER_RELOAD};
    struct admin_notice *notice = arena_alloc_zero(r->res->arena, sizeof *notice);

    if (notice == NULL)
        return too_long(r->err);
    notice->severity = "NOTICE";
    notice->sqlstate = "00000";
    notice->msg = "the settings are being read again; with an error in the file they stay as they "
                  "are, and the log says so";
    r->res->notices = notice;
    return give_order(r, &order);
}

/* --- running --- */

static int refuse(
    enum admin_privilege needed, const struct admin_sources *src, const char *what, struct err *err)
{
    if (needed == ADMIN_MAY_ANYONE || (needed == ADMIN_MAY_OPERATOR && src->is_operator))
        return 0;
    err_set(err, "42501", "permission denied for %s", what);
    err_hint(err,
        "Superusers may; so may admin_users in the database pgpool, and with the PCP tools "
        "those of pcp.conf.");
    return -1;
}

/* True while the servers are being asked how they are. */
static bool must_look(struct run *r)
{
    struct admin_order order = {.kind = ADMIN_ORDER_LOOK};

    return r->cmd->report == ADMIN_REPORT_NODES && r->src->order != NULL &&
           r->src->order(r->src->order_ctx, &order, r->err) == ADMIN_ORDER_WAITS;
}

static int run_report(struct run *r)
{
    const struct admin_report_info *info = admin_report_info(r->cmd->report);
    struct admin_rows rows;

    if (refuse(info->privilege, r->src, info->name, r->err) != 0)
        return -1;
    if (must_look(r)) {
        r->res->is_waiting = true;
        return 0;
    }
    r->res->columns = info->columns;
    r->res->ncolumns = info->ncolumns;
    admin_rows_init(&rows, r->res);
    report_rows[r->cmd->report](r->src, &rows);
    admin_rows_end(&rows);
    return rows.full ? too_long(r->err) : 0;
}

static int bad_syntax(const struct admin_cmd *cmd, struct err *err)
{
    int n = cmd->bad_at.n > BAD_AT_CHARS ? BAD_AT_CHARS : (int)cmd->bad_at.n;

    if (n == 0)
        err_set(err, "42601", "syntax error at end of input");
    else
        err_set(err, "42601", "syntax error at or near \"%.*s\"", n, cmd->bad_at.p);
    err_hint(err,
        "There are PGPOOL SHOW name, SET name = value, RESET name, RESET STATEMENTS, EXPLAIN "
        "statement, PAUSE, "
        "RESUME, DRAIN and RECONNECT [database], KILL CLIENT id, "
        "CANCEL CLIENT id, KILL, DISABLE, ENABLE and WAIT_CLOSE [database], RELOAD, SHUTDOWN; each "
        "stands alone.");
    return -1;
}

static int run_command(struct run *r)
{
    const struct command *c = &commands[r->cmd->kind];

    if (r->cmd->kind == ADMIN_KIND_BAD)
        return bad_syntax(r->cmd, r->err);
    if (r->cmd->kind == ADMIN_KIND_BOUNCER)
        return admin_bouncer_run(r->cmd, r->src, r->res, r->err);
    if (admin_is_alone(r->cmd->kind))
        return admin_alone_run(r->cmd, r->res, r->err);
    ASSERT(c->run != NULL);
    if (refuse(c->privilege, r->src, c->words, r->err) != 0)
        return -1;
    r->res->tag = c->tag;
    return c->run(r);
}

int admin_run(const struct admin_cmd *cmd, const struct admin_sources *src,
    struct admin_result *res, struct err *err)
{
    struct run r = {cmd, src, res, err};
    int rc;

    memset(res, 0, sizeof *res);
    res->arena = arena_new("admin answer", ADMIN_RESULT_MAX_BYTES);
    rc = cmd->kind == ADMIN_KIND_REPORT ? run_report(&r) : run_command(&r);
    if (rc != 0)
        admin_result_fini(res);
    return rc;
}

int admin_run_report(enum admin_report report, const struct admin_sources *src,
    struct admin_result *res, struct err *err)
{
    struct admin_cmd cmd = {.kind = ADMIN_KIND_REPORT, .report = report};

    return admin_run(&cmd, src, res, err);
}

int admin_encode_describe(const struct admin_cmd *cmd, struct buf *out, struct err *err)
{
    const struct admin_report_info *info;
    const char *name = cmd->name;
    int n;

    if (cmd->kind == ADMIN_KIND_REPORT) {
        info = admin_report_info(cmd->report);
        wire_put_row_description(out, info->columns, info->ncolumns, ADMIN_TEXT_OID);
        return 0;
    }
    if (cmd->kind == ADMIN_KIND_BAD)
        return bad_syntax(cmd, err);
    if (admin_is_alone(cmd->kind))
        return admin_alone_describe(cmd, out, err);
    if (cmd->kind == ADMIN_KIND_EXPLAIN) {
        wire_put_row_description(out, explain_columns, COUNT_OF(explain_columns), ADMIN_TEXT_OID);
        return 0;
    }
    if (cmd->kind == ADMIN_KIND_MODE_SHOW) {
        wire_put_row_description(out, mode_columns, COUNT_OF(mode_columns), ADMIN_TEXT_OID);
        return 0;
    }
    if (cmd->kind != ADMIN_KIND_SHOW) {
        wire_put_empty(out, BE_NO_DATA);
        return 0;
    }
    n = conf_show_columns(cmd->name, err);
    if (n < 0)
        return -1;
    wire_put_row_description(out, n == 1 ? &name : setting_columns, (unsigned)n, ADMIN_TEXT_OID);
    return 0;
}
