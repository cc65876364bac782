/* SPDX-License-Identifier: PostgreSQL
 * test_stream.c: what is kept for the end of a turn arrives, in order, before anything else that is
 * done to its stream, and for everybody; sockets are closed behind it. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/stream.h"

#include "run_suite.h"

#define NPEERS 100
#define LONG   200000

struct peer {
    struct stream stream;
    int fd; /* of the other side */
};

static struct {
    struct loop loop;
    struct peer peers[NPEERS];
    struct stream other_side; /* of the first, in the same loop */
    struct task work;
    void (*act)(void);
    char got[LONG + 1];
} fx;

static void on_readable(struct stream *s)
{
    char junk[64];

    if (stream_recv(s, junk, sizeof junk) == -1)
        stream_pause(s);
}

static void on_nothing(struct stream *s)
{
}

static const struct stream_ops ops = {
    .on_readable = on_readable, .on_drained = on_nothing, .on_closed = on_nothing};

static void on_work(struct task *t)
{
    fx.act();
}

static void setup(void)
{
    int fd[2];
    int i;

    memset(&fx, 0, sizeof fx);
    signal(SIGPIPE, SIG_IGN);
    loop_init(&fx.loop);
    stream_later_init(&fx.loop);
    task_init(&fx.work, on_work);
    for (i = 0; i < NPEERS; i++) {
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
        fx.peers[i].fd = fd[1];
        stream_open(&fx.loop, &fx.peers[i].stream, fd[0], &ops);
    }
}

static void teardown(void)
{
    int i;

    for (i = 0; i < NPEERS; i++) {
        stream_close(&fx.peers[i].stream);
        if (fx.peers[i].fd != -1)
            close(fx.peers[i].fd);
    }
    stream_later_fini(&fx.loop);
    loop_fini(&fx.loop);
}

static void later(int i, const char *text)
{
    ck_assert_int_eq(stream_send_later(&fx.peers[i].stream, text, strlen(text)), 0);
}

/* What has come, as a string; "" when there is nothing. */
static const char *come(int i)
{
    ssize_t n = recv(fx.peers[i].fd, fx.got, sizeof fx.got - 1, 0);

    fx.got[n > 0 ? n : 0] = '\0';
    return fx.got;
}

static void in_a_turn(void (*act)(void))
{
    fx.act = act;
    task_post(&fx.loop, &fx.work);
    loop_poll(&fx.loop);
}

static void tell_two(void)
{
    later(0, "a");
    later(1, "b");
    later(0, "c");
    later(0, "d");
    ck_assert_str_eq(come(0), "");
    ck_assert_str_eq(come(1), "");
}

START_TEST(test_it_goes_at_the_end_of_the_turn)
{
    in_a_turn(tell_two);
    ck_assert_str_eq(come(0), "acd");
    ck_assert_str_eq(come(1), "b");
    loop_poll(&fx.loop);
    ck_assert_str_eq(come(0), "");
}
END_TEST

static void tell_and_send(void)
{
    later(0, "a");
    later(1, "b");
    ck_assert_int_eq(stream_send(&fx.peers[0].stream, "now", 3), 0);
    ck_assert_str_eq(come(0), "anow");
    later(0, "z");
}

START_TEST(test_what_is_sent_at_once_comes_behind_it)
{
    in_a_turn(tell_and_send);
    ck_assert_str_eq(come(0), "z");
    ck_assert_str_eq(come(1), "b");
}
END_TEST

static void tell_and_close(void)
{
    later(0, "a");
    later(1, "b");
    stream_close(&fx.peers[0].stream);
}

START_TEST(test_who_is_closed_has_it)
{
    in_a_turn(tell_and_close);
    ck_assert_str_eq(come(0), "a");
    ck_assert_int_eq((int)recv(fx.peers[0].fd, fx.got, 1, 0), 0);
    ck_assert_str_eq(come(1), "b");
}
END_TEST

static void tell_and_release(void)
{
    later(0, "a");
    close(stream_release_fd(&fx.peers[0].stream));
}

START_TEST(test_who_goes_elsewhere_has_it)
{
    in_a_turn(tell_and_release);
    ck_assert_str_eq(come(0), "a");
}
END_TEST

static void tell_and_ask(void)
{
    later(0, "a");
    ck_assert(!stream_lags(&fx.peers[0].stream));
    ck_assert(!stream_is_clogged(&fx.peers[0].stream));
    ck_assert_str_eq(come(0), "a");
}

START_TEST(test_who_asks_whether_all_is_sent_sends_it)
{
    in_a_turn(tell_and_ask);
    ck_assert_str_eq(come(0), "");
}
END_TEST

static void tell_one_that_is_gone(void)
{
    later(0, "a");
    close(fx.peers[1].fd);
    fx.peers[1].fd = -1;
    later(1, "b");
    later(2, "c");
}

START_TEST(test_one_that_is_gone_does_not_hinder_the_others)
{
    in_a_turn(tell_one_that_is_gone);
    ck_assert_str_eq(come(0), "a");
    ck_assert_str_eq(come(2), "c");
    ck_assert(stream_has_failed(&fx.peers[1].stream));
    ck_assert_int_eq(stream_send_later(&fx.peers[1].stream, "d", 1), -1);
}
END_TEST

/* Nothing has come for it, nor the end. */
static bool hears_nothing(int i)
{
    char c;

    return recv(fx.peers[i].fd, &c, 1, MSG_PEEK) == -1 && errno == EAGAIN;
}

static bool hears_the_end(int i)
{
    char c;

    return recv(fx.peers[i].fd, &c, 1, MSG_PEEK) == 0;
}

static void send_ahead(void)
{
    later(1, "b");
    ck_assert_int_eq(stream_send_ahead(&fx.peers[0].stream, "a", 1), 0);
    ck_assert_str_eq(come(0), "a");
    ck_assert(hears_nothing(1));
    later(0, "c");
    ck_assert_int_eq(stream_send_ahead(&fx.peers[0].stream, "d", 1), 0);
    ck_assert_str_eq(come(0), "cd");
    stream_close(&fx.peers[2].stream);
    ck_assert_int_eq(stream_send_ahead(&fx.peers[2].stream, "e", 1), -1);
}

START_TEST(test_what_is_sent_ahead_passes_others_alone)
{
    in_a_turn(send_ahead);
    ck_assert_str_eq(come(0), "");
    ck_assert_str_eq(come(1), "b");
    ck_assert(hears_the_end(2));
}
END_TEST

static void close_and_tell(void)
{
    stream_close(&fx.peers[0].stream);
    ck_assert_int_eq(stream_fd(&fx.peers[0].stream), -1);
    later(1, "b");
    ck_assert(hears_nothing(0));
    ck_assert(hears_nothing(1));
}

START_TEST(test_sockets_are_closed_at_the_end_of_the_turn)
{
    in_a_turn(close_and_tell);
    ck_assert(hears_the_end(0));
    ck_assert_str_eq(come(1), "b");
}
END_TEST

static void tell_and_close_all(void)
{
    int i;

    for (i = 0; i < NPEERS; i++) {
        later(i, "a");
        stream_close(&fx.peers[i].stream);
    }
}

START_TEST(test_more_than_can_be_closed_later)
{
    int i;

    in_a_turn(tell_and_close_all);
    for (i = 0; i < NPEERS; i++) {
        ck_assert_str_eq(come(i), "a");
        ck_assert(hears_the_end(i));
    }
}
END_TEST

/* The process ends: no turn comes that would close them. */
START_TEST(test_the_end_closes_them)
{
    stream_close(&fx.peers[0].stream);
    ck_assert(hears_nothing(0));
    stream_later_fini(&fx.loop);
    ck_assert(hears_the_end(0));
    stream_close(&fx.peers[1].stream);
    ck_assert(hears_the_end(1));
    stream_later_init(&fx.loop);
}
END_TEST

static void tell_all_much(void)
{
    char text[1001];
    int i;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (i = 0; i < NPEERS; i++) {
        text[0] = (char)('0' + i % 10);
        later(i, text);
    }
}

START_TEST(test_more_than_can_be_kept)
{
    int i;

    in_a_turn(tell_all_much);
    for (i = 0; i < NPEERS; i++) {
        ck_assert_uint_eq(strlen(come(i)), 1000);
        ck_assert_int_eq(fx.got[0], '0' + i % 10);
    }
}
END_TEST

/* More than the socket takes, behind what was kept. */
static void tell_long(void)
{
    char *text = mem_alloc(LONG);
    int size = 4096;

    memset(text, 'x', LONG);
    ck_assert_int_eq(
        setsockopt(stream_fd(&fx.peers[0].stream), SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
    later(0, "a");
    ck_assert_int_eq(stream_send_later(&fx.peers[0].stream, text, LONG), STREAM_CLOGGED);
    ck_assert(stream_lags(&fx.peers[0].stream));
    ck_assert_int_eq(stream_send_later(&fx.peers[0].stream, "z", 1), STREAM_CLOGGED);
    mem_free(text);
}

START_TEST(test_a_long_one_that_clogs)
{
    size_t total = 0;
    char last = 0;
    char first = 0;
    int round;

    in_a_turn(tell_long);
    for (round = 0; round < 1000 && last != 'z'; round++) {
        size_t n = strlen(come(0));

        if (first == 0 && n > 0)
            first = fx.got[0];
        if (n > 0)
            last = fx.got[n - 1];
        total += n;
        loop_poll(&fx.loop);
    }
    ck_assert_int_eq(first, 'a');
    ck_assert_int_eq(last, 'z');
    ck_assert_uint_eq(total, LONG + 2);
}
END_TEST

static void on_heard(struct stream *s)
{
    loop_stop(&fx.loop);
}

/* Without it the loop would sleep for ever: nothing else is to come. */
START_TEST(test_a_turn_that_owes_something_does_not_wait)
{
    static const struct stream_ops hears = {
        .on_readable = on_heard, .on_drained = on_nothing, .on_closed = on_nothing};

    stream_open(&fx.loop, &fx.other_side, dup(fx.peers[0].fd), &hears);
    later(0, "a");
    loop_run(&fx.loop);
    ck_assert_str_eq(come(0), "a");
    stream_close(&fx.other_side);
}
END_TEST

/* A TCP connection within this machine: fd[0] and fd[1] are its ends. */
static void connect_by_tcp(int fd[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int door = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(door, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(door, 1), 0);
    ck_assert_int_eq(getsockname(door, (struct sockaddr *)&at, &len), 0);
    fd[1] = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(fd[1], (struct sockaddr *)&at, sizeof at), 0);
    fd[0] = accept4(door, NULL, NULL, SOCK_NONBLOCK);
    ck_assert_int_ne(fd[0], -1);
    close(door);
}

/* Who has hung up by TCP has no address any more, and must not pass for a client of a Unix
 * socket. */
START_TEST(test_who_is_local)
{
    struct linger at_once = {.l_onoff = 1};
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    struct stream s = {0};
    struct pollfd gone = {0};
    int fd[2];

    ck_assert(stream_is_local(&fx.peers[0].stream));
    close(fx.peers[0].fd);
    fx.peers[0].fd = -1;
    ck_assert(stream_is_local(&fx.peers[0].stream));
    connect_by_tcp(fd);
    gone.fd = fd[0];
    stream_open(&fx.loop, &s, fd[0], &ops);
    ck_assert(!stream_is_local(&s));
    (void)setsockopt(fd[1], SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd[1]);
    ck_assert_int_eq(poll(&gone, 1, 60000), 1);
    ck_assert_int_eq(getpeername(fd[0], (struct sockaddr *)&from, &len), -1);
    ck_assert(!stream_is_local(&s));
    stream_close(&s);
    ck_assert(!stream_is_local(&s));
    loop_poll(&fx.loop);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stream");
    TCase *tc = tcase_create("later");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_it_goes_at_the_end_of_the_turn);
    tcase_add_test(tc, test_what_is_sent_at_once_comes_behind_it);
    tcase_add_test(tc, test_who_is_closed_has_it);
    tcase_add_test(tc, test_who_goes_elsewhere_has_it);
    tcase_add_test(tc, test_who_asks_whether_all_is_sent_sends_it);
    tcase_add_test(tc, test_one_that_is_gone_does_not_hinder_the_others);
    tcase_add_test(tc, test_what_is_sent_ahead_passes_others_alone);
    tcase_add_test(tc, test_sockets_are_closed_at_the_end_of_the_turn);
    tcase_add_test(tc, test_more_than_can_be_closed_later);
    tcase_add_test(tc, test_the_end_closes_them);
    tcase_add_test(tc, test_more_than_can_be_kept);
    tcase_add_test(tc, test_a_long_one_that_clogs);
    tcase_add_test(tc, test_a_turn_that_owes_something_does_not_wait);
    tcase_add_test(tc, test_who_is_local);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
