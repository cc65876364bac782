/* SPDX-License-Identifier: PostgreSQL
 * share_cache.c: a worker's handle on the query cache, and what a client's turn has of it. Runs in:
 * workers. */
#include "config.h"

#include <string.h>

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

void share_cache_worker_init(struct sessions *ss)
{
    struct cache *store = NULL;
    struct share_cache_worker *w;

    if (ss->conf->memqcache_method == CONF_CACHE_SHMEM)
        store = cache_open(ss->env->shm, ss->env->slot);
    if (store == NULL)
        return;
    w = mem_alloc_zero(sizeof *w);
    w->ss = ss;
    w->store = store;
    w->gens = cache_gens_of(store);
    w->streams = cache_streams_of(ss->env->shm);
    w->book = qcache_book_new(CACHE_JUDGEMENTS, ss->conf->relcache_expire_ms);
    share_cache_loose_init(w);
    make_rules(w);
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
    qcache_book_free(&w->book);
    qcache_rules_free(&w->rules);
    cache_close(&w->store);
    buf_free(&w->key);
    buf_free(&w->scope);
    buf_free(&w->room);
    mem_free(w);
}

static int stream_of(struct share_cache_worker *w, const struct pool *pool)
{
    struct share_cache_stream *m = &w->stream[pool->database_hash % SHARE_CACHE_STREAMS];
    struct slice name = pool_database(pool);

    if (slice_eq_str(name, m->name))
        return m->n;
    if (name.n == 0 || name.n >= sizeof m->name)
        return CACHE_STREAM_NONE;
    m->n = cache_stream_find(w->streams, name);
    memcpy(m->name, name.p, name.n);
    m->name[name.n] = '\0';
    return m->n;
}

bool share_cache_is_good(struct client *c)
{
    struct share_cache_worker *w = c->ss->cache;
    int64_t now_us = loop_now_us(c->ss->loop);
    int n;

    /* Of a server of pools.conf nothing is kept: only ours are followed, by names of databases. */
    if (c->pool->cluster_node >= POOLS_FIRST_TARGET)
        return false;
    if (w->rules == NULL || cache_gens_off_bits(w->gens, now_us) != 0)
        return false;
    n = w->streams == NULL ? CACHE_STREAM_NONE : stream_of(w, c->pool);
    return n != CACHE_STREAM_NONE && cache_stream_is_good(w->streams, n, now_us);
}

struct share_cache *share_cache_of(struct client *c)
{
    struct share_turn *t = c->share->turn;

    if (t->cache == NULL) {
        t->cache = mem_alloc_zero(sizeof *t->cache);
        t->cache->gens = c->ss->cache->gens;
        t->cache->proc = c->ss->env->slot;
    }
    return t->cache;
}

static void free_all(struct client *c)
{
    struct share_cache *sc = c->share->turn->cache;

    c->share->turn->cache = NULL;
    cache_fill_abort(&sc->fill);
    qcache_judge_free(&sc->judge);
    buf_free(&sc->seen);
    buf_free(&sc->asked);
    mem_free(sc->cells.p);
    mem_free(sc);
}

void share_cache_trim(struct client *c)
{
    const struct share_cache *sc = c->share->turn->cache;

    if (sc != NULL && sc->fill == NULL && sc->asking == ASKS_NOTHING && sc->cells.n == 0 &&
        !sc->has_written && !sc->writes_all && !sc->ask_failed && sc->traits == 0 &&
        !sc->commits_sent)
        free_all(c);
}

void share_cache_free(struct client *c)
{
    struct share_cache *sc = c->share->turn->cache;

    if (sc == NULL)
        return;
    if (sc->is_held)
        share_cache_let_loose(c, NULL);
    free_all(c);
}

void share_cache_query_sent(struct client *c, struct slice sql)
{
    struct share_cache *sc;

    share_cache_note_writes(c, sql, balance_facts(c->ss, sql));
    sc = c->share->turn->cache;
    if (sc != NULL)
        sc->filling = FILLING_SENT;
}

void share_cache_unread_sent(struct client *c)
{
    share_cache_fill_drop(c);
    share_cache_note_unread(c);
}

void share_cache_bound(struct client *c, const struct prep *p)
{
    struct share_cache *sc;

    if (p == NULL)
        share_cache_note_unread(c);
    else
        share_cache_note_writes(c, prep_sql(p), balance_facts(c->ss, prep_sql(p)));
    sc = c->share->turn->cache;
    if (sc != NULL)
        sc->filling = FILLING_SENT;
}

void share_cache_over(struct client *c)
{
    struct share_cache *sc = c->share->turn->cache;

    share_cache_fill_end(c);
    share_cache_settle_writes(c);
    sc->ask_failed = false;
    sc->nasked = 0;
    share_cache_trim(c);
}

bool share_cache_lost(struct client *c, const struct link *link)
{
    struct share_cache *sc = c->share->turn->cache;
    bool was_asking = share_cache_ask_lost(c);

    share_cache_fill_drop(c);
    if (sc->is_held)
        share_cache_let_loose(c, link);
    sc->cells.n = 0; /* what was not held is rolled back */
    sc->writes_all = false;
    sc->has_written = false;
    sc->commits_sent = false;
    sc->traits = 0;
    sc->ask_failed = false;
    share_cache_trim(c);
    return was_asking;
}

void share_cells_add(struct share_cells *s, cache_cell cell)
{
    uint32_t i;

    for (i = 0; i < s->n; i++)
        if (s->p[i] == cell)
            return;
    if (s->n == s->cap) {
        s->cap = s->cap == 0 ? 8 : 2 * s->cap;
        s->p = mem_resize(s->p, s->cap * sizeof s->p[0]);
    }
    s->p[s->n++] = cell;
}
