/* SPDX-License-Identifier: PostgreSQL
 * cache_far_seen.c: what a process knows of the generations that cells have in memcached: since
 * when, and by which of them it has judged names. Pure, but for the generations in shared memory.
 * Runs in: workers. */
#include "config.h"

#include "base/hash.h"
#include "base/mem.h"
#include "cache/cache_far.h"

/* Cells whose generations are remembered: since when. */
#define SEEN_CELLS 4096
#define KNOWN      64

/* A generation of a cell, and when it was met for the first time, at the latest. */
struct seen {
    cache_cell cell;
    uint64_t gen;
    int64_t since_us;
};

/* What was known of a database when its catalogue was asked about last. */
struct known {
    cache_cell db;
    uint64_t watch;
};

struct cache_far_seen {
    struct cache_gens *gens;
    struct seen seen[SEEN_CELLS];
    struct known known[KNOWN];
};

struct cache_far_seen *cache_far_seen_new(struct cache_gens *gens)
{
    struct cache_far_seen *s = mem_alloc_zero(sizeof *s);

    s->gens = gens;
    return s;
}

void cache_far_seen_free(struct cache_far_seen **sp)
{
    mem_free(*sp);
    *sp = NULL;
}

static struct seen *seen_at(struct cache_far_seen *s, cache_cell cell)
{
    return &s->seen[hash_pair(cell, 0) % SEEN_CELLS];
}

void cache_far_seen_note(
    struct cache_far_seen *s, const struct cache_far_deps *deps, int64_t now_us)
{
    uint32_t i;

    for (i = 0; i < deps->ncells; i++) {
        struct seen *at = seen_at(s, deps->cell[i]);

        if (at->cell != deps->cell[i] || at->gen != deps->gen[i])
            *at = (struct seen){deps->cell[i], deps->gen[i], now_us};
    }
}

bool cache_far_seen_standby(
    struct cache_far_seen *s, const struct cache_far_deps *deps, const struct cache_standby *is)
{
    uint32_t i;

    for (i = 0; i < deps->ncells; i++) {
        const struct seen *at = seen_at(s, deps->cell[i]);

        if (at->cell != deps->cell[i] || at->gen != deps->gen[i] || at->since_us > is->as_of_us)
            return false;
    }
    return true;
}

static struct known *known_at(struct cache_far_seen *s, cache_cell db)
{
    return &s->known[hash_pair(db, 0) % KNOWN];
}

uint64_t cache_far_watch(struct cache_far_seen *s, cache_cell db)
{
    const struct known *k = known_at(s, db);

    return k->db == db ? k->watch : 0;
}

bool cache_far_watch_moved(struct cache_far_seen *s, const struct cache_far_deps *deps)
{
    cache_cell db = deps->cell[0];
    cache_cell catalog = deps->watched;
    uint64_t watch =
        hash_pair(deps->gen[0], hash_pair(deps->gen[deps->ncells], deps->gen[deps->ncells + 1])) |
        1;

    if (cache_far_watch(s, db) == watch)
        return false;
    *known_at(s, db) = (struct known){db, watch};
    cache_gens_bump(s->gens, &catalog, 1, cache_written_now());
    return true;
}
