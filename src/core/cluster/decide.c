/* SPDX-License-Identifier: PostgreSQL
 * decide.c: taking in what probes, clients and operators say about each server.
 * Runs in: monitor. Pure. A refusal is an answer: only silence, repeated, is a loss. */
#include "config.h"

#include "cluster/decide.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#include "decide_int.h"

/* A server that does not answer at all is waited for so long when pgpool starts. */
#define FIRST_LOOK_US INT64_C(3000000)
/* A standby that streams from nobody for longer than this has some other reason for it. */
#define DEAF_US INT64_C(60000000)

struct event_kind {
    enum decide_event_level level;
    bool kept;
    const char *name;
};

static const struct event_kind kinds[DECIDE_EVENT_COUNT] = {
#define DECIDE_EVENT(sym, level, kept, name) {DECIDE_LVL_##level, kept, name},
#include "cluster/decide_events.def"
#undef DECIDE_EVENT
};

enum decide_event_level decide_event_level(enum decide_event_type type)
{
    return kinds[type].level;
}

bool decide_event_is_kept(enum decide_event_type type)
{
    return kinds[type].kept;
}

const char *decide_event_name(enum decide_event_type type)
{
    return kinds[type].name;
}

struct decide_event *decide_note(struct decide *d, enum decide_event_type type, int node, int other,
    int64_t now_us, const char *fmt, ...)
{
    struct decide_event *e;
    va_list ap;

    /* The shell takes events after every step; a full list means that it does not. */
    if (d->nevents == DECIDE_MAX_EVENTS) {
        d->nlost++;
        d->nevents--;
    }
    e = &d->event[d->nevents++];
    memset(e, 0, sizeof *e);
    e->type = type;
    e->node = node;
    e->other = other;
    e->at_us = now_us;
    va_start(ap, fmt);
    vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    return e;
}

int decide_take_events(struct decide *d, struct decide_event *out, int max)
{
    int n = d->nevents < max ? d->nevents : max;

    memcpy(out, d->event, (size_t)n * sizeof *out);
    d->nevents -= n;
    memmove(d->event, d->event + n, (size_t)d->nevents * sizeof *out);
    return n;
}

void decide_set_status(struct decide *d, int node, enum view_status status, int64_t now_us)
{
    d->view.node[node].status = (uint8_t)status;
    d->view.node[node].status_changed_us = now_us;
    d->view.node[node].is_missed = false;
}

bool decide_is_used(const struct decide *d, int node)
{
    return view_is_usable(&d->view, node);
}

bool decide_has_facts(const struct decide *d, int node)
{
    return d->rules.node[node].exists && d->node[node].have_facts;
}

static void set_rules(struct decide *d, const struct decide_rules *rules,
    enum view_status status_of_new, int64_t now_us)
{
    int i;

    ASSERT(rules->nnodes >= 0 && rules->nnodes <= VIEW_MAX_NODES);
    for (i = 0; i < VIEW_MAX_NODES; i++) {
        bool had = d->rules.node[i].exists;
        bool has = i < rules->nnodes && rules->node[i].exists;

        if (had == has)
            continue;
        memset(&d->node[i], 0, sizeof d->node[i]);
        memset(&d->view.node[i], 0, sizeof d->view.node[i]);
        decide_set_status(d, i, has ? status_of_new : VIEW_UNUSED, now_us);
        d->node[i].is_new = has && status_of_new == VIEW_DOWN;
    }
    d->rules = *rules;
    d->view.nnodes = rules->nnodes;
    d->view.is_streaming = rules->mode == DECIDE_MODE_STREAMING;
    decide_settle(d, now_us);
}

/* What is added while pgpool runs is often to be made first, by online recovery. */
void decide_set_rules(struct decide *d, const struct decide_rules *rules, int64_t now_us)
{
    set_rules(d, rules, VIEW_DOWN, now_us);
}

void decide_init(struct decide *d, const struct decide_rules *rules, int64_t now_us)
{
    memset(d, 0, sizeof *d);
    d->view.primary = VIEW_NO_NODE;
    d->view.sw.node = VIEW_NO_NODE;
    d->view.sw.target = VIEW_NO_NODE;
    d->view.sw.barred = VIEW_NO_NODE;
    d->view.sw.follow_old = VIEW_NO_NODE;
    d->view.sw.ended_node = VIEW_NO_NODE;
    d->view.sw.moved_to = VIEW_NO_NODE;
    d->named = VIEW_NO_NODE;
    d->agreed = VIEW_NO_NODE;
    set_rules(d, rules, VIEW_WAITING, now_us);
    d->began_us = now_us;
    d->view.is_looking = rules->mode == DECIDE_MODE_STREAMING;
    decide_look(d, now_us);
}

void decide_look(struct decide *d, int64_t now_us)
{
    int nnodes = 0;
    int nasked = 0;
    int i;

    for (i = 0; i < d->rules.nnodes && d->view.is_looking; i++) {
        if (!d->rules.node[i].exists)
            continue;
        if (d->rules.node[i].always_primary)
            d->view.is_looking = false; /* there is no question who it is */
        nnodes++;
        nasked += d->view.node[i].probed_us != 0;
    }
    if (nnodes < 2 || nasked == nnodes || now_us - d->began_us >= FIRST_LOOK_US)
        d->view.is_looking = false;
}

/* What is not in the view is learnt again by the next probe. */
static void adopt_node(struct decide *d, int node, const struct view_node *v)
{
    struct decide_node *n = &d->node[node];

    d->view.node[node] = *v;
    n->is_silent = v->pg_status == VIEW_PG_DOWN;
    n->have_facts = v->pg_role != VIEW_ROLE_UNKNOWN;
    n->facts.is_primary = v->pg_role == VIEW_ROLE_PRIMARY;
    n->facts.timeline = v->timeline;
    n->facts.system_id = v->system_id;
    n->facts.received_lsn = v->received_lsn;
    n->facts.replayed_lsn = v->replayed_lsn;
    n->facts.is_receiving = v->is_receiving;
    n->facts.replay_age_us = -1;
    if (v->is_unfed)
        n->told |= DECIDE_TOLD_UNFED;
    n->is_new = v->status == VIEW_DOWN && !v->held_down && v->health.success == 0;
    if (!n->is_silent && n->facts.is_primary && !view_is_usable(&d->view, node))
        n->told |= DECIDE_TOLD_STALE;
}

void decide_adopt(struct decide *d, const struct view *before)
{
    int i;

    for (i = 0; i < d->rules.nnodes && i < before->nnodes; i++)
        if (d->rules.node[i].exists && before->node[i].status != VIEW_UNUSED)
            adopt_node(d, i, &before->node[i]);
    d->view.version = before->version;
    d->view.is_looking = before->is_looking;
    d->view.primary = before->primary < d->rules.nnodes ? before->primary : VIEW_NO_NODE;
    d->view.primary_epoch = before->primary_epoch;
    d->view.sw = before->sw;
    if (d->view.primary != VIEW_NO_NODE) {
        d->system_id = d->node[d->view.primary].facts.system_id;
        d->top_timeline = d->node[d->view.primary].facts.timeline;
    } else if (view_failover_in_progress(&d->view)) {
        d->top_timeline = d->view.sw.timeline; /* the lost one's */
    }
    for (i = 0; i < d->rules.nnodes; i++)
        d->node[i].stray_us =
            d->view.node[i].status == VIEW_QUARANTINE ? d->view.node[i].status_changed_us : 0;
    decide_weigh_newcomers(d, d->began_us);
}

/* Statistics */

static void count(struct view_health *h, const struct decide_probe *p, int64_t now_us)
{
    bool ok = p->answer != DECIDE_FAILED;

    h->total++;
    h->last_us = now_us;
    if (ok) {
        h->success++;
        h->last_success_us = now_us;
    } else {
        h->fail++;
        h->last_fail_us = now_us;
    }
    if (h->success + h->fail == 1 || p->took_ms < h->min_ms)
        h->min_ms = p->took_ms;
    if (p->took_ms > h->max_ms)
        h->max_ms = p->took_ms;
    h->sum_ms += p->took_ms;
}

void decide_on_skip(struct decide *d, int node, int64_t now_us)
{
    struct view_health *h = &d->view.node[node].health;

    h->total++;
    h->skip++;
    h->last_us = now_us;
    h->last_skip_us = now_us;
}

/* Silence */

static void add_detail(struct decide_event *e, const struct decide_probe *p)
{
    snprintf(e->detail, sizeof e->detail, "%s", p->message);
}

static void give_up(struct decide *d, int node, const struct decide_probe *p, int64_t now_us)
{
    const struct decide_rule *rule = &d->rules.node[node];
    struct decide_node *n = &d->node[node];

    if (rule->may_fail) {
        add_detail(decide_note(d, DECIDE_EV_DOWN, node, d->view.primary, now_us,
                       "health check failed on node %d (timeout:%lld)", node,
                       (long long)(rule->timeout_ms / 1000)),
            p);
        n->suspected = false;
        n->told &= ~DECIDE_TOLD_STALE;
        decide_set_status(d, node, VIEW_DOWN, now_us);
    } else if (decide_tells_first(n, DECIDE_TOLD_DISALLOWED)) {
        add_detail(
            decide_note(d, DECIDE_EV_DISALLOWED, node, d->view.primary, now_us,
                "health check failed on node %d but failover is disallowed for the node", node),
            p);
    }
}

static void on_silence(struct decide *d, int node, const struct decide_probe *p, int64_t now_us)
{
    const struct decide_rule *rule = &d->rules.node[node];
    struct decide_node *n = &d->node[node];
    struct view_node *v = &d->view.node[node];
    int most;

    n->oks = 0;
    n->is_silent = true;
    n->mute_us = !p->is_late ? 0 : n->mute_us != 0 ? n->mute_us : now_us;
    v->pg_status = VIEW_PG_DOWN;
    v->is_busy = false;
    v->is_receiving = false;
    if (v->status == VIEW_DOWN || !(rule->health_check || n->suspected))
        return;
    most = n->suspected && d->rules.error_is_loss ? 0 : rule->max_retries;
    if (n->fails <= most)
        n->fails++;
    if (n->fails > most) {
        give_up(d, node, p, now_us);
        return;
    }
    v->health.retry++;
    if ((uint64_t)n->fails > v->health.max_retry)
        v->health.max_retry = (uint64_t)n->fails;
    add_detail(decide_note(d, DECIDE_EV_RETRY, node, d->view.primary, now_us,
                   "health check retrying on DB node: %d (round:%d)", node, n->fails),
        p);
}

/* Answers */

static void on_refusal(struct decide *d, int node, const struct decide_probe *p, int64_t now_us)
{
    struct decide_node *n = &d->node[node];
    struct decide_event *e;

    if (!decide_tells_first(n, DECIDE_TOLD_REFUSAL))
        return;
    e = decide_note(d, DECIDE_EV_REFUSED, node, d->view.primary, now_us,
        "node %d is alive but does not tell its role", node);
    add_detail(e, p);
    if (strncmp(p->sqlstate, "28", 2) == 0 || p->sqlstate[0] == '\0')
        e->hint = "Set sr_check_user and sr_check_password to a user that the server lets in.";
    else if (strcmp(p->sqlstate, "3D000") == 0)
        e->hint = "Set sr_check_database to a database that exists.";
}

/* Without a receiver a standby tells the timeline of its control file, which may lag behind what it
 * has received: as long as it has that, it is on the timeline that it received it on. */
static uint32_t timeline_of(const struct decide_node *n, const struct decide_facts *f)
{
    bool is_as_before = n->have_facts && !n->facts.is_primary && !f->is_primary &&
                        !f->is_receiving && f->system_id == n->facts.system_id &&
                        f->received_lsn >= n->facts.received_lsn;

    return is_as_before && f->timeline < n->facts.timeline ? n->facts.timeline : f->timeline;
}

static void on_facts(struct decide *d, int node, const struct decide_facts *f, int64_t now_us)
{
    struct decide_node *n = &d->node[node];
    struct view_node *v = &d->view.node[node];
    uint32_t timeline = timeline_of(n, f);

    if ((n->told & DECIDE_TOLD_REFUSAL) != 0)
        decide_note(
            d, DECIDE_EV_TOLD, node, d->view.primary, now_us, "node %d tells its role", node);
    n->told &= ~DECIDE_TOLD_REFUSAL;
    n->have_facts = true;
    n->facts = *f;
    n->facts.timeline = timeline;
    v->pg_role = f->is_primary ? VIEW_ROLE_PRIMARY : VIEW_ROLE_STANDBY;
    v->timeline = timeline;
    v->server_version = f->server_version;
    v->system_id = f->system_id;
    v->max_connections = f->max_connections;
    v->received_lsn = f->received_lsn;
    v->replayed_lsn = f->replayed_lsn;
    v->is_receiving = f->is_receiving;
    if (n->is_vouched)
        decide_vouch(d, node);
    n->is_vouched = false;
}

/* A link to it broke, and it takes no new ones: with failover_on_backend_shutdown that is enough.
 */
static void on_shutdown(struct decide *d, int node, const struct decide_probe *p, int64_t now_us)
{
    add_detail(decide_note(d, DECIDE_EV_DOWN, node, d->view.primary, now_us,
                   "node %d says that it is stopping: it is detached", node),
        p);
    d->node[node].suspected = false;
    d->node[node].told &= ~DECIDE_TOLD_STALE;
    d->node[node].oks = 0;
    d->node[node].is_silent = true;
    d->view.node[node].is_busy = true;
    decide_set_status(d, node, VIEW_DOWN, now_us);
}

static void on_answer(struct decide *d, int node, const struct decide_probe *p, int64_t now_us)
{
    struct decide_node *n = &d->node[node];
    struct view_node *v = &d->view.node[node];

    if (n->fails > 0 && v->status != VIEW_DOWN)
        decide_note(d, DECIDE_EV_RETRY_OK, node, d->view.primary, now_us,
            "health check retrying on DB node: %d succeeded", node);
    if (p->answer == DECIDE_BUSY && n->suspected && d->rules.shutdown_is_loss &&
        decide_is_used(d, node) && d->rules.node[node].may_fail) {
        on_shutdown(d, node, p, now_us);
        return;
    }
    n->fails = 0;
    n->oks++;
    n->is_silent = false;
    n->mute_us = 0;
    n->told &= ~(DECIDE_TOLD_DISALLOWED | DECIDE_TOLD_UNSURE);
    v->pg_status = VIEW_PG_UP;
    v->is_busy = p->answer == DECIDE_BUSY;
    if (!v->is_busy && p->began_us >= n->suspected_us)
        n->suspected = false; /* one that is stopping has not been found to be well */
    if (p->answer == DECIDE_ALIVE)
        on_refusal(d, node, p, now_us);
    else if (p->answer == DECIDE_FACTS)
        on_facts(d, node, p->facts, now_us);
}

static void on_unsure(struct decide *d, int node, const struct decide_probe *p, int64_t now_us)
{
    struct decide_node *n = &d->node[node];
    struct decide_event *e;

    if (!decide_tells_first(n, DECIDE_TOLD_UNSURE))
        return;
    e = decide_note(d, DECIDE_EV_UNSURE, node, d->view.primary, now_us,
        "node %d could not be asked; it is taken to be as it was", node);
    add_detail(e, p);
    e->hint =
        "Nobody knows whether it is there. See the detail: a name that cannot be looked up, or "
        "a limit of this host.";
}

/* A standby that answers does not hear the primary any more, either. */
static bool is_deaf(const struct decide *d, int node, int64_t since_us, int64_t now_us)
{
    const struct decide_node *n = &d->node[node];

    if (!decide_has_facts(d, node) || n->is_silent || n->facts.is_primary || n->asked_us < since_us)
        return false;
    return n->facts.is_receiving ? decide_hears_nobody(&n->facts)
                                 : n->lost_stream_us != 0 && now_us - n->lost_stream_us < DEAF_US;
}

/* The primary's host may have vanished: each probe of it takes all of its time. It is repeated to
 * make sure. When all standbys have asked the primary in vain, too, that is sure. One that refuses
 * is being restarted: it has all of its time. */
static void look_around(struct decide *d, int64_t now_us)
{
    static const struct decide_probe found = {.answer = DECIDE_FAILED,
        .sqlstate = "",
        .message = "no answer in time, and no standby hears it"};
    int primary = d->view.primary;
    int ndeaf = 0;
    int i;

    if (d->rules.mode != DECIDE_MODE_STREAMING || primary == VIEW_NO_NODE ||
        d->node[primary].mute_us == 0 || d->node[primary].fails == 0 ||
        !decide_is_used(d, primary) || !d->rules.node[primary].may_fail ||
        d->rules.node[primary].always_primary)
        return;
    for (i = 0; i < d->rules.nnodes; i++) {
        if (i == primary || !d->rules.node[i].exists || !decide_is_used(d, i))
            continue;
        if (!is_deaf(d, i, d->node[primary].mute_us, now_us))
            return;
        ndeaf++;
    }
    if (ndeaf == 0)
        return;
    give_up(d, primary, &found, now_us);
    decide_settle(d, now_us);
}

static bool is_used_standby(const struct decide *d, int node)
{
    return decide_is_used(d, node) && node != d->view.primary && d->view.primary != VIEW_NO_NODE &&
           d->rules.mode == DECIDE_MODE_STREAMING;
}

static void tell_lag(struct decide *d, int node, int64_t now_us)
{
    if (is_used_standby(d, node))
        decide_lag_tell(d, node, now_us);
}

void decide_on_probe(struct decide *d, int node, const struct decide_probe *p, int64_t now_us)
{
    ASSERT(node >= 0 && node < VIEW_MAX_NODES);
    if (!d->rules.node[node].exists)
        return;
    if (p->answer == DECIDE_UNSURE) {
        decide_on_skip(d, node, now_us);
        on_unsure(d, node, p, now_us);
        return;
    }
    d->view.node[node].probed_us = now_us;
    d->node[node].asked_us = now_us - p->took_ms * 1000;
    count(&d->view.node[node].health, p, now_us);
    if (p->answer == DECIDE_FAILED)
        on_silence(d, node, p, now_us);
    else
        on_answer(d, node, p, now_us);
    decide_settle(d, now_us); /* the last answer of the first look belongs to it */
    decide_look(d, now_us);
    look_around(d, now_us);
    if (p->answer == DECIDE_FACTS) {
        decide_replay(d, node, p->began_us);
        decide_lag_publish(d, node);
        if (is_used_standby(d, node))
            decide_lag_tell_unfed(d, node, now_us);
    }
    if (p->answer == DECIDE_FACTS && !d->rules.delay_from_command)
        tell_lag(d, node, now_us);
}

void decide_on_delay(struct decide *d, int node, int64_t delay_us, int64_t now_us)
{
    if (node < 0 || node >= d->rules.nnodes || !d->rules.node[node].exists)
        return;
    d->node[node].command_us = delay_us;
    decide_settle(d, now_us);
    tell_lag(d, node, now_us);
}

void decide_on_suspect(struct decide *d, int node, int64_t now_us)
{
    if (node < 0 || node >= d->rules.nnodes || !d->rules.node[node].exists ||
        !decide_is_used(d, node))
        return;
    d->node[node].suspected = true;
    d->node[node].suspected_us = now_us;
}

bool decide_is_urgent(const struct decide *d, int node)
{
    const struct decide_node *n = &d->node[node];
    enum view_status status = d->view.node[node].status;
    int i;

    if (d->view.node[node].held_down)
        return false;
    if (status == VIEW_DOWN || status == VIEW_QUARANTINE || n->suspected)
        return true;
    if (d->view.node[node].is_busy)
        return true; /* starting or stopping: it is used, or lost, as soon as that is over */
    if (n->fails > 0 && n->fails <= d->rules.node[node].max_retries)
        return true;
    for (i = 0; i < d->rules.nnodes; i++)
        if (decide_is_doubtful(d, i))
            return true;
    /* Without a primary, or one that says nothing, everybody's word counts. */
    return d->rules.mode == DECIDE_MODE_STREAMING &&
           (d->view.primary == VIEW_NO_NODE || d->node[d->view.primary].mute_us != 0);
}
