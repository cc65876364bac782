/* SPDX-License-Identifier: PostgreSQL
 * check.h: stands in for that of Check where configure has not found it: what is written with it is
 * compiled to programs that say that they are left out, and why. Nothing of a test is run. */
#ifndef PGP_TEST_WITHOUT_CHECK_H
#define PGP_TEST_WITHOUT_CHECK_H

#include <stdio.h>
#include <stdlib.h>

/* What is there for an assertion alone is used by nobody. */
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-function"

/* Status of a program that `make check` counts as skipped. */
#define WITHOUT_CHECK_SKIPPED 77

typedef int Suite;
typedef int TCase;
typedef int SRunner;
typedef void (*SFun)(void);

#define CK_ENV    0
#define CK_NORMAL 0

#define START_TEST(name) static void name(int _i __attribute__((unused)))
#define END_TEST

#define WITHOUT_CHECK_TWO(a, b)   ((void)(a), (void)(b))
#define ck_assert(a)              ((void)(a))
#define ck_assert_msg(a, ...)     ((void)(a))
#define ck_assert_ptr_null(a)     ((void)(a))
#define ck_assert_ptr_nonnull(a)  ((void)(a))
#define ck_assert_mem_eq(a, b, n) ((void)(a), (void)(b), (void)(n))
#define ck_assert_mem_ne(a, b, n) ((void)(a), (void)(b), (void)(n))
#define ck_assert_int_eq(a, b)    WITHOUT_CHECK_TWO(a, b)
#define ck_assert_int_ne(a, b)    WITHOUT_CHECK_TWO(a, b)
#define ck_assert_int_gt(a, b)    WITHOUT_CHECK_TWO(a, b)
#define ck_assert_int_ge(a, b)    WITHOUT_CHECK_TWO(a, b)
#define ck_assert_int_lt(a, b)    WITHOUT_CHECK_TWO(a, b)
#define ck_assert_int_le(a, b)    WITHOUT_CHECK_TWO(a, b)
#define ck_assert_uint_eq(a, b)   WITHOUT_CHECK_TWO(a, b)
#define ck_assert_uint_ne(a, b)   WITHOUT_CHECK_TWO(a, b)
#define ck_assert_uint_gt(a, b)   WITHOUT_CHECK_TWO(a, b)
#define ck_assert_uint_ge(a, b)   WITHOUT_CHECK_TWO(a, b)
#define ck_assert_uint_lt(a, b)   WITHOUT_CHECK_TWO(a, b)
#define ck_assert_uint_le(a, b)   WITHOUT_CHECK_TWO(a, b)
#define ck_assert_double_eq(a, b) WITHOUT_CHECK_TWO(a, b)
#define ck_assert_str_eq(a, b)    WITHOUT_CHECK_TWO(a, b)
#define ck_assert_str_ne(a, b)    WITHOUT_CHECK_TWO(a, b)
#define ck_assert_ptr_eq(a, b)    WITHOUT_CHECK_TWO(a, b)
#define ck_assert_ptr_ne(a, b)    WITHOUT_CHECK_TWO(a, b)
#define ck_abort_msg(...)         abort()

#define suite_create(name)                    ((Suite *)NULL)
#define suite_add_tcase(suite, tc)            WITHOUT_CHECK_TWO(suite, tc)
#define tcase_create(name)                    ((TCase *)NULL)
#define tcase_add_test(tc, test)              WITHOUT_CHECK_TWO(tc, test)
#define tcase_add_loop_test(tc, test, a, b)   ((void)(tc), (void)(test), (void)(a), (void)(b))
#define tcase_add_checked_fixture(tc, a, b)   ((void)(tc), (void)(a), (void)(b))
#define tcase_add_unchecked_fixture(tc, a, b) ((void)(tc), (void)(a), (void)(b))
#define tcase_set_timeout(tc, seconds)        WITHOUT_CHECK_TWO(tc, seconds)
#define srunner_run_all(runner, mode)         WITHOUT_CHECK_TWO(runner, mode)
#define srunner_ntests_failed(runner)         ((void)(runner), 0)
#define srunner_free(runner)                  ((void)(runner))

static inline SRunner *srunner_create(const Suite *suite)
{
    (void)suite;
    puts("left out: this test needs Check (Debian: check), which configure has not found");
    exit(WITHOUT_CHECK_SKIPPED);
}

#endif
