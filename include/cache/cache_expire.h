/* SPDX-License-Identifier: PostgreSQL
 * cache_expire.h: how long results may be kept, by the tables they come from: memqcache_expire and
 * memqcache_expire_list. Runs in: workers. */
#ifndef PGP_CACHE_CACHE_EXPIRE_H
#define PGP_CACHE_CACHE_EXPIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

struct cache_expire;
struct conf;

/* Compiles the list of these settings. NULL and *err when a pattern is none. */
struct cache_expire *cache_expire_new(const struct conf *conf, struct err *err);
/* Frees it; NULL is allowed. */
void cache_expire_free(struct cache_expire **ep);
/* Seconds that a result from these tables (schema.name each) may be kept; 0: until one of them
 * changes. */
int64_t cache_expire_of(const struct cache_expire *e, const struct slice *tables, size_t n);

#endif
