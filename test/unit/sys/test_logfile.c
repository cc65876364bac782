/* SPDX-License-Identifier: PostgreSQL
 * test_logfile.c: rotation of log files by age and size, with clocks of the test's own. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "process/logger/logfile.h"

#include "run_suite.h"

#define S INT64_C(1000000)

static char folder[64];
static struct logfile_opts opts;

static void setup(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
    snprintf(folder, sizeof folder, "/tmp/test_logfile_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    memset(&opts, 0, sizeof opts);
    snprintf(opts.folder, sizeof opts.folder, "%s/log", folder);
    snprintf(opts.pattern, sizeof opts.pattern, "%%H%%M%%S.log");
    opts.mode = 0640;
}

static void remove_one(const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/log/%s", folder, name);
    unlink(path);
}

static void teardown(void)
{
    char path[256];

    remove_one("000000.log");
    remove_one("000010.log");
    remove_one("010000.log");
    remove_one("Thu.log");
    snprintf(path, sizeof path, "%s/log", folder);
    rmdir(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static long size_of(const char *name)
{
    char path[256];
    struct stat st;

    snprintf(path, sizeof path, "%s/log/%s", folder, name);
    return stat(path, &st) == -1 ? -1 : (long)st.st_size;
}

START_TEST(age_falls_on_its_multiples)
{
    struct logfile f;
    struct err err = {0};
    enum logfile_reason reason;

    opts.age_ms = 3600 * 1000;
    logfile_init(&f, &opts);
    ck_assert_int_eq(logfile_rotate(&f, LOGFILE_START, 10 * S, &err), 0);
    logfile_write(&f, "ab\n", 3);
    ck_assert_int_eq(size_of("000010.log"), 3);
    ck_assert(!logfile_is_due(&f, 3599 * S, &reason));
    ck_assert_int_eq(logfile_wait_ms(&f, 3599 * S), 1001);
    ck_assert(logfile_is_due(&f, 3600 * S, &reason));
    ck_assert_int_eq(reason, LOGFILE_AGE);
    ck_assert_int_eq(logfile_rotate(&f, reason, 3600 * S, &err), 0);
    ck_assert_int_eq(size_of("010000.log"), 0);
    logfile_fini(&f);
}
END_TEST

START_TEST(size_makes_a_new_file)
{
    struct logfile f;
    struct err err = {0};
    enum logfile_reason reason;

    opts.max_bytes = 4;
    logfile_init(&f, &opts);
    ck_assert_int_eq(logfile_rotate(&f, LOGFILE_START, 0, &err), 0);
    logfile_write(&f, "abc", 3);
    ck_assert(!logfile_is_due(&f, S, &reason));
    logfile_write(&f, "d", 1);
    ck_assert(logfile_is_due(&f, 10 * S, &reason));
    ck_assert_int_eq(reason, LOGFILE_SIZE);
    /* Within the same second the name is the same: no turning round and round. */
    ck_assert_int_eq(logfile_rotate(&f, reason, 0, &err), 0);
    ck_assert(!logfile_is_due(&f, 0, &reason));
    logfile_write(&f, "efgh", 4);
    ck_assert(logfile_is_due(&f, 10 * S, &reason));
    ck_assert_int_eq(logfile_rotate(&f, reason, 10 * S, &err), 0);
    ck_assert_int_eq(size_of("000000.log"), 8);
    ck_assert_int_eq(size_of("000010.log"), 0);
    ck_assert(!logfile_is_due(&f, 10 * S, &reason));
    logfile_fini(&f);
}
END_TEST

START_TEST(truncates_only_when_time_comes_round)
{
    struct logfile f;
    struct err err = {0};
    char path[256];

    opts.truncate = true;
    opts.age_ms = 1000;
    logfile_init(&f, &opts);
    ck_assert_int_eq(logfile_rotate(&f, LOGFILE_START, 0, &err), 0);
    logfile_write(&f, "old\n", 4);
    ck_assert_int_eq(logfile_rotate(&f, LOGFILE_ASKED, 10 * S, &err), 0);
    ck_assert_int_eq(logfile_rotate(&f, LOGFILE_ASKED, 0, &err), 0);
    ck_assert_int_eq(size_of("000000.log"), 4); /* asked for, not time: appended to */
    ck_assert_int_eq(logfile_rotate(&f, LOGFILE_ASKED, 10 * S, &err), 0);
    ck_assert_int_eq(logfile_rotate(&f, LOGFILE_AGE, 0, &err), 0);
    ck_assert_int_eq(size_of("000000.log"), 0);
    snprintf(path, sizeof path, "%s/log/000000.log", folder);
    {
        struct stat st;

        ck_assert_int_eq(stat(path, &st), 0);
        ck_assert_int_eq(st.st_mode & 0777, 0640);
    }
    logfile_fini(&f);
}
END_TEST

START_TEST(restart_appends)
{
    struct logfile f;
    struct err err = {0};
    int i;

    opts.truncate = true;
    opts.age_ms = 86400000;
    snprintf(opts.pattern, sizeof opts.pattern, "%%a.log");
    for (i = 0; i < 2; i++) {
        logfile_init(&f, &opts);
        ck_assert_int_eq(logfile_rotate(&f, LOGFILE_START, 0, &err), 0);
        logfile_write(&f, "run\n", 4);
        logfile_fini(&f);
    }
    ck_assert_int_eq(size_of("Thu.log"), 8);
}
END_TEST

START_TEST(bad_folder_is_retried_not_spun)
{
    struct logfile f;
    struct err err = {0};
    enum logfile_reason reason;

    snprintf(opts.folder, sizeof opts.folder, "%s/no/such", folder);
    logfile_init(&f, &opts);
    ck_assert_int_eq(logfile_rotate(&f, LOGFILE_START, 0, &err), -1);
    ck_assert(err_is_set(&err));
    ck_assert(!logfile_is_due(&f, S / 2, &reason));
    ck_assert_int_gt(logfile_wait_ms(&f, S / 2), 0);
    ck_assert(logfile_is_due(&f, 2 * S, &reason));
    logfile_fini(&f);
}
END_TEST

/* A disk that is full is said in both places: at once where lines go instead, later in the file. */
START_TEST(a_full_disk_is_said)
{
    struct logfile f;
    struct err err = {0};
    char said[1024];
    int real;
    int fds[2];
    int old = dup(STDERR_FILENO);
    ssize_t n;

    logfile_init(&f, &opts);
    ck_assert_int_eq(logfile_rotate(&f, LOGFILE_START, 0, &err), 0);
    real = f.fd;
    f.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    ck_assert_int_ne(f.fd, -1);
    ck_assert_int_eq(pipe(fds), 0);
    dup2(fds[1], STDERR_FILENO);
    logfile_write(&f, "one\n", 4);
    logfile_write(&f, "two\n", 4);
    dup2(old, STDERR_FILENO);
    n = read(fds[0], said, sizeof said - 1);
    ck_assert_int_gt((int)n, 0);
    said[n] = '\0';
    ck_assert_ptr_nonnull(strstr(said, "No space left on device"));
    ck_assert_ptr_nonnull(strstr(said, "\none\ntwo\n"));
    close(f.fd);
    f.fd = real;
    ck_assert_int_eq(write(real, "hal", 3), 3); /* a line that went half */
    logfile_write(&f, "three\n", 6);
    logfile_write(&f, "four\n", 5);
    real = open(f.path, O_RDONLY | O_CLOEXEC);
    n = read(real, said, sizeof said - 1);
    ck_assert_int_gt((int)n, 0);
    said[n] = '\0';
    ck_assert_ptr_nonnull(strstr(said, "hal\nWARNING:  2 pieces of the log are missing here"));
    ck_assert_ptr_nonnull(strstr(said, "No space left on device"));
    ck_assert_ptr_nonnull(strstr(said, ")\nthree\nfour\n"));
    close(real);
    close(fds[0]);
    close(fds[1]);
    close(old);
    logfile_fini(&f);
}
END_TEST

START_TEST(link_is_not_followed)
{
    struct logfile f;
    struct err err = {0};
    char target[256];
    char path[256];
    struct stat st;

    snprintf(path, sizeof path, "%s/log", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(target, sizeof target, "%s/log/010000.log", folder);
    fclose(fopen(target, "w"));
    snprintf(path, sizeof path, "%s/log/000000.log", folder);
    ck_assert_int_eq(symlink(target, path), 0);
    logfile_init(&f, &opts);
    ck_assert_int_eq(logfile_rotate(&f, LOGFILE_START, 0, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.hint, "symbolic link"));
    ck_assert_int_eq(stat(target, &st), 0);
    logfile_fini(&f);
}
END_TEST

START_TEST(new_settings_ask_for_a_new_file)
{
    struct logfile f;
    struct err err = {0};

    logfile_init(&f, &opts);
    ck_assert_int_eq(logfile_rotate(&f, LOGFILE_START, 0, &err), 0);
    ck_assert(!logfile_set_opts(&f, &opts));
    snprintf(opts.pattern, sizeof opts.pattern, "%%a.log");
    ck_assert(logfile_set_opts(&f, &opts));
    logfile_fini(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("logfile");
    TCase *t = tcase_create("logfile");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, age_falls_on_its_multiples);
    tcase_add_test(t, size_makes_a_new_file);
    tcase_add_test(t, truncates_only_when_time_comes_round);
    tcase_add_test(t, restart_appends);
    tcase_add_test(t, bad_folder_is_retried_not_spun);
    tcase_add_test(t, a_full_disk_is_said);
    tcase_add_test(t, link_is_not_followed);
    tcase_add_test(t, new_settings_ask_for_a_new_file);
    suite_add_tcase(s, t);
    return run_suite(s);
}
