/* SPDX-License-Identifier: PostgreSQL
 * share_cache.c: a worker's handle on the query cache, and what a client's turn has of it. Runs in:
 * workers. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/proc.h"

#include "share_cache_int.h"

/* Judgements that a worker remembers. */
#define CACHE_JUDGEMENTS 4096

static void make_rules(struct share_cache_worker *w)
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
    struct share_cache_worker *w = LIST_ENTRY(t, struct share_cache_worker, calls);
    struct list *n;

    while ((n = list_first(&w->called)) != NULL) {
        struct client *c = LIST_ENTRY(n, struct share_turn, homeless_node)->client;

        share_stop_waiting(c);
        client_unpark(c);
    }
}

void share_cache_worker_init(struct sessions *ss)
{
    struct cache *store;
    struct share_cache_worker *w;

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
    share_cache_loose_init(w);
    task_init(&w->calls, on_calls);
    share_cache_wait_init(w);
    share_cache_out_init(w);
    make_rules(w);
    if (ss->conf->memqcache_method == CONF_CACHE_MEMCACHED && !share_cache_far_init(w))
        cache_gens_off(w->gens, CACHE_OFF_FAR); /* nobody ends that */
    ss->cache = w;
}

void share_cache_worker_conf(struct sessions *ss)
{
    make_rules(ss->cache);
}

void share_cache_worker_fini(struct sessions *ss)
{
    struct share_cache_worker *w = ss->cache;

    ss->cache = NULL;
    share_cache_loose_fini(w);
    share_cache_out_fini(w);
    if (w->far != NULL)
        share_cache_far_fini(w);
    share_cache_wait_fini(w);
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

void share_cache_query_sent(struct client *c, struct slice sql, const struct balance_found *found)
{
    struct share_cache_said said = {.facts = balance_facts_still(c->ss, sql, found), .sql = sql};

    share_cache_note_writes(c, &said);
    share_cache_fill_sent(c);
}

void share_cache_unread_sent(struct client *c)
{
    share_cache_fill_drop(c);
    share_cache_note_unread(c);
}

void share_cache_bound(struct client *c, const struct prep *p, struct slice values)
{
    const struct share_cache_worker *w = c->ss->cache;
    struct share_cache_said said;

    if (p == NULL) {
        share_cache_note_unread(c);
    } else {
        said.facts =
            balance_facts_still(c->ss, prep_sql(p), p == w->looked ? &w->looked_found : NULL);
        said.sql = prep_sql(p);
        said.params = (struct qcache_params){prep_types(p), values};
        share_cache_note_writes(c, &said);
    }
    share_cache_fill_sent(c);
}

void share_cache_over(struct client *c)
{
    struct share_cache *sc = c->share->turn->cache;

    share_cache_fill_end(c);
    share_cache_settle_writes(c);
    share_cache_far_forget(sc);
    sc->ask_failed = false;
    sc->wait_until_us = 0;
    sc->nasked = 0;
    share_cache_trim(c);
}

bool share_cache_lost(struct client *c, const struct link *link)
{
    struct share_cache *sc = c->share->turn->cache;
    bool was_asking = share_cache_ask_lost(c);

    share_cache_fill_drop(c);
    /* It may have been committed, and the client be told so; or be committed in a while. */
    share_cache_tell_far(c);
    if (sc->is_held)
        share_cache_let_loose(c, link);
    sc->cells.n = 0; /* what was not held is rolled back */
    sc->has_done_more = false;
    sc->commits_sent = false;
    sc->watch = 0;
    sc->judged.ncells = 0;
    sc->traits = 0;
    sc->ask_failed = false;
    share_cache_trim(c);
    return was_asking;
}
