/* SPDX-License-Identifier: PostgreSQL
 * failover_int.h: between the parts of failover. */
#ifndef PGP_FAILOVER_INT_H
#define PGP_FAILOVER_INT_H

#include "cluster/failover.h"
#include "decide_int.h"

#define FAILOVER_ASK_US INT64_C(100000)

/* failover.c */
void failover_enter(struct failover *f, struct decide *d, enum view_phase phase, int64_t now_us);
/* Ends what goes on: well when `target` became the primary, else *why says why not. */
void failover_end(struct failover *f, struct decide *d, bool well, const char *why, int64_t now_us);
/* FAILOVER_DO_ASK when it is time for it, else FAILOVER_DO_NOTHING. */
struct failover_do failover_ask(struct failover *f, int64_t now_us);
/* Something with an outcome, about the node and the target of the view. */
struct failover_do failover_begin(
    struct failover *f, const struct decide *d, enum failover_do_type type);
/* The servers `a` and `b` may be of one cluster. */
static inline bool failover_is_kin(uint64_t a, uint64_t b)
{
    return a == 0 || b == 0 || a == b;
}

/* failover_switch.c: the phases of a switchover by SQL. */
struct failover_do failover_switch_step(struct failover *f, struct decide *d, int64_t now_us);
void failover_switch_done(
    struct failover *f, struct decide *d, const struct failover_outcome *o, int64_t now_us);
/* Gives up: the old primary stays. */
void failover_switch_back(struct failover *f, struct decide *d, const char *why, int64_t now_us);

/* failover_beside.c: commands and following beside. */
struct failover_do failover_beside_step(struct failover *f, struct decide *d, int64_t now_us);
void failover_beside_add(struct failover *f, struct decide *d, enum hook_kind hook, int node,
    const struct decide_event *e);

#endif
