/* SPDX-License-Identifier: PostgreSQL
 * wd_votes.c: counts the votes about a server.
 * Runs in: watchdog. Pure. The one that leads acts, so it has to find the server lost itself: it
 * would promote a second primary beside one that it sees working. */
#include "config.h"

#include "cluster/wd_votes.h"

#include <string.h>

int wd_majority(int nmembers, bool half)
{
    return half && nmembers % 2 == 0 && nmembers > 0 ? nmembers / 2 : nmembers / 2 + 1;
}

bool wd_life_is_called(int ncallers, int nothers)
{
    return ncallers * 2 > nothers;
}

bool wd_life_is_dead(const bool called[WD_MAX_MEMBERS], const bool fit[WD_MAX_MEMBERS], int self)
{
    int i;

    for (i = 0; i < WD_MAX_MEMBERS; i++)
        if (i != self && fit[i] && (!called[i] || i < self))
            return called[self];
    return false;
}

static bool is_valid(const struct wd_ballot *b, int64_t now_us)
{
    return b->heard_us != 0 && now_us - b->heard_us <= WD_VOTE_US;
}

static bool is_lost(const struct wd_ballot *b, int node, int64_t now_us)
{
    return is_valid(b, now_us) && !b->is_witness && view_has_node(b->lost, node);
}

void wd_votes_take(struct wd_votes *v, int member, const uint64_t lost[2], int64_t now_us)
{
    struct wd_ballot *b;
    int i;

    if (member < 0 || member >= WD_MAX_MEMBERS)
        return;
    b = &v->of[member];
    for (i = 0; i < VIEW_MAX_NODES; i++) {
        if (!view_has_node(lost, i))
            b->times[i] = 0;
        else if (b->times[i] < UINT16_MAX)
            b->times[i]++;
    }
    memcpy(b->lost, lost, sizeof b->lost);
    b->heard_us = now_us;
    b->is_witness = false;
}

void wd_votes_witness(struct wd_votes *v, int member, int64_t now_us)
{
    wd_votes_forget(v, member);
    if (member < 0 || member >= WD_MAX_MEMBERS)
        return;
    v->of[member].is_witness = true;
    v->of[member].heard_us = now_us;
}

void wd_votes_forget(struct wd_votes *v, int member)
{
    if (member >= 0 && member < WD_MAX_MEMBERS)
        memset(&v->of[member], 0, sizeof v->of[member]);
}

int wd_votes_count(
    const struct wd_votes *v, const struct wd_vote_rules *rules, int node, int64_t now_us)
{
    bool all_agree = true;
    int nwitnesses = 0;
    int n = 0;
    int i;

    for (i = 0; i < WD_MAX_MEMBERS; i++) {
        const struct wd_ballot *b = &v->of[i];

        if ((rules->voters != NULL && !rules->voters[i]) || !is_valid(b, now_us))
            continue;
        if (b->is_witness)
            nwitnesses++;
        else if (is_lost(b, node, now_us))
            n += rules->counts_again ? b->times[node] : 1;
        else
            all_agree = false;
    }
    return n > 0 && all_agree ? n + nwitnesses : n;
}

bool wd_votes_decide(const struct wd_votes *v, const struct wd_vote_rules *rules, int node,
    int self, int nmembers, int64_t now_us)
{
    int need = rules->needs_consensus ? wd_majority(nmembers, rules->half_is_enough) : 1;

    return self >= 0 && self < WD_MAX_MEMBERS && is_lost(&v->of[self], node, now_us) &&
           wd_votes_count(v, rules, node, now_us) >= need;
}
