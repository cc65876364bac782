/* SPDX-License-Identifier: PostgreSQL
 * gate.c: who is inside and who waits, of those who take snapshots and those who commit.
 * Runs in: workers, supervisor.
 *
 * What each worker has on a side is one word, so that whoever dies in the midst leaves it as it was
 * or as it was to be; the sums are made anew from these when that happens. */
#include "config.h"

#include "ipc/gate.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/assert.h"

/* Two numbers in a word that is stored at once. */
struct gate_count {
    uint32_t inside;
    uint32_t waiting;
};

struct gate_row {
    _Atomic uint64_t side[GATE_SIDES];
    _Atomic int is_let_in;   /* and has not been told */
    _Atomic uint32_t nkept;  /* of those inside that commit */
    _Atomic int32_t nbehind; /* wait until commits of before are over */
    _Atomic uint64_t oldest; /* commit on its way; 0: none */
} __attribute__((aligned(64)));

struct gate_region {
    pthread_mutex_t lock; /* robust */
    int32_t nworkers;
    struct gate_count sum[GATE_SIDES];
    _Atomic uint64_t nflights; /* so many commits have begun */
    _Atomic uint64_t nwaits[GATE_SIDES];
    _Atomic uint64_t wait_us[GATE_SIDES];
    _Atomic uint64_t ntimeouts[GATE_SIDES];
    struct gate_row worker[]; /* and one more, of what is left to the control process */
};

static struct gate_region *gate_region(const struct shm *shm)
{
    return shm_get(shm, SHM_GATE);
}

static enum gate_side other_side(enum gate_side side)
{
    return side == GATE_SNAPSHOT ? GATE_COMMIT : GATE_SNAPSHOT;
}

static struct gate_count row_get(const struct gate_row *row, enum gate_side side)
{
    uint64_t word = atomic_load(&row->side[side]);

    return (struct gate_count){(uint32_t)(word >> 32), (uint32_t)word};
}

static void row_set(struct gate_row *row, enum gate_side side, struct gate_count count)
{
    atomic_store(&row->side[side], (uint64_t)count.inside << 32 | count.waiting);
}

size_t gate_region_bytes(int nworkers)
{
    return sizeof(struct gate_region) + ((size_t)nworkers + 1) * sizeof(struct gate_row);
}

void gate_region_init(struct shm *shm, int nworkers)
{
    struct gate_region *r = gate_region(shm);
    pthread_mutexattr_t attr;
    int rc;

    rc = pthread_mutexattr_init(&attr);
    rc |= pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    rc |= pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    rc |= pthread_mutex_init(&r->lock, &attr);
    rc |= pthread_mutexattr_destroy(&attr);
    ASSERT(rc == 0);
    r->nworkers = nworkers;
}

/* ---- under the lock ---- */

static void sum_up(struct gate_region *r)
{
    for (int side = 0; side < GATE_SIDES; side++) {
        r->sum[side] = (struct gate_count){0, 0};
        for (int i = 0; i <= r->nworkers; i++) {
            struct gate_count count = row_get(&r->worker[i], (enum gate_side)side);

            r->sum[side].inside += count.inside;
            r->sum[side].waiting += count.waiting;
        }
    }
}

static void gate_lock(struct gate_region *r)
{
    int rc = pthread_mutex_lock(&r->lock);

    if (rc == EOWNERDEAD) {
        sum_up(r);
        rc = pthread_mutex_consistent(&r->lock);
    }
    ASSERT(rc == 0);
}

static void change(
    struct gate_region *r, int ordinal, enum gate_side side, int32_t inside, int32_t waiting)
{
    struct gate_row *row = &r->worker[ordinal];
    struct gate_count count = row_get(row, side);

    count.inside += (uint32_t)inside;
    count.waiting += (uint32_t)waiting;
    row_set(row, side, count);
    r->sum[side].inside += (uint32_t)inside;
    r->sum[side].waiting += (uint32_t)waiting;
}

static void let_in(struct gate_region *r, enum gate_side side)
{
    for (int i = 0; i < r->nworkers; i++) {
        struct gate_count count = row_get(&r->worker[i], side);

        if (count.waiting == 0)
            continue;
        atomic_store(&r->worker[i].is_let_in, 1);
        change(r, i, side, (int32_t)count.waiting, -(int32_t)count.waiting);
    }
}

/* Whose turn it is, now that somebody has left or waits no longer. */
static void settle(struct gate_region *r)
{
    enum gate_side side = r->sum[GATE_COMMIT].inside > 0 ? GATE_COMMIT : GATE_SNAPSHOT;

    if (r->sum[side].inside > 0) {
        if (r->sum[other_side(side)].waiting == 0)
            let_in(r, side);
        return;
    }
    /* Who is inside has just left: it was the other side's turn if anybody of it waits. */
    let_in(r, r->sum[GATE_SNAPSHOT].waiting > 0 ? GATE_SNAPSHOT : GATE_COMMIT);
}

/* Unlocks, and tells those who were let in. */
static void gate_unlock(struct gate_region *r, gate_wake *wake, void *ctx)
{
    (void)pthread_mutex_unlock(&r->lock);
    for (int i = 0; wake != NULL && i < r->nworkers; i++) {
        if (atomic_load_explicit(&r->worker[i].is_let_in, memory_order_relaxed) != 0 &&
            atomic_exchange(&r->worker[i].is_let_in, 0) != 0)
            wake(ctx, i);
    }
}

/* ---- workers ---- */

bool gate_enter(struct shm *shm, int ordinal, enum gate_side side)
{
    struct gate_region *r = gate_region(shm);
    bool may;

    gate_lock(r);
    may = r->sum[other_side(side)].inside == 0 && r->sum[other_side(side)].waiting == 0;
    change(r, ordinal, side, may ? 1 : 0, may ? 0 : 1);
    gate_unlock(r, NULL, NULL);
    return may;
}

void gate_join(struct shm *shm, int ordinal, enum gate_side side)
{
    struct gate_region *r = gate_region(shm);

    gate_lock(r);
    ASSERT(row_get(&r->worker[ordinal], side).inside > 0);
    change(r, ordinal, side, 1, 0);
    gate_unlock(r, NULL, NULL);
}

/* Somebody of that side has left: when it was the last one, it is the other's turn. */
static void pass_on(struct gate_region *r, enum gate_side side)
{
    enum gate_side next = other_side(side);

    if (r->sum[side].inside == 0)
        let_in(r, r->sum[next].waiting > 0 ? next : side);
}

void gate_leave(struct shm *shm, int ordinal, enum gate_side side, gate_wake *wake, void *ctx)
{
    struct gate_region *r = gate_region(shm);

    gate_lock(r);
    ASSERT(row_get(&r->worker[ordinal], side).inside > 0);
    change(r, ordinal, side, -1, 0);
    pass_on(r, side);
    gate_unlock(r, wake, ctx);
}

uint32_t gate_waiting(const struct shm *shm, int ordinal, enum gate_side side)
{
    return row_get(&gate_region(shm)->worker[ordinal], side).waiting;
}

bool gate_give_up(struct shm *shm, int ordinal, enum gate_side side, gate_wake *wake, void *ctx)
{
    struct gate_region *r = gate_region(shm);
    bool waits;

    gate_lock(r);
    waits = row_get(&r->worker[ordinal], side).waiting > 0;
    if (waits) {
        change(r, ordinal, side, 0, -1);
        settle(r);
    }
    gate_unlock(r, wake, ctx);
    return waits;
}

void gate_count_wait(struct shm *shm, enum gate_side side, int64_t wait_us, bool gave_up)
{
    struct gate_region *r = gate_region(shm);

    atomic_fetch_add(&r->nwaits[side], 1);
    atomic_fetch_add(&r->wait_us[side], (uint64_t)wait_us);
    if (gave_up)
        atomic_fetch_add(&r->ntimeouts[side], 1);
}

/* ---- commits that others end ---- */

void gate_begin_kept(struct shm *shm, int ordinal)
{
    atomic_fetch_add(&gate_region(shm)->worker[ordinal].nkept, 1);
}

void gate_end_kept(struct shm *shm, int ordinal)
{
    uint32_t before = atomic_fetch_sub(&gate_region(shm)->worker[ordinal].nkept, 1);

    ASSERT(before > 0);
}

void gate_leave_to_control(struct shm *shm, int ordinal)
{
    struct gate_region *r = gate_region(shm);

    gate_lock(r);
    change(r, r->nworkers, GATE_COMMIT, 1, 0);
    change(r, ordinal, GATE_COMMIT, -1, 0);
    gate_end_kept(shm, ordinal);
    gate_unlock(r, NULL, NULL);
}

uint32_t gate_left(const struct shm *shm)
{
    const struct gate_region *r = gate_region(shm);

    return row_get(&r->worker[r->nworkers], GATE_COMMIT).inside;
}

void gate_end_left(struct shm *shm, uint32_t n, gate_wake *wake, void *ctx)
{
    struct gate_region *r = gate_region(shm);

    if (n == 0)
        return;
    gate_lock(r);
    change(r, r->nworkers, GATE_COMMIT, -(int32_t)n, 0);
    pass_on(r, GATE_COMMIT);
    gate_unlock(r, wake, ctx);
}

/* ---- commits on their way ----
 *
 * Nobody is locked out: who has to wait looks at what each worker says of its own, and says before
 * that it is there. */

uint64_t gate_flight_number(struct shm *shm)
{
    return atomic_fetch_add(&gate_region(shm)->nflights, 1) + 1;
}

void gate_flights_set(struct shm *shm, int ordinal, uint64_t oldest)
{
    atomic_store(&gate_region(shm)->worker[ordinal].oldest, oldest);
}

uint64_t gate_flight_next(const struct shm *shm)
{
    return atomic_load(&gate_region(shm)->nflights) + 1;
}

bool gate_flights_are_over(const struct shm *shm, uint64_t before)
{
    struct gate_region *r = gate_region(shm);

    for (int i = 0; i < r->nworkers; i++) {
        uint64_t oldest = atomic_load(&r->worker[i].oldest);

        if (oldest != 0 && oldest < before)
            return false;
    }
    return true;
}

void gate_flights_wait(struct shm *shm, int ordinal, int more)
{
    atomic_fetch_add(&gate_region(shm)->worker[ordinal].nbehind, more);
}

void gate_flights_tell(struct shm *shm, int ordinal, gate_wake *wake, void *ctx)
{
    struct gate_region *r = gate_region(shm);

    for (int i = 0; i < r->nworkers; i++) {
        if (wake != NULL && i != ordinal && atomic_load(&r->worker[i].nbehind) > 0)
            wake(ctx, i);
    }
}

/* ---- all ---- */

struct gate_figures gate_figures_of(const struct shm *shm, enum gate_side side)
{
    struct gate_region *r = gate_region(shm);

    return (struct gate_figures){.nwaits = atomic_load(&r->nwaits[side]),
        .wait_us = atomic_load(&r->wait_us[side]),
        .ntimeouts = atomic_load(&r->ntimeouts[side])};
}

uint32_t gate_inside(struct shm *shm, enum gate_side side)
{
    struct gate_region *r = gate_region(shm);
    uint32_t n;

    gate_lock(r);
    n = r->sum[side].inside;
    gate_unlock(r, NULL, NULL);
    return n;
}

/* ---- supervisor ---- */

void gate_reclaim_worker(struct shm *shm, int ordinal, gate_wake *wake, void *ctx)
{
    struct gate_region *r = gate_region(shm);
    struct gate_count left;
    uint32_t inside;
    uint32_t nkept;

    if (r == NULL)
        return;
    gate_lock(r);
    inside = row_get(&r->worker[ordinal], GATE_COMMIT).inside;
    nkept = atomic_exchange(&r->worker[ordinal].nkept, 0);
    left = row_get(&r->worker[r->nworkers], GATE_COMMIT);
    left.inside += nkept < inside ? nkept : inside;
    row_set(&r->worker[r->nworkers], GATE_COMMIT, left);
    for (int side = 0; side < GATE_SIDES; side++)
        row_set(&r->worker[ordinal], (enum gate_side)side, (struct gate_count){0, 0});
    atomic_store(&r->worker[ordinal].is_let_in, 0);
    atomic_store(&r->worker[ordinal].nbehind, 0);
    gate_flights_set(shm, ordinal, 0);
    sum_up(r);
    settle(r);
    gate_unlock(r, wake, ctx);
    gate_flights_tell(shm, ordinal, wake, ctx);
}
