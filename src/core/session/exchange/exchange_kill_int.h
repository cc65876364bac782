/* SPDX-License-Identifier: PostgreSQL
 * exchange_kill_int.h: an order about another client, given by its number: the server is asked, in
 * the session that gives it, whether it may. */
#ifndef PGP_SESSION_EXCHANGE_KILL_INT_H
#define PGP_SESSION_EXCHANGE_KILL_INT_H

#include <stdbool.h>

#include "base/slice.h"

struct admin_kill;
struct client;
struct errmsg;

/* True: the server has said, of what is at the front of the client's input, that it may. False: it
 * is being asked, and the client is to be parked; it is told when it may not. `user` is the role of
 * the client that is meant. Nothing is owed by the client's link, and its transaction has not
 * failed. */
bool exchange_kill_may(struct client *c, const struct admin_kill *k, struct slice user);
/* True when that is being asked, or about to be. */
bool exchange_kill_is_asking(const struct client *c);

/* exchange_link.c: settings that had to come first are there. False: nothing is to be asked. */
bool exchange_kill_ask_owed(struct client *c);
/* A row, or an error, in answer to the question. */
void exchange_kill_on_row(struct client *c, struct slice body);
void exchange_kill_on_error(struct client *c, const struct errmsg *m);
/* The server's answer is there. May end the client. */
void exchange_kill_asked(struct client *c);
/* An answer that nobody has fetched does not count for what follows. */
void exchange_kill_forget(struct client *c);

#endif
