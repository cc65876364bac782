/* SPDX-License-Identifier: PostgreSQL
 * test_pidfile.c: who holds the pid file, and who only left one behind. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/pidfile.h"

#include "run_suite.h"

static char folder[64];
static char path[256];

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/test_pidfile_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/p.pid", folder);
}

static void teardown(void)
{
    unlink(path);
    rmdir(folder);
}

/* Forks a child that takes the file and then waits to be killed; returns when it has it. */
static pid_t fork_holder(void)
{
    int ends[2];
    char byte;
    pid_t pid;

    ck_assert_int_eq(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        struct pidfile p = {.fd = -1};
        struct err err = {0};
        int holder;
        int rc = pidfile_hold(&p, path, &holder, &err);

        if (write(ends[1], rc == 0 ? "y" : "n", 1) == 1)
            pause();
        _exit(0);
    }
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 'y');
    close(ends[0]);
    close(ends[1]);
    return pid;
}

START_TEST(no_file_is_none)
{
    struct err err = {0};
    int pid = 5;

    ck_assert_int_eq(pidfile_look(path, &pid, &err), PIDFILE_NONE);
    ck_assert_int_eq(pid, 0);
}
END_TEST

START_TEST(holder_is_seen_and_refuses_others)
{
    struct pidfile p = {.fd = -1};
    struct err err = {0};
    struct stat st;
    char text[32] = "";
    char want[32];
    pid_t holder = fork_holder();
    int pid;
    int fd;

    ck_assert_int_eq(pidfile_look(path, &pid, &err), PIDFILE_LIVE);
    ck_assert_int_eq(pid, holder);
    ck_assert_int_eq(pidfile_hold(&p, path, &pid, &err), -1);
    ck_assert_int_eq(pid, holder);
    ck_assert(err_is_set(&err));
    ck_assert_int_eq(p.fd, -1);
    fd = open(path, O_RDONLY);
    ck_assert_int_gt(read(fd, text, sizeof text - 1), 0);
    close(fd);
    snprintf(want, sizeof want, "%d\n", (int)holder);
    ck_assert_str_eq(text, want);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    ck_assert_int_eq(pidfile_look(path, &pid, &err), PIDFILE_STALE);
    ck_assert_int_eq(pid, holder);
}
END_TEST

START_TEST(living_pid_in_a_free_file_is_stale)
{
    struct err err = {0};
    FILE *f = fopen(path, "w");
    struct pidfile p = {.fd = -1};
    int pid;

    fprintf(f, "%d and more", (int)getpid()); /* recycled: alive, but not the holder */
    fclose(f);
    ck_assert_int_eq(pidfile_look(path, &pid, &err), PIDFILE_STALE);
    ck_assert_int_eq(pid, getpid());
    ck_assert_int_eq(pidfile_hold(&p, path, &pid, &err), 0);
    pidfile_drop(&p);
    ck_assert_int_eq(access(path, F_OK), -1);
    pidfile_drop(&p);
}
END_TEST

START_TEST(garbage_is_stale)
{
    static const char *const texts[] = {"", "\n", "abc", "-5", "99999999999999999999"};
    struct err err = {0};
    size_t i;
    int pid;

    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        FILE *f = fopen(path, "w");

        fputs(texts[i], f);
        fclose(f);
        ck_assert_int_eq(pidfile_look(path, &pid, &err), PIDFILE_STALE);
        ck_assert_int_eq(pid, 0);
    }
}
END_TEST

START_TEST(drop_leaves_the_file_of_another)
{
    struct pidfile p = {.fd = -1};
    struct err err = {0};
    int pid;
    FILE *f;

    ck_assert_int_eq(pidfile_hold(&p, path, &pid, &err), 0);
    unlink(path);
    f = fopen(path, "w");
    fputs("1\n", f);
    fclose(f);
    pidfile_drop(&p);
    ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(missing_folder_is_an_error)
{
    struct pidfile p = {.fd = -1};
    struct err err = {0};
    int pid;

    ck_assert_int_eq(pidfile_hold(&p, "/nonexistent/folder/p.pid", &pid, &err), -1);
    ck_assert_int_eq(pid, 0);
    ck_assert_ptr_nonnull(strstr(err.msg, "/nonexistent/folder/p.pid"));
}
END_TEST

START_TEST(link_is_not_followed)
{
    struct pidfile p = {.fd = -1};
    struct err err = {0};
    char target[sizeof path + 8];
    struct stat st;
    int pid;

    snprintf(target, sizeof target, "%s.other", path);
    fclose(fopen(target, "w"));
    ck_assert_int_eq(symlink(target, path), 0);
    ck_assert_int_eq(pidfile_hold(&p, path, &pid, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.hint, "symbolic link"));
    ck_assert_int_eq(stat(target, &st), 0);
    ck_assert_int_eq(st.st_size, 0);
    unlink(path);
    unlink(target);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pidfile");
    TCase *t = tcase_create("pidfile");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, no_file_is_none);
    tcase_add_test(t, link_is_not_followed);
    tcase_add_test(t, holder_is_seen_and_refuses_others);
    tcase_add_test(t, living_pid_in_a_free_file_is_stale);
    tcase_add_test(t, garbage_is_stale);
    tcase_add_test(t, drop_leaves_the_file_of_another);
    tcase_add_test(t, missing_folder_is_an_error);
    suite_add_tcase(s, t);
    return run_suite(s);
}
