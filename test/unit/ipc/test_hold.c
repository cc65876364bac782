/* SPDX-License-Identifier: PostgreSQL
 * test_hold.c: who is held, and who is at work. */
#include "config.h"

#include <check.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/hold.h"

#include "run_suite.h"

#define NWORKERS 3
#define SLOT     4

static struct shm *shm;

static void setup(void)
{
    struct shm_plan plan = {{0}};
    struct err err = {0};

    plan.bytes[SHM_HOLD] = hold_region_bytes(NWORKERS);
    shm = shm_new(&plan, &err);
    ck_assert_ptr_nonnull(shm);
    hold_region_init(shm, NWORKERS);
}

static void teardown(void)
{
    shm_free(&shm);
}

START_TEST(who_is_at_work_is_counted)
{
    ck_assert(!hold_is_on(shm));
    ck_assert(hold_enter(shm, 0));
    ck_assert(hold_enter(shm, 2));
    hold_begin(shm, SLOT);
    ck_assert(hold_is_on(shm));
    ck_assert_int_eq(hold_count(shm), 2);
    ck_assert(!hold_enter(shm, 1));
    ck_assert_int_eq(hold_count(shm), 2);
    hold_join(shm, 2); /* what goes on in any case */
    hold_leave(shm, 0);
    ck_assert_int_eq(hold_count(shm), 2);
    hold_leave(shm, 2);
    hold_leave(shm, 2);
    ck_assert_int_eq(hold_count(shm), 0);
    hold_end(shm, SLOT);
    ck_assert(hold_enter(shm, 1));
}
END_TEST

START_TEST(the_dead_hold_nobody_and_do_nothing)
{
    ck_assert(hold_enter(shm, 1));
    ck_assert(hold_enter(shm, 1));
    hold_begin(shm, SLOT);
    hold_reclaim_worker(shm, 1);
    ck_assert_int_eq(hold_count(shm), 0);
    ck_assert(!hold_reclaim(shm, SLOT + 1));
    ck_assert(hold_is_on(shm));
    ck_assert(hold_reclaim(shm, SLOT));
    ck_assert(!hold_is_on(shm));
    ck_assert(!hold_reclaim(shm, SLOT));
    hold_begin(shm, SLOT + 1);
    hold_end(shm, SLOT); /* another's */
    ck_assert(hold_is_on(shm));
}
END_TEST

START_TEST(who_is_ahead_outlives_the_dead)
{
    hold_ahead(shm, 1, 2);
    hold_ahead(shm, 1, 2);
    hold_ahead_over(shm, 1);
    ck_assert_int_eq(hold_left_ahead(shm), -1);
    hold_reclaim_worker(shm, 0); /* another one */
    ck_assert_int_eq(hold_left_ahead(shm), -1);
    hold_reclaim_worker(shm, 1);
    ck_assert_int_eq(hold_left_ahead(shm), 2);
    ck_assert_int_eq(hold_take_ahead(shm), 2);
    ck_assert_int_eq(hold_take_ahead(shm), -1);
    hold_ahead(shm, 1, 0);
    hold_ahead_over(shm, 1);
    hold_reclaim_worker(shm, 1);
    ck_assert_int_eq(hold_left_ahead(shm), -1);
}
END_TEST

/* A worker that begins and ends without a pause is never at work when nobody is counted. */
START_TEST(nobody_slips_through)
{
    _Atomic int *at_work =
        mmap(NULL, sizeof *at_work, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid[NWORKERS];
    int round;
    int i;

    ck_assert_ptr_ne(at_work, MAP_FAILED);
    for (i = 0; i < NWORKERS; i++) {
        pid[i] = fork();
        while (pid[i] == 0) {
            if (!hold_enter(shm, i)) {
                sched_yield();
                continue;
            }
            atomic_fetch_add(at_work, 1);
            atomic_fetch_sub(at_work, 1);
            hold_leave(shm, i);
        }
    }
    for (round = 0; round < 30; round++) {
        hold_begin(shm, SLOT);
        while (hold_count(shm) != 0)
            sched_yield();
        for (i = 0; i < 1000; i++)
            ck_assert_int_eq(atomic_load(at_work), 0);
        hold_end(shm, SLOT);
    }
    for (i = 0; i < NWORKERS; i++) {
        kill(pid[i], SIGKILL);
        (void)waitpid(pid[i], NULL, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hold");
    TCase *tc = tcase_create("hold");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, who_is_at_work_is_counted);
    tcase_add_test(tc, the_dead_hold_nobody_and_do_nothing);
    tcase_add_test(tc, who_is_ahead_outlives_the_dead);
    tcase_add_test(tc, nobody_slips_through);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
