/* SPDX-License-Identifier: PostgreSQL
 * client_log.c: what the log is told about a client, and what of that the client is told; the lines
 * are made in src/core/account. Runs in: workers. */
#include "config.h"

#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#include "account/said.h"
#include "base/hot.h"
#include "base/log.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "wire/proto.h"
#include "wire/writer.h"

#include "client_int.h"

/* ---- whose lines they are ---- */

void client_host_text(const struct client *c, char *out, size_t size)
{
    struct sockaddr_storage ss = {0};
    socklen_t len = sizeof ss;

    if (c->row != NULL)
        lines_host(c->row, out, size);
    else if (stream_is_local(&c->stream))
        snprintf(out, size, "[local]");
    else if (getpeername(stream_fd(&c->stream), (struct sockaddr *)&ss, &len) == -1 ||
             getnameinfo((struct sockaddr *)&ss, len, out, (socklen_t)size, NULL, 0,
                 NI_NUMERICHOST) != 0) /* there was no place for it */
        snprintf(out, size, "?");
}

/* *fingerprint is room for one. */
static struct lines_whose whose_of(const struct client *c, uint64_t *fingerprint)
{
    struct lines_whose of = {.row = c->row, .names = client_row_names(c)};
    bool is_active = c->row != NULL && c->row->state == CLIENT_STATE_ACTIVE && log_has_jsonlog();

    if (client_override(c) != NULL)
        of.settings = client_conf(c);
    if (is_active && client_stmts_fingerprint(c, fingerprint))
        of.fingerprint = fingerprint;
    if (is_active && c->rare != NULL)
        of.trace = &c->rare->comment;
    return of;
}

void client_log_enter(struct client_log_scope *scope, const struct client *c)
{
    uint64_t fingerprint;
    struct lines_whose of = whose_of(c, &fingerprint);

    lines_enter(scope, &of);
}

static void enter_text(struct client_log_scope *scope, const struct client *c, struct slice sql)
{
    client_log_enter(scope, c);
    lines_set_text(scope, c->ss->scratch, sql);
}

/* ---- who comes and goes ---- */

/* Whoever does not get in, for whichever reason, leaves one line: who, from where, why. */
void client_log_refusal(struct client *c, const struct err *err)
{
    struct slice user = slice_of("", 0);
    struct slice database = slice_of("", 0);
    char host[64];

    if (c->login != NULL && c->login->outcome == LOGIN_REFUSED)
        return;
    if (c->login != NULL) {
        c->login->outcome = LOGIN_REFUSED;
        user = c->login->auth_user;
        database = c->login->startup.database;
    }
    client_host_text(c, host, sizeof host);
    log_caused_detail(LVL_LOG, err->detail[0] != '\0' ? err->detail : NULL, NULL,
        "connection refused: %s (user \"%.*s\", database \"%.*s\", host %s)", err->msg, (int)user.n,
        user.p, (int)database.n, database.p, host);
}

void client_log_link(
    void *owner, const struct log_place *place, enum log_level level, const char *text)
{
    struct client_log_scope scope;

    client_log_enter(&scope, owner);
    log_put_limited(place, level, NULL, NULL, "%s", text);
    client_log_leave(&scope);
}

void client_log_connection(const struct client *c)
{
    char host[64];

    client_host_text(c, host, sizeof host);
    lines_connection(c->ss->conf->log_hostname ? c->ss->loop : NULL, c->row, host);
}

void client_log_disconnection(const struct client *c)
{
    uint64_t fingerprint;
    struct lines_whose of = whose_of(c, &fingerprint);
    /* A worker that stops does not wait for names. */
    bool looks = c->ss->conf->log_hostname && c->ss->stop == SESSION_RUNNING;

    if (c->ss->conf->log_disconnections && c->row != NULL && c->row->protocol != 0)
        lines_disconnection(
            looks ? c->ss->loop : NULL, &of, backend_wall_us(&c->ss->be) - c->row->connected_us);
}

/* ---- what it asks for ---- */

void client_notice(struct client *c, enum log_level level, const char *text)
{
    const struct conf_session *s = client_conf(c);
    struct buf out = {0};

    /* Not in the middle of a message of the server's. */
    if (!log_level_reaches_client(level, s->client_min_messages) ||
        (c->target != NULL && c->target->body_left > 0))
        return;
    wire_put_notice(&out, log_level_text(level), "00000", text);
    client_send(c, &out);
}

bool sessions_log_statements(const struct conf_gen *gen)
{
    const struct conf_session *s = conf_session_of(gen, NULL);

    return s->log_statement || s->log_per_node_statement || s->notice_per_node_statement ||
           s->log_client_messages || s->log_backend_messages != CONF_MESSAGES_NONE ||
           log_is_on(LVL_DEBUG1);
}

HOT bool client_log_statements(struct client *c)
{
    const struct conf_session *s;

    if (client_override(c) == NULL && !c->ss->logs_statements && !c->trace.client &&
        c->trace.server == 0)
        return false; /* asked for every message: by far the most frequent answer */
    s = client_conf(c);
    client_trace_settings(c);
    return s->log_statement || s->log_per_node_statement || s->notice_per_node_statement ||
           log_is_on(LVL_DEBUG1);
}

/* A line of the log that the client wants as well, by client_min_messages or
 * notice_per_node_statement. */
static void tell_client(
    struct client *c, enum log_level level, const char *head, const char *kind, struct slice text)
{
    const struct conf_session *s = client_conf(c);
    struct buf notice = {0};

    if (!log_level_reaches_client(level, s->client_min_messages))
        return;
    buf_printf(&notice, "%s%s%.*s", head, kind, (int)text.n, text.p);
    buf_put_byte(&notice, '\0');
    client_notice(c, level, notice.data);
    buf_free(&notice);
}

void client_log_duration(struct client *c)
{
    const struct client_stats *s = &c->stats;
    struct lines_took took = {.waited_us = s->wait_us < 0 ? -s->wait_us : 0};
    struct client_log_scope scope;

    if (s->sent_us == 0 || c->target == NULL || c->row == NULL)
        return;
    took.before_us = s->taken_us == 0 ? 0 : s->sent_us - s->taken_us;
    took.server_us = loop_now_us(c->ss->loop) - s->sent_us;
    took.node = c->target->pool->cluster_node;
    if (!lines_is_slow(c->ss->conf, &c->ss->log_sample, took.before_us + took.server_us))
        return;
    client_log_enter(&scope, c);
    lines_duration(&took, client_row_statement(c));
    client_log_leave(&scope);
}

void client_log_statement(struct client *c, const char *kind, struct slice text)
{
    struct client_log_scope scope;

    if (kind[0] == '\0')
        CLIENT_LOG(c, LVL_DEBUG1, "simple query \"%.*s\" arrived", (int)text.n, text.p);
    if (client_conf(c)->log_statement && (kind[0] == '\0' || kind[0] == 'E')) {
        enter_text(&scope, c, text);
        log_at(LVL_LOG, "statement: %.*s", (int)text.n, text.p);
        client_log_leave(&scope);
        tell_client(c, LVL_LOG, "statement: ", "", text);
    }
    client_log_on_node(c, kind, text);
}

void client_log_on_node(struct client *c, const char *kind, struct slice text)
{
    const struct conf_session *s = client_conf(c);
    const struct link *link = c->target;
    int node = link == NULL ? VIEW_NO_NODE : link->pool->cluster_node;
    struct client_log_scope scope;
    char head[64];

    snprintf(head, sizeof head, "DB node id: %d backend pid: %d statement: ", node,
        link == NULL ? 0 : link->server_pid);
    enter_text(&scope, c, text);
    if (s->log_per_node_statement)
        log_at(LVL_LOG, "%s%s%.*s", head, kind, (int)text.n, text.p);
    client_log_leave(&scope);
    if (s->log_per_node_statement)
        tell_client(c, LVL_LOG, head, kind, text);
    snprintf(head, sizeof head, "DB node id: %d statement: ", node);
    if (s->notice_per_node_statement)
        tell_client(c, LVL_NOTICE, head, kind, text);
}

void client_said(struct client *c, char type, struct slice body)
{
    struct said_line line;

    if (said_note(&c->ss->said, c, type, body, &line))
        client_log_statement(c, line.kind, line.text);
}

/* ---- messages ---- */

void client_trace_settings(struct client *c)
{
    const struct conf_session *s = client_conf(c);
    uint8_t before = c->trace.server;

    c->trace.client = s->log_client_messages;
    c->trace.server =
        s->log_backend_messages == CONF_MESSAGES_NONE ? 0 : (uint8_t)s->log_backend_messages;
    if (before == 0 && c->trace.server != 0)
        client_rare(c)->replies = (struct client_replies){
            .body_left = c->target == NULL || c->target->swallow_body ? 0 : c->target->body_left};
}

void client_trace_message(struct client *c, char type, struct slice body)
{
    struct client_log_scope scope;
    uint32_t none = 0;

    if (type == FE_COPY_DATA) {
        client_rare(c)->replies.copies++;
        return;
    }
    client_log_enter(&scope, c);
    trace_message(c->rare == NULL ? &none : &c->rare->replies.copies, type, body);
    client_log_leave(&scope);
}

void client_trace_reply(struct client *c, int node, const char *p, size_t n)
{
    struct client_log_scope scope;

    client_log_enter(&scope, c);
    trace_reply(&c->rare->replies, c->trace.server == CONF_MESSAGES_TERSE, node, p, n);
    client_log_leave(&scope);
}
