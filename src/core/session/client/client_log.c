/* SPDX-License-Identifier: PostgreSQL
 * client_log.c: what the log says about clients, in pgpool-II's words. */
#include "config.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "wire/writer.h"

#include "client_int.h"

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

static void log_connection(const char *host, int port)
{
    char detail[NI_MAXHOST + 64];

    snprintf(detail, sizeof detail, "connecting host=%s port=%d", host, port);
    log_at_detail(LVL_LOG, detail, NULL, "new connection received");
}

void client_log_link(
    void *owner, const struct log_place *place, enum log_level level, const char *text)
{
    struct client_log_scope scope;

    client_log_enter(&scope, owner);
    log_put_limited(place, level, NULL, NULL, "%s", text);
    client_log_leave(&scope);
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
    mem_free(nl->farewell);
    mem_free(nl);
}

/* `farewell` may be NULL. False: there is nothing to look up, or no way. */
static bool start_lookup(const struct client *c, const char *address, const char *farewell)
{
    struct name_lookup *nl;
    struct sockaddr_storage ss = {0};
    struct sockaddr_in *in4 = (struct sockaddr_in *)&ss;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ss;

    if (!c->ss->conf->log_hostname || c->row == NULL || c->row->addr_kind == ROW_ADDR_LOCAL)
        return false;
    nl = mem_alloc_zero(sizeof *nl);
    nl->request.data = nl;
    nl->port = c->row->port;
    if (farewell != NULL) {
        nl->farewell = mem_strdup(farewell);
        client_log_enter(&nl->scope, c);
        client_log_leave(&nl->scope);
    }
    snprintf(nl->address, sizeof nl->address, "%s", address);
    if (c->row->addr_kind == ROW_ADDR_IPV4) {
        in4->sin_family = AF_INET;
        memcpy(&in4->sin_addr, c->row->addr, sizeof in4->sin_addr);
    } else {
        in6->sin6_family = AF_INET6;
        memcpy(&in6->sin6_addr, c->row->addr, sizeof in6->sin6_addr);
    }
    if (uv_getnameinfo(loop_uv(c->ss->loop), &nl->request, on_name, (struct sockaddr *)&ss, 0) == 0)
        return true;
    mem_free(nl->farewell);
    mem_free(nl);
    return false;
}

void client_log_connection(const struct client *c)
{
    char host[64];

    client_host_text(c, host, sizeof host);
    if (!start_lookup(c, host, NULL))
        log_connection(host, c->row == NULL ? 0 : c->row->port);
}

void client_log_disconnection(const struct client *c)
{
    struct client_log_scope scope;
    char text[2 * ROWS_NAME_BYTES + 100];
    char host[64];
    int64_t us;

    if (!c->ss->conf->log_disconnections || c->row == NULL || c->row->protocol == 0)
        return;
    client_host_text(c, host, sizeof host);
    us = backend_wall_us(&c->ss->be) - c->row->connected_us;
    snprintf(text, sizeof text,
        "frontend disconnection: session time: %d:%02d:%02d.%03d user=%.*s database=%.*s",
        (int)(us / 3600000000LL), (int)(us / 60000000 % 60), (int)(us / 1000000 % 60),
        (int)(us / 1000 % 1000), (int)row_user(client_row_names(c)).n,
        row_user(client_row_names(c)).p, (int)row_database(client_row_names(c)).n,
        row_database(client_row_names(c)).p);
    /* A worker that stops does not wait for names. */
    if (c->ss->stop == SESSION_RUNNING && start_lookup(c, host, text))
        return;
    client_log_enter(&scope, c);
    log_farewell(text, host, c->row->port);
    client_log_leave(&scope);
}

void client_notice(struct client *c, enum log_level level, const char *text)
{
    const struct conf_session *s = conf_session_of(c->ss->gen, client_override(c));
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
    s = conf_session_of(c->ss->gen, client_override(c));
    client_trace_settings(c);
    return s->log_statement || s->log_per_node_statement || s->notice_per_node_statement ||
           log_is_on(LVL_DEBUG1);
}

/* A line of the log that the client wants as well, by client_min_messages or
 * notice_per_node_statement. */
static void tell_client(
    struct client *c, enum log_level level, const char *head, const char *kind, struct slice text)
{
    const struct conf_session *s = conf_session_of(c->ss->gen, client_override(c));
    struct buf notice = {0};

    if (!log_level_reaches_client(level, s->client_min_messages))
        return;
    buf_printf(&notice, "%s%s%.*s", head, kind, (int)text.n, text.p);
    buf_put_byte(&notice, '\0');
    client_notice(c, level, notice.data);
    buf_free(&notice);
}

/* Evenly: with a rate of 0.1 every tenth. */
static bool is_in_sample(struct sessions *ss)
{
    ss->log_sample += ss->conf->log_statement_sample_rate;
    if (ss->log_sample < 1.0)
        return false;
    ss->log_sample -= 1.0;
    return true;
}

static bool is_slow(struct sessions *ss, int64_t took_us)
{
    const struct conf *conf = ss->conf;

    if (conf->log_min_duration_statement_ms >= 0 &&
        took_us >= conf->log_min_duration_statement_ms * INT64_C(1000))
        return true;
    return conf->log_min_duration_sample_ms >= 0 &&
           took_us >= conf->log_min_duration_sample_ms * INT64_C(1000) && is_in_sample(ss);
}

void client_log_duration(struct client *c, int64_t before_us, int64_t server_us)
{
    int64_t waited_us = c->stats.wait_us < 0 ? -c->stats.wait_us : 0;
    struct client_log_scope scope;
    struct slice text;
    char detail[160];

    if (c->row == NULL || !is_slow(c->ss, before_us + server_us))
        return;
    if (waited_us > before_us)
        waited_us = before_us;
    text = client_row_statement(c);
    snprintf(detail, sizeof detail,
        "waited for a server connection %.3f ms, routing %.3f ms, at node %d %.3f ms",
        (double)waited_us / 1000, (double)(before_us - waited_us) / 1000,
        c->target->pool->cluster_node, (double)server_us / 1000);
    client_log_enter(&scope, c);
    log_at_detail(LVL_LOG, detail, NULL, "duration: %.3f ms  statement: %.*s",
        (double)(before_us + server_us) / 1000, (int)text.n, text.p);
    client_log_leave(&scope);
}

void client_log_statement(struct client *c, const char *kind, struct slice text)
{
    struct client_log_scope scope;

    if (kind[0] == '\0')
        CLIENT_LOG(c, LVL_DEBUG1, "simple query \"%.*s\" arrived", (int)text.n, text.p);
    if (conf_session_of(c->ss->gen, client_override(c))->log_statement &&
        (kind[0] == '\0' || kind[0] == 'E')) {
        client_log_enter_text(&scope, c, text);
        log_at(LVL_LOG, "statement: %.*s", (int)text.n, text.p);
        client_log_leave(&scope);
        tell_client(c, LVL_LOG, "statement: ", "", text);
    }
    client_log_on_node(c, kind, text);
}

void client_log_on_node(struct client *c, const char *kind, struct slice text)
{
    const struct conf_session *s = conf_session_of(c->ss->gen, client_override(c));
    const struct link *link = c->target;
    int node = link == NULL ? VIEW_NO_NODE : link->pool->cluster_node;
    struct client_log_scope scope;
    char head[64];

    snprintf(head, sizeof head, "DB node id: %d backend pid: %d statement: ", node,
        link == NULL ? 0 : link->server_pid);
    client_log_enter_text(&scope, c, text);
    if (s->log_per_node_statement)
        log_at(LVL_LOG, "%s%s%.*s", head, kind, (int)text.n, text.p);
    client_log_leave(&scope);
    if (s->log_per_node_statement)
        tell_client(c, LVL_LOG, head, kind, text);
    snprintf(head, sizeof head, "DB node id: %d statement: ", node);
    if (s->notice_per_node_statement)
        tell_client(c, LVL_NOTICE, head, kind, text);
}
