/* SPDX-License-Identifier: PostgreSQL
 * cache_int.h: what the files of the query cache tell each other. */
#ifndef PGP_CACHE_INT_H
#define PGP_CACHE_INT_H

#include <stdint.h>

#include "cache/cache_gen.h"

/* Sum of the generations of these cells and of `all`. Any number is a cell: what a torn read takes
 * for one leads nowhere. */
uint64_t cache_gens_sum(const struct cache_gens *g, const uint32_t *cell, uint32_t ncells);

#endif
