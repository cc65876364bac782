/* SPDX-License-Identifier: PostgreSQL
 * route_shared.h: answers about the catalogue that one worker got, for the others. Each worker has
 * a table of its own in shared memory, in which it alone writes; all workers read all of them. Runs
 * in: workers. No locks, no pointers inside. */
#ifndef PGP_ROUTE_ROUTE_SHARED_H
#define PGP_ROUTE_ROUTE_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "route/route_oracle.h"

struct conf;
struct route_shared;

/* An answer and what it depends on. */
struct route_answer {
    uint64_t change; /* the schema's changes that were known when it was asked for */
    int64_t until_us;
    uint32_t bits;
};

/* Bytes of one worker's table with these settings: `relcache_size` answers of each kind, up to a
 * bound. */
size_t route_shared_bytes(const struct conf *conf);
/* Makes an empty table in `mem`, zeroed or left by a dead worker, aligned to 8. */
struct route_shared *route_shared_init(void *mem, const struct conf *conf);
/* Remembers an answer for everybody; where its place is taken, what was there longest goes. A
 * question with very long names is not kept. Only the owner calls it. */
void route_shared_put(struct route_shared *s, struct route_scope scope,
    const struct route_question *q, const struct route_answer *a);
/* Finds an answer in any table that was asked for after `change` changes of the schema and still
 * holds. Returns 0 and sets *a, or -1. */
int route_shared_get(const struct route_shared *const *all, unsigned n, struct route_scope scope,
    const struct route_question *q, uint64_t change, int64_t now_us, struct route_answer *a);

#endif
