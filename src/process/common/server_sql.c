/* SPDX-License-Identifier: PostgreSQL
 * server_sql.c: resolve, connect, ask, tell: libpq without waiting, on the loop.
 * Runs in: control. A watcher of the socket lives for one readiness only: libpq closes and opens
 * sockets as it likes. Never blocks: names are resolved by libuv's threads, and GSSAPI is off. */
#include "config.h"

#include "process/common/server_sql.h"

#include <libpq-fe.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "probe/probe_tls.h"

#define APP_NAME     "pgpool recovery"
#define MAX_ADDRS    8
#define TARGET_WORDS 24
#define CANCEL_BYTES 256

struct watch {
    struct io io;
    struct server_sql *q; /* NULL: nobody listens any more */
};

struct lookup {
    uv_getaddrinfo_t req;
    struct server_sql *q; /* NULL: nobody waits any more */
};

enum sql_phase { SQL_IDLE, SQL_RESOLVE, SQL_CONNECT, SQL_ASK };

struct server_sql {
    struct loop *lp;
    server_sql_done_fn *done;
    void *owner;
    enum sql_phase phase;
    PGconn *conn;
    struct watch *watch;
    struct lookup *lookup;
    struct timer limit;
    struct task finish;
    struct probe_target to;
    bool in_clear; /* the connection is tried without TLS, which failed */
    int64_t limit_ms;
    struct buf hosts;
    struct buf addresses;
    struct buf sql;
    struct buf value;
    struct err err;
};

static void open_conn(struct server_sql *q);
static void step(struct server_sql *q);

/* --- sockets --- */

static void on_watch_closed(struct io *io)
{
    mem_free(LIST_ENTRY(io, struct watch, io));
}

static void unwatch(struct server_sql *q)
{
    if (q->watch == NULL)
        return;
    q->watch->q = NULL;
    io_close(&q->watch->io, on_watch_closed);
    q->watch = NULL;
}

static void on_ready(struct io *io, int events)
{
    struct server_sql *q = LIST_ENTRY(io, struct watch, io)->q;

    if (q == NULL)
        return;
    unwatch(q);
    step(q);
}

static void watch_conn(struct server_sql *q, int events)
{
    q->watch = mem_alloc_zero(sizeof *q->watch);
    q->watch->q = q;
    io_open(q->lp, &q->watch->io, PQsocket(q->conn), on_ready);
    io_want(&q->watch->io, events);
}

static void close_conn(struct server_sql *q)
{
    unwatch(q);
    if (q->conn != NULL)
        PQfinish(q->conn);
    q->conn = NULL;
}

/* --- the end of a statement --- */

static void on_finish(struct task *t)
{
    struct server_sql *q = LIST_ENTRY(t, struct server_sql, finish);
    struct err err = q->err;

    q->phase = SQL_IDLE;
    if (err_is_set(&err)) {
        close_conn(q);
        q->done(q, NULL, &err);
        return;
    }
    buf_put_byte(&q->value, '\0');
    q->done(q, q->value.data, NULL);
}

static void end_statement(struct server_sql *q)
{
    timer_stop(q->lp, &q->limit);
    task_post(q->lp, &q->finish);
}

/* libpq's texts end with a line feed and may have several lines: the first one is the message. */
static void fail(struct server_sql *q, const char *sqlstate, const char *text)
{
    err_set(&q->err, sqlstate, "%.*s", (int)strcspn(text, "\n"), text);
    end_statement(q);
}

static void fail_conn(struct server_sql *q)
{
    fail(q, "08006", q->conn == NULL ? "out of memory" : PQerrorMessage(q->conn));
}

static void take_failure(struct server_sql *q, const PGresult *res)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL);
    const char *hint = PQresultErrorField(res, PG_DIAG_MESSAGE_HINT);

    err_set(&q->err, state == NULL ? "08006" : state, "%s",
        text == NULL ? PQresultErrorMessage(res) : text);
    if (detail != NULL)
        err_detail(&q->err, "%s", detail);
    if (hint != NULL)
        err_hint(&q->err, "%s", hint);
}

static void on_limit(struct timer *t)
{
    struct server_sql *q = LIST_ENTRY(t, struct server_sql, limit);

    unwatch(q);
    if (q->lookup != NULL) {
        q->lookup->q = NULL;
        q->lookup = NULL;
    }
    fail(q, "57014", "no answer in time");
}

/* --- the statement --- */

static void step_ask(struct server_sql *q)
{
    int unsent = PQflush(q->conn);
    PGresult *res;

    if (unsent == -1 || PQconsumeInput(q->conn) != 1) {
        fail_conn(q);
        return;
    }
    while (!PQisBusy(q->conn)) {
        res = PQgetResult(q->conn);
        if (res == NULL) {
            end_statement(q);
            return;
        }
        if (PQresultStatus(res) != PGRES_TUPLES_OK && PQresultStatus(res) != PGRES_COMMAND_OK)
            take_failure(q, res);
        else if (PQntuples(res) > 0 && PQnfields(res) > 0 && q->value.len == 0)
            buf_printf(&q->value, "%s", PQgetvalue(res, 0, 0));
        PQclear(res);
    }
    watch_conn(q, unsent == 1 ? IO_READ | IO_WRITE : IO_READ);
}

static void ask(struct server_sql *q)
{
    q->phase = SQL_ASK;
    timer_stop(q->lp, &q->limit);
    if (q->limit_ms > 0)
        timer_start(q->lp, &q->limit, q->limit_ms);
    if (PQsendQuery(q->conn, q->sql.data) == 1)
        step_ask(q);
    else
        fail_conn(q);
}

/* The other attempt of "prefer", within the same limit. */
static bool go_on_in_clear(struct server_sql *q, ConnStatusType was)
{
    if (q->in_clear || !probe_tls_may_go_in_clear(q->to.sslmode, q->conn, was))
        return false;
    close_conn(q);
    q->in_clear = true;
    open_conn(q);
    return true;
}

static void step_connect(struct server_sql *q)
{
    ConnStatusType was = PQstatus(q->conn);

    switch (PQconnectPoll(q->conn)) {
    case PGRES_POLLING_READING:
        watch_conn(q, IO_READ);
        return;
    case PGRES_POLLING_WRITING:
        watch_conn(q, IO_WRITE);
        return;
    case PGRES_POLLING_OK:
        PQsetnonblocking(q->conn, 1);
        PQsetErrorVerbosity(q->conn, PQERRORS_DEFAULT);
        ask(q);
        return;
    default:
        if (!go_on_in_clear(q, was))
            fail_conn(q);
        return;
    }
}

static void step(struct server_sql *q)
{
    if (q->phase == SQL_CONNECT)
        step_connect(q);
    else if (q->phase == SQL_ASK)
        step_ask(q);
}

/* --- the connection --- */

static void drop_notice(void *arg, const PGresult *res)
{
}

/* libpq takes an empty value for none. */
static void open_conn(struct server_sql *q)
{
    const struct probe_target *t = &q->to;
    bool by_name = q->addresses.len > 0;
    char port[16];
    const char *const words[][2] = {{"host", by_name              ? q->hosts.data
                                             : t->host[0] == '\0' ? "/tmp"
                                                                  : t->host},
        {"hostaddr", by_name ? q->addresses.data : ""}, {"port", port}, {"user", t->user},
        {"password", t->password}, {"dbname", t->database},
        {"sslmode", probe_tls_word(t->sslmode, t->sslrootcert, q->in_clear)},
        {"sslrootcert", t->sslrootcert}, {"sslcrl", t->sslcrl}, {"sslcert", t->sslcert},
        {"sslkey", t->sslkey}, {"gssencmode", "disable"}, {"application_name", APP_NAME},
        {"client_encoding", "UTF8"}, {"keepalives_idle", "20"}, {"keepalives_interval", "5"},
        {"keepalives_count", "4"}};
    const char *key[TARGET_WORDS] = {NULL};
    const char *value[TARGET_WORDS] = {NULL};
    size_t i;

    snprintf(port, sizeof port, "%d", t->port);
    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        key[i] = words[i][0];
        value[i] = words[i][1];
    }
    q->phase = SQL_CONNECT;
    q->conn = PQconnectStartParams(key, value, 0);
    if (q->conn == NULL || PQstatus(q->conn) == CONNECTION_BAD) {
        fail_conn(q);
        return;
    }
    PQsetErrorVerbosity(q->conn, PQERRORS_VERBOSE); /* with the SQLSTATE of a refusal */
    PQsetNoticeReceiver(q->conn, drop_notice, NULL);
    watch_conn(q, IO_WRITE);
}

static void keep_addresses(struct server_sql *q, const struct addrinfo *first)
{
    const struct addrinfo *ai;
    char text[PROBE_ADDR_BYTES];
    int n = 0;

    buf_clear(&q->hosts);
    buf_clear(&q->addresses);
    for (ai = first; ai != NULL && n < MAX_ADDRS; ai = ai->ai_next) {
        if (getnameinfo(ai->ai_addr, ai->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST))
            continue;
        buf_printf(&q->hosts, "%s%s", n == 0 ? "" : ",", q->to.host);
        buf_printf(&q->addresses, "%s%s", n == 0 ? "" : ",", text);
        n++;
    }
    buf_put_byte(&q->hosts, '\0');
    buf_put_byte(&q->addresses, '\0');
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *res)
{
    struct lookup *l = LIST_ENTRY(req, struct lookup, req);
    struct server_sql *q = l->q;

    mem_free(l);
    if (q != NULL) {
        q->lookup = NULL;
        if (status == 0) {
            keep_addresses(q, res);
            open_conn(q);
        } else {
            char why[PROBE_MSG_BYTES];

            snprintf(
                why, sizeof why, "could not resolve \"%s\": %s", q->to.host, uv_strerror(status));
            fail(q, "08001", why);
        }
    }
    uv_freeaddrinfo(res);
}

static void resolve(struct server_sql *q)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int rc;

    q->phase = SQL_RESOLVE;
    q->lookup = mem_alloc_zero(sizeof *q->lookup);
    q->lookup->q = q;
    rc = uv_getaddrinfo(loop_uv(q->lp), &q->lookup->req, on_resolved, q->to.host, NULL, &hints);
    if (rc == 0)
        return;
    mem_free(q->lookup);
    q->lookup = NULL;
    fail(q, "08001", uv_strerror(rc));
}

/* --- what others call --- */

struct server_sql *server_sql_new(struct loop *lp, server_sql_done_fn *done, void *owner)
{
    struct server_sql *q = mem_alloc_zero(sizeof *q);

    q->lp = lp;
    q->done = done;
    q->owner = owner;
    timer_init(&q->limit, on_limit);
    task_init(&q->finish, on_finish);
    return q;
}

void *server_sql_owner(const struct server_sql *q)
{
    return q->owner;
}

void server_sql_run(
    struct server_sql *q, const struct probe_target *to, const char *sql, int64_t limit_ms)
{
    probe_target_free(&q->to);
    probe_target_copy(&q->to, to);
    q->limit_ms = limit_ms;
    buf_clear(&q->sql);
    buf_put_cstr(&q->sql, sql);
    buf_clear(&q->value);
    err_clear(&q->err);
    if (q->conn != NULL && PQstatus(q->conn) == CONNECTION_OK) {
        ask(q);
        return;
    }
    close_conn(q);
    q->in_clear = false;
    if (to->connect_timeout_ms > 0)
        timer_start(q->lp, &q->limit, to->connect_timeout_ms);
    if (to->host[0] == '/' || to->host[0] == '\0') {
        buf_free(&q->addresses);
        open_conn(q);
    } else {
        resolve(q);
    }
}

/* The one call that may wait, for a connection to a server that answered a moment ago: libpq has no
 * other way to cancel. Only a stopping process or a given up statement gets here. */
static void cancel(struct server_sql *q)
{
    char why[CANCEL_BYTES];
    PGcancel *c = PQgetCancel(q->conn);

    if (c != NULL)
        (void)PQcancel(c, why, sizeof why);
    PQfreeCancel(c);
}

void server_sql_close(struct server_sql *q)
{
    timer_stop(q->lp, &q->limit);
    task_cancel(&q->finish);
    if (q->lookup != NULL) {
        q->lookup->q = NULL;
        (void)uv_cancel((uv_req_t *)&q->lookup->req); /* told to its callback, or too late */
        q->lookup = NULL;
    }
    if (q->phase == SQL_ASK && q->conn != NULL && PQstatus(q->conn) == CONNECTION_OK)
        cancel(q);
    close_conn(q);
    q->phase = SQL_IDLE;
}

void server_sql_free(struct server_sql **pq)
{
    struct server_sql *q = *pq;

    if (q == NULL)
        return;
    server_sql_close(q);
    buf_free(&q->hosts);
    buf_free(&q->addresses);
    buf_free(&q->sql);
    buf_free(&q->value);
    probe_target_free(&q->to);
    mem_free(q);
    *pq = NULL;
}
