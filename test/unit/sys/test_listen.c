/* SPDX-License-Identifier: PostgreSQL
 * test_listen.c: listening sockets, stale socket files, descriptors, sealed texts. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "sys/fd.h"
#include "sys/listen.h"

#include "run_suite.h"

#define MAX_SOCKS 8

static char folder[64];

static void swallow(enum log_level level, const char *text, unsigned len, void *ctx)
{
}

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/test_listen_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    log_set_sink(swallow, NULL);
}

static void teardown(void)
{
    ck_assert_int_eq(rmdir(folder), 0); /* nothing may be left in it */
}

/* A TCP port that was free a moment ago. */
static int free_port(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    close(fd);
    return ntohs(in.sin_port);
}

static int connect_unix(const char *path)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int rc;

    ck_assert(strlen(path) < sizeof un.sun_path);
    memcpy(un.sun_path, path, strlen(path) + 1);
    rc = connect(fd, (struct sockaddr *)&un, sizeof un);
    close(fd);
    return rc;
}

START_TEST(tcp_listens_once_per_address)
{
    struct listen_sock socks[MAX_SOCKS];
    struct err err = {0};
    int port = free_port();
    int n = 0;
    char want[32];

    ck_assert_int_eq(listen_open_tcp("127.0.0.1", port, 10, socks, &n, MAX_SOCKS, &err), 0);
    ck_assert_int_eq(n, 1);
    snprintf(want, sizeof want, "127.0.0.1:%d", port);
    ck_assert_str_eq(socks[0].name, want);
    ck_assert_int_ne(fcntl(socks[0].fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(socks[0].fd, F_GETFD) & FD_CLOEXEC, 0);
    /* An address that is listened on by another name is not an error. */
    ck_assert_int_eq(listen_open_tcp("127.0.0.1", port, 10, socks, &n, MAX_SOCKS, &err), 0);
    ck_assert_int_eq(n, 1);
    listen_close(&socks[0]);
    ck_assert_int_eq(socks[0].fd, -1);
}
END_TEST

START_TEST(tcp_in_use_is_an_error)
{
    struct listen_sock a[MAX_SOCKS];
    struct listen_sock b[MAX_SOCKS];
    struct err err = {0};
    int port = free_port();
    int na = 0;
    int nb = 0;

    ck_assert_int_eq(listen_open_tcp("127.0.0.1", port, 10, a, &na, MAX_SOCKS, &err), 0);
    ck_assert_int_eq(listen_open_tcp("127.0.0.1", port, 10, b, &nb, MAX_SOCKS, &err), -1);
    ck_assert_int_eq(nb, 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "in use"));
    ck_assert_uint_gt(strlen(err.hint), 0);
    listen_close(&a[0]);
    err_clear(&err);
    ck_assert_int_eq(
        listen_open_tcp("no.such.host.invalid", port, 10, b, &nb, MAX_SOCKS, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.msg, "no.such.host.invalid"));
}
END_TEST

START_TEST(unix_has_mode_and_goes_away)
{
    struct listen_unix_opts opts = {.mode = 0640, .group = ""};
    struct listen_sock sock;
    struct err err = {0};
    struct stat st;
    char path[128];

    ck_assert_int_eq(listen_open_unix(folder, 5555, &opts, 10, &sock, &err), 0);
    snprintf(path, sizeof path, "%s/.s.PGSQL.5555", folder);
    ck_assert_str_eq(sock.name, path);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0640);
    ck_assert_int_eq(connect_unix(path), 0);
    listen_close(&sock);
    ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

START_TEST(close_ends_it_for_all_who_share)
{
    struct listen_unix_opts opts = {.mode = 0777};
    struct listen_sock socks[MAX_SOCKS];
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct err err = {0};
    int port = free_port();
    int client = socket(AF_INET, SOCK_STREAM, 0);
    char other_name[128];
    int shared[2];
    int n = 0;

    ck_assert_int_eq(listen_open_tcp("127.0.0.1", port, 10, socks, &n, MAX_SOCKS, &err), 0);
    ck_assert_int_eq(listen_open_unix(folder, 5555, &opts, 10, &socks[1], &err), 0);
    shared[0] = dup(socks[0].fd);
    shared[1] = dup(socks[1].fd);
    snprintf(other_name, sizeof other_name, "%s/other", folder);
    ck_assert_int_eq(link(socks[1].name, other_name), 0);
    listen_close(&socks[0]);
    listen_close(&socks[1]);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons((uint16_t)port);
    ck_assert_int_eq(connect(client, (struct sockaddr *)&in, sizeof in), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);
    ck_assert_int_eq(connect_unix(other_name), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);
    unlink(other_name);
    close(client);
    close(shared[0]);
    close(shared[1]);
}
END_TEST

START_TEST(living_unix_socket_is_not_stolen)
{
    struct listen_unix_opts opts = {.mode = 0777};
    struct listen_sock a;
    struct listen_sock b;
    struct err err = {0};

    ck_assert_int_eq(listen_open_unix(folder, 5555, &opts, 10, &a, &err), 0);
    ck_assert_int_eq(listen_open_unix(folder, 5555, &opts, 10, &b, &err), -1);
    ck_assert_int_eq(b.fd, -1);
    ck_assert_ptr_nonnull(strstr(err.msg, "in use"));
    ck_assert_int_eq(connect_unix(a.name), 0);
    listen_close(&a);
}
END_TEST

START_TEST(abandoned_unix_socket_is_replaced)
{
    struct listen_unix_opts opts = {.mode = 0777};
    struct listen_sock a;
    struct listen_sock b;
    struct err err = {0};

    ck_assert_int_eq(listen_open_unix(folder, 5555, &opts, 10, &a, &err), 0);
    close(a.fd); /* as kill -9 leaves it */
    ck_assert_int_eq(listen_open_unix(folder, 5555, &opts, 10, &b, &err), 0);
    ck_assert_int_eq(connect_unix(b.name), 0);
    a.fd = open("/dev/null", O_RDONLY);
    listen_close(&a); /* the old owner, late: the file is not his any more */
    ck_assert_int_eq(connect_unix(b.name), 0);
    listen_close(&b);
}
END_TEST

START_TEST(other_files_are_left_alone)
{
    struct listen_unix_opts opts = {.mode = 0777};
    struct listen_sock a;
    struct err err = {0};
    char path[128];

    snprintf(path, sizeof path, "%s/.s.PGSQL.5555", folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    ck_assert_int_eq(listen_open_unix(folder, 5555, &opts, 10, &a, &err), -1);
    ck_assert_int_eq(access(path, F_OK), 0);
    unlink(path);
}
END_TEST

START_TEST(two_at_once_make_one_winner)
{
    struct listen_unix_opts opts = {.mode = 0777};
    int winners = 0;
    int go[2];
    int done[2];
    pid_t pids[6];
    char byte;
    int i;

    ck_assert_int_eq(pipe(go), 0);
    ck_assert_int_eq(pipe(done), 0);
    for (i = 0; i < 6; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            struct listen_sock sock;
            struct err err = {0};
            int rc;

            close(go[1]);
            if (read(go[0], &byte, 1) != 0)
                _exit(2);
            rc = listen_open_unix(folder, 5555, &opts, 10, &sock, &err);
            if (write(done[1], rc == 0 ? "1" : "0", 1) == 1 && rc == 0)
                pause();
            _exit(0);
        }
    }
    close(go[1]); /* all start */
    for (i = 0; i < 6; i++) {
        ck_assert_int_eq(read(done[0], &byte, 1), 1);
        winners += byte == '1';
    }
    for (i = 0; i < 6; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    ck_assert_int_eq(winners, 1);
    {
        char path[128];

        snprintf(path, sizeof path, "%s/.s.PGSQL.5555", folder);
        unlink(path);
    }
}
END_TEST

START_TEST(bad_unix_options)
{
    struct listen_unix_opts opts = {.mode = 0777, .group = "no such group"};
    char long_folder[200];
    struct listen_sock sock;
    struct err err = {0};

    ck_assert_int_eq(listen_open_unix(folder, 5555, &opts, 10, &sock, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.msg, "no such group"));
    err_clear(&err);
    memset(long_folder, 'x', sizeof long_folder - 1);
    long_folder[0] = '/';
    long_folder[sizeof long_folder - 1] = '\0';
    ck_assert_int_eq(listen_open_unix(long_folder, 5555, &opts, 10, &sock, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.msg, "longer"));
}
END_TEST

START_TEST(backlog_has_bounds)
{
    ck_assert_int_le(listen_backlog(INT32_MAX), 1 << 30);
    ck_assert_int_ge(listen_backlog(1), 128);
    ck_assert_int_eq(listen_backlog(1), listen_backlog(0));
}
END_TEST

START_TEST(close_others_keeps_the_list)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        int keep[4];
        int gone[4];
        int i;
        int ok = 1;

        for (i = 0; i < 4; i++) {
            gone[i] = open("/dev/null", O_RDONLY);
            keep[i] = open("/dev/null", O_RDONLY);
        }
        fd_close_others((int[]){keep[3], keep[0], 1, keep[2], keep[1]}, 5);
        for (i = 0; i < 4; i++)
            ok &= fcntl(keep[i], F_GETFD) != -1 && fcntl(gone[i], F_GETFD) == -1;
        _exit(ok && fcntl(2, F_GETFD) != -1 ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(text_in_memory_is_sealed)
{
    struct err err = {0};
    int fd = fd_of_text("t", "hello", 5, &err);
    char room[8] = "";

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(pread(fd, room, sizeof room, 0), 5);
    ck_assert_str_eq(room, "hello");
    ck_assert_int_eq(write(fd, "x", 1), -1);
    ck_assert_int_eq(ftruncate(fd, 0), -1);
    close(fd);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("listen");
    TCase *t = tcase_create("listen");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, tcp_listens_once_per_address);
    tcase_add_test(t, tcp_in_use_is_an_error);
    tcase_add_test(t, unix_has_mode_and_goes_away);
    tcase_add_test(t, close_ends_it_for_all_who_share);
    tcase_add_test(t, living_unix_socket_is_not_stolen);
    tcase_add_test(t, abandoned_unix_socket_is_replaced);
    tcase_add_test(t, other_files_are_left_alone);
    tcase_add_test(t, two_at_once_make_one_winner);
    tcase_add_test(t, bad_unix_options);
    tcase_add_test(t, backlog_has_bounds);
    tcase_add_test(t, close_others_keeps_the_list);
    tcase_add_test(t, text_in_memory_is_sealed);
    suite_add_tcase(s, t);
    return run_suite(s);
}
