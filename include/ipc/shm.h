/* SPDX-License-Identifier: PostgreSQL
 * shm.h: the one shared memory area: named regions in one anonymous mapping made before forking.
 * Runs in: every process. Nothing is left behind after kill -9. The area cannot grow: sizes come
 * from startup parameters. Rows of a region have one writing process; readers use the row's
 * sequence counter (shm_read_begin / shm_read_retry). */
#ifndef PGP_IPC_SHM_H
#define PGP_IPC_SHM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum shm_region {
#define SHM_REGION(sym, name, writer, text) SHM_##sym,
#include "ipc/regions.def"
#undef SHM_REGION
    SHM_REGION_COUNT
};

struct shm;

/* Sizes asked for before the area is made. */
struct shm_plan {
    size_t bytes[SHM_REGION_COUNT];
};

/* Makes the area, zeroed, every region aligned to a cache line. Called once, by the supervisor.
 * NULL with *err when there is not enough memory. */
struct shm *shm_new(const struct shm_plan *plan, struct err *err);
/* Unmaps the area and clears *shmp; tests and the very end of the supervisor. */
void shm_free(struct shm **shmp);
/* The start of a region; NULL when its planned size was 0. */
void *shm_get(const struct shm *shm, enum shm_region region);
size_t shm_bytes(const struct shm *shm, enum shm_region region);

/* Sequence counter in front of a row: odd while its one writer changes it. */
struct shm_seq {
    _Atomic uint32_t n;
};

/* The row's one writer brackets its changes with these. */
static inline void shm_write_begin(struct shm_seq *s)
{
    uint32_t n = atomic_load_explicit(&s->n, memory_order_relaxed);

    /* The row of a writer that died half-way is odd already; its successor goes on from there. */
    atomic_store_explicit(&s->n, n | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}
static inline void shm_write_end(struct shm_seq *s)
{
    uint32_t n = atomic_load_explicit(&s->n, memory_order_relaxed);

    atomic_store_explicit(&s->n, (n | 1) + 1, memory_order_release);
}
/* Usage: do { n = shm_read_begin(s); copy the row; } while (shm_read_retry(s, n)); both give up
 * waiting for a writer that died in the middle (bounded spin, then the torn row is returned). */
uint32_t shm_read_begin(const struct shm_seq *s);
bool shm_read_retry(const struct shm_seq *s, uint32_t n);

#endif
