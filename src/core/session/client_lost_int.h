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

#endif
