/* SPDX-License-Identifier: PostgreSQL
 * results_deps.c: what a result depends on, as cells. Runs in: workers. Calls nobody else of the
 * session. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "config/conf.h"

#include "results_int.h"

void results_cells_add(struct results_cells *s, cache_cell cell)
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

_Static_assert(QCACHE_ROW_READS < CACHE_DEPS_MAX, "there is room for the rows of a result");

/* By row where that is known, else by table. */
uint32_t results_depend_on(struct client *c, const struct qcache_judgement *j,
    const struct results_said *said, cache_cell cell[CACHE_DEPS_MAX])
{
    struct results_worker *w = worker_of(c);
    cache_cell db = cache_cell_database(pool_database_there(client_pool(c)));
    struct qcache_row row;
    uint32_t n = 0;
    uint32_t i;

    cell[0] = db;
    if (j->ncolumns > 0) {
        qcache_row_find(w->arena, said->facts, said->sql, &row);
        n = qcache_row_reads(j, &row, &said->params, db, cell + 1);
        arena_reset(w->arena);
    }
    for (i = 0; n == 0 && i < j->nreads && i + 1 < CACHE_DEPS_MAX; i++)
        cell[i + 1] = cache_cell_table(db, j->reads[i]);
    return 1 + (n == 0 ? j->nreads : n);
}

void results_far_watched(cache_cell db, struct cache_far_deps *deps)
{
    deps->cell[0] = db;
    deps->watched = cache_cell_table(db, QCACHE_OID_NONE);
}

bool results_far_standby(struct client *c, const struct cache_standby *is)
{
    const struct results_far *f = client_results(c)->far;
    bool has_all = f != NULL;

    for (; f != NULL && has_all; f = f->next)
        has_all = cache_far_seen_standby(worker_of(c)->seen, &f->deps, is);
    return has_all;
}

struct results_far **results_far_at(struct results *sc, unsigned number)
{
    struct results_far **at = &sc->far;

    while (*at != NULL && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

void results_far_drop(struct results_far **at)
{
    struct results_far *f = *at;

    *at = f->next;
    cache_far_leave(&f->call);
    buf_free(&f->key);
    buf_free(&f->result);
    mem_free(f);
}

void results_far_forget(struct results *sc)
{
    while (sc->far != NULL)
        results_far_drop(&sc->far);
}
