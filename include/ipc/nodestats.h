/* SPDX-License-Identifier: PostgreSQL
 * nodestats.h: how long each server took to answer, in the region NODESTATS of shared memory.
 * Written by: each worker, its own rows. Read by: whoever answers SHOW or metrics. The numbers
 * never go back, also when a worker is replaced. What was never written costs no memory. */
#ifndef PGP_IPC_NODESTATS_H
#define PGP_IPC_NODESTATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "ipc/shm.h"

#define NODESTATS_NODES 192 /* with those that pools.conf names */

/* One server in one worker: requests and transactions that ended there. */
struct nodestats_row {
    _Atomic uint64_t nrequests;
    _Atomic uint64_t query_us;
    _Atomic uint64_t transaction_us;
    struct histogram query;
    struct histogram transaction;
};

/* The sum over all workers. */
struct nodestats_sum {
    uint64_t nrequests;
    uint64_t query_us;
    uint64_t transaction_us;
    struct histogram_sum query;
    struct histogram_sum transaction;
};

/* Size of the region, and its first content. Supervisor, before the first fork. */
size_t nodestats_region_bytes(int nworkers);
void nodestats_region_init(struct shm *shm, int nworkers);
/* Counts a request that server `node` has answered the worker of `ordinal`: only that one calls. */
void nodestats_count(struct shm *shm, int ordinal, int node, struct histogram_value took);
/* Counts a transaction that ended on server `node`, wherever its reads were; its last request has
 * been counted. */
void nodestats_ended(struct shm *shm, int ordinal, int node, struct histogram_value took);
/* Fills *out; all zero for a server that nobody has asked. */
void nodestats_sum(const struct shm *shm, int node, struct nodestats_sum *out);

#endif
