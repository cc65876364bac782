/* SPDX-License-Identifier: PostgreSQL
 * results_deps.c: what a result depends on, as cells, and what a worker knows of the
 * generations that these have in memcached. Runs in: workers. Calls nobody else of the session. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"
#include "config/conf.h"

#include "results/results_int.h"

/* Cells whose generations are remembered: since when. */
#define SEEN_CELLS 4096

/* This generation of the cell was met for the first time at this time, if not before. */
struct far_seen {
    cache_cell cell;
    uint64_t gen;
    int64_t since_us;
};

/* What was known of a database when its catalogue was asked about last. */
#define KNOWN 64
struct far_known {
    cache_cell db;
    uint64_t watch;
};

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
    const struct cached_said *said, cache_cell cell[CACHE_DEPS_MAX])
{
    struct cached_worker *w = c->ss->cache;
    cache_cell db = cache_cell_database(pool_database_there(c->pool));
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

/* --- the catalogue --- */

static struct far_known *known_at(struct cached_worker *w, cache_cell db)
{
    return &w->known[hash_pair(db, 0) % KNOWN];
}

uint64_t results_far_watch(struct cached_worker *w, cache_cell db)
{
    const struct far_known *k = known_at(w, db);

    return k->db == db ? k->watch : 0;
}

void results_far_watched(cache_cell db, struct cache_far_deps *deps)
{
    deps->cell[0] = db;
    deps->watched = cache_cell_table(db, QCACHE_OID_NONE);
}

bool results_far_note_watch(struct cached_worker *w, const struct cache_far_deps *deps)
{
    cache_cell db = deps->cell[0];
    cache_cell catalog = deps->watched;
    uint64_t watch =
        hash_pair(deps->gen[0], hash_pair(deps->gen[deps->ncells], deps->gen[deps->ncells + 1])) |
        1;

    if (results_far_watch(w, db) == watch)
        return false;
    *known_at(w, db) = (struct far_known){db, watch};
    cache_gens_bump(w->gens, &catalog, 1, cache_written_now());
    return true;
}

/* --- since when --- */

static struct far_seen *seen_at(struct cached_worker *w, cache_cell cell)
{
    return &w->seen[hash_pair(cell, 0) % SEEN_CELLS];
}

void results_far_note_seen(struct cached_worker *w, const struct cache_far_deps *deps)
{
    int64_t now_us = loop_now_us(w->ss->loop);
    uint32_t i;

    for (i = 0; i < deps->ncells; i++) {
        struct far_seen *s = seen_at(w, deps->cell[i]);

        if (s->cell != deps->cell[i] || s->gen != deps->gen[i])
            *s = (struct far_seen){deps->cell[i], deps->gen[i], now_us};
    }
}

/* Who writes by another pgpool sets a generation that was not seen before: what he committed was
 * committed before that. */
bool results_far_standby(struct client *c, const struct cache_standby *is)
{
    const struct results_far *f = c->sstate->errand->cache->far;
    uint32_t i;

    for (i = 0; f != NULL && i < f->deps.ncells; i++) {
        const struct far_seen *s = seen_at(c->ss->cache, f->deps.cell[i]);

        if (s->cell != f->deps.cell[i] || s->gen != f->deps.gen[i] || s->since_us > is->as_of_us)
            return false;
    }
    return f != NULL;
}

void results_far_forget(struct cached *sc)
{
    struct results_far *f = sc->far;

    if (f == NULL)
        return;
    sc->far = NULL;
    cache_far_leave(&f->call);
    buf_free(&f->key);
    buf_free(&f->result);
    mem_free(f);
}

void results_deps_init(struct cached_worker *w)
{
    w->known = mem_alloc_zero(KNOWN * sizeof w->known[0]);
    w->seen = mem_alloc_zero(SEEN_CELLS * sizeof w->seen[0]);
}

void results_deps_fini(struct cached_worker *w)
{
    mem_free(w->known);
    mem_free(w->seen);
}
