/* SPDX-License-Identifier: PostgreSQL
 * lines.c: lines of the log about clients. Runs in: workers. */
#include "config.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "event/loop.h"
#include "parser/parser.h"

#include "account/lines.h"

void lines_host(const struct client_row *row, char *out, size_t size)
{
    char text[INET6_ADDRSTRLEN] = "?";

    if (row->addr_kind == ROW_ADDR_LOCAL) {
        snprintf(out, size, "[local]");
        return;
    }
    (void)inet_ntop(
        row->addr_kind == ROW_ADDR_IPV4 ? AF_INET : AF_INET6, row->addr, text, sizeof text);
    snprintf(out, size, "%s", text);
}

/* ---- whose ---- */

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

static void put_names(struct client_log_scope *scope, const struct lines_whose *of)
{
    struct log_context *ctx = &scope->ctx;

    ctx->user = copy_name(scope->user, sizeof scope->user, row_user(of->names));
    ctx->database = copy_name(scope->database, sizeof scope->database, row_database(of->names));
    ctx->app_name =
        copy_name(scope->application, sizeof scope->application, row_application(of->names));
    lines_host(of->row, scope->host, sizeof scope->host);
    ctx->host = scope->host;
    ctx->port = of->row->addr_kind == ROW_ADDR_LOCAL ? 0 : of->row->port;
    ctx->client_id = of->row->id;
    ctx->node = of->row->node;
    ctx->server_pid = of->row->server_pid;
}

void lines_enter(struct client_log_scope *scope, const struct lines_whose *of)
{
    memset(&scope->ctx, 0, sizeof scope->ctx);
    if (of->row != NULL)
        put_names(scope, of);
    if (of->fingerprint != NULL)
        put_fingerprint(scope, *of->fingerprint);
    if (of->trace != NULL)
        put_trace(scope, of->trace);
    if (of->settings != NULL) {
        scope->ctx.has_levels = true;
        scope->ctx.min_level = of->settings->log_min_messages;
        scope->ctx.verbosity = (enum log_verbosity)of->settings->log_error_verbosity;
    }
    scope->before = log_use_context(&scope->ctx);
}

void lines_set_text(struct client_log_scope *scope, struct arena *scratch, struct slice sql)
{
    struct sql_fingerprint fp;
    struct sql_trace trace;

    scope->ctx.fingerprint = scope->ctx.trace_id = scope->ctx.span_id = NULL;
    if (!log_has_jsonlog() || sql.n == 0)
        return;
    if (sql_fingerprint(scratch, sql, &fp) == 0)
        put_fingerprint(scope, fp.lo);
    if (sqlcomment_trace(sql, &trace))
        put_trace(scope, &trace);
}

void client_log_leave(struct client_log_scope *scope)
{
    log_use_context(scope->before);
}

/* ---- who comes and goes ---- */

static void log_connection(const char *host, int port)
{
    char detail[NI_MAXHOST + 64];

    snprintf(detail, sizeof detail, "connecting host=%s port=%d", host, port);
    log_at_detail(LVL_LOG, detail, NULL, "new connection received");
}

/* log_hostname: the name is looked up on libuv's thread pool; the client does not wait for it. */
struct name_lookup {
    uv_getnameinfo_t request;
    struct client_log_scope scope; /* of a disconnection */
    char *farewell; /* what a disconnection says before the host; NULL: a connection */
    int port;
    char address[64]; /* when there is no name */
};

static void log_farewell(const char *text, const char *host, int port)
{
    log_at(LVL_LOG, "%s host=%s port=%d", text, host, port);
}

static void lookup_free(struct name_lookup *nl)
{
    mem_free(nl->farewell);
    mem_free(nl);
}

static void on_name(uv_getnameinfo_t *request, int status, const char *name, const char *service)
{
    struct name_lookup *nl = request->data;
    const char *host = status == 0 ? name : nl->address;

    (void)service;
    if (nl->farewell == NULL) {
        log_connection(host, nl->port);
    } else {
        nl->scope.before = log_use_context(&nl->scope.ctx);
        log_farewell(nl->farewell, host, nl->port);
        client_log_leave(&nl->scope);
    }
    lookup_free(nl);
}

/* `farewell` may be NULL, and `of` then. False: there is nothing to look up, or no way. */
static bool start_lookup(struct loop *loop, const struct client_row *row,
    const struct lines_whose *of, const char *farewell)
{
    struct name_lookup *nl;
    struct sockaddr_storage ss = {0};
    struct sockaddr_in *in4 = (struct sockaddr_in *)&ss;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ss;

    if (loop == NULL || row == NULL || row->addr_kind == ROW_ADDR_LOCAL)
        return false;
    nl = mem_alloc_zero(sizeof *nl);
    nl->request.data = nl;
    nl->port = row->port;
    if (farewell != NULL) {
        nl->farewell = mem_strdup(farewell);
        lines_enter(&nl->scope, of);
        client_log_leave(&nl->scope);
    }
    lines_host(row, nl->address, sizeof nl->address);
    if (row->addr_kind == ROW_ADDR_IPV4) {
        in4->sin_family = AF_INET;
        memcpy(&in4->sin_addr, row->addr, sizeof in4->sin_addr);
    } else {
        in6->sin6_family = AF_INET6;
        memcpy(&in6->sin6_addr, row->addr, sizeof in6->sin6_addr);
    }
    if (uv_getnameinfo(loop_uv(loop), &nl->request, on_name, (struct sockaddr *)&ss, 0) == 0)
        return true;
    lookup_free(nl);
    return false;
}

void lines_connection(struct loop *loop, const struct client_row *row, const char *host)
{
    if (!start_lookup(loop, row, NULL, NULL))
        log_connection(host, row == NULL ? 0 : row->port);
}

void lines_disconnection(struct loop *loop, const struct lines_whose *of, int64_t us)
{
    struct slice user = row_user(of->names);
    struct slice database = row_database(of->names);
    struct client_log_scope scope;
    char text[2 * ROWS_NAME_BYTES + 100];

    snprintf(text, sizeof text,
        "frontend disconnection: session time: %d:%02d:%02d.%03d user=%.*s database=%.*s",
        (int)(us / 3600000000LL), (int)(us / 60000000 % 60), (int)(us / 1000000 % 60),
        (int)(us / 1000 % 1000), (int)user.n, user.p, (int)database.n, database.p);
    if (start_lookup(loop, of->row, of, text))
        return;
    lines_enter(&scope, of);
    log_farewell(text, scope.host, of->row->port);
    client_log_leave(&scope);
}

/* ---- what took long ---- */

/* Evenly: with a rate of 0.1 every tenth. */
static bool is_in_sample(const struct conf *conf, double *sample)
{
    *sample += conf->log_statement_sample_rate;
    if (*sample < 1.0)
        return false;
    *sample -= 1.0;
    return true;
}

bool lines_is_slow(const struct conf *conf, double *sample, int64_t took_us)
{
    if (conf->log_min_duration_statement_ms >= 0 &&
        took_us >= conf->log_min_duration_statement_ms * INT64_C(1000))
        return true;
    return conf->log_min_duration_sample_ms >= 0 &&
           took_us >= conf->log_min_duration_sample_ms * INT64_C(1000) &&
           is_in_sample(conf, sample);
}

void lines_duration(const struct lines_took *took, struct slice sql)
{
    int64_t waited_us = took->waited_us < took->before_us ? took->waited_us : took->before_us;
    char detail[160];

    snprintf(detail, sizeof detail,
        "waited for a server connection %.3f ms, routing %.3f ms, at node %d %.3f ms",
        (double)waited_us / 1000, (double)(took->before_us - waited_us) / 1000, took->node,
        (double)took->server_us / 1000);
    log_at_detail(LVL_LOG, detail, NULL, "duration: %.3f ms  statement: %.*s",
        (double)(took->before_us + took->server_us) / 1000, (int)sql.n, sql.p);
}
