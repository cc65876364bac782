/* SPDX-License-Identifier: PostgreSQL
 * quota.h: how many links each node has, over all workers.
 * Runs in: workers take and give, atomically; the supervisor gives back a dead worker's share.
 * There is no check-then-use: taking is the check. */
#ifndef PGP_BACKEND_QUOTA_H
#define PGP_BACKEND_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/shm.h"

#define QUOTA_MAX_NODES 128

/* Size of the region, and its first content. Supervisor. */
size_t quota_region_bytes(int nworkers);
void quota_region_init(struct shm *shm, int nworkers);
/* Links a node may have; 0: no limit of ours. */
void quota_set_limit(struct shm *shm, int node, int limit);
int quota_limit(const struct shm *shm, int node);
/* Takes one link of `node` for the worker of `ordinal`; false when the limit is reached. */
bool quota_take(struct shm *shm, int node, int ordinal);
void quota_give(struct shm *shm, int node, int ordinal);
int quota_used(const struct shm *shm, int node);
/* Clients of all workers that wait for a link of `node`; delta is +1 or -1. */
void quota_add_waiting(struct shm *shm, int node, int ordinal, int delta);
int quota_waiting(const struct shm *shm, int node);
/* Clients of one worker that wait. */
int quota_waiting_of(const struct shm *shm, int node, int ordinal);
/* Since when (monotonic clock, microseconds) the oldest waiting client of this worker waits for
 * `node`; 0: none waits. */
void quota_set_oldest(struct shm *shm, int node, int ordinal, int64_t since_us);
/* The other worker whose client waits longest for `node`, and since when; -1 when there is none. */
int quota_find_oldest(const struct shm *shm, int node, int but_not_ordinal, int64_t *since_us);
/* A link of `node` goes from one worker to another. */
void quota_move(struct shm *shm, int node, int from_ordinal, int to_ordinal);
/* Gives back everything the worker of `ordinal` held. Supervisor. */
void quota_reclaim(struct shm *shm, int ordinal);

#endif
