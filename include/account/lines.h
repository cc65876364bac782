/* SPDX-License-Identifier: PostgreSQL
 * lines.h: lines of the log about clients, in pgpool-II's words: whose they are, who comes and who
 * goes, what took long. Runs in: workers. */
#ifndef PGP_ACCOUNT_LINES_H
#define PGP_ACCOUNT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hot.h"
#include "base/log.h"
#include "base/slice.h"
#include "ipc/rows.h"
#include "parser/sqlcomment.h"

struct arena;
struct conf;
struct conf_session;
struct loop;

/* The lines between enter and leave are about one client: its names in log_line_prefix, its own
 * log_min_messages and log_error_verbosity. */
struct client_log_scope {
    struct log_context ctx;
    const struct log_context *before;
    char user[ROWS_NAME_BYTES];
    char database[ROWS_NAME_BYTES];
    char application[128];
    char host[64];
    char fingerprint[17];
    struct sql_trace trace;
};

/* Whose lines they are. */
struct lines_whose {
    const struct client_row *row;        /* NULL: it has none */
    const struct row_names *names;       /* empty ones before the login */
    const struct conf_session *settings; /* its settings; NULL: those of all */
    const uint64_t *fingerprint;         /* of what it runs, for jsonlog; NULL: not known */
    const struct sql_trace *trace;       /* what the comment of that says; NULL: nothing */
};

/* What is logged from now on is about that one; until client_log_leave. */
void lines_enter(struct client_log_scope *scope, const struct lines_whose *of);
/* The lines that follow are about a statement that is not under way yet. */
void lines_set_text(struct client_log_scope *scope, struct arena *scratch, struct slice sql);
void client_log_leave(struct client_log_scope *scope);

/* The address of a client that has a row, or "[local]". */
void lines_host(const struct client_row *row, char *out, size_t size);
/* Somebody comes, from `host`. Somebody goes, after `us` (log_disconnections): `of` has a row.
 * With `loop` (log_hostname) the name of the address is looked up for the line, which comes later
 * then. */
void lines_connection(struct loop *loop, const struct client_row *row, const char *host);
void lines_disconnection(struct loop *loop, const struct lines_whose *of, int64_t us);

/* How long an exchange took: until something was sent, of that until there was a link, and at the
 * server of `node`. */
struct lines_took {
    int64_t before_us;
    int64_t waited_us;
    int64_t server_us;
    int node;
};

/* log_min_duration_statement and its like: is there a line? `sample` is the worker's. */
COLD bool lines_is_slow(const struct conf *conf, double *sample, int64_t took_us);
COLD void lines_duration(const struct lines_took *took, struct slice sql);

#endif
