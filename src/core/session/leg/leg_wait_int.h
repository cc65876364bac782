/* SPDX-License-Identifier: PostgreSQL
 * leg_wait_int.h: clients that wait for a primary, or for a link. */
#ifndef PGP_SESSION_LEG_WAIT_INT_H
#define PGP_SESSION_LEG_WAIT_INT_H

#include "sstate_int.h"

/* leg_wait.c: there is no primary */
void leg_wait_init(struct sessions *ss);
/* The cluster has changed: whoever waits looks at once. */
void leg_wait_look(struct sessions *ss);
enum feed_step leg_wait_for_primary(struct client *c);
void lent_stop_waiting(struct client *c);
/* The client stands in a pool's queue: should the cluster change, it may be the wrong one. It does
 * no longer. */
void lent_start_queueing(struct client *c);
void lent_stop_queueing(struct client *c);
/* A standby is to let us in, within a while; it has, or will not. */
void lent_start_opening(struct client *c);
void lent_stop_opening(struct client *c);

#endif
