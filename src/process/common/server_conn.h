/* SPDX-License-Identifier: PostgreSQL
 * server_conn.h: a connection by libpq to a server, opened and watched without ever blocking.
 * Runs in: control, invalidator. Host names are resolved off the loop. What is sent and read on the
 * open connection is the caller's business. */
#ifndef PGP_PROCESS_SERVER_CONN_H
#define PGP_PROCESS_SERVER_CONN_H

#include <libpq-fe.h>

#include "base/err.h"
#include "probe/probe.h"

struct server_conn;

/* The connection is open and does not block; or, later, its socket is ready as was asked for. May
 * call any function here but server_conn_free. */
typedef void server_conn_fn(struct server_conn *c);
/* The connection could not be opened, or server_conn_fail was called; never from within a function
 * here. It is closed already. May call any function here. */
typedef void server_conn_failed_fn(struct server_conn *c, const struct err *err);

struct server_conn_how {
    const char *name;    /* application_name */
    const char *options; /* start-up options, empty: none */
    bool is_replication; /* logical, of the target's database */
};

/* Makes one, closed; owned by the caller. `how` and what it points to must outlive it. */
struct server_conn *server_conn_new(struct loop *lp, const struct server_conn_how *how,
    server_conn_fn *on_open, server_conn_fn *on_ready, server_conn_failed_fn *on_failed,
    void *owner);
void *server_conn_owner(const struct server_conn *c);
/* Opens it to `to`, which is copied; its connect_timeout_ms limits that. Must be closed. */
void server_conn_open(struct server_conn *c, const struct probe_target *to);
bool server_conn_is_open(const struct server_conn *c);
/* libpq's, while it is open. */
PGconn *server_conn_pq(const struct server_conn *c);
/* on_ready is to be called when the socket is ready (IO_...), again and again. */
void server_conn_want(struct server_conn *c, int events);
/* The connection is of no use: closes it, on_failed is told. Without a SQLSTATE the reason is what
 * libpq says last. */
void server_conn_fail(struct server_conn *c, const char *sqlstate, const char *text);
/* Closes it; nobody is told anything more. */
void server_conn_close(struct server_conn *c);
/* Ends all and clears *pc. */
void server_conn_free(struct server_conn **pc);

#endif
