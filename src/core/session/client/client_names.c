/* SPDX-License-Identifier: PostgreSQL
 * client_names.c: whose line in the log it is: a client's names, its address, its own settings of
 * the log. Runs in: workers. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "config/conf_param.h"
#include "parser/parser.h"
#include "parser/sqlcomment.h"

#include "client_int.h"

void client_trace_settings(struct client *c)
{
    const struct conf_session *s = conf_session_of(c->ss->gen, client_override(c));
    uint8_t before = c->trace.server;

    c->trace.client = s->log_client_messages;
    c->trace.server =
        s->log_backend_messages == CONF_MESSAGES_NONE ? 0 : (uint8_t)s->log_backend_messages;
    if (before == 0 && c->trace.server != 0)
        client_rare(c)->replies = (struct client_replies){
            .body_left = c->target == NULL || c->target->swallow_body ? 0 : c->target->body_left};
}

const struct row_names *client_row_names(const struct client *c)
{
    return rows_names(c->ss->client_rows, c->row == NULL ? ROWS_NO_NAMES : c->row->names);
}

struct slice client_row_statement(const struct client *c)
{
    switch ((enum row_statement)c->row->statement) {
    case ROW_STATEMENT_OWN:
        return rows_statement(c->ss->client_rows, c->row_index);
    case ROW_STATEMENT_LINK:
        return rows_statement(c->ss->be.link_rows, c->row->link_row);
    case ROW_STATEMENT_NONE:
        break;
    }
    return slice_of("", 0);
}

void client_host_text(const struct client *c, char *out, size_t size)
{
    char text[INET6_ADDRSTRLEN] = "?";
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof ss;

    if (c->is_unix || (c->row != NULL && c->row->addr_kind == ROW_ADDR_LOCAL)) {
        snprintf(out, size, "[local]");
        return;
    }
    if (c->row == NULL) { /* there was no place for it */
        if (getpeername(stream_fd(&c->stream), (struct sockaddr *)&ss, &len) == -1 ||
            getnameinfo(
                (struct sockaddr *)&ss, len, out, (socklen_t)size, NULL, 0, NI_NUMERICHOST) != 0)
            snprintf(out, size, "?");
        return;
    }
    (void)inet_ntop(
        c->row->addr_kind == ROW_ADDR_IPV4 ? AF_INET : AF_INET6, c->row->addr, text, sizeof text);
    snprintf(out, size, "%s", text);
}

static const char *copy_name(char *room, size_t size, struct slice name)
{
    snprintf(room, size, "%.*s", (int)name.n, name.p);
    return name.n == 0 ? NULL : room;
}

static void put_fingerprint(struct client_log_scope *scope, uint64_t fingerprint)
{
    snprintf(scope->fingerprint, sizeof scope->fingerprint, "%016" PRIx64, fingerprint);
    scope->ctx.fingerprint = scope->fingerprint;
}

static void put_trace(struct client_log_scope *scope, const struct sql_trace *trace)
{
    scope->trace = *trace;
    scope->ctx.trace_id = scope->trace.trace_id;
    scope->ctx.span_id = trace->trace_id[0] == '\0' ? NULL : scope->trace.span_id;
}

/* What it runs. */
static void put_statement(struct client_log_scope *scope, const struct client *c)
{
    uint64_t fingerprint;

    if (c->row->state != CLIENT_STATE_ACTIVE)
        return;
    if (client_stmts_fingerprint(c, &fingerprint))
        put_fingerprint(scope, fingerprint);
    if (c->rare != NULL)
        put_trace(scope, &c->rare->comment);
}

void client_log_enter_text(struct client_log_scope *scope, const struct client *c, struct slice sql)
{
    struct sql_fingerprint fp;
    struct sql_trace trace;

    client_log_enter(scope, c);
    scope->ctx.fingerprint = scope->ctx.trace_id = scope->ctx.span_id = NULL;
    if (!log_has_jsonlog() || sql.n == 0)
        return;
    if (sql_fingerprint(c->ss->scratch, sql, &fp) == 0)
        put_fingerprint(scope, fp.lo);
    if (sqlcomment_trace(sql, &trace))
        put_trace(scope, &trace);
}

void client_log_enter(struct client_log_scope *scope, const struct client *c)
{
    const struct conf_session *s;

    memset(&scope->ctx, 0, sizeof scope->ctx);
    if (c->row != NULL) {
        scope->ctx.user = copy_name(scope->user, sizeof scope->user, row_user(client_row_names(c)));
        scope->ctx.database =
            copy_name(scope->database, sizeof scope->database, row_database(client_row_names(c)));
        scope->ctx.app_name = copy_name(
            scope->application, sizeof scope->application, row_application(client_row_names(c)));
        client_host_text(c, scope->host, sizeof scope->host);
        scope->ctx.host = scope->host;
        scope->ctx.port = c->row->addr_kind == ROW_ADDR_LOCAL ? 0 : c->row->port;
        scope->ctx.client_id = c->row->id;
        scope->ctx.node = c->row->node;
        scope->ctx.server_pid = c->row->server_pid;
        if (log_has_jsonlog())
            put_statement(scope, c);
    }
    if (client_override(c) != NULL) {
        s = conf_session_of(c->ss->gen, client_override(c));
        scope->ctx.has_levels = true;
        scope->ctx.min_level = s->log_min_messages;
        scope->ctx.verbosity = (enum log_verbosity)s->log_error_verbosity;
    }
    scope->before = log_use_context(&scope->ctx);
}

void client_log_leave(struct client_log_scope *scope)
{
    log_use_context(scope->before);
}
