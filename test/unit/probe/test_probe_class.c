/* SPDX-License-Identifier: PostgreSQL
 * test_probe_class.c: what libpq's texts say about a server, in any language. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "probe_int.h"
#include "run_suite.h"

START_TEST(sqlstate_is_found)
{
    char state[6];

    ck_assert(probe_class_find_sqlstate("connection to server at \"127.0.0.1\", port 5432 failed: "
                                        "FATAL:  28P01: password authentication failed for user "
                                        "\"x\"\nLOCATION:  auth_failed, auth.c:337\n",
        state));
    ck_assert_str_eq(state, "28P01");
    ck_assert(probe_class_find_sqlstate("FATAL:  53300: sorry, too many clients already", state));
    ck_assert_str_eq(state, "53300");
    ck_assert(probe_class_find_sqlstate(
        "connection to server at \"::1\", port 1 failed: Connection refused\n"
        "connection to server at \"127.0.0.1\", port 1 failed: SCHWERWIEGEND:  57P03: Datenbank "
        "startet",
        state));
    ck_assert_str_eq(state, "57P03");
}
END_TEST

START_TEST(silence_has_none)
{
    static const char *const texts[] = {
        "connection to server at \"127.0.0.1\", port 1 failed: Connection refused\n",
        "could not receive data from server: Connection reset by peer",
        "server closed the connection unexpectedly\n\tThis probably means the server terminated",
        "LOCATION:  auth_failed, auth.c:337", "", ":  ", ":  1234", ":  abcde: x"};
    char state[6];
    size_t i;

    for (i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(!probe_class_find_sqlstate(texts[i], state), "%s", texts[i]);
}
END_TEST

START_TEST(refusals_are_answers)
{
    ck_assert_int_eq(probe_class_of_sqlstate("57P03"), PROBE_BUSY);
    ck_assert_int_eq(probe_class_of_sqlstate("53300"), PROBE_ALIVE);
    ck_assert_int_eq(probe_class_of_sqlstate("57P01"), PROBE_ALIVE);
    ck_assert_int_eq(probe_class_of_sqlstate("28000"), PROBE_ALIVE);
}
END_TEST

START_TEST(lines_are_cut)
{
    char text[8];

    probe_class_copy_line("one\ntwo", text, sizeof text);
    ck_assert_str_eq(text, "one");
    probe_class_copy_line("a long line", text, sizeof text);
    ck_assert_str_eq(text, "a long ");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("probe_class");
    TCase *t = tcase_create("probe_class");

    tcase_add_test(t, sqlstate_is_found);
    tcase_add_test(t, silence_has_none);
    tcase_add_test(t, refusals_are_answers);
    tcase_add_test(t, lines_are_cut);
    suite_add_tcase(s, t);
    return run_suite(s);
}
