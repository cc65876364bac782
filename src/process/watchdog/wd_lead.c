/* SPDX-License-Identifier: PostgreSQL
 * wd_lead.c: what the pgpool that leads does: counts votes, writes into the log what is to be done
 * about a server and what was done, gives the lead to a better one.
 * Runs in: watchdog. One thing at a time, and each only after the log has taken it in. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "sys/clock.h"

#include "wd_int.h"

#define SETTLE_MS 3000 /* a new leader is not replaced by a better one before that */
#define MISSING_MS                                                                                 \
    10000 /* nor one that alone does not reach the primary: others may notice late                 \
           */
#define ANY   INT64_MIN
#define BLIND (INT64_C(1) << 40) /* worse than any priority */

bool wd_lead_propose(struct wd *w, struct wd_event *e)
{
    e->at_us = clock_wall_us();
    if (e->type != WD_EV_JOIN)
        e->member = (int16_t)w->self;
    return wd_raft_propose(w->raft, e);
}

void wd_lead_event(struct wd_event *e, enum wd_event_type type)
{
    memset(e, 0, sizeof *e);
    e->type = (uint8_t)type;
    e->node = VIEW_NO_NODE;
    e->primary = VIEW_NO_NODE;
}

/* Servers */

static bool is_any_begun(const struct wd *w)
{
    int i;

    for (i = 0; i < VIEW_MAX_NODES; i++)
        if (w->state.node[i].is_begun)
            return true;
    return false;
}

static void tell_waiting(struct wd *w, int node, const bool *voters, int nvoters)
{
    struct wd_vote_rules rules = {
        .counts_again = wd_conf(w)->allow_multiple_failover_requests_from_node, .voters = voters};
    int n = wd_votes_count(&w->votes, &rules, node, clock_mono_us());
    char detail[WD_TEXT_BYTES];

    if (w->lead.waiting_us[node] != 0)
        return;
    w->lead.waiting_us[node] = loop_now_us(&w->role.loop);
    snprintf(detail, sizeof detail,
        "waiting for the quorum to start the failover: %d of %d pgpools find node %d lost", n,
        nvoters, node);
    log_at_detail(LVL_LOG, detail, NULL,
        "building consensus for request, node %d: failover waits until more pgpools agree", node);
}

/* Half of the votes are as many as those who may only be cut off have: the network has to be there,
 * by an answer to a question that was asked when the loss was known. */
static bool is_half_enough(struct wd *w, int node)
{
    int64_t since_us = w->lead.waiting_us[node];

    return wd_conf(w)->enable_consensus_with_half_votes && since_us != 0 &&
           wd_addr_is_trusted(w->addr, since_us);
}

static bool judge_loss(struct wd *w, int node, const bool *voters, int nvoters)
{
    const struct conf *c = wd_conf(w);
    struct wd_vote_rules rules = {.needs_consensus = c->failover_require_consensus,
        .counts_again = c->allow_multiple_failover_requests_from_node,
        .half_is_enough = is_half_enough(w, node),
        .voters = voters};
    int64_t now_us = clock_mono_us();
    struct wd_event e;

    if (!wd_votes_decide(&w->votes, &rules, node, w->self, nvoters, now_us)) {
        tell_waiting(w, node, voters, nvoters);
        return false;
    }
    w->lead.waiting_us[node] = 0;
    wd_lead_event(&e, WD_EV_LOST);
    e.node = (int16_t)node;
    e.was_primary = w->state.primary == node;
    snprintf(e.who, sizeof e.who, "watchdog");
    rules.counts_again = false;
    snprintf(e.text, sizeof e.text, "%d of %d pgpools do not reach it",
        wd_votes_count(&w->votes, &rules, node, now_us), nvoters);
    return wd_lead_propose(w, &e);
}

/* The monitor has heard that it may act, and has nothing more to do. */
static bool is_done(const struct wd *w, int node)
{
    return wd_has_bit(w->says.may, node) && w->is_said && w->seen.serial == w->serial &&
           !w->seen.is_acting &&
           (w->seen.primary != VIEW_NO_NODE ||
               wd_conf(w)->backend_clustering_mode != CONF_CLUSTER_STREAMING);
}

/* The monitor waits with its order to promote until the log says whom: should this pgpool end
 * before the failover does, the next one that leads promotes nobody else beside. */
static bool is_choosing(const struct wd *w, int node)
{
    int chosen = w->seen.candidate;

    return wd_has_bit(w->says.may, node) && w->is_said && w->seen.serial == w->serial &&
           w->seen.replaced == node && chosen >= 0 && chosen < VIEW_MAX_NODES && chosen != node &&
           chosen != w->state.node[node].candidate;
}

static bool judge_begun(struct wd *w, int node)
{
    bool chooses = is_choosing(w, node);
    struct wd_event e;

    if (!chooses && !is_done(w, node))
        return false;
    wd_lead_event(&e, chooses ? WD_EV_CHOSEN : WD_EV_END);
    e.node = (int16_t)node;
    e.epoch = w->state.node[node].epoch;
    e.primary = (int16_t)(chooses ? w->seen.candidate : w->seen.primary);
    e.timeline = chooses ? 0 : w->seen.timeline;
    return wd_lead_propose(w, &e);
}

static bool judge_node(struct wd *w, int node, const bool *voters, int nvoters)
{
    const struct wd_node *n = &w->state.node[node];
    struct wd_event e;

    if (n->is_begun)
        return judge_begun(w, node);
    if (n->is_lost && !n->is_held && wd_has_bit(w->seen.used, node)) {
        wd_lead_event(&e, WD_EV_UP);
        e.node = (int16_t)node;
        return wd_lead_propose(w, &e);
    }
    if (wd_has_bit(w->seen.lost, node) && !n->is_lost && !n->is_held)
        return judge_loss(w, node, voters, nvoters);
    w->lead.waiting_us[node] = 0;
    return false;
}

static bool judge_primary(struct wd *w)
{
    struct wd_event e;

    if (w->seen.primary == VIEW_NO_NODE || is_any_begun(w) ||
        (w->seen.primary == w->state.primary &&
            (w->seen.timeline == 0 || w->seen.timeline == w->state.timeline)) ||
        w->seen.is_acting || w->seen.serial != w->serial)
        return false;
    wd_lead_event(&e, WD_EV_PRIMARY);
    e.primary = (int16_t)w->seen.primary;
    e.timeline = w->seen.timeline;
    return wd_lead_propose(w, &e);
}

static bool judge_servers(struct wd *w)
{
    bool voter[WD_MAX_MEMBERS];
    int nvoters = wd_raft_voters(w->raft, voter);
    int i;

    for (i = 0; i < VIEW_MAX_NODES; i++)
        if (judge_node(w, i, voter, nvoters))
            return true;
    return judge_primary(w);
}

void wd_lead_command(struct wd *w, const struct node_command *cmd)
{
    struct wd_event e;

    if (w->is_witness) {
        log_at_detail(LVL_WARNING, NULL,
            "Give the order again when somebody leads: SHOW POOL_WATCHDOG.",
            "an order of %s about node %d came to a witness, while nobody leads", cmd->who,
            cmd->node);
        return;
    }
    switch ((enum node_order)cmd->order) {
    case NODE_ATTACH:
        wd_lead_event(&e, WD_EV_ATTACH);
        break;
    case NODE_DETACH:
    case NODE_DETACH_GRACEFULLY:
        wd_lead_event(&e, WD_EV_DETACH);
        e.was_primary = w->state.primary == cmd->node;
        break;
    case NODE_PROMOTE:
    case NODE_PROMOTE_GRACEFULLY:
    case NODE_SWITCHOVER:
    default:
        wd_tell_command(w, cmd); /* our monitor does it; all others see the new primary */
        return;
    }
    e.node = (int16_t)cmd->node;
    snprintf(e.who, sizeof e.who, "%s", cmd->who);
    snprintf(e.text, sizeof e.text, "%s", cmd->why);
    if (!wd_lead_propose(w, &e))
        log_at_detail(LVL_WARNING, NULL,
            "Give the order again when somebody leads: SHOW POOL_WATCHDOG.",
            "an order of %s about node %d cannot be carried out now", cmd->who, cmd->node);
}

/* Who leads */

/* When a witness is the first of all to be elected, nothing is in the log of anybody yet. */
static bool can_lead(const struct wd *w, const struct wd_other *o)
{
    return o->is_known && !o->said.is_unfit &&
           (o->said.begin == WD_BEGIN_DONE || (w->is_witness && o->said.begin == WD_BEGIN_LOG));
}

static bool may_take(struct wd *w, const bool voter[WD_MAX_MEMBERS], int i)
{
    return i != w->self && voter[i] && wd_is_alive(w, i) && can_lead(w, &w->other[i]);
}

/* Who does not reach `lost` is of no use to clients that write. */
static bool is_blind(const struct wd *w, const uint64_t lost[2])
{
    int primary = w->state.primary;

    return primary >= 0 && primary < VIEW_MAX_NODES && wd_has_bit(lost, primary) &&
           !w->state.node[primary].is_lost && !w->state.node[primary].is_held;
}

static int64_t rank_of(const struct wd *w, int i)
{
    const struct wd_status *said = &w->other[i].said;
    bool is_no_better = is_blind(w, said->lost) || is_blind(w, said->silent);

    return is_no_better ? said->priority - BLIND : said->priority;
}

/* The pgpool on the machine of the primary, when that is wanted. */
static int find_beside_primary(const struct wd *w)
{
    const struct conf *c = wd_conf(w);
    int primary = w->state.primary;
    int i;

    if (c->vip_follows != CONF_VIP_PRIMARY || primary < 0 || primary >= c->nnodes ||
        !conf_has_node(c, primary))
        return WD_NO_MEMBER;
    for (i = 0; i < WD_MAX_MEMBERS; i++)
        if (wd_is_listed(w, i) &&
            strcmp(c->wd_nodes[i].hostname, c->nodes[primary].backend_hostname) == 0)
            return i;
    return WD_NO_MEMBER;
}

/* The best of the others whose rank is above `best`: who reaches the primary, then by priority. */
static int find_better(struct wd *w, int64_t best)
{
    int found = WD_NO_MEMBER;
    bool voter[WD_MAX_MEMBERS];
    int i;

    (void)wd_raft_voters(w->raft, voter);
    for (i = 0; i < WD_MAX_MEMBERS; i++) {
        if (!may_take(w, voter, i) || rank_of(w, i) <= best)
            continue;
        best = rank_of(w, i);
        found = i;
    }
    return found;
}

bool wd_lead_has_heir(struct wd *w)
{
    bool voter[WD_MAX_MEMBERS];
    int i;

    (void)wd_raft_voters(w->raft, voter);
    for (i = 0; i < WD_MAX_MEMBERS; i++)
        if (i != w->self && voter[i] && wd_is_alive(w, i) && !w->other[i].said.is_witness)
            return true;
    return false;
}

void wd_lead_yield(struct wd *w, int to, const char *why)
{
    if (w->lead.yields)
        return;
    w->lead.yields = true;
    w->lead.yield_to = to;
    snprintf(w->lead.yield_why, sizeof w->lead.yield_why, "%s", why);
    wd_addr_stop_leading(w->addr);
    timer_start(&w->role.loop, &w->tick, 0);
}

/* Whoever leads next then knows that there is no lease to wait for: neither ours, nor that of who
 * led before us. */
static void say_given(struct wd *w)
{
    struct wd_event e;

    if (w->lead.gives)
        return;
    wd_lead_event(&e, WD_EV_GIVEN);
    snprintf(e.text, sizeof e.text, "%s", w->lead.yield_why);
    w->lead.gives = wd_lead_propose(w, &e);
}

/* A transfer that leads to nothing is forgotten: we go on. */
static void go_on_yielding(struct wd *w)
{
    int to = w->lead.yield_to;

    if (!wd_lease_is_free(w) || wd_raft_is_giving(w->raft))
        return;
    if (w->lead.is_led && !w->state.is_given && !wd_state_is_owed(&w->state)) {
        if (wd_lease_is_settled(w)) /* in a moment: the address cannot be ours yet */
            say_given(w);
        return;
    }
    if (to == WD_NO_MEMBER)
        to = find_better(w, ANY);
    if (to == WD_NO_MEMBER ? wd_lead_has_heir(w) : wd_is_alive(w, to))
        (void)wd_raft_give_lead(w->raft, to);
    if (wd_raft_is_giving(w->raft))
        return;
    w->lead.yields = w->lead.gives = false;
    w->lead.is_told = w->lead.is_led = false; /* the log has to know before the address is taken */
}

/* Alone it may not fail over, and clients at its address cannot write: another one is to lead. */
static int find_sighted(struct wd *w)
{
    int64_t now_ms = wd_addr_boot_ms();

    if (!is_blind(w, w->seen.lost)) {
        w->lead.missing_ms = 0;
        return WD_NO_MEMBER;
    }
    if (w->lead.missing_ms == 0)
        w->lead.missing_ms = now_ms;
    return now_ms - w->lead.missing_ms < MISSING_MS ? WD_NO_MEMBER : find_better(w, -BLIND / 2);
}

static const char *reason_to_yield(const struct wd *w, bool is_beside, bool is_sighted)
{
    return is_sighted          ? "it does not reach the primary, which the other one does"
           : is_beside         ? "the other one is on the machine of the primary"
           : w->is_called_dead ? "a life check says that it is dead"
                               : "the other one's wd_priority is higher";
}

static void judge_lead(struct wd *w)
{
    int sighted = find_sighted(w);
    const char *why;
    int beside = find_beside_primary(w);
    bool voter[WD_MAX_MEMBERS];
    int better;

    if (w->role.stop_mode != 0 || is_any_begun(w) ||
        wd_addr_boot_ms() - w->lead.since_boot_ms < SETTLE_MS)
        return;
    if (beside == w->self && !w->is_called_dead && sighted == WD_NO_MEMBER)
        return;
    (void)wd_raft_voters(w->raft, voter);
    if (sighted != WD_NO_MEMBER)
        better = sighted;
    else if (beside != WD_NO_MEMBER && may_take(w, voter, beside) &&
             !is_blind(w, w->other[beside].said.lost))
        better = beside;
    else
        better = find_better(w, w->is_called_dead ? ANY : wd_conf(w)->wd_priority);
    if (better == WD_NO_MEMBER)
        return;
    why = reason_to_yield(w, better == beside, sighted != WD_NO_MEMBER);
    log_at(LVL_LOG, "watchdog: the lead goes to pgpool %d: %s", better, why);
    wd_lead_yield(w, better, why);
}

/* Somebody had to be elected; who has clients, and understands the log, is to lead. */
static void pass_lead_on(struct wd *w)
{
    int heir = find_better(w, ANY);

    if (heir == WD_NO_MEMBER)
        return;
    log_at(LVL_LOG, "watchdog: the lead goes to pgpool %d: %s", heir,
        w->is_witness ? "a witness does not keep it" : "its release is newer");
    wd_lead_yield(w, heir,
        w->is_witness ? "it is a witness" : "the log has what only a newer release understands");
}

void wd_lead_changed(struct wd *w)
{
    bool leads = wd_is_leading(w);
    uint64_t term = leads ? wd_raft_term(w->raft) : 0;
    int i;

    if (leads == (w->lead.since_boot_ms != 0) && term == w->lead.term)
        return;
    memset(&w->lead, 0, sizeof w->lead);
    for (i = 0; i < WD_MAX_MEMBERS; i++)
        w->other[i].granted_boot_ms = 0, w->other[i].is_without = false;
    if (!leads) {
        wd_addr_stop_leading(w->addr);
        return;
    }
    w->lead.since_boot_ms = wd_addr_boot_ms();
    w->lead.term = term;
    timer_start(&w->role.loop, &w->tick, 0);
}

int64_t wd_lead_tick_ms(const struct wd *w)
{
    if (w->raft == NULL && !w->is_new)
        return LOOP_TICK_MS; /* others may wait for its word: watchdog.c, begin */
    if (w->lead.since_boot_ms == 0)
        return WD_TICK_MS;
    return w->lead.yields || !w->lead.is_led ? LOOP_TICK_MS : WD_TICK_MS / 2;
}

/* Nobody who led before is in the way of the address any more, but for the time that it takes. */
static bool say_out(struct wd *w)
{
    struct wd_event e;

    wd_lead_event(&e, WD_EV_LEAD);
    e.is_on = true;
    return wd_lead_propose(w, &e);
}

void wd_lead_step(struct wd *w)
{
    struct wd_event e;

    wd_talk_ping(w);
    wd_lease_step(w);
    if (!wd_raft_is_current(w->raft) || wd_raft_is_proposing(w->raft))
        return;
    if (w->lead.yields) {
        if (!wd_raft_is_changing(w->raft))
            go_on_yielding(w);
        return;
    }
    if (w->is_witness || wd_is_outdated(w)) {
        pass_lead_on(w);
        return;
    }
    if (!w->lead.is_told) {
        wd_lead_event(&e, WD_EV_LEAD);
        e.epoch = (uint32_t)wd_conf(w)->wd_election_timeout_ms;
        w->lead.is_told = wd_lead_propose(w, &e);
        return;
    }
    if (w->lead.is_led && wd_state_is_owed(&w->state) && wd_fence_is_done(w) && say_out(w))
        return;
    /* One that cannot catch up keeps a change of the members waiting for seconds; servers do not.
     */
    if (judge_servers(w) || wd_raft_is_changing(w->raft) || wd_members_step(w))
        return;
    judge_lead(w);
}
