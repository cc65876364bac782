/* SPDX-License-Identifier: PostgreSQL
 * test_histogram.c: buckets are exact and close, quantiles are those of the values counted. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "base/histogram.h"

#include "run_suite.h"

static struct histogram h;
static struct histogram_sum sum;

static void setup(void)
{
    h = (struct histogram){0};
    sum = (struct histogram_sum){0};
}

START_TEST(buckets_follow_each_other)
{
    unsigned b;

    for (b = 0; b < HISTOGRAM_BUCKETS; b++) {
        ck_assert_uint_eq(histogram_bucket(histogram_bucket_start(b)), b);
        ck_assert_uint_eq(histogram_bucket(histogram_bucket_start(b + 1) - 1), b);
        /* No bucket is wider than a sixteenth of what is in it. */
        ck_assert(histogram_bucket_start(b + 1) - histogram_bucket_start(b) <=
                  1 + histogram_bucket_start(b) / HISTOGRAM_SUB);
    }
    ck_assert_int_eq(histogram_bucket_start(HISTOGRAM_BUCKETS), INT64_C(1) << HISTOGRAM_MAX_BITS);
}
END_TEST

START_TEST(values_out_of_range_are_kept_at_the_ends)
{
    ck_assert_uint_eq(histogram_bucket(-1), 0);
    ck_assert_uint_eq(histogram_bucket(INT64_MIN), 0);
    ck_assert_uint_eq(histogram_bucket(INT64_C(1) << HISTOGRAM_MAX_BITS), HISTOGRAM_BUCKETS - 1);
    ck_assert_uint_eq(histogram_bucket(INT64_MAX), HISTOGRAM_BUCKETS - 1);
    histogram_add(&h, INT64_MAX);
    histogram_sum_add(&sum, &h);
    ck_assert_uint_eq(sum.n, 1);
    ck_assert_int_ge(histogram_quantile(&sum, 500), histogram_bucket_start(HISTOGRAM_BUCKETS - 1));
}
END_TEST

START_TEST(nothing_counted_is_zero)
{
    histogram_sum_add(&sum, &h);
    ck_assert_int_eq(histogram_quantile(&sum, 500), 0);
    ck_assert_int_eq(histogram_quantile(&sum, 999), 0);
}
END_TEST

START_TEST(small_values_are_exact)
{
    int i;

    for (i = 0; i < 16; i++)
        histogram_add(&h, i);
    histogram_sum_add(&sum, &h);
    ck_assert_int_eq(histogram_quantile(&sum, 0), 0);
    ck_assert_int_eq(histogram_quantile(&sum, 500), 7);
    ck_assert_int_eq(histogram_quantile(&sum, 501), 8);
    ck_assert_int_eq(histogram_quantile(&sum, 1000), 15);
}
END_TEST

/* The nearest rank: with 1000 values the 99.9th percentile is the 999th, not the largest. */
START_TEST(the_rank_is_exact)
{
    int i;

    for (i = 0; i < 999; i++)
        histogram_add(&h, 1);
    histogram_add(&h, 10);
    histogram_sum_add(&sum, &h);
    ck_assert_int_eq(histogram_quantile(&sum, 999), 1);
    ck_assert_int_eq(histogram_quantile(&sum, 1000), 10);
    histogram_add(&h, 10);
    sum = (struct histogram_sum){0};
    histogram_sum_add(&sum, &h);
    ck_assert_int_eq(histogram_quantile(&sum, 999), 10);
}
END_TEST

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Against a sorted list, over many orders of magnitude, from several histograms. */
START_TEST(quantiles_are_close)
{
    enum { N = 20000 };
    static int64_t value[N];
    static const unsigned parts[] = {1, 100, 500, 900, 990, 999, 1000};
    struct histogram other = {0};
    int64_t exact;
    int64_t got;
    size_t q;
    int i;

    srandom(7);
    for (i = 0; i < N; i++) {
        value[i] = random() >> (random() % 31);
        histogram_add(i % 3 == 0 ? &other : &h, value[i]);
    }
    histogram_sum_add(&sum, &h);
    histogram_sum_add(&sum, &other);
    ck_assert_uint_eq(sum.n, N);
    qsort(value, N, sizeof value[0], compare);
    for (q = 0; q < sizeof parts / sizeof parts[0]; q++) {
        exact = value[(N * (int64_t)parts[q] + 999) / 1000 - 1];
        got = histogram_quantile(&sum, parts[q]);
        ck_assert_int_le(llabs(got - exact), 1 + exact / 16);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("histogram");
    TCase *t = tcase_create("histogram");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, buckets_follow_each_other);
    tcase_add_test(t, values_out_of_range_are_kept_at_the_ends);
    tcase_add_test(t, nothing_counted_is_zero);
    tcase_add_test(t, small_values_are_exact);
    tcase_add_test(t, the_rank_is_exact);
    tcase_add_test(t, quantiles_are_close);
    suite_add_tcase(s, t);
    return run_suite(s);
}
