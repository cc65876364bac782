/* SPDX-License-Identifier: PostgreSQL
 * test_failover_doubt.c: nobody is promoted on a doubt: whether the primary lives, which a standby
 * that streams from it tells, and whether an order to promote was heard. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "cluster/failover.h"

#include "failover_world.h"
#include "run_suite.h"

/* Who receives from a standby may be no server of ours: a backup, a standby that is not in the
 * settings. That says nothing of whom that standby streams from. */
START_TEST(test_strangers_are_not_fed_by_us)
{
    static const char *const names[] = {"pg_receivewal", "walreceiver"};
    struct decide_probe p = {.answer = DECIDE_FAILED, .sqlstate = "", .message = "no way"};
    int old = _i % NODES;
    int i;

    world_init(old);
    world->rules.auto_promote = true;
    for (i = 0; i < NODES; i++) {
        world->server[i].nstrangers = 1 + _i / NODES;
        world->server[i].stranger = names[_i / NODES];
    }
    world_monitor_start();
    world_run(3);
    for (i = 0; i < 100; i++) {
        decide_on_probe(&world->d, old, &p, world->now_us);
        world_probe((old + 1) % NODES);
        world_probe((old + 2) % NODES);
        world->now_us += TICK_US;
        world_monitor_step();
        ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 0);
    }
    ck_assert(world_told("it is alive"));
    world->server[old].alive = false; /* and now it is not */
    world_run(3);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
}
END_TEST

/* One that receives from another standby does not stream from the primary. */
START_TEST(test_fed_by_a_standby)
{
    int middle = (_i + 1) % NODES;
    int last = (_i + 2) % NODES;

    world_init(_i);
    world->rules.auto_promote = true;
    world->server[last].feeder = middle;
    world_monitor_start();
    world_run(3);
    world->server[_i].alive = false;
    world_run(3);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    ck_assert_int_ne(world->d.view.primary, VIEW_NO_NODE);
}
END_TEST

/* The order to promote was heard, the answer was lost, and so is its server for some seconds:
 * nobody is promoted beside it. If it does not come back, somebody else is. */
START_TEST(test_promotion_whose_answer_is_lost)
{
    int old = _i % NODES;
    int chosen;

    world_init(old);
    world->rules.auto_promote = true;
    world_monitor_start();
    world_run(3);
    world->server[old].alive = false;
    while (world->nsteps[FAILOVER_DO_PROMOTE] == 0)
        world_tick();
    chosen = world->deed.what.target;
    world->deed.succeeds = world->deed.goes_unsaid = world->deed.vanishes = true;
    world_run(20);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    if (_i < NODES) {
        world->server[chosen].alive = true;
        world_run(5);
        ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
        ck_assert_int_eq(world->d.view.primary, chosen);
        ck_assert_int_eq(world->d.view.sw.unsure_us, 0); /* not of the next switchover */
        return;
    }
    world_run(20);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 2);
    ck_assert_int_eq(world->d.view.primary, NODES - old - chosen);
}
END_TEST

/* It was not heard, and its server is there: it is told again, soon. */
START_TEST(test_promotion_that_was_not_heard)
{
    int chosen;

    world_init(_i);
    world->rules.auto_promote = true;
    world_monitor_start();
    world_run(3);
    world->server[_i].alive = false;
    while (world->nsteps[FAILOVER_DO_PROMOTE] == 0)
        world_tick();
    chosen = world->deed.what.target;
    world->deed.succeeds = false;
    world->deed.goes_unsaid = true;
    world_run(6);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 2);
    ck_assert_int_eq(world->d.view.primary, chosen);
    ck_assert_int_eq(world->d.view.sw.unsure_us, 0);
}
END_TEST

/* All of pgpool is started anew while nobody knows what became of the order, and the old primary is
 * back before who was told: it does not write beside it. That one shows itself, has not heard, or
 * has gone for good: then the old one takes writes again. */
START_TEST(test_pgpool_ends_behind_an_order)
{
    int old = _i % NODES;
    int chosen;

    world_init(old);
    world->rules.auto_promote = true;
    world_monitor_start();
    world_run(3);
    world->server[old].alive = false;
    while (world->nsteps[FAILOVER_DO_PROMOTE] == 0)
        world_tick();
    chosen = world->deed.what.target;
    world->deed.succeeds = _i < NODES;
    world->deed.goes_unsaid = world->deed.vanishes = true;
    world_run(2);
    world_restart();
    world->server[old].alive = true;
    world_run(10);
    ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
    ck_assert(!view_can_write(&world->d.view));
    world->server[chosen].alive = _i < 2 * NODES;
    world_run(5);
    if (_i < NODES) {
        ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
        ck_assert_int_eq(world->d.view.primary, chosen);
        ck_assert(!view_is_usable(&world->d.view, old));
        return;
    }
    ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
    world_run(20);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    ck_assert_int_eq(world->d.view.primary, old);
    ck_assert(view_can_write(&world->d.view));
}
END_TEST

/* All of pgpool ends while an order to promote is under way: `old` is lost, the one that is
 * returned was told, and has not heard. */
static int end_amid_order(int old)
{
    int chosen;

    world->server[old].alive = false;
    while (world->nsteps[FAILOVER_DO_PROMOTE] == 0)
        world_tick();
    chosen = world->deed.what.target;
    world->deed.succeeds = false;
    world->deed.goes_unsaid = true;
    while (world->deed.is_running)
        world_tick();
    world_restart();
    return chosen;
}

/* Who was told has not heard, and another one that has received more is there by now: nobody is
 * told again within the 30 s, then that one is. It may also be late, as after an outage of all; or
 * somebody promotes it by hand, and is followed at once. */
START_TEST(test_who_has_most_after_an_order)
{
    int old = _i % NODES;
    int most = (old + 1) % NODES;
    bool is_late = _i / NODES == 1;
    bool by_hand = _i / NODES == 2;

    world_init(old);
    world->rules.auto_promote = true;
    world_monitor_start();
    world_run(3);
    world->server[NODES - old - most].feeder = NODES - old - most; /* gets nothing more */
    world_run(2);
    world->server[most].alive = false;
    world_run(2);
    ck_assert_int_ne(end_amid_order(old), most);
    world->server[most].alive = !is_late;
    world_run(27);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
    if (by_hand)
        world_promote(most);
    world_run(by_hand ? 2 : 20);
    ck_assert_int_eq(world->d.view.primary, by_hand ? most : VIEW_NO_NODE);
    world->server[most].alive = true;
    world_run(20);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], by_hand ? 1 : 2);
    ck_assert_int_eq(world->d.view.primary, most);
    ck_assert(view_can_write(&world->d.view));
    world->server[old].alive = true;
    world_run(5);
    ck_assert_int_eq(world->d.view.primary, most);
    ck_assert(!view_is_usable(&world->d.view, old));
}
END_TEST

/* A primary of before the lost one is there: a new pgpool, or a new monitor, knows it for what it
 * is. It does not matter who promotes another one: its timeline is newer. */
START_TEST(test_a_former_primary_after_an_order)
{
    int old = _i % NODES;
    int former = (old + 1) % NODES;
    int third = NODES - old - former;

    world_init(old);
    world->rules.auto_promote = true;
    world->server[old].timeline = world->server[third].timeline = 2;
    world->server[former].is_primary = true;
    world_monitor_start();
    world_run(3);
    ck_assert_int_eq(world->d.view.primary, old);
    ck_assert_int_eq(end_amid_order(old), third);
    world->server[third].alive = false;
    if (_i >= 2 * NODES)
        world_monitor_kill();
    world_run(20);
    ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
    world->server[third].alive = true;
    if (_i / NODES == 1)
        world_promote(third);
    world_run(_i / NODES == 1 ? 3 : 60);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], _i / NODES == 1 ? 1 : 2);
    ck_assert_int_eq(world->d.view.primary, third);
    ck_assert(!view_is_usable(&world->d.view, former));
}
END_TEST

/* A standby whose receiver has ended tells the timeline of its control file, which may be that of
 * before the last promotion. What it has received of the newer one it has all the same. */
START_TEST(test_a_control_file_that_is_behind)
{
    int most = (_i % NODES + 1 + _i / NODES) % NODES;
    int i;

    world_init(_i % NODES);
    world->rules.auto_promote = true;
    for (i = 0; i < NODES; i++)
        world->server[i].timeline = 2;
    world->server[most].control_timeline = 1;
    world_monitor_start();
    world_run(3);
    world->server[_i % NODES].alive = false;
    world->server[most].lsn += 50;
    world_run(3);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    ck_assert_int_eq(world->d.view.primary, most);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("failover_doubt");
    TCase *t = tcase_create("doubts");

    tcase_add_checked_fixture(t, world_setup, world_teardown);
    tcase_add_loop_test(t, test_strangers_are_not_fed_by_us, 0, 2 * NODES);
    tcase_add_loop_test(t, test_fed_by_a_standby, 0, NODES);
    tcase_add_loop_test(t, test_promotion_whose_answer_is_lost, 0, 2 * NODES);
    tcase_add_loop_test(t, test_promotion_that_was_not_heard, 0, NODES);
    tcase_add_loop_test(t, test_pgpool_ends_behind_an_order, 0, 3 * NODES);
    tcase_add_loop_test(t, test_who_has_most_after_an_order, 0, 3 * NODES);
    tcase_add_loop_test(t, test_a_former_primary_after_an_order, 0, 3 * NODES);
    tcase_add_loop_test(t, test_a_control_file_that_is_behind, 0, 2 * NODES);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return run_suite(make_suite());
}
