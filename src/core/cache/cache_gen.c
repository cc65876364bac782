/* SPDX-License-Identifier: PostgreSQL
 * cache_gen.c: generations in shared memory.
 * Runs in: workers and the invalidator. A reader adds up a handful of counters; a writer adds to a
 * handful. Nothing here is ever locked, so nothing can be left locked by a process that dies. What
 * a process holds is counted in a part of its own, which can be cleared when it is gone without
 * touching what others hold. */
#include "config.h"

#include "cache/cache_gen.h"

#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/hot.h"
#include "sys/clock.h"

#include "cache_int.h"

/* Holds and times of writes are kept by fewer cells than generations: two that share one only
 * refuse a fill without need, for as long as a commit or a standby's delay lasts. */
#define HOLD_CELLS 8192
#define MARK_CELLS 65536
/* A commit whose sender died is through at the server after this time, or its server is in trouble
 * that ends in a failover. */
#define QUIET_US 30000000

/* What one process holds. Written by it alone, or by the supervisor when it is gone. */
struct gen_holder {
    _Atomic uint32_t nholds;
    _Atomic uint32_t count[HOLD_CELLS];
} __attribute__((aligned(64)));

/* The last known write of a cell. */
struct gen_mark {
    _Atomic uint64_t lsn;
    _Atomic int64_t us;
};

struct cache_gens {
    _Atomic uint64_t all;
    _Atomic uint32_t off; /* bits of enum cache_off */
    uint32_t mask;
    int32_t nprocs;
    _Atomic int64_t quiet_until_us; /* with CACHE_OFF_DIED */
    _Atomic int64_t all_us; /* a standby must have replayed what was committed before this */
    size_t holders_at;
    size_t marks_at;
    _Atomic uint64_t cell[] __attribute__((aligned(64)));
};

static const char *const fill_texts[] = {
#define FILL_TEXT(sym, text) text,
    CACHE_FILL_REASONS(FILL_TEXT)};

static const char *const off_texts[] = {
#define OFF_TEXT(sym, text) text,
    CACHE_OFF_REASONS(OFF_TEXT)};

const char *cache_fill_reason_text(enum cache_fill_reason reason)
{
    return fill_texts[reason];
}

const char *cache_off_text(enum cache_off reason)
{
    return off_texts[reason];
}

static struct gen_holder *holder_of(const struct cache_gens *g, int proc)
{
    ASSERT(proc >= 0 && proc < g->nprocs);
    return (struct gen_holder *)((char *)(uintptr_t)g + g->holders_at) + proc;
}

static struct gen_mark *mark_of(const struct cache_gens *g, uint32_t cell)
{
    return (struct gen_mark *)((char *)(uintptr_t)g + g->marks_at) + cell % MARK_CELLS;
}

static size_t line_up(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

static size_t holders_at(uint32_t ncells)
{
    return line_up(sizeof(struct cache_gens) + (size_t)ncells * sizeof(uint64_t));
}

static size_t marks_at(uint32_t ncells, int nprocs)
{
    return holders_at(ncells) + (size_t)nprocs * sizeof(struct gen_holder);
}

size_t cache_gens_bytes(uint32_t ncells, int nprocs)
{
    return marks_at(ncells, nprocs) + MARK_CELLS * sizeof(struct gen_mark);
}

struct cache_gens *cache_gens_init(void *mem, uint32_t ncells, int nprocs)
{
    struct cache_gens *g = mem;

    ASSERT(ncells > 0 && (ncells & (ncells - 1)) == 0);
    g->mask = ncells - 1;
    g->nprocs = nprocs;
    g->holders_at = holders_at(ncells);
    g->marks_at = marks_at(ncells, nprocs);
    return g;
}

/* What tells kinds of cells apart that are made of the same numbers. */
enum cell_kind { CELL_TABLE = 1, CELL_WHOLE, CELL_COLUMN, CELL_VALUE };

cache_cell cache_cell_database(struct slice name)
{
    return hash_bytes(name.p, name.n, 0x6361636865U);
}

cache_cell cache_cell_table(cache_cell database, uint32_t oid)
{
    return hash_pair(database, (uint64_t)oid << 8 | CELL_TABLE);
}

cache_cell cache_cell_whole(cache_cell database, uint32_t oid)
{
    return hash_pair(database, (uint64_t)oid << 8 | CELL_WHOLE);
}

cache_cell cache_cell_column(cache_cell database, uint32_t oid, int attnum)
{
    return hash_pair(
        hash_pair(database, (uint64_t)oid << 8 | CELL_COLUMN), (uint64_t)(uint32_t)attnum);
}

cache_cell cache_cell_value(cache_cell database, uint32_t oid, int attnum, uint64_t value)
{
    uint64_t column =
        hash_pair(hash_pair(database, (uint64_t)oid << 8 | CELL_VALUE), (uint64_t)(uint32_t)attnum);

    return hash_pair(column, value);
}

/* Neighbouring hashes are no neighbouring cells: hash_pair's low bits are good, but cost nothing to
 * be mixed with the high ones. */
static uint32_t index_of(const struct cache_gens *g, cache_cell cell)
{
    return (uint32_t)(cell ^ cell >> 32) & g->mask;
}

void cache_deps_init(struct cache_deps *d)
{
    d->ncells = 0;
    d->is_many = false;
    d->sum = 0;
}

void cache_deps_add(struct cache_deps *d, const struct cache_gens *g, cache_cell cell)
{
    uint32_t i = index_of(g, cell);
    uint32_t k;

    for (k = 0; k < d->ncells; k++)
        if (d->cell[k] == i)
            return;
    if (d->ncells == CACHE_DEPS_MAX) {
        d->is_many = true;
        return;
    }
    d->cell[d->ncells++] = i;
}

HOT uint64_t cache_gens_sum(const struct cache_gens *g, const uint32_t *cell, uint32_t ncells)
{
    uint64_t sum = atomic_load_explicit(&g->all, memory_order_acquire);
    uint32_t i;

    for (i = 0; i < ncells; i++)
        sum += atomic_load_explicit(&g->cell[cell[i] & g->mask], memory_order_acquire);
    return sum;
}

/* Ends the quiet time after a death once it is over. */
static uint32_t off_bits(struct cache_gens *g, int64_t now_us)
{
    uint32_t off = atomic_load_explicit(&g->off, memory_order_acquire);

    if ((off & 1U << CACHE_OFF_DIED) != 0 && now_us >= atomic_load(&g->quiet_until_us)) {
        cache_gens_on(g, CACHE_OFF_DIED, now_us);
        off &= ~(1U << CACHE_OFF_DIED);
    }
    return off;
}

HOT uint32_t cache_gens_off_bits(struct cache_gens *g, int64_t now_us)
{
    if (atomic_load_explicit(&g->off, memory_order_acquire) == 0)
        return 0;
    return off_bits(g, now_us);
}

static bool is_held(const struct cache_gens *g, const struct cache_deps *d)
{
    uint32_t i;
    int p;

    for (p = 0; p < g->nprocs; p++) {
        const struct gen_holder *h = holder_of(g, p);

        if (atomic_load_explicit(&h->nholds, memory_order_acquire) == 0)
            continue;
        for (i = 0; i < d->ncells; i++)
            if (atomic_load_explicit(&h->count[d->cell[i] % HOLD_CELLS], memory_order_acquire) != 0)
                return true;
    }
    return false;
}

/* The generations first: a holder counts before it bumps, so that who has read the bumped
 * generation sees the hold, and who has read the one before is invalid by the bump. */
enum cache_fill_reason cache_deps_read(struct cache_deps *d, struct cache_gens *g, int64_t now_us)
{
    if (d->is_many)
        return CACHE_FILL_MANY;
    d->sum = cache_gens_sum(g, d->cell, d->ncells);
    if (cache_gens_off_bits(g, now_us) != 0)
        return CACHE_FILL_OFF;
    return is_held(g, d) ? CACHE_FILL_HELD : CACHE_FILL_OK;
}

bool cache_deps_hold(const struct cache_deps *d, const struct cache_gens *g)
{
    return cache_gens_sum(g, d->cell, d->ncells) == d->sum;
}

bool cache_gens_standby(const struct cache_gens *g, const uint32_t *cell, uint32_t ncells,
    const struct cache_standby *s)
{
    uint32_t i;

    if (s->as_of_us == 0 || s->as_of_us < atomic_load(&g->all_us))
        return false;
    for (i = 0; i < ncells; i++) {
        const struct gen_mark *m = mark_of(g, cell[i]);

        if (s->replay_lsn < atomic_load_explicit(&m->lsn, memory_order_acquire) ||
            s->as_of_us < atomic_load_explicit(&m->us, memory_order_acquire))
            return false;
    }
    return true;
}

bool cache_deps_standby(
    const struct cache_deps *d, const struct cache_gens *g, const struct cache_standby *s)
{
    return cache_gens_standby(g, d->cell, d->ncells, s);
}

struct cache_written cache_written_now(void)
{
    return (struct cache_written){.us = clock_mono_us()};
}

static void mark_written(struct gen_mark *m, struct cache_written w)
{
    uint64_t lsn = atomic_load(&m->lsn);
    int64_t us = atomic_load(&m->us);

    while (w.lsn > lsn && !atomic_compare_exchange_weak(&m->lsn, &lsn, w.lsn))
        ;
    while (w.lsn == 0 && w.us > us && !atomic_compare_exchange_weak(&m->us, &us, w.us))
        ;
}

/* The mark stands before the generation moves: who reads the new generation finds the mark. */
void cache_gens_bump(
    struct cache_gens *g, const cache_cell *cells, size_t n, struct cache_written w)
{
    size_t i;

    for (i = 0; i < n; i++) {
        uint32_t at = index_of(g, cells[i]);

        if (w.lsn != 0 || w.us != 0)
            mark_written(mark_of(g, at), w);
        atomic_fetch_add_explicit(&g->cell[at], 1, memory_order_acq_rel);
    }
}

void cache_gens_hold(struct cache_gens *g, int proc, const cache_cell *cells, size_t n)
{
    struct gen_holder *h = holder_of(g, proc);
    size_t i;

    atomic_fetch_add(&h->nholds, 1);
    for (i = 0; i < n; i++)
        atomic_fetch_add(&h->count[index_of(g, cells[i]) % HOLD_CELLS], 1);
    cache_gens_bump(g, cells, n, (struct cache_written){0, 0});
}

void cache_gens_release(
    struct cache_gens *g, int proc, const cache_cell *cells, size_t n, struct cache_written w)
{
    struct gen_holder *h = holder_of(g, proc);
    size_t i;

    cache_gens_bump(g, cells, n, w);
    for (i = 0; i < n; i++)
        atomic_fetch_sub(&h->count[index_of(g, cells[i]) % HOLD_CELLS], 1);
    atomic_fetch_sub(&h->nholds, 1);
}

void cache_gens_forget(struct cache_gens *g, int proc)
{
    struct gen_holder *h = holder_of(g, proc);
    size_t i;

    for (i = 0; i < HOLD_CELLS; i++)
        atomic_store(&h->count[i], 0);
    atomic_store(&h->nholds, 0);
}

bool cache_gens_died(struct cache_gens *g, int proc, int64_t now_us)
{
    struct gen_holder *h = holder_of(g, proc);

    if (atomic_load(&h->nholds) == 0)
        return false;
    atomic_store(&g->quiet_until_us, now_us + QUIET_US);
    cache_gens_off(g, CACHE_OFF_DIED);
    cache_gens_forget(g, proc);
    return true;
}

static void all_written(struct cache_gens *g, int64_t now_us)
{
    int64_t us = atomic_load(&g->all_us);

    while (now_us > us && !atomic_compare_exchange_weak(&g->all_us, &us, now_us))
        ;
}

void cache_gens_empty(struct cache_gens *g, int64_t now_us)
{
    all_written(g, now_us);
    atomic_fetch_add(&g->all, 1);
}

void cache_gens_primary_changed(struct cache_gens *g, int64_t now_us)
{
    uint32_t i;

    all_written(g, now_us);
    for (i = 0; i < MARK_CELLS; i++) {
        atomic_store_explicit(&mark_of(g, i)->lsn, 0, memory_order_relaxed);
        atomic_store_explicit(&mark_of(g, i)->us, 0, memory_order_relaxed);
    }
    cache_gens_empty(g, now_us);
}

void cache_gens_off(struct cache_gens *g, enum cache_off reason)
{
    atomic_fetch_or(&g->off, 1U << reason);
}

/* Emptied before it goes on: what was kept before it stopped is as old as it looks. */
void cache_gens_on(struct cache_gens *g, enum cache_off reason, int64_t now_us)
{
    cache_gens_empty(g, now_us);
    atomic_fetch_and(&g->off, ~(1U << reason));
}
