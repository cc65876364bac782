/* SPDX-License-Identifier: PostgreSQL
 * quota.c: link counts in shared memory: a total per node, and each worker's share so that a crash
 * can give it back. */
#include "config.h"

#include "backend/quota.h"

#include <stdatomic.h>

#include "base/assert.h"

struct quota_share {
    _Atomic int32_t held;
    _Atomic int32_t waiting;
    _Atomic int64_t oldest_us;
};

struct quota_node {
    _Atomic int32_t used;
    _Atomic int32_t limit;
    _Atomic int32_t waiting;
} __attribute__((aligned(64)));

struct quota_region {
    int32_t nworkers;
    struct quota_node node[QUOTA_MAX_NODES];
    struct quota_share share[]; /* [worker][node] */
};

size_t quota_region_bytes(int nworkers)
{
    return sizeof(struct quota_region) +
           (size_t)nworkers * QUOTA_MAX_NODES * sizeof(struct quota_share);
}

void quota_region_init(struct shm *shm, int nworkers)
{
    struct quota_region *q = shm_get(shm, SHM_QUOTAS);

    q->nworkers = nworkers;
}

static struct quota_node *quota_node(const struct shm *shm, int node)
{
    struct quota_region *q = shm_get(shm, SHM_QUOTAS);

    ASSERT(node >= 0 && node < QUOTA_MAX_NODES);
    return &q->node[node];
}

static struct quota_share *quota_share(const struct shm *shm, int node, int ordinal)
{
    struct quota_region *q = shm_get(shm, SHM_QUOTAS);

    ASSERT(ordinal >= 0 && ordinal < q->nworkers);
    return &q->share[ordinal * QUOTA_MAX_NODES + node];
}

void quota_set_limit(struct shm *shm, int node, int limit)
{
    atomic_store(&quota_node(shm, node)->limit, limit);
}

int quota_limit(const struct shm *shm, int node)
{
    return atomic_load(&quota_node(shm, node)->limit);
}

bool quota_take(struct shm *shm, int node, int ordinal)
{
    struct quota_node *q = quota_node(shm, node);
    int32_t used = atomic_load(&q->used);
    int32_t limit = atomic_load(&q->limit);

    do {
        if (limit > 0 && used >= limit)
            return false;
    } while (!atomic_compare_exchange_weak(&q->used, &used, used + 1));
    atomic_fetch_add(&quota_share(shm, node, ordinal)->held, 1);
    return true;
}

void quota_give(struct shm *shm, int node, int ordinal)
{
    atomic_fetch_sub(&quota_share(shm, node, ordinal)->held, 1);
    atomic_fetch_sub(&quota_node(shm, node)->used, 1);
}

int quota_used(const struct shm *shm, int node)
{
    return atomic_load(&quota_node(shm, node)->used);
}

void quota_add_waiting(struct shm *shm, int node, int ordinal, int delta)
{
    atomic_fetch_add(&quota_share(shm, node, ordinal)->waiting, delta);
    atomic_fetch_add(&quota_node(shm, node)->waiting, delta);
}

int quota_waiting(const struct shm *shm, int node)
{
    return atomic_load(&quota_node(shm, node)->waiting);
}

int quota_waiting_of(const struct shm *shm, int node, int ordinal)
{
    return atomic_load(&quota_share(shm, node, ordinal)->waiting);
}

void quota_set_oldest(struct shm *shm, int node, int ordinal, int64_t since_us)
{
    atomic_store(&quota_share(shm, node, ordinal)->oldest_us, since_us);
}

int quota_find_oldest(const struct shm *shm, int node, int but_not_ordinal, int64_t *since_us)
{
    struct quota_region *q = shm_get(shm, SHM_QUOTAS);
    int64_t t;
    int best = -1;
    int i;

    for (i = 0; i < q->nworkers; i++) {
        if (i == but_not_ordinal)
            continue;
        t = atomic_load(&quota_share(shm, node, i)->oldest_us);
        if (t != 0 && (best == -1 || t < *since_us)) {
            best = i;
            *since_us = t;
        }
    }
    return best;
}

void quota_move(struct shm *shm, int node, int from_ordinal, int to_ordinal)
{
    atomic_fetch_add(&quota_share(shm, node, to_ordinal)->held, 1);
    atomic_fetch_sub(&quota_share(shm, node, from_ordinal)->held, 1);
}

void quota_reclaim(struct shm *shm, int ordinal)
{
    struct quota_share *s;
    int node;

    for (node = 0; node < QUOTA_MAX_NODES; node++) {
        s = quota_share(shm, node, ordinal);
        atomic_fetch_sub(&quota_node(shm, node)->used, atomic_exchange(&s->held, 0));
        atomic_fetch_sub(&quota_node(shm, node)->waiting, atomic_exchange(&s->waiting, 0));
        atomic_store(&s->oldest_us, 0);
    }
}
