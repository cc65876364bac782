/* SPDX-License-Identifier: PostgreSQL
 * stmts.h: what each statement does (ipc/stmtstats.h), as clients run them. Runs in: workers.
 *
 * An exchange is counted for one statement: the one whose text was sent or bound last in it, with
 * the number of Queries and Executes in the exchange as its calls. Texts are told when they are
 * sent, and where a statement that is known is bound. Must never: cost anything while
 * track_statements is off: there is no struct stmts then.
 *
 * What is kept of a client while something is under way stands in a table by the number of its row:
 * clients that are idle cost no memory for it. */
#ifndef PGP_ACCOUNT_STMTS_H
#define PGP_ACCOUNT_STMTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "ipc/stmtstats.h"

struct arena;
struct dbstats_row;
struct pool;
struct rows_worker;
struct shm;
struct sql_cache;

/* The statement of one client, while something is under way. */
struct client_stmt {
    stmtstats_handle handle;  /* what was sent or bound last; stays, for it may be bound unnamed */
    struct stmtstats_use use; /* so far; took_us is not told before the end */
};

/* What a worker gives; all of it lives longer. */
struct stmts_worker {
    struct shm *shm;
    struct sql_cache *sql_cache;
    struct arena *scratch;
    const struct rows_worker *range; /* rows of its clients */
    int ordinal;
};

struct stmts {
    struct stmts_worker of;
    struct stmtstats_book *book;
    struct client_stmt of_row[];
};

/* Where a statement runs: the row of the client's database, and the pool of the link. */
struct stmts_place {
    struct dbstats_row *row;
    const struct pool *pool;
};

/* NULL: they cannot be counted. */
struct stmts *stmts_new(const struct stmts_worker *of);
void stmts_free(struct stmts **s);
/* Nothing is under way: they are counted from now on. */
void stmts_begin(struct stmts *s);
/* The statement of the client in that row. */
struct client_stmt *stmts_of(struct stmts *s, int32_t row);

/* A text is sent. */
void stmts_text(struct stmts *s, struct client_stmt *st, struct stmts_place at, struct slice sql);
/* One that is known is bound; `known` is kept with it. False: as far as `known` goes it is not
 * known: stmts_text is to be told its text. */
bool stmts_is_known(
    struct stmts *s, struct client_stmt *st, struct stmts_place at, stmtstats_handle known);
/* A statement was answered from the query cache. */
void stmts_hit(struct stmts *s, struct stmts_place at, struct slice sql);
/* All is answered; took_us < 0: by ourselves. */
void stmts_end(struct stmts *s, struct client_stmt *st, int64_t took_us);

#endif
