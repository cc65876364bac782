/* SPDX-License-Identifier: PostgreSQL
 * gate.h: snapshots and commits over several servers exclude each other, over all workers: who
 * takes a snapshot is let in with others who do while nobody commits, and the other way round;
 * region GATE of shared memory. Written by: workers, under a lock that outlives its holder; the
 * supervisor, when one of them dies.
 *
 * One side is inside at a time. Who comes while the other side waits, waits too; when the last one
 * has left, all who wait on the other side are let in at once. So nobody waits for more than one
 * phase of each side, and neither side starves. Who was let in is told by `wake`; nobody has to
 * look. A worker's waiters of one side are let in first come, first served. */
#ifndef PGP_IPC_GATE_H
#define PGP_IPC_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/shm.h"

enum gate_side { GATE_SNAPSHOT, GATE_COMMIT, GATE_SIDES, GATE_NONE = GATE_SIDES };

/* What came of it since the start, per side. */
struct gate_figures {
    uint64_t nwaits;
    uint64_t wait_us;
    uint64_t ntimeouts;
};

/* Waiters of worker `ordinal` are inside now. Called without the lock. */
typedef void gate_wake(void *ctx, int ordinal);

/* Size of the region. */
size_t gate_region_bytes(int nworkers);
void gate_region_init(struct shm *shm, int nworkers);

/* --- workers; `ordinal` is the caller's --- */
/* True: is inside, until gate_leave. False: is counted as one who waits. */
bool gate_enter(struct shm *shm, int ordinal, enum gate_side side);
/* One more, beside one of the caller's who is inside. */
void gate_join(struct shm *shm, int ordinal, enum gate_side side);
void gate_leave(struct shm *shm, int ordinal, enum gate_side side, gate_wake *wake, void *ctx);
/* How many of the worker's own wait on that side: whoever it knows beyond that is inside. */
uint32_t gate_waiting(const struct shm *shm, int ordinal, enum gate_side side);
/* One waits no longer. False: nobody waits any more, all are inside. */
bool gate_give_up(struct shm *shm, int ordinal, enum gate_side side, gate_wake *wake, void *ctx);
/* One has waited that long, and was let in or gave up. */
void gate_count_wait(struct shm *shm, enum gate_side side, int64_t wait_us, bool gave_up);

/* A commit of the caller's that others would end if it died: until gate_end_kept, or until it is
 * left to them. */
void gate_begin_kept(struct shm *shm, int ordinal);
void gate_end_kept(struct shm *shm, int ordinal);
/* The control process ends it, and keeps snapshots waiting until it has. */
void gate_leave_to_control(struct shm *shm, int ordinal);

/* --- commits on their way, for who only has to wait until those of before are over --- */
/* Another commit, later than all before; the caller says so by gate_flights_set before it begins.
 */
uint64_t gate_flight_number(struct shm *shm);
/* The oldest of the caller's; 0: it has none. */
void gate_flights_set(struct shm *shm, int ordinal, uint64_t oldest);
/* What the next one is going to have; nobody has an older one than `before`. */
uint64_t gate_flight_next(const struct shm *shm);
bool gate_flights_are_over(const struct shm *shm, uint64_t before);
/* One more of the caller's waits for that, or one less; others are told when some may go on. */
void gate_flights_wait(struct shm *shm, int ordinal, int more);
void gate_flights_tell(struct shm *shm, int ordinal, gate_wake *wake, void *ctx);

/* --- control --- */
/* How many commits were left to it, by the dead and by the living. */
uint32_t gate_left(const struct shm *shm);
/* `n` of those that were left are ended. */
void gate_end_left(struct shm *shm, uint32_t n, gate_wake *wake, void *ctx);

/* --- all --- */
struct gate_figures gate_figures_of(const struct shm *shm, enum gate_side side);
/* How many are inside, in all workers. */
uint32_t gate_inside(struct shm *shm, enum gate_side side);

/* --- supervisor --- */
/* What worker `ordinal` had is gone with it, or left to the control process. */
void gate_reclaim_worker(struct shm *shm, int ordinal, gate_wake *wake, void *ctx);

#endif
