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

#include "lent/lent_int.h"
#include "results/results_int.h"
#include "sstate/phase_int.h"

#define TICK_MS 1000

static cache_cell bar_of(cache_cell db)
{
    return cache_cell_column(db, QCACHE_OID_NONE, 0);
}

/* --- look-ups --- */

static void forget_hits(struct cached *sc)
{
    struct results_far **at = &sc->far;

    while (*at != NULL)
        if ((*at)->call == NULL && (*at)->found == CACHE_FAR_HIT)
            results_far_drop(at);
        else
            at = &(*at)->next;
}

/* All that it waits for is answered. What was set aside for that may have died meanwhile, and a
 * read of the client's next transaction be on its way. */
static void go_on(struct client *c, struct cached *sc)
{
    const struct sstate *s = c->sstate;
    bool is_aside =
        sc->far_wait == FAR_WAIT_ASIDE && s->errand->home != NULL && s->phase == PHASE_DETACHED;

    sc->far_wait = FAR_WAIT_NOT;
    lent_stop_waiting(c);
    if (is_aside)
        plan_aside_come_back(c);
    client_unpark(c);
    if (c->kind->errand(c) != NULL && c->sstate->errand->cache != NULL)
        forget_hits(c->sstate->errand->cache);
}

static void on_got(void *ctx, enum cache_far_found found, struct slice result, uint32_t took_us,
    const struct cache_far_deps *deps)
{
    struct results_far *f = ctx;
    struct client *c = f->client;
    struct cached *sc = c->sstate->errand->cache;
    const struct results_far *other;

    f->call = NULL;
    f->found = (uint8_t)found;
    f->took_us = took_us;
    buf_put(&f->result, result.p, result.n);
    if (deps != NULL) {
        f->deps = *deps;
        cache_far_seen_note(c->ss->cache->seen, deps, loop_now_us(c->ss->loop));
        /* Another pgpool has changed what names mean: who is judged by that is asked again. */
        if (cache_far_watch_moved(c->ss->cache->seen, deps))
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
    const struct sstate *s = c->sstate;

    return (s->phase <= PHASE_WAITING || plan_aside_can(c)) && s->pins == 0 &&
           c->ss->stop == SESSION_RUNNING && !cache_far_is_down(c->ss->cache->far);
}

/* False: not now. */
static bool ask(struct client *c, const struct cache_key *key, unsigned number,
    const struct qcache_judgement *j, const struct cached_said *said)
{
    struct cached_worker *w = c->ss->cache;
    cache_cell db = cache_cell_database(pool_database_there(c->pool));
    struct cache_far_deps deps = {0};
    struct results_far *f;
    struct cached *sc;
    uint32_t n;

    if (!may_ask(c))
        return false;
    n = results_depend_on(c, j, said, deps.cell);
    if (n + 2 > CACHE_DEPS_MAX)
        return false;
    deps.cell[n++] = bar_of(db);
    deps.cell[n++] = qcache_cell_text(db, pool_user(c->pool), qcache_text_bare(said->sql));
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

enum feed_step cached_far_look(struct client *c, const struct cache_key *key, unsigned number,
    const struct qcache_judgement *j, const struct cached_said *said, struct cache_hit *hit)
{
    struct cached_worker *w = c->ss->cache;
    struct cached *sc = c->sstate->errand->cache;
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
        hit->ntables = qcache_number_tables(j, w->store, pool_database_there(c->pool), hit->table);
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

enum feed_step cached_far_wait(struct client *c)
{
    struct cached *sc = c->sstate->errand->cache;

    sc->far_wait = c->sstate->phase == PHASE_ATTACHED ? FAR_WAIT_ASIDE : FAR_WAIT_HERE;
    lent_stop_asking(c); /* it may have stood in a queue */
    if (sc->far_wait == FAR_WAIT_ASIDE)
        plan_aside_set(c);
    list_push_back(&c->ss->cache->asked, &c->sstate->errand->homeless_node);
    results_parked(c);
    return FEED_PARK;
}

/* --- a worker's --- */

/* Other pgpools do not see what these clients write: nobody has results of their databases. */
static void bar_unseen(struct cached_worker *w)
{
    cache_cell last = 0;
    struct list *n;

    LIST_FOREACH(n, &w->ss->clients)
    {
        const struct client *c = LIST_ENTRY(n, struct client, node);

        if (c->rare == NULL || c->rare->unseen == NULL || c->rare->unseen->p[0] == last)
            continue;
        last = c->rare->unseen->p[0];
        cache_far_bar(w->far, bar_of(last));
    }
}

void cached_far_unseen(struct client *c)
{
    c->ss->cache->has_unseen = true;
    cache_far_bar(c->ss->cache->far, bar_of(c->rare->unseen->p[0]));
}

static void on_tick(struct timer *t)
{
    struct cached_worker *w = LIST_ENTRY(t, struct cached_worker, tick);

    timer_start(w->ss->loop, t, TICK_MS);
    cache_far_retry(w->far);
    cache_far_tell(w->far);
    if (w->has_unseen)
        bar_unseen(w);
}

bool cached_far_init(struct cached_worker *w)
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

void cached_far_fini(struct cached_worker *w)
{
    timer_stop(w->ss->loop, &w->tick);
    cache_far_seen_free(&w->seen);
    cache_far_close(&w->far);
}
