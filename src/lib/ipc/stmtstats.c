/* SPDX-License-Identifier: PostgreSQL
 * stmtstats.c: what each statement did, a table per worker, summed by the reader. Runs in: workers
 * (writing), whoever answers SHOW (reading).
 *
 * Which row goes when there is no room is found by a hand that walks over them as over the face of
 * a clock: one that was used since it came by last stays. */
#include "config.h"

#include "ipc/stmtstats.h"

#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/hot.h"
#include "base/mem.h"

#define ROW_BITS 16
#define ROW_MASK ((1U << ROW_BITS) - 1)

struct stmtstats_region {
    uint32_t nworkers;
    uint32_t max;             /* statements of a worker */
    _Atomic uint32_t nresets; /* ordered so far */
    /* max + 1 rows of each worker. The first is that of all others. */
    struct stmtstats_row row[];
};

/* What a worker knows of the row of the same number. */
struct entry {
    struct hash_node node; /* in the table when is_known */
    struct stmtstats_key key;
    uint16_t generation; /* of what the row is of; 0: never of anything */
    bool is_known;
    bool was_used; /* since the hand came by */
};

struct stmtstats_book {
    struct stmtstats_region *region;
    struct stmtstats_row *row; /* the worker's own */
    struct entry *entry;
    struct hash_table table;
    uint32_t norphans; /* rows of a worker that has gone, whose statement was not seen again */
    uint32_t hand;
    uint32_t nused; /* rows that were ever used, the first one included */
};

static uint32_t rows_per_worker(uint32_t max)
{
    return max + 1;
}

static struct stmtstats_row *rows_of(struct stmtstats_region *region, uint32_t ordinal)
{
    return &region->row[(size_t)ordinal * rows_per_worker(region->max)];
}

size_t stmtstats_region_bytes(int nworkers, int max)
{
    if (max == 0)
        return 0;
    return sizeof(struct stmtstats_region) +
           (size_t)nworkers * rows_per_worker((uint32_t)max) * sizeof(struct stmtstats_row);
}

void stmtstats_region_init(struct shm *shm, int nworkers, int max)
{
    struct stmtstats_region *region = shm_get(shm, SHM_STMTSTATS);

    if (region == NULL)
        return;
    region->nworkers = (uint32_t)nworkers;
    region->max = (uint32_t)max;
}

/* --- the worker's side --- */

/* One writer: a plain add is enough. */
static void add64(_Atomic uint64_t *cell, uint64_t n)
{
    atomic_store_explicit(
        cell, atomic_load_explicit(cell, memory_order_relaxed) + n, memory_order_relaxed);
}

static void add32(_Atomic uint32_t *cell, uint32_t n)
{
    atomic_store_explicit(
        cell, atomic_load_explicit(cell, memory_order_relaxed) + n, memory_order_relaxed);
}

static void clear_figures(struct stmtstats_row *row)
{
    int i;

    atomic_store_explicit(&row->calls, 0, memory_order_relaxed);
    atomic_store_explicit(&row->nrows, 0, memory_order_relaxed);
    atomic_store_explicit(&row->nerrors, 0, memory_order_relaxed);
    atomic_store_explicit(&row->total_us, 0, memory_order_relaxed);
    atomic_store_explicit(&row->max_us, 0, memory_order_relaxed);
    atomic_store_explicit(&row->hits, 0, memory_order_relaxed);
    for (i = 0; i < STMTSTATS_BUCKETS; i++)
        atomic_store_explicit(&row->bucket[i], 0, memory_order_relaxed);
}

static void raise_max(struct stmtstats_row *row, uint64_t us)
{
    if (us > atomic_load_explicit(&row->max_us, memory_order_relaxed))
        atomic_store_explicit(&row->max_us, us, memory_order_relaxed);
}

/* What `row` did becomes part of what all others did. */
static void give_to_others(struct stmtstats_book *b, struct stmtstats_row *row)
{
    struct stmtstats_row *other = &b->row[0];
    int i;

    add64(&other->calls, atomic_load_explicit(&row->calls, memory_order_relaxed));
    add64(&other->nrows, atomic_load_explicit(&row->nrows, memory_order_relaxed));
    add64(&other->nerrors, atomic_load_explicit(&row->nerrors, memory_order_relaxed));
    add64(&other->total_us, atomic_load_explicit(&row->total_us, memory_order_relaxed));
    add64(&other->hits, atomic_load_explicit(&row->hits, memory_order_relaxed));
    raise_max(other, atomic_load_explicit(&row->max_us, memory_order_relaxed));
    for (i = 0; i < STMTSTATS_BUCKETS; i++)
        add32(&other->bucket[i], atomic_load_explicit(&row->bucket[i], memory_order_relaxed));
    clear_figures(row);
}

struct stmtstats_book *stmtstats_open(struct shm *shm, int ordinal)
{
    struct stmtstats_region *region = shm_get(shm, SHM_STMTSTATS);
    struct stmtstats_book *b;

    if (region == NULL)
        return NULL;
    ASSERT((uint32_t)ordinal < region->nworkers);
    b = mem_alloc_zero(sizeof *b);
    b->region = region;
    b->row = rows_of(region, (uint32_t)ordinal);
    b->entry = mem_alloc_zero(rows_per_worker(region->max) * sizeof *b->entry);
    hash_table_init(&b->table);
    if (!b->row[0].is_used)
        atomic_store_explicit(&b->row[0].nresets,
            atomic_load_explicit(&region->nresets, memory_order_relaxed), memory_order_relaxed);
    b->row[0].is_used = true;
    b->row[0].node = STMTSTATS_OTHER;
    /* Rows are used from the first on, and those behind are not looked at: that would make the
     * kernel find memory for them. */
    for (b->nused = 1; b->nused <= region->max && b->row[b->nused].is_used; b->nused++)
        b->norphans++;
    b->hand = 1;
    return b;
}

void stmtstats_close(struct stmtstats_book **bp)
{
    struct stmtstats_book *b = *bp;

    if (b == NULL)
        return;
    hash_table_fini(&b->table);
    mem_free(b->entry);
    mem_free(b);
    *bp = NULL;
}

HOT static int entry_eq(const struct hash_node *node, const void *key)
{
    const struct entry *e = (const struct entry *)(const void *)node;
    const struct stmtstats_key *k = key;

    return e->key.hi == k->hi && e->key.database == k->database && e->key.node == k->node;
}

static uint64_t key_hash(const struct stmtstats_key *key)
{
    return key->lo ^ (uint64_t)(uintptr_t)key->database ^ (uint64_t)key->node << 48;
}

static stmtstats_handle handle_of(const struct stmtstats_book *b, const struct entry *e)
{
    return (uint32_t)e->generation << ROW_BITS | (uint32_t)(e - b->entry);
}

HOT stmtstats_handle stmtstats_find(struct stmtstats_book *b, const struct stmtstats_key *key)
{
    struct hash_node *n = hash_table_find(&b->table, key_hash(key), entry_eq, key);

    return n == NULL ? 0 : handle_of(b, (struct entry *)(void *)n);
}

HOT bool stmtstats_is(
    const struct stmtstats_book *b, stmtstats_handle h, const void *database, int node)
{
    const struct entry *e = &b->entry[h & ROW_MASK];

    return (h & ROW_MASK) <= b->region->max && e->generation == h >> ROW_BITS &&
           e->key.database == database && e->key.node == node;
}

bool stmtstats_fingerprint(
    const struct stmtstats_book *b, stmtstats_handle h, uint64_t *fingerprint)
{
    uint32_t i = h & ROW_MASK;

    if (h == 0 || i > b->region->max || b->entry[i].generation != h >> ROW_BITS)
        return false;
    *fingerprint = b->row[i].fingerprint;
    return true;
}

/* The row that a worker which has gone had for this statement; 0: none. */
static uint32_t find_orphan(
    const struct stmtstats_book *b, int node, uint64_t fingerprint, struct slice database)
{
    const struct stmtstats_row *row;
    uint32_t i;

    for (i = 1; b->norphans > 0 && i < b->nused; i++) {
        row = &b->row[i];
        if (b->entry[i].generation == 0 && row->fingerprint == fingerprint && row->node == node &&
            slice_eq(
                database, slice_of(row->database, strnlen(row->database, sizeof row->database))))
            return i;
    }
    return 0;
}

/* A row for another statement, whose figures are zero. */
static uint32_t take_row(struct stmtstats_book *b)
{
    struct entry *e;
    uint32_t i;

    if (b->nused <= b->region->max)
        return b->nused++;
    for (;;) {
        i = b->hand;
        b->hand = i < b->region->max ? i + 1 : 1;
        e = &b->entry[i];
        if (!e->was_used)
            break;
        e->was_used = false;
    }
    if (e->is_known)
        hash_table_del(&b->table, &e->node);
    e->is_known = false;
    if (e->generation == 0)
        b->norphans--;
    return i;
}

stmtstats_handle stmtstats_add(struct stmtstats_book *b, const struct stmtstats_key *key,
    uint64_t fingerprint, struct slice database, struct slice text)
{
    uint32_t i = find_orphan(b, key->node, fingerprint, database);
    struct stmtstats_row *row;
    struct entry *e;

    if (i != 0) {
        b->norphans--;
    } else {
        i = take_row(b);
        row = &b->row[i];
        shm_write_begin(&row->seq);
        give_to_others(b, row);
        row->node = (int16_t)key->node;
        row->fingerprint = fingerprint;
        rows_set_text(row->database, sizeof row->database, database.p, database.n);
        rows_set_text(row->text, sizeof row->text, text.p, text.n);
        row->is_used = true;
        shm_write_end(&row->seq);
    }
    e = &b->entry[i];
    e->generation = e->generation == UINT16_MAX ? 1 : (uint16_t)(e->generation + 1);
    e->key = *key;
    e->is_known = true;
    e->was_used = false;
    hash_table_add(&b->table, &e->node, key_hash(key));
    return handle_of(b, e);
}

/* An operator has ordered a reset since. */
COLD static void follow_reset(struct stmtstats_book *b, uint32_t nresets)
{
    uint32_t i;

    for (i = 0; i < b->nused; i++)
        clear_figures(&b->row[i]);
    atomic_store_explicit(&b->row[0].nresets, nresets, memory_order_release);
}

/* Where it is counted. */
static inline struct stmtstats_row *row_to_count(
    struct stmtstats_book *b, const struct entry *e, stmtstats_handle h)
{
    uint32_t nresets = atomic_load_explicit(&b->region->nresets, memory_order_relaxed);

    if (nresets != atomic_load_explicit(&b->row[0].nresets, memory_order_relaxed))
        follow_reset(b, nresets);
    return e->generation == h >> ROW_BITS ? &b->row[h & ROW_MASK] : &b->row[0];
}

HOT void stmtstats_count_hit(struct stmtstats_book *b, stmtstats_handle h)
{
    struct entry *e = &b->entry[h & ROW_MASK];

    e->was_used = true;
    add64(&row_to_count(b, e, h)->hits, 1);
}

HOT void stmtstats_count(
    struct stmtstats_book *b, stmtstats_handle h, const struct stmtstats_use *use)
{
    struct entry *e = &b->entry[h & ROW_MASK];
    struct stmtstats_row *row = row_to_count(b, e, h);
    int64_t each_us = use->calls == 1 ? use->took_us : use->took_us / use->calls;

    /* Once is not used: those that come once would drive out the others. */
    e->was_used = e->was_used || atomic_load_explicit(&row->calls, memory_order_relaxed) != 0;
    add64(&row->calls, use->calls);
    add64(&row->nrows, use->nrows);
    if (use->nerrors > 0)
        add64(&row->nerrors, use->nerrors);
    add64(&row->total_us, (uint64_t)use->took_us);
    raise_max(row, (uint64_t)each_us);
    add32(&row->bucket[histogram_bucket(each_us) / STMTSTATS_MERGED], use->calls);
}

/* --- the reader's side --- */

void stmtstats_reset(const struct shm *shm)
{
    struct stmtstats_region *region = shm_get(shm, SHM_STMTSTATS);

    if (region != NULL)
        atomic_fetch_add(&region->nresets, 1);
}

static void copy_row(const struct stmtstats_row *row, struct stmtstats_sum *out)
{
    uint32_t seq;
    int i;

    do {
        seq = shm_read_begin(&row->seq);
        out->node = row->node;
        out->fingerprint = row->fingerprint;
        out->calls = atomic_load_explicit(&row->calls, memory_order_relaxed);
        out->nrows = atomic_load_explicit(&row->nrows, memory_order_relaxed);
        out->nerrors = atomic_load_explicit(&row->nerrors, memory_order_relaxed);
        out->total_us = atomic_load_explicit(&row->total_us, memory_order_relaxed);
        out->max_us = atomic_load_explicit(&row->max_us, memory_order_relaxed);
        out->hits = atomic_load_explicit(&row->hits, memory_order_relaxed);
        for (i = 0; i < STMTSTATS_BUCKETS; i++)
            out->bucket[i] = atomic_load_explicit(&row->bucket[i], memory_order_relaxed);
        memcpy(out->database, row->database, sizeof out->database);
        memcpy(out->text, row->text, sizeof out->text);
    } while (shm_read_retry(&row->seq, seq));
    out->database[sizeof out->database - 1] = '\0';
    out->text[sizeof out->text - 1] = '\0';
}

/* True when the worker of row `i` has counted since the last reset. */
static bool is_worker_of_now(struct stmtstats_region *region, uint32_t ordinal)
{
    return atomic_load_explicit(&rows_of(region, ordinal)->nresets, memory_order_acquire) ==
           atomic_load_explicit(&region->nresets, memory_order_relaxed);
}

bool stmtstats_next(const struct shm *shm, uint32_t *at, struct stmtstats_sum *out)
{
    struct stmtstats_region *region = shm_get(shm, SHM_STMTSTATS);
    uint32_t each = region == NULL ? 1 : rows_per_worker(region->max);
    uint32_t n = region == NULL ? 0 : region->nworkers * each;
    uint32_t i = *at;

    while (i < n) {
        /* Behind the first row that was never used there is none of this worker. */
        if (!region->row[i].is_used || (i % each == 0 && !is_worker_of_now(region, i / each))) {
            i += each - i % each;
            continue;
        }
        copy_row(&region->row[i++], out);
        if (out->calls == 0 && out->hits == 0)
            continue;
        *at = i;
        return true;
    }
    *at = i;
    return false;
}

void stmtstats_sum_add(struct stmtstats_sum *sum, const struct stmtstats_sum *from)
{
    int i;

    sum->calls += from->calls;
    sum->nrows += from->nrows;
    sum->nerrors += from->nerrors;
    sum->total_us += from->total_us;
    sum->hits += from->hits;
    if (from->max_us > sum->max_us)
        sum->max_us = from->max_us;
    for (i = 0; i < STMTSTATS_BUCKETS; i++)
        sum->bucket[i] += from->bucket[i];
}

int64_t stmtstats_quantile(const struct stmtstats_sum *sum, unsigned parts)
{
    uint64_t n = 0;
    uint64_t seen = 0;
    uint64_t wanted;
    int64_t middle;
    unsigned i;

    for (i = 0; i < STMTSTATS_BUCKETS; i++)
        n += sum->bucket[i];
    if (n == 0)
        return 0;
    wanted = (n * parts + 999) / 1000;
    if (wanted == n)
        return (int64_t)sum->max_us;
    for (i = 0; i < STMTSTATS_BUCKETS; i++) {
        seen += sum->bucket[i];
        if (seen >= wanted)
            break;
    }
    middle = (histogram_bucket_start(i * STMTSTATS_MERGED) +
                 histogram_bucket_start((i + 1) * STMTSTATS_MERGED)) /
             2;
    return middle > (int64_t)sum->max_us ? (int64_t)sum->max_us : middle;
}
