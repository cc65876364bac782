/* SPDX-License-Identifier: PostgreSQL
 * nodestats.c: times of each server, a table per worker, summed by the reader. Runs in: workers
 * (writing), whoever answers SHOW or metrics (reading). */
#include "config.h"

#include "ipc/nodestats.h"

#include <string.h>

#include "base/assert.h"
#include "base/hot.h"

struct nodestats_region {
    uint32_t nworkers;
    struct nodestats_row row[];
};

size_t nodestats_region_bytes(int nworkers)
{
    return sizeof(struct nodestats_region) +
           (size_t)nworkers * NODESTATS_NODES * sizeof(struct nodestats_row);
}

void nodestats_region_init(struct shm *shm, int nworkers)
{
    struct nodestats_region *region = shm_get(shm, SHM_NODESTATS);

    region->nworkers = (uint32_t)nworkers;
}

static void add(_Atomic uint64_t *cell, uint64_t n)
{
    atomic_store_explicit(
        cell, atomic_load_explicit(cell, memory_order_relaxed) + n, memory_order_relaxed);
}

static struct nodestats_row *row_of(struct shm *shm, int ordinal, int node)
{
    struct nodestats_region *region = shm_get(shm, SHM_NODESTATS);

    ASSERT((uint32_t)ordinal < region->nworkers && node >= 0 && node < NODESTATS_NODES);
    return &region->row[(size_t)ordinal * NODESTATS_NODES + (size_t)node];
}

HOT void nodestats_count(struct shm *shm, int ordinal, int node, struct histogram_value took)
{
    struct nodestats_row *row = row_of(shm, ordinal, node);

    add(&row->nrequests, 1);
    add(&row->query_us, took.us > 0 ? (uint64_t)took.us : 0);
    histogram_count(&row->query, took);
}

HOT void nodestats_ended(struct shm *shm, int ordinal, int node, struct histogram_value took)
{
    struct nodestats_row *row = row_of(shm, ordinal, node);

    add(&row->transaction_us, took.us > 0 ? (uint64_t)took.us : 0);
    histogram_count(&row->transaction, took);
}

void nodestats_sum(const struct shm *shm, int node, struct nodestats_sum *out)
{
    const struct nodestats_region *region = shm_get(shm, SHM_NODESTATS);
    uint32_t i;

    memset(out, 0, sizeof *out);
    if (region == NULL || node < 0 || node >= NODESTATS_NODES)
        return;
    for (i = 0; i < region->nworkers; i++) {
        const struct nodestats_row *row = &region->row[(size_t)i * NODESTATS_NODES + (size_t)node];
        uint64_t n = atomic_load_explicit(&row->nrequests, memory_order_relaxed);

        if (n == 0)
            continue;
        out->nrequests += n;
        out->query_us += atomic_load_explicit(&row->query_us, memory_order_relaxed);
        out->transaction_us += atomic_load_explicit(&row->transaction_us, memory_order_relaxed);
        histogram_sum_add(&out->query, &row->query);
        histogram_sum_add(&out->transaction, &row->transaction);
    }
}
