/* SPDX-License-Identifier: PostgreSQL
 * client_stats_int.h: what is counted of a client, in the row of its database (ipc/dbstats.h), and
 * the clock of its present request. Runs in: workers. Counting is a plain store to memory of this
 * worker: no system call; the time is read once per turn of the loop (loop_now_us).
 *
 * Who calls what, for any mode of pooling:
 *
 *   the login is over                     client_stats_on_login
 *   a Query, Execute or FunctionCall      client_stats_on_query (counts, clock of the time-outs)
 *     arrived, before it is known
 *     whether there is a link for it
 *   the client has to wait for a link     client_stats_on_wait_begin
 *   the client was lent a link, whether   client_stats_on_link
 *     or not it had to wait
 *   the client waits no more, with        client_stats_on_wait_end (client_stats_on_link does it)
 *     nothing
 *   something goes to the server          client_stats_on_sent (client_note_statement does it)
 *   nothing is owed any more              client_stats_on_quiet, while c->target is still the link
 *                                         (client_note_idle does it)
 *   bytes of the client, to the client    client_stats_on_bytes_in, client_stats_on_bytes_out
 *   the reason for a pin changed          client_row_pin
 *
 * All of them may be called for a client that has no row (before its login); they do nothing. */
#ifndef PGP_SESSION_CLIENT_STATS_INT_H
#define PGP_SESSION_CLIENT_STATS_INT_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/dbstats.h"

/* What is counted per node (SHOW POOL_BACKEND_STATS). */
struct client;

/* Part of struct client. Times are those of loop_now_us; 0: not going on. */
struct client_stats {
    struct dbstats_row *row;
    int64_t taken_us; /* the present request arrived */
    int64_t sent_us;  /* the first of it went to the server */
    int64_t wait_us;  /* > 0: waiting for a link since. < 0: for that of this request, so long */
    int64_t tx_us;    /* the transaction began */
};

/* Finds the row of the client's database and counts a login. */
void client_stats_on_login(struct client *c);
/* Something of the present request goes to the server: starts the clock unless it runs. */
void client_stats_on_sent(struct client *c);
/* Everything was answered: stops the clocks, also that of the transaction when it is over. Both end
 * a wait that nobody ended. */
void client_stats_on_quiet(struct client *c);
/* A transaction is over of which its last link knew nothing. */
void client_stats_on_virtual_end(struct client *c);
/* Waiting begins; again while waiting: nothing happens. Waiting ends. */
void client_stats_on_wait_begin(struct client *c);
void client_stats_on_wait_end(struct client *c);
/* A link was lent to the client. Counts the wait, 0 when there was none. */
void client_stats_on_link(struct client *c);

static inline void client_stats_on_bytes_in(struct client_stats *s, size_t n)
{
    if (s->row != NULL)
        dbstats_add(&s->row->bytes_in, n);
}

static inline void client_stats_on_bytes_out(struct client_stats *s, size_t n)
{
    if (s->row != NULL)
        dbstats_add(&s->row->bytes_out, n);
}

#endif
