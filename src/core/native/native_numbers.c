/* SPDX-License-Identifier: PostgreSQL
 * native_numbers.c: sequences of all nodes reach where the main node's stand. Runs in: workers.
 *
 * A number is not given back. What took one on the main node and was cut short there (a cancel, a
 * time-out, a lost connection, the end of a worker) is undone everywhere, and has taken none on the
 * others. Who takes numbers next has locked the sequence on the main node, and is told with the
 * lock where it stands; in front of the statement those that are behind are brought forward. Must
 * never: set one back; ask without that lock, or behind what takes a number. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "wire/reader.h"

#include "native_int.h"

void native_numbers_clear(struct native *n)
{
    n->numbers = NULL;
    n->nnumbers = 0;
    n->nnumbers_taken = 0;
}

/* One more, twice the room when it is full: at 8, 16, 32. */
static struct repl_number *add(struct native *n)
{
    bool is_full = n->nnumbers >= REPL_MAX_SEQUENCES && (n->nnumbers & (n->nnumbers - 1)) == 0;
    uint32_t cap = n->nnumbers == 0 ? REPL_MAX_SEQUENCES : n->nnumbers * 2;
    struct repl_number *room;

    if (n->nnumbers == 0 || is_full) {
        room = arena_alloc_zero(n->arena, cap * sizeof *room);
        if (n->nnumbers > 0)
            memcpy(room, n->numbers, n->nnumbers * sizeof *room);
        n->numbers = room;
    }
    return &n->numbers[n->nnumbers++];
}

void native_numbers_add(struct native *n, struct slice sequence)
{
    for (uint32_t i = 0; i < n->nnumbers; i++) {
        if (slice_eq(n->numbers[i].sequence, sequence))
            return;
    }
    add(n)->sequence = sequence;
}

bool native_numbers_are_hidden(const struct native *n)
{
    for (uint32_t i = 0; i < n->nnumbers; i++) {
        const struct repl_number *number = &n->numbers[i];

        if (number->is_told && number->last.p == NULL && !number->may_set)
            return true;
    }
    return false;
}

/* The locks stand in front of all else, each with a row of two values. */
void native_numbers_take_values(struct native *n)
{
    uint32_t count = 2 * n->nnumbers + n->plan.nasks + 1;
    struct slice *all = arena_alloc_zero(n->arena, count * sizeof *all);

    repl_take_values(n->arena, buf_slice(&n->rows), all, count);
    for (uint32_t i = 0; i < n->nnumbers; i++)
        repl_number_take(n->arena, all + 2 * i, &n->numbers[i]);
    memcpy(n->values, all + 2 * n->nnumbers, (n->plan.nasks + 1) * sizeof *all);
}

void native_numbers_take_row(struct native *n, struct slice body)
{
    struct slice value[2] = {{0}};
    struct wire_reader r;

    wire_reader_init(&r, body);
    if (wire_get_u16(&r) != 2 || n->nnumbers_taken == n->nnumbers)
        return;
    for (unsigned i = 0; i < 2; i++) {
        bool is_null;

        value[i] = wire_get_value(&r, &is_null);
        if (is_null || r.bad)
            value[i] = slice_of(NULL, 0);
    }
    repl_number_take(n->arena, value, &n->numbers[n->nnumbers_taken++]);
}

void native_numbers_sql(const struct native_leg *leg, struct buf *sql)
{
    const struct native *n = leg->n;
    uint32_t before;

    if (n->step != STEP_OTHERS)
        return;
    for (uint32_t i = 0; !n->ex.is_batch && i < n->plan.nlocks; i++) /* else in the sequence */
        buf_printf(sql, "%.*s;", (int)n->plan.locks[i].n, n->plan.locks[i].p);
    before = sql->len;
    if (n->nnumbers > 0)
        repl_numbers_sql(n->numbers, n->nnumbers, sql);
    if (before == sql->len && !n->ex.is_batch && n->plan.nlocks > 0)
        buf_printf(sql, "SELECT 1"); /* a row tells where the locks end */
}
