/* SPDX-License-Identifier: PostgreSQL
 * client_lost_int.h: a client whose transaction was lost with a link, between two statements, and
 * who does not know yet. */
#ifndef PGP_SESSION_CLIENT_LOST_INT_H
#define PGP_SESSION_CLIENT_LOST_INT_H

#include "feed_int.h"

/* What it is told, with what the link had said when it was lost (NULL: nothing is known): as its
 * DETAIL, or in its place, when it is the server's word about a time-out of its own. */
void client_lost_err(const struct err *words, struct err *err);
void client_lost_put(const struct err *words, struct buf *out);

#endif
