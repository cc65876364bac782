/* SPDX-License-Identifier: PostgreSQL
 * results_far.c: results that are kept in memcached: a client is parked while one is looked up.
 * Runs in: workers.
 *
 * Who asks stands in a list, as one does who waits for another's result, and has no link. What was
 * found is used in the step that the answer brings about, or never: later it may be old. That
 * nothing was found holds on: the generations that were read with it only grow older, and what is
 * kept under them is of no use when one has moved. */
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

static void on_got(void *ctx, enum cache_far_found found, struct slice result, uint32_t took_us,
    const struct cache_far_deps *deps)
{
    struct client *c = ctx;
    struct results_far *f = c->sstate->errand->cache->far;
    struct cached *sc;

    f->call = NULL;
    f->found = (uint8_t)found;
    f->took_us = took_us;
    buf_put(&f->result, result.p, result.n);
    if (deps != NULL) {
        f->deps = *deps;
        results_far_note_seen(c->ss->cache, deps);
        /* Another pgpool has changed what names mean: who is judged by that is asked again. */
        if (results_far_note_watch(c->ss->cache, deps))
            f->found = CACHE_FAR_DEAD;
    }
    lent_stop_waiting(c);
    client_unpark(c);
    sc = c->kind->errand(c) == NULL ? NULL : c->sstate->errand->cache;
    if (sc != NULL && sc->far != NULL && sc->far->call == NULL && sc->far->found == CACHE_FAR_HIT)
        results_far_forget(sc);
}

/* Nothing at a server is his, or ties him to one. */
static bool may_ask(const struct client *c)
{
    const struct sstate *s = c->sstate;

    return s->phase <= PHASE_WAITING && s->errand->home == NULL && s->pins == 0 &&
           c->ss->stop == SESSION_RUNNING && !cache_far_is_down(c->ss->cache->far);
}

/* Parks it; false: not now. */
static bool ask(struct client *c, const struct cache_key *key, const struct qcache_judgement *j,
    const struct cached_said *said)
{
    struct cached_worker *w = c->ss->cache;
    cache_cell db = cache_cell_database(pool_database_there(c->pool));
    struct cache_far_deps deps = {0};
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
    lent_stop_asking(c); /* it may have stood in a queue */
    sc = results_of(c);
    sc->far = mem_alloc_zero(sizeof *sc->far);
    buf_put(&sc->far->key, key->bytes.p, key->bytes.n);
    sc->far->call = cache_far_get(w->far, key, &deps, on_got, c);
    list_push_back(&w->asked, &c->sstate->errand->homeless_node);
    phase_goto(c, PHASE_WAITING);
    c->was_told_to_wait = true; /* nothing is said of connections, which it does not wait for */
    client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_RESULT);
    client_stats_on_wait_begin(c);
    return true;
}

enum feed_step results_far_look(struct client *c, const struct cache_key *key,
    const struct qcache_judgement *j, const struct cached_said *said, struct cache_hit *hit,
    struct buf *out)
{
    struct cached_worker *w = c->ss->cache;
    struct cached *sc = c->sstate->errand->cache;
    struct results_far *f = sc == NULL ? NULL : sc->far;

    /* One that is under way was asked for by a statement that was given up. */
    if (f != NULL && (f->call != NULL || !slice_eq(buf_slice(&f->key), key->bytes))) {
        results_far_forget(sc);
        f = NULL;
    }
    if (f == NULL && cache_is_rare(w->store, key))
        return FEED_PASS;
    if (f == NULL)
        return ask(c, key, j, said) ? FEED_PARK : FEED_AGAIN;
    switch ((enum cache_far_found)f->found) {
    case CACHE_FAR_HIT:
        hit->ntables = qcache_number_tables(j, w->store, pool_database_there(c->pool), hit->table);
        hit->took_us = f->took_us;
        buf_put(out, f->result.data, f->result.len);
        results_far_forget(sc);
        cache_note_again(w->store, key);
        return FEED_LOCAL;
    case CACHE_FAR_MISS:
        return FEED_PASS;
    case CACHE_FAR_DEAD:
        break;
    }
    return FEED_AGAIN;
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

void results_far_unseen(struct client *c)
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

bool results_far_init(struct cached_worker *w)
{
    struct err err;

    err_clear(&err);
    list_init(&w->asked);
    w->far = cache_far_open(w->store, w->ss->conf, w->ss->be.jobs, w->ss->loop, &err);
    if (w->far == NULL) {
        log_err(LVL_ERROR, &err);
        return false;
    }
    results_deps_init(w);
    timer_init(&w->tick, on_tick);
    timer_start(w->ss->loop, &w->tick, TICK_MS);
    return true;
}

void results_far_fini(struct cached_worker *w)
{
    timer_stop(w->ss->loop, &w->tick);
    results_deps_fini(w);
    cache_far_close(&w->far);
}
