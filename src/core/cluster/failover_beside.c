/* SPDX-License-Identifier: PostgreSQL
 * failover_beside.c: what is done without anybody waiting for it: commands about standbys that went
 * or came back, and leading standbys to a new primary.
 * Runs in: monitor. Pure. One thing at a time, and never in the way of a lost primary. A standby
 * that streams from the primary, or from one that does, is left alone. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "failover_int.h"

#define US_PER_S    INT64_C(1000000)
#define GRACE_US    (1 * US_PER_S) /* receivers notice a new timeline by themselves */
#define LOST_US     (5 * US_PER_S) /* without a stream: a restart takes less */
#define UNFENCE_US  (2 * US_PER_S)
#define STRAY_US    (1 * US_PER_S) /* streaming from a former primary: it gets further away */
#define MAX_BACKOFF 6
#define TELL_TRIES  2 /* 35 s after it was first led */

void failover_beside_add(struct failover *f, struct decide *d, enum hook_kind hook, int node,
    const struct decide_event *e)
{
    struct view_switch *sw = &d->view.sw;
    struct failover_words *words;

    if (sw->njobs == VIEW_MAX_JOBS) {
        decide_note(d, DECIDE_EV_FAILED, node, d->view.primary, e->at_us,
            "too many commands wait: none is run about node %d", node);
        return;
    }
    words = &f->words[sw->njobs];
    memset(words, 0, sizeof *words);
    snprintf(words->reason, sizeof words->reason, "%.*s", (int)sizeof words->reason - 1, e->text);
    snprintf(words->who, sizeof words->who, "%s", e->who);
    sw->job[sw->njobs++] =
        (struct view_job){.hook = (uint8_t)hook, .node = (int16_t)node, .old = (int16_t)e->other};
}

static void remove_job(struct failover *f, struct decide *d, int i)
{
    struct view_switch *sw = &d->view.sw;
    size_t behind = (size_t)(--sw->njobs - i);

    memmove(sw->job + i, sw->job + i + 1, behind * sizeof sw->job[0]);
    memmove(f->words + i, f->words + i + 1, behind * sizeof f->words[0]);
}

void failover_beside_drop(struct failover *f, struct decide *d, int node)
{
    int i;

    for (i = d->view.sw.njobs - 1; i >= 0; i--)
        if (d->view.sw.job[i].node == node)
            remove_job(f, d, i);
}

static struct failover_do begin_beside(struct failover *f, enum failover_do_type type,
    enum hook_kind hook, int node, int target, int old)
{
    struct failover_do *b = &f->beside;

    memset(b, 0, sizeof *b);
    b->type = type;
    b->hook = hook;
    b->node = node;
    b->target = target;
    b->old = old;
    f->beside_busy = true;
    return *b;
}

/* Runs a command; the next monitor is to know which. */
static struct failover_do begin_hook(
    struct failover *f, struct decide *d, const struct view_job *job)
{
    d->view.sw.beside = *job;
    return begin_beside(f, FAILOVER_DO_HOOK, job->hook, job->node, d->view.primary, job->old);
}

static struct failover_do next_job(struct failover *f, struct decide *d)
{
    struct failover_words words = f->words[0];

    begin_hook(f, d, &d->view.sw.job[0]);
    memcpy(f->beside.reason, words.reason, sizeof f->beside.reason);
    memcpy(f->beside.who, words.who, sizeof f->beside.who);
    remove_job(f, d, 0);
    return f->beside;
}

static struct failover_do next_follower(struct failover *f, struct decide *d, int node)
{
    struct view_job job = {
        .hook = HOOK_FOLLOW, .node = (int16_t)node, .old = (int16_t)d->view.sw.follow_old};

    begin_hook(f, d, &job);
    snprintf(
        f->beside.reason, sizeof f->beside.reason, "node %d is the new primary", d->view.primary);
    return f->beside;
}

bool failover_adopt_beside(struct failover *f, struct decide *d)
{
    struct view_switch *sw = &d->view.sw;
    int i;

    for (i = 0; i < sw->njobs; i++)
        snprintf(f->words[i].reason, sizeof f->words[i].reason,
            sw->job[i].hook == HOOK_FAILOVER ? "node %d was lost" : "node %d is back",
            sw->job[i].node);
    if (sw->beside_pid <= 0)
        return false;
    begin_hook(f, d, &sw->beside);
    return true;
}

static bool is_led(const struct decide *d, int node)
{
    return view_has_node(d->view.sw.followed, node);
}

static void set_led(struct decide *d, int node)
{
    failover_put(d->view.sw.followed, node, true);
}

/* A standby of this cluster that answers and does not stream what the primary writes. */
static bool is_astray(const struct decide *d, int node)
{
    const struct decide_node *n = &d->node[node];

    return decide_has_facts(d, node) && !n->is_silent && !d->view.node[node].is_busy &&
           !n->facts.is_primary && failover_is_kin(d->system_id, n->facts.system_id) &&
           n->lost_stream_us != 0;
}

static struct failover_do lead(struct failover *f, struct decide *d, int node, int64_t now_us)
{
    f->follow_us[node] = now_us;
    decide_note(d, DECIDE_EV_FOLLOW, node, d->view.primary, now_us,
        "node %d is led to the new primary, node %d", node, d->view.primary);
    begin_beside(f, FAILOVER_DO_FOLLOW, HOOK_FOLLOW, node, d->view.primary, d->view.sw.follow_old);
    f->beside.makes_slot = true;
    return f->beside;
}

/* The switchover was called off: it streams from the one that was to be promoted. */
static struct failover_do lead_back(struct failover *f, struct decide *d, int node, int64_t now_us)
{
    f->follow_us[node] = now_us;
    decide_note(d, DECIDE_EV_FOLLOW, node, d->view.primary, now_us,
        "node %d is led back to the primary, node %d", node, d->view.primary);
    begin_beside(f, FAILOVER_DO_FOLLOW, HOOK_FOLLOW, node, d->view.primary, d->view.sw.moved_to);
    f->beside.makes_slot = true;
    f->beside.drops_slot = view_has_node(d->view.sw.slotted, node);
    return f->beside;
}

/* The next one after a failover. By command every other server, living or not: the command looks;
 * but none that is detached, for such commands end by attaching. By SQL those that do not follow by
 * themselves, also detached ones. */
static struct failover_do follow_once(struct failover *f, struct decide *d, int64_t now_us)
{
    struct failover_do nothing = {.type = FAILOVER_DO_NOTHING};
    bool is_early = now_us - d->view.sw.phase_us < GRACE_US;
    bool all = true;
    int i;

    for (i = 0; i < d->rules.nnodes; i++) {
        if (!d->rules.node[i].exists || is_led(d, i))
            continue;
        if (i == d->view.primary ||
            (d->rules.has.follow_primary_command && d->view.node[i].held_down)) {
            set_led(d, i);
        } else if (d->rules.has.follow_primary_command) {
            return next_follower(f, d, i);
        } else if (is_astray(d, i) && !(is_early && d->view.node[i].is_receiving)) {
            return lead(f, d, i, now_us);
        } else if (is_early) {
            all = false;
        } else {
            set_led(d, i);
        }
    }
    if (all)
        d->view.sw.follow_epoch = 0;
    return nothing;
}

static void tell_astray(struct decide *d, int node, int64_t now_us)
{
    decide_note(d, DECIDE_EV_FAILED, node, d->view.primary, now_us,
        "node %d does not stream from the primary, node %d, although it was led there", node,
        d->view.primary)
        ->hint = "Its own log says why. One that has received more of the former primary than the "
                 "new one had has to be rebuilt: pcp_recovery_node.";
}

/* Standbys that come back after a failover still look for the old primary. */
static struct failover_do follow_later(struct failover *f, struct decide *d, int64_t now_us)
{
    int i;

    for (i = 0; i < d->rules.nnodes; i++) {
        int64_t wait_us = LOST_US << f->follow_tries[i];
        int64_t lost_us = d->view.node[i].is_receiving ? STRAY_US : LOST_US;

        if (i == d->view.primary || !d->rules.node[i].exists)
            continue;
        if (!is_astray(d, i)) {
            if (d->node[i].have_facts && d->view.node[i].is_receiving)
                f->follow_tries[i] = 0;
            continue;
        }
        if (now_us - d->node[i].lost_stream_us < lost_us || now_us - f->follow_us[i] < wait_us)
            continue;
        if (f->follow_tries[i] < MAX_BACKOFF && ++f->follow_tries[i] == TELL_TRIES)
            tell_astray(d, i, now_us);
        return lead(f, d, i, now_us);
    }
    return (struct failover_do){.type = FAILOVER_DO_NOTHING};
}

/* A server that still carries the fence of a switchover that could not be ended well: the primary
 * first of all, by whatever way it became one. */
static int find_fenced(const struct failover *f, const struct decide *d, int64_t now_us)
{
    const struct view_switch *sw = &d->view.sw;
    int i;

    for (i = 0; i < d->rules.nnodes; i++)
        if (d->rules.node[i].exists && !d->node[i].is_silent && decide_has_facts(d, i) &&
            now_us - f->unfence_us[i] >= UNFENCE_US &&
            (i == d->view.primary || !d->node[i].facts.is_primary
                    ? view_has_node(sw->fenced, i)
                    : view_has_node(sw->fence_set, i)))
            return i;
    return VIEW_NO_NODE;
}

static struct failover_do unfence(struct failover *f, struct decide *d, int node, int64_t now_us)
{
    bool is_former = node != d->view.primary && d->node[node].facts.is_primary;

    f->unfence_us[node] = now_us;
    return begin_beside(f, FAILOVER_DO_UNFENCE_BESIDE, HOOK_FOLLOW, node,
        is_former ? VIEW_NO_NODE : node, VIEW_NO_NODE);
}

/* True when a command waits that may be run now; it is the first one then. What others do is not
 * done here, and a server that is in use again needs nothing more. */
static bool find_job(struct failover *f, struct decide *d)
{
    struct view_switch *sw = &d->view.sw;
    int left = sw->njobs;

    while (left-- > 0) {
        struct view_job job = sw->job[0];
        struct failover_words words = f->words[0];
        bool waits = f->word.leads && !view_is_usable(&d->view, job.node);

        if (!f->word.asks ||
            (job.hook == HOOK_FAILOVER ? failover_may(f, job.node) : f->word.leads))
            return true;
        memmove(sw->job, sw->job + 1, (size_t)(sw->njobs - 1) * sizeof sw->job[0]);
        memmove(f->words, f->words + 1, (size_t)(sw->njobs - 1) * sizeof f->words[0]);
        sw->job[sw->njobs - 1] = job;
        f->words[sw->njobs - 1] = words;
        if (job.hook != HOOK_FAILOVER || !waits)
            sw->njobs--;
    }
    return false;
}

struct failover_do failover_beside_step(struct failover *f, struct decide *d, int64_t now_us)
{
    struct failover_do nothing = {.type = FAILOVER_DO_NOTHING};
    int back;

    if (f->beside_busy || f->word.is_stale)
        return nothing;
    if (find_job(f, d))
        return next_job(f, d);
    if (f->word.asks && !f->word.leads) {
        d->view.sw.follow_epoch = 0;
        return nothing;
    }
    if (view_failover_in_progress(&d->view) || d->rules.mode != DECIDE_MODE_STREAMING)
        return nothing;
    back = find_fenced(f, d, now_us);
    if (back != VIEW_NO_NODE)
        return unfence(f, d, back, now_us);
    if (!view_can_write(&d->view))
        return nothing;
    if (d->view.primary == d->view.sw.moved_to)
        failover_lead_forget(d); /* they are where they belong */
    back = failover_lead_back(f, d, now_us);
    if (back != VIEW_NO_NODE)
        return lead_back(f, d, back, now_us);
    if (d->view.sw.follow_epoch != 0)
        return follow_once(f, d, now_us);
    if (d->rules.auto_promote && !d->rules.has.follow_primary_command)
        return follow_later(f, d, now_us);
    return nothing;
}

static void tell_failure(
    struct decide *d, const struct failover_do *b, const struct failover_outcome *o, int64_t now_us)
{
    struct decide_event *e;

    if (b->type == FAILOVER_DO_FOLLOW)
        e = decide_note(d, DECIDE_EV_FAILED, b->node, d->view.primary, now_us,
            "node %d could not be led to node %d", b->node, b->target);
    else
        e = decide_note(d, DECIDE_EV_FAILED, b->node, d->view.primary, now_us,
            "the command %s_command about node %d failed", hook_name(b->hook), b->node);
    snprintf(e->detail, sizeof e->detail, "%s", o->text);
}

/* Tried again with growing patience, but not for ever. */
static void back_done(struct failover *f, struct decide *d, const struct failover_do *b, bool ok)
{
    if (!ok && f->follow_tries[b->node] < MAX_BACKOFF) {
        f->follow_tries[b->node]++;
        return;
    }
    f->follow_tries[b->node] = 0;
    failover_put(d->view.sw.moved, b->node, false);
    failover_put(d->view.sw.slotted, b->node, false);
}

void failover_on_beside_done(
    struct failover *f, struct decide *d, const struct failover_outcome *o, int64_t now_us)
{
    const struct failover_do *b = &f->beside;
    const struct decide_rule *rule = &d->rules.node[b->node];

    f->beside_busy = false;
    d->view.sw.beside_pid = 0;
    if (b->type == FAILOVER_DO_UNFENCE_BESIDE) {
        if (o->ok)
            failover_unfenced(d, b->node, b->target != VIEW_NO_NODE);
        return;
    }
    if (!o->ok)
        tell_failure(d, b, o, now_us);
    if (b->type == FAILOVER_DO_FOLLOW && view_has_node(d->view.sw.moved, b->node)) {
        back_done(f, d, b, o->ok);
        return;
    }
    if (b->hook == HOOK_FOLLOW) {
        set_led(d, b->node);
        if (o->ok && b->type == FAILOVER_DO_HOOK)
            decide_note(d, DECIDE_EV_FOLLOW, b->node, d->view.primary, now_us,
                "follow_primary_command is done with node %d", b->node);
    } else if (b->hook == HOOK_FAILOVER) {
        decide_note(d, DECIDE_EV_FAILOVER_DONE, b->node, d->view.primary, now_us,
            "=== Failover done. shutdown host %s(%d) ===", rule->host, rule->port);
    } else {
        decide_note(d, DECIDE_EV_FAILBACK_DONE, b->node, d->view.primary, now_us,
            "=== Failback done. reconnect host %s(%d) ===", rule->host, rule->port);
    }
}
