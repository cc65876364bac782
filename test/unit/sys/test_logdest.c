/* SPDX-License-Identifier: PostgreSQL
 * test_logdest.c: events go to the logger's socket whole, and a logger that does not read delays
 * nobody for long and loses nothing silently. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "sys/clock.h"
#include "sys/logdest.h"

#include "run_suite.h"

static int ends[2];

static void setup(void)
{
    struct logdest_opts opts = {.to_stderr = true, .syslog_ident = "pgpool"};

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    log_set_process("child", "x");
    logdest_configure(&opts);
    log_configure("%a ", LVL_LOG, LOG_DEFAULT);
    logdest_set_collector(ends[1]);
}

static void teardown(void)
{
    logdest_set_collector(-1);
    close(ends[0]);
    close(ends[1]);
}

static void expect_packet(const char *want)
{
    char text[4096];
    ssize_t n = recv(ends[0], text, sizeof text - 1, MSG_DONTWAIT);

    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    ck_assert_str_eq(text, want);
}

START_TEST(one_event_is_one_packet)
{
    log_at_detail(LVL_LOG, "d", "h", "text");
    log_at(LVL_LOG, "next");
    expect_packet("child LOG:  text\nchild DETAIL:  d\nchild HINT:  h\n");
    expect_packet("child LOG:  next\n");
}
END_TEST

START_TEST(slow_logger_is_waited_for_once)
{
    static char big[1000];
    int64_t begin_us = clock_mono_us();
    char text[4096];
    ssize_t n;
    int i;
    int told = 0;

    memset(big, 'b', sizeof big - 1);
    for (i = 0; i < 5000; i++)
        log_at(LVL_LOG, "%s", big);
    /* Not 5000 times 200 ms; a busy machine takes its time. */
    ck_assert_int_lt(clock_mono_us() - begin_us, 40 * CLOCK_US_PER_S);
    ck_assert_uint_gt(logdest_lost(), 0);
    while ((n = recv(ends[0], text, sizeof text - 1, MSG_DONTWAIT)) > 0)
        continue;
    log_at(LVL_LOG, "after");
    while ((n = recv(ends[0], text, sizeof text - 1, MSG_DONTWAIT)) > 0) {
        text[n] = '\0';
        told += strstr(text, "lost") != NULL;
    }
    ck_assert_int_eq(told, 1);
}
END_TEST

/* Without a logger's socket the event goes to standard error. */
START_TEST(gone_logger_means_standard_error)
{
    int err_ends[2];
    char text[256];
    ssize_t n;

    ck_assert_int_eq(pipe(err_ends), 0);
    ck_assert_int_eq(dup2(err_ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[0]);
    ends[0] = -1;
    log_at(LVL_LOG, "heard");
    n = read(err_ends[0], text, sizeof text - 1);
    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    ck_assert_str_eq(text, "child LOG:  heard\n");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("logdest");
    TCase *t = tcase_create("logdest");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, one_event_is_one_packet);
    tcase_add_test(t, slow_logger_is_waited_for_once);
    tcase_add_test(t, gone_logger_means_standard_error);
    suite_add_tcase(s, t);
    return run_suite(s);
}
