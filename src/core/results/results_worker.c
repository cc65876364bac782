/* SPDX-License-Identifier: PostgreSQL
 * results_worker.c: a worker's handle on the query cache, and what a client's errand has of it.
 * Runs in: workers. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/proc.h"

#include "lent/lent_int.h"
#include "results/results_int.h"

/* Judgements that a worker remembers. */
#define CACHE_JUDGEMENTS 4096

void cached_worker_conf(struct cached_worker *w)
{
    struct err err;

    err_clear(&err);
    qcache_rules_free(&w->rules);
    w->rules = qcache_rules_new(w->ss->conf, &err);
    if (w->rules == NULL)
        log_err(LVL_WARNING, &err);
    qcache_book_clear(w->book);
}

/* Going on with one client may end others: no walk, but one after the other from the front. */
static void on_calls(struct task *t)
{
    struct cached_worker *w = LIST_ENTRY(t, struct cached_worker, calls);
    struct list *n;

    while ((n = list_first(&w->called)) != NULL) {
        struct client *c = LIST_ENTRY(n, struct errand, homeless_node)->client;

        lent_stop_waiting(c);
        client_unpark(c);
    }
}

void cached_worker_init(struct sessions *ss)
{
    struct cache *store;
    struct cached_worker *w;

    store = cache_open(ss->env->shm, ss->env->slot);
    if (store == NULL)
        return;
    w = mem_alloc_zero(sizeof *w);
    w->ss = ss;
    w->store = store;
    w->gens = cache_gens_of(store);
    w->streams = cache_streams_of(ss->env->shm);
    w->book = qcache_book_new(CACHE_JUDGEMENTS, ss->conf->relcache_expire_ms);
    w->arena = arena_new("query cache", 0);
    results_loose_init(w);
    task_init(&w->calls, on_calls);
    results_wait_init(w);
    results_tell_init(w);
    cached_worker_conf(w);
    if (ss->conf->memqcache_method == CONF_CACHE_MEMCACHED && !cached_far_init(w))
        cache_gens_off(w->gens, CACHE_OFF_FAR); /* nobody ends that */
    ss->cache = w;
}

void cached_worker_fini(struct sessions *ss)
{
    struct cached_worker *w = ss->cache;

    ss->cache = NULL;
    results_loose_fini(w);
    results_tell_fini(w);
    if (w->far != NULL)
        cached_far_fini(w);
    results_wait_fini(w);
    prep_unref(&w->looked);
    qcache_book_free(&w->book);
    qcache_rules_free(&w->rules);
    qcache_whos_fini(&w->whos);
    cache_close(&w->store);
    buf_free(&w->key);
    buf_free(&w->scope);
    buf_free(&w->room);
    arena_free(&w->arena);
    mem_free(w);
}

void cached_sets_changed(struct sessions *ss)
{
    struct cached_worker *w = ss->cache;

    cache_gens_empty(w->gens, cache_written_now().us);
    if (w->far != NULL)
        (void)cache_far_bump(w->far, NULL, 0, NULL, NULL);
}

void cached_query_sent(struct client *c, struct slice sql, const struct plan_found *found)
{
    struct cached_said said = {.facts = plan_facts_still(c->ss, sql, found), .sql = sql};

    cached_note_writes(c, &said);
    results_fill_sent(c);
}

void cached_unread_sent(struct client *c)
{
    results_fill_drop(c);
    cached_note_unread(c);
}

void cached_bound(struct client *c, const struct prep *p, struct slice values)
{
    const struct cached_worker *w = c->ss->cache;
    struct cached_said said;

    if (p == NULL) {
        cached_note_unread(c);
    } else {
        said.facts = plan_facts_still(c->ss, prep_sql(p), p == w->looked ? &w->looked_found : NULL);
        said.sql = prep_sql(p);
        said.params = (struct qcache_params){prep_types(p), values};
        cached_note_writes(c, &said);
    }
    results_fill_sent(c);
}

void cached_over(struct client *c)
{
    struct cached *sc = c->sstate->errand->cache;

    results_fill_end(c);
    cached_settle_writes(c);
    results_far_forget(sc);
    sc->ask_failed = false;
    sc->wait_until_us = 0;
    sc->nasked = 0;
    results_trim(c);
}

bool cached_lost(struct client *c, const struct link *link)
{
    struct cached *sc = c->sstate->errand->cache;
    bool was_asking = cached_ask_lost(c);

    results_fill_drop(c);
    /* It may have been committed, and the client be told so; or be committed in a while. */
    cached_tell_far(c);
    if (sc->is_held)
        results_let_loose(c, link);
    sc->cells.n = 0; /* what was not held is rolled back */
    sc->has_done_more = false;
    sc->commits_sent = false;
    sc->watch = 0;
    sc->judged.ncells = 0;
    sc->traits = 0;
    sc->ask_failed = false;
    results_trim(c);
    return was_asking;
}
