/* SPDX-License-Identifier: PostgreSQL
 * failover.c: a lost primary: confirm, choose, promote or have promoted, wait for the new one.
 * Runs in: monitor. Pure. The choice is made from answers that are younger than the loss, so that
 * the standby that has received most is known. By SQL nobody is promoted while a standby still
 * streams from the old primary: then that is alive, and only we do not reach it. */
#include "config.h"

#include "cluster/failover.h"

#include <stdio.h>
#include <string.h>

#include "failover_int.h"

#define US_PER_S       INT64_C(1000000)
#define FRESH_LIMIT_US (3 * US_PER_S)
#define UNBAR_US       (10 * US_PER_S) /* a command succeeded, but only the old primary is there */
#define NOBODY                                                                                     \
    "No standby can be promoted: none answers that is on the right timeline. When one does, the "  \
    "primary and the others get a minute to come back first."
#define RETRY_US      (2 * US_PER_S)
#define MAX_RETRY_US  (10 * US_PER_S)
#define COMMAND_TRIES 3
#define PROMOTE_TRIES 10

void failover_init(struct failover *f)
{
    memset(f, 0, sizeof *f);
    f->wanted = VIEW_NO_NODE;
}

bool failover_is_acting(const struct failover *f, const struct decide *d)
{
    const struct view_switch *sw = &d->view.sw;
    int i;

    if (view_failover_in_progress(&d->view) && (sw->is_asked_for || failover_may(f, sw->node)))
        return true;
    for (i = 0; i < sw->njobs; i++)
        if (sw->job[i].hook != HOOK_FAILOVER || failover_may(f, sw->job[i].node))
            return true;
    return f->busy || f->beside_busy;
}

void failover_enter(struct failover *f, struct decide *d, enum view_phase phase, int64_t now_us)
{
    d->view.sw.phase = (uint8_t)phase;
    d->view.sw.phase_us = now_us;
    d->view.sw.timeline = d->top_timeline;
    if (d->view.sw.is_asked_for)
        d->view.sw.passed |= UINT32_C(1) << phase;
    f->ask_us = 0;
    f->busy = false;
}

struct failover_do failover_ask(struct failover *f, int64_t now_us)
{
    struct failover_do out = {.type = FAILOVER_DO_NOTHING};

    if (now_us - f->ask_us < FAILOVER_ASK_US && now_us >= f->ask_us)
        return out;
    f->ask_us = now_us;
    out.type = FAILOVER_DO_ASK;
    return out;
}

struct failover_do failover_begin(
    struct failover *f, const struct decide *d, enum failover_do_type type)
{
    const struct view_switch *sw = &d->view.sw;
    struct failover_do out = {
        .type = type, .node = sw->node, .target = sw->target, .old = sw->node};

    snprintf(out.reason, sizeof out.reason, "%s", f->reason);
    snprintf(out.who, sizeof out.who, "%s", sw->who);
    f->busy = true;
    out.seq = ++f->seq;
    return out;
}

/* The choice */

static bool is_ready(const struct decide *d, int node, int lost, int64_t since_us)
{
    const struct decide_node *n = &d->node[node];
    const struct view_node *v = &d->view.node[node];

    return node != lost && decide_has_facts(d, node) && decide_is_used(d, node) && !v->is_busy &&
           !n->is_silent && !n->facts.is_primary && n->asked_us >= since_us &&
           failover_is_kin(d->system_id, n->facts.system_id) &&
           (n->facts.timeline == 0 || n->facts.timeline >= d->top_timeline);
}

bool failover_is_ready(const struct decide *d, int node, int lost)
{
    return is_ready(d, node, lost, d->view.sw.phase_us);
}

static bool is_ahead(const struct decide *d, int a, int b)
{
    const struct decide_facts *fa = &d->node[a].facts;
    const struct decide_facts *fb = &d->node[b].facts;

    if (fa->timeline != fb->timeline)
        return fa->timeline > fb->timeline;
    if (fa->received_lsn != fb->received_lsn)
        return fa->received_lsn > fb->received_lsn;
    if (d->rules.node[a].weight != d->rules.node[b].weight)
        return d->rules.node[a].weight > d->rules.node[b].weight;
    return a < b;
}

int failover_candidate(const struct decide *d, int lost, int64_t since_us)
{
    int best = VIEW_NO_NODE;
    int i;

    for (i = 0; i < d->rules.nnodes; i++)
        if (is_ready(d, i, lost, since_us) && (best == VIEW_NO_NODE || is_ahead(d, i, best)))
            best = i;
    return best;
}

/* Everybody has said something since, or has been given long enough. */
static bool all_fresh(const struct decide *d, int64_t now_us)
{
    const struct view_switch *sw = &d->view.sw;
    int i;

    if (now_us - sw->phase_us > FRESH_LIMIT_US)
        return true;
    for (i = 0; i < d->rules.nnodes; i++)
        if (i != sw->node && d->rules.node[i].exists && decide_is_used(d, i) &&
            d->node[i].asked_us < sw->phase_us)
            return false;
    return true;
}

/* Somebody has answered, but what was asked before the loss: he is asked again at once. */
static bool is_answered_late(const struct failover *f, const struct decide *d)
{
    const struct view_switch *sw = &d->view.sw;
    int i;

    for (i = 0; i < d->rules.nnodes && f->ask_us >= sw->phase_us; i++)
        if (i != sw->node && d->rules.node[i].exists && decide_is_used(d, i) &&
            d->node[i].asked_us < sw->phase_us && d->view.node[i].probed_us > f->ask_us)
            return true;
    return false;
}

/* Beginning and end */

static void note_start(struct decide *d, int node, const struct decide_event *e)
{
    const struct decide_rule *rule = &d->rules.node[node];
    struct decide_event *out = decide_note(d, DECIDE_EV_FAILOVER, node, e->other, e->at_us,
        "=== Starting degeneration. shutdown host %s(%d) ===", rule->host, rule->port);

    snprintf(out->detail, sizeof out->detail, "%s", e->detail);
    snprintf(out->who, sizeof out->who, "%s", e->who);
}

static void note_end(struct decide *d, int node, int64_t now_us)
{
    const struct decide_rule *rule = &d->rules.node[node];

    decide_note(d, DECIDE_EV_FAILOVER_DONE, node, d->view.primary, now_us,
        "=== Failover done. shutdown host %s(%d) ===", rule->host, rule->port);
}

void failover_confirm(struct failover *f, struct decide *d, const struct decide_event *e)
{
    struct view_switch *sw = &d->view.sw;

    sw->is_asked_for = false;
    sw->is_fenced = sw->is_fenced && sw->node == e->node; /* another's is taken back beside */
    sw->pending_us = 0;
    sw->tries = 0;
    sw->node = e->node;
    sw->target = VIEW_NO_NODE;
    sw->barred = VIEW_NO_NODE;
    sw->pid = 0;
    sw->since_us = e->at_us;
    memset(sw->who, 0, sizeof sw->who);
    snprintf(sw->who, sizeof sw->who, "%s", e->who);
    f->is_living = e->type == DECIDE_EV_DETACH;
    f->told_waiting = false;
    sw->outage_us = 0;
    f->failed = false;
    f->wanted = VIEW_NO_NODE;
    f->heir_us = 0;
    f->retry_us = 0;
    sw->unsure_us = 0;
    sw->is_resumed = false;
    snprintf(f->reason, sizeof f->reason, "%.*s", (int)sizeof f->reason - 1, e->text);
    failover_enter(f, d, VIEW_PHASE_CONFIRM, e->at_us);
}

static void note_new_primary(struct failover *f, struct decide *d, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;

    decide_note(d, DECIDE_EV_FAILOVER_DONE, d->view.primary, sw->node, now_us,
        "failover: set new primary node: %d", d->view.primary);
    decide_note(d, DECIDE_EV_WAIT, d->view.primary, sw->node, now_us,
        "failover: set new main node: %d", d->view.primary);
    sw->follow_epoch = 0;
    if (d->rules.has.follow_primary_command || d->rules.auto_promote || sw->is_asked_for) {
        sw->follow_epoch = d->view.primary_epoch;
        sw->follow_old = sw->node;
        memset(sw->followed, 0, sizeof sw->followed);
        memset(f->follow_tries, 0, sizeof f->follow_tries);
    }
}

static void end_switch(struct decide *d, bool well, const char *why, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;
    int node = sw->ended_node;
    const struct decide_rule *rule = &d->rules.node[node];

    sw->ended_well = well;
    snprintf(sw->ended_why, sizeof sw->ended_why, "%.*s", (int)sizeof sw->ended_why - 1, why);
    sw->nended++;
    if (well)
        decide_note(d, DECIDE_EV_SWITCH_DONE, node, sw->node, now_us,
            "=== Promotion done. promoted host %s(%d) ===", rule->host, rule->port);
    else
        snprintf(decide_note(d, DECIDE_EV_FAILED, node, sw->node, now_us,
                     "switching over to node %d was given up", node)
                     ->detail,
            DECIDE_TEXT_BYTES, "%s", why);
}

/* The old primary was lost while another one was about to take its place, which it then did not. */
static void begin_late(struct failover *f, struct decide *d, int node, int64_t now_us)
{
    struct decide_event e = {.type = DECIDE_EV_DOWN, .node = node, .other = node, .at_us = now_us};

    snprintf(e.text, sizeof e.text, "node %d was lost during a switchover", node);
    failover_confirm(f, d, &e);
}

void failover_end(struct failover *f, struct decide *d, bool well, const char *why, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;
    int lost = sw->is_asked_for && d->view.primary == VIEW_NO_NODE && sw->node != VIEW_NO_NODE &&
                       d->view.node[sw->node].status == VIEW_DOWN &&
                       !d->view.node[sw->node].held_down
                   ? sw->node
                   : VIEW_NO_NODE;

    if (d->view.primary != VIEW_NO_NODE && d->view.primary != sw->node)
        note_new_primary(f, d, now_us);
    if (sw->is_asked_for) {
        end_switch(d, well, why, now_us);
    } else {
        if (!well)
            snprintf(decide_note(d, DECIDE_EV_FAILED, sw->node, sw->node, now_us,
                         "failover of node %d was given up", sw->node)
                         ->detail,
                DECIDE_TEXT_BYTES, "%s", why);
        note_end(d, sw->node, now_us);
    }
    if (d->view.primary != sw->node)
        failover_lead_forget(d);
    sw->barred = VIEW_NO_NODE;
    sw->pid = 0;
    sw->is_fenced = false;
    sw->pending_us = 0;
    sw->unsure_us = 0;
    sw->is_resumed = false;
    failover_enter(f, d, VIEW_PHASE_NONE, now_us);
    sw->node = VIEW_NO_NODE;
    sw->target = VIEW_NO_NODE;
    decide_settle(d, now_us);
    if (lost != VIEW_NO_NODE && d->view.primary == VIEW_NO_NODE)
        begin_late(f, d, lost, now_us);
}

/* Tried again later, from the choice on. The old primary may come back in the meantime. */
static void try_again(
    struct failover *f, struct decide *d, const char *why, int most, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;
    int64_t wait_us = RETRY_US * (sw->tries + 1);
    struct decide_event *e;

    if (++sw->tries >= most) {
        failover_end(f, d, false, why, now_us);
        return;
    }
    e = decide_note(d, DECIDE_EV_FAILED, sw->node, sw->node, now_us,
        "failover of node %d did not succeed yet: trying again", sw->node);
    snprintf(e->detail, sizeof e->detail, "%s", why);
    sw->barred = VIEW_NO_NODE;
    sw->unsure_us = 0;
    sw->is_resumed = false;
    f->retry_us = now_us + (wait_us < MAX_RETRY_US ? wait_us : MAX_RETRY_US);
    failover_enter(f, d, VIEW_PHASE_CONFIRM, now_us);
    decide_settle(d, now_us);
}

/* Events */

/* The new one comes all the same; a command may have stopped the old one. */
static bool is_being_replaced(const struct decide *d, int64_t now_us)
{
    enum view_phase phase = (enum view_phase)d->view.sw.phase;

    return phase == VIEW_PHASE_PROMOTE || phase == VIEW_PHASE_COMMAND ||
           phase == VIEW_PHASE_SEARCH || failover_is_pending(d, now_us);
}

static void on_loss(struct failover *f, struct decide *d, const struct decide_event *e)
{
    bool is_primary = d->rules.mode == DECIDE_MODE_STREAMING && e->node == e->other;
    struct view_switch *sw = &d->view.sw;

    note_start(d, e->node, e);
    if (view_failover_in_progress(&d->view) && sw->node == e->node && sw->is_asked_for) {
        if (is_being_replaced(d, e->at_us))
            return;
        failover_switch_back(f, d, "the primary was lost meanwhile", e->at_us);
    }
    if (is_primary && d->view.primary != e->node &&
        !(e->type == DECIDE_EV_DETACH && !d->rules.has.failover_command)) {
        failover_confirm(f, d, e);
        return;
    }
    if (d->rules.has.failover_command)
        failover_beside_add(f, d, HOOK_FAILOVER, e->node, e);
    else
        note_end(d, e->node, e->at_us);
}

static void on_return(struct failover *f, struct decide *d, const struct decide_event *e)
{
    const struct decide_rule *rule = &d->rules.node[e->node];
    struct decide_event *out;

    out = decide_note(d, DECIDE_EV_FAILBACK, e->node, d->view.primary, e->at_us,
        "=== Starting fail back. reconnect host %s(%d) ===", rule->host, rule->port);
    snprintf(out->detail, sizeof out->detail, "%s", e->detail);
    snprintf(out->who, sizeof out->who, "%s", e->who);
    if (d->rules.has.failback_command)
        failover_beside_add(f, d, HOOK_FAILBACK, e->node, e);
    else
        decide_note(d, DECIDE_EV_FAILBACK_DONE, e->node, d->view.primary, e->at_us,
            "=== Failback done. reconnect host %s(%d) ===", rule->host, rule->port);
}

void failover_on_event(struct failover *f, struct decide *d, const struct decide_event *e)
{
    if (e->node < 0 || e->node >= d->rules.nnodes)
        return;
    if (e->type == DECIDE_EV_DOWN || e->type == DECIDE_EV_DETACH)
        on_loss(f, d, e);
    else if (e->type == DECIDE_EV_RETURN || e->type == DECIDE_EV_ATTACH)
        on_return(f, d, e);
}

/* Steps */

void failover_tell_waiting(struct failover *f, struct decide *d, const char *why, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;

    if (f->told_waiting)
        return;
    f->told_waiting = true;
    snprintf(decide_note(d, DECIDE_EV_WAIT, sw->node, sw->node, now_us,
                 "failover of node %d waits: nobody is promoted yet", sw->node)
                 ->detail,
        DECIDE_TEXT_BYTES, "%s", why);
}

struct failover_do failover_promote(
    struct failover *f, struct decide *d, int target, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;
    enum view_phase phase = d->rules.has.failover_command ? VIEW_PHASE_COMMAND : VIEW_PHASE_PROMOTE;

    sw->target = target;
    sw->pending_us = sw->is_asked_for && phase == VIEW_PHASE_PROMOTE ? now_us : 0;
    /* Without anybody to take its place the old primary is welcome back. */
    sw->barred = target == VIEW_NO_NODE || d->view.primary == sw->node ? VIEW_NO_NODE : sw->node;
    failover_enter(f, d, phase, now_us);
    if (phase == VIEW_PHASE_PROMOTE)
        decide_note(d, DECIDE_EV_PROMOTE, target, sw->node, now_us, "promoting node %d", target);
    return failover_begin(
        f, d, phase == VIEW_PHASE_COMMAND ? FAILOVER_DO_COMMAND : FAILOVER_DO_PROMOTE);
}

/* A standby that would do but for its timeline: the lost primary had gone on to a newer one without
 * it. Then nobody is promoted (decisions/0013). */
static int find_left_behind(const struct decide *d)
{
    int i;

    for (i = 0; i < d->rules.nnodes; i++)
        if (i != d->view.sw.node && decide_has_facts(d, i) && !d->node[i].is_silent &&
            !d->node[i].facts.is_primary && d->node[i].facts.timeline != 0 &&
            d->node[i].facts.timeline < d->top_timeline &&
            failover_is_kin(d->system_id, d->node[i].facts.system_id))
            return i;
    return VIEW_NO_NODE;
}

static void tell_nobody(struct failover *f, struct decide *d, int64_t now_us)
{
    char why[DECIDE_TEXT_BYTES];
    int behind = find_left_behind(d);

    if (behind == VIEW_NO_NODE) {
        failover_tell_waiting(f, d, NOBODY, now_us);
        return;
    }
    snprintf(why, sizeof why,
        "Node %d is on timeline %u, but node %d was the primary on timeline %u: what was "
        "acknowledged there is only there. If it is gone for good, run SELECT pg_promote() on "
        "node %d yourself.",
        behind, d->node[behind].facts.timeline, d->view.sw.node, d->top_timeline, behind);
    failover_tell_waiting(f, d, why, now_us);
}

/* When the log of all pgpools says so, where there is one. */
static struct failover_do promote_named(
    struct failover *f, struct decide *d, int target, int64_t now_us)
{
    if (target != VIEW_NO_NODE)
        f->wanted = target;
    return failover_is_named(f, d, target) ? failover_promote(f, d, target, now_us)
                                           : failover_ask(f, now_us);
}

static struct failover_do confirm(struct failover *f, struct decide *d, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;
    char why[FAILOVER_TEXT_BYTES];
    int streaming;
    int target;

    if (!all_fresh(d, now_us) || now_us < f->retry_us) {
        if (is_answered_late(f, d))
            f->ask_us = 0;
        return failover_ask(f, now_us);
    }
    if (!sw->is_asked_for && !failover_may_begin(f, sw->node)) {
        failover_tell_waiting(f, d,
            "The other pgpools of the watchdog cluster have not agreed, or another one acts.",
            now_us);
        return failover_ask(f, now_us);
    }
    if (failover_waits_for_former(f, d, now_us))
        return failover_ask(f, now_us);
    target = sw->is_asked_for ? sw->ended_node : failover_choose(f, d);
    if (d->rules.has.failover_command) {
        if (target == VIEW_NO_NODE)
            decide_note(d, DECIDE_EV_WAIT, sw->node, sw->node, now_us,
                "failover: no valid backend node found");
        return promote_named(f, d, target, now_us);
    }
    if (!sw->is_asked_for && (!d->rules.auto_promote || f->is_living)) {
        failover_enter(f, d, VIEW_PHASE_SEARCH, now_us);
        return failover_ask(f, now_us);
    }
    streaming = failover_find_streaming(d);
    if (streaming != VIEW_NO_NODE && !sw->is_asked_for) {
        snprintf(why, sizeof why,
            "Node %d does not answer, but node %d still streams%s: it is alive, and "
            "a second primary must not be.",
            sw->node, streaming,
            d->node[streaming].facts.receiver_name[0] == '\0'
                ? ", and nobody may see from whom (sr_check_user needs pg_monitor)"
                : " from it");
        failover_tell_waiting(f, d, why, now_us);
        return failover_ask(f, now_us);
    }
    if (target == VIEW_NO_NODE) {
        sw->outage_us = now_us;
        tell_nobody(f, d, now_us);
        return failover_ask(f, now_us);
    }
    if (now_us - sw->outage_us < FAILOVER_OUTAGE_US && !sw->is_asked_for)
        return failover_ask(f, now_us);
    return promote_named(f, d, target, now_us);
}

/* Nobody knows whether the target has heard that it is to be the primary, but it is there, and is a
 * standby still: it is told again. Not by a pgpool that began since: others that had received more
 * may not be back yet. */
static bool is_to_hear_again(const struct failover *f, const struct decide *d, int64_t now_us)
{
    const struct view_switch *sw = &d->view.sw;

    return sw->unsure_us != 0 && !sw->is_resumed && d->rules.auto_promote &&
           now_us - sw->phase_us > RETRY_US && failover_may_begin(f, sw->node) &&
           failover_is_named(f, d, sw->target) && is_ready(d, sw->target, sw->node, sw->phase_us);
}

/* Nobody has shown up yet. */
static struct failover_do search(struct failover *f, struct decide *d, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;
    int64_t age_us = now_us - (sw->unsure_us != 0 ? sw->unsure_us : sw->phase_us);

    if (!sw->is_asked_for && d->rules.search_limit_us > 0 && age_us > d->rules.search_limit_us) {
        failover_end(
            f, d, false, "no primary was found within search_primary_node_timeout", now_us);
        return (struct failover_do){.type = FAILOVER_DO_NOTHING};
    }
    if (age_us > FAILOVER_PROMOTED_US && sw->is_asked_for) {
        failover_switch_back(f, d, "the server did not become the primary", now_us);
        return (struct failover_do){.type = FAILOVER_DO_NOTHING};
    }
    if (sw->target != VIEW_NO_NODE && !d->rules.has.failover_command &&
        age_us > FAILOVER_PROMOTED_US) {
        if (sw->is_resumed)
            failover_begin_anew(f, d, now_us);
        else
            try_again(f, d, "the promoted server did not become a primary", PROMOTE_TRIES, now_us);
        return (struct failover_do){.type = FAILOVER_DO_NOTHING};
    }
    if (is_to_hear_again(f, d, now_us))
        return failover_promote(f, d, sw->target, now_us);
    if (sw->barred != VIEW_NO_NODE && d->rules.has.failover_command && age_us > UNBAR_US) {
        sw->barred = VIEW_NO_NODE;
        decide_settle(d, now_us);
    }
    return failover_ask(f, now_us);
}

/* True when what was wanted is there, or the old primary is back. */
static bool settle(struct failover *f, struct decide *d, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;
    int primary = d->view.primary;

    if (primary == VIEW_NO_NODE)
        return false;
    if (primary != sw->node) {
        if (f->busy && sw->phase == VIEW_PHASE_COMMAND)
            return false; /* let it finish; nobody waits for that */
        if (sw->is_fenced && sw->phase != VIEW_PHASE_UNFENCE) {
            failover_enter(f, d, VIEW_PHASE_UNFENCE, now_us);
            return false;
        }
        if (sw->phase == VIEW_PHASE_UNFENCE)
            return false;
        failover_end(f, d, !sw->is_asked_for || primary == sw->ended_node,
            "another server has become the primary", now_us);
        return true;
    }
    if (sw->is_asked_for || f->busy || sw->phase == VIEW_PHASE_UNFENCE)
        return false; /* of course the old primary is there */
    if (sw->is_fenced) {
        failover_enter(f, d, VIEW_PHASE_UNFENCE, now_us);
        return false;
    }
    failover_end(f, d, true, "", now_us);
    return true;
}

/* Neither begun nor ended: a former monitor's. Another pgpool may have led meanwhile: it may have
 * chosen another server, and knows nothing of a switchover here. */
static struct failover_do promote_again(struct failover *f, struct decide *d, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;

    if (sw->is_asked_for && f->word.asks) {
        failover_enter(f, d, VIEW_PHASE_SEARCH, now_us);
        return failover_ask(f, now_us);
    }
    if (!sw->is_asked_for && !failover_may_begin(f, sw->node))
        return failover_ask(f, now_us);
    if (failover_is_named(f, d, sw->target))
        return failover_promote(f, d, sw->target, now_us);
    sw->barred = VIEW_NO_NODE;
    failover_enter(f, d, VIEW_PHASE_CONFIRM, now_us);
    return failover_ask(f, now_us);
}

struct failover_do failover_step(struct failover *f, struct decide *d, int64_t now_us)
{
    struct failover_do nothing = {.type = FAILOVER_DO_NOTHING};

    failover_bar_replaced(f, d, now_us);
    failover_take_up(f, d, now_us);
    if (!view_failover_in_progress(&d->view) || settle(f, d, now_us))
        return failover_beside_step(f, d, now_us);
    if (f->busy) {
        if (d->view.sw.phase == VIEW_PHASE_PROMOTE || d->view.sw.phase == VIEW_PHASE_COMMAND)
            nothing = failover_ask(f, now_us);
        return nothing.type == FAILOVER_DO_NOTHING ? failover_beside_step(f, d, now_us) : nothing;
    }
    switch ((enum view_phase)d->view.sw.phase) {
    case VIEW_PHASE_NONE:
        break;
    case VIEW_PHASE_CONFIRM:
        return confirm(f, d, now_us);
    case VIEW_PHASE_COMMAND:
    case VIEW_PHASE_PROMOTE:
        return promote_again(f, d, now_us);
    case VIEW_PHASE_SEARCH:
        return search(f, d, now_us);
    case VIEW_PHASE_FENCE:
    case VIEW_PHASE_DRAIN:
    case VIEW_PHASE_CUT:
    case VIEW_PHASE_LEAD:
    case VIEW_PHASE_CATCHUP:
    case VIEW_PHASE_UNFENCE:
        return failover_switch_step(f, d, now_us);
    }
    return nothing;
}

static void on_promoted(
    struct failover *f, struct decide *d, const struct failover_outcome *o, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;
    bool by_command = sw->phase == VIEW_PHASE_COMMAND;

    sw->pid = 0;
    f->busy = false;
    if (!o->ok && !o->is_unsure)
        sw->pending_us = 0;
    if (o->is_unsure && !sw->is_asked_for && sw->unsure_us == 0)
        sw->unsure_us = now_us;
    /* The target may become the primary soon, and nobody else must be. */
    if (o->ok || sw->unsure_us != 0 ||
        (d->view.primary != VIEW_NO_NODE && d->view.primary != sw->node)) {
        failover_enter(f, d, VIEW_PHASE_SEARCH, now_us);
        return;
    }
    if (sw->is_asked_for)
        failover_switch_back(f, d, o->text, now_us);
    else
        try_again(f, d, o->text, by_command ? COMMAND_TRIES : PROMOTE_TRIES, now_us);
}

void failover_on_done(
    struct failover *f, struct decide *d, const struct failover_outcome *o, int64_t now_us)
{
    if (!f->busy || o->seq != f->seq)
        return; /* what it belonged to is over */
    f->busy = false;
    switch ((enum view_phase)d->view.sw.phase) {
    case VIEW_PHASE_COMMAND:
    case VIEW_PHASE_PROMOTE:
        on_promoted(f, d, o, now_us);
        break;
    case VIEW_PHASE_FENCE:
    case VIEW_PHASE_DRAIN:
    case VIEW_PHASE_CUT:
    case VIEW_PHASE_LEAD:
    case VIEW_PHASE_CATCHUP:
    case VIEW_PHASE_UNFENCE:
        failover_switch_done(f, d, o, now_us);
        break;
    case VIEW_PHASE_NONE:
    case VIEW_PHASE_CONFIRM:
    case VIEW_PHASE_SEARCH:
        break;
    }
}

/* A former monitor's */

bool failover_adopt(struct failover *f, struct decide *d, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;

    f->busy = false;
    snprintf(f->reason, sizeof f->reason, "node %d was lost", sw->node);
    switch ((enum view_phase)sw->phase) {
    case VIEW_PHASE_NONE:
    case VIEW_PHASE_SEARCH:
    case VIEW_PHASE_UNFENCE:
        return false;
    case VIEW_PHASE_CONFIRM:
        failover_enter(f, d, VIEW_PHASE_CONFIRM, now_us);
        return false;
    case VIEW_PHASE_COMMAND:
        f->busy = sw->pid > 0;
        return f->busy;
    case VIEW_PHASE_PROMOTE:
        if (!sw->is_asked_for) {
            sw->unsure_us = now_us;
            failover_enter(f, d, VIEW_PHASE_SEARCH, now_us);
        }
        return false;
    case VIEW_PHASE_FENCE:
    case VIEW_PHASE_DRAIN:
    case VIEW_PHASE_CUT:
    case VIEW_PHASE_LEAD:
    case VIEW_PHASE_CATCHUP:
        break;
    }
    failover_switch_back(f, d, "the monitor process was restarted", now_us);
    return false;
}

/* An order to promote may have been heard. Till that is known the lost primary takes no writes, and
 * nobody is told to be the primary. */
static void resume_loss(
    struct failover *f, struct decide *d, const struct view_switch *kept, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;

    if (now_us - kept->unsure_us >= FAILOVER_PROMOTED_US || now_us < kept->unsure_us ||
        d->rules.has.failover_command)
        return;
    sw->node = sw->barred = kept->node;
    sw->target = kept->target;
    sw->unsure_us = kept->unsure_us;
    sw->is_resumed = true;
    d->top_timeline = kept->timeline;
    sw->since_us = now_us;
    snprintf(f->reason, sizeof f->reason, "node %d was lost", sw->node);
    failover_enter(f, d, VIEW_PHASE_SEARCH, now_us);
    decide_note(d, DECIDE_EV_FAILOVER, sw->node, VIEW_NO_NODE, now_us,
        "failover of node %d was cut short by the end of pgpool: node %d may have heard that it is "
        "to be the primary",
        sw->node, sw->target);
}

void failover_resume(
    struct failover *f, struct decide *d, const struct view_switch *kept, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;
    struct decide_event *e;

    memcpy(sw->fenced, kept->fenced, sizeof sw->fenced);
    memcpy(sw->fence_set, kept->fence_set, sizeof sw->fence_set);
    memcpy(sw->moved, kept->moved, sizeof sw->moved);
    memcpy(sw->slotted, kept->slotted, sizeof sw->slotted);
    sw->moved_to = kept->moved_to;
    if (kept->unsure_us != 0) {
        resume_loss(f, d, kept, now_us);
        return;
    }
    if (kept->pending_us == 0 || now_us - kept->pending_us >= FAILOVER_PROMOTED_US ||
        now_us < kept->pending_us || d->rules.has.failover_command) {
        /* A former primary keeps its fence until it is restarted: that is nothing to be told. */
        if ((kept->fence_set[0] | kept->fence_set[1] | kept->moved[0] | kept->moved[1]) != 0)
            decide_note(d, DECIDE_EV_SWITCH, kept->moved_to, VIEW_NO_NODE, now_us,
                "a switchover was cut short by the end of pgpool: what is left of it is taken "
                "back");
        return;
    }
    sw->is_asked_for = true;
    sw->is_fenced = true;
    sw->node = kept->node;
    sw->target = sw->ended_node = kept->target;
    sw->pending_us = kept->pending_us;
    d->top_timeline = kept->timeline;
    sw->since_us = now_us;
    sw->nbegun++;
    memcpy(sw->who, kept->who, sizeof sw->who);
    f->is_living = true;
    snprintf(f->reason, sizeof f->reason, "node %d was chosen to be the primary", sw->target);
    failover_enter(f, d, VIEW_PHASE_FENCE, now_us);
    e = decide_note(d, DECIDE_EV_SWITCH, sw->target, sw->node, now_us,
        "the switchover to node %d was cut short by the end of pgpool: it is gone on with",
        sw->target);
    snprintf(e->who, sizeof e->who, "%s", sw->who);
}

/* The command may have promoted its target: look for a primary; if none comes, run it again. */
void failover_on_adopted(struct failover *f, struct decide *d, int64_t now_us)
{
    if (d->view.sw.phase != VIEW_PHASE_COMMAND)
        return;
    f->busy = false;
    d->view.sw.pid = 0;
    failover_enter(f, d, VIEW_PHASE_CONFIRM, now_us);
    f->retry_us = now_us + RETRY_US;
}

bool failover_is_timing(const struct decide *d)
{
    return view_failover_in_progress(&d->view) ||
           (d->view.sw.replaced[0] | d->view.sw.replaced[1]) != 0;
}

int64_t failover_delay_ms(const struct failover *f, const struct decide *d)
{
    const struct view_switch *sw = &d->view.sw;

    if (view_failover_in_progress(&d->view))
        return FAILOVER_ASK_US / 1000;
    if (d->view.is_looking)
        return 500;
    return failover_is_timing(d) || sw->njobs > 0 || sw->follow_epoch != 0 ||
                   (sw->moved[0] | sw->moved[1] | sw->fenced[0] | sw->fenced[1]) != 0
               ? 1000
               : -1;
}
