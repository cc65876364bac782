/* SPDX-License-Identifier: PostgreSQL
 * client_lost_int.h: a client whose transaction was lost with a link, between two statements, and
 * who does not know yet. */
#ifndef PGP_SESSION_CLIENT_LOST_INT_H
#define PGP_SESSION_CLIENT_LOST_INT_H

#include "client_feed_int.h"

/* What it is told. */
void client_lost_err(struct err *err);
/* In the server's `words`, when these are of its time-out; NULL: it left none. */
void client_lost_put(const struct err *words, struct buf *out);
/* The server has ended the session because of a time-out of its own. */
bool client_lost_by_timeout(const struct err *words);
/* The same for a client with a link of its own, by its next message. */
bool client_lost_is_untold(const struct client *c);
/* That message is at `p`. FEED_LOCAL: the client has its answer, and goes on at *next, or when that
 * is NULL behind the message. FEED_PARK: it has to wait. FEED_AGAIN: go on with it as with any. */
enum feed_step client_lost_message(
    struct client *c, const char *p, const char *end, const char **next);
/* COMMIT or ROLLBACK, or whatever else ends it, in either protocol: SQL_TX_NONE when the message
 * does something else, or more. `w` is filled when it is of the extended protocol. */
struct client_word;
enum sql_tx_op client_lost_ends(
    struct client *c, const char *p, const char *end, struct client_word *w);

#endif
