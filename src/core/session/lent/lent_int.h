/* SPDX-License-Identifier: PostgreSQL
 * lent_int.h: the link that a client of session mode keeps, and its place in a line. */
#ifndef PGP_SESSION_LENT_INT_H
#define PGP_SESSION_LENT_INT_H

#include "sstate_int.h"

/* lent_kept.c: in session mode the link where writes go is the client's until the goodbye */
/* What was done on `link`, which died, is lost with it: as sstate_is_tied. */
bool lent_is_tied_to(const struct client *c, const struct link *link);
/* What ties the session keeps its reads at home, too: nobody knows what it has set. */
bool lent_stays(const struct sstate *s);
/* Some of these pins are known to be on one link: reads that do not name what is there may leave.
 */
bool lent_is_of_kept(uint32_t pins);
/* `link` was lent to the client for `node`: it is kept if it is where writes go. */
void lent_kept_note(struct client *c, struct link *link);
/* The kept link when it is to be used for `node`; NULL: another one is to be borrowed. */
struct link *lent_kept_take(struct client *c, int node);
/* An exchange begins elsewhere while the kept link is amidst a message to the client: not yet. */
bool lent_kept_is_speaking(const struct client *c);
/* The loan of another link is over, or the kept one was aside: what it said meanwhile is told. */
void lent_kept_tell(struct client *c);
/* Bytes of the kept link while the client has none, or another one. */
void lent_kept_on_bytes(struct client *c, struct link *link, const char *p, size_t n);
/* The kept link dies while it is at rest. */
void lent_kept_on_lost(struct client *c, struct link *link, const struct err *err);
/* The kept link is the client's no longer: given back, or cleaned when something may be left on it;
 * with the end of the sequence if it is in the midst of one. */
void lent_kept_return(struct client *c);
/* The client goes. A link on which nothing was asked since its login needs no cleaning. */
void lent_kept_release(struct client *c);

/* lent_queue.c: places in lines. It waits for a primary no longer. */
void lent_stop_waiting(struct client *c);
/* The client stands in a pool's queue: should the cluster change, it may be the wrong one. */
void lent_start_queueing(struct client *c);
/* A standby is to let us in, within a while; it has, or will not. */
void lent_start_opening(struct client *c);
void lent_stop_opening(struct client *c);

#endif
