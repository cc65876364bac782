/* SPDX-License-Identifier: PostgreSQL
 * failover_int.h: between the parts of failover. */
#ifndef PGP_FAILOVER_INT_H
#define PGP_FAILOVER_INT_H

#include "cluster/failover.h"
#include "decide_int.h"

#define FAILOVER_ASK_US      INT64_C(100000)
#define FAILOVER_PROMOTED_US INT64_C(30000000) /* a promoted server has shown itself by then */

/* All were lost at once: a restart of everything, or our own network. Whoever comes back first is
 * hardly the one that has received most. */
#define FAILOVER_OUTAGE_US INT64_C(60000000)

/* failover_word.c: what the pgpools of a watchdog cluster let this one do. */
/* Something may be done about a lost node: nobody else does it. */
bool failover_may(const struct failover *f, int node);
/* failover_may, and it may be begun at this time, too. */
bool failover_may_begin(const struct failover *f, int node);
/* The one that led before may have told somebody to be the primary who does not answer now: nobody
 * else is told for a while. */
bool failover_waits_for_former(struct failover *f, struct decide *d, int64_t now_us);
/* Who is to take the place of the lost one: whom the former leader had chosen, else the best. */
int failover_choose(const struct failover *f, const struct decide *d);
/* Before each step: a lost primary whose place another one may be about to take is none, though it
 * come back, until that one has had its time to show up. */
void failover_bar_replaced(struct failover *f, struct decide *d, int64_t now_us);
/* `target` may be told to be the primary: there is no log that has to say so first, or it does. */
bool failover_is_named(const struct failover *f, const struct decide *d, int target);
/* Begins with a primary that this pgpool has never seen, when all agree on it and on its loss. */
void failover_take_up(struct failover *f, struct decide *d, int64_t now_us);
/* The one that was told to be the primary before this pgpool began has not become it: the choice is
 * made anew, when the lost one and the others had time to come back. */
void failover_begin_anew(struct failover *f, struct decide *d, int64_t now_us);

/* failover.c */
/* Standby `node` can take the place of `lost`: it has answered since this phase began. */
bool failover_is_ready(const struct decide *d, int node, int lost);
/* The primary is lost, as *e tells: it is to be confirmed. */
void failover_confirm(struct failover *f, struct decide *d, const struct decide_event *e);
/* Says once why nobody is promoted yet. */
void failover_tell_waiting(struct failover *f, struct decide *d, const char *why, int64_t now_us);
void failover_enter(struct failover *f, struct decide *d, enum view_phase phase, int64_t now_us);
/* Ends what goes on: well when `target` became the primary, else *why says why not. */
void failover_end(struct failover *f, struct decide *d, bool well, const char *why, int64_t now_us);
/* FAILOVER_DO_ASK when it is time for it, else FAILOVER_DO_NOTHING. */
struct failover_do failover_ask(struct failover *f, int64_t now_us);
/* Has `target` promoted, by command or SQL; VIEW_NO_NODE: there is nobody, but the command is run.
 */
struct failover_do failover_promote(
    struct failover *f, struct decide *d, int target, int64_t now_us);
/* Something with an outcome, about the node and the target of the view. */
struct failover_do failover_begin(
    struct failover *f, const struct decide *d, enum failover_do_type type);
/* The servers `a` and `b` may be of one cluster. */
static inline bool failover_is_kin(uint64_t a, uint64_t b)
{
    return a == 0 || b == 0 || a == b;
}

/* A server may be about to become the primary, and nobody can stop it: what it is to replace must
 * not write. */
static inline bool failover_is_pending(const struct decide *d, int64_t now_us)
{
    const struct view_switch *sw = &d->view.sw;

    return sw->is_asked_for && sw->pending_us != 0 &&
           now_us - sw->pending_us < FAILOVER_PROMOTED_US;
}

/* A set of nodes, as it is kept in the view. */
static inline void failover_put(uint64_t set[2], int node, bool in)
{
    uint64_t bit = UINT64_C(1) << (node % 64);

    set[node / 64] = in ? set[node / 64] | bit : set[node / 64] & ~bit;
}

/* failover_lead.c: the other standbys in a switchover. */
/* A switchover begins, or is over well: nobody is away from where he belongs. */
void failover_lead_forget(struct decide *d);
/* VIEW_PHASE_LEAD: the next one that is to leave the old primary; after the last one the phase
 * ends. */
struct failover_do failover_lead_step(struct failover *f, struct decide *d, int64_t now_us);
/* Returns why the switchover cannot go on, NULL when it can. */
const char *failover_lead_done(
    struct failover *f, struct decide *d, const struct failover_outcome *o, int64_t now_us);
/* True when the standby to be promoted has all that those have that left the old primary. */
bool failover_lead_is_ahead(const struct decide *d);
/* After a switchover that was taken back: one that still has to be led back to the primary, or
 * VIEW_NO_NODE. */
int failover_lead_back(const struct failover *f, const struct decide *d, int64_t now_us);

/* failover_stream.c: a standby that streams from the primary that does not answer us, or
 * VIEW_NO_NODE: what receives is fed by other standbys, as far as these say. */
int failover_find_streaming(const struct decide *d);

/* failover_switch.c: the phases of a switchover by SQL. */
struct failover_do failover_switch_step(struct failover *f, struct decide *d, int64_t now_us);
void failover_switch_done(
    struct failover *f, struct decide *d, const struct failover_outcome *o, int64_t now_us);
/* The fence is out of the settings of `node`; with `has_reloaded` nothing is left of it. */
void failover_unfenced(struct decide *d, int node, bool has_reloaded);
/* Gives up: the old primary stays. */
void failover_switch_back(struct failover *f, struct decide *d, const char *why, int64_t now_us);

/* failover_beside.c: commands and following beside. */
struct failover_do failover_beside_step(struct failover *f, struct decide *d, int64_t now_us);
void failover_beside_add(struct failover *f, struct decide *d, enum hook_kind hook, int node,
    const struct decide_event *e);
/* The commands about `node` that wait are not run. */
void failover_beside_drop(struct failover *f, struct decide *d, int node);

#endif
