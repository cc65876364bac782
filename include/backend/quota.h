/* SPDX-License-Identifier: PostgreSQL
 * quota.h: how many links each node has, over all workers, how many of them are opening, and
 * whether the node refused one lately.
 * Runs in: workers take and give, atomically; the supervisor gives back a dead worker's share.
 * There is no check-then-use: taking is the check. Links are taken by way of limits.h, which tests
 * all other limits in the same step. */
#ifndef PGP_BACKEND_QUOTA_H
#define PGP_BACKEND_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/shm.h"

/* Nodes of pgpool.conf and of pools.conf. */
#define QUOTA_MAX_NODES 192

/* How long a node that refused a link is left alone: at first, and at most. */
#define QUOTA_BACK_OFF_MIN_US 100000
#define QUOTA_BACK_OFF_MAX_US 5000000

/* Size of the region, and its first content. Supervisor. */
size_t quota_region_bytes(int nworkers);
void quota_region_init(struct shm *shm, int nworkers);
/* Links a node may have; 0: no limit of ours. */
void quota_set_limit(struct shm *shm, int node, int limit);
int quota_limit(const struct shm *shm, int node);
/* Takes one link of `node` for the worker of `ordinal`; false when the limit is reached, or would
 * be within `keep` of it. */
bool quota_take(struct shm *shm, int node, int ordinal, int keep);
void quota_give(struct shm *shm, int node, int ordinal);
int quota_used(const struct shm *shm, int node);
/* A link of `node` goes from one worker to another. */
void quota_move(struct shm *shm, int node, int from_ordinal, int to_ordinal);

/* True when one more link may start opening: fewer than `limit` (0: any) are, and the node is not
 * left alone. After a refusal one at a time tries. */
bool quota_may_open(const struct shm *shm, int node, int limit, int64_t now_us);
void quota_open_begin(struct shm *shm, int node, int ordinal);
void quota_open_end(struct shm *shm, int node, int ordinal);
int quota_opening(const struct shm *shm, int node);
/* The node refused a link because it has too many, or because it is starting up or shutting down:
 * nobody tries again before a while that grows with each refusal. True when it is the first. */
bool quota_refused(struct shm *shm, int node, int64_t now_us);
/* The node let a link in: the refusals are forgotten. */
void quota_accepted(struct shm *shm, int node);
/* Until when the node is left alone (monotonic clock, microseconds); 0: it is not. */
int64_t quota_refused_until(const struct shm *shm, int node);

/* Since when (monotonic clock, microseconds) this worker's oldest client waits for room on `node`;
 * 0: none does. A full barrier. */
void quota_set_oldest(struct shm *shm, int node, int ordinal, int64_t since_us);
/* Workers that have a client waiting for room on the node. */
int quota_waiting_workers(const struct shm *shm, int node);
/* Where that number stands. */
const _Atomic int32_t *quota_waiting_cell(const struct shm *shm, int node);
/* True when the worker has one. */
bool quota_waits(const struct shm *shm, int node, int ordinal);
/* The worker but `but_not_ordinal` (-1: of all) whose client waits longest for room on `node`, and
 * since when; -1 when there is none. */
int quota_find_oldest(const struct shm *shm, int node, int but_not_ordinal, int64_t *since_us);

/* A link of `node` is to be closed so that another can be opened in its place: true when the last
 * time was `least_us` ago, and now is the next one. */
bool quota_may_swap(struct shm *shm, int node, int64_t now_us, int64_t least_us);

/* A worker is told once that it may try again, however many links are closed until it does: true
 * when it is to be told now. Whoever is told calls quota_told_clear before it tries. */
bool quota_tell(struct shm *shm, int ordinal);
void quota_told_clear(struct shm *shm, int ordinal);

/* Gives back everything the worker of `ordinal` held. Supervisor; nobody else may take or give
 * meanwhile: limits.c sees to that. */
void quota_reclaim(struct shm *shm, int ordinal);

#endif
