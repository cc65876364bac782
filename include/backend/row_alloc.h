/* SPDX-License-Identifier: PostgreSQL
 * row_alloc.h: hands out the rows of this worker's range in a shared memory region, lowest first so
 * that untouched pages stay untouched, and the places of their names. */
#ifndef PGP_BACKEND_ROW_ALLOC_H
#define PGP_BACKEND_ROW_ALLOC_H

#include "ipc/rows.h"

struct row_alloc;

/* For the range of worker `ordinal`. Clears rows a crashed worker left behind. */
struct row_alloc *row_alloc_new(struct rows_header *rows, int ordinal);
void row_alloc_free(struct row_alloc **ap);
/* Index of a free row, ROWS_NO_ROW when the range is full. It has no names. */
int row_alloc_take(struct row_alloc *a);
/* Marks the row FREE and takes it back, and its names; ROWS_NO_ROW is allowed. */
void row_alloc_give(struct row_alloc *a, int row);
/* Gives a taken row these names, in place of what it had. To be called while the row is being
 * changed (shm_write_begin). The slices may be those of the row's present names. */
void row_alloc_name(struct row_alloc *a, int row, struct slice user, struct slice database,
    struct slice application);

#endif
