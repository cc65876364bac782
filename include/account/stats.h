/* SPDX-License-Identifier: PostgreSQL
 * stats.h: what is counted of a client, in the row of its database (ipc/dbstats.h), and the clocks
 * of its present request. Runs in: workers. Counting is a plain store to memory of this worker: no
 * system call; `now_us` is that of loop_now_us, which is read once per turn of the loop.
 *
 * Who calls what, for any mode of pooling:
 *
 *   the login is over                     stats_on_login
 *   a Query, Execute or FunctionCall      stats_on_queries (counts, clock of the time-outs)
 *     arrived, before it is known
 *     whether there is a link for it
 *   the client has to wait for a link     stats_on_wait_begin
 *   the client was lent a link, whether   stats_on_link
 *     or not it had to wait
 *   the client waits no more, with        stats_on_wait_end (stats_on_link does it)
 *     nothing
 *   something goes to the server          stats_on_sent
 *   nothing is owed any more              stats_on_quiet, while the link that was its target
 *                                         still is
 *   bytes of the client, to the client    stats_on_bytes_in, stats_on_bytes_out
 *
 * All of them may be called for a client that has no row (before its login); they count nothing
 * then. */
#ifndef PGP_ACCOUNT_STATS_H
#define PGP_ACCOUNT_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/dbstats.h"

struct link;

/* The clocks of one client. Times are those of loop_now_us; 0: not going on. */
struct client_stats {
    struct dbstats_row *row;
    int64_t taken_us; /* the present request arrived */
    int64_t sent_us;  /* the first of it went to the server */
    int64_t wait_us;  /* > 0: waiting for a link since. < 0: for that of this request, so long */
    int64_t tx_us;    /* the transaction began */
};

/* Counts a login in `row`, that of the client's database. */
void stats_on_login(struct client_stats *s, struct dbstats_row *row, bool was_lent);
void stats_on_queries(struct client_stats *s, unsigned n, int64_t now_us);
/* Something of the present request goes to the server: starts the clock unless it runs. */
void stats_on_sent(struct client_stats *s, int64_t now_us);
/* Everything was answered by `target` (NULL: by nobody): stops the clocks, also that of the
 * transaction when it is over. Both end a wait that nobody ended. Returns how long that took at the
 * server; -1: it was not asked, or nobody counts. */
int64_t stats_on_quiet(struct client_stats *s, int64_t now_us, struct link *target);
/* A transaction is over of which its last link knew nothing. */
void stats_on_virtual_end(struct client_stats *s, int64_t now_us);
/* Waiting begins; again while waiting: nothing happens. Waiting ends. */
void stats_on_wait_begin(struct client_stats *s, int64_t now_us);
void stats_on_wait_end(struct client_stats *s, int64_t now_us);
/* A link was lent to the client. Counts the wait, 0 when there was none. */
void stats_on_link(struct client_stats *s, int64_t now_us);

/* The client keeps its link between transactions for reasons (ROWS_PIN) that are new. */
void stats_on_pins(struct client_stats *s, unsigned added);

static inline void stats_on_bytes_in(struct client_stats *s, size_t n)
{
    if (s->row != NULL)
        dbstats_add(&s->row->bytes_in, n);
}

static inline void stats_on_bytes_out(struct client_stats *s, size_t n)
{
    if (s->row != NULL)
        dbstats_add(&s->row->bytes_out, n);
}

#endif
