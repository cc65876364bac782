/* SPDX-License-Identifier: PostgreSQL
 * test_failover_fence.c: what a switchover that was cut short has left of its fence, when another
 * one begins before that is taken back. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/failover.h"

#include "failover_world.h"

static void order_switch(int node)
{
    struct err err = {0};

    ck_assert_int_eq(failover_switch(&world->f, &world->d, node, "op", world->now_us, &err), 0);
}

/* All of pgpool ended when the old primary was fenced, and is there again. */
static void leave_a_fence(int old, int new)
{
    world_monitor_start();
    world_run(3);
    order_switch(new);
    while (!world->server[old].fence_set)
        world_tick();
    world_restart();
    memset(world->nsteps, 0, sizeof world->nsteps);
}

/* The second one cannot fence, and the command does the rest, at once or not at all: of the first
 * one's fence nothing is left. */
START_TEST(test_a_fence_outlives_one_that_failed)
{
    int old = _i % NODES;
    int new = (old + 1) % NODES;

    world_init(old);
    world->rules.has.failover_command = true;
    leave_a_fence(old, new);
    world->fail_percent = 100;
    world_run(3);
    ck_assert(view_has_node(world->d.view.sw.fenced, old));
    order_switch(new);
    while (world->nsteps[FAILOVER_DO_DRAIN] == 0)
        world_tick();
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_FENCE], 1);
    while (_i >= NODES && view_failover_in_progress(&world->d.view))
        world_tick();
    world->fail_percent = 0;
    world_run(30);
    ck_assert(!view_failover_in_progress(&world->d.view));
    ck_assert_int_eq(world->d.view.primary, _i >= NODES ? old : new);
    ck_assert(!world->server[old].fence_set);
    ck_assert(!world->server[world->d.view.primary].fenced);
    ck_assert(view_can_write(&world->d.view));
}
END_TEST

/* The first one's fence is being taken back when the second one begins, and that takes longer and
 * longer: it is not the second one's fence that is taken away by it. */
START_TEST(test_a_fence_is_not_taken_back_late)
{
    int old = _i % NODES;
    int new = (old + 1) % NODES;

    world_init(old);
    leave_a_fence(old, new);
    while (!world->beside.is_running)
        world_tick();
    ck_assert_int_eq(world->beside.what.type, FAILOVER_DO_UNFENCE_BESIDE);
    world->beside.due_us = world->now_us + _i * TICK_US;
    order_switch(new);
    while (world->nsteps[FAILOVER_DO_PROMOTE] == 0) /* which looks at the old one's fence */
        world_tick();
    world_run(20);
    ck_assert_int_eq(world->d.view.primary, new);
    ck_assert(world->d.view.sw.ended_well);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("failover_fence");
    TCase *t = tcase_create("fence");

    tcase_add_checked_fixture(t, world_setup, world_teardown);
    tcase_add_loop_test(t, test_a_fence_outlives_one_that_failed, 0, 2 * NODES);
    tcase_add_loop_test(t, test_a_fence_is_not_taken_back_late, 0, 20 * NODES);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    SRunner *sr = srunner_create(make_suite());
    int failed;

    srunner_run_all(sr, CK_NORMAL);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
