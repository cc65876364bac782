/* SPDX-License-Identifier: PostgreSQL
 * quota.c: link counts in shared memory: a total per node, and each worker's share so that a crash
 * can give it back. */
#include "config.h"

#include "backend/quota.h"

#include <stdatomic.h>

#include "base/assert.h"

struct quota_share {
    _Atomic int32_t held;
    _Atomic int32_t opening;
    _Atomic int64_t oldest_us;
};

struct quota_node {
    _Atomic int32_t used;
    _Atomic int32_t limit;
    _Atomic int32_t nwaiting; /* workers whose oldest_us is not 0; never too small */
    _Atomic int32_t opening;
    _Atomic int32_t refusals;
    _Atomic int64_t refused_until_us;
    _Atomic int64_t swapped_us;
} __attribute__((aligned(64)));

struct quota_worker {
    _Atomic int32_t is_told;
    struct quota_share share[QUOTA_MAX_NODES];
} __attribute__((aligned(64)));

struct quota_region {
    int32_t nworkers;
    struct quota_node node[QUOTA_MAX_NODES];
    struct quota_worker worker[];
};

size_t quota_region_bytes(int nworkers)
{
    return sizeof(struct quota_region) + (size_t)nworkers * sizeof(struct quota_worker);
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

static struct quota_worker *quota_worker(const struct shm *shm, int ordinal)
{
    struct quota_region *q = shm_get(shm, SHM_QUOTAS);

    ASSERT(ordinal >= 0 && ordinal < q->nworkers);
    return &q->worker[ordinal];
}

static struct quota_share *quota_share(const struct shm *shm, int node, int ordinal)
{
    return &quota_worker(shm, ordinal)->share[node];
}

void quota_set_limit(struct shm *shm, int node, int limit)
{
    atomic_store(&quota_node(shm, node)->limit, limit);
}

int quota_limit(const struct shm *shm, int node)
{
    return atomic_load(&quota_node(shm, node)->limit);
}

bool quota_take(struct shm *shm, int node, int ordinal, int keep)
{
    struct quota_node *q = quota_node(shm, node);
    int32_t used = atomic_load(&q->used);
    int32_t limit = atomic_load(&q->limit);

    do {
        if (limit > 0 && used + keep >= limit)
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

void quota_move(struct shm *shm, int node, int from_ordinal, int to_ordinal)
{
    atomic_fetch_add(&quota_share(shm, node, to_ordinal)->held, 1);
    atomic_fetch_sub(&quota_share(shm, node, from_ordinal)->held, 1);
}

/* ---- opening ---- */

bool quota_may_open(const struct shm *shm, int node, int limit, int64_t now_us)
{
    struct quota_node *q = quota_node(shm, node);
    int32_t opening = atomic_load(&q->opening);

    if (atomic_load(&q->refusals) > 0)
        return opening == 0 && now_us >= atomic_load(&q->refused_until_us);
    return limit <= 0 || opening < limit;
}

void quota_open_begin(struct shm *shm, int node, int ordinal)
{
    atomic_fetch_add(&quota_share(shm, node, ordinal)->opening, 1);
    atomic_fetch_add(&quota_node(shm, node)->opening, 1);
}

void quota_open_end(struct shm *shm, int node, int ordinal)
{
    atomic_fetch_sub(&quota_share(shm, node, ordinal)->opening, 1);
    atomic_fetch_sub(&quota_node(shm, node)->opening, 1);
}

int quota_opening(const struct shm *shm, int node)
{
    return atomic_load(&quota_node(shm, node)->opening);
}

bool quota_refused(struct shm *shm, int node, int64_t now_us)
{
    struct quota_node *q = quota_node(shm, node);
    int32_t before = atomic_fetch_add(&q->refusals, 1);
    int64_t wait_us = QUOTA_BACK_OFF_MIN_US;
    int i;

    for (i = 0; i < before && wait_us < QUOTA_BACK_OFF_MAX_US; i++)
        wait_us *= 2;
    if (wait_us > QUOTA_BACK_OFF_MAX_US)
        wait_us = QUOTA_BACK_OFF_MAX_US;
    atomic_store(&q->refused_until_us, now_us + wait_us);
    return before == 0;
}

void quota_accepted(struct shm *shm, int node)
{
    struct quota_node *q = quota_node(shm, node);

    if (atomic_load(&q->refusals) == 0)
        return;
    atomic_store(&q->refusals, 0);
    atomic_store(&q->refused_until_us, 0);
}

int64_t quota_refused_until(const struct shm *shm, int node)
{
    return atomic_load(&quota_node(shm, node)->refused_until_us);
}

/* ---- waiting ---- */

/* The count goes up before and down after: should the worker die in between, it is too large, which
 * costs a look, and never too small, which would lose a wake-up. */
void quota_set_oldest(struct shm *shm, int node, int ordinal, int64_t since_us)
{
    struct quota_share *s = quota_share(shm, node, ordinal);
    bool was = atomic_load(&s->oldest_us) != 0;

    if (!was && since_us != 0)
        atomic_fetch_add(&quota_node(shm, node)->nwaiting, 1);
    (void)atomic_exchange(&s->oldest_us, since_us);
    if (was && since_us == 0)
        atomic_fetch_sub(&quota_node(shm, node)->nwaiting, 1);
}

const _Atomic int32_t *quota_waiting_cell(const struct shm *shm, int node)
{
    return &quota_node(shm, node)->nwaiting;
}

int quota_waiting_workers(const struct shm *shm, int node)
{
    return atomic_load(&quota_node(shm, node)->nwaiting);
}

bool quota_waits(const struct shm *shm, int node, int ordinal)
{
    return atomic_load(&quota_share(shm, node, ordinal)->oldest_us) != 0;
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

bool quota_may_swap(struct shm *shm, int node, int64_t now_us, int64_t least_us)
{
    struct quota_node *q = quota_node(shm, node);
    int64_t last_us = atomic_load(&q->swapped_us);

    return now_us - last_us >= least_us &&
           atomic_compare_exchange_strong(&q->swapped_us, &last_us, now_us);
}

bool quota_tell(struct shm *shm, int ordinal)
{
    return atomic_exchange(&quota_worker(shm, ordinal)->is_told, 1) == 0;
}

void quota_told_clear(struct shm *shm, int ordinal)
{
    (void)atomic_exchange(&quota_worker(shm, ordinal)->is_told, 0);
}

/* ---- a dead worker ---- */

/* The sums are made anew: it may have died between two of its counters. */
static void reclaim_node(struct shm *shm, int node, int ordinal)
{
    const struct quota_region *r = shm_get(shm, SHM_QUOTAS);
    struct quota_share *s = quota_share(shm, node, ordinal);
    struct quota_node *q = quota_node(shm, node);
    int32_t used = 0;
    int32_t opening = 0;
    int w;

    atomic_store(&s->held, 0);
    atomic_store(&s->opening, 0);
    for (w = 0; w < r->nworkers; w++) {
        used += atomic_load(&quota_share(shm, node, w)->held);
        opening += atomic_load(&quota_share(shm, node, w)->opening);
    }
    atomic_store(&q->used, used);
    atomic_store(&q->opening, opening);
    if (atomic_exchange(&s->oldest_us, 0) != 0)
        atomic_fetch_sub(&q->nwaiting, 1);
}

void quota_reclaim(struct shm *shm, int ordinal)
{
    int node;

    for (node = 0; node < QUOTA_MAX_NODES; node++)
        reclaim_node(shm, node, ordinal);
    quota_told_clear(shm, ordinal);
}
