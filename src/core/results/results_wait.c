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

#include "results_int.h"

/* How often a waiter looks whether anybody still asks, should its mail be lost. */
#define LOOK_MS 50
/* Nobody waits longer, but for what took more than half of this when it was asked last. */
#define WAIT_US INT64_C(5000000)

static struct list *line_of(struct results_worker *w, uint64_t hash)
{
    return &w->waiting[hash % RESULTS_LINES];
}

static void call(struct results_worker *w, struct list *n)
{
    list_remove(n);
    list_push_back(&w->called, n);
    task_post(w->ss->loop, &w->calls);
}

/* Clients of this worker that wait for the key with this hash look again, in a moment. */
static void wake(struct sessions *ss, uint64_t hash)
{
    struct list *line = line_of(ss->results_worker, hash);
    struct list *n;
    struct list *tmp;

    LIST_FOREACH_SAFE(n, tmp, line)
    if (client_results(client_in_line(n))->awaited == hash)
        call(ss->results_worker, n);
}

void results_on_done(struct sessions *ss, const void *body, size_t len)
{
    uint64_t hash;

    if (ss->results == NULL || len != sizeof hash)
        return;
    memcpy(&hash, body, sizeof hash);
    wake(ss, hash);
}

static void tell_waiters(void *ctx, uint64_t hash, uint64_t workers)
{
    struct results_worker *w = ctx;
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

static bool waits_in_vain(const struct results_worker *w, const struct results *sc)
{
    int64_t now_us = loop_now_us(w->ss->loop);

    return now_us >= sc->wait_until_us || !cache_flight_is_on(w->store, sc->awaited, now_us);
}

static void on_look(struct timer *t)
{
    struct results_worker *w = LIST_ENTRY(t, struct results_worker, looks);
    bool is_any = false;
    struct list *n;
    struct list *tmp;
    int i;

    for (i = 0; i < RESULTS_LINES; i++) {
        LIST_FOREACH_SAFE(n, tmp, &w->waiting[i])
        if (waits_in_vain(w, client_results(client_in_line(n))))
            call(w, n);
        is_any = is_any || !list_is_empty(&w->waiting[i]);
    }
    if (is_any)
        timer_start(w->ss->loop, t, LOOK_MS);
}

void results_line_up(struct client *c, struct results *sc, uint64_t hash, uint32_t took_us)
{
    struct results_worker *w = worker_of(c);
    int64_t most_us = 2 * (int64_t)took_us > WAIT_US ? 2 * (int64_t)took_us : WAIT_US;

    sc->awaited = hash;
    sc->wait_until_us = loop_now_us(client_sessions(c)->loop) + most_us;
    if (!timer_is_armed(&w->looks))
        timer_start(w->ss->loop, &w->looks, LOOK_MS);
    client_wait_for_result(c, line_of(w, hash));
}

bool results_may_wait(const struct client *c)
{
    const struct results *sc = client_results(c);

    return client_may_wait_for_result(c) && (sc == NULL || sc->wait_until_us == 0);
}

void results_wait_init(struct results_worker *w)
{
    int i;

    for (i = 0; i < RESULTS_LINES; i++)
        list_init(&w->waiting[i]);
    list_init(&w->called);
    timer_init(&w->looks, on_look);
    cache_set_waker(w->store, w->ss->env->ordinal, tell_waiters, w);
}

void results_wait_fini(struct results_worker *w)
{
    task_cancel(&w->calls);
    timer_stop(w->ss->loop, &w->looks);
}
