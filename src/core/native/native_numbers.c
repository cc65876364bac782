/* SPDX-License-Identifier: PostgreSQL
 * native_numbers.c: sequences of all nodes reach where the main node's stand. Runs in: workers.
 *
 * A number is not given back. What took one on the main node and was cut short there (a cancel, a
 * time-out, a lost connection, the end of a worker) is undone everywhere, and has taken none on the
 * others. Who takes numbers next has locked the sequence on the main node, and is told with the
 * lock where it stands; in front of the statement those that are behind are brought forward, and
 * native_apart.c sees to those that are further. Must never: set one back; ask without that lock,
 * or behind what takes a number. */
#include "config.h"

#include <string.h>

#include "base/arena.h"

#include "native_int.h"

/* The locks stand in front of all else, each with a row of two values. */
void native_numbers_take_values(struct native *n)
{
    uint32_t nasks = n->plan.nasks + 1;
    uint32_t count = 2 * n->numbers.n + nasks;
    struct slice *all = arena_alloc_zero(n->arena, count * sizeof *all);

    repl_take_values(n->arena, buf_slice(&n->rows), all, count);
    repl_numbers_take(n->arena, all, &n->numbers);
    memcpy(n->values, all + 2 * n->numbers.n, nasks * sizeof *all);
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
    repl_numbers_sql(&n->numbers, sql);
    if (before == sql->len && !n->ex.is_batch && n->plan.nlocks > 0)
        buf_printf(sql, "SELECT 1"); /* a row tells where the locks end */
}
