/* SPDX-License-Identifier: PostgreSQL
 * server_sql.c: ask, tell: statements one after the other on a connection of server_conn.c.
 * Runs in: control. */
#include "config.h"

#include "process/common/server_sql.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "process/common/server_conn.h"

#define CANCEL_BYTES 256

struct server_sql {
    struct loop *lp;
    server_sql_done_fn *done;
    void *owner;
    struct server_conn *conn;
    bool is_asking; /* a statement was sent */
    struct timer limit;
    struct task finish;
    int64_t limit_ms;
    struct buf sql;
    struct buf value;
    struct err err;
};

static const struct server_conn_how how = {.name = "pgpool recovery", .options = ""};

/* --- the end of a statement --- */

static void on_finish(struct task *t)
{
    struct server_sql *q = LIST_ENTRY(t, struct server_sql, finish);
    struct err err = q->err;

    if (err_is_set(&err)) {
        server_conn_close(q->conn);
        q->done(q, NULL, &err);
        return;
    }
    buf_put_byte(&q->value, '\0');
    q->done(q, q->value.data, NULL);
}

static void end_statement(struct server_sql *q)
{
    q->is_asking = false;
    timer_stop(q->lp, &q->limit);
    task_post(q->lp, &q->finish);
}

static void on_failed(struct server_conn *c, const struct err *err)
{
    struct server_sql *q = server_conn_owner(c);

    q->is_asking = false;
    timer_stop(q->lp, &q->limit);
    q->done(q, NULL, err);
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

    server_conn_fail(q->conn, "57014", "no answer in time");
}

/* --- the statement --- */

static void on_ready(struct server_conn *c)
{
    struct server_sql *q = server_conn_owner(c);
    PGconn *pq = server_conn_pq(c);
    int unsent;
    PGresult *res;

    if (!q->is_asking) {
        server_conn_want(c, 0);
        return;
    }
    unsent = PQflush(pq);
    if (unsent == -1 || PQconsumeInput(pq) != 1) {
        server_conn_fail(c, NULL, NULL);
        return;
    }
    while (!PQisBusy(pq)) {
        res = PQgetResult(pq);
        if (res == NULL) {
            server_conn_want(c, 0);
            end_statement(q);
            return;
        }
        if (PQresultStatus(res) != PGRES_TUPLES_OK && PQresultStatus(res) != PGRES_COMMAND_OK)
            take_failure(q, res);
        else if (PQntuples(res) > 0 && PQnfields(res) > 0 && q->value.len == 0)
            buf_printf(&q->value, "%s", PQgetvalue(res, 0, 0));
        PQclear(res);
    }
    server_conn_want(c, unsent == 1 ? IO_READ | IO_WRITE : IO_READ);
}

static void ask(struct server_conn *c)
{
    struct server_sql *q = server_conn_owner(c);

    q->is_asking = true;
    if (q->limit_ms > 0)
        timer_start(q->lp, &q->limit, q->limit_ms);
    if (PQsendQuery(server_conn_pq(c), q->sql.data) == 1)
        on_ready(c);
    else
        server_conn_fail(c, NULL, NULL);
}

/* --- what others call --- */

struct server_sql *server_sql_new(struct loop *lp, server_sql_done_fn *done, void *owner)
{
    struct server_sql *q = mem_alloc_zero(sizeof *q);

    q->lp = lp;
    q->done = done;
    q->owner = owner;
    q->conn = server_conn_new(lp, &how, ask, on_ready, on_failed, q);
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
    q->limit_ms = limit_ms;
    buf_clear(&q->sql);
    buf_put_cstr(&q->sql, sql);
    buf_clear(&q->value);
    err_clear(&q->err);
    if (server_conn_is_open(q->conn) && PQstatus(server_conn_pq(q->conn)) == CONNECTION_OK) {
        ask(q->conn);
        return;
    }
    server_conn_close(q->conn);
    server_conn_open(q->conn, to);
}

/* The one call that may wait, for a connection to a server that answered a moment ago: libpq has no
 * other way to cancel. Only a stopping process or a given up statement gets here. */
static void cancel(struct server_sql *q)
{
    char why[CANCEL_BYTES];
    PGcancel *c = PQgetCancel(server_conn_pq(q->conn));

    if (c != NULL)
        (void)PQcancel(c, why, sizeof why);
    PQfreeCancel(c);
}

void server_sql_close(struct server_sql *q)
{
    timer_stop(q->lp, &q->limit);
    task_cancel(&q->finish);
    if (q->is_asking && server_conn_is_open(q->conn) &&
        PQstatus(server_conn_pq(q->conn)) == CONNECTION_OK)
        cancel(q);
    server_conn_close(q->conn);
    q->is_asking = false;
}

void server_sql_free(struct server_sql **pq)
{
    struct server_sql *q = *pq;

    if (q == NULL)
        return;
    server_sql_close(q);
    server_conn_free(&q->conn);
    buf_free(&q->sql);
    buf_free(&q->value);
    mem_free(q);
    *pq = NULL;
}
