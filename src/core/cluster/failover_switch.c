/* SPDX-License-Identifier: PostgreSQL
 * failover_switch.c: an operator's order to make a standby the primary, while the old one lives.
 * Runs in: monitor. Pure. By SQL: new transactions on the old primary are made read-only, what runs
 * may end or is ended, the standby receives all that was written, is promoted, and only then may
 * write. Whatever goes wrong before the promotion leaves the old primary as it was. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "failover_int.h"

#define US_PER_S            INT64_C(1000000)
#define CUT_LIMIT_US        (5 * US_PER_S)
#define UNFENCE_TRIES       60
#define UNFENCE_TRIES_LATER 3 /* it is not the primary any more */
#define UNFENCE_RETRY_US    (1 * US_PER_S)
#define RECEIVE_US          (10 * US_PER_S)

static int refuse(struct err *err, const char *detail)
{
    err_set(err, "55000", "invalid promote request");
    err_detail(err, "%s", detail);
    return -1;
}

/* A lost primary for which nobody has been told to take its place: an operator may choose. */
static bool is_open(const struct decide *d)
{
    const struct view_switch *sw = &d->view.sw;

    return !sw->is_asked_for && sw->target == VIEW_NO_NODE && d->view.primary == VIEW_NO_NODE &&
           (sw->phase == VIEW_PHASE_CONFIRM || sw->phase == VIEW_PHASE_SEARCH);
}

static int check(const struct decide *d, int node, struct err *err)
{
    if (d->rules.mode != DECIDE_MODE_STREAMING)
        return refuse(err, "Promotion needs backend_clustering_mode = streaming_replication.");
    if (node < 0 || node >= d->rules.nnodes || !d->rules.node[node].exists)
        return refuse(err, "There is no such node.");
    if (view_failover_in_progress(&d->view) && !is_open(d))
        return refuse(err, "A failover or a switchover is going on.");
    if (d->view.primary == node)
        return refuse(err, "The specified node is already the primary node.");
    if (!decide_is_used(d, node) || d->node[node].is_silent || d->view.node[node].is_busy)
        return refuse(err, "The node is not in use or does not answer.");
    if (!decide_has_facts(d, node) || d->node[node].facts.is_primary)
        return refuse(err, "The node is not known to be a standby.");
    if (!failover_is_kin(d->system_id, d->node[node].facts.system_id))
        return refuse(err, "The node belongs to another cluster than the primary.");
    if (d->node[node].facts.timeline != 0 && d->node[node].facts.timeline < d->top_timeline)
        return refuse(err, "The node is on an older timeline than the primary.");
    return 0;
}

int failover_switch(struct failover *f, struct decide *d, int node, const char *who, int64_t now_us,
    struct err *err)
{
    struct view_switch *sw = &d->view.sw;
    struct decide_event *e;

    if (check(d, node, err) == -1)
        return -1;
    e = decide_note(d, DECIDE_EV_SWITCH, node, d->view.primary, now_us,
        "=== Starting promotion. promote host %s(%d) ===", d->rules.node[node].host,
        d->rules.node[node].port);
    snprintf(e->who, sizeof e->who, "%s", who);
    sw->is_asked_for = true;
    sw->is_fenced = false;
    sw->tries = 0;
    /* What was lost stays what is replaced. */
    if (d->view.primary != VIEW_NO_NODE || !view_failover_in_progress(&d->view))
        sw->node = d->view.primary;
    sw->target = node;
    sw->ended_node = node;
    sw->nbegun++;
    sw->passed = 0;
    sw->pending_us = 0;
    sw->barred = VIEW_NO_NODE;
    failover_lead_forget(d);
    sw->pid = 0;
    sw->since_us = now_us;
    memset(sw->who, 0, sizeof sw->who);
    snprintf(sw->who, sizeof sw->who, "%s", who);
    snprintf(f->reason, sizeof f->reason, "node %d was chosen to be the primary", node);
    f->is_living = true;
    f->was_cut = false;
    sw->outage_us = 0;
    f->told_waiting = false;
    f->failed = false;
    f->retry_us = 0;
    sw->unsure_us = 0;
    sw->is_resumed = false;
    failover_enter(
        f, d, d->view.primary == VIEW_NO_NODE ? VIEW_PHASE_CONFIRM : VIEW_PHASE_FENCE, now_us);
    return 0;
}

void failover_switch_back(struct failover *f, struct decide *d, const char *why, int64_t now_us)
{
    snprintf(f->why, sizeof f->why, "%.*s", (int)sizeof f->why - 1, why);
    if (failover_is_pending(d, now_us)) {
        failover_enter(f, d, VIEW_PHASE_SEARCH, now_us);
        return;
    }
    if (!d->view.sw.is_fenced) {
        failover_end(f, d, false, f->why, now_us);
        return;
    }
    f->failed = true;
    f->retry_us = now_us;
    d->view.sw.tries = 0;
    failover_enter(f, d, VIEW_PHASE_UNFENCE, now_us);
}

/* What the old primary had written when it stopped is there, and what the others have of it. */
static struct failover_do catch_up(struct failover *f, struct decide *d, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;
    const struct decide_node *n = &d->node[sw->target];

    if (decide_has_facts(d, sw->target) && n->asked_us >= sw->phase_us &&
        n->facts.received_lsn >= f->cut_lsn &&
        (d->rules.has.failover_command || failover_lead_is_ahead(d))) {
        if (d->rules.has.failover_command)
            return failover_promote(f, d, sw->target, now_us);
        failover_enter(f, d, VIEW_PHASE_PROMOTE, now_us);
        sw->pending_us = now_us;
        decide_note(
            d, DECIDE_EV_PROMOTE, sw->target, sw->node, now_us, "promoting node %d", sw->target);
        return failover_begin(f, d, FAILOVER_DO_PROMOTE);
    }
    if (now_us - sw->phase_us > RECEIVE_US)
        failover_switch_back(f, d, "the standby did not receive all in time", now_us);
    return failover_ask(f, now_us);
}

struct failover_do failover_switch_step(struct failover *f, struct decide *d, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;

    switch ((enum view_phase)sw->phase) {
    case VIEW_PHASE_FENCE:
        /* Workers have seen by now that writes are to wait, and nobody takes away an earlier fence,
         * which would be this one then. */
        if (now_us - sw->phase_us < FAILOVER_ASK_US ||
            (f->beside_busy && f->beside.type == FAILOVER_DO_UNFENCE_BESIDE))
            break;
        f->was_fenced = view_has_node(sw->fenced, sw->node);
        f->was_fence_set = view_has_node(sw->fence_set, sw->node);
        sw->is_fenced = true;
        failover_put(sw->fenced, sw->node, true);
        failover_put(sw->fence_set, sw->node, true);
        return failover_begin(f, d, FAILOVER_DO_FENCE);
    case VIEW_PHASE_DRAIN:
        if (now_us < f->retry_us)
            break;
        return failover_begin(f, d, FAILOVER_DO_DRAIN);
    case VIEW_PHASE_CUT:
        return failover_begin(f, d, FAILOVER_DO_CUT);
    case VIEW_PHASE_LEAD:
        return failover_lead_step(f, d, now_us);
    case VIEW_PHASE_CATCHUP:
        return catch_up(f, d, now_us);
    case VIEW_PHASE_UNFENCE: {
        struct failover_do out;

        if (now_us < f->retry_us || d->view.is_looking)
            break; /* it is not known yet whether the old primary is one still */
        out = failover_begin(f, d, FAILOVER_DO_UNFENCE);

        out.target = d->view.primary == sw->node ? sw->node : VIEW_NO_NODE;
        return out;
    }
    default:
        break;
    }
    return (struct failover_do){.type = FAILOVER_DO_NOTHING};
}

/* All that was written is to get to the new one. A command leads the others in its own way. */
static void on_all_written(struct failover *f, struct decide *d, uint64_t lsn, int64_t now_us)
{
    f->cut_lsn = lsn;
    failover_enter(
        f, d, d->rules.has.failover_command ? VIEW_PHASE_CATCHUP : VIEW_PHASE_LEAD, now_us);
}

/* Where a command does the work our rights may not suffice to stop writes of others than our
 * clients. */
static bool goes_on(
    struct failover *f, struct decide *d, const struct failover_outcome *o, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;
    enum view_phase phase = (enum view_phase)sw->phase;

    if (!d->rules.has.failover_command || o->is_unsure ||
        (phase != VIEW_PHASE_FENCE && sw->is_fenced))
        return false;
    if (phase == VIEW_PHASE_FENCE) {
        if (!f->was_fenced)
            snprintf(decide_note(d, DECIDE_EV_WAIT, sw->node, sw->node, now_us,
                         "node %d is not kept from writing: failover_command has to see to that",
                         sw->node)
                         ->detail,
                DECIDE_TEXT_BYTES, "%s", o->text);
        /* What an earlier switchover has left there is taken back behind this one. */
        failover_put(sw->fenced, sw->node, f->was_fenced);
        failover_put(sw->fence_set, sw->node, f->was_fence_set);
        sw->is_fenced = false;
    }
    /* Without its position there is nothing to wait for. */
    failover_enter(f, d, phase == VIEW_PHASE_DRAIN ? VIEW_PHASE_CONFIRM : VIEW_PHASE_DRAIN, now_us);
    return true;
}

static void on_drained(
    struct failover *f, struct decide *d, const struct failover_outcome *o, int64_t now_us)
{
    const struct view_switch *sw = &d->view.sw;
    int64_t age_us = now_us - sw->phase_us;

    if (o->count == 0) {
        on_all_written(f, d, o->lsn, now_us);
    } else if (!f->was_cut && age_us >= d->rules.drain_limit_us) {
        f->was_cut = true;
        failover_enter(f, d, VIEW_PHASE_CUT, now_us);
    } else if (f->was_cut && age_us >= CUT_LIMIT_US && !sw->is_fenced) {
        on_all_written(f, d, o->lsn, now_us);
    } else if (f->was_cut && age_us >= CUT_LIMIT_US) {
        failover_switch_back(f, d, "transactions on the old primary could not be ended", now_us);
    } else {
        f->retry_us = now_us + FAILOVER_ASK_US;
    }
}

void failover_unfenced(struct decide *d, int node, bool has_reloaded)
{
    failover_put(d->view.sw.fence_set, node, false);
    if (has_reloaded)
        failover_put(d->view.sw.fenced, node, false);
}

static void on_unfenced(
    struct failover *f, struct decide *d, const struct failover_outcome *o, int64_t now_us)
{
    struct view_switch *sw = &d->view.sw;
    bool well =
        sw->is_asked_for ? d->view.primary == sw->ended_node : d->view.primary != VIEW_NO_NODE;

    /* The old primary is gone, maybe by the command: the fence is taken out when it comes back. */
    if (!o->ok && d->view.primary != sw->node && d->node[sw->node].is_silent) {
        sw->is_fenced = false;
        failover_end(f, d, well, f->failed ? f->why : "the switchover was interrupted", now_us);
        return;
    }
    /* A primary that takes no writes is worse than a late end. */
    if (!o->ok && sw->tries < (d->view.primary == sw->node ? UNFENCE_TRIES : UNFENCE_TRIES_LATER)) {
        sw->tries++;
        f->retry_us = now_us + UNFENCE_RETRY_US;
        return;
    }
    if (o->ok)
        failover_unfenced(d, sw->node, d->view.primary == sw->node);
    else {
        struct decide_event *e = decide_note(d, DECIDE_EV_FAILED, sw->node, sw->node, now_us,
            "default_transaction_read_only could not be taken back on node %d", sw->node);

        snprintf(e->detail, sizeof e->detail, "%s", o->text);
        e->hint = "There: ALTER SYSTEM RESET default_transaction_read_only; SELECT "
                  "pg_reload_conf();";
    }
    sw->is_fenced = false;
    failover_end(f, d, well, f->failed ? f->why : "the switchover was interrupted", now_us);
}

void failover_switch_done(
    struct failover *f, struct decide *d, const struct failover_outcome *o, int64_t now_us)
{
    enum view_phase phase = (enum view_phase)d->view.sw.phase;
    const char *why;

    if (phase == VIEW_PHASE_UNFENCE)
        on_unfenced(f, d, o, now_us);
    else if (phase == VIEW_PHASE_LEAD) {
        why = failover_lead_done(f, d, o, now_us);
        if (why != NULL)
            failover_switch_back(f, d, why, now_us);
    } else if (!o->ok) {
        if (!goes_on(f, d, o, now_us))
            failover_switch_back(f, d, o->text, now_us);
    } else if (phase == VIEW_PHASE_DRAIN)
        on_drained(f, d, o, now_us);
    else
        failover_enter(f, d, VIEW_PHASE_DRAIN, now_us);
}
