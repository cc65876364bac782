/* SPDX-License-Identifier: PostgreSQL
 * test_loop.c: timers of the event loop: none fires early, none is forgotten, and a loop with
 * nothing to do sleeps until the next of them. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "event/loop.h"

#include "run_suite.h"

#define NTIMERS 3

struct fixture {
    struct loop loop;
    struct timer timer[NTIMERS];
    int64_t fired_us[NTIMERS]; /* 0: not yet */
    int left;                  /* until the loop is stopped */
};

static struct fixture fx;

static void on_timer(struct timer *t)
{
    fx.fired_us[t - fx.timer] = loop_now_us(&fx.loop);
    if (--fx.left == 0)
        loop_stop(&fx.loop);
}

/* Starts the next one. */
static void on_chained(struct timer *t)
{
    on_timer(t);
    timer_start(&fx.loop, &fx.timer[1], 60);
}

static void setup(void)
{
    int i;

    memset(&fx, 0, sizeof fx);
    loop_init(&fx.loop);
    for (i = 0; i < NTIMERS; i++)
        timer_init(&fx.timer[i], on_timer);
}

static void teardown(void)
{
    loop_fini(&fx.loop);
}

/* How long `i` took since `start_us`, in ms. */
static int took_ms(int i, int64_t start_us)
{
    ck_assert_int_ne(fx.fired_us[i], 0);
    return (int)((fx.fired_us[i] - start_us) / 1000);
}

START_TEST(test_earlier_ones_come_first)
{
    int64_t start_us = loop_now_us(&fx.loop);

    timer_start(&fx.loop, &fx.timer[0], 60000);
    timer_start(&fx.loop, &fx.timer[1], 200);
    timer_start(&fx.loop, &fx.timer[2], 60);
    fx.left = 2;
    loop_run(&fx.loop);
    ck_assert_int_ge(took_ms(2, start_us), 60);
    ck_assert_int_ge(took_ms(1, start_us), 200);
    ck_assert_int_ge(fx.fired_us[1], fx.fired_us[2]); /* in one turn when the machine stood still */
    ck_assert_int_eq(fx.fired_us[0], 0);
    ck_assert(timer_is_armed(&fx.timer[0]));
    timer_stop(&fx.loop, &fx.timer[0]);
}
END_TEST

START_TEST(test_it_sleeps_until_the_next)
{
    int64_t start_us = loop_now_us(&fx.loop);
    uint32_t tick;

    timer_start(&fx.loop, &fx.timer[0], 30000);
    timer_start(&fx.loop, &fx.timer[1], 10);
    fx.left = 1;
    loop_run(&fx.loop);
    ck_assert_uint_eq(fx.loop.wake_tick, fx.timer[0].due_tick);
    ck_assert_int_gt(loop_due_us(&fx.loop) - start_us, 28000000);
    timer_start(&fx.loop, &fx.timer[1], 1000);
    tick = fx.timer[1].due_tick;
    ck_assert_uint_eq(fx.loop.wake_tick, tick);
    timer_start(&fx.loop, &fx.timer[2], 5000); /* later than what is waited for */
    ck_assert_uint_eq(fx.loop.wake_tick, tick);
}
END_TEST

/* More than a round of the wheel away: it is looked at in vain, once a round. */
START_TEST(test_far_away)
{
    timer_start(&fx.loop, &fx.timer[0], (int64_t)LOOP_WHEEL_SLOTS * LOOP_TICK_MS * 3 + 1000);
    timer_start(&fx.loop, &fx.timer[1], 10);
    fx.left = 1;
    loop_run(&fx.loop);
    ck_assert_int_eq(fx.fired_us[0], 0);
    ck_assert_uint_le(fx.loop.wake_tick - fx.loop.now_tick, LOOP_WHEEL_SLOTS);
    ck_assert_uint_eq(
        fx.loop.wake_tick % LOOP_WHEEL_SLOTS, fx.timer[0].due_tick % LOOP_WHEEL_SLOTS);
}
END_TEST

START_TEST(test_started_from_a_timer)
{
    int64_t start_us = loop_now_us(&fx.loop);

    fx.timer[0].fn = on_chained;
    timer_start(&fx.loop, &fx.timer[0], 10);
    fx.left = 2;
    loop_run(&fx.loop);
    ck_assert_int_ge(took_ms(1, start_us) - took_ms(0, start_us), 60);
}
END_TEST

/* The process was stopped for a while. */
/* A turn that takes long is told to who wants to know. */
static void on_slow(struct timer *t)
{
    struct timespec begun;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &begun);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < 60);
    on_timer(t);
}

START_TEST(test_a_slow_turn_is_noted)
{
    struct loop_stalls stalls = {0};

    fx.loop.stalls = &stalls;
    timer_init(&fx.timer[0], on_slow);
    timer_start(&fx.loop, &fx.timer[0], 10);
    fx.left = 1;
    loop_run(&fx.loop);
    ck_assert_uint_ge(stalls.n, 1);
    ck_assert_uint_ge(stalls.max_us, 40000);
    ck_assert_uint_ge(stalls.sum_us, stalls.max_us);
}
END_TEST

static uint64_t sampled(const struct loop_stalls *s)
{
    uint64_t n = 0;
    int i;

    for (i = 0; i <= LOOP_TURN_LIMITS; i++)
        n += s->turn[i];
    return n;
}

/* Short turns are measured, too: the first one, and then one of many. */
START_TEST(test_turns_are_sampled)
{
    struct loop_stalls stalls = {0};
    uint64_t before_us = uv_hrtime() / 1000;
    int i;

    fx.loop.stalls = &stalls;
    loop_poll(&fx.loop);
    ck_assert_uint_eq(sampled(&stalls), 1);
    for (i = 0; i < 6100; i++)
        loop_poll(&fx.loop);
    ck_assert_uint_eq(sampled(&stalls), 101);
    ck_assert_uint_le(stalls.turns_us, uv_hrtime() / 1000 - before_us);
    ck_assert_uint_gt(stalls.turn[0], 0);
}
END_TEST

/* One that takes long is counted where it belongs. */
START_TEST(test_a_long_turn_is_sampled)
{
    struct loop_stalls stalls = {0};
    int k;

    fx.loop.stalls = &stalls;
    timer_init(&fx.timer[0], on_slow);
    timer_start(&fx.loop, &fx.timer[0], 10);
    fx.left = 1;
    for (k = 0; fx.left > 0; k++) {
        fx.loop.unsampled = 0;
        loop_poll(&fx.loop);
    }
    ck_assert_uint_eq(sampled(&stalls), (uint64_t)k);
    ck_assert_uint_ge(stalls.turn[LOOP_TURN_LIMITS - 1] + stalls.turn[LOOP_TURN_LIMITS], 1);
    ck_assert_uint_ge(stalls.turns_us, 60000);
}
END_TEST

START_TEST(test_late)
{
    uint64_t until_ns = uv_hrtime() + 400000000;

    timer_start(&fx.loop, &fx.timer[0], 20);
    timer_start(&fx.loop, &fx.timer[1], 150);
    timer_start(&fx.loop, &fx.timer[2], 60000);
    while (uv_hrtime() < until_ns)
        ;
    fx.left = 2;
    loop_run(&fx.loop);
    ck_assert_int_eq(fx.fired_us[0], fx.fired_us[1]);
    ck_assert_int_eq(fx.fired_us[2], 0);
}
END_TEST

START_TEST(test_stopped)
{
    timer_start(&fx.loop, &fx.timer[0], 10);
    timer_start(&fx.loop, &fx.timer[1], 120);
    timer_stop(&fx.loop, &fx.timer[0]);
    timer_stop(&fx.loop, &fx.timer[0]);
    fx.left = 1;
    loop_run(&fx.loop);
    ck_assert_int_eq(fx.fired_us[0], 0);
    ck_assert_int_ne(fx.fired_us[1], 0);
    ck_assert_uint_eq(fx.loop.ntimers, 0);
    ck_assert_int_eq(loop_due_us(&fx.loop), INT64_MAX);
}
END_TEST

/* It stands still within a turn, and is as fine as the clock: time-outs and figures are taken from
 * the same one. */
START_TEST(test_one_clock)
{
    int64_t start_us = loop_now_us(&fx.loop);
    int64_t before_us = start_us;
    uint64_t until_ns = uv_hrtime() + 5000000;
    int nfine = 0;
    int n;

    for (n = 0; n < 20 || uv_hrtime() < until_ns; n++) {
        ck_assert_int_eq(loop_now_us(&fx.loop), before_us);
        loop_poll(&fx.loop);
        ck_assert_int_ge(loop_now_us(&fx.loop), before_us);
        before_us = loop_now_us(&fx.loop);
        nfine += before_us % 1000 != 0;
    }
    loop_poll(&fx.loop);
    ck_assert_int_gt(nfine, 0);
    ck_assert_int_ge(loop_now_us(&fx.loop) - start_us, 5000);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("loop");
    TCase *tc = tcase_create("timers");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_earlier_ones_come_first);
    tcase_add_test(tc, test_it_sleeps_until_the_next);
    tcase_add_test(tc, test_far_away);
    tcase_add_test(tc, test_started_from_a_timer);
    tcase_add_test(tc, test_a_slow_turn_is_noted);
    tcase_add_test(tc, test_turns_are_sampled);
    tcase_add_test(tc, test_a_long_turn_is_sampled);
    tcase_add_test(tc, test_late);
    tcase_add_test(tc, test_stopped);
    tcase_add_test(tc, test_one_clock);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
