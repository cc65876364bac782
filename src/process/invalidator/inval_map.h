/* SPDX-License-Identifier: PostgreSQL
 * inval_map.h: the tables of a database by name, and which cells a change of their rows moves.
 * Runs in: invalidator. Pure. */
#ifndef PGP_INVAL_MAP_H
#define PGP_INVAL_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "cache/cache_gen.h"
#include "changes/changes.h"

struct inval_map;

/* Makes an empty one for the database whose cell that is; owned by the caller. */
struct inval_map *inval_map_new(cache_cell database);
void inval_map_free(struct inval_map **mp);

/* The next table: its name as quote_ident() writes it, with its schema; which columns of an old row
 * the stream tells (pg_class.relreplident). */
void inval_map_add_table(
    struct inval_map *m, uint32_t oid, struct slice name, char replica_identity);
/* A column of the last table whose type has keys, by ascending number. `in_identity`: of the key
 * that is told of old rows. `is_told`: the stream has it at all. */
void inval_map_add_column(struct inval_map *m, int attnum, uint32_t type, struct slice name,
    bool in_identity, bool is_told);
/* Rows of `child` are rows of `above`, too: each pair of inheritance and partitions, however far
 * above, once, and after all tables. Numbers that are no tables are passed over. */
void inval_map_add_above(struct inval_map *m, uint32_t child, uint32_t above);

/* What a change was, for counters. */
enum inval_effect {
    INVAL_NONE,
    INVAL_ROW,     /* rows whose values are known, or some of them */
    INVAL_TABLE,   /* a table as a whole */
    INVAL_DATABASE /* it is not known what was changed */
};
/* `is_table`: it is the cell of any write to a table. */
typedef void inval_cell_fn(void *ctx, cache_cell cell, bool is_table);
/* Tells `put` each cell that this change moves. With `by_row` false rows count as tables. */
enum inval_effect inval_map_change(
    struct inval_map *m, const struct change *change, bool by_row, inval_cell_fn *put, void *ctx);

#endif
