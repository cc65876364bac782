/* SPDX-License-Identifier: PostgreSQL
 * paramset.h: a small set of name = value strings in one block of memory: what a server reported,
 * or what a client asked for in its startup packet. Pure. */
#ifndef PGP_BACKEND_PARAMSET_H
#define PGP_BACKEND_PARAMSET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* "name\0value\0" pairs; a zeroed struct is an empty set. */
struct paramset {
    char *data;
    uint32_t len;
};

/* Frees the memory and empties the set. */
void paramset_free(struct paramset *ps);
/* Sets or replaces. Names compare case-insensitively, as PostgreSQL's do. Returns true when the
 * value is new. */
bool paramset_set(struct paramset *ps, struct slice name, struct slice value);
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
