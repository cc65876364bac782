/* SPDX-License-Identifier: PostgreSQL
 * decide_lag.c: how far each standby is behind, and which row of pg_stat_replication is its own.
 * Runs in: monitor. Pure. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "decide_int.h"

#define UNFED_US (INT64_C(60) * 1000 * 1000) /* a restart of either server is over by then */

static const struct decide_facts *facts_of(const struct decide *d, int node)
{
    return decide_has_facts(d, node) ? &d->node[node].facts : NULL;
}

/* The rows of one server that carry `name`. Several receivers often share the name that PostgreSQL
 * gives them; what all of them agree on still holds. */
static int match(const struct decide_facts *f, const char *name, struct decide_sender *out)
{
    int n = 0;
    int i;

    for (i = 0; i < f->nsenders; i++) {
        const struct decide_sender *s = &f->sender[i];

        if (strcmp(s->name, name) != 0)
            continue;
        if (n++ == 0) {
            *out = *s;
            continue;
        }
        out->replay_lag_us = -1;
        if (strcmp(out->state, s->state) != 0)
            out->state[0] = '\0';
        if (strcmp(out->sync_state, s->sync_state) != 0)
            out->sync_state[0] = '\0';
    }
    return n;
}

/* What a server that does not answer said of whom it feeds is not true any more. */
static const struct decide_facts *feeder_of(const struct decide *d, int node)
{
    return d->node[node].is_silent ? NULL : facts_of(d, node);
}

/* The row about `node`: at the primary, or at the standby that feeds it. */
static bool find_sender(const struct decide *d, int node, struct decide_sender *out)
{
    const struct decide_facts *feeder;
    const char *name = d->rules.node[node].application_name;
    int i;

    if (name[0] == '\0' && decide_has_facts(d, node))
        name = d->node[node].facts.receiver_name;
    if (name[0] == '\0')
        return false;
    feeder = d->view.primary == VIEW_NO_NODE ? NULL : feeder_of(d, d->view.primary);
    if (feeder != NULL && match(feeder, name, out) > 0)
        return true;
    for (i = 0; i < d->rules.nnodes; i++) {
        feeder = feeder_of(d, i);
        if (i != node && i != d->view.primary && feeder != NULL && match(feeder, name, out) > 0)
            return true;
    }
    return false;
}

int64_t decide_lag_bytes(const struct decide *d, int node)
{
    const struct decide_facts *own = &d->node[node].facts;
    const struct decide_facts *primary;

    /* Elsewhere each server has a WAL of its own: its positions say nothing to those of others. */
    if (!d->view.is_streaming || node == d->view.primary || d->view.primary == VIEW_NO_NODE ||
        !decide_has_facts(d, node))
        return 0;
    primary = facts_of(d, d->view.primary);
    if (primary == NULL || primary->replayed_lsn <= own->replayed_lsn)
        return 0;
    return (int64_t)(primary->replayed_lsn - own->replayed_lsn);
}

/* The primary knows best. Without its word: a standby that has replayed all it received lags by
 * nothing that it could know of, unless it receives nothing any more. */
static int64_t told_us(const struct decide *d, int node)
{
    const struct decide_facts *own = &d->node[node].facts;
    struct decide_sender s;

    if (find_sender(d, node, &s) && s.replay_lag_us > 0)
        return s.replay_lag_us;
    return own->replay_age_us > 0 ? own->replay_age_us : 0;
}

/* What is told is of what was replayed last: while nothing is (pg_wal_replay_pause) it may stay as
 * small as it was. */
int64_t decide_lag_us(const struct decide *d, int node)
{
    int64_t told;
    int64_t lacks;

    if (d->rules.delay_from_command)
        return node == d->view.primary ? 0 : d->node[node].command_us;
    if (node == d->view.primary || !decide_has_facts(d, node) || decide_lag_bytes(d, node) == 0)
        return 0;
    told = told_us(d, node);
    lacks = decide_replay_lacks_us(d, node);
    return told > lacks ? told : lacks;
}

bool decide_lag_is_over(const struct decide *d, int node)
{
    if (d->rules.delay_threshold_us > 0)
        return decide_lag_us(d, node) > d->rules.delay_threshold_us;
    return d->rules.delay_threshold_bytes > 0 &&
           decide_lag_bytes(d, node) > d->rules.delay_threshold_bytes;
}

static void copy_state(const char *from, char *to, size_t room)
{
    memset(to, 0, room);
    memcpy(to, from, strnlen(from, room - 1));
}

void decide_lag_publish(struct decide *d, int node)
{
    struct view_node *v = &d->view.node[node];
    struct decide_sender s = {.state = ""};

    v->delay_bytes = decide_lag_bytes(d, node);
    v->delay_us = decide_lag_us(d, node);
    v->delay_is_time = d->rules.delay_threshold_us > 0 || d->rules.delay_from_command;
    if (node != d->view.primary && v->pg_status == VIEW_PG_UP && v->pg_role == VIEW_ROLE_STANDBY &&
        !find_sender(d, node, &s) && v->is_receiving)
        copy_state("streaming", s.state, sizeof s.state);
    copy_state(s.state, v->replication_state, sizeof v->replication_state);
    copy_state(s.sync_state, v->replication_sync_state, sizeof v->replication_sync_state);
}

static void note_lag(struct decide *d, enum decide_event_type type, int node, int64_t now_us)
{
    if (d->rules.delay_from_command)
        decide_note(d, type, node, d->view.primary, now_us,
            "Replication of node: %d is behind %.3f second(s) from the primary server (node: %d) "
            "[external command]",
            node, (double)decide_lag_us(d, node) / 1e6, d->view.primary);
    else if (d->rules.delay_threshold_us > 0)
        decide_note(d, type, node, d->view.primary, now_us,
            "Replication of node: %d is behind %.6f second(s) from the primary server (node: %d)",
            node, (double)decide_lag_us(d, node) / 1e6, d->view.primary);
    else
        decide_note(d, type, node, d->view.primary, now_us,
            "Replication of node: %d is behind %lld bytes from the primary server (node: %d)", node,
            (long long)decide_lag_bytes(d, node), d->view.primary);
}

void decide_lag_tell(struct decide *d, int node, int64_t now_us)
{
    struct decide_node *n = &d->node[node];
    bool over = decide_lag_is_over(d, node);
    bool was_told = (n->told & DECIDE_TOLD_LAG) != 0;
    bool any =
        d->rules.delay_from_command ? decide_lag_us(d, node) > 0 : decide_lag_bytes(d, node) > 0;

    if (d->rules.lag_log == DECIDE_LAG_ALWAYS && any)
        note_lag(d, DECIDE_EV_LAG, node, now_us);
    else if (d->rules.lag_log != DECIDE_LAG_NONE && over && !was_told)
        note_lag(d, DECIDE_EV_LAG_OVER, node, now_us);
    else if (d->rules.lag_log != DECIDE_LAG_NONE && !over && was_told)
        decide_note(d, DECIDE_EV_LAG_OVER, node, d->view.primary, now_us,
            "Replication of node: %d is behind no more than the limit again", node);
    n->told = over ? n->told | DECIDE_TOLD_LAG : n->told & ~DECIDE_TOLD_LAG;
}

/* Whether a standby that receives hides from whom. Its timeline is that of its last restartpoint
 * then, which is an old one for minutes behind a failover. */
static bool hides_receiver(const struct decide_facts *f)
{
    return f->is_receiving && f->silence_us < 0;
}

static bool is_unfed(const struct decide *d, int node, int64_t now_us)
{
    int64_t since_us = d->node[node].lost_stream_us;

    return !hides_receiver(&d->node[node].facts) && since_us != 0 &&
           now_us - since_us >= UNFED_US && !d->view.is_looking &&
           !d->node[d->view.primary].is_silent && decide_lag_bytes(d, node) > 0;
}

static void note_unfed(struct decide *d, int node, int64_t now_us)
{
    struct decide_event *e = decide_note(d, DECIDE_EV_UNFED, node, d->view.primary, now_us,
        "node %d is in use but streams nothing of the primary, node %d: what is read there gets "
        "older",
        node, d->view.primary);

    snprintf(e->detail, sizeof e->detail,
        "It streams from nobody, or on an older timeline, and lacks %lld bytes. One that an "
        "archive "
        "alone feeds has what is in its last file.",
        (long long)decide_lag_bytes(d, node));
    e->hint = "Its own log says why: primary_conninfo, primary_slot_name, a password. "
              "pcp_detach_node keeps reads away; pcp_recovery_node rebuilds it.";
}

/* Tells of a standby that receives nothing: by bytes alone nobody would notice for hours where
 * little is written. One that is fed by an archive alone lacks nothing between two files. */
void decide_lag_tell_unfed(struct decide *d, int node, int64_t now_us)
{
    struct decide_node *n = &d->node[node];

    if (n->lost_stream_us == 0 && (n->told & DECIDE_TOLD_UNFED) != 0) {
        n->told &= ~DECIDE_TOLD_UNFED;
        decide_note(d, DECIDE_EV_FED, node, d->view.primary, now_us,
            "node %d streams from the primary, node %d, again", node, d->view.primary);
    }
    if (is_unfed(d, node, now_us) && decide_tells_first(n, DECIDE_TOLD_UNFED))
        note_unfed(d, node, now_us);
    d->view.node[node].is_unfed = (n->told & DECIDE_TOLD_UNFED) != 0 &&
                                  !hides_receiver(&n->facts) && decide_lag_bytes(d, node) > 0;
}
