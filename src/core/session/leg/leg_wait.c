/* SPDX-License-Identifier: PostgreSQL
 * leg_wait.c: clients that wait for a primary, up to failover_wait. Runs in: workers. They are
 * parked; a timer of the worker looks at the view a few times a second while there are any. */
#include "config.h"

#include "config/conf.h"

#include "sstate_int.h"
#include "leg/leg_int.h"
#include "lent/lent_int.h"
#include "sstate/phase_int.h"

#define LOOK_MS 50

/* Going on with one client may end others: no walk, but one after the other from the front. */
static void take_all(struct list *from, struct list *all)
{
    struct list *n;

    list_init(all);
    while ((n = list_first(from)) != NULL) {
        list_remove(n);
        list_push_back(all, n);
    }
}

/* The cluster has changed: whoever waits for a link of a node asks again, perhaps another one. Who
 * asks for the same keeps his place. Standbys that do not let us in are given up: reads go
 * elsewhere. So is a link for a question about what a transaction reads. */
static void look_at_queued(struct sessions *ss)
{
    int64_t now = loop_now_us(ss->loop);
    bool has_changed;
    struct list all;
    struct list *n;

    (void)view_refresh(ss->env->shm, &ss->view);
    has_changed = ss->view.version != ss->queued_version;
    ss->queued_version = ss->view.version;
    take_all(&ss->queued, &all);
    while ((n = list_first(&all)) != NULL) {
        struct errand *errand = LIST_ENTRY(n, struct errand, homeless_node);
        struct client *c = errand->client;

        list_remove(n);
        list_push_back(&ss->queued, n);
        if (phase_is_opening((enum phase)c->sstate->phase) && now >= errand->not_before_us)
            link_fail_text(c->link, "08006", "node %d takes too long to let a session in",
                c->link->pool->cluster_node);
        else if (phase_is_waiting((enum phase)c->sstate->phase) &&
                 (has_changed || (errand->ask_until_us != 0 && now >= errand->ask_until_us)))
            client_unpark(c);
    }
}

/* Where writes go is found, and may be tried. What that very server has refused waits until all
 * have been asked since, as in a session of its own link. */
static bool may_try(const struct errand *errand, const struct view *v, int64_t now)
{
    bool is_late = now >= errand->homeless_until_us;

    if (now < errand->not_before_us)
        return false;
    if (errand->refused_us == 0)
        return !is_late;
    return is_late || view_write_node(v) != errand->client->pool->cluster_node ||
           sessions_all_asked_since(v, errand->refused_us);
}

static void look(struct timer *t)
{
    struct sessions *ss = LIST_ENTRY(t, struct sessions, homeless_timer);
    bool found = sessions_write_node(ss) != VIEW_NO_NODE && !view_must_hold_writes(&ss->view);
    int64_t now = loop_now_us(ss->loop);
    struct list all;
    struct list *n;
    struct err err;

    take_all(&ss->homeless, &all);
    while ((n = list_first(&all)) != NULL) {
        struct errand *errand = LIST_ENTRY(n, struct errand, homeless_node);
        struct client *c = errand->client;

        /* Who could not open a link to the primary of then may go elsewhere: it is chosen anew. */
        if (may_try(errand, &ss->view, now) &&
            (found || (errand->refused_us == 0 && errand->not_before_us != 0))) {
            errand->not_before_us = 0;
            lent_stop_waiting(c);
            client_unpark(c);
        } else if (now >= errand->homeless_until_us) {
            lent_stop_waiting(c);
            errand->homeless_until_us = 0; /* what comes next waits for itself */
            err_clear(&err);
            err_set(&err, "57P03", "no server accepts writes");
            err_hint(&err, "SHOW POOL_NODES; promote a standby, or start the old primary.");
            err_detail(&err, "No primary was found within failover_wait (%d s).",
                (int)(ss->conf->failover_wait_ms / 1000));
            follow_fail_parked(c, &err);
        } else {
            list_remove(n);
            list_push_back(&ss->homeless, n);
            if (!found)
                sessions_look_again(ss, c->pool->cluster_node);
        }
    }
    look_at_queued(ss);
    if (!list_is_empty(&ss->homeless) || !list_is_empty(&ss->queued))
        timer_start(ss->loop, t, LOOK_MS);
}

void leg_wait_init(struct sessions *ss)
{
    list_init(&ss->homeless);
    list_init(&ss->queued);
    timer_init(&ss->homeless_timer, look);
}

void leg_wait_look(struct sessions *ss)
{
    if (!list_is_empty(&ss->homeless) || !list_is_empty(&ss->queued))
        timer_start(ss->loop, &ss->homeless_timer, 0);
}

enum feed_step leg_wait_for_primary(struct client *c)
{
    struct sstate *s = c->sstate;
    struct sessions *ss = c->ss;

    lent_leave_queue(c);
    if (!list_is_detached(&s->errand->homeless_node))
        return FEED_PARK;
    if (s->errand->homeless_until_us == 0)
        s->errand->homeless_until_us = loop_now_us(ss->loop) + ss->conf->failover_wait_ms * 1000;
    phase_goto(c, PHASE_WAITING);
    list_push_back(&ss->homeless, &s->errand->homeless_node);
    client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_NO_PRIMARY);
    stats_on_wait_begin(&c->stats, loop_now_us(c->ss->loop));
    if (!timer_is_armed(&ss->homeless_timer))
        timer_start(ss->loop, &ss->homeless_timer, LOOK_MS);
    return FEED_PARK;
}
