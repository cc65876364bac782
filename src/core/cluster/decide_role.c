/* SPDX-License-Identifier: PostgreSQL
 * decide_role.c: who is the primary, who may be used, who comes back.
 * Runs in: monitor. Pure. Follows what the servers say of themselves; two that both say they are
 * the primary are told apart by timeline, then by who feeds standbys. A primary of an older
 * timeline is never used. Never decides by the number of a server but to break a tie. */
#include "config.h"

#include "decide_int.h"

#define OKS_TO_RETURN 2

/* Servers with these system identifiers are of one cluster, as far as we know. */
static bool is_kin(uint64_t a, uint64_t b)
{
    return a == 0 || b == 0 || a == b;
}

static bool says_primary(const struct decide *d, int node)
{
    return decide_has_facts(d, node) && d->node[node].facts.is_primary;
}

/* The newest timeline anybody of this cluster was seen on. What standbys say counts only against a
 * server that is not the primary already. */
static uint32_t newest_timeline(const struct decide *d, int node)
{
    uint64_t system_id = d->node[node].facts.system_id;
    uint32_t top = is_kin(d->system_id, system_id) ? d->top_timeline : 0;
    int i;

    for (i = 0; i < d->rules.nnodes && node != d->view.primary; i++) {
        const struct decide_facts *f = &d->node[i].facts;

        if (decide_has_facts(d, i) && is_kin(f->system_id, system_id) && f->timeline > top)
            top = f->timeline;
    }
    return top;
}

/* A former primary: others have gone on without it. */
static bool is_stale(const struct decide *d, int node)
{
    uint32_t timeline = d->node[node].facts.timeline;

    return says_primary(d, node) && timeline != 0 && timeline < newest_timeline(d, node);
}

/* The present primary stays one while its failed probe is being repeated. */
static bool is_candidate(const struct decide *d, int node)
{
    const struct decide_node *n = &d->node[node];

    if (!d->rules.node[node].exists || d->view.node[node].held_down || !says_primary(d, node))
        return false;
    if (is_stale(d, node) || node == d->view.sw.barred || decide_is_kept_out(d, node) ||
        decide_is_barred(d, node))
        return false;
    return !n->is_silent || (node == d->view.primary && decide_is_used(d, node));
}

/* True when `a` is the better primary. */
static bool is_better(const struct decide *d, int a, int b)
{
    const struct decide_facts *fa = &d->node[a].facts;
    const struct decide_facts *fb = &d->node[b].facts;
    bool kin_a = is_kin(d->system_id, fa->system_id);
    bool kin_b = is_kin(d->system_id, fb->system_id);

    /* Not until all have been asked is it known whose cluster this is: whoever answered first must
     * not decide it. */
    if (d->view.is_looking && !is_kin(fa->system_id, fb->system_id))
        return a < b;
    if (kin_a != kin_b)
        return kin_a;
    if (is_kin(fa->system_id, fb->system_id) && fa->timeline != fb->timeline)
        return fa->timeline > fb->timeline;
    if ((fa->nsenders > 0) != (fb->nsenders > 0))
        return fa->nsenders > 0;
    if (!d->view.is_looking && (a == d->view.primary || b == d->view.primary))
        return a == d->view.primary;
    return a < b;
}

/* A standby has become a primary since the operator spoke: by his order to switch over, or by
 * somebody else. */
static bool is_superseded(const struct decide *d, int node)
{
    int i;

    for (i = 0; i < d->rules.nnodes; i++)
        if (i != node && view_has_node(d->followers, i) && !d->node[i].is_silent &&
            says_primary(d, i) && is_kin(d->system_id, d->node[i].facts.system_id))
            return true;
    return false;
}

static void note_followers(struct decide *d)
{
    int i;

    for (i = 0; i < d->rules.nnodes; i++)
        if (d->rules.node[i].exists && decide_has_facts(d, i) && !d->node[i].is_silent &&
            !d->node[i].facts.is_primary)
            d->followers[i / 64] |= UINT64_C(1) << (i % 64);
}

/* What an operator said holds while the server is in use and does not contradict, and nothing has
 * come after it. */
static bool is_named(const struct decide *d, int node)
{
    return node != VIEW_NO_NODE && node != d->view.sw.barred && !decide_is_barred(d, node) &&
           decide_is_used(d, node) &&
           (!decide_has_facts(d, node) || d->node[node].facts.is_primary) &&
           !is_superseded(d, node);
}

/* The server that is flagged as the primary, whatever it says; VIEW_NO_NODE: none is. */
static int flagged(const struct decide *d)
{
    int i;

    for (i = 0; i < d->rules.nnodes; i++)
        if (d->rules.node[i].exists && d->rules.node[i].always_primary)
            return i;
    return VIEW_NO_NODE;
}

static int elect(const struct decide *d)
{
    int best = flagged(d);
    int i;

    if (best != VIEW_NO_NODE)
        return best;
    if (is_named(d, d->named))
        return d->named;
    for (i = 0; i < d->rules.nnodes; i++)
        if (is_candidate(d, i) && (best == VIEW_NO_NODE || is_better(d, i, best)))
            best = i;
    return best;
}

static int lowest_used(const struct decide *d)
{
    int i;

    for (i = 0; i < d->rules.nnodes; i++)
        if (decide_is_used(d, i))
            return i;
    return VIEW_NO_NODE;
}

static void learn_timeline(struct decide *d, int primary)
{
    const struct decide_facts *f = &d->node[primary].facts;

    if (!decide_has_facts(d, primary) || !f->is_primary)
        return;
    if (!is_kin(d->system_id, f->system_id))
        d->top_timeline = 0;
    if (f->system_id != 0)
        d->system_id = f->system_id;
    if (f->timeline > d->top_timeline)
        d->top_timeline = f->timeline;
}

/* For who reads that there is no primary. */
static const char *what_comes_next(const struct decide *d, int old)
{
    if (d->rules.has.failover_command)
        return "Writes wait for up to failover_wait; SHOW POOL_EVENTS says what is done.";
    if (old != VIEW_NO_NODE && d->view.node[old].held_down)
        return "An operator has taken it out: pcp_attach_node gives it back, pcp_promote_node -s "
               "makes another one the primary.";
    if (d->rules.auto_promote)
        return "Writes wait for up to failover_wait; SHOW POOL_EVENTS says what is done.";
    return "Nobody is promoted by itself (auto_promote is off, failover_command is empty): "
           "pcp_promote_node -s does it, or whatever manages the servers.";
}

static void set_primary(struct decide *d, int primary, int64_t now_us)
{
    int old = d->view.primary;

    if (primary != VIEW_NO_NODE && d->rules.mode == DECIDE_MODE_STREAMING)
        learn_timeline(d, primary);
    if (primary == old)
        return;
    d->view.primary = primary;
    d->view.primary_epoch++;
    if (d->rules.mode != DECIDE_MODE_STREAMING)
        decide_note(d, DECIDE_EV_PRIMARY, primary, old, now_us,
            primary == VIEW_NO_NODE ? "failover: no valid backend node found"
                                    : "failover: set new main node: %d",
            primary);
    else if (primary == VIEW_NO_NODE)
        decide_note(d, DECIDE_EV_NO_PRIMARY, old, old, now_us,
            "find_primary_node_repeatedly: waiting for finding a primary node")
            ->hint = what_comes_next(d, old);
    else
        decide_note(d, DECIDE_EV_PRIMARY, primary, old, now_us,
            "find_primary_node: primary node is %d", primary);
}

static void set_roles(struct decide *d, int64_t now_us)
{
    int i;

    for (i = 0; i < d->rules.nnodes; i++) {
        struct view_node *v = &d->view.node[i];
        enum view_role role = VIEW_ROLE_UNKNOWN;
        bool streaming = d->rules.mode == DECIDE_MODE_STREAMING;

        if (!d->rules.node[i].exists)
            continue;
        if (i == d->view.primary)
            role = VIEW_ROLE_PRIMARY;
        else if (!streaming || decide_has_facts(d, i) || d->view.primary != VIEW_NO_NODE)
            role = VIEW_ROLE_STANDBY;
        if (streaming && role == VIEW_ROLE_STANDBY && v->role != role && !d->node[i].is_silent &&
            decide_is_used(d, i))
            decide_note(d, DECIDE_EV_STANDBY, i, d->view.primary, now_us,
                "find_primary_node: standby node is %d", i);
        v->role = (uint8_t)role;
    }
}

/* A standby that follows the present primary closely enough. */
static bool follows_primary(const struct decide *d, int node)
{
    const struct decide_facts *own = &d->node[node].facts;
    const struct decide_facts *primary;

    if (d->view.primary == VIEW_NO_NODE || !decide_has_facts(d, d->view.primary))
        return true; /* there is nobody to follow: reads go on */
    primary = &d->node[d->view.primary].facts;
    if (!own->is_receiving || !is_kin(own->system_id, primary->system_id))
        return false;
    if (own->timeline != 0 && primary->timeline != 0 && own->timeline != primary->timeline)
        return false;
    return !decide_lag_is_over(d, node);
}

static bool may_return(const struct decide *d, int node, int64_t now_us)
{
    const struct decide_node *n = &d->node[node];
    bool streaming = d->rules.mode == DECIDE_MODE_STREAMING;

    if (!d->rules.returns || n->oks == 0 || d->view.node[node].is_busy)
        return false;
    if (streaming && says_primary(d, node))
        return node == d->view.primary;
    if (lowest_used(d) == VIEW_NO_NODE)
        return true; /* better than nothing, whatever else holds */
    if (n->oks < OKS_TO_RETURN || view_has_node(d->missed, node) ||
        (streaming && decide_has_facts(d, node) && !follows_primary(d, node)))
        return false;
    if (d->view.node[node].status == VIEW_QUARANTINE || d->view.node[node].is_missed)
        return true;
    return d->rules.auto_failback &&
           (n->returned_us == 0 || now_us < n->returned_us || /* the clock was set back */
               now_us - n->returned_us >= d->rules.auto_failback_interval_us);
}

static void give_back(struct decide *d, int node, int64_t now_us)
{
    struct decide_node *n = &d->node[node];
    bool was_down = d->view.node[node].status == VIEW_DOWN;

    n->fails = 0;
    if (was_down) {
        n->returned_us = now_us;
    }
    decide_note(d, DECIDE_EV_RETURN, node, d->view.primary, now_us,
        "request auto failback, node id:%d", node);
    decide_set_status(d, node, VIEW_UP, now_us);
}

/* Two servers say that they are the primary, and this one is not believed. */
static void judge_false_primary(struct decide *d, int node, int64_t now_us)
{
    struct decide_node *n = &d->node[node];
    const struct decide_facts *f = &n->facts;
    bool kin = is_stale(d, node);

    if (d->view.primary != VIEW_NO_NODE && decide_has_facts(d, d->view.primary))
        kin =
            kin || (f->system_id != 0 && d->node[d->view.primary].facts.system_id == f->system_id);
    if (decide_is_doubtful(d, node))
        return; /* until the present primary has been asked again */
    if (d->rules.detach_false_primary && d->view.primary != VIEW_NO_NODE) {
        decide_note(d, DECIDE_EV_DOWN, node, d->view.primary, now_us,
            "node %d says that it is a primary, but the primary is node %d: it is detached", node,
            d->view.primary);
        decide_set_status(d, node, VIEW_DOWN, now_us);
        n->told |= DECIDE_TOLD_STALE;
    } else if (n->stray_us != 0) {
        decide_note(d, DECIDE_EV_QUARANTINE, node, d->view.primary, now_us,
            "node %d was promoted beside the primary, node %d, which lives and is followed: it is "
            "not used",
            node, d->view.primary)
            ->hint =
            "Rebuild it as a standby of the present primary; it then returns by itself. If "
            "it shall be the primary, say so by pcp_attach_node.";
        decide_set_status(d, node, VIEW_QUARANTINE, now_us);
        n->told |= DECIDE_TOLD_STALE;
    } else if (kin) {
        decide_note(d, DECIDE_EV_QUARANTINE, node, d->view.primary, now_us,
            "node %d is a former primary on timeline %u: it is not used", node, f->timeline)
            ->hint = "Rebuild it as a standby of the present primary; it then returns by itself.";
        decide_set_status(d, node, VIEW_QUARANTINE, now_us);
        n->told |= DECIDE_TOLD_STALE;
    } else if (decide_tells_first(n, DECIDE_TOLD_STALE)) {
        decide_note(d, DECIDE_EV_STALE, node, d->view.primary, now_us,
            "node %d says that it is a primary, but the primary is node %d", node, d->view.primary)
            ->hint = "The two do not belong to one cluster. Check the backend settings, or set "
                     "detach_false_primary.";
    }
}

/* A primary that was lost says that it is back, and is not believed: said once. */
static void tell_false_primary(struct decide *d, int node, int64_t now_us)
{
    struct decide_node *n = &d->node[node];
    const char *kind = is_stale(d, node) ? "a former" : "another";

    if (!decide_tells_first(n, DECIDE_TOLD_STALE))
        return;
    decide_note(d, DECIDE_EV_STALE, node, d->view.primary, now_us,
        "node %d is back and says that it is a primary, %s one on timeline %u: it stays %s", node,
        kind, n->facts.timeline,
        d->view.node[node].status == VIEW_QUARANTINE ? "in quarantine" : "down")
        ->hint = "Rebuild it as a standby of the present primary; it then returns by itself.";
}

/* Another pgpool of the cluster would write and read without it, and it may be cut off. A primary
 * is another matter: somebody has to take its place first. */
static bool is_missed(const struct decide *d, int node)
{
    int i;

    if (!view_has_node(d->missed, node) || !d->rules.node[node].may_fail ||
        d->rules.node[node].always_primary ||
        (d->rules.mode == DECIDE_MODE_STREAMING &&
            (says_primary(d, node) || node == d->view.primary)))
        return false;
    for (i = 0; i < d->rules.nnodes; i++)
        if (i != node && decide_is_used(d, i))
            return true;
    return false; /* better than nothing */
}

static void take_out_missed(struct decide *d, int node, int64_t now_us)
{
    decide_note(d, DECIDE_EV_DOWN, node, d->view.primary, now_us,
        "node %d is not used: the pgpools of the watchdog cluster have agreed that it is lost",
        node)
        ->hint =
        "If this one goes on reaching it (pg_status in SHOW POOL_NODES), something is wrong "
        "with the network between the others and it.";
    d->node[node].told &= ~DECIDE_TOLD_STALE;
    decide_set_status(d, node, VIEW_DOWN, now_us);
    d->view.node[node].is_missed = true;
}

static void judge(struct decide *d, int node, int64_t now_us)
{
    struct decide_node *n = &d->node[node];
    struct view_node *v = &d->view.node[node];

    if (!d->rules.node[node].exists || v->held_down || n->is_silent)
        return;
    if (n->is_new && n->oks > 0 && !v->is_busy) {
        n->is_new = false;
        v->role = VIEW_ROLE_UNKNOWN; /* its role is told of now */
        decide_set_status(d, node, VIEW_WAITING, now_us);
    }
    if (!decide_is_used(d, node)) {
        if (may_return(d, node, now_us))
            give_back(d, node, now_us);
        else if (d->rules.mode != DECIDE_MODE_STREAMING || !says_primary(d, node))
            n->told &= ~DECIDE_TOLD_STALE;
        else if (d->view.primary != VIEW_NO_NODE)
            tell_false_primary(d, node, now_us);
        return;
    }
    if (v->status == VIEW_WAITING && n->oks > 0 && !v->is_busy)
        decide_set_status(d, node, VIEW_UP, now_us);
    if (d->rules.mode != DECIDE_MODE_STREAMING || !says_primary(d, node) || node == d->view.primary)
        n->told &= ~DECIDE_TOLD_STALE;
    else if (d->rules.node[node].may_fail && (d->view.primary != VIEW_NO_NODE || is_stale(d, node)))
        judge_false_primary(d, node, now_us);
}

/* Since when a standby does not stream what the primary writes. */
static void note_stream(struct decide *d, int node, int64_t now_us)
{
    struct decide_node *n = &d->node[node];
    const struct decide_facts *f = &n->facts;
    bool astray = n->have_facts && !n->is_silent && !f->is_primary && !f->is_receiving;

    if (n->have_facts && !n->is_silent && !f->is_primary && d->view.primary != VIEW_NO_NODE &&
        decide_has_facts(d, d->view.primary))
        astray =
            astray || (f->timeline != 0 && f->timeline < d->node[d->view.primary].facts.timeline);
    if (!astray)
        n->lost_stream_us = 0;
    else if (n->lost_stream_us == 0)
        n->lost_stream_us = now_us;
}

void decide_settle(struct decide *d, int64_t now_us)
{
    bool streaming = d->rules.mode == DECIDE_MODE_STREAMING;
    int i;

    if (d->named != VIEW_NO_NODE && !is_named(d, d->named))
        d->named = VIEW_NO_NODE;
    if (d->named != VIEW_NO_NODE)
        note_followers(d);
    decide_weigh_newcomers(d, now_us);
    if (streaming)
        set_primary(d, elect(d), now_us);
    for (i = 0; i < d->rules.nnodes; i++)
        judge(d, i, now_us);
    for (i = 0; i < d->rules.nnodes; i++)
        if (decide_is_used(d, i) && is_missed(d, i))
            take_out_missed(d, i, now_us);
    if (!streaming)
        set_primary(d, flagged(d) != VIEW_NO_NODE ? flagged(d) : lowest_used(d), now_us);
    set_roles(d, now_us);
    for (i = 0; i < d->rules.nnodes; i++)
        if (d->rules.node[i].exists) {
            note_stream(d, i, now_us);
            decide_lag_publish(d, i);
        }
}
