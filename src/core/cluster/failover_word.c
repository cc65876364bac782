/* SPDX-License-Identifier: PostgreSQL
 * failover_word.c: what the pgpools of a watchdog cluster let this one do, and what it takes up
 * from their log. Runs in: monitor. Pure. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "failover_int.h"

void failover_allow(
    struct failover *f, bool leads, const uint64_t may[2], const int16_t candidate[VIEW_MAX_NODES])
{
    int i;

    f->word.asks = true;
    f->word.leads = leads;
    memcpy(f->word.may, may, sizeof f->word.may);
    f->word.keeps = candidate != NULL;
    f->word.is_heard = f->word.is_heard || candidate != NULL;
    for (i = 0; i < VIEW_MAX_NODES; i++)
        f->word.candidate[i] = candidate == NULL ? VIEW_NO_NODE : candidate[i];
    if (!leads)
        f->wanted = VIEW_NO_NODE; /* another one may tell it now */
}

void failover_forbid(struct failover *f)
{
    f->word.asks = true;
    f->word.leads = false;
    memset(f->word.may, 0, sizeof f->word.may);
    f->wanted = VIEW_NO_NODE;
}

void failover_allow_alone(struct failover *f, const int16_t candidate[VIEW_MAX_NODES])
{
    static const uint64_t all[2] = {UINT64_MAX, UINT64_MAX};

    failover_allow(f, true, all, candidate);
    f->word.keeps = false; /* there is nobody to write it down */
}

int failover_wants(const struct failover *f, const struct decide *d)
{
    return view_failover_in_progress(&d->view) && !d->view.sw.is_asked_for ? f->wanted
                                                                           : VIEW_NO_NODE;
}

/* Whom somebody else may have told to take the place of the lost one; VIEW_NO_NODE: nobody. What
 * this monitor has chosen itself it knows the outcome of. */
static int former_choice(const struct failover *f, const struct decide *d)
{
    const struct view_switch *sw = &d->view.sw;
    int chosen = f->word.asks && sw->node >= 0 ? f->word.candidate[sw->node] : VIEW_NO_NODE;

    return sw->is_asked_for || chosen == f->wanted || chosen >= d->rules.nnodes ? VIEW_NO_NODE
                                                                                : chosen;
}

/* Since when it is known here whom the log has in the place of `node`; 0: nobody. */
static int64_t heard_us(struct failover_word *w, int node, int64_t now_us)
{
    if (w->candidate[node] == VIEW_NO_NODE)
        w->heard_us[node] = 0;
    else if (w->heard_us[node] == 0 || w->heard[node] != w->candidate[node])
        w->heard_us[node] = now_us;
    else if (w->heard_us[node] > now_us)
        w->heard_us[node] = 1; /* the clock was set back: long ago, or it had not been */
    w->heard[node] = w->candidate[node];
    return w->heard_us[node];
}

/* Of its own choice this monitor knows the outcome, and bars by that. */
static bool is_replaced(struct failover *f, const struct decide *d, int node, int64_t now_us)
{
    int64_t since_us = heard_us(&f->word, node, now_us);
    bool is_here = view_failover_in_progress(&d->view) && d->view.sw.node == node;

    if (f->word.candidate[node] == f->wanted || (is_here && d->view.sw.is_asked_for))
        return false;
    if (is_here && f->heir_us > since_us)
        since_us = f->heir_us;
    return since_us != 0 && now_us - since_us < FAILOVER_PROMOTED_US;
}

void failover_bar_replaced(struct failover *f, struct decide *d, int64_t now_us)
{
    uint64_t set[2] = {0};
    int i;

    /* Till the log is heard it is as the former monitor knew it, but not for ever. */
    if (f->word.asks && !f->word.is_heard && now_us - d->began_us < FAILOVER_PROMOTED_US)
        return;
    for (i = 0; i < d->rules.nnodes && f->word.asks; i++)
        failover_put(set, i, is_replaced(f, d, i, now_us));
    if (memcmp(set, d->view.sw.replaced, sizeof set) == 0)
        return;
    memcpy(d->view.sw.replaced, set, sizeof set);
    decide_settle(d, now_us);
}

bool failover_waits_for_former(struct failover *f, struct decide *d, int64_t now_us)
{
    char why[FAILOVER_TEXT_BYTES];
    int chosen = former_choice(f, d);

    if (chosen == VIEW_NO_NODE || failover_is_ready(d, chosen, d->view.sw.node))
        return false;
    if (f->heir_us == 0 || f->heir != chosen) { /* each of them, should several have led since */
        f->heir = chosen;
        f->heir_us = now_us;
        f->told_waiting = false; /* of another reason */
    }
    if (now_us - f->heir_us >= FAILOVER_PROMOTED_US)
        return false;
    snprintf(why, sizeof why,
        "Node %d may have been told to take its place by the pgpool that led before, and does not "
        "answer: it gets 30 seconds to show up.",
        chosen);
    failover_tell_waiting(f, d, why, now_us);
    return true;
}

int failover_choose(const struct failover *f, const struct decide *d)
{
    const struct view_switch *sw = &d->view.sw;
    int chosen = former_choice(f, d);

    return chosen != VIEW_NO_NODE && failover_is_ready(d, chosen, sw->node)
               ? chosen
               : failover_candidate(d, sw->node, sw->phase_us);
}

bool failover_is_named(const struct failover *f, const struct decide *d, int target)
{
    const struct view_switch *sw = &d->view.sw;

    return !f->word.keeps || sw->is_asked_for || target == VIEW_NO_NODE || sw->node < 0 ||
           f->word.candidate[sw->node] == target;
}

bool failover_may(const struct failover *f, int node)
{
    return !f->word.asks || (f->word.leads && node >= 0 && view_has_node(f->word.may, node));
}

void failover_doubt(struct failover *f, bool is_stale)
{
    f->word.is_stale =
        is_stale && f->word.asks && f->word.leads; /* who does not lead has no word to doubt */
}

bool failover_may_begin(const struct failover *f, int node)
{
    return failover_may(f, node) && !f->word.is_stale;
}

/* A pgpool that began after the primary was lost has seen nothing of it but silence, and takes it
 * for a standby; that it was the primary it knows from the log. No primary was ever seen here, and
 * no failover begun: one that was given up is not begun again. */
static bool is_to_take_up(const struct failover *f, const struct decide *d)
{
    int node = d->agreed;

    if (node < 0 || node >= d->rules.nnodes || !d->rules.node[node].exists ||
        d->rules.mode != DECIDE_MODE_STREAMING)
        return false;
    if (view_failover_in_progress(&d->view) || d->view.primary != VIEW_NO_NODE ||
        d->view.primary_epoch != 0 || d->view.sw.since_us != 0)
        return false;
    return d->view.node[node].status == VIEW_DOWN && failover_may_begin(f, node) &&
           (!d->view.node[node].held_down || d->rules.has.failover_command);
}

/* Whoever begins at such a moment cannot tell the loss of one server from an outage of all. */
static void begin_late(struct failover *f, struct decide *d, struct decide_event *e)
{
    snprintf(e->text, sizeof e->text, "node %d, the primary, was lost before this pgpool began",
        e->node);
    failover_beside_drop(f, d, e->node);
    failover_confirm(f, d, e);
    f->retry_us = d->began_us + FAILOVER_OUTAGE_US;
    if (e->at_us < f->retry_us)
        failover_tell_waiting(f, d,
            "It was lost before this pgpool began: it and the others get a minute to come back "
            "first.",
            e->at_us);
}

void failover_begin_anew(struct failover *f, struct decide *d, int64_t now_us)
{
    int node = d->view.sw.node;
    struct decide_event e = {.type = DECIDE_EV_DOWN, .node = node, .other = node, .at_us = now_us};

    snprintf(decide_note(d, DECIDE_EV_FAILED, node, node, now_us,
                 "failover of node %d did not succeed yet: trying again", node)
                 ->detail,
        DECIDE_TEXT_BYTES, "node %d was told to be the primary, but did not become it",
        d->view.sw.target);
    begin_late(f, d, &e);
    decide_settle(d, now_us);
}

void failover_take_up(struct failover *f, struct decide *d, int64_t now_us)
{
    const struct view_node *v = &d->view.node[d->agreed < 0 ? 0 : d->agreed];
    struct decide_event e = {.type = v->held_down ? DECIDE_EV_DETACH : DECIDE_EV_DOWN,
        .node = d->agreed,
        .other = d->agreed,
        .at_us = now_us};

    if (!is_to_take_up(f, d))
        return;
    snprintf(e.who, sizeof e.who, "%s", v->held_by);
    /* Who is behind on an older timeline has not what was acknowledged on this one. */
    if (d->agreed_timeline > d->top_timeline)
        d->top_timeline = d->agreed_timeline;
    begin_late(f, d, &e);
}
