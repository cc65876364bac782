/* SPDX-License-Identifier: PostgreSQL
 * share_wait_int.h: clients that wait for a primary, or for a link. */
#ifndef PGP_SESSION_SHARE_WAIT_INT_H
#define PGP_SESSION_SHARE_WAIT_INT_H

#include "share_int.h"

/* share_wait.c: there is no primary */
void share_wait_init(struct sessions *ss);
/* The cluster has changed: whoever waits looks at once. */
void share_wait_look(struct sessions *ss);
enum feed_step share_wait_for_primary(struct client *c);
void share_stop_waiting(struct client *c);
/* The client stands in a pool's queue: should the cluster change, it may be the wrong one. It does
 * no longer. */
void share_start_queueing(struct client *c);
void share_stop_queueing(struct client *c);
/* A standby is to let us in, within a while; it has, or will not. */
void share_start_opening(struct client *c);
void share_stop_opening(struct client *c);

#endif
