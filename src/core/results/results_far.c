/* SPDX-License-Identifier: PostgreSQL
 * results_far.c: results that are kept in memcached: a client is parked while they are looked up.
 * Runs in: workers.
 *
 * Who asks stands in a list, as one does who waits for another's result, and has no link; that of a
 * transaction is set aside for so long (plan_aside.c). What was found is used in the step that the
 * last answer brings about, or never: later it may be old. That nothing was found holds on: the
 * generations that were read with it only grow older, and what is kept under them is of no use when
 * one has moved. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "config/conf.h"

#include "results_int.h"

#define TICK_MS 1000

static cache_cell bar_of(cache_cell db)
{
    return cache_cell_column(db, QCACHE_OID_NONE, 0);
}

/* --- look-ups --- */

static void forget_hits(struct results *sc)
{
    struct results_far **at = &sc->far;

    while (*at != NULL)
        if ((*at)->call == NULL && (*at)->found == CACHE_FAR_HIT)
            results_far_drop(at);
        else
            at = &(*at)->next;
}

/* All that it waits for is answered. May end the client. */
static void go_on(struct client *c, struct results *sc)
{
    bool was_aside = sc->far_wait == FAR_WAIT_ASIDE;

    sc->far_wait = FAR_WAIT_NOT;
    client_wait_is_over(c, was_aside);
    if (client_has_errand(c) && client_results(c) != NULL)
        forget_hits(client_results(c));
}

static void on_got(void *ctx, enum cache_far_found found, struct slice result, uint32_t took_us,
    const struct cache_far_deps *deps)
{
    struct results_far *f = ctx;
    struct client *c = f->client;
    struct results *sc = client_results(c);
    const struct results_far *other;

    f->call = NULL;
    f->found = (uint8_t)found;
    f->took_us = took_us;
    buf_put(&f->result, result.p, result.n);
    if (deps != NULL) {
        f->deps = *deps;
        cache_far_seen_note(worker_of(c)->seen, deps, loop_now_us(client_sessions(c)->loop));
        /* Another pgpool has changed what names mean: who is judged by that is asked again. */
        if (cache_far_watch_moved(worker_of(c)->seen, deps))
            f->found = CACHE_FAR_DEAD;
    }
    for (other = sc->far; other != NULL && other->call == NULL;)
        other = other->next;
    if (sc->far_wait == FAR_WAIT_NOT)
        forget_hits(sc); /* it has been given up */
    else if (other == NULL)
        go_on(c, sc);
}

/* Nothing ties him to a server; what he has there can be set aside. */
static bool may_ask(const struct client *c)
{
    return client_may_wait_aside(c) && !cache_far_is_down(worker_of(c)->far);
}

/* False: not now. */
static bool ask(struct client *c, const struct cache_key *key, unsigned number,
    const struct qcache_judgement *j, const struct results_said *said)
{
    struct results_worker *w = worker_of(c);
    cache_cell db = cache_cell_database(pool_database_there(client_pool(c)));
    struct cache_far_deps deps = {.text = qcache_kind(client_sessions(c)->sql_cache, said->sql)};
    struct results_far *f;
    struct results *sc;
    uint32_t n;

    if (!may_ask(c) || !cache_far_pays(w->far, deps.text, key))
        return false;
    n = results_depend_on(c, j, said, deps.cell);
    if (n + 2 > CACHE_DEPS_MAX)
        return false;
    deps.cell[n++] = bar_of(db);
    deps.cell[n++] = qcache_cell_text(db, pool_user(client_pool(c)), qcache_text_bare(said->sql));
    deps.ncells = n;
    results_far_watched(db, &deps);
    sc = results_of(c);
    f = mem_alloc_zero(sizeof *f);
    f->client = c;
    f->number = (uint8_t)number;
    f->next = sc->far;
    sc->far = f;
    buf_put(&f->key, key->bytes.p, key->bytes.n);
    f->call = cache_far_get(w->far, key, &deps, on_got, f);
    return true;
}

enum feed_step results_far_look(struct client *c, const struct cache_key *key, unsigned number,
    const struct qcache_judgement *j, const struct results_said *said, struct cache_hit *hit)
{
    struct results_worker *w = worker_of(c);
    struct results *sc = client_results(c);
    struct results_far **at = sc == NULL ? NULL : results_far_at(sc, number);
    struct results_far *f = at == NULL ? NULL : *at;

    /* One that is under way was asked for by a statement that was given up. */
    if (f != NULL && (f->call != NULL || !slice_eq(buf_slice(&f->key), key->bytes))) {
        results_far_drop(at);
        f = NULL;
    }
    if (f == NULL && cache_is_rare(w->store, key))
        return FEED_PASS;
    if (f == NULL)
        return ask(c, key, number, j, said) ? FEED_PARK : FEED_AGAIN;
    switch ((enum cache_far_found)f->found) {
    case CACHE_FAR_HIT:
        hit->ntables =
            qcache_number_tables(j, w->store, pool_database_there(client_pool(c)), hit->table);
        hit->took_us = f->took_us;
        buf_put(&w->room, f->result.data, f->result.len);
        results_far_drop(at);
        cache_note_again(w->store, key);
        return FEED_LOCAL;
    case CACHE_FAR_MISS:
        return FEED_PASS;
    case CACHE_FAR_DEAD:
        break;
    }
    return FEED_AGAIN;
}

enum feed_step results_far_wait(struct client *c)
{
    struct results *sc = client_results(c);

    sc->far_wait = client_wait_aside(c, &worker_of(c)->asked) ? FAR_WAIT_ASIDE : FAR_WAIT_HERE;
    return FEED_PARK;
}

/* --- a worker's --- */

/* Other pgpools do not see what these clients write: nobody has results of their databases. */
static void bar_unseen(struct results_worker *w)
{
    cache_cell last = 0;
    struct list *n;

    LIST_FOREACH(n, &w->unseen)
    {
        const struct results_rest *rest = LIST_ENTRY(n, struct results_rest, node);

        if (rest->unseen.p[0] == last)
            continue;
        last = rest->unseen.p[0];
        cache_far_bar(w->far, bar_of(last));
    }
}

void results_far_unseen(struct client *c)
{
    cache_far_bar(worker_of(c)->far, bar_of(client_results_rest(c)->unseen.p[0]));
}

static void on_tick(struct timer *t)
{
    struct results_worker *w = LIST_ENTRY(t, struct results_worker, tick);

    timer_start(w->ss->loop, t, TICK_MS);
    cache_far_retry(w->far);
    cache_far_tell(w->far);
    bar_unseen(w);
}

bool results_far_init(struct results_worker *w)
{
    struct err err;

    err_clear(&err);
    list_init(&w->asked);
    w->far = cache_far_open(w->store, w->ss->conf, w->ss->be.jobs, w->ss->loop, &err);
    if (w->far == NULL) {
        log_err(LVL_ERROR, &err);
        return false;
    }
    w->seen = cache_far_seen_new(w->gens);
    timer_init(&w->tick, on_tick);
    timer_start(w->ss->loop, &w->tick, TICK_MS);
    return true;
}

void results_far_fini(struct results_worker *w)
{
    timer_stop(w->ss->loop, &w->tick);
    cache_far_seen_free(&w->seen);
    cache_far_close(&w->far);
}
