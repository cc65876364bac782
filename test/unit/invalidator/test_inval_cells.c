/* SPDX-License-Identifier: PostgreSQL
 * test_inval_cells.c: each cell is in the set once, in the order in which they came. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "process/invalidator/inval_cells.h"

#include "run_suite.h"

#define MANY 100000

START_TEST(each_is_there_once)
{
    struct inval_cells s = {.n = 0};
    uint32_t i;

    for (i = 0; i < MANY; i++) {
        ck_assert(inval_cells_add(&s, (cache_cell)i << 32 | (i & 7)));
        ck_assert(!inval_cells_add(&s, (cache_cell)(i / 2) << 32 | (i / 2 & 7)));
    }
    ck_assert_uint_eq(s.n, MANY);
    for (i = 0; i < MANY; i++)
        ck_assert_uint_eq(s.cell[i], (cache_cell)i << 32 | (i & 7));
    inval_cells_free(&s);
    ck_assert(inval_cells_add(&s, 0));
    inval_cells_free(&s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("inval_cells");
    TCase *tc = tcase_create("all");

    tcase_add_test(tc, each_is_there_once);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
