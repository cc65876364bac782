/* SPDX-License-Identifier: PostgreSQL
 * hold.c: who holds all sessions of native replication, how many of them are at work, and for whom
 * a server is ahead of the others. Runs in: workers, control, supervisor, monitor. */
#include "config.h"

#include "ipc/hold.h"

#include <stdatomic.h>
#include <stdint.h>

#include "base/assert.h"

struct hold_region {
    _Atomic int32_t holder;     /* process slot + 1; 0: nobody holds */
    _Atomic int32_t left_ahead; /* node + 1, of a worker that died; 0: none */
    int32_t nworkers;
    struct {
        _Atomic int32_t count;
        _Atomic int32_t nahead; /* for so many of its sessions a node is ahead */
        _Atomic int32_t ahead;  /* that node */
    } __attribute__((aligned(64))) worker[];
};

static struct hold_region *hold_region(const struct shm *shm)
{
    return shm_get(shm, SHM_HOLD);
}

size_t hold_region_bytes(int nworkers)
{
    return sizeof(struct hold_region) +
           (size_t)nworkers * sizeof(((struct hold_region *)0)->worker[0]);
}

void hold_region_init(struct shm *shm, int nworkers)
{
    hold_region(shm)->nworkers = nworkers;
}

void hold_join(struct shm *shm, int ordinal)
{
    atomic_fetch_add(&hold_region(shm)->worker[ordinal].count, 1);
}

bool hold_enter(struct shm *shm, int ordinal)
{
    if (hold_is_on(shm))
        return false; /* who asks again and again is not to be seen at work */
    hold_join(shm, ordinal);
    if (!hold_is_on(shm))
        return true;
    hold_leave(shm, ordinal);
    return false;
}

void hold_leave(struct shm *shm, int ordinal)
{
    int32_t before = atomic_fetch_sub(&hold_region(shm)->worker[ordinal].count, 1);

    ASSERT(before > 0);
}

bool hold_is_inside(const struct shm *shm, int ordinal)
{
    const struct hold_region *r = hold_region(shm);

    return r != NULL && atomic_load(&r->worker[ordinal].count) > 0;
}

void hold_ahead(struct shm *shm, int ordinal, int node)
{
    atomic_store(&hold_region(shm)->worker[ordinal].ahead, node);
    atomic_fetch_add(&hold_region(shm)->worker[ordinal].nahead, 1);
}

void hold_ahead_over(struct shm *shm, int ordinal)
{
    int32_t before = atomic_fetch_sub(&hold_region(shm)->worker[ordinal].nahead, 1);

    ASSERT(before > 0);
}

bool hold_is_on(const struct shm *shm)
{
    const struct hold_region *r = hold_region(shm);

    return r != NULL && atomic_load(&r->holder) != 0;
}

int hold_count(const struct shm *shm)
{
    const struct hold_region *r = hold_region(shm);
    int sum = 0;
    int i;

    for (i = 0; i < r->nworkers; i++)
        sum += atomic_load(&r->worker[i].count);
    return sum;
}

void hold_begin(struct shm *shm, int slot)
{
    atomic_store(&hold_region(shm)->holder, slot + 1);
}

void hold_end(struct shm *shm, int slot)
{
    (void)hold_reclaim(shm, slot);
}

void hold_reclaim_worker(struct shm *shm, int ordinal)
{
    struct hold_region *r = hold_region(shm);

    if (r == NULL)
        return;
    atomic_store(&r->worker[ordinal].count, 0);
    if (atomic_exchange(&r->worker[ordinal].nahead, 0) > 0)
        atomic_store(&r->left_ahead, atomic_load(&r->worker[ordinal].ahead) + 1);
}

int hold_left_ahead(const struct shm *shm)
{
    const struct hold_region *r = hold_region(shm);

    return r == NULL ? -1 : atomic_load(&r->left_ahead) - 1;
}

int hold_take_ahead(struct shm *shm)
{
    struct hold_region *r = hold_region(shm);

    return r == NULL ? -1 : atomic_exchange(&r->left_ahead, 0) - 1;
}

bool hold_reclaim(struct shm *shm, int slot)
{
    struct hold_region *r = hold_region(shm);
    int32_t holder = slot + 1;

    return r != NULL && atomic_compare_exchange_strong(&r->holder, &holder, 0);
}
