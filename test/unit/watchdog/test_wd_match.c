/* SPDX-License-Identifier: PostgreSQL
 * test_wd_match.c: what a follower may claim to have of its leader's log. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "process/watchdog/wd_match.h"

#include "run_suite.h"

static struct wd_match m;

static void setup(void)
{
    m = (struct wd_match){0};
}

/* A message that libraft answers at once. */
static uint64_t answered(uint64_t term, uint64_t prev, uint64_t n, uint64_t rejected, uint64_t last)
{
    uint64_t claim;

    wd_match_begin(&m, term, prev, n);
    claim = wd_match_claim(&m, term, rejected, last);
    wd_match_end(&m);
    return claim;
}

/* A message whose entries are written; the answer comes later. */
static void written(uint64_t term, uint64_t prev, uint64_t n)
{
    wd_match_begin(&m, term, prev, n);
    wd_match_appends(&m);
    wd_match_end(&m);
}

START_TEST(test_an_entry_of_a_former_leader_is_not_claimed)
{
    written(3, 9, 1); /* entry 10, of term 3 */
    ck_assert_uint_eq(wd_match_claim(&m, 3, 0, 10), 10);
    ck_assert_uint_eq(answered(4, 9, 0, 0, 10), 9); /* another leader's empty message */
    written(4, 9, 1);                               /* its own entry 10 replaces it */
    ck_assert_uint_eq(wd_match_claim(&m, 4, 0, 9), 9);
    ck_assert_uint_eq(wd_match_claim(&m, 4, 0, 10), 10);
}
END_TEST

START_TEST(test_what_is_not_written_yet_is_not_claimed)
{
    written(1, 0, 5);
    ck_assert_uint_eq(answered(1, 5, 0, 0, 3), 3);
    ck_assert_uint_eq(answered(1, 5, 0, 0, 5), 5);
}
END_TEST

START_TEST(test_what_was_there_already_counts)
{
    ck_assert_uint_eq(answered(2, 4, 3, 0, 9), 7);
}
END_TEST

START_TEST(test_a_rejection_says_what_it_says)
{
    ck_assert_uint_eq(answered(2, 7, 1, 7, 4), 4);
    ck_assert_uint_eq(wd_match_claim(&m, 2, 0, 4), 0);
}
END_TEST

START_TEST(test_a_message_without_an_answer_proves_nothing)
{
    wd_match_begin(&m, 2, 7, 1);
    wd_match_end(&m);
    ck_assert_uint_eq(wd_match_claim(&m, 2, 0, 8), 0);
}
END_TEST

START_TEST(test_another_term_proves_nothing)
{
    written(2, 0, 5);
    ck_assert_uint_eq(wd_match_claim(&m, 3, 0, 5), 0);
    ck_assert_uint_eq(answered(1, 5, 4, 9, 5), 5); /* of a former leader */
    ck_assert_uint_eq(wd_match_claim(&m, 2, 0, 9), 5);
}
END_TEST

/* libraft writes on its own account when it leads. */
START_TEST(test_its_own_entries_prove_nothing)
{
    wd_match_appends(&m);
    ck_assert_uint_eq(m.index, 0);
}
END_TEST

START_TEST(test_a_snapshot_was_agreed_on)
{
    wd_match_snapshot(&m, 5, 12);
    ck_assert_uint_eq(wd_match_claim(&m, 5, 0, 15), 12);
    wd_match_snapshot(&m, 4, 20);
    ck_assert_uint_eq(wd_match_claim(&m, 5, 0, 15), 12);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wd_match");
    TCase *t = tcase_create("claims");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, test_an_entry_of_a_former_leader_is_not_claimed);
    tcase_add_test(t, test_what_is_not_written_yet_is_not_claimed);
    tcase_add_test(t, test_what_was_there_already_counts);
    tcase_add_test(t, test_a_rejection_says_what_it_says);
    tcase_add_test(t, test_a_message_without_an_answer_proves_nothing);
    tcase_add_test(t, test_another_term_proves_nothing);
    tcase_add_test(t, test_its_own_entries_prove_nothing);
    tcase_add_test(t, test_a_snapshot_was_agreed_on);
    suite_add_tcase(s, t);
    return run_suite(s);
}
