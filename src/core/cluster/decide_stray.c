/* SPDX-License-Identifier: PostgreSQL
 * decide_stray.c: a standby that was promoted while the primary lives: an accident, or somebody's
 * failover that is to be followed?
 * Runs in: monitor. Pure. Whoever fails over on purpose stops the old primary, or has the standbys
 * follow the new one. So the present primary keeps the writes while it answers and is followed, and
 * most standbys do not follow the newcomer. An accident must not take the writes with it. */
#include "config.h"

#include "decide_int.h"

static bool is_kin(const struct decide *d, int a, int b)
{
    uint64_t ia = d->node[a].facts.system_id;
    uint64_t ib = d->node[b].facts.system_id;

    return ia == 0 || ib == 0 || ia == ib;
}

/* An operator, or our own failover, wants this server to be the primary. */
static bool is_ordered(const struct decide *d, int node)
{
    const struct view_switch *sw = &d->view.sw;

    return node == d->named || node == d->agreed || node == sw->target ||
           (node == sw->ended_node && (view_failover_in_progress(&d->view) || sw->pending_us != 0));
}

/* The server says that it is a primary, on a newer timeline than the present one, which is not lost
 * yet. */
static bool is_newcomer(const struct decide *d, int node)
{
    int p = d->view.primary;

    if (d->rules.mode != DECIDE_MODE_STREAMING || d->view.is_looking || p == VIEW_NO_NODE ||
        node == p || !decide_has_facts(d, node) || !d->node[node].facts.is_primary ||
        is_ordered(d, node))
        return false;
    if (!decide_has_facts(d, p) || !d->node[p].facts.is_primary || !decide_is_used(d, p) ||
        p == d->view.sw.barred || decide_is_barred(d, p) || !is_kin(d, p, node))
        return false;
    return d->node[p].facts.timeline != 0 &&
           d->node[node].facts.timeline > d->node[p].facts.timeline;
}

struct tally {
    int nstandbys; /* that answer */
    int nold;      /* of them, those that stream on the present primary's timeline */
    int nold_now;  /* of those, the ones that have said so since the newcomer was seen */
    int nnew;      /* those on the newcomer's */
};

static struct tally count(const struct decide *d, int node)
{
    const struct decide_node *p = &d->node[d->view.primary];
    const struct decide_node *x = &d->node[node];
    struct tally t = {0};
    int i;

    for (i = 0; i < d->rules.nnodes; i++) {
        const struct decide_node *n = &d->node[i];

        if (i == node || i == d->view.primary || !decide_has_facts(d, i) || n->is_silent ||
            n->facts.is_primary || !is_kin(d, i, d->view.primary))
            continue;
        t.nstandbys++;
        if (!n->facts.is_receiving)
            continue;
        t.nnew += n->facts.timeline == x->facts.timeline;
        t.nold += n->facts.timeline == p->facts.timeline;
        t.nold_now += n->facts.timeline == p->facts.timeline && n->asked_us > x->newcomer_us;
    }
    return t;
}

static bool primary_answers(const struct decide *d)
{
    return !d->node[d->view.primary].is_silent && !d->view.node[d->view.primary].is_busy;
}

/* What was known of the primary before the newcomer was seen may be what it was before it died. */
static bool primary_has_answered(const struct decide *d, int node)
{
    return primary_answers(d) && d->node[d->view.primary].asked_us > d->node[node].newcomer_us;
}

bool decide_is_kept_out(const struct decide *d, int node)
{
    struct tally t;

    if (!is_newcomer(d, node))
        return false;
    t = count(d, node);
    if (t.nnew * 2 > t.nstandbys)
        return false;
    if (d->node[node].stray_us != 0)
        return true; /* until the primary is given up */
    if (primary_answers(d) && !primary_has_answered(d, node))
        return t.nstandbys > 0;
    return t.nold > 0;
}

bool decide_is_doubtful(const struct decide *d, int node)
{
    return decide_is_kept_out(d, node) && d->node[node].stray_us == 0;
}

void decide_weigh_newcomers(struct decide *d, int64_t now_us)
{
    int i;

    for (i = 0; i < d->rules.nnodes; i++) {
        struct decide_node *n = &d->node[i];

        if (!is_newcomer(d, i)) {
            n->newcomer_us = 0;
            n->stray_us = 0;
            continue;
        }
        if (n->newcomer_us == 0)
            n->newcomer_us = now_us;
        if (!decide_is_kept_out(d, i))
            n->stray_us = 0;
        else if (n->stray_us == 0 && primary_has_answered(d, i) && count(d, i).nold_now > 0)
            n->stray_us = now_us;
    }
}
