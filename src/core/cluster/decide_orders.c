/* SPDX-License-Identifier: PostgreSQL
 * decide_orders.c: what operators want of servers: detach, attach, name the primary.
 * Runs in: monitor. Pure. */
#include "config.h"

#include <string.h>

#include "decide_int.h"

static bool is_known(const struct decide *d, int node)
{
    return node >= 0 && node < d->rules.nnodes && d->rules.node[node].exists;
}

static void copy_text(const char *from, char *to, size_t room)
{
    memset(to, 0, room);
    memcpy(to, from, strnlen(from, room - 1));
}

static void hold(struct decide *d, int node, const char *who, const char *why, int64_t now_us)
{
    struct view_node *v = &d->view.node[node];

    v->held_down = true;
    copy_text(who, v->held_by, sizeof v->held_by);
    copy_text(why, v->held_why, sizeof v->held_why);
    decide_set_status(d, node, VIEW_DOWN, now_us);
    if (d->named == node)
        d->named = VIEW_NO_NODE;
}

void decide_hold(struct decide *d, int node, const char *who, const char *why, int64_t since_us)
{
    if (!is_known(d, node))
        return;
    hold(d, node, who, why, since_us);
    decide_settle(d, since_us);
}

void decide_detach(struct decide *d, int node, const char *who, const char *why, int64_t now_us)
{
    struct decide_event *e;

    if (!is_known(d, node))
        return;
    hold(d, node, who, why, now_us);
    e = decide_note(d, DECIDE_EV_DETACH, node, d->view.primary, now_us,
        "node %d is detached by %s until it is attached", node, who);
    copy_text(why, e->detail, sizeof e->detail);
    copy_text(who, e->who, sizeof e->who);
    decide_settle(d, now_us);
}

/* Whom others say they are, and on which timeline, counts no more against this one; who becomes a
 * primary later does. */
static void name(struct decide *d, int node)
{
    d->named = node;
    memset(d->followers, 0, sizeof d->followers);
    d->top_timeline = 0;
}

void decide_vouch(struct decide *d, int node)
{
    struct decide_node *n = &d->node[node];

    if (!n->have_facts || !n->facts.is_primary ||
        (d->view.primary != VIEW_NO_NODE && n->stray_us == 0))
        return;
    name(d, node);
}

/* What a server said last may not be true any more: it may have been rebuilt as a standby since.
 * One that takes the place of the primary by its word has to say it now. */
static void ask_anew(struct decide *d, int node)
{
    d->node[node].is_silent = true;
    d->node[node].oks = 0;
    d->view.node[node].pg_status = VIEW_PG_DOWN;
}

void decide_attach(struct decide *d, int node, const char *who, int64_t now_us)
{
    struct decide_node *n = &d->node[node];
    struct view_node *v = &d->view.node[node];
    struct decide_event *e;

    if (!is_known(d, node))
        return;
    v->held_down = false;
    memset(v->held_by, 0, sizeof v->held_by);
    memset(v->held_why, 0, sizeof v->held_why);
    n->fails = 0;
    n->returned_us = 0;
    if (n->have_facts && n->facts.is_primary && node != d->view.primary)
        ask_anew(d, node);
    n->is_vouched = n->is_silent;
    d->missed[node / 64] &= ~(UINT64_C(1) << (node % 64)); /* till they say so again */
    decide_set_status(d, node, VIEW_WAITING, now_us);
    e = decide_note(
        d, DECIDE_EV_ATTACH, node, d->view.primary, now_us, "node %d is attached by %s", node, who);
    copy_text(who, e->who, sizeof e->who);
    decide_settle(d, now_us);
}

void decide_promote(struct decide *d, int node, const char *who, int64_t now_us)
{
    struct decide_node *n = &d->node[node];
    struct decide_event *e;

    if (!is_known(d, node))
        return;
    if (n->have_facts && !n->facts.is_primary) {
        decide_note(d, DECIDE_EV_STALE, node, d->view.primary, now_us,
            "node %d was named primary by %s, but says that it is a standby", node, who)
            ->hint = "Promote the server: its new role is then followed by itself.";
        return;
    }
    name(d, node);
    d->view.node[node].held_down = false;
    decide_set_status(d, node, VIEW_WAITING, now_us);
    e = decide_note(d, DECIDE_EV_ATTACH, node, d->view.primary, now_us,
        "node %d is named primary by %s", node, who);
    copy_text(who, e->who, sizeof e->who);
    decide_settle(d, now_us);
}

void decide_agree(
    struct decide *d, int primary, uint32_t timeline, const uint64_t barred[2], int64_t now_us)
{
    d->agreed_timeline = timeline;
    if (d->agreed == primary && memcmp(d->barred, barred, sizeof d->barred) == 0)
        return;
    d->agreed = primary;
    memcpy(d->barred, barred, sizeof d->barred);
    decide_settle(d, now_us);
}

void decide_agree_lost(struct decide *d, const uint64_t lost[2], int64_t now_us)
{
    if (memcmp(d->missed, lost, sizeof d->missed) == 0)
        return;
    memcpy(d->missed, lost, sizeof d->missed);
    decide_settle(d, now_us);
}

bool decide_is_silent(const struct decide *d, int node)
{
    return d->rules.node[node].exists && (d->node[node].is_silent || d->node[node].suspected);
}

bool decide_finds_lost(const struct decide *d, int node)
{
    const struct view_node *v = &d->view.node[node];

    return d->rules.node[node].exists && v->status == VIEW_DOWN && !v->held_down &&
           !(v->is_missed && !d->node[node].is_silent);
}
