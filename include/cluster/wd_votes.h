/* SPDX-License-Identifier: PostgreSQL
 * wd_votes.h: is a server lost, or is it only some pgpools that do not reach it? The votes of all,
 * counted by the one that leads.
 * Runs in: watchdog. Pure. */
#ifndef PGP_CLUSTER_WD_VOTES_H
#define PGP_CLUSTER_WD_VOTES_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/wd_state.h"

#define WD_VOTE_US INT64_C(5000000) /* a member that was silent for longer has no vote */

/* The settings that count here. */
struct wd_vote_rules {
    bool needs_consensus; /* failover_require_consensus */
    bool counts_again;    /* allow_multiple_failover_requests_from_node */
    bool half_is_enough;  /* enable_consensus_with_half_votes */
    const bool *voters;   /* per member: who is no voter (yet) is not counted; NULL: all are */
};

/* What one member says of the servers. */
struct wd_ballot {
    int64_t heard_us;               /* monotonic; 0: never */
    bool is_witness;                /* it sees no servers */
    uint64_t lost[2];               /* bit per server */
    uint16_t times[VIEW_MAX_NODES]; /* in how many ballots running it was lost */
};

struct wd_votes {
    struct wd_ballot of[WD_MAX_MEMBERS];
};

/* More than half of `nmembers`, or half of an even number with `half`. */
int wd_majority(int nmembers, bool half);
/* Takes in what `member` says. */
void wd_votes_take(struct wd_votes *v, int member, const uint64_t lost[2], int64_t now_us);
/* A witness was heard: it agrees with those who see the servers as long as none of them that can be
 * heard sees otherwise. */
void wd_votes_witness(struct wd_votes *v, int member, int64_t now_us);
/* `member` is gone: what it said counts no more. */
void wd_votes_forget(struct wd_votes *v, int member);
/* How many requests there are to count `node` as lost. */
int wd_votes_count(
    const struct wd_votes *v, const struct wd_vote_rules *rules, int node, int64_t now_us);
/* True when it is lost: the leader `self` finds so itself, and enough of `nmembers` do. */
bool wd_votes_decide(const struct wd_votes *v, const struct wd_vote_rules *rules, int node,
    int self, int nmembers, int64_t now_us);

/* wd_lifecheck_method = query: more than half of the `nothers` who are heard get no answer of it.
 */
bool wd_life_is_called(int ncallers, int nothers);
/* True when `self` is dead of all that are `called` so: not when it is the lowest of the members
 * and all are, for one has to go on. Who is no member (`fit`: may lead) does not count. */
bool wd_life_is_dead(const bool called[WD_MAX_MEMBERS], const bool fit[WD_MAX_MEMBERS], int self);

#endif
