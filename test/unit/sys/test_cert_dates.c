/* SPDX-License-Identifier: PostgreSQL
 * test_cert_dates.c: when certificates that expire are told of. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "process/common/cert_dates.h"
#include "run_suite.h"

#define DAY_S INT64_C(86400)
#define NOW_S (1000 * DAY_S)

/* Told of 14 days before, then daily, and at once when it has expired. */
START_TEST(told_of_once_a_day_from_two_weeks_before)
{
    struct cert_date c = {.expires_s = NOW_S};
    struct cert_dates d = {.n = 1, .row = {&c}};

    ck_assert_int_eq(cert_date_due_s(&c), NOW_S - 14 * DAY_S);
    ck_assert_int_eq(cert_dates_wait_s(&d, NOW_S - 100 * DAY_S), DAY_S);
    ck_assert_int_eq(cert_dates_wait_s(&d, NOW_S - 14 * DAY_S - 7), 7);
    ck_assert_int_eq(cert_dates_wait_s(&d, NOW_S - 3 * DAY_S), 0);
    c.told_s = NOW_S - 3 * DAY_S;
    ck_assert_int_eq(cert_date_due_s(&c), NOW_S - 2 * DAY_S);
    ck_assert_int_eq(cert_dates_wait_s(&d, NOW_S - 3 * DAY_S + 1), DAY_S - 1);
    c.told_s = NOW_S - 5;
    ck_assert_int_eq(cert_date_due_s(&c), NOW_S);
    c.told_s = NOW_S;
    ck_assert_int_eq(cert_date_due_s(&c), NOW_S + DAY_S);
    ck_assert_int_eq(cert_dates_wait_s(&d, NOW_S - 50 * DAY_S), DAY_S); /* the clock was set back */
}
END_TEST

START_TEST(the_first_one_counts)
{
    struct cert_date late = {.expires_s = NOW_S + 40 * DAY_S};
    struct cert_date soon = {.expires_s = NOW_S + 14 * DAY_S + 60};
    struct cert_dates d = {.n = 2, .row = {&late, &soon}};
    struct cert_dates none = {0};

    ck_assert_ptr_eq(cert_dates_first(&d), &soon);
    ck_assert_ptr_null(cert_dates_first(&none));
    ck_assert_int_eq(cert_dates_wait_s(&d, NOW_S), 60);
    ck_assert_int_eq(cert_dates_wait_s(&none, NOW_S), DAY_S);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cert_dates");
    TCase *t = tcase_create("cert_dates");

    tcase_add_test(t, told_of_once_a_day_from_two_weeks_before);
    tcase_add_test(t, the_first_one_counts);
    suite_add_tcase(s, t);
    return run_suite(s);
}
