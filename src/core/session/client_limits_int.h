/* SPDX-License-Identifier: PostgreSQL
 * client_limits_int.h: the time-outs of a client: query_timeout, query_wait_timeout,
 * query_wait_notify, idle_transaction_timeout, transaction_timeout, client_idle_limit, and what
 * DRAIN asks of it. Runs in: workers.
 *
 * A client has one timer. It is armed for the nearest deadline that may come; a request that ends
 * before does not touch it. When it fires the true deadline is worked out from the clocks in
 * client_stats_int.h; if it has not come yet, the timer is armed again. So a statement costs a
 * comparison, and nothing when no time-out is set.
 *
 * Who calls what:
 *
 *   the login is over                    client_limits_on_login: true: go on. false: the client was
 *                                        sent away (DRAIN)
 *   a statement arrived or was sent,     client_limits_on_busy (client_note_statement, and
 *     or the client waits for a link       client_row_state with CLIENT_STATE_WAITING do it)
 *   nothing is owed any more             client_limits_on_quiet (client_note_idle does it)
 *   the client's timer fired, in phase   client_limits_on_timer
 *     LOGIN while it waits for a link, or in phase ACTIVE
 *   pgpool.conf was read again           client_limits_on_reload
 *   nothing is owed any more, and the    client_limits_must_leave: true: end the session with 57P01
 *     client is between transactions       (client_after_quiet asks)
 *
 * A client that waits for a link has stats.wait_us set: call stats_on_wait_begin before. The
 * session is ended with client_end: a request in the pool's queue must be taken back by that. */
#ifndef PGP_SESSION_CLIENT_LIMITS_INT_H
#define PGP_SESSION_CLIENT_LIMITS_INT_H

#include <stdbool.h>
#include <stdint.h>

struct client;

/* Part of struct client. */
struct client_limits {
    int64_t due_us; /* when the timer is going to fire; 0: it is not armed by this file */
};

/* The session begins; see above. */
bool client_limits_on_login(struct client *c);
/* A request began: a deadline may have come nearer. */
void client_limits_on_busy(struct client *c);
/* The client is idle, in a transaction or not. */
void client_limits_on_quiet(struct client *c);
/* Ends the session when a deadline has passed; else arms the timer for the next one. */
void client_limits_on_timer(struct client *c);
/* Time-outs may be other ones now: they hold for what goes on already, too. */
void client_limits_on_reload(struct client *c);
/* Lets the timer look at an idle client at once. */
void client_limits_poke(struct client *c);
/* True when the client has to go now, between two transactions. */
bool client_limits_must_leave(const struct client *c);

#endif
