/* SPDX-License-Identifier: PostgreSQL
 * inval_cells.h: a set of cells: what one transaction has made invalid. */
#ifndef PGP_INVAL_CELLS_H
#define PGP_INVAL_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/cache_gen.h"

/* Beyond so many a transaction is told by table and not by row. */
#define INVAL_CELLS_BY_ROW 65536

/* A zeroed one is empty. */
struct inval_cells {
    cache_cell *cell; /* in the order in which they came */
    uint32_t n;
    uint32_t room;
    uint32_t *place; /* number of a cell plus 1, by hash; twice as many as there is room for */
};

/* Adds one; false when it was there. */
bool inval_cells_add(struct inval_cells *s, cache_cell cell);
/* Frees the memory and empties it. */
void inval_cells_free(struct inval_cells *s);

#endif
