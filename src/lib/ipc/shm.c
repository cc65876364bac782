/* SPDX-License-Identifier: PostgreSQL
 * shm.c: the one shared memory area.
 * Runs in: every process; made by the supervisor. The table of regions stands at the start of the
 * area itself. */
#include "config.h"

#include "base/hot.h"
#include "ipc/shm.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/assert.h"

#define CACHE_LINE_BYTES 64
/* A row is copied in well under a microsecond. A writer that is off the processor makes a reader
 * spin this often, yielding nothing to it: then it is taken for dead. */
#define SEQ_MAX_SPINS   100000
#define SEQ_YIELD_SPINS 5000

struct shm {
    size_t total_bytes;
    size_t offset[SHM_REGION_COUNT];
    size_t bytes[SHM_REGION_COUNT];
};

static size_t round_up(size_t n)
{
    return (n + CACHE_LINE_BYTES - 1) & ~(size_t)(CACHE_LINE_BYTES - 1);
}

struct shm *shm_new(const struct shm_plan *plan, struct err *err)
{
    size_t total = round_up(sizeof(struct shm));
    struct shm *shm;
    int i;

    for (i = 0; i < SHM_REGION_COUNT; i++) {
        if (plan->bytes[i] > SIZE_MAX / 2 - total) {
            err_set(err, "53200", "shared memory would be larger than the address space");
            return NULL;
        }
        total += round_up(plan->bytes[i]);
    }
    shm = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shm == MAP_FAILED) {
        err_set_errno(err, errno, "could not make %zu bytes of shared memory", total);
        err_hint(err,
            "Lower max_clients or the size of the query cache, or give the machine more memory.");
        return NULL;
    }
    shm->total_bytes = total;
    total = round_up(sizeof(struct shm));
    for (i = 0; i < SHM_REGION_COUNT; i++) {
        shm->offset[i] = total;
        shm->bytes[i] = plan->bytes[i];
        total += round_up(plan->bytes[i]);
    }
    return shm;
}

void shm_free(struct shm **shmp)
{
    if (*shmp != NULL)
        munmap(*shmp, (*shmp)->total_bytes);
    *shmp = NULL;
}

HOT void *shm_get(const struct shm *shm, enum shm_region region)
{
    ASSERT((unsigned)region < SHM_REGION_COUNT);
    if (shm->bytes[region] == 0)
        return NULL;
    /* Through an integer: the handle is const, what it leads to is not. */
    return (char *)(uintptr_t)shm + shm->offset[region];
}

size_t shm_bytes(const struct shm *shm, enum shm_region region)
{
    ASSERT((unsigned)region < SHM_REGION_COUNT);
    return shm->bytes[region];
}

HOT uint32_t shm_read_begin(const struct shm_seq *s)
{
    uint32_t n = atomic_load_explicit(&s->n, memory_order_acquire);
    unsigned spins;

    for (spins = 0; (n & 1) != 0 && spins < SEQ_MAX_SPINS; spins++) {
        if (spins % SEQ_YIELD_SPINS == SEQ_YIELD_SPINS - 1)
            (void)sched_yield(); /* the writer may wait for this processor */
        n = atomic_load_explicit(&s->n, memory_order_acquire);
    }
    return n;
}

bool shm_read_retry(const struct shm_seq *s, uint32_t n)
{
    atomic_thread_fence(memory_order_acquire);
    if ((n & 1) != 0)
        return false; /* its writer is gone: a torn row is all there is */
    return atomic_load_explicit(&s->n, memory_order_relaxed) != n;
}
