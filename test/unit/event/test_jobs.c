/* SPDX-License-Identifier: PostgreSQL
 * test_jobs.c: work on threads: each job is done once and wiped once, a thread stays for the next
 * one, and what runs while its owner goes, or all of it, ends unseen. */
#include "config.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/mem.h"
#include "event/jobs.h"
#include "event/loop.h"

#include "run_suite.h"

/* More than there are threads. */
#define MANY 400

struct work {
    struct job job;
    bool waits; /* until the gate is open */
};

static struct {
    struct loop loop;
    struct jobs *jobs;
    _Atomic unsigned nworked;
    _Atomic unsigned nwiped;
    unsigned ndone;
    pthread_mutex_t gate;
    _Atomic unsigned nthreads;
} fx;

static _Thread_local bool is_known_thread;

static void work(struct job *job)
{
    struct work *w = LIST_ENTRY(job, struct work, job);

    if (!is_known_thread)
        atomic_fetch_add(&fx.nthreads, 1);
    is_known_thread = true;
    if (w->waits) {
        pthread_mutex_lock(&fx.gate);
        pthread_mutex_unlock(&fx.gate);
    }
    atomic_fetch_add(&fx.nworked, 1);
}

static void done(struct job *job)
{
    ck_assert_ptr_eq(job->owner, &fx);
    fx.ndone++;
}

static void wipe(struct job *job)
{
    (void)job;
    atomic_fetch_add(&fx.nwiped, 1);
}

static struct job *start(bool waits, bool computes)
{
    struct work *w = mem_alloc_secret(sizeof *w);

    w->waits = waits;
    w->job.owner = &fx;
    w->job.computes = computes;
    w->job.work = work;
    w->job.done = done;
    w->job.wipe = wipe;
    job_start(fx.jobs, &w->job);
    return &w->job;
}

static void setup(void)
{
    fx.nworked = fx.nwiped = fx.nthreads = 0;
    fx.ndone = 0;
    pthread_mutex_init(&fx.gate, NULL);
    loop_init(&fx.loop);
    fx.jobs = jobs_new(&fx.loop);
}

static void teardown(void)
{
    jobs_free(&fx.jobs);
    loop_fini(&fx.loop);
}

static void run_until(unsigned n)
{
    while (fx.ndone < n)
        loop_poll(&fx.loop);
}

START_TEST(test_each_is_done_once)
{
    int i;

    pthread_mutex_lock(&fx.gate);
    for (i = 0; i < MANY; i++)
        (void)start(i % 3 != 0, i % 2 != 0);
    pthread_mutex_unlock(&fx.gate);
    run_until(MANY);
    loop_poll(&fx.loop);
    ck_assert_uint_eq(fx.ndone, MANY);
    ck_assert_uint_eq(atomic_load(&fx.nworked), MANY);
    ck_assert_uint_eq(atomic_load(&fx.nwiped), MANY);
    ck_assert_uint_le(atomic_load(&fx.nthreads), MANY);
}
END_TEST

START_TEST(test_a_thread_stays_for_the_next)
{
    unsigned i;

    for (i = 1; i <= 50; i++) {
        (void)start(false, false);
        run_until(i);
    }
    ck_assert_uint_eq(atomic_load(&fx.nthreads), 1);
    (void)start(false, true); /* those that compute have their own */
    run_until(51);
    ck_assert_uint_eq(atomic_load(&fx.nthreads), 2);
}
END_TEST

START_TEST(test_one_whose_owner_goes_is_wiped_and_not_done)
{
    struct job *job;

    (void)start(false, false);
    run_until(1);
    pthread_mutex_lock(&fx.gate);
    job = start(true, false);
    job_leave(&job);
    ck_assert_ptr_null(job);
    (void)start(false, false); /* which does not wait for the other */
    run_until(2);
    pthread_mutex_unlock(&fx.gate);
    while (atomic_load(&fx.nwiped) < 3)
        loop_poll(&fx.loop);
    ck_assert_uint_eq(fx.ndone, 2);
}
END_TEST

START_TEST(test_all_end_while_some_run_and_some_are_idle)
{
    int i;

    (void)start(false, false);
    run_until(1);
    pthread_mutex_lock(&fx.gate);
    for (i = 0; i < MANY; i++)
        (void)start(true, i % 2 != 0);
    jobs_free(&fx.jobs);
    loop_poll(&fx.loop);
    pthread_mutex_unlock(&fx.gate);
    while (atomic_load(&fx.nwiped) < MANY + 1) /* by the threads */
        loop_poll(&fx.loop);
    ck_assert_uint_eq(fx.ndone, 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("jobs");
    TCase *tc = tcase_create("threads");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_each_is_done_once);
    tcase_add_test(tc, test_a_thread_stays_for_the_next);
    tcase_add_test(tc, test_one_whose_owner_goes_is_wiped_and_not_done);
    tcase_add_test(tc, test_all_end_while_some_run_and_some_are_idle);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
