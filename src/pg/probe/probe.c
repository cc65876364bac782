/* SPDX-License-Identifier: PostgreSQL
 * probe.c: one server's probe: resolve, connect, ask, answer.
 * Runs in: monitor. A watcher of the socket lives for one readiness only: libpq closes and opens
 * sockets as it likes, and a descriptor number that comes back must never be taken for the old one.
 * Never blocks: names are resolved by libuv's threads and handed to libpq as addresses, and GSSAPI,
 * which would wait for a ticket server, is off. */
#include "config.h"

#include "probe/probe.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"
#include "probe/probe_tls.h"

#include "probe_int.h"

#define MAX_ADDRESSES 8
#define TARGET_WORDS  20
#define APP_NAME      "pgpool monitor"

enum phase { PHASE_NONE, PHASE_RESOLVE, PHASE_CONNECT, PHASE_ASK };

/* A watched descriptor; freed when the loop let go of it. */
struct watch {
    struct io io;
    struct probe *p; /* NULL: nobody listens any more */
};

/* A name being resolved; outlives the probe when that is freed first. */
struct lookup {
    uv_getaddrinfo_t req;
    struct probe *p; /* NULL: nobody waits any more */
    bool is_aside;   /* nobody does: a connection is open, and the name looked up beside it */
};

struct probe {
    struct loop *lp;
    probe_done_fn *done;
    probe_lost_fn *lost;
    void *owner;
    struct probe_target target;
    enum phase phase;
    PGconn *conn;
    struct watch *watch;
    struct lookup *lookup;
    struct timer deadline;         /* of the whole probe */
    struct timer connect_deadline; /* of opening the connection */
    struct task finish;            /* reports out of the caller's stack */
    int64_t start_us;
    bool retried; /* the kept connection was dead: a second one was opened within this probe */
    bool was_open;
    bool in_clear;        /* the present connection is tried without TLS, which failed */
    bool has_moved;       /* the name has another address than the open connection */
    struct buf hosts;     /* the name once per address, for libpq */
    struct buf addresses; /* comma-separated; the last known when a name does not resolve */
    char *order[PROBE_MAX_ORDERS]; /* statements instead of the question */
    int norders;
    int iorder; /* the one being carried out */
    struct probe_report report;
};

static void probe_connect(struct probe *p);
static void dial(struct probe *p);
static void probe_step(struct probe *p);

void probe_forget_environment(void)
{
    PQconninfoOption *opts = PQconndefaults();
    const PQconninfoOption *o;

    for (o = opts; o != NULL && o->keyword != NULL; o++)
        if (o->envvar != NULL)
            unsetenv(o->envvar);
    PQconninfoFree(opts);
    unsetenv("PGSERVICEFILE");
    unsetenv("PGSYSCONFDIR");
}

/* Sockets */

static void on_watch_closed(struct io *io)
{
    mem_free(LIST_ENTRY(io, struct watch, io));
}

static void unwatch(struct probe *p)
{
    if (p->watch == NULL)
        return;
    p->watch->p = NULL;
    io_close(&p->watch->io, on_watch_closed);
    p->watch = NULL;
}

static void on_idle_readable(struct probe *p)
{
    if (PQconsumeInput(p->conn) == 1 && PQstatus(p->conn) == CONNECTION_OK)
        return;
    PQfinish(p->conn);
    p->conn = NULL;
    p->lost(p);
}

static void on_ready(struct io *io, int events)
{
    struct probe *p = LIST_ENTRY(io, struct watch, io)->p;

    if (p == NULL)
        return;
    unwatch(p);
    if (p->phase != PHASE_NONE) {
        probe_step(p);
        return;
    }
    on_idle_readable(p);
}

static void watch_conn(struct probe *p, int events)
{
    p->watch = mem_alloc_zero(sizeof *p->watch);
    p->watch->p = p;
    io_open(p->lp, &p->watch->io, PQsocket(p->conn), on_ready);
    io_want(&p->watch->io, events);
}

static void close_conn(struct probe *p)
{
    unwatch(p);
    if (p->conn != NULL)
        PQfinish(p->conn);
    p->conn = NULL;
}

/* The end of a probe */

static void on_finish(struct task *t)
{
    struct probe *p = LIST_ENTRY(t, struct probe, finish);

    if (p->conn != NULL && p->watch == NULL)
        watch_conn(p, IO_READ);
    p->done(p, &p->report);
}

static void end_probe(struct probe *p)
{
    timer_stop(p->lp, &p->deadline);
    timer_stop(p->lp, &p->connect_deadline);
    p->phase = PHASE_NONE;
    p->report.began_us = p->start_us;
    p->report.took_us = (int64_t)(uv_hrtime() / 1000) - p->start_us;
    if (p->report.answer != PROBE_COMPLETE || !p->target.keep_open)
        close_conn(p);
    task_post(p->lp, &p->finish);
}

static void fail(struct probe *p, enum probe_answer answer, const char *why)
{
    p->report.answer = answer;
    probe_class_copy_line(why, p->report.message, sizeof p->report.message);
    end_probe(p);
}

static void forget_lookup(struct probe *p)
{
    if (p->lookup != NULL) {
        p->lookup->p = NULL;
        (void)uv_cancel((uv_req_t *)&p->lookup->req); /* told to its callback, or too late */
    }
    p->lookup = NULL;
}

static void abandon(struct probe *p)
{
    forget_lookup(p);
    close_conn(p);
}

static void on_deadline(struct timer *t)
{
    struct probe *p = LIST_ENTRY(t, struct probe, deadline);
    bool resolving = p->phase == PHASE_RESOLVE;

    abandon(p);
    p->report.was_late = !resolving;
    fail(p, resolving ? PROBE_UNSURE : PROBE_FAILED,
        resolving ? "the host name was not resolved in time" : "no answer in time");
}

static void on_connect_deadline(struct timer *t)
{
    struct probe *p = LIST_ENTRY(t, struct probe, connect_deadline);

    abandon(p);
    p->report.was_late = true;
    fail(p, PROBE_FAILED, "no connection in time");
}

/* The question */

static void drop_orders(struct probe *p)
{
    int i;

    for (i = 0; i < p->norders; i++)
        mem_free(p->order[i]);
    p->norders = 0;
}

static const char *question(const struct probe *p)
{
    return p->norders > 0 ? p->order[p->iorder] : probe_query_text;
}

static void ask(struct probe *p)
{
    p->phase = PHASE_ASK;
    timer_stop(p->lp, &p->connect_deadline);
    PQsetErrorVerbosity(p->conn, PQERRORS_DEFAULT);
    if (PQsendQuery(p->conn, question(p)) == 1) {
        p->report.was_asked = true;
        probe_step(p);
        return;
    }
    close_conn(p);
    if (p->was_open && !p->retried) {
        p->retried = true;
        probe_connect(p);
        return;
    }
    fail(p, PROBE_FAILED, "the connection broke");
}

static bool take_order(struct probe *p, const PGresult *res)
{
    ExecStatusType status = PQresultStatus(res);

    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        return false;
    if (status == PGRES_TUPLES_OK && PQntuples(res) > 0)
        snprintf(p->report.value[p->iorder], PROBE_VALUE_BYTES, "%s", PQgetvalue(res, 0, 0));
    return true;
}

static void take_result(struct probe *p, PGresult *res)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);

    if (p->norders > 0 ? take_order(p, res) : probe_query_read(res, &p->report.facts) == 0) {
        p->report.answer = PROBE_COMPLETE;
        return;
    }
    p->report.answer = PROBE_ALIVE;
    snprintf(p->report.sqlstate, sizeof p->report.sqlstate, "%s", state == NULL ? "" : state);
    probe_class_copy_line(PQresultErrorMessage(res), p->report.message, sizeof p->report.message);
}

static void step_broken(struct probe *p)
{
    char why[PROBE_MSG_BYTES];

    probe_class_copy_line(PQerrorMessage(p->conn), why, sizeof why);
    close_conn(p);
    /* Was the connection already dead, or ended by an administrator, before we asked? Only a new
     * one tells. */
    if (p->was_open && !p->retried) {
        p->retried = true;
        probe_connect(p);
        return;
    }
    fail(p, PROBE_FAILED, why);
}

/* The next statement, if this one succeeded and there is one. */
static void step_answered(struct probe *p)
{
    if (p->report.answer == PROBE_COMPLETE)
        p->report.ndone = p->iorder + 1;
    if (p->norders == 0 || p->report.answer != PROBE_COMPLETE || p->iorder + 1 >= p->norders) {
        end_probe(p);
        return;
    }
    p->iorder++;
    p->report.answer = PROBE_FAILED; /* until it is answered */
    ask(p);
}

static void step_ask(struct probe *p)
{
    PGresult *res;
    int unsent = PQflush(p->conn);

    if (unsent == -1 || PQconsumeInput(p->conn) != 1) {
        step_broken(p);
        return;
    }
    while (!PQisBusy(p->conn)) {
        res = PQgetResult(p->conn);
        if (res == NULL) {
            step_answered(p);
            return;
        }
        take_result(p, res);
        PQclear(res);
        if (PQstatus(p->conn) != CONNECTION_OK) {
            step_broken(p);
            return;
        }
    }
    watch_conn(p, unsent == 1 ? IO_READ | IO_WRITE : IO_READ);
}

/* The connection */

/* The other attempt of "prefer", within the same deadlines. */
static bool go_on_in_clear(struct probe *p, ConnStatusType was)
{
    if (p->in_clear || !probe_tls_may_go_in_clear(p->target.sslmode, p->conn, was))
        return false;
    close_conn(p);
    p->in_clear = true;
    dial(p);
    return true;
}

static void step_connect(struct probe *p)
{
    ConnStatusType was = PQstatus(p->conn);

    switch (PQconnectPoll(p->conn)) {
    case PGRES_POLLING_READING:
        watch_conn(p, IO_READ);
        return;
    case PGRES_POLLING_WRITING:
        watch_conn(p, IO_WRITE);
        return;
    case PGRES_POLLING_OK:
        PQsetnonblocking(p->conn, 1);
        ask(p);
        return;
    default:
        if (go_on_in_clear(p, was))
            return;
        probe_class_of_conn(p->conn, &p->report);
        end_probe(p);
        return;
    }
}

static void probe_step(struct probe *p)
{
    if (p->phase == PHASE_CONNECT)
        step_connect(p);
    else
        step_ask(p);
}

static void drop_notice(void *arg, const PGresult *res)
{
}

/* libpq takes an empty value for none. */
static PGconn *open_conn(const struct probe *p)
{
    const struct probe_target *t = &p->target;
    bool by_name = p->addresses.len > 0;
    const char *key[TARGET_WORDS] = {"host", "hostaddr", "port", "user", "password", "dbname",
        "sslmode", "sslrootcert", "sslcrl", "sslcert", "sslkey", "gssencmode", "application_name",
        "client_encoding", probe_tls_min_key(), NULL};
    const char *value[TARGET_WORDS];
    char port[16];

    snprintf(port, sizeof port, "%d", t->port);
    value[0] = by_name ? p->hosts.data : t->host[0] == '\0' ? "/tmp" : t->host;
    value[1] = by_name ? p->addresses.data : "";
    value[2] = port;
    value[3] = t->user;
    value[4] = t->password;
    value[5] = t->database;
    value[6] = probe_tls_word(t->sslmode, t->sslrootcert, p->in_clear);
    value[7] = t->sslrootcert;
    value[8] = t->sslcrl;
    value[9] = t->sslcert;
    value[10] = t->sslkey;
    value[11] = "disable";
    value[12] = APP_NAME;
    value[13] = "UTF8";
    value[14] = t->ssl_min;
    value[15] = NULL;
    return PQconnectStartParams(key, value, 0);
}

static void dial(struct probe *p)
{
    p->conn = open_conn(p);
    if (p->conn == NULL || PQstatus(p->conn) == CONNECTION_BAD) {
        char why[PROBE_MSG_BYTES];

        probe_class_copy_line(
            p->conn == NULL ? "out of memory" : PQerrorMessage(p->conn), why, sizeof why);
        close_conn(p);
        fail(p, PROBE_FAILED, why);
        return;
    }
    PQsetErrorVerbosity(p->conn, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(p->conn, drop_notice, NULL);
    watch_conn(p, IO_WRITE);
}

static void probe_connect(struct probe *p)
{
    p->phase = PHASE_CONNECT;
    p->was_open = false;
    p->in_clear = false;
    if (p->target.connect_timeout_ms > 0)
        timer_start(p->lp, &p->connect_deadline, p->target.connect_timeout_ms);
    dial(p);
}

/* Names */

static void keep_addresses(struct probe *p, const struct addrinfo *first)
{
    const struct addrinfo *ai;
    char text[PROBE_ADDR_BYTES];
    int n = 0;

    buf_clear(&p->hosts);
    buf_clear(&p->addresses);
    for (ai = first; ai != NULL && n < MAX_ADDRESSES; ai = ai->ai_next) {
        if (getnameinfo(ai->ai_addr, ai->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST))
            continue;
        buf_printf(&p->hosts, "%s%s", n == 0 ? "" : ",", p->target.host);
        buf_printf(&p->addresses, "%s%s", n == 0 ? "" : ",", text);
        n++;
    }
    buf_put_byte(&p->hosts, '\0');
    buf_put_byte(&p->addresses, '\0');
}

/* A name that does not resolve says nothing about the server: its last known addresses serve. */
static void go_on_with_name(struct probe *p, int status)
{
    char why[PROBE_MSG_BYTES];

    if (p->addresses.len > 1) {
        probe_connect(p);
        return;
    }
    snprintf(why, sizeof why, "could not resolve \"%s\": %s", p->target.host, uv_strerror(status));
    fail(p, PROBE_UNSURE, why);
}

/* Is the open connection's address one of the name's? */
static bool has_its_address(const struct probe *p)
{
    const char *own = PQhostaddr(p->conn);
    const char *at = p->addresses.data;
    size_t n = own == NULL ? 0 : strlen(own);

    if (n == 0)
        return true; /* not known */
    for (;;) {
        if (strncmp(at, own, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
        at = strchr(at, ',');
        if (at == NULL)
            return false;
        at++;
    }
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *res)
{
    struct lookup *l = LIST_ENTRY(req, struct lookup, req);
    struct probe *p = l->p;
    bool is_aside = l->is_aside;

    mem_free(l);
    if (p != NULL) {
        p->lookup = NULL;
        if (status == 0)
            keep_addresses(p, res);
        if (!is_aside)
            go_on_with_name(p, status);
        else
            p->has_moved = status == 0 && p->conn != NULL && !has_its_address(p);
    }
    uv_freeaddrinfo(res);
}

static int look_up(struct probe *p, bool is_aside)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int rc;

    forget_lookup(p);
    p->lookup = mem_alloc_zero(sizeof *p->lookup);
    p->lookup->p = p;
    p->lookup->is_aside = is_aside;
    rc = uv_getaddrinfo(loop_uv(p->lp), &p->lookup->req, on_resolved, p->target.host, NULL, &hints);
    if (rc == 0)
        return 0;
    mem_free(p->lookup);
    p->lookup = NULL;
    return rc;
}

static void resolve(struct probe *p)
{
    int rc;

    p->phase = PHASE_RESOLVE;
    rc = look_up(p, false);
    if (rc != 0)
        fail(p, PROBE_UNSURE, uv_strerror(rc));
}

static bool has_name(const struct probe *p)
{
    const char *host = p->target.host;
    struct in6_addr address;

    return host[0] != '/' && host[0] != '\0' && inet_pton(AF_INET, host, &address) != 1 &&
           inet_pton(AF_INET6, host, &address) != 1;
}

/* The name is looked up for each probe, but no server has to wait for its name. What has come out
 * counts from the next probe on. */
static void look_aside(struct probe *p)
{
    if (p->lookup == NULL && has_name(p))
        (void)look_up(p, true);
}

/* What others call */

struct probe *probe_new(struct loop *lp, probe_done_fn *done, probe_lost_fn *lost, void *owner)
{
    struct probe *p = mem_alloc_zero(sizeof *p);

    p->lp = lp;
    p->done = done;
    p->lost = lost;
    p->owner = owner;
    timer_init(&p->deadline, on_deadline);
    timer_init(&p->connect_deadline, on_connect_deadline);
    task_init(&p->finish, on_finish);
    return p;
}

void *probe_owner(const struct probe *p)
{
    return p->owner;
}

static void stop(struct probe *p)
{
    timer_stop(p->lp, &p->deadline);
    timer_stop(p->lp, &p->connect_deadline);
    task_cancel(&p->finish);
    abandon(p);
    p->phase = PHASE_NONE;
}

void probe_set_target(struct probe *p, const struct probe_target *target)
{
    stop(p);
    buf_free(&p->hosts);
    buf_free(&p->addresses);
    probe_target_free(&p->target);
    probe_target_copy(&p->target, target);
}

bool probe_is_running(const struct probe *p)
{
    return p->phase != PHASE_NONE || !list_is_detached(&p->finish.node);
}

static void start(struct probe *p)
{
    unwatch(p);
    memset(&p->report, 0, sizeof p->report);
    p->start_us = (int64_t)(uv_hrtime() / 1000);
    p->retried = false;
    if (p->target.timeout_ms > 0)
        timer_start(p->lp, &p->deadline, p->target.timeout_ms);
    if (p->has_moved)
        close_conn(p); /* the name is another server's now */
    p->has_moved = false;
    if (p->conn != NULL) {
        p->was_open = true;
        look_aside(p);
        ask(p);
    } else if (p->target.host[0] == '/' || p->target.host[0] == '\0') {
        probe_connect(p);
    } else {
        resolve(p);
    }
}

void probe_start(struct probe *p)
{
    if (probe_is_running(p))
        return;
    drop_orders(p);
    start(p);
}

void probe_start_anew(struct probe *p)
{
    if (!probe_is_running(p))
        close_conn(p);
    probe_start(p);
}

void probe_start_orders(struct probe *p, const char *const sql[], int n)
{
    int i;

    if (probe_is_running(p))
        return;
    ASSERT(n > 0 && n <= PROBE_MAX_ORDERS && p->conn == NULL);
    drop_orders(p);
    for (i = 0; i < n; i++)
        p->order[i] = mem_strdup(sql[i]);
    p->norders = n;
    p->iorder = 0;
    start(p);
}

void probe_free(struct probe **pp)
{
    struct probe *p = *pp;

    if (p == NULL)
        return;
    stop(p);
    drop_orders(p);
    buf_free(&p->hosts);
    buf_free(&p->addresses);
    probe_target_free(&p->target);
    mem_free(p);
    *pp = NULL;
}
