/* SPDX-License-Identifier: PostgreSQL
 * cache_value.h: values of columns as keys, for results that depend on rows and not on tables.
 * Runs in: workers and the invalidator, which must agree: use nothing else for the value of
 * cache_cell_value. Pure. */
#ifndef PGP_CACHE_CACHE_VALUE_H
#define PGP_CACHE_CACHE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* What is equal when its output is equal, by the OID of the type. */
#define CACHE_TYPE_BOOL    16
#define CACHE_TYPE_INT8    20
#define CACHE_TYPE_INT2    21
#define CACHE_TYPE_INT4    23
#define CACHE_TYPE_TEXT    25
#define CACHE_TYPE_VARCHAR 1043
#define CACHE_TYPE_DATE    1082
#define CACHE_TYPE_UUID    2950

/* Whether columns of this type can have cells of values. A text or varchar column must besides
 * have a deterministic collation. */
bool cache_value_has_key(uint32_t type);
/* Key of a value for a column of type `type`, which has keys. `value` is the text of a constant
 * without its quotes and escapes, a text or binary parameter (of type `from`; for text ones, and
 * for unknown constants, `from` is `type`), or a field of the logical stream. Spellings of one
 * value have one key: 7, +07 and int8 7 in binary. Returns -1 where the value cannot be told for
 * sure (NULL is such, too: it never equals): a reader then depends on the table, a writer bumps the
 * column. Text outside ASCII has one key for all of it, for clients have encodings of their own. */
int cache_value_key(
    uint32_t type, uint32_t from, bool is_binary, struct slice value, uint64_t *key);

#endif
