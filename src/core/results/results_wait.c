/* SPDX-License-Identifier: PostgreSQL
 * results_wait.c: a hundred clients ask for one result that is not kept: one of them asks the
 * server, the others wait for his. Runs in: workers.
 *
 * Who waits is parked as one who waits for a primary is: an errand in a list, PHASE_WAITING. He has
 * no link that is tied to him and no transaction at a server, so nobody can be waiting for him. Who
 * is waited for has sent his query: what has to wait itself (for a link, for settings) lets go
 * first (results_fed), and so does a client that reads more slowly than his server writes. When
 * that is over, and at the latest after a while, all that is parked is fed anew; who finds nothing
 * then asks for himself. */
#include "config.h"

#include <string.h>

#include "ipc/mailbox.h"

#include "results/results_int.h"
#include "sstate/phase_int.h"

/* What wakes may be lost (a full mailbox): it is looked at so often whether anybody still asks. */
#define LOOK_MS 50
/* Nobody waits longer, but for what took more than half of this when it was asked last. */
#define WAIT_US INT64_C(5000000)

static struct list *line_of(struct cached_worker *w, uint64_t hash)
{
    return &w->waiting[hash % CACHED_LINES];
}

static struct client *waiter_at(struct list *n)
{
    return LIST_ENTRY(n, struct errand, homeless_node)->client;
}

static void call(struct cached_worker *w, struct list *n)
{
    list_remove(n);
    list_push_back(&w->called, n);
    task_post(w->ss->loop, &w->calls);
}

/* Who waits for the key with this hash, in this worker, looks again, in a moment. */
static void wake(struct sessions *ss, uint64_t hash)
{
    struct list *line = line_of(ss->cache, hash);
    struct list *n;
    struct list *tmp;

    LIST_FOREACH_SAFE(n, tmp, line)
    if (waiter_at(n)->sstate->errand->cache->awaited == hash)
        call(ss->cache, n);
}

void sessions_on_cache_done(struct sessions *ss, const void *body, size_t len)
{
    uint64_t hash;

    if (ss->cache == NULL || len != sizeof hash)
        return;
    memcpy(&hash, body, sizeof hash);
    wake(ss, hash);
}

static void tell_waiters(void *ctx, uint64_t hash, uint64_t workers)
{
    struct cached_worker *w = ctx;
    const struct proc_env *env = w->ss->env;
    uint32_t i;

    for (i = 0; i < w->ss->client_rows->nworkers; i++) {
        if ((workers >> (i % 64) & 1) == 0)
            continue;
        if ((int)i == env->ordinal)
            wake(w->ss, hash);
        else
            (void)mailbox_post(env->boxes, env->first_worker_slot + (int)i, MAIL_CACHE_DONE, &hash,
                sizeof hash, -1);
    }
}

static bool waits_in_vain(const struct cached_worker *w, const struct cached *sc)
{
    int64_t now_us = loop_now_us(w->ss->loop);

    return now_us >= sc->wait_until_us || !cache_flight_is_on(w->store, sc->awaited, now_us);
}

static void on_look(struct timer *t)
{
    struct cached_worker *w = LIST_ENTRY(t, struct cached_worker, looks);
    bool is_any = false;
    struct list *n;
    struct list *tmp;
    int i;

    for (i = 0; i < CACHED_LINES; i++) {
        LIST_FOREACH_SAFE(n, tmp, &w->waiting[i])
        if (waits_in_vain(w, waiter_at(n)->sstate->errand->cache))
            call(w, n);
        is_any = is_any || !list_is_empty(&w->waiting[i]);
    }
    if (is_any)
        timer_start(w->ss->loop, t, LOOK_MS);
}

void results_line_up(struct client *c, struct cached *sc, uint64_t hash, uint32_t took_us)
{
    struct cached_worker *w = c->ss->cache;
    int64_t most_us = 2 * (int64_t)took_us > WAIT_US ? 2 * (int64_t)took_us : WAIT_US;

    sc->awaited = hash;
    sc->wait_until_us = loop_now_us(c->ss->loop) + most_us;
    list_push_back(line_of(w, hash), &c->sstate->errand->homeless_node);
    if (!timer_is_armed(&w->looks))
        timer_start(w->ss->loop, &w->looks, LOOK_MS);
    results_parked(c);
}

void results_parked(struct client *c)
{
    phase_goto(c, PHASE_WAITING);
    c->was_told_to_wait = true; /* nothing is said of connections, which it does not wait for */
    client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_RESULT);
    client_stats_on_wait_begin(c);
}

bool results_may_wait(const struct client *c)
{
    const struct sstate *s = c->sstate;
    const struct cached *sc = s->errand->cache;

    return s->phase <= PHASE_WAITING && s->errand->home == NULL && s->pins == 0 &&
           c->ss->stop == SESSION_RUNNING && (sc == NULL || sc->wait_until_us == 0);
}

void results_wait_init(struct cached_worker *w)
{
    int i;

    for (i = 0; i < CACHED_LINES; i++)
        list_init(&w->waiting[i]);
    list_init(&w->called);
    timer_init(&w->looks, on_look);
    cache_set_waker(w->store, w->ss->env->ordinal, tell_waiters, w);
}

void results_wait_fini(struct cached_worker *w)
{
    task_cancel(&w->calls);
    timer_stop(w->ss->loop, &w->looks);
}
