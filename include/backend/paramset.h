/* SPDX-License-Identifier: PostgreSQL
 * paramset.h: a small set of name = value strings in one block of memory: what a server reported,
 * or what a client asked for in its startup packet. Links of a pool mostly have the same ones: sets
 * of equal content can share the block. Runs in: workers. Pure. */
#ifndef PGP_BACKEND_PARAMSET_H
#define PGP_BACKEND_PARAMSET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/slice.h"

/* The blocks that are shared, one for each distinct content. One store per worker. */
struct paramset_store {
    struct hash_table table;
};

/* "name\0value\0" pairs; a zeroed struct is an empty set. */
struct paramset {
    struct paramset_block *block; /* counted and never changed; NULL while empty */
};

/* Makes a store; fini frees it (no set may share a block of it any more). */
void paramset_store_init(struct paramset_store *store);
void paramset_store_fini(struct paramset_store *store);
/* From now on `ps` shares its block with all sets of the same bytes that were given to `store`. A
 * later change gives it a block of its own again. */
void paramset_share(struct paramset *ps, struct paramset_store *store);
static inline bool paramset_is_empty(const struct paramset *ps)
{
    return ps->block == NULL;
}
/* All of it, as bytes; and a set of such bytes, in place of what it was. */
struct slice paramset_bytes(const struct paramset *ps);
void paramset_set_bytes(struct paramset *ps, struct slice bytes);
/* Empties the set; its memory is freed when nobody shares it. */
void paramset_free(struct paramset *ps);
/* Sets or replaces. Names compare case-insensitively, as PostgreSQL's do. Returns true when the
 * value is new. */
bool paramset_set(struct paramset *ps, struct slice name, struct slice value);
/* True when the set has no more than `max_pairs` pairs and `max_bytes` bytes with that one. */
bool paramset_has_room(const struct paramset *ps, struct slice name, struct slice value,
    uint32_t max_pairs, uint32_t max_bytes);
/* Takes the name out, if it is there. */
void paramset_drop(struct paramset *ps, struct slice name);
/* The value, or a slice with p == NULL. */
struct slice paramset_get(const struct paramset *ps, struct slice name);
/* Walks: start with *at = 0; false at the end. */
bool paramset_next(
    const struct paramset *ps, uint32_t *at, struct slice *name, struct slice *value);
void paramset_copy(struct paramset *dst, const struct paramset *src);
bool paramset_eq(const struct paramset *a, const struct paramset *b);

#endif
