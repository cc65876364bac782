/* SPDX-License-Identifier: PostgreSQL
 * test_accept.c: connections are taken, not while it is stopped, and without descriptors it waits
 * instead of spinning. */
#include "config.h"

#include <check.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "net/accept.h"

#include "run_suite.h"

#define NLISTEN 2

static struct {
    struct loop loop;
    struct acceptors acceptors;
    int fd[NLISTEN];
    int ntaken[NLISTEN];
    bool stops; /* the callee stops it */
} fx;

static void on_accepted(
    struct acceptors *a, int i, int fd, const struct sockaddr_storage *from, socklen_t len)
{
    ck_assert_ptr_eq(a, &fx.acceptors);
    ck_assert_int_eq(from->ss_family, AF_INET);
    ck_assert_uint_eq(len, sizeof(struct sockaddr_in));
    fx.ntaken[i]++;
    close(fd);
    if (fx.stops)
        acceptors_stop(a);
}

static void setup(void)
{
    static const struct acceptors_how how = {
        .fn = on_accepted, .complaint = "could not", .per_turn = 4, .events = IO_READ};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int i;

    memset(&fx, 0, sizeof fx);
    loop_init(&fx.loop);
    for (i = 0; i < NLISTEN; i++) {
        fx.fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(bind(fx.fd[i], (struct sockaddr *)&at, sizeof at), 0);
        ck_assert_int_eq(listen(fx.fd[i], 16), 0);
    }
    acceptors_open(&fx.acceptors, &fx.loop, fx.fd, NLISTEN, &how);
}

static void teardown(void)
{
    int i;

    acceptors_close(&fx.acceptors);
    loop_fini(&fx.loop);
    for (i = 0; i < NLISTEN; i++)
        close(fx.fd[i]);
}

/* A connection to the socket at place `i`; a busy kernel may hand it over a moment later. */
static int call(int i)
{
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(getsockname(fx.fd[i], (struct sockaddr *)&at, &len), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, len), 0);
    return fd;
}

static void turns(int n)
{
    while (n-- > 0)
        loop_poll(&fx.loop);
}

/* Until so many connections have been taken; then some more turns. */
static void turns_until(int ntaken)
{
    int i;

    for (i = 0; fx.ntaken[0] + fx.ntaken[1] < ntaken && i < 10000; i++) {
        loop_poll(&fx.loop);
        usleep(1000); /* ban: time passes for the kernel */
    }
    turns(5);
}

START_TEST(test_takes)
{
    int a = call(0);
    int b = call(1);
    int c = call(1);

    turns(3);
    ck_assert_int_eq(fx.ntaken[0] + fx.ntaken[1], 0);
    acceptors_start(&fx.acceptors);
    acceptors_start(&fx.acceptors);
    turns_until(3);
    ck_assert_int_eq(fx.ntaken[0], 1);
    ck_assert_int_eq(fx.ntaken[1], 2);
    close(a);
    close(b);
    close(c);
}
END_TEST

START_TEST(test_the_callee_stops_it)
{
    int a = call(1);
    int b = call(1);

    fx.stops = true;
    acceptors_start(&fx.acceptors);
    turns_until(1);
    ck_assert_int_eq(fx.ntaken[1], 1);
    acceptors_start(&fx.acceptors);
    turns_until(2);
    ck_assert_int_eq(fx.ntaken[1], 2);
    close(a);
    close(b);
}
END_TEST

/* Takes connections until there are no descriptors, and goes on when there are some again. */
START_TEST(test_waits_for_descriptors)
{
    struct rlimit before;
    struct rlimit none;
    int a = call(0);
    int i;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    acceptors_start(&fx.acceptors);
    for (i = 0; !timer_is_armed(&fx.acceptors.retry) && i < 10000; i++) {
        usleep(1000); /* ban: time passes for the kernel */
        loop_poll(&fx.loop);
    }
    ck_assert(timer_is_armed(&fx.acceptors.retry));
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    turns(100); /* the socket is readable all the time: nobody looks, before the pause is over */
    ck_assert(fx.ntaken[0] == 0 || !timer_is_armed(&fx.acceptors.retry));
    for (i = 0; fx.ntaken[0] == 0 && i < 10000; i++) {
        usleep(1000); /* ban: time passes for the timer that is tested */
        loop_poll(&fx.loop);
    }
    ck_assert_int_eq(fx.ntaken[0], 1);
    acceptors_stop(&fx.acceptors);
    ck_assert(!timer_is_armed(&fx.acceptors.retry));
    close(a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("accept");
    TCase *tc = tcase_create("accept");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_takes);
    tcase_add_test(tc, test_the_callee_stops_it);
    tcase_add_test(tc, test_waits_for_descriptors);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
