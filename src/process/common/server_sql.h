/* SPDX-License-Identifier: PostgreSQL
 * server_sql.h: one statement after the other on a server, without ever blocking.
 * Runs in: control. Host names are resolved off the loop; the connection stays open from one
 * statement to the next. */
#ifndef PGP_PROCESS_SERVER_SQL_H
#define PGP_PROCESS_SERVER_SQL_H

#include "base/err.h"
#include "probe/probe.h"

struct server_sql;

/* Told how a statement ended, never from within server_sql_run: `value` is its first value ("" when
 * there is none), or NULL when it failed, as *err says. May call any function here. */
typedef void server_sql_done_fn(struct server_sql *q, const char *value, const struct err *err);

/* Makes one; owned by the caller. */
struct server_sql *server_sql_new(struct loop *lp, server_sql_done_fn *done, void *owner);
void *server_sql_owner(const struct server_sql *q);
/* Runs `sql` on the server `to`, which is copied; its timeouts are for opening the connection. 0 as
 * `limit_ms` means that the statement may take for ever: a server that is gone is found by
 * keep-alives. Nothing else may run. */
void server_sql_run(
    struct server_sql *q, const struct probe_target *to, const char *sql, int64_t limit_ms);
/* Closes the connection; the next statement opens another. A statement that runs is given up
 * without a word; it goes on at the server unless it is cancelled, which is asked for. */
void server_sql_close(struct server_sql *q);
/* Ends all and clears *pq. */
void server_sql_free(struct server_sql **pq);

#endif
