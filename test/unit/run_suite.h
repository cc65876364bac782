/* SPDX-License-Identifier: PostgreSQL
 * run_suite.h: how a unit test program ends: its suite is run, as the CK_ variables of the
 * environment say, and the exit status tells whether anything failed. */
#ifndef PGP_TEST_RUN_SUITE_H
#define PGP_TEST_RUN_SUITE_H

#include <check.h>
#include <stdlib.h>

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
