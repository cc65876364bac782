/* SPDX-License-Identifier: PostgreSQL
 * results_worker.c: a worker's handle on the query cache, and what a client's errand has of it.
 * Runs in: workers. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/proc.h"

#include "results_int.h"

/* Judgements that a worker remembers. */
#define CACHE_JUDGEMENTS 4096

static void read_rules(struct results_worker *w)
{
    struct err err;

    err_clear(&err);
    qcache_rules_free(&w->rules);
    w->rules = qcache_rules_new(w->ss->conf, &err);
    if (w->rules == NULL)
        log_err(LVL_WARNING, &err);
    qcache_book_clear(w->book);
}

static void worker_conf(struct sessions *ss)
{
    read_rules(ss->results_worker);
}

/* Going on with one client may end others: no walk, but one after the other from the front. */
static void on_calls(struct task *t)
{
    struct results_worker *w = LIST_ENTRY(t, struct results_worker, calls);
    struct list *n;

    while ((n = list_first(&w->called)) != NULL)
        client_wait_is_over(client_in_line(n), false);
}

static void sets_changed(struct sessions *ss)
{
    struct results_worker *w = ss->results_worker;

    cache_gens_empty(w->gens, cache_written_now().us);
    if (w->far != NULL)
        (void)cache_far_bump(w->far, NULL, 0, NULL, NULL);
}

static void sent(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    struct results_said said = {.facts = facts, .sql = sql};

    if (facts == NULL) {
        results_fill_drop(c);
        results_note_unread(c);
        return;
    }
    results_note_writes(c, &said);
    results_fill_sent(c);
}

static void bound(struct client *c, const struct prep *p, struct slice values)
{
    const struct results_worker *w = worker_of(c);
    struct results_said said;

    if (p == NULL) {
        results_note_unread(c);
    } else {
        said.facts = plan_facts_still(
            client_sessions(c), prep_sql(p), p == w->looked ? &w->looked_found : NULL);
        said.sql = prep_sql(p);
        said.params = (struct qcache_params){prep_types(p), values};
        results_note_writes(c, &said);
    }
    results_fill_sent(c);
}

static void over(struct client *c, bool worked)
{
    struct results *sc = client_results(c);

    results_fill_end(c, worked);
    results_settle_writes(c);
    results_far_forget(sc);
    sc->ask_failed = false;
    sc->wait_until_us = 0;
    sc->nasked = 0;
    results_trim(c);
}

static bool lost(struct client *c, const struct link *link)
{
    struct results *sc = client_results(c);
    bool was_asking = results_ask_lost(c);

    results_fill_drop(c);
    /* The transaction may have been committed, and the client be told so; or be committed in a
     * while. */
    results_tell_far(c);
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

static const struct results_ops results_ops = {.conf = worker_conf,
    .sets_changed = sets_changed,
    .unseen = results_unseen,
    .query = results_query,
    .batch = results_batch,
    .sent = sent,
    .bound = bound,
    .fed = results_fed,
    .seen = results_see,
    .over = over,
    .lost = lost,
    .end = results_free,
    .gone = results_gone,
    .ask_owed = results_ask_owed,
    .ask_behind = results_ask_behind,
    .row = results_on_row,
    .asked = results_asked,
    .explain = results_explain,
    .delete = results_delete};

void results_offer(struct sessions *ss)
{
    struct cache *store;
    struct results_worker *w;

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
    list_init(&w->unseen);
    results_loose_init(w);
    task_init(&w->calls, on_calls);
    results_wait_init(w);
    results_tell_init(w);
    read_rules(w);
    if (ss->conf->memqcache_method == CONF_CACHE_MEMCACHED && !results_far_init(w))
        cache_gens_off(w->gens, CACHE_OFF_FAR); /* nobody ends that */
    ss->results_worker = w;
    ss->results = &results_ops;
}

void results_withdraw(struct sessions *ss)
{
    struct results_worker *w = ss->results_worker;

    if (w == NULL)
        return;
    ss->results = NULL;
    ss->results_worker = NULL;
    results_loose_fini(w);
    results_tell_fini(w);
    if (w->far != NULL)
        results_far_fini(w);
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
