/* SPDX-License-Identifier: PostgreSQL
 * leg_int.h: clients that wait for a primary; what is sent again. */
#ifndef PGP_SESSION_LEG_INT_H
#define PGP_SESSION_LEG_INT_H

#include "sstate_int.h"

/* leg_wait.c: there is no primary */
void leg_wait_init(struct sessions *ss);
/* The cluster has changed: whoever waits looks at once. */
void leg_wait_look(struct sessions *ss);
enum feed_step leg_wait_for_primary(struct client *c);

/* leg_again.c */
/* What is kept of the exchange, to be sent once more; the caller owns it. */
struct buf leg_take_retry(struct client *c);
/* The link that was to put right what the client believes will not: the next one does. */
void leg_owe_parameters(struct sstate *s);

#endif
