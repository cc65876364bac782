/* SPDX-License-Identifier: PostgreSQL
 * exchange_judge_int.h: the server is asked, in a session, whether that may do what it wants
 * (session/answering.h). What its link says to that. */
#ifndef PGP_SESSION_EXCHANGE_JUDGE_INT_H
#define PGP_SESSION_EXCHANGE_JUDGE_INT_H

#include <stdbool.h>

struct client;

/* Settings that had to come first are there. False: nothing is to be asked. */
bool exchange_judge_ask_owed(struct client *c);
/* The server's answer is there. May end the client. */
void exchange_judged(struct client *c);

#endif
