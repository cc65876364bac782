/* SPDX-License-Identifier: PostgreSQL
 * results.c: what the query cache keeps of one client's exchange. Runs in: workers. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "ipc/proc.h"

#include "results_int.h"

static int stream_of(struct results_worker *w, const struct pool *pool)
{
    struct results_stream *m = &w->stream[pool->database_hash % RESULTS_STREAMS];
    struct slice name = pool_database_there(pool);

    if (slice_eq_str(name, m->name))
        return m->n;
    if (name.n == 0 || name.n >= sizeof m->name)
        return CACHE_STREAM_NONE;
    m->n = cache_stream_find(w->streams, name);
    memcpy(m->name, name.p, name.n);
    m->name[name.n] = '\0';
    return m->n;
}

bool results_are_elsewhere(const struct client *c)
{
    const struct link *link = client_any_link(c);

    return link != NULL && pool_link_is_elsewhere(link);
}

uint64_t results_own_names(const struct client *c)
{
    const struct link *link = client_any_link(c);

    return link != NULL && pool_link_is_of_before(link) ? link->id : 0;
}

void results_fill_free(struct results *sc)
{
    unsigned i;

    cache_fill_abort(&sc->first.fill);
    for (i = 0; i < sc->nmore; i++)
        cache_fill_abort(&sc->more[i].fill);
    mem_free(sc->more);
    sc->more = NULL;
    sc->nmore = 0;
    buf_free(&sc->seen);
}

static void free_all(struct client *c)
{
    struct results *sc = client_results(c);

    client_set_results(c, NULL);
    results_fill_free(sc);
    results_far_forget(sc);
    qcache_judge_free(&sc->judge);
    buf_free(&sc->asked);
    mem_free(sc->cells.p);
    mem_free(sc);
}

struct results *results_of(struct client *c)
{
    struct results *sc = client_results(c);

    if (sc == NULL) {
        sc = mem_alloc_zero(sizeof *sc);
        sc->gens = worker_of(c)->gens;
        sc->proc = client_sessions(c)->env->slot;
        client_set_results(c, sc);
    }
    return sc;
}

struct results_rest *results_rest_of(struct client *c)
{
    struct results_rest *rest = client_results_rest(c);

    if (rest == NULL) {
        rest = mem_alloc_zero(sizeof *rest);
        list_init(&rest->node);
        client_set_results_rest(c, rest);
    }
    return rest;
}

void results_rest_trim(struct client *c)
{
    struct results_rest *rest = client_results_rest(c);

    if (rest->out != NULL || rest->unseen.n > 0)
        return;
    client_set_results_rest(c, NULL);
    mem_free(rest);
}

void results_trim(struct client *c)
{
    const struct results *sc = client_results(c);

    if (sc != NULL && sc->first.fill == NULL && sc->far == NULL && sc->asking == ASKS_NOTHING &&
        sc->cells.n == 0 && !sc->has_done_more && !sc->ask_failed && sc->traits == 0 &&
        !sc->commits_sent && !sc->owes_word && sc->wait_until_us == 0 && sc->nasked == 0)
        free_all(c);
}

bool results_are_followed(struct client *c)
{
    struct results_worker *w = worker_of(c);

    return w->streams != NULL && client_pool(c)->cluster_node < POOLS_FIRST_TARGET &&
           cache_stream_is_followed(
               w->streams, stream_of(w, client_pool(c)), loop_now_us(client_sessions(c)->loop));
}

bool results_are_good(struct client *c)
{
    struct results_worker *w = worker_of(c);
    int64_t now_us = loop_now_us(client_sessions(c)->loop);
    int n;

    if (w->rules == NULL || cache_gens_off_bits(w->gens, now_us) != 0)
        return false;
    /* A server of pools.conf is not followed: only writes through pgpool are seen. */
    if (client_pool(c)->cluster_node >= POOLS_FIRST_TARGET)
        return client_sessions(c)->conf->memqcache_invalidation != CONF_INVALIDATE_WAL;
    n = w->streams == NULL ? CACHE_STREAM_NONE : stream_of(w, client_pool(c));
    return n != CACHE_STREAM_NONE && cache_stream_is_good(w->streams, n, now_us);
}

void results_free(struct client *c)
{
    struct results *sc = client_results(c);

    if (sc == NULL)
        return;
    if (sc->is_held)
        results_let_loose(c, NULL);
    free_all(c);
}
