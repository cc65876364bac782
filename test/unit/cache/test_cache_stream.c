/* SPDX-License-Identifier: PostgreSQL
 * test_cache_stream.c: for which databases results may be used: the lease, and who ends it. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "cache/cache_stream.h"
#include "sys/clock.h"

#include "run_suite.h"

#define NOW_US INT64_C(5000000)

static struct shm *shm;
static struct cache_streams *streams;

static void make(void)
{
    struct shm_plan plan = {{0}};
    struct err err = {0};

    plan.bytes[SHM_CACHE_STREAMS] = cache_streams_bytes();
    shm = shm_new(&plan, &err);
    ck_assert_ptr_nonnull(shm);
    streams = cache_streams_of(shm);
}

static void unmake(void)
{
    shm_free(&shm);
}

START_TEST(a_name_has_one_number)
{
    char name[32];
    int i;

    ck_assert_int_eq(cache_stream_find(streams, slice_of_str("")), CACHE_STREAM_NONE);
    ck_assert_int_eq(cache_stream_find(streams, slice_of("0123456789012345678901234567890123456789"
                                                         "012345678901234567890123456789",
                                                    CACHE_STREAM_BYTES)),
        CACHE_STREAM_NONE);
    for (i = 0; i < CACHE_STREAM_MAX; i++) {
        snprintf(name, sizeof name, "db%d", i);
        ck_assert_int_eq(cache_stream_find(streams, slice_of_str(name)), i);
    }
    ck_assert_int_eq(cache_stream_find(streams, slice_of_str("one more")), CACHE_STREAM_NONE);
    ck_assert_int_eq(cache_stream_find(streams, slice_of_str("db7")), 7);
    ck_assert(!cache_stream_is_good(streams, CACHE_STREAM_NONE, NOW_US));
}
END_TEST

START_TEST(good_as_long_as_the_lease)
{
    int n = cache_stream_find(streams, slice_of_str("db"));

    ck_assert(!cache_stream_is_good(streams, n, NOW_US));
    cache_stream_lease(streams, n, NOW_US + 10);
    ck_assert(cache_stream_is_good(streams, n, NOW_US));
    ck_assert(cache_stream_is_good(streams, n, NOW_US + 9));
    ck_assert(!cache_stream_is_good(streams, n, NOW_US + 10));
    cache_stream_lease(streams, n, 0);
    ck_assert(!cache_stream_is_good(streams, n, NOW_US));
}
END_TEST

START_TEST(who_asks_is_noted_once_in_a_second)
{
    int n = cache_stream_find(streams, slice_of_str("db"));

    ck_assert_int_eq(cache_stream_asked_us(streams, n), 0);
    (void)cache_stream_is_good(streams, n, NOW_US);
    ck_assert_int_eq(cache_stream_asked_us(streams, n), NOW_US);
    (void)cache_stream_is_good(streams, n, NOW_US + 10);
    ck_assert_int_eq(cache_stream_asked_us(streams, n), NOW_US);
    (void)cache_stream_is_good(streams, n, NOW_US + 2 * CLOCK_US_PER_S);
    ck_assert_int_eq(cache_stream_asked_us(streams, n), NOW_US + 2 * CLOCK_US_PER_S);
    (void)cache_stream_shows_good(streams, n);
    ck_assert_int_eq(cache_stream_asked_us(streams, n), NOW_US + 2 * CLOCK_US_PER_S);
}
END_TEST

/* `statement` needs no invalidator. */
START_TEST(a_dead_one_takes_its_leases_along)
{
    int streamed = cache_stream_find(streams, slice_of_str("streamed"));
    int by_statement = cache_stream_find(streams, slice_of_str("by_statement"));

    cache_stream_lease(streams, streamed, NOW_US + 10);
    cache_stream_lease(streams, by_statement, INT64_MAX);
    cache_streams_died(shm);
    ck_assert(!cache_stream_is_good(streams, streamed, NOW_US));
    ck_assert(cache_stream_is_good(streams, by_statement, NOW_US));
}
END_TEST

START_TEST(a_database_is_let_go)
{
    int n = cache_stream_find(streams, slice_of_str("db"));

    cache_stream_lease(streams, n, INT64_MAX);
    cache_stream_let_go(streams, slice_of_str("other"), NOW_US);
    ck_assert(cache_stream_is_good(streams, n, NOW_US));
    cache_stream_let_go(streams, slice_of_str("db"), NOW_US);
    ck_assert(!cache_stream_is_good(streams, n, NOW_US));
    ck_assert_int_gt(cache_stream_leave_until_us(streams, n), NOW_US);
    ck_assert_int_eq(cache_stream_find(streams, slice_of_str("other")), 1);
    cache_stream_let_go(NULL, slice_of_str("db"), NOW_US);
}
END_TEST

START_TEST(what_is_told_is_told_whole)
{
    struct cache_stream_row row = {.state = CACHE_STREAM_LATE, .lsn = 7, .why = "because"};
    struct cache_stream_row out;
    char name[CACHE_STREAM_BYTES];
    int n = cache_stream_find(streams, slice_of_str("db"));

    ck_assert(!cache_stream_row(streams, n + 1, name, &out));
    ck_assert(!cache_stream_row(streams, -1, name, &out));
    cache_stream_publish(streams, n, &row);
    ck_assert(cache_stream_row(streams, n, name, &out));
    ck_assert_str_eq(name, "db");
    ck_assert_uint_eq(out.lsn, 7);
    ck_assert_str_eq(out.why, "because");
    ck_assert_str_eq(cache_stream_state_text((enum cache_stream_state)out.state), "late");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cache_stream");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, make, unmake);
    tcase_add_test(tc, a_name_has_one_number);
    tcase_add_test(tc, good_as_long_as_the_lease);
    tcase_add_test(tc, who_asks_is_noted_once_in_a_second);
    tcase_add_test(tc, a_dead_one_takes_its_leases_along);
    tcase_add_test(tc, a_database_is_let_go);
    tcase_add_test(tc, what_is_told_is_told_whole);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
