/* SPDX-License-Identifier: PostgreSQL
 * wd_orders.c: what holds for all pgpools and is about no server: databases that operators paused,
 * query caches that are emptied.
 * Runs in: watchdog. Workers and control know nothing of it: what they do at home is looked at now
 * and then, and what the log says is done at home. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cache/cache_store.h"
#include "ipc/orders.h"
#include "sys/clock.h"

#include "wd_int.h"

#define SAY_AGAIN_US INT64_C(2000000)

/* What a former life of this process had in the log is how it was here when that ended. */
void wd_orders_open(struct wd *w)
{
    struct wd_share *s = mem_alloc(sizeof *s);

    if (wd_share_copy(w->role.env->shm, s)) {
        w->followed.pauses = s->state.pauses;
        w->followed.nevents = s->state.nevents;
        w->followed.nempties = s->state.nempties;
        w->followed.leader_since_us = s->state.leader_since_us;
    }
    mem_free(s);
}

void wd_orders_clear_cache(struct wd *w, const char *why)
{
    struct proc_env *env = w->role.env;
    struct cache *cache = cache_open(env->shm, env->slot);

    if (cache == NULL)
        return;
    cache_empty(cache, clock_mono_us());
    cache_close(&cache);
    log_at(LVL_LOG, "watchdog: clearing all the query caches %s", why);
}

void wd_orders_empty(struct wd *w)
{
    struct wd_event e;

    wd_lead_event(&e, WD_EV_EMPTY);
    snprintf(e.who, sizeof e.who, "an operator at pgpool %d", w->self);
    if (!wd_talk_word(w, &e))
        log_at_detail(LVL_WARNING, NULL, "Give the order again when somebody leads.",
            "watchdog: nobody leads: the query caches of the other pgpools are not emptied");
}

/* What the leader before this one has seen, or whoever was here meanwhile has written, the cache
 * here may not know. */
static void follow_cache(struct wd *w)
{
    struct wd_followed *f = &w->followed;
    bool is_new = f->leader_since_us != w->state.leader_since_us;

    if (f->nempties != w->state.nempties)
        wd_orders_clear_cache(w, "by an order for all pgpools");
    else if (is_new && wd_conf(w)->clear_memqcache_on_escalation)
        wd_orders_clear_cache(w, "after a change of the leader");
    f->nempties = w->state.nempties;
    f->leader_since_us = w->state.leader_since_us;
}

static void look(const struct wd *w, struct wd_pauses *here)
{
    struct order_state order;
    uint32_t at = 0;

    memset(here, 0, sizeof *here);
    while (orders_next(w->role.env->shm, &at, &order))
        if ((order.flags & ORDER_PAUSE) != 0)
            (void)wd_pauses_set(here, order.database, true);
}

static void obey(struct wd *w, const struct wd_pauses_step *step)
{
    struct slice database = slice_of(step->database, strlen(step->database));
    struct err err = {0};

    if (!step->is_on)
        orders_clear(w->role.env->shm, database, ORDER_PAUSE);
    else if (orders_set(w->role.env->shm, database, ORDER_PAUSE, &err) == -1)
        log_err(LVL_WARNING, &err);
    if (step->is_on && database.n == 0) /* not who paused all here some time ago */
        orders_set_giver(w->role.env->shm, slice_of("", 0), ORDERS_NO_SERVERS);
    orders_tell(w->role.env);
    log_at(LVL_LOG, "watchdog: %s%s%s, as at another pgpool",
        database.n == 0 ? "all databases" : "database \"", step->database,
        database.n == 0 ? (step->is_on ? " are paused" : " are resumed")
        : step->is_on   ? "\" is paused"
                        : "\" is resumed");
}

static void say(struct wd *w, const struct wd_pauses_step *step)
{
    struct wd_event e;

    wd_lead_event(&e, WD_EV_PAUSE);
    e.node = (int16_t)w->self;
    e.is_on = step->is_on;
    snprintf(e.text, sizeof e.text, "%s", step->database);
    if (wd_talk_word(w, &e))
        w->followed.said_us = loop_now_us(&w->role.loop);
}

void wd_orders_heard(struct wd *w, const struct wd_event *e)
{
    if (e->type != WD_EV_PAUSE || e->node != w->self)
        return;
    (void)wd_pauses_set(&w->followed.pauses, e->text, e->is_on);
    w->followed.said_us = 0;
}

static void follow_pauses(struct wd *w)
{
    struct wd_followed *f = &w->followed;
    struct wd_pauses here;
    struct wd_pauses_step step;

    if (f->said_us != 0 && loop_now_us(&w->role.loop) - f->said_us < SAY_AGAIN_US)
        return;
    f->said_us = 0;
    do {
        look(w, &here);
        step = wd_pauses_next(&f->pauses, &here, &w->state.pauses);
        if (step.what == WD_PAUSES_OBEY)
            obey(w, &step);
    } while (step.what == WD_PAUSES_OBEY);
    if (step.what == WD_PAUSES_SAY)
        say(w, &step);
}

/* A log that is still being read is behind what was followed already. */
void wd_orders_step(struct wd *w)
{
    if (w->is_witness || w->raft == NULL || w->state.nevents < w->followed.nevents)
        return;
    w->followed.nevents = w->state.nevents;
    follow_cache(w);
    follow_pauses(w);
}
