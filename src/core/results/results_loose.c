/* SPDX-License-Identifier: PostgreSQL
 * results_loose.c: writes whose end nobody waits for any more: what they touch stays out of the
 * query cache until the link that runs them is quiet, or gone long enough. Runs in: workers. */
#include "config.h"

#include "base/mem.h"
#include "config/conf.h"

#include "results_int.h"

/* A server that was lost is given so long to end what it was at. */
#define LOOSE_LOST_US INT64_C(5000000)
#define LOOSE_LOOK_MS 20

/* Writes whose outcome nobody waits for. */
struct loose {
    struct list node;
    struct results_cells cells;
    cache_cell db;
    uint64_t link_id; /* 0: its link is gone */
    int64_t until_us;
    bool writes_all;
    struct cache_deps judged; /* as struct results has it */
};

void results_add_loose(struct client *c, struct results_cells *cells, bool writes_all,
    const struct cache_deps *judged, uint64_t link_id, int64_t for_us)
{
    struct results_worker *w = worker_of(c);
    struct loose *l = mem_alloc_zero(sizeof *l);

    l->cells = *cells;
    l->writes_all = writes_all;
    if (judged != NULL)
        l->judged = *judged;
    l->db = cache_cell_database(pool_database_there(client_pool(c)));
    l->link_id = link_id;
    l->until_us = loop_now_us(client_sessions(c)->loop) + (link_id == 0 ? LOOSE_LOST_US : for_us);
    list_push_back(&w->loose, &l->node);
    memset(cells, 0, sizeof *cells);
    if (!timer_is_armed(&w->timer))
        timer_start(client_sessions(c)->loop, &w->timer, LOOSE_LOOK_MS);
}

void results_let_loose(struct client *c, const struct link *link)
{
    struct results *sc = client_results(c);

    results_add_loose(c, &sc->cells, (sc->traits & QCACHE_W_ALL) != 0, &sc->judged,
        link == NULL ? client_last_link(c) : 0, LOOSE_MAX_US);
    sc->is_held = false;
    sc->traits &= ~QCACHE_W_ALL;
}

/* The link with this number is still at it, for nobody or for a client that is gone. */
static bool is_at_work(struct results_worker *w, uint64_t link_id)
{
    struct list *n;

    LIST_FOREACH(n, &w->ss->be.links)
    {
        const struct link *link = LIST_ENTRY(n, struct link, be_node);

        if (link->id == link_id)
            return !expect_is_quiet(&link->expect);
    }
    return false;
}

static void end_loose(struct results_worker *w, struct loose *l)
{
    struct cache_written at = cache_written_now();

    list_remove(&l->node);
    if (w->far != NULL) {
        if (l->writes_all)
            cache_gens_empty(w->gens, at.us);
        results_tell_alone(w, &l->cells, l->writes_all, l->db);
        mem_free(l);
        return;
    }
    qcache_settle_judged(&l->judged, w->gens, l->db, at);
    cache_gens_release(w->gens, w->ss->env->slot, l->cells.p, l->cells.n, at);
    if (l->writes_all)
        cache_gens_empty(w->gens, cache_written_now().us);
    mem_free(l->cells.p);
    mem_free(l);
}

static void on_timer(struct timer *t)
{
    struct results_worker *w = LIST_ENTRY(t, struct results_worker, timer);
    int64_t now_us = loop_now_us(w->ss->loop);
    struct list *n;
    struct list *tmp;

    LIST_FOREACH_SAFE(n, tmp, &w->loose)
    {
        struct loose *l = LIST_ENTRY(n, struct loose, node);

        if (now_us >= l->until_us || (l->link_id != 0 && !is_at_work(w, l->link_id)))
            end_loose(w, l);
    }
    if (!list_is_empty(&w->loose))
        timer_start(w->ss->loop, &w->timer, LOOSE_LOOK_MS);
}

void results_loose_init(struct results_worker *w)
{
    list_init(&w->loose);
    timer_init(&w->timer, on_timer);
}

void results_loose_fini(struct results_worker *w)
{
    timer_stop(w->ss->loop, &w->timer);
    while (!list_is_empty(&w->loose)) /* links are closed by now, or will be: it is over */
        end_loose(w, LIST_ENTRY(list_first(&w->loose), struct loose, node));
}
