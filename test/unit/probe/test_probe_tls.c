/* SPDX-License-Identifier: PostgreSQL
 * test_probe_tls.c: what libpq is told about TLS, and which failures leave a way without it. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "probe/probe_tls.h"
#include "probe_int.h"
#include "run_suite.h"

START_TEST(prefer_is_two_attempts)
{
    ck_assert_str_eq(probe_tls_word("prefer", "", false), "require");
    ck_assert_str_eq(probe_tls_word("prefer", "ca.crt", false), "verify-ca");
    ck_assert_str_eq(probe_tls_word("prefer", "ca.crt", true), "disable");
}
END_TEST

START_TEST(a_known_authority_is_asked_in_every_mode_with_tls)
{
    ck_assert_str_eq(probe_tls_word("require", "ca.crt", false), "verify-ca");
    ck_assert_str_eq(probe_tls_word("require", "", false), "require");
    ck_assert_str_eq(probe_tls_word("verify-full", "ca.crt", false), "verify-full");
    ck_assert_str_eq(probe_tls_word("disable", "ca.crt", false), "disable");
    ck_assert_str_eq(probe_tls_word("allow", "ca.crt", false), "allow");
}
END_TEST

START_TEST(harmless_failures)
{
    static const char *const texts[] = {
        "server \"127.0.0.1\": server does not support SSL, but SSL was required\n",
        "server \"certificate.example\": SSL error: tlsv1 alert protocol version\n",
        "SSL SYSCALL error: EOF detected\n",
    };
    size_t i;

    for (i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(probe_tls_failed_harmlessly(texts[i]), "%s", texts[i]);
}
END_TEST

START_TEST(other_failures_leave_no_way)
{
    static const char *const texts[] = {
        "server \"127.0.0.1\": SSL error: certificate verify failed\n",
        "root certificate file \"ca.crt\" does not exist\nEither provide the file.\n",
        "could not read root certificate file \"ca.crt\": no start line\n",
        "could not read certificate file \"own.crt\": no start line\n",
        "private key file \"own.key\" has group or world access\n",
        "received invalid response to SSL negotiation: X\n", "words of another version\n", ""};
    size_t i;

    for (i = 0; i < sizeof texts / sizeof texts[0]; i++)
        ck_assert_msg(!probe_tls_failed_harmlessly(texts[i]), "%s", texts[i]);
}
END_TEST

START_TEST(a_target_is_copied_whole)
{
    char text[] = "before";
    struct probe_target from = {.host = text,
        .user = text,
        .password = text,
        .database = text,
        .sslmode = text,
        .sslrootcert = text,
        .sslcrl = text,
        .sslcert = text,
        .sslkey = text,
        .ssl_min = text,
        .port = 5432,
        .keep_open = true};
    struct probe_target to;

    probe_target_copy(&to, &from);
    text[0] = 'X';
    ck_assert_str_eq(to.host, "before");
    ck_assert_str_eq(to.user, "before");
    ck_assert_str_eq(to.password, "before");
    ck_assert_str_eq(to.database, "before");
    ck_assert_str_eq(to.sslmode, "before");
    ck_assert_str_eq(to.sslrootcert, "before");
    ck_assert_str_eq(to.sslcrl, "before");
    ck_assert_str_eq(to.sslcert, "before");
    ck_assert_str_eq(to.sslkey, "before");
    ck_assert_str_eq(to.ssl_min, "before");
    ck_assert(to.port == 5432 && to.keep_open);
    probe_target_free(&to);
    ck_assert_ptr_null(to.host);
    probe_target_free(&to);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("probe_tls");
    TCase *t = tcase_create("probe_tls");

    tcase_add_test(t, prefer_is_two_attempts);
    tcase_add_test(t, a_known_authority_is_asked_in_every_mode_with_tls);
    tcase_add_test(t, harmless_failures);
    tcase_add_test(t, other_failures_leave_no_way);
    tcase_add_test(t, a_target_is_copied_whole);
    suite_add_tcase(s, t);
    return run_suite(s);
}
