/* SPDX-License-Identifier: PostgreSQL
 * results_write.c: what the transaction of a client has written, as far as results in the query
 * cache depend on it. Runs in: workers.
 *
 * What is written is gathered. Before anything is sent that may commit it, its cells are held, and
 * they are released when the link is quiet: nobody can hear of the commit while an older result is
 * there, and none is kept that may be older. What is rolled back was never held. When the client or
 * the link goes in the midst of it, the cells stay held for as long as the server may still be at
 * it. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "qcache/qcache.h"

#include "results_int.h"

/* The transaction writes what no cell stands for: roles, databases. */
static bool writes_all(const struct results *sc)
{
    return (sc->traits & QCACHE_W_ALL) != 0;
}

/* Warns memcached before a commit: should this process not come to tell what became of it, nothing
 * that is older is kept for good. */
static void warn_far(struct client *c, struct results *sc)
{
    struct cache_far *far = worker_of(c)->far;

    if (far == NULL || (!writes_all(sc) && sc->cells.n == 0))
        return;
    (void)cache_far_bump(far, sc->cells.p, writes_all(sc) ? 0 : sc->cells.n, NULL, NULL);
    sc->owes_word = true;
}

static void hold(struct client *c, struct results *sc)
{
    if (writes_all(sc))
        cache_gens_empty(sc->gens, cache_written_now().us);
    if (!sc->is_held && sc->cells.n > 0) {
        cache_gens_hold(sc->gens, sc->proc, sc->cells.p, sc->cells.n);
        sc->is_held = true;
        warn_far(c, sc);
    } else if (writes_all(sc)) {
        warn_far(c, sc);
    }
}

static void let_go(struct client *c, struct results *sc)
{
    cache_cell db = cache_cell_database(pool_database_there(client_pool(c)));

    if (sc->is_held) {
        qcache_settle_judged(&sc->judged, sc->gens, db, cache_written_now());
        cache_gens_release(sc->gens, sc->proc, sc->cells.p, sc->cells.n, cache_written_now());
        cache_note_writes(
            worker_of(c)->store, sc->cells.p, sc->cells.n, (sc->traits & QCACHE_W_TABLES) == 0);
    }
    sc->is_held = false;
    if (writes_all(sc))
        cache_gens_empty(sc->gens, cache_written_now().us);
}

void results_tell_far(struct client *c)
{
    struct results *sc = client_results(c);
    struct results_cells told = {0};
    uint32_t i;

    if (!sc->owes_word)
        return;
    for (i = 0; i < sc->cells.n; i++)
        results_cells_add(&told, sc->cells.p[i]);
    cache_gens_hold(sc->gens, sc->proc, told.p, told.n);
    results_tell_add(c, &told, writes_all(sc), sc->watch);
    sc->owes_word = false;
}

/* A transaction block is open for what is sent now, and stays so: whatever runs in it waits for its
 * COMMIT. */
static bool is_in_block(const struct client *c, const struct results *sc)
{
    return !sc->commits_sent && client_is_in_block(c);
}

/* All that is said in a failed transaction comes to nothing. */
static bool is_in_vain(const struct client *c, uint32_t writes)
{
    return writes == QCACHE_W_COMMITS && client_link(c)->tx_status == 'E' &&
           expect_is_quiet(&client_link(c)->expect);
}

/* Beyond so many a transaction is told by table. */
#define CELLS_BY_ROW 256

/* The rows of one table that a lone statement writes, as cells. Only where the catalogue is
 * followed: a column that was added around us would not be known. 0: by table. */
static unsigned rows_written(struct client *c, const struct results_said *said, uint32_t writes,
    const struct qcache_judgement *j, cache_cell cell[QCACHE_ROW_WRITES])
{
    const struct results *sc = client_results(c);
    struct results_worker *w = worker_of(c);
    struct qcache_row row;
    unsigned n;

    if (said == NULL || (writes & ~QCACHE_W_COMMITS) != QCACHE_W_TABLES || j == NULL ||
        j->ncolumns == 0 || (sc != NULL && sc->cells.n >= CELLS_BY_ROW) || !results_are_followed(c))
        return 0;
    qcache_row_find(w->arena, said->facts, said->sql, &row);
    n = qcache_row_writes(
        j, &row, &said->params, cache_cell_database(pool_database_there(client_pool(c))), cell);
    arena_reset(w->arena);
    return n;
}

static void add_writes(struct client *c, uint32_t writes, const struct qcache_judgement *j,
    const struct results_said *said)
{
    struct results *sc = results_of(c);
    cache_cell db = cache_cell_database(pool_database_there(client_pool(c)));
    struct results_cells *more = &sc->cells;
    cache_cell cell[QCACHE_ROW_WRITES];
    unsigned nrows = rows_written(c, said, writes, j, cell);
    unsigned i;

    if (sc->watch == 0 && worker_of(c)->far != NULL)
        sc->watch = cache_far_watch(worker_of(c)->seen, db);
    if (sc->is_held)
        let_go(c, sc); /* with the cells that it was held with; then with more */
    if ((writes & QCACHE_W_DATABASE) != 0)
        results_cells_add(more, db);
    if ((writes & QCACHE_W_CATALOG) != 0)
        results_cells_add(more, cache_cell_table(db, QCACHE_OID_NONE));
    for (i = 0; i < nrows; i++)
        results_cells_add(more, cell[i]);
    for (i = 0; nrows == 0 && j != NULL && (writes & QCACHE_W_TABLES) != 0 && i < j->nwrites; i++) {
        results_cells_add(more, cache_cell_table(db, j->writes[i]));
        results_cells_add(more, cache_cell_whole(db, j->writes[i])); /* results of single rows */
    }
    qcache_note_judged(&sc->judged, writes, j);
    sc->traits |= nrows == 0 ? QCACHE_W_TABLES : 0;
    sc->traits |= writes & QCACHE_W_ALL;
    sc->has_done_more = true;
}

static void send_writes(struct client *c, uint32_t writes, const struct qcache_judgement *j,
    const struct results_said *said)
{
    const uint32_t changes = QCACHE_W_TABLES | QCACHE_W_CATALOG | QCACHE_W_DATABASE | QCACHE_W_ALL;
    struct results *sc = client_results(c);
    bool was_held = sc != NULL && sc->is_held;
    bool changes_any = (writes & changes) != 0;

    if (changes_any && results_are_elsewhere(c))
        writes |= QCACHE_W_DATABASE | QCACHE_W_ALL;
    if ((writes & (QCACHE_W_ENDS | QCACHE_W_COMMITS)) == QCACHE_W_ENDS)
        results_of(c)->commits_sent = true; /* what follows in the exchange is not in it */
    if (!changes_any && (sc == NULL || (writes & QCACHE_W_COMMITS) == 0))
        return;
    if (changes_any) {
        add_writes(c, writes, j, said);
        sc = client_results(c);
    }
    if (was_held ||
        ((!is_in_block(c, sc) || (writes & QCACHE_W_COMMITS) != 0) && !is_in_vain(c, writes)))
        hold(c, sc);
    sc->commits_sent = sc->commits_sent || (writes & QCACHE_W_COMMITS) != 0;
}

/* Results go by memqcache_expire alone; what the transaction itself has written it sees all the
 * same. */
static uint32_t only_unwatched(struct client *c, uint32_t writes)
{
    if ((writes & (QCACHE_W_TABLES | QCACHE_W_DATABASE)) != 0)
        results_of(c)->has_done_more = true;
    return writes & (QCACHE_W_CATALOG | QCACHE_W_COMMITS | QCACHE_W_ENDS);
}

/* What is written may be other tables than those that the names led to when they were asked
 * about, or more: DDL in the transaction gave a name to another one, made a trigger, a cascade. */
static bool are_names_doubtful(struct client *c, uint32_t writes, uint32_t nstatements)
{
    struct results *sc = (writes & QCACHE_W_MOVES) != 0 ? results_of(c) : client_results(c);

    return (sc != NULL && qcache_is_behind(&sc->traits, writes, nstatements)) ||
           ((writes & QCACHE_W_TABLES) != 0 && client_has_run_code(c));
}

void results_note_writes(struct client *c, const struct results_said *said)
{
    const struct sql_facts *facts = said->facts;
    struct slice sql = said->sql;
    const uint32_t by_names = QCACHE_W_TABLES | QCACHE_W_FUNCTIONS;
    const struct qcache_judgement *j = NULL;
    uint32_t writes = qcache_writes(facts, sql);

    if (route_text_may_differ(sql) && sstate_text_is_doubtful(c, sql))
        writes = QCACHE_W_UNREAD;
    if (!client_sessions(c)->conf->memqcache_auto_cache_invalidation)
        writes = only_unwatched(c, writes);
    if ((writes & by_names) != 0 && !results_are_elsewhere(c) &&
        (j = results_judged_now(c, facts, sql)) == NULL && results_scope(c, facts) == 0) {
        if (buf_slice(&worker_of(c)->scope).n == worker_of(c)->question_at)
            writes &= ~by_names; /* it names nothing */
        else if ((j = results_judged(c)) == NULL)
            results_ask_after(c);
    }
    if (qcache_may_run_code(facts, writes, j))
        client_note_code(c);
    writes = qcache_judged(writes, j);
    if (are_names_doubtful(c, writes, facts->nstmts))
        writes |= QCACHE_W_DATABASE;
    if (!qcache_leaves_no_trace(facts, j))
        results_of(c)->has_done_more = true;
    send_writes(c, writes, j, said);
}

void results_note_unread(struct client *c)
{
    uint32_t writes = QCACHE_W_UNREAD;

    client_note_code(c);
    if (!client_sessions(c)->conf->memqcache_auto_cache_invalidation)
        writes = only_unwatched(c, writes);
    send_writes(c, writes, NULL, NULL);
}

void results_settle_writes(struct client *c)
{
    struct results *sc = client_results(c);
    bool is_open = sstate_tx_status(c) != 'I';

    /* A COMMIT that was bound and not executed comes in a later exchange without a name. */
    if (!is_open && !sc->is_held && (sc->traits & QCACHE_W_COMMITS) != 0)
        hold(c, sc);
    if (sc->is_held || sc->owes_word) {
        results_tell_far(c); /* others have to know before the client does */
        let_go(c, sc);
    }
    if (is_open && sc->commits_sent)
        sc->traits |= QCACHE_W_COMMITS;
    sc->commits_sent = false;
    if (is_open)
        return; /* of what was written in it, or in the one before */
    sc->cells.n = 0;
    sc->has_done_more = false;
    sc->watch = 0;
    sc->judged.ncells = 0;
    sc->traits = 0;
}

/* --- what nobody waits for --- */

void results_unseen(struct client *c)
{
    struct results_worker *w = worker_of(c);
    struct results_rest *rest = results_rest_of(c);

    if (rest->unseen.n > 0)
        return;
    results_cells_add(&rest->unseen, cache_cell_database(pool_database_there(client_pool(c))));
    cache_gens_hold(w->gens, client_sessions(c)->env->slot, rest->unseen.p, rest->unseen.n);
    list_push_back(&w->unseen, &rest->node);
    if (w->far != NULL)
        results_far_unseen(c);
}

void results_gone(struct client *c, uint64_t link_id)
{
    struct results_rest *rest = client_results_rest(c);

    results_tell_leave(c);
    if (rest->unseen.n > 0) {
        list_remove(&rest->node);
        results_add_loose(c, &rest->unseen, false, NULL, link_id, LOOSE_MAX_US);
    }
    results_rest_trim(c);
}
