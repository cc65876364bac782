/* SPDX-License-Identifier: PostgreSQL
 * route_marks.h: tables that were written lately, for dml_adaptive_global. Each worker has a table
 * of its own in shared memory, in which it alone writes; all workers read all of them.
 * Runs in: workers. No locks, no pointers inside. */
#ifndef PGP_ROUTE_ROUTE_MARKS_H
#define PGP_ROUTE_ROUTE_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct conf;
struct route_marks;
struct view;

/* Bytes of one worker's table with these settings. */
size_t route_marks_bytes(const struct conf *conf);
/* Makes an empty table in `mem` (zeroed, aligned to 8). The cold start begins at `now_us`. */
struct route_marks *route_marks_init(void *mem, const struct conf *conf, int64_t now_us);
/* What a table is called in here. Oid 0 stands for every table of the database: somebody wrote to
 * one that he could not name. */
uint64_t route_marks_key(struct slice database, uint32_t oid);
/* Notes a write whose commit (or end, outside a transaction) the server has confirmed. When the
 * bucket is full the entry longest unwritten goes. Only the owner calls it. */
void route_marks_add(struct route_marks *m, const struct conf *conf, uint64_t key, int64_t now_us);
/* How long a write counts for reads on `node`: by its lag. */
int64_t route_marks_ttl_us(const struct conf *conf, const struct view *view, int node);
/* True when any table holds a write to `key` that still counts. */
bool route_marks_is_fresh(const struct route_marks *const *all, unsigned n, const struct conf *conf,
    uint64_t key, int64_t now_us, int64_t ttl_us);
/* True while reads go to the primary because the tables have just begun. */
bool route_marks_is_cold(
    const struct route_marks *const *all, unsigned n, const struct conf *conf, int64_t now_us);

#endif
