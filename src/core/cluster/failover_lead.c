/* SPDX-License-Identifier: PostgreSQL
 * failover_lead.c: the other standbys in a switchover: they leave the old primary before the new
 * one is promoted, and come back to it when that is called off. Runs in: monitor. Pure. The old
 * primary lives and writes on, were it only its own book-keeping; whoever receives of that more
 * than the new primary has can never follow it. So they stream from the one to be promoted, which
 * streams from the old primary to the end: then nobody is ahead. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "failover_int.h"

#define RELOADABLE 130000 /* from here on a standby leaves its primary without a restart */
#define BACK_US    INT64_C(2000000)

static bool is_fed_by(const struct decide *d, int feeder, const char *name)
{
    const struct decide_facts *f = &d->node[feeder].facts;
    int i;

    for (i = 0; i < f->nsenders; i++)
        if (name[0] != '\0' && strcmp(f->sender[i].name, name) == 0)
            return true;
    return false;
}

/* The standby receives from another one, which is led itself. */
static bool is_cascaded(const struct decide *d, int node)
{
    const char *name = d->node[node].facts.receiver_name;
    int i;

    if (name[0] == '\0')
        name = d->rules.node[node].application_name;
    if (is_fed_by(d, d->view.sw.node, name))
        return false;
    for (i = 0; i < d->rules.nnodes; i++)
        if (i != node && i != d->view.sw.node && decide_has_facts(d, i) && is_fed_by(d, i, name))
            return true;
    return false;
}

/* The node is there, and a standby of the cluster, even if an operator has detached it: that is
 * about clients alone. */
static bool is_other(const struct decide *d, int node)
{
    const struct view_switch *sw = &d->view.sw;
    const struct decide_node *n = &d->node[node];

    return node != sw->node && node != sw->target && decide_has_facts(d, node) && !n->is_silent &&
           !d->view.node[node].is_busy && !n->facts.is_primary &&
           failover_is_kin(d->system_id, n->facts.system_id);
}

void failover_lead_forget(struct decide *d)
{
    memset(d->view.sw.moved, 0, sizeof d->view.sw.moved);
    memset(d->view.sw.slotted, 0, sizeof d->view.sw.slotted);
    d->view.sw.moved_to = VIEW_NO_NODE;
}

struct failover_do failover_lead_step(struct failover *f, struct decide *d, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;
    int i;

    for (i = 0; i < d->rules.nnodes; i++) {
        const struct decide_facts *facts = &d->node[i].facts;
        struct failover_do out;

        if (!is_other(d, i) || view_has_node(sw->moved, i) || !facts->is_receiving ||
            is_cascaded(d, i) || (facts->server_version > 0 && facts->server_version < RELOADABLE))
            continue;
        failover_put(sw->moved, i, true);
        sw->moved_to = sw->target;
        f->led = i;
        out = failover_begin(f, d, FAILOVER_DO_LEAD);
        out.node = i;
        /* The command does that in its own way, but it is not run about a detached one. */
        out.makes_slot = !d->rules.has.follow_primary_command || d->view.node[i].held_down;
        return out;
    }
    failover_enter(f, d, VIEW_PHASE_CATCHUP, now_us);
    return (struct failover_do){.type = FAILOVER_DO_NOTHING};
}

/* One that went in that moment stays behind by itself; one that somebody works at stops nobody. */
const char *failover_lead_done(
    struct failover *f, struct decide *d, const struct failover_outcome *o, int64_t now_us)
{
    int node = f->led;
    struct decide_event *e;

    if (o->count > 0)
        failover_put(d->view.sw.slotted, node, true);
    if (o->ok || !is_other(d, node) || d->view.node[node].pg_status == VIEW_PG_DOWN)
        return NULL;
    if (!d->view.node[node].held_down)
        return o->text;
    e = decide_note(d, DECIDE_EV_FAILED, node, d->view.primary, now_us,
        "node %d, which is detached, could not be led to node %d", node, d->view.sw.target);
    snprintf(e->detail, sizeof e->detail, "%s", o->text);
    return NULL;
}

/* One that receives and could not be led has to be overtaken, too: better than nothing. */
bool failover_lead_is_ahead(const struct decide *d)
{
    const struct view_switch *sw = &d->view.sw;
    int i;

    for (i = 0; i < d->rules.nnodes; i++) {
        if (!is_other(d, i) || !(view_has_node(sw->moved, i) || d->node[i].facts.is_receiving))
            continue;
        if (d->node[i].asked_us < sw->phase_us ||
            d->node[i].facts.received_lsn > d->node[sw->target].facts.received_lsn)
            return false;
    }
    return true;
}

int failover_lead_back(const struct failover *f, const struct decide *d, int64_t now_us)
{
    const struct view_switch *sw = &d->view.sw;
    int i;

    for (i = 0; i < d->rules.nnodes; i++)
        if (view_has_node(sw->moved, i) && i != d->view.primary && d->rules.node[i].exists &&
            !d->node[i].is_silent && now_us - f->follow_us[i] >= BACK_US << f->follow_tries[i])
            return i;
    return VIEW_NO_NODE;
}
