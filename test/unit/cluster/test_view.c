/* SPDX-License-Identifier: PostgreSQL
 * test_view.c: the ring of events keeps the last thousand, in order. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cluster/view.h"

#include "run_suite.h"

static void add(struct shm *shm, int from, int to)
{
    struct view_event e = {.node = VIEW_NO_NODE};
    int i;

    for (i = from; i < to; i++) {
        e.at_us = i;
        snprintf(e.text, sizeof e.text, "event %d", i);
        view_add_event(shm, &e);
    }
}

START_TEST(the_last_thousand_are_kept)
{
    struct shm_plan plan = {{0}};
    struct err err = {0};
    struct view_event *got = mem_alloc(VIEW_MAX_EVENTS * sizeof *got);
    struct shm *shm;
    int i;

    plan.bytes[SHM_CLUSTER] = view_region_bytes();
    shm = shm_new(&plan, &err);
    ck_assert_ptr_nonnull(shm);
    ck_assert_int_eq(view_copy_events(shm, got, VIEW_MAX_EVENTS), 0);
    add(shm, 0, 999);
    ck_assert_int_eq(view_copy_events(shm, got, VIEW_MAX_EVENTS), 999);
    ck_assert_int_eq(got[0].at_us, 0);
    add(shm, 999, 2345);
    ck_assert_int_eq(view_copy_events(shm, got, VIEW_MAX_EVENTS), 1000);
    for (i = 0; i < 1000; i++)
        ck_assert_int_eq(got[i].at_us, 1345 + i);
    ck_assert_str_eq(got[999].text, "event 2344");
    ck_assert_int_eq(view_copy_events(shm, got, 3), 3);
    ck_assert_int_eq(got[0].at_us, 2342);
    shm_free(&shm);
    mem_free(got);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("view");
    TCase *t = tcase_create("view");

    tcase_add_test(t, the_last_thousand_are_kept);
    suite_add_tcase(s, t);
    return run_suite(s);
}
