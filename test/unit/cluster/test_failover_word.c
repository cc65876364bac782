/* SPDX-License-Identifier: PostgreSQL
 * test_failover_word.c: a monitor that begins when the primary is lost already, and knows who it
 * was from the log of all pgpools alone. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/failover.h"

#include "failover_world.h"
#include "run_suite.h"

static const uint64_t nothing[2];

/* The log of all says that `primary` is the primary, and that failover about `lost` has begun. */
static void say(bool leads, int primary, int lost)
{
    uint64_t may[2] = {lost == VIEW_NO_NODE ? 0 : UINT64_C(1) << lost, 0};

    failover_allow(&world->f, leads, may, NULL);
    decide_agree(&world->d, primary, 0, nothing, world->now_us);
}

/* Only its standbys are there when pgpool begins. */
static void begin_without(int primary)
{
    world_init(primary);
    world->rules.auto_promote = true;
    world->server[primary].alive = false;
    world_monitor_start();
    failover_allow(&world->f, false, nothing, NULL);
}

static int nacts(void)
{
    return world->nsteps[FAILOVER_DO_PROMOTE] + world->nsteps[FAILOVER_DO_COMMAND];
}

/* Whether the word comes before or behind the first probes. */
START_TEST(test_taken_up_from_the_log)
{
    int late;

    for (late = 0; late < 2; late++) {
        begin_without(_i);
        world->server[(_i + 2) % NODES].lsn += 50;
        if (late == 1)
            world_run(10);
        say(true, _i, _i);
        world_run(late == 1 ? 40 : 50);
        ck_assert_int_eq(nacts(), 0); /* the minute is not over */
        ck_assert(world_told("was lost before this pgpool began"));
        ck_assert(failover_is_acting(&world->f, &world->d));
        world_run(20);
        ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
        ck_assert_int_eq(world->d.view.primary, (_i + 2) % NODES);
        ck_assert(!view_failover_in_progress(&world->d.view));
    }
}
END_TEST

START_TEST(test_comes_back_meanwhile)
{
    begin_without(_i);
    say(true, _i, _i);
    world_run(30);
    world->server[_i].alive = true;
    world_run(60);
    ck_assert_int_eq(nacts(), 0);
    ck_assert_int_eq(world->d.view.primary, _i);
    ck_assert(view_can_write(&world->d.view));
    ck_assert(!failover_is_acting(&world->f, &world->d));
}
END_TEST

/* Another one leads, nothing was agreed on, the word is old, or an operator took it out. */
START_TEST(test_left_alone)
{
    static const struct {
        bool leads, is_stale, is_held, knows, agrees;
    } rows[] = {
        {false, false, false, true, true},
        {true, true, false, true, true},
        {true, false, true, true, true},
        {true, false, false, false, true},
        {true, false, false, true, false},
    };
    size_t i;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin_without(_i);
        say(rows[i].leads, rows[i].knows ? _i : VIEW_NO_NODE, rows[i].agrees ? _i : VIEW_NO_NODE);
        failover_doubt(&world->f, rows[i].is_stale);
        if (rows[i].is_held)
            decide_detach(&world->d, _i, "op", "", world->now_us);
        world_run(100);
        ck_assert_msg(nacts() == 0, "row %zu", i);
    }
}
END_TEST

/* Only one is left, and it has nothing of the timeline that the primary was on. */
START_TEST(test_nobody_on_an_older_timeline)
{
    int behind = (_i + 1) % NODES;

    begin_without(_i);
    world->server[(_i + 2) % NODES].alive = false;
    failover_allow(&world->f, true, (uint64_t[2]){UINT64_C(1) << _i, 0}, NULL);
    decide_agree(&world->d, _i, 2, nothing, world->now_us);
    world_run(200);
    ck_assert_int_eq(nacts(), 0);
    ck_assert(failover_is_acting(&world->f, &world->d));
    world->server[behind].timeline = 2;
    world_run(80);
    ck_assert_int_eq(world->d.view.primary, behind);
}
END_TEST

/* The command is run about the primary once, and not as about a standby besides. */
START_TEST(test_command_is_run_once)
{
    int held;

    for (held = 0; held < 2; held++) {
        begin_without(_i);
        world->rules.has.failover_command = true;
        world_monitor_start();
        say(true, _i, VIEW_NO_NODE);
        if (held == 1)
            decide_detach(&world->d, _i, "op", "", world->now_us);
        world_run(5);
        ck_assert_int_eq(world->d.view.sw.njobs, 1);
        say(true, _i, _i);
        world_run(80);
        ck_assert_int_eq(world->ncommands, 1);
        ck_assert_int_eq(world->nsteps[FAILOVER_DO_HOOK], 0);
        ck_assert_int_ne(world->d.view.primary, VIEW_NO_NODE);
        ck_assert_int_ne(world->d.view.primary, _i);
    }
}
END_TEST

START_TEST(test_given_up_stays_so)
{
    begin_without(_i);
    world->rules.has.failover_command = true;
    world->fail_percent = 100;
    world_monitor_start();
    say(true, _i, _i);
    world_run(300);
    ck_assert_int_eq(world->ncommands, 3);
    ck_assert(!view_failover_in_progress(&world->d.view));
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_HOOK], 0);
}
END_TEST

/* The next monitor of this pgpool goes on where the first one was killed. */
START_TEST(test_killed_amid_it)
{
    begin_without(_i);
    say(true, _i, _i);
    world_run(5);
    world_monitor_kill();
    say(true, _i, _i);
    world_run(70);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    ck_assert_int_ne(world->d.view.primary, VIEW_NO_NODE);
}
END_TEST

/* The log of all says that failover about `lost` has begun and that `chosen` is to take its place.
 */
static void name(bool leads, int lost, int chosen)
{
    uint64_t may[2] = {UINT64_C(1) << lost, 0};
    int16_t candidate[VIEW_MAX_NODES];
    int i;

    for (i = 0; i < VIEW_MAX_NODES; i++)
        candidate[i] = (int16_t)(i == lost ? chosen : VIEW_NO_NODE);
    failover_allow(&world->f, leads, may, candidate);
}

/* Server `lost` was the primary, the other two have received the same; of these `heavy` is the one
 * to choose. */
static void lose(int lost, int heavy)
{
    world_init(lost);
    world->rules.auto_promote = true;
    world->rules.node[heavy].weight = 2;
    world_monitor_start();
    failover_allow(&world->f, false, nothing, NULL);
    world_run(3);
    world->server[0].lsn = world->server[1].lsn = world->server[2].lsn = 9000;
    world->server[lost].alive = false;
    world_run(3);
    ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
}

/* Nobody is told to be the primary before the log says who. */
START_TEST(test_the_log_says_who_first)
{
    int heavy = (_i + 2) % NODES;

    lose(_i, heavy);
    ck_assert_int_eq(failover_wants(&world->f, &world->d), VIEW_NO_NODE);
    name(true, _i, VIEW_NO_NODE);
    world_run(5);
    ck_assert_int_eq(nacts(), 0);
    ck_assert_int_eq(failover_wants(&world->f, &world->d), heavy);
    name(false, _i, VIEW_NO_NODE); /* it is another one's, who may choose otherwise */
    ck_assert_int_eq(failover_wants(&world->f, &world->d), VIEW_NO_NODE);
    name(true, _i, VIEW_NO_NODE);
    world_run(1);
    name(true, _i, heavy);
    world_run(3);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    ck_assert_int_eq(world->d.view.primary, heavy);
    ck_assert_int_eq(failover_wants(&world->f, &world->d), VIEW_NO_NODE);
}
END_TEST

/* Whom the one that led before had chosen may have heard of it: it is he, by SQL or a command. */
START_TEST(test_the_former_choice_is_told)
{
    int by_command;

    for (by_command = 0; by_command < 2; by_command++) {
        int chosen = (_i + 1) % NODES;

        lose(_i, (_i + 2) % NODES);
        world->rules.has.failover_command = by_command == 1;
        decide_set_rules(&world->d, &world->rules, world->now_us);
        name(true, _i, chosen);
        world_run(5);
        ck_assert_int_eq(nacts(), 1);
        ck_assert_int_eq(world->d.view.primary, chosen);
    }
}
END_TEST

/* He cannot be asked: he may be about to become the primary, and for a while nobody else is. */
START_TEST(test_the_former_choice_is_waited_for)
{
    int heavy = (_i + 2) % NODES;
    int chosen = (_i + 1) % NODES;
    int shows_up;

    for (shows_up = 0; shows_up < 2; shows_up++) {
        lose(_i, heavy);
        world->server[chosen].alive = false;
        world_run(3);
        name(true, _i, chosen);
        world_run(25);
        ck_assert_int_eq(nacts(), 0);
        ck_assert_int_eq(failover_wants(&world->f, &world->d), VIEW_NO_NODE);
        ck_assert(world_told("may have been told to take its place"));
        if (shows_up == 1) {
            world->server[chosen].alive = true;
            world_promote(chosen);
        }
        world_run(10);
        if (shows_up == 1) {
            ck_assert_int_eq(world->d.view.primary, chosen);
            continue;
        }
        ck_assert_int_eq(nacts(), 0);
        ck_assert_int_eq(failover_wants(&world->f, &world->d), heavy);
        name(true, _i, heavy);
        world_run(3);
        ck_assert_int_eq(world->d.view.primary, heavy);
    }
}
END_TEST

/* He has had his time, another pgpool led for a moment and chose the other one, who is gone as
 * well: he, too, may be about to become the primary. */
START_TEST(test_each_former_choice_is_waited_for)
{
    int heavy = (_i + 2) % NODES;
    int chosen = (_i + 1) % NODES;

    lose(_i, heavy);
    world->server[chosen].alive = false;
    world_run(3);
    name(true, _i, chosen);
    world_run(35);
    ck_assert_int_eq(failover_wants(&world->f, &world->d), heavy);
    name(false, _i, heavy);
    world->server[heavy].alive = false;
    world->server[chosen].alive = true;
    world_run(6);
    name(true, _i, heavy);
    world_run(20);
    ck_assert_int_eq(failover_wants(&world->f, &world->d), VIEW_NO_NODE);
    world_run(15);
    ck_assert_int_eq(failover_wants(&world->f, &world->d), chosen);
}
END_TEST

/* The next monitor of the same pgpool does not know whether its own choice has heard of it. */
START_TEST(test_the_choice_outlives_the_monitor)
{
    int heavy = (_i + 2) % NODES;
    int chosen = (_i + 1) % NODES;

    lose(_i, chosen);
    name(true, _i, VIEW_NO_NODE);
    world_run(2);
    ck_assert_int_eq(failover_wants(&world->f, &world->d), chosen);
    world_monitor_kill();
    world->rules.node[heavy].weight = 3;
    decide_set_rules(&world->d, &world->rules, world->now_us);
    name(true, _i, chosen);
    world_run(5);
    ck_assert_int_eq(world->d.view.primary, chosen);
}
END_TEST

/* The lost one comes back while its place is about to be taken: it takes no writes, which would be
 * lost, until whoever was chosen has had his time. Here another one leads. */
START_TEST(test_who_is_being_replaced_takes_no_writes)
{
    int chosen = (_i + 1) % NODES;
    int shows_up;

    for (shows_up = 0; shows_up < 2; shows_up++) {
        lose(_i, chosen);
        name(false, _i, chosen);
        world_run(1);
        world->server[_i].alive = true;
        world_run(20);
        ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
        ck_assert(!view_can_write(&world->d.view));
        if (shows_up == 1)
            world_promote(chosen);
        world_run(12);
        ck_assert_int_eq(world->d.view.primary, shows_up == 1 ? chosen : _i);
        ck_assert(view_can_write(&world->d.view));
        ck_assert_int_eq(nacts(), 0);
    }
}
END_TEST

/* Also where it was never missed, and where it is heard that nobody takes its place after all. */
START_TEST(test_who_was_not_missed_here_takes_no_writes)
{
    int chosen = (_i + 1) % NODES;
    int is_over;

    for (is_over = 0; is_over < 2; is_over++) {
        world_begin(_i);
        name(false, _i, VIEW_NO_NODE);
        world_run(3);
        ck_assert(view_can_write(&world->d.view));
        name(false, _i, chosen);
        world_run(1);
        ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
        ck_assert(failover_is_timing(&world->d));
        if (is_over == 1)
            name(false, _i, VIEW_NO_NODE);
        else
            world_run(30);
        world_run(1);
        ck_assert_int_eq(world->d.view.primary, _i);
        ck_assert(!failover_is_timing(&world->d));
    }
}
END_TEST

/* A new leader, who has known of the choice for long, waits for whom he cannot ask: meanwhile the
 * lost one is not believed. */
START_TEST(test_a_lost_primary_is_none_while_the_choice_is_waited_for)
{
    int chosen = (_i + 1) % NODES;

    lose(_i, (_i + 2) % NODES);
    world->server[chosen].alive = false;
    name(false, _i, chosen);
    world_run(40);
    name(true, _i, chosen);
    world_run(5);
    world->server[_i].alive = true;
    world_run(20);
    ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
    ck_assert_int_eq(nacts(), 0);
    world_run(10);
    ck_assert_int_eq(world->d.view.primary, _i);
    ck_assert_int_eq(nacts(), 0);
    ck_assert(!failover_is_acting(&world->f, &world->d));
}
END_TEST

/* Its own choice could not be promoted: the lost one is welcome at once. */
START_TEST(test_a_choice_that_failed_bars_nobody)
{
    int heavy = (_i + 2) % NODES;

    lose(_i, heavy);
    world->fail_percent = 100;
    name(true, _i, heavy);
    world_run(1);
    world->server[_i].alive = true;
    world_run(4);
    ck_assert_int_ge(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    if (world->d.view.sw.unsure_us == 0) /* it is not known to have failed */
        ck_assert_int_eq(world->d.view.primary, _i);
}
END_TEST

/* Nobody leads, and this one acts by itself: it knows from the log whom it may have to wait for,
 * and asks nobody whom it may take then. */
START_TEST(test_alone_waits_for_the_former_choice)
{
    int heavy = (_i + 2) % NODES;
    int chosen = (_i + 1) % NODES;
    int16_t candidate[VIEW_MAX_NODES];
    int i;

    for (i = 0; i < VIEW_MAX_NODES; i++)
        candidate[i] = (int16_t)(i == _i ? chosen : VIEW_NO_NODE);
    lose(_i, heavy);
    world->server[chosen].alive = false;
    world_run(3);
    failover_allow_alone(&world->f, candidate);
    world_run(25);
    ck_assert_int_eq(nacts(), 0);
    world_run(10);
    ck_assert_int_eq(nacts(), 1);
    ck_assert_int_eq(world->d.view.primary, heavy);
}
END_TEST

/* The monitor ended when it had decided to run the command, and had not. When the next one may act,
 * the log of all has another choice. */
START_TEST(test_a_command_taken_over_asks_the_log)
{
    int heavy = (_i + 2) % NODES;
    int chosen = (_i + 1) % NODES;

    lose(_i, heavy);
    world->rules.has.failover_command = true;
    decide_set_rules(&world->d, &world->rules, world->now_us);
    name(true, _i, heavy);
    while (world->ncommands == 0)
        world_tick();
    world->deed.is_running = false;
    world->d.view.sw.pid = 0;
    world_monitor_kill();
    name(true, _i, chosen);
    world_run(5);
    ck_assert_int_eq(world->ncommands, 2);
    ck_assert_int_eq(world->d.view.primary, chosen);
}
END_TEST

/* A switchover's order to promote may have been heard, and another pgpool may lead now: nobody is
 * told again, and the old primary writes again when the new one does not come. */
START_TEST(test_a_switchover_taken_over_is_not_ordered_again)
{
    int target = (_i + 1) % NODES;
    int16_t candidate[VIEW_MAX_NODES];
    struct err err = {0};
    int i;

    for (i = 0; i < VIEW_MAX_NODES; i++)
        candidate[i] = VIEW_NO_NODE;
    world_begin(_i);
    failover_allow(&world->f, true, nothing, candidate);
    ck_assert_int_eq(failover_switch(&world->f, &world->d, target, "op", world->now_us, &err), 0);
    while (world->nsteps[FAILOVER_DO_PROMOTE] == 0)
        world_tick();
    world->deed.is_running = false; /* nobody heard of it */
    world_monitor_kill();
    failover_allow(&world->f, true, nothing, candidate);
    world_run(60);
    ck_assert_int_eq(world->nsteps[FAILOVER_DO_PROMOTE], 1);
    ck_assert_int_eq(world->d.view.primary, _i);
    ck_assert(view_can_write(&world->d.view));
    ck_assert(!world->server[_i].fenced);
}
END_TEST

static void agree_lost(int node)
{
    uint64_t lost[2] = {node == VIEW_NO_NODE ? 0 : UINT64_C(1) << node, 0};

    decide_agree_lost(&world->d, lost, world->now_us);
}

/* Most pgpools do not reach a standby: here it is used no more, either, and no vote comes of that;
 * when they reach it again it is used again, whether lost ones come back by themselves or not. */
START_TEST(test_a_standby_that_the_others_miss)
{
    int node = (_i + 1) % NODES;
    int by_itself;

    for (by_itself = 0; by_itself < 2; by_itself++) {
        world_init(_i);
        world->rules.auto_failback = by_itself == 1;
        world_monitor_start();
        failover_allow(&world->f, false, nothing, NULL);
        world_run(3);
        agree_lost(node);
        world_run(10);
        ck_assert_int_eq(world->d.view.node[node].status, VIEW_DOWN);
        ck_assert(!decide_finds_lost(&world->d, node));
        ck_assert(world_told("have agreed that it is lost"));
        ck_assert_int_eq(world->d.view.primary, _i);
        world->server[node].alive = false;
        world_run(3);
        ck_assert(decide_finds_lost(&world->d, node));
        world->server[node].alive = true;
        world_run(3);
        ck_assert_int_eq(world->d.view.node[node].status, VIEW_DOWN);
        agree_lost(VIEW_NO_NODE);
        world_run(3);
        ck_assert_int_eq(world->d.view.node[node].status, VIEW_UP);
    }
}
END_TEST

/* Somebody has to take the place of a primary first; and the last one is better than nothing. */
START_TEST(test_who_is_missed_and_stays)
{
    int node = (_i + 1) % NODES;

    world_begin(_i);
    failover_allow(&world->f, false, nothing, NULL);
    agree_lost(_i);
    world_run(3);
    ck_assert_int_eq(world->d.view.node[_i].status, VIEW_UP);
    ck_assert(view_can_write(&world->d.view));
    agree_lost(node);
    world->server[_i].alive = world->server[(_i + 2) % NODES].alive = false;
    world_run(10);
    ck_assert(view_is_usable(&world->d.view, node));
}
END_TEST

/* A monitor that is begun anew knows of the choice as its predecessor did, before it has heard of
 * the log; and for no longer than it would have waited, should the log not be heard of any more. */
START_TEST(test_who_is_being_replaced_outlives_the_monitor)
{
    int chosen = (_i + 1) % NODES;
    int is_heard;

    for (is_heard = 0; is_heard < 2; is_heard++) {
        lose(_i, chosen);
        name(false, _i, chosen);
        world_run(1);
        world->server[_i].alive = true;
        world_run(5);
        ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
        world_monitor_kill();
        failover_allow(&world->f, false, nothing, NULL);
        world_run(3);
        ck_assert_int_eq(world->d.view.primary, VIEW_NO_NODE);
        if (is_heard == 1)
            name(false, _i, VIEW_NO_NODE);
        world_run(is_heard == 1 ? 2 : 32);
        ck_assert_int_eq(world->d.view.primary, _i);
        ck_assert(view_can_write(&world->d.view));
    }
}
END_TEST

/* The clock is set back when nothing is waited for here, and a choice is known from long ago. */
START_TEST(test_a_clock_that_is_set_back_bars_nobody)
{
    int chosen = (_i + 1) % NODES;

    world_begin(_i);
    name(false, _i, chosen);
    world_run(40);
    ck_assert_int_eq(world->d.view.primary, _i);
    ck_assert(!failover_is_timing(&world->d));
    world->now_us -= 600 * SECOND_US;
    world_run(40);
    ck_assert_int_eq(world->d.view.primary, _i);
    world->now_us += 560 * SECOND_US; /* when it was, once more */
    world_run(40);
    ck_assert_int_eq(world->d.view.primary, _i);
    ck_assert(view_can_write(&world->d.view));
}
END_TEST

/* A monitor that is begun anew does not take for its own finding what others had found. */
START_TEST(test_who_is_missed_outlives_the_monitor)
{
    int node = (_i + 1) % NODES;

    world_init(_i);
    world->rules.auto_failback = false;
    world_monitor_start();
    failover_allow(&world->f, false, nothing, NULL);
    world_run(3);
    agree_lost(node);
    world_run(3);
    ck_assert_int_eq(world->d.view.node[node].status, VIEW_DOWN);
    world_monitor_kill();
    failover_allow(&world->f, false, nothing, NULL);
    ck_assert(!decide_finds_lost(&world->d, node));
    agree_lost(node);
    world_run(3);
    ck_assert_int_eq(world->d.view.node[node].status, VIEW_DOWN);
    ck_assert(!decide_finds_lost(&world->d, node));
    agree_lost(VIEW_NO_NODE);
    world_run(3);
    ck_assert_int_eq(world->d.view.node[node].status, VIEW_UP);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("failover_word");
    TCase *t = tcase_create("log");

    tcase_add_checked_fixture(t, world_setup, world_teardown);
    tcase_add_loop_test(t, test_taken_up_from_the_log, 0, NODES);
    tcase_add_loop_test(t, test_comes_back_meanwhile, 0, NODES);
    tcase_add_loop_test(t, test_left_alone, 0, NODES);
    tcase_add_loop_test(t, test_nobody_on_an_older_timeline, 0, NODES);
    tcase_add_loop_test(t, test_command_is_run_once, 0, NODES);
    tcase_add_loop_test(t, test_given_up_stays_so, 0, NODES);
    tcase_add_loop_test(t, test_killed_amid_it, 0, NODES);
    tcase_add_loop_test(t, test_the_log_says_who_first, 0, NODES);
    tcase_add_loop_test(t, test_the_former_choice_is_told, 0, NODES);
    tcase_add_loop_test(t, test_the_former_choice_is_waited_for, 0, NODES);
    tcase_add_loop_test(t, test_each_former_choice_is_waited_for, 0, NODES);
    tcase_add_loop_test(t, test_the_choice_outlives_the_monitor, 0, NODES);
    tcase_add_loop_test(t, test_who_is_being_replaced_takes_no_writes, 0, NODES);
    tcase_add_loop_test(t, test_who_was_not_missed_here_takes_no_writes, 0, NODES);
    tcase_add_loop_test(t, test_a_lost_primary_is_none_while_the_choice_is_waited_for, 0, NODES);
    tcase_add_loop_test(t, test_a_choice_that_failed_bars_nobody, 0, NODES);
    tcase_add_loop_test(t, test_alone_waits_for_the_former_choice, 0, NODES);
    tcase_add_loop_test(t, test_a_command_taken_over_asks_the_log, 0, NODES);
    tcase_add_loop_test(t, test_a_switchover_taken_over_is_not_ordered_again, 0, NODES);
    tcase_add_loop_test(t, test_a_standby_that_the_others_miss, 0, NODES);
    tcase_add_loop_test(t, test_who_is_missed_and_stays, 0, NODES);
    tcase_add_loop_test(t, test_who_is_being_replaced_outlives_the_monitor, 0, NODES);
    tcase_add_loop_test(t, test_a_clock_that_is_set_back_bars_nobody, 0, NODES);
    tcase_add_loop_test(t, test_who_is_missed_outlives_the_monitor, 0, NODES);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return run_suite(make_suite());
}
