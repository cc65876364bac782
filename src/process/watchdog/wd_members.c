/* SPDX-License-Identifier: PostgreSQL
 * wd_members.c: who belongs to the cluster: the leader adds pgpools that came, takes out those that
 * the settings name no more or that are gone for too long, and those whose disk was emptied.
 * Runs in: watchdog, the one that leads. One change at a time, and each is agreed on by a majority.
 */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "sys/clock.h"

#include "wd_int.h"

/* A disk that was emptied: what libraft knows of it is wrong, and only taking it out and in again
 * makes it forget (libraft 0.15 believes that a log never gets shorter). */
static bool judge_member(struct wd *w, int i)
{
    const struct wd_other *o = &w->other[i];
    bool voter[WD_MAX_MEMBERS];
    struct wd_event e;

    if (i == w->self || !wd_is_alive(w, i) || !o->is_known)
        return false;
    (void)wd_raft_voters(w->raft, voter);
    if (o->said.begin == WD_BEGIN_NOTHING)
        return false; /* it begins when it has heard of us */
    if (wd_state_is_other_disk(&w->state, i, o->said.identity) && voter[i]) {
        log_at(LVL_LOG,
            "watchdog: pgpool %d comes with an empty disk: it is taken out and in again", i);
        return wd_raft_remove(w->raft, i);
    }
    if (!wd_raft_has(w->raft, i))
        return wd_is_listed(w, i) && wd_raft_add(w->raft, i);
    if (memcmp(w->state.identity[i], o->said.identity, WD_IDENTITY_BYTES) != 0) {
        wd_lead_event(&e, WD_EV_JOIN);
        e.member = (int16_t)i;
        memcpy(e.identity, o->said.identity, WD_IDENTITY_BYTES);
        return wd_lead_propose(w, &e);
    }
    return !voter[i] && wd_raft_promote(w->raft, i);
}

/* A limit of 0 is none. */
static bool is_over(int64_t limit_ms, int64_t passed_us)
{
    return limit_ms > 0 && passed_us >= limit_ms * CLOCK_US_PER_MS;
}

/* One that is gone for good counts no more, when the settings say so: of fewer, fewer are a
 * majority. A majority of all that count until then has to agree, so it is never a part of a
 * network that does this by itself. Who comes back is added again. */
static bool judge_gone(struct wd *w, int i)
{
    const struct conf *c = wd_conf(w);
    const struct wd_other *o = &w->other[i];
    int64_t now_us = loop_now_us(&w->role.loop);
    int64_t led_us = (wd_addr_boot_ms() - w->lead.since_boot_ms) * CLOCK_US_PER_MS;
    bool voter[WD_MAX_MEMBERS];
    const char *why = NULL;

    if (i == w->self || wd_is_alive(w, i))
        return false;
    (void)wd_raft_voters(w->raft, voter);
    if (o->is_leaving && !wd_raft_has(w->raft, i))
        wd_talk_let_go(w, i);
    if (!voter[i])
        return false;
    if (o->is_leaving)
        why = c->wd_remove_shutdown_nodes ? "it was stopped (wd_remove_shutdown_nodes)" : NULL;
    else if (o->is_known && o->gone_us != 0)
        why = is_over(c->wd_lost_node_removal_timeout_ms, now_us - o->gone_us)
                  ? "it is lost (wd_lost_node_removal_timeout)"
                  : NULL;
    else if (!o->is_known && is_over(c->wd_no_show_node_removal_timeout_ms, led_us))
        why = "it did not show up (wd_no_show_node_removal_timeout)";
    if (why == NULL || !wd_raft_remove(w->raft, i))
        return false;
    log_at_detail(LVL_LOG, why, NULL, "watchdog: pgpool %d does not count as a member any more", i);
    return true;
}

static bool judge_own(struct wd *w)
{
    struct wd_event e;

    if (memcmp(w->state.identity[w->self], w->identity, WD_IDENTITY_BYTES) == 0)
        return false;
    wd_lead_event(&e, WD_EV_JOIN);
    e.member = (int16_t)w->self;
    memcpy(e.identity, w->identity, WD_IDENTITY_BYTES);
    return wd_lead_propose(w, &e);
}

bool wd_members_step(struct wd *w)
{
    int i;

    if (judge_own(w))
        return true;
    for (i = 0; i < WD_MAX_MEMBERS; i++) {
        if (wd_has_bit(w->unwanted, i) && i != w->self && wd_raft_has(w->raft, i)) {
            log_at(LVL_LOG, "watchdog: pgpool %d is no member any more", i);
            return wd_raft_remove(w->raft, i);
        }
        if (judge_gone(w, i) || judge_member(w, i))
            return true;
    }
    return false;
}
