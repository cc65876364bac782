/* SPDX-License-Identifier: PostgreSQL
 * results_fill.c: what a server answers is gathered on its way to the client, and kept when all
 * of it is there and is nothing but columns, rows and a tag. Runs in: workers. */
#include "config.h"

#include <string.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/mem.h"
#include "config/conf.h"

#include "results_int.h"

static void add_deps(struct client *c, struct cache_deps *deps, const struct qcache_judgement *j,
    const struct results_said *said)
{
    cache_cell cell[CACHE_DEPS_MAX];
    uint32_t n = results_depend_on(c, j, said, cell);
    uint32_t i;

    cache_deps_init(deps);
    deps->is_many = n > CACHE_DEPS_MAX;
    for (i = 0; i < n && !deps->is_many; i++)
        cache_deps_add(deps, worker_of(c)->gens, cell[i]);
}

/* Why nothing is kept; OK: `deps` are what it depends on. */
static enum cache_fill_reason may_keep(struct client *c, const struct cache_key *key,
    const struct qcache_judgement *j, const struct results_said *said, struct cache_deps *deps)
{
    struct results_worker *w = worker_of(c);
    enum cache_fill_reason why;

    if (!cache_is_worth(w->store, key))
        return CACHE_FILL_RARE;
    add_deps(c, deps, j, said);
    why = cache_deps_read(deps, w->gens, loop_now_us(client_sessions(c)->loop));
    return why == CACHE_FILL_OK && !results_are_good(c) ? CACHE_FILL_OFF : why;
}

/* Room for one more. */
static struct results_filling *next_filling(struct results *sc)
{
    if (sc->first.fill == NULL)
        return &sc->first;
    ASSERT(sc->nmore < RESULTS_SEVERAL - 1);
    if (sc->more == NULL)
        sc->more = mem_alloc_zero((RESULTS_SEVERAL - 1) * sizeof sc->more[0]);
    return &sc->more[sc->nmore++];
}

/* The n-th of what is kept; NULL: there are no more. */
static struct results_filling *filling_at(struct results *sc, unsigned n)
{
    if (n == 0)
        return sc->first.fill == NULL ? NULL : &sc->first;
    return n <= sc->nmore ? &sc->more[n - 1] : NULL;
}

void results_fill_count(struct client *c, unsigned nstatements)
{
    if (client_results(c) != NULL)
        client_results(c)->nstatements = (uint8_t)nstatements;
}

void results_fill_begin(struct client *c, const struct qcache_judgement *j,
    const struct cache_key *key, const struct results_said *said, enum cache_turn turn,
    unsigned number, bool has_shape)
{
    struct results_worker *w = worker_of(c);
    struct cache_fill_spec spec = {.key = key, .has_flight = turn == CACHE_TURN_FILL};
    struct cache_deps deps;
    enum cache_fill_reason why;
    struct results_filling *f;
    struct results *sc;

    w->misses++;
    spec.ntables =
        qcache_number_tables(j, w->store, pool_database_there(client_pool(c)), spec.table);
    cache_note_miss(w->store, spec.table, spec.ntables);
    if (turn == CACHE_TURN_WAIT)
        return;
    why = may_keep(c, key, j, said, &deps);
    if (why != CACHE_FILL_OK) {
        if (turn == CACHE_TURN_FILL)
            cache_flight_leave(w->store, key);
        cache_note_fill(w->store, spec.table, spec.ntables, why);
        return;
    }
    spec.deps = &deps;
    spec.expire_s =
        j->nreads == 0 ? client_sessions(c)->conf->memqcache_expire_ms / 1000 : j->expire_s;
    sc = results_of(c);
    f = next_filling(sc);
    f->number = (uint8_t)number;
    f->has_shape = has_shape;
    f->ntables = spec.ntables;
    memcpy(f->table, spec.table, sizeof f->table);
    f->fill = cache_fill_begin(w->store, &spec);
    sc->nstatements = 1;
    sc->filling = FILLING_WAITS;
    sc->fill_known = j->known;
    sc->place = pool_place(client_pool(c));
    sc->since_us = loop_now_us(client_sessions(c)->loop);
    buf_clear(&sc->seen);
}

void results_fill_drop(struct client *c)
{
    struct results *sc = client_results(c);

    if (sc == NULL || sc->first.fill == NULL)
        return;
    results_fill_free(sc);
}

void results_fed(struct client *c)
{
    const struct results *sc = client_results(c);

    if (sc->first.fill != NULL && sc->filling == FILLING_WAITS)
        results_fill_drop(c);
}

HOT void results_see(struct client *c, const char *p, size_t n)
{
    struct results *sc = client_results(c);
    const struct results_filling *f;
    unsigned i;

    if (sc->owes_word)
        results_tell_see(c);
    if (sc->first.fill == NULL || sc->filling != FILLING_SENT)
        return;
    if (sc->seen.len + n >
        ((size_t)client_sessions(c)->conf->memqcache_maxcache_bytes + 64) * sc->nstatements) {
        for (i = 0; (f = filling_at(sc, i)) != NULL; i++)
            cache_note_fill(worker_of(c)->store, f->table, f->ntables, CACHE_FILL_LARGE);
        results_fill_drop(c);
        return;
    }
    buf_put(&sc->seen, p, n);
    for (i = 0; client_is_slow(c) && (f = filling_at(sc, i)) != NULL; i++)
        cache_fill_let_go(f->fill); /* this client is slow */
}

static bool is_primary(struct client *c, int node)
{
    return node >= POOLS_FIRST_TARGET ||
           (node == sessions_write_node(client_sessions(c)) && node == sstate_write_node(c));
}

/* What a standby answers may be older than what was written last. It is not when its last probe,
 * made before this is sent, found it beyond all writes that are known, and beyond all that changed
 * where names lead: it may still read what another table or view had by a name. A standby that was
 * restarted may be behind what it told before: so the link has to be as old as the probe. */
static enum results_source source_of(struct client *c, const struct cache_fill *fill)
{
    const struct view *v = &client_sessions(c)->view;
    const struct link *link = client_link(c);
    int node = link->pool->cluster_node;
    struct cache_standby is;

    if (pool_link_is_of_before(link) || pool_place(link->pool) != client_results(c)->place)
        return SOURCE_OLD;
    if (is_primary(c, node))
        return SOURCE_PRIMARY;
    if (node >= v->nnodes || link->is_retired ||
        link_login_us(link) >= v->node[node].replay_asked_us)
        return SOURCE_OLD;
    is.replay_lsn = v->node[node].replayed_lsn;
    is.as_of_us = v->node[node].caught_up_us;
    if (!cache_fill_standby(fill, &is) ||
        !cache_deps_standby(&client_results(c)->fill_known, worker_of(c)->gens, &is) ||
        (worker_of(c)->far != NULL && !results_far_standby(c, &is)))
        return SOURCE_OLD;
    return SOURCE_STANDBY;
}

void results_fill_sent(struct client *c)
{
    struct results *sc = client_results(c);
    const struct results_filling *f;
    unsigned i;

    if (sc == NULL || sc->first.fill == NULL)
        return;
    sc->filling = FILLING_SENT;
    sc->link_id = client_link(c)->id;
    sc->source = source_of(c, sc->first.fill);
    for (i = 1; sc->source == SOURCE_STANDBY && (f = filling_at(sc, i)) != NULL; i++)
        sc->source = source_of(c, f->fill);
}

/* The query was not sent anew elsewhere. */
static bool is_from_source(struct client *c, const struct results *sc)
{
    if (sc->source == SOURCE_OLD || client_link(c)->id != sc->link_id)
        return false;
    return sc->source == SOURCE_STANDBY || is_primary(c, client_link(c)->pool->cluster_node);
}

/* What was looked up in memcached and not found. */
static enum cache_fill_reason keep_far(
    struct client *c, struct results *sc, struct results_filling *f, struct slice result)
{
    int64_t now_us = loop_now_us(client_sessions(c)->loop);
    enum cache_fill_reason why = cache_fill_check(f->fill, now_us);
    const struct results_far *far = *results_far_at(sc, f->number);

    if (why != CACHE_FILL_OK)
        return why;
    if (far == NULL || far->call != NULL || far->found != CACHE_FAR_MISS)
        return CACHE_FILL_OFF;
    if (result.n > (size_t)client_sessions(c)->conf->memqcache_maxcache_bytes)
        return CACHE_FILL_LARGE;
    cache_far_keep(
        worker_of(c)->far, &f->fill, &far->deps, result, (uint32_t)(now_us - sc->since_us));
    return CACHE_FILL_OK;
}

static enum cache_fill_reason keep(
    struct client *c, struct results *sc, struct results_filling *f, struct slice result)
{
    int64_t now_us = loop_now_us(client_sessions(c)->loop);

    if (!is_from_source(c, sc))
        return CACHE_FILL_STANDBY;
    if (!cache_deps_hold(&sc->fill_known, worker_of(c)->gens))
        return CACHE_FILL_MOVED; /* names may have led elsewhere when it was read */
    if (worker_of(c)->far != NULL)
        return keep_far(c, sc, f, result);
    if (cache_fill_append(f->fill, result.p, result.n) == -1)
        return CACHE_FILL_LARGE;
    return cache_fill_commit(&f->fill, now_us, (uint32_t)(now_us - sc->since_us));
}

void results_fill_end(struct client *c, bool worked)
{
    struct results *sc = client_results(c);
    struct results_filling *f;
    struct slice result;
    unsigned n;

    if (sc->first.fill != NULL && sc->filling == FILLING_SENT && worked)
        for (n = 0; (f = filling_at(sc, n)) != NULL; n++) {
            result =
                qcache_result_in(buf_slice(&sc->seen), f->number, sc->nstatements, f->has_shape);
            if (result.p != NULL)
                cache_note_fill(worker_of(c)->store, f->table, f->ntables, keep(c, sc, f, result));
        }
    results_fill_free(sc);
}
