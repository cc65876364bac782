/* SPDX-License-Identifier: PostgreSQL
 * test_inval_snapshot.c: which transactions a snapshot sees, also where numbers wrap around. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "process/invalidator/inval_snapshot.h"

#include "run_suite.h"

#define COUNT(rows) (int)(sizeof(rows) / sizeof(rows)[0])

static const struct {
    const char *text;
    int rc;
    uint32_t xid;
    bool sees;
} asks[] = {
    {"10:20:10,14", 0, 9, true},
    {"10:20:10,14", 0, 10, false},
    {"10:20:10,14", 0, 13, true},
    {"10:20:10,14", 0, 14, false},
    {"10:20:10,14", 0, 19, true},
    {"10:20:10,14", 0, 20, false},
    {"10:20:10,14", 0, 21, false},
    {"769:769:", 0, 768, true},
    {"769:769:", 0, 769, false},
    /* epoch 1: 4294967306 is 10 of it */
    {"4294967290:4294967306:4294967290,4294967300", 0, 4294967289U, true},
    {"4294967290:4294967306:4294967290,4294967300", 0, 4294967290U, false},
    {"4294967290:4294967306:4294967290,4294967300", 0, 4, false},
    {"4294967290:4294967306:4294967290,4294967300", 0, 5, true},
    {"4294967290:4294967306:4294967290,4294967300", 0, 10, false},
    {"", -1, 0, false},
    {"10", -1, 0, false},
    {"10:20:x", -1, 0, false},
    {"10:20:1;2", -1, 0, false},
    {"a:b:", -1, 0, false},
};

START_TEST(a_snapshot_sees)
{
    struct inval_snapshot s = {.end = 0};

    /* Read over another one, as the invalidator does. */
    ck_assert_int_eq(
        inval_snapshot_read(&s, "1:100:2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18"), 0);
    ck_assert_int_eq(inval_snapshot_read(&s, asks[_i].text), asks[_i].rc);
    if (asks[_i].rc == 0)
        ck_assert_int_eq(inval_snapshot_sees(&s, asks[_i].xid), asks[_i].sees);
    inval_snapshot_free(&s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("inval_snapshot");
    TCase *tc = tcase_create("all");

    tcase_add_loop_test(tc, a_snapshot_sees, 0, COUNT(asks));
    suite_add_tcase(s, tc);
    return run_suite(s);
}
