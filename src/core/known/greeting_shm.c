/* SPDX-License-Identifier: PostgreSQL
 * greeting_shm.c: what servers said at logins, in shared memory: the first client of a worker need
 * not ask again. Runs in: workers, and the supervisor when it plans the region GREETINGS. Each
 * worker writes its own table and reads all of them. A row is copied under its sequence counter:
 * one that is met in the middle of a change is taken for none. */
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include "backend/link.h"
#include "base/hash.h"

#include "known/greetings.h"

/* Rows of one worker, and what fits into one: names, start-up parameters, some fifteen values. */
#define GREETING_ROWS  64
#define GREETING_BYTES 1984

struct greeting_row {
    int64_t seen_us;
    int64_t auth_seen_us; /* of the pool, with: */
    uint8_t auth;         /* enum link_auth */
    uint16_t pool_len;    /* of kind_len */
    uint16_t kind_len;
    uint16_t reported_len;
    char text[GREETING_BYTES]; /* kind, reported */
};

/* The hashes stand together: mostly they are all that is looked at. */
struct greeting_table {
    _Atomic uint64_t kind[GREETING_ROWS]; /* 0: free */
    _Atomic uint64_t pool[GREETING_ROWS];
    struct shm_seq seq[GREETING_ROWS];
    struct greeting_row row[GREETING_ROWS];
} __attribute__((aligned(64)));

size_t greeting_region_bytes(int nworkers)
{
    return (size_t)nworkers * sizeof(struct greeting_table);
}

static struct greeting_table *table_of(const struct shm *shm, int ordinal)
{
    return (struct greeting_table *)shm_get(shm, SHM_GREETINGS) + ordinal;
}

static uint64_t hash_of(struct slice kind)
{
    return hash_bytes(kind.p, kind.n, 17) | 1;
}

struct shm_seq *greeting_seq(struct shm *shm, int ordinal, int row)
{
    return &table_of(shm, ordinal)->seq[row];
}

void greeting_worker_init(struct shm *shm, int ordinal)
{
    struct greeting_table *t = table_of(shm, ordinal);
    int i;

    for (i = 0; i < GREETING_ROWS; i++) {
        if ((atomic_load(&t->seq[i].n) & 1) == 0)
            continue;
        atomic_store(&t->kind[i], 0); /* its writer died over it */
        t->row[i].seen_us = 0;
        shm_write_end(&t->seq[i]);
    }
}

/* Where that kind is; else a free row, else the oldest one. */
static int row_for(const struct greeting_table *t, uint64_t kind)
{
    uint64_t there;
    int best = 0;
    int i;

    for (i = 0; i < GREETING_ROWS; i++) {
        there = atomic_load_explicit(&t->kind[i], memory_order_relaxed);
        if (there == kind || there == 0)
            return i;
        if (t->row[i].seen_us < t->row[best].seen_us)
            best = i;
    }
    return best;
}

void greeting_put(struct shm *shm, int ordinal, const struct greeting *g)
{
    struct greeting_table *t = table_of(shm, ordinal);
    uint64_t kind = hash_of(g->kind);
    struct greeting_row *row;
    int at;

    if (g->kind.n + g->reported.n > GREETING_BYTES)
        return;
    at = row_for(t, kind);
    row = &t->row[at];
    shm_write_begin(&t->seq[at]);
    atomic_store_explicit(&t->kind[at], kind, memory_order_relaxed);
    atomic_store_explicit(&t->pool[at], hash_of(g->pool), memory_order_relaxed);
    row->seen_us = g->seen_us;
    row->auth_seen_us = g->auth_seen_us;
    row->auth = g->auth;
    row->pool_len = (uint16_t)g->pool.n;
    row->kind_len = (uint16_t)g->kind.n;
    row->reported_len = (uint16_t)g->reported.n;
    memcpy(row->text, g->kind.p, g->kind.n);
    if (g->reported.n > 0)
        memcpy(row->text + g->kind.n, g->reported.p, g->reported.n);
    shm_write_end(&t->seq[at]);
}

/* False when it is being changed. */
static bool row_read(const struct greeting_table *t, int at, struct greeting_row *out)
{
    uint32_t n = atomic_load_explicit(&t->seq[at].n, memory_order_acquire);

    if ((n & 1) != 0)
        return false;
    memcpy(out, &t->row[at], sizeof *out);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&t->seq[at].n, memory_order_relaxed) == n;
}

int64_t greeting_get(
    const struct shm *shm, int nworkers, struct slice kind, struct paramset *reported)
{
    uint64_t hash = hash_of(kind);
    const struct greeting_table *t;
    struct greeting_row row;
    int64_t newest = -1;
    int i;
    int w;

    for (w = 0; w < nworkers; w++) {
        t = table_of(shm, w);
        for (i = 0; i < GREETING_ROWS; i++) {
            if (atomic_load_explicit(&t->kind[i], memory_order_relaxed) != hash ||
                !row_read(t, i, &row) || row.seen_us <= newest ||
                !slice_eq(slice_of(row.text, row.kind_len), kind))
                continue;
            paramset_set_bytes(reported, slice_of(row.text + row.kind_len, row.reported_len));
            newest = row.seen_us;
        }
    }
    return newest;
}

int64_t greeting_get_trust(const struct shm *shm, int nworkers, struct slice pool)
{
    uint64_t hash = hash_of(pool);
    const struct greeting_table *t;
    struct greeting_row row;
    int64_t newest = -1;
    bool is_trust = false;
    int i;
    int w;

    for (w = 0; w < nworkers; w++) {
        t = table_of(shm, w);
        for (i = 0; i < GREETING_ROWS; i++) {
            if (atomic_load_explicit(&t->pool[i], memory_order_relaxed) != hash ||
                !row_read(t, i, &row) || row.auth_seen_us <= newest ||
                !slice_eq(slice_of(row.text, row.pool_len), pool))
                continue;
            newest = row.auth_seen_us;
            is_trust = row.auth == LINK_AUTH_TRUST;
        }
    }
    return is_trust ? newest : -1;
}
