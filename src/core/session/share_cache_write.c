/* SPDX-License-Identifier: PostgreSQL
 * share_cache_write.c: what the transaction of a client has written, as far as results in the query
 * cache depend on it. Runs in: workers.
 *
 * What is written is gathered. Before anything is sent that may commit it, its cells are held, and
 * they are released when the link is quiet: nobody can hear of the commit while an older result is
 * there, and none is kept that may be older. What is rolled back was never held. When the client or
 * the link goes in the midst of it, the cells stay held for as long as the server may still be at
 * it. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "qcache/qcache.h"

#include "share_cache_int.h"
#include "share_vars_int.h"

/* A server that was lost is given so long to end what it was at. */
#define LOOSE_LOST_US INT64_C(5000000)
#define LOOSE_MAX_US  INT64_C(600000000)
#define LOOSE_LOOK_MS 20

/* Writes whose outcome nobody waits for. */
struct loose {
    struct list node;
    struct share_cells cells;
    uint64_t link_id; /* 0: its link is gone */
    int64_t until_us;
    bool writes_all;
};

/* A table as a whole: results of all of it, and those of single rows. */
static void add_table(struct share_cells *s, cache_cell db, uint32_t oid)
{
    share_cells_add(s, cache_cell_table(db, oid));
    share_cells_add(s, cache_cell_whole(db, oid));
}

/* The number of no table: see share_cache_ask.c. */
#define OID_CATALOG 0

static void hold(struct share_cache *sc)
{
    if (sc->writes_all)
        cache_gens_empty(sc->gens);
    if (sc->is_held || sc->cells.n == 0)
        return;
    cache_gens_hold(sc->gens, sc->proc, sc->cells.p, sc->cells.n);
    sc->is_held = true;
}

static void release(struct client *c, struct share_cache *sc)
{
    struct cache_written at = {.lsn = 0, .us = loop_now_us(c->ss->loop)};

    if (sc->is_held) {
        cache_gens_release(sc->gens, sc->proc, sc->cells.p, sc->cells.n, at);
        cache_note_writes(c->ss->cache->store, sc->cells.p, sc->cells.n);
    }
    sc->is_held = false;
    if (sc->writes_all)
        cache_gens_empty(sc->gens);
}

/* A transaction block is open for what is sent now, and stays so: whatever runs in it waits for its
 * COMMIT. */
static bool is_in_block(const struct client *c, const struct share_cache *sc)
{
    const struct share *s = c->share;

    return !sc->commits_sent && s->mode != CONF_POOL_STATEMENT &&
           (s->begun_here || (c->link->tx_status == 'T' && !expect_owes_ready(&c->link->expect)));
}

/* All that is said in a failed transaction comes to nothing. */
static bool is_in_vain(const struct client *c, uint32_t writes)
{
    return writes == QCACHE_W_COMMITS && c->link->tx_status == 'E' &&
           expect_is_quiet(&c->link->expect);
}

static void add_writes(struct client *c, uint32_t writes, const struct qcache_judgement *j)
{
    struct share_cache *sc = share_cache_of(c);
    cache_cell db = cache_cell_database(pool_database(c->pool));
    struct share_cells *more = &sc->cells;
    unsigned i;

    if (sc->is_held)
        release(c, sc); /* with the cells that it was held with; then with more */
    if ((writes & QCACHE_W_DATABASE) != 0)
        share_cells_add(more, db);
    if ((writes & QCACHE_W_CATALOG) != 0)
        share_cells_add(more, cache_cell_table(db, OID_CATALOG));
    for (i = 0; j != NULL && (writes & QCACHE_W_TABLES) != 0 && i < j->nwrites; i++)
        add_table(more, db, j->writes[i]);
    sc->writes_all = sc->writes_all || (writes & QCACHE_W_ALL) != 0;
    sc->has_written = true;
}

/* With what the catalogue says: does it write more than it names, and less than it might? */
static uint32_t judged(uint32_t writes, const struct qcache_judgement *j)
{
    const uint32_t by_names = QCACHE_W_TABLES | QCACHE_W_FUNCTIONS;
    bool is_unknown = (writes & by_names) != 0 && j == NULL;

    if (is_unknown || ((writes & QCACHE_W_TABLES) != 0 && j->writes_more) ||
        ((writes & QCACHE_W_FUNCTIONS) != 0 && j->runs_code))
        writes |= QCACHE_W_DATABASE;
    return writes & ~QCACHE_W_FUNCTIONS;
}

static void send_writes(struct client *c, uint32_t writes, const struct qcache_judgement *j)
{
    const uint32_t changes = QCACHE_W_TABLES | QCACHE_W_CATALOG | QCACHE_W_DATABASE | QCACHE_W_ALL;
    struct share_cache *sc = c->share->turn->cache;
    bool was_held = sc != NULL && sc->is_held;
    bool changes_any = (writes & changes) != 0;

    if ((writes & (QCACHE_W_ENDS | QCACHE_W_COMMITS)) == QCACHE_W_ENDS)
        share_cache_of(c)->commits_sent = true; /* what follows in the exchange is not in it */
    if (!changes_any && (sc == NULL || (writes & QCACHE_W_COMMITS) == 0))
        return;
    if (changes_any) {
        add_writes(c, writes, j);
        sc = c->share->turn->cache;
    }
    if (was_held ||
        ((!is_in_block(c, sc) || (writes & QCACHE_W_COMMITS) != 0) && !is_in_vain(c, writes)))
        hold(sc);
    sc->commits_sent = sc->commits_sent || (writes & QCACHE_W_COMMITS) != 0;
}

/* Results go by memqcache_expire alone; what the transaction itself has written it sees all the
 * same. */
static uint32_t only_unwatched(struct client *c, uint32_t writes)
{
    if ((writes & (QCACHE_W_TABLES | QCACHE_W_DATABASE)) != 0)
        share_cache_of(c)->has_written = true;
    return writes & (QCACHE_W_CATALOG | QCACHE_W_COMMITS | QCACHE_W_ENDS);
}

/* Of a session that is tied nobody knows what that leaves in it: settings, temporary tables. */
static bool may_run_code(
    const struct sql_facts *facts, uint32_t writes, const struct qcache_judgement *j)
{
    uint32_t i;

    if ((writes & QCACHE_W_DATABASE) != 0 || (j != NULL && j->runs_code))
        return true;
    for (i = 0; j == NULL && i < facts->nstmts; i++)
        if (facts->stmts[i].nfuncs > 0)
            return true;
    return false;
}

/* What is written may be other tables than those that the names led to when they were asked
 * about. */
static bool are_names_doubtful(struct client *c, uint32_t writes)
{
    const struct share *s = c->share;

    if ((writes & QCACHE_W_NAMES) != 0)
        share_cache_of(c)->traits |= QCACHE_W_NAMES;
    if ((writes & QCACHE_W_TABLES) == 0)
        return false;
    return (s->turn->cache != NULL && (s->turn->cache->traits & QCACHE_W_NAMES) != 0) ||
           (s->pins != 0 && s->ran_code != 0);
}

void share_cache_note_writes(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    const uint32_t by_names = QCACHE_W_TABLES | QCACHE_W_FUNCTIONS;
    const struct qcache_judgement *j = NULL;
    uint32_t writes = qcache_writes(facts, sql);

    if (route_text_may_differ(sql) && share_text_is_doubtful(c, sql))
        writes = QCACHE_W_UNREAD;
    if (!c->ss->conf->memqcache_auto_cache_invalidation)
        writes = only_unwatched(c, writes);
    if ((writes & by_names) != 0 && share_cache_scope(c, facts) == 0) {
        if (buf_slice(&c->ss->cache->scope).n == c->ss->cache->question_at)
            writes &= ~by_names; /* it names nothing */
        else if ((j = share_cache_judged(c)) == NULL)
            share_cache_ask_after(c);
    }
    if (may_run_code(facts, writes, j))
        c->share->ran_code = 1;
    writes = judged(writes, j);
    if (are_names_doubtful(c, writes))
        writes |= QCACHE_W_DATABASE;
    send_writes(c, writes, j);
}

void share_cache_note_unread(struct client *c)
{
    uint32_t writes = QCACHE_W_UNREAD;

    c->share->ran_code = 1;
    if (!c->ss->conf->memqcache_auto_cache_invalidation)
        writes = only_unwatched(c, writes);
    send_writes(c, writes, NULL);
}

void share_cache_settle_writes(struct client *c)
{
    struct share_cache *sc = c->share->turn->cache;

    bool is_open = share_tx_status(c) != 'I';

    /* A COMMIT that was bound and not executed comes in a later exchange, which does not name it.
     */
    if (!is_open && !sc->is_held && (sc->traits & QCACHE_W_COMMITS) != 0)
        hold(sc);
    if (sc->is_held)
        release(c, sc);
    if (is_open && sc->commits_sent)
        sc->traits |= QCACHE_W_COMMITS;
    sc->commits_sent = false;
    if (is_open)
        return; /* of what was written in it, or in the one before */
    sc->cells.n = 0;
    sc->writes_all = false;
    sc->has_written = false;
    sc->traits = 0;
}

/* --- what nobody waits for --- */

static void add_loose(
    struct client *c, struct share_cells *cells, bool writes_all, uint64_t link_id, int64_t for_us)
{
    struct share_cache_worker *w = c->ss->cache;
    struct loose *l = mem_alloc_zero(sizeof *l);

    l->cells = *cells;
    l->writes_all = writes_all;
    l->link_id = link_id;
    l->until_us = loop_now_us(c->ss->loop) + (link_id == 0 ? LOOSE_LOST_US : for_us);
    list_push_back(&w->loose, &l->node);
    memset(cells, 0, sizeof *cells);
    if (!timer_is_armed(&w->timer))
        timer_start(c->ss->loop, &w->timer, LOOSE_LOOK_MS);
}

void share_cache_let_loose(struct client *c, const struct link *link)
{
    struct share_cache *sc = c->share->turn->cache;

    add_loose(c, &sc->cells, sc->writes_all, link == NULL ? c->share->last_link : 0, LOOSE_MAX_US);
    sc->is_held = false;
    sc->writes_all = false;
}

void share_cache_unseen_begin(struct client *c)
{
    struct slice how = c->login->startup.replication;
    struct client_rare *rare = client_rare(c);

    if (rare->unseen != NULL || (how.n > 0 && !slice_ieq_str(how, "database")))
        return; /* a walsender without a database runs no statements */
    rare->unseen = mem_alloc_zero(sizeof *rare->unseen);
    share_cells_add(rare->unseen, cache_cell_database(pool_database(c->pool)));
    cache_gens_hold(c->ss->cache->gens, c->ss->env->slot, rare->unseen->p, rare->unseen->n);
}

void share_cache_unseen_end(struct client *c)
{
    struct share_cells *cells = c->rare->unseen;

    c->rare->unseen = NULL;
    add_loose(c, cells, false, c->link == NULL ? 0 : c->link->id, LOOSE_MAX_US);
    mem_free(cells);
}

/* The link with this number is still at it, for nobody or for a client that is gone. */
static bool is_at_work(struct share_cache_worker *w, uint64_t link_id)
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

static void end_loose(struct share_cache_worker *w, struct loose *l)
{
    struct cache_written at = {.lsn = 0, .us = loop_now_us(w->ss->loop)};

    list_remove(&l->node);
    cache_gens_release(w->gens, w->ss->env->slot, l->cells.p, l->cells.n, at);
    if (l->writes_all)
        cache_gens_empty(w->gens);
    mem_free(l->cells.p);
    mem_free(l);
}

static void on_timer(struct timer *t)
{
    struct share_cache_worker *w = LIST_ENTRY(t, struct share_cache_worker, timer);
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

void share_cache_loose_init(struct share_cache_worker *w)
{
    list_init(&w->loose);
    timer_init(&w->timer, on_timer);
}

void share_cache_loose_fini(struct share_cache_worker *w)
{
    timer_stop(w->ss->loop, &w->timer);
    while (!list_is_empty(&w->loose)) /* links are closed by now, or will be: it is over */
        end_loose(w, LIST_ENTRY(list_first(&w->loose), struct loose, node));
}
