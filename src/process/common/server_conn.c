/* SPDX-License-Identifier: PostgreSQL
 * server_conn.c: resolve, connect, watch: libpq without waiting, on the loop.
 * Runs in: control, invalidator. While a connection is being opened a watcher of its socket lives
 * for one readiness only: libpq closes and opens sockets as it likes. Never blocks: names are
 * resolved by libuv's threads, and GSSAPI is off. */
#include "config.h"

#include "process/common/server_conn.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "probe/probe_tls.h"

#define MAX_ADDRS    8
#define TARGET_WORDS 24

struct watch {
    struct io io;
    struct server_conn *c; /* NULL: nobody listens any more */
};

struct lookup {
    uv_getaddrinfo_t req;
    struct server_conn *c; /* NULL: nobody waits any more */
};

struct server_conn {
    struct loop *lp;
    const struct server_conn_how *how;
    server_conn_fn *on_open;
    server_conn_fn *on_ready;
    server_conn_failed_fn *on_failed;
    void *owner;
    bool is_open;
    PGconn *conn;
    struct watch *watch;
    struct lookup *lookup;
    struct timer limit;
    struct task tell_failure;
    struct probe_target to;
    bool in_clear; /* the connection is tried without TLS, which failed */
    struct buf hosts;
    struct buf addresses;
    struct err err;
};

static void start(struct server_conn *c);
static void step_connect(struct server_conn *c);

/* --- sockets --- */

static void on_watch_closed(struct io *io)
{
    mem_free(LIST_ENTRY(io, struct watch, io));
}

static void unwatch(struct server_conn *c)
{
    if (c->watch == NULL)
        return;
    c->watch->c = NULL;
    io_close(&c->watch->io, on_watch_closed);
    c->watch = NULL;
}

static void on_socket(struct io *io, int events)
{
    struct server_conn *c = LIST_ENTRY(io, struct watch, io)->c;

    if (c == NULL)
        return;
    if (c->is_open) {
        c->on_ready(c);
        return;
    }
    unwatch(c);
    step_connect(c);
}

void server_conn_want(struct server_conn *c, int events)
{
    if (c->watch == NULL) {
        c->watch = mem_alloc_zero(sizeof *c->watch);
        c->watch->c = c;
        io_open(c->lp, &c->watch->io, PQsocket(c->conn), on_socket);
    }
    io_want(&c->watch->io, events);
}

static void close_conn(struct server_conn *c)
{
    unwatch(c);
    if (c->conn != NULL)
        PQfinish(c->conn);
    c->conn = NULL;
    c->is_open = false;
}

/* --- failures --- */

static void on_tell_failure(struct task *t)
{
    struct server_conn *c = LIST_ENTRY(t, struct server_conn, tell_failure);
    struct err err = c->err;

    c->on_failed(c, &err);
}

/* libpq's texts end with a line feed and may have several lines: the first one is the message. */
void server_conn_fail(struct server_conn *c, const char *sqlstate, const char *text)
{
    char said[6];

    if (sqlstate == NULL) {
        sqlstate = c->conn != NULL && probe_class_find_sqlstate(PQerrorMessage(c->conn), said)
                       ? said
                       : "08006";
        text = c->conn == NULL ? "out of memory" : PQerrorMessage(c->conn);
    }
    err_clear(&c->err);
    err_set(&c->err, sqlstate, "%.*s", (int)strcspn(text, "\n"), text);
    server_conn_close(c);
    task_post(c->lp, &c->tell_failure);
}

static void on_limit(struct timer *t)
{
    struct server_conn *c = LIST_ENTRY(t, struct server_conn, limit);

    server_conn_fail(c, "57014", "no answer in time");
}

/* --- the connection --- */

/* The other attempt of "prefer", within the same limit. */
static bool go_on_in_clear(struct server_conn *c, ConnStatusType was)
{
    if (c->in_clear || !probe_tls_may_go_in_clear(c->to.sslmode, c->conn, was))
        return false;
    close_conn(c);
    c->in_clear = true;
    start(c);
    return true;
}

static void step_connect(struct server_conn *c)
{
    ConnStatusType was = PQstatus(c->conn);

    switch (PQconnectPoll(c->conn)) {
    case PGRES_POLLING_READING:
        server_conn_want(c, IO_READ);
        return;
    case PGRES_POLLING_WRITING:
        server_conn_want(c, IO_WRITE);
        return;
    case PGRES_POLLING_OK:
        timer_stop(c->lp, &c->limit);
        PQsetnonblocking(c->conn, 1);
        PQsetErrorVerbosity(c->conn, PQERRORS_DEFAULT);
        c->is_open = true;
        c->on_open(c);
        return;
    default:
        if (!go_on_in_clear(c, was))
            server_conn_fail(c, NULL, NULL);
        return;
    }
}

static void drop_notice(void *arg, const PGresult *res)
{
}

/* libpq takes an empty value for none. */
static void start(struct server_conn *c)
{
    const struct probe_target *t = &c->to;
    bool by_name = c->addresses.len > 0;
    char port[16];
    const char *const words[][2] = {{"host", by_name              ? c->hosts.data
                                             : t->host[0] == '\0' ? "/tmp"
                                                                  : t->host},
        {"hostaddr", by_name ? c->addresses.data : ""}, {"port", port}, {"user", t->user},
        {"password", t->password}, {"dbname", t->database},
        {"sslmode", probe_tls_word(t->sslmode, t->sslrootcert, c->in_clear)},
        {"sslrootcert", t->sslrootcert}, {"sslcrl", t->sslcrl}, {"sslcert", t->sslcert},
        {"sslkey", t->sslkey}, {"gssencmode", "disable"}, {"application_name", c->how->name},
        {"options", c->how->options}, {"replication", c->how->is_replication ? "database" : ""},
        {"client_encoding", "UTF8"}, {"keepalives_idle", "20"}, {"keepalives_interval", "5"},
        {"keepalives_count", "4"}, {probe_tls_min_key(), t->ssl_min}};
    const char *key[TARGET_WORDS] = {NULL};
    const char *value[TARGET_WORDS] = {NULL};
    size_t i;

    snprintf(port, sizeof port, "%d", t->port);
    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        key[i] = words[i][0];
        value[i] = words[i][1];
    }
    c->conn = PQconnectStartParams(key, value, 0);
    if (c->conn == NULL || PQstatus(c->conn) == CONNECTION_BAD) {
        server_conn_fail(c, NULL, NULL);
        return;
    }
    PQsetErrorVerbosity(c->conn, PQERRORS_VERBOSE); /* with the SQLSTATE of a refusal */
    PQsetNoticeReceiver(c->conn, drop_notice, NULL);
    server_conn_want(c, IO_WRITE);
}

static void keep_addresses(struct server_conn *c, const struct addrinfo *first)
{
    const struct addrinfo *ai;
    char text[PROBE_ADDR_BYTES];
    int n = 0;

    buf_clear(&c->hosts);
    buf_clear(&c->addresses);
    for (ai = first; ai != NULL && n < MAX_ADDRS; ai = ai->ai_next) {
        if (getnameinfo(ai->ai_addr, ai->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST))
            continue;
        buf_printf(&c->hosts, "%s%s", n == 0 ? "" : ",", c->to.host);
        buf_printf(&c->addresses, "%s%s", n == 0 ? "" : ",", text);
        n++;
    }
    buf_put_byte(&c->hosts, '\0');
    buf_put_byte(&c->addresses, '\0');
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *res)
{
    struct lookup *l = LIST_ENTRY(req, struct lookup, req);
    struct server_conn *c = l->c;

    mem_free(l);
    if (c != NULL) {
        c->lookup = NULL;
        if (status == 0) {
            keep_addresses(c, res);
            start(c);
        } else {
            char why[PROBE_MSG_BYTES];

            snprintf(
                why, sizeof why, "could not resolve \"%s\": %s", c->to.host, uv_strerror(status));
            server_conn_fail(c, "08001", why);
        }
    }
    uv_freeaddrinfo(res);
}

static void resolve(struct server_conn *c)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int rc;

    c->lookup = mem_alloc_zero(sizeof *c->lookup);
    c->lookup->c = c;
    rc = uv_getaddrinfo(loop_uv(c->lp), &c->lookup->req, on_resolved, c->to.host, NULL, &hints);
    if (rc == 0)
        return;
    mem_free(c->lookup);
    c->lookup = NULL;
    server_conn_fail(c, "08001", uv_strerror(rc));
}

/* --- what others call --- */

struct server_conn *server_conn_new(struct loop *lp, const struct server_conn_how *how,
    server_conn_fn *on_open, server_conn_fn *on_ready, server_conn_failed_fn *on_failed,
    void *owner)
{
    struct server_conn *c = mem_alloc_zero(sizeof *c);

    c->lp = lp;
    c->how = how;
    c->on_open = on_open;
    c->on_ready = on_ready;
    c->on_failed = on_failed;
    c->owner = owner;
    timer_init(&c->limit, on_limit);
    task_init(&c->tell_failure, on_tell_failure);
    return c;
}

void *server_conn_owner(const struct server_conn *c)
{
    return c->owner;
}

bool server_conn_is_open(const struct server_conn *c)
{
    return c->is_open;
}

PGconn *server_conn_pq(const struct server_conn *c)
{
    return c->conn;
}

void server_conn_open(struct server_conn *c, const struct probe_target *to)
{
    probe_target_free(&c->to);
    probe_target_copy(&c->to, to);
    c->in_clear = false;
    if (to->connect_timeout_ms > 0)
        timer_start(c->lp, &c->limit, to->connect_timeout_ms);
    if (to->host[0] == '/' || to->host[0] == '\0') {
        buf_free(&c->addresses);
        start(c);
    } else {
        resolve(c);
    }
}

void server_conn_close(struct server_conn *c)
{
    timer_stop(c->lp, &c->limit);
    task_cancel(&c->tell_failure);
    if (c->lookup != NULL) {
        c->lookup->c = NULL;
        (void)uv_cancel((uv_req_t *)&c->lookup->req); /* told to its callback, or too late */
        c->lookup = NULL;
    }
    close_conn(c);
}

void server_conn_free(struct server_conn **pc)
{
    struct server_conn *c = *pc;

    if (c == NULL)
        return;
    server_conn_close(c);
    buf_free(&c->hosts);
    buf_free(&c->addresses);
    probe_target_free(&c->to);
    mem_free(c);
    *pc = NULL;
}
