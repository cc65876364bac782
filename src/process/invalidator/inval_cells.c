/* SPDX-License-Identifier: PostgreSQL
 * inval_cells.c: a set of cells, in the order in which they came.
 * Runs in: invalidator. */
#include "config.h"

#include "inval_cells.h"

#include <string.h>

#include "base/mem.h"

#define FIRST_ROOM 32

static uint32_t *place_of(const struct inval_cells *s, cache_cell cell)
{
    uint32_t mask = s->room * 2 - 1;
    uint32_t i = (uint32_t)(cell ^ cell >> 32) & mask;

    while (s->place[i] != 0 && s->cell[s->place[i] - 1] != cell)
        i = (i + 1) & mask;
    return &s->place[i];
}

static void grow(struct inval_cells *s)
{
    uint32_t i;

    s->room = s->room == 0 ? FIRST_ROOM : s->room * 2;
    s->cell = mem_resize(s->cell, s->room * sizeof s->cell[0]);
    mem_free(s->place);
    s->place = mem_alloc_zero((size_t)s->room * 2 * sizeof s->place[0]);
    for (i = 0; i < s->n; i++)
        *place_of(s, s->cell[i]) = i + 1;
}

bool inval_cells_add(struct inval_cells *s, cache_cell cell)
{
    uint32_t *place;

    if (s->n == s->room)
        grow(s);
    place = place_of(s, cell);
    if (*place != 0)
        return false;
    s->cell[s->n++] = cell;
    *place = s->n;
    return true;
}

void inval_cells_free(struct inval_cells *s)
{
    mem_free(s->cell);
    mem_free(s->place);
    *s = (struct inval_cells){.n = 0};
}
