/* SPDX-License-Identifier: PostgreSQL
 * test_stmtstats.c: figures per statement in shared memory: bounded, added up, reset, kept when a
 * worker is replaced. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "ipc/stmtstats.h"

#include "run_suite.h"

#define NWORKERS 2
#define MAX      4

static struct shm *shm;
static struct err err;
static struct stmtstats_book *book[NWORKERS];

static void setup(void)
{
    struct shm_plan plan = {{0}};
    int i;

    err_clear(&err);
    plan.bytes[SHM_STMTSTATS] = stmtstats_region_bytes(NWORKERS, MAX);
    shm = shm_new(&plan, &err);
    ck_assert_ptr_nonnull(shm);
    stmtstats_region_init(shm, NWORKERS, MAX);
    for (i = 0; i < NWORKERS; i++)
        book[i] = stmtstats_open(shm, i);
}

static void teardown(void)
{
    int i;

    for (i = 0; i < NWORKERS; i++)
        stmtstats_close(&book[i]);
    shm_free(&shm);
}

/* Statement `n` of the database "d", run once on `node` by a worker whose seed is `seed`. */
static void run_with(int worker, uint64_t n, int node, int64_t took_us, uint64_t seed)
{
    struct stmtstats_key key = {n + seed, n * 7 + seed, "d", node};
    struct stmtstats_use use = {.calls = 1, .nrows = 2, .nerrors = n == 3, .took_us = took_us};
    stmtstats_handle h = stmtstats_find(book[worker], &key);
    char text[32];

    snprintf(text, sizeof text, "select %d", (int)n);
    if (h == 0)
        h = stmtstats_add(book[worker], &key, n, slice_of_str("d"), slice_of_str(text));
    stmtstats_count(book[worker], h, &use);
}

static void run(int worker, uint64_t n, int node, int64_t took_us)
{
    run_with(worker, n, node, took_us, 0);
}

/* The sum of the rows of statement `n`, 0 for that of all others. */
static struct stmtstats_sum sum_of(uint64_t n)
{
    struct stmtstats_sum sum = {0};
    struct stmtstats_sum row;
    uint32_t at = 0;

    while (stmtstats_next(shm, &at, &row))
        if (row.fingerprint == n)
            stmtstats_sum_add(&sum, &row);
    return sum;
}

static uint64_t calls_in_all(void)
{
    struct stmtstats_sum row;
    uint64_t calls = 0;
    uint32_t at = 0;

    while (stmtstats_next(shm, &at, &row))
        calls += row.calls;
    return calls;
}

START_TEST(workers_are_added_up)
{
    struct stmtstats_sum sum;

    run(0, 1, 0, 100);
    run(1, 1, 0, 300);
    run(1, 3, 1, 50);
    sum = sum_of(1);
    ck_assert_uint_eq(sum.calls, 2);
    ck_assert_uint_eq(sum.nrows, 4);
    ck_assert_uint_eq(sum.total_us, 400);
    ck_assert_uint_eq(sum.max_us, 300);
    ck_assert_uint_eq(sum.nerrors, 0);
    ck_assert_uint_eq(sum_of(3).nerrors, 1);
    ck_assert_uint_eq(calls_in_all(), 3);
}
END_TEST

START_TEST(nodes_and_databases_are_apart)
{
    struct stmtstats_key other = {1, 7, "e", 0};

    run(0, 1, 0, 1);
    run(0, 1, 1, 1);
    ck_assert_uint_eq(stmtstats_find(book[0], &other), 0);
    ck_assert_uint_eq(sum_of(1).calls, 2);
}
END_TEST

/* Those that are used stay; what others did is not lost. */
START_TEST(there_is_an_end_of_room)
{
    uint64_t n;

    for (n = 10; n < 60; n++) {
        run(0, 1, 0, 10);
        run(0, 2, 0, 10);
        run(0, n, 0, 10);
    }
    ck_assert_uint_eq(sum_of(1).calls, 50);
    ck_assert_uint_eq(sum_of(2).calls, 50);
    ck_assert_uint_eq(sum_of(59).calls, 1);
    ck_assert_uint_eq(sum_of(10).calls, 0);
    ck_assert_uint_eq(sum_of(0).calls, 48);
    ck_assert_uint_eq(sum_of(0).nrows, 96);
    ck_assert_uint_eq(calls_in_all(), 150);
}
END_TEST

START_TEST(a_handle_that_has_gone_counts_for_the_others)
{
    struct stmtstats_key key = {1, 7, "d", 0};
    struct stmtstats_use use = {.calls = 1, .took_us = 5};
    stmtstats_handle h;
    uint64_t n;

    run(0, 1, 0, 10);
    h = stmtstats_find(book[0], &key);
    ck_assert_uint_ne(h, 0);
    for (n = 10; n < 30; n++)
        run(0, n, 0, 10);
    ck_assert_uint_eq(stmtstats_find(book[0], &key), 0);
    n = sum_of(0).calls;
    stmtstats_count(book[0], h, &use);
    stmtstats_count(book[0], 0, &use);
    ck_assert_uint_eq(sum_of(0).calls, n + 2);
}
END_TEST

START_TEST(a_reset_holds_at_once)
{
    run(0, 1, 0, 10);
    run(1, 1, 0, 10);
    stmtstats_reset(shm);
    ck_assert_uint_eq(calls_in_all(), 0);
    run(1, 2, 0, 10);
    ck_assert_uint_eq(calls_in_all(), 1);
    run(0, 1, 0, 10);
    ck_assert_uint_eq(sum_of(1).calls, 1);
    ck_assert_uint_eq(calls_in_all(), 2);
}
END_TEST

/* A successor has another seed. */
START_TEST(a_new_worker_goes_on)
{
    uint64_t n;

    run(0, 1, 0, 10);
    run(0, 2, 0, 10);
    run(0, 2, 1, 10);
    stmtstats_close(&book[0]);
    book[0] = stmtstats_open(shm, 0);
    ck_assert_uint_eq(calls_in_all(), 3);
    run_with(0, 2, 1, 10, 99);
    ck_assert_uint_eq(sum_of(2).calls, 3);
    for (n = 10; n < 20; n++)
        run_with(0, n, 0, 10, 99);
    ck_assert_uint_eq(calls_in_all(), 14);
    ck_assert_uint_eq(sum_of(1).calls, 0);
}
END_TEST

START_TEST(quantiles)
{
    struct stmtstats_sum sum;
    int i;

    for (i = 0; i < 990; i++)
        run(0, 1, 0, 1000);
    for (i = 0; i < 10; i++)
        run(0, 1, 0, 100000);
    sum = sum_of(1);
    ck_assert_int_ge(stmtstats_quantile(&sum, 990), 875);
    ck_assert_int_le(stmtstats_quantile(&sum, 990), 1125);
    ck_assert_int_ge(stmtstats_quantile(&sum, 999), 87500);
    ck_assert_int_le(stmtstats_quantile(&sum, 999), 100000);
}
END_TEST

/* They are no calls, and count for the others when their statement has gone. */
START_TEST(hits_of_the_cache)
{
    struct stmtstats_key key = {1, 7, "d", 0};

    run(0, 1, 0, 10);
    stmtstats_count_hit(book[0], stmtstats_find(book[0], &key));
    stmtstats_count_hit(book[0], 0);
    ck_assert_uint_eq(sum_of(1).hits, 1);
    ck_assert_uint_eq(sum_of(1).calls, 1);
    ck_assert_uint_eq(sum_of(0).hits, 1);
    ck_assert_uint_eq(sum_of(0).calls, 0);
    stmtstats_reset(shm);
    ck_assert_uint_eq(sum_of(1).hits, 0);
}
END_TEST

START_TEST(no_room_at_all)
{
    ck_assert_uint_eq(stmtstats_region_bytes(NWORKERS, 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stmtstats");
    TCase *t = tcase_create("stmtstats");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, workers_are_added_up);
    tcase_add_test(t, nodes_and_databases_are_apart);
    tcase_add_test(t, there_is_an_end_of_room);
    tcase_add_test(t, a_handle_that_has_gone_counts_for_the_others);
    tcase_add_test(t, a_reset_holds_at_once);
    tcase_add_test(t, a_new_worker_goes_on);
    tcase_add_test(t, quantiles);
    tcase_add_test(t, hits_of_the_cache);
    tcase_add_test(t, no_room_at_all);
    suite_add_tcase(suite, t);
    return run_suite(suite);
}
