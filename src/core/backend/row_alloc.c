/* SPDX-License-Identifier: PostgreSQL
 * row_alloc.c: a stack of free rows over a high-water mark. */
#include "config.h"

#include "backend/row_alloc.h"

#include <stdatomic.h>

#include "base/mem.h"

struct row_alloc {
    struct rows_header *rows;
    struct rows_worker *range;
    uint32_t next; /* rows from here on were never used */
    uint32_t nfree;
    uint32_t cap;
    int32_t *free_row;
};

/* Both kinds of row begin with the sequence counter and the state byte. */
struct row_head {
    struct shm_seq seq;
    uint8_t state;
};

static void row_clear(struct rows_header *rows, int i)
{
    struct row_head *row = rows_at(rows, i);

    shm_write_begin(&row->seq);
    row->state = 0;
    shm_write_end(&row->seq);
}

struct row_alloc *row_alloc_new(struct rows_header *rows, int ordinal)
{
    struct row_alloc *a = mem_alloc_zero(sizeof *a);

    a->rows = rows;
    a->range = rows_worker(rows, (uint32_t)ordinal);
    return a;
}

void row_alloc_free(struct row_alloc **ap)
{
    struct row_alloc *a = *ap;

    *ap = NULL;
    if (a == NULL)
        return;
    mem_free(a->free_row);
    mem_free(a);
}

int row_alloc_take(struct row_alloc *a)
{
    if (a->nfree > 0) {
        atomic_fetch_add(&a->range->served, 1);
        return a->free_row[--a->nfree];
    }
    if (a->next == a->range->count)
        return ROWS_NO_ROW;
    atomic_fetch_add(&a->range->served, 1);
    if (++a->next > a->range->high_water)
        a->range->high_water = a->next;
    return (int)(a->range->first + a->next - 1);
}

void row_alloc_give(struct row_alloc *a, int row)
{
    if (row == ROWS_NO_ROW)
        return;
    row_clear(a->rows, row);
    if (a->nfree == a->cap) {
        a->cap = a->cap == 0 ? 64 : a->cap * 2;
        a->free_row = mem_resize(a->free_row, a->cap * sizeof *a->free_row);
    }
    a->free_row[a->nfree++] = row;
}
