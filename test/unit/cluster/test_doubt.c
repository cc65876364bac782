/* SPDX-License-Identifier: PostgreSQL
 * test_doubt.c: names of prepared transactions, files of decisions whole and torn, and what
 * follows. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/doubt.h"
#include "cluster/doubt_log.h"

#include "run_suite.h"

static const struct doubt_gid some = {
    .owner = {.instance = 0xfedcba9876543210u, .run = 7, .slot = 3, .pid = 12345},
    .number = 0x1234567890u};

START_TEST(names_are_read_as_they_were_written)
{
    char name[DOUBT_GID_BYTES];
    struct doubt_gid got;

    doubt_gid_format(&some, name);
    ck_assert(doubt_gid_parse(slice_of_str(name), &got));
    ck_assert_uint_eq(got.owner.instance, some.owner.instance);
    ck_assert_uint_eq(got.owner.run, some.owner.run);
    ck_assert_uint_eq(got.owner.slot, some.owner.slot);
    ck_assert_uint_eq(got.owner.pid, some.owner.pid);
    ck_assert_uint_eq(got.number, some.number);
}
END_TEST

START_TEST(names_of_others_are_not_ours)
{
    static const char *const bad[] = {"", "pgpool_", "pgpool_1", "my_transaction",
        "pgpool_FEDCBA9876543210_0000000000000007_00000003_00003039_0000001234567890",
        "pgpool_fedcba9876543210_0000000000000007_00000003_00003039_000000123456789",
        "pgpool_fedcba9876543210_0000000000000007_00000003_00003039_00000012345678900",
        "pgpool_fedcba9876543210-0000000000000007_00000003_00003039_0000001234567890"};
    struct doubt_gid got;

    ck_assert(!doubt_gid_parse(slice_of_str(bad[_i]), &got));
}
END_TEST

/* What is left of two lines behind each of its bytes says what is whole in it and no more. */
START_TEST(a_torn_file_says_what_is_whole)
{
    char first[DOUBT_GID_BYTES];
    char second[DOUBT_GID_BYTES];
    struct doubt_gid gid = some;
    struct buf text = {0};
    uint32_t whole;

    doubt_gid_format(&gid, first);
    gid.number++;
    doubt_gid_format(&gid, second);
    doubt_line_put(first, 3, &text);
    whole = text.len;
    doubt_line_put(second, 5, &text);
    for (uint32_t n = 0; n <= text.len; n++) {
        struct slice part = slice_of(text.data, n);

        ck_assert_uint_eq(doubt_decided(part, slice_of_str(first)), n >= whole ? 3 : 0);
        ck_assert_uint_eq(doubt_decided(part, slice_of_str(second)), n == text.len ? 5 : 0);
    }
    for (uint32_t n = whole; n < text.len; n++) {
        text.data[n] ^= 1;
        ck_assert_uint_eq(doubt_decided(buf_slice(&text), slice_of_str(first)), 3);
        ck_assert_uint_eq(doubt_decided(buf_slice(&text), slice_of_str(second)), 0);
        text.data[n] ^= 1;
    }
    buf_free(&text);
}
END_TEST

START_TEST(what_becomes_of_it)
{
    static const struct {
        struct doubt_facts facts;
        enum doubt_verdict want;
    } row[] = {
        {{.is_ours = false, .is_decided = true}, DOUBT_FOREIGN},
        {{.is_ours = true, .is_alive = true, .is_open = true}, DOUBT_LEAVE},
        {{.is_ours = true, .is_alive = true, .is_open = true, .is_decided = true}, DOUBT_LEAVE},
        {{.is_ours = true, .is_alive = true}, DOUBT_ROLLBACK},
        {{.is_ours = true, .is_alive = true, .is_decided = true}, DOUBT_COMMIT},
        {{.is_ours = true, .is_decided = true}, DOUBT_COMMIT},
        {{.is_ours = true}, DOUBT_ROLLBACK},
        {{.is_ours = true, .is_open = true}, DOUBT_ROLLBACK},
    };

    ck_assert_int_eq(doubt_judge(&row[_i].facts), row[_i].want);
}
END_TEST

static char dir[] = "/tmp/test-doubt-XXXXXX";

static void make_dir(void)
{
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static uint64_t decided_in_file(void)
{
    char name[DOUBT_GID_BYTES];
    struct buf text = {0};
    struct err err = {0};
    uint64_t nodes;

    doubt_gid_format(&some, name);
    ck_assert_int_eq(doubt_log_read(dir, &some.owner, &text, &err), 0);
    nodes = text.len == 0 ? 0 : doubt_decided(buf_slice(&text), slice_of_str(name));
    buf_free(&text);
    return nodes;
}

/* Another process asks, for a lock is a process' own. */
static bool is_held_for_others(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(doubt_log_is_held(dir, &some.owner) ? 1 : 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status) == 1;
}

static void count(void *ctx, const struct doubt_owner *owner)
{
    ck_assert_uint_eq(owner->pid, some.owner.pid);
    ++*(int *)ctx;
}

static bool no(void *ctx, struct slice text)
{
    (void)ctx;
    (void)text;
    return false;
}

static bool says_something(void *ctx, struct slice text)
{
    (void)ctx;
    return text.n > 0;
}

START_TEST(decisions_come_back)
{
    struct doubt_log log;
    char name[DOUBT_GID_BYTES];
    struct buf line = {0};
    struct err err = {0};
    int nfiles = 0;

    make_dir();
    doubt_gid_format(&some, name);
    doubt_line_put(name, 9, &line);
    ck_assert_uint_eq(decided_in_file(), 0);
    ck_assert(!is_held_for_others());
    ck_assert_int_eq(doubt_log_open(&log, dir, &some.owner, &err), 0);
    ck_assert(is_held_for_others());
    ck_assert_int_eq(doubt_log_append(&log, slice_of_str("commit nonsense\n"), &err), 0);
    ck_assert_int_eq(doubt_log_append(&log, buf_slice(&line), &err), 0);
    ck_assert_uint_eq(decided_in_file(), 9);
    ck_assert_int_eq(doubt_log_replace(&log, slice_of_str(""), &err), 0);
    ck_assert_uint_eq(decided_in_file(), 0);
    ck_assert(is_held_for_others());
    ck_assert_int_eq(doubt_log_append(&log, buf_slice(&line), &err), 0);
    ck_assert_uint_eq(decided_in_file(), 9);
    doubt_log_close(&log);
    ck_assert(!is_held_for_others());
    ck_assert_int_eq(doubt_log_each(dir, some.owner.instance, count, &nfiles, &err), 0);
    ck_assert_int_eq(doubt_log_each(dir, 1, count, &nfiles, &err), 0);
    ck_assert_int_eq(nfiles, 1);
    doubt_log_tidy(dir, &some.owner, says_something, NULL);
    ck_assert_uint_eq(decided_in_file(), 9);
    doubt_log_tidy(dir, &some.owner, no, NULL);
    ck_assert_int_eq(rmdir(dir), 0);
    buf_free(&line);
}
END_TEST

/* Who takes a file up while another process removes it decides in one that is found again. */
static void decide_in_it(void)
{
    struct doubt_log log;
    char name[DOUBT_GID_BYTES];
    struct buf line = {0};
    struct err err = {0};

    doubt_gid_format(&some, name);
    doubt_line_put(name, 9, &line);
    if (doubt_log_open(&log, dir, &some.owner, &err) == -1)
        _exit(2); /* whoever wants to commit is told so */
    _exit(doubt_log_append(&log, buf_slice(&line), &err) == 0 && decided_in_file() == 9 ? 0 : 1);
}

struct other {
    pid_t pid;
    int wakes; /* a pipe that it reads from */
    const char *path;
};

static bool has_opened(const struct other *o)
{
    char link[64];
    char path[PATH_MAX];

    for (int fd = 0; fd < 64; fd++) {
        ssize_t n;

        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)o->pid, fd);
        n = readlink(link, path, sizeof path - 1);
        if (n > 0 && (size_t)n == strlen(o->path) && memcmp(path, o->path, (size_t)n) == 0)
            return true;
    }
    return false;
}

static bool somebody_takes_it_up(void *ctx, struct slice text)
{
    const struct other *o = ctx;
    int tries = 100;

    (void)text;
    ck_assert_int_eq(write(o->wakes, "!", 1), 1);
    while (!has_opened(o) && --tries > 0)
        (void)sched_yield();
    return false;
}

START_TEST(what_is_decided_while_a_file_goes_stays)
{
    struct doubt_log log;
    struct err err = {0};
    int ends[2];
    int status;
    char now;
    struct other o;

    make_dir();
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(doubt_log_open(&log, dir, &some.owner, &err), 0);
    doubt_log_close(&log);
    o.pid = fork();
    if (o.pid == 0) {
        close(ends[1]);
        ck_assert_int_eq(read(ends[0], &now, 1), 1);
        decide_in_it();
    }
    o.wakes = ends[1];
    o.path = log.path;
    doubt_log_tidy(dir, &some.owner, somebody_takes_it_up, &o);
    ck_assert_int_eq(waitpid(o.pid, &status, 0), o.pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_ne(WEXITSTATUS(status), 1);
    ck_assert_uint_eq(decided_in_file(), WEXITSTATUS(status) == 0 ? 9 : 0);
    doubt_log_tidy(dir, &some.owner, no, NULL);
    ck_assert_int_eq(rmdir(dir), 0);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(what_a_process_has_is_not_removed)
{
    struct doubt_log log;
    struct err err = {0};
    int status;
    pid_t pid;

    make_dir();
    ck_assert_int_eq(doubt_log_open(&log, dir, &some.owner, &err), 0);
    pid = fork();
    if (pid == 0) {
        doubt_log_tidy(dir, &some.owner, no, NULL);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(access(log.path, F_OK), 0);
    doubt_log_close(&log);
    doubt_log_tidy(dir, &some.owner, no, NULL);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/* Another user has put pipes into the folder under our names: nobody waits for their other end. */
START_TEST(a_pipe_in_the_folder_holds_nobody_up)
{
    struct doubt_log log;
    struct buf text = {0};
    struct err err = {0};
    char id[64];
    uint64_t got;

    make_dir();
    snprintf(id, sizeof id, "%s/pgpool_decisions.id", dir);
    ck_assert_int_eq(mkfifo(id, 0600), 0);
    ck_assert_int_eq(doubt_log_instance(dir, 42, &got, &err), -1);
    ck_assert_int_eq(unlink(id), 0);
    ck_assert_int_eq(doubt_log_open(&log, dir, &some.owner, &err), 0);
    doubt_log_close(&log);
    ck_assert_int_eq(unlink(log.path), 0);
    ck_assert_int_eq(mkfifo(log.path, 0600), 0);
    ck_assert_int_eq(doubt_log_open(&log, dir, &some.owner, &err), -1);
    ck_assert_int_eq(doubt_log_read(dir, &some.owner, &text, &err), -1);
    doubt_log_tidy(dir, &some.owner, no, NULL);
    ck_assert_int_eq(unlink(log.path), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/* A disk without room: what was there stays, and it is said that the new one is not. */
START_TEST(a_full_disk_decides_nothing)
{
    struct doubt_log log = {.bytes = 0, .is_named = true};
    struct err err = {0};

    log.fd = open("/dev/full", O_RDWR);
    if (log.fd == -1)
        return;
    ck_assert_int_lt(doubt_log_append(&log, slice_of_str("commit\n"), &err), 0);
    ck_assert_str_eq(err.sqlstate, "58030");
    doubt_log_close(&log);
}
END_TEST

START_TEST(a_pgpool_keeps_its_number)
{
    struct err err = {0};
    char path[64];
    uint64_t got = 0;

    make_dir();
    ck_assert_int_eq(doubt_log_instance(dir, 42, &got, &err), 0);
    ck_assert_uint_eq(got, 42);
    ck_assert_int_eq(doubt_log_instance(dir, 43, &got, &err), 0);
    ck_assert_uint_eq(got, 42);
    snprintf(path, sizeof path, "%s/pgpool_decisions.id", dir);
    ck_assert_int_eq(truncate(path, 5), 0);
    ck_assert_int_eq(doubt_log_instance(dir, 43, &got, &err), -1);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("doubt");
    TCase *tc = tcase_create("doubt");

    tcase_add_test(tc, names_are_read_as_they_were_written);
    tcase_add_loop_test(tc, names_of_others_are_not_ours, 0, 8);
    tcase_add_test(tc, a_torn_file_says_what_is_whole);
    tcase_add_loop_test(tc, what_becomes_of_it, 0, 8);
    tcase_add_test(tc, decisions_come_back);
    tcase_add_test(tc, what_is_decided_while_a_file_goes_stays);
    tcase_add_test(tc, what_a_process_has_is_not_removed);
    tcase_add_test(tc, a_pipe_in_the_folder_holds_nobody_up);
    tcase_add_test(tc, a_full_disk_decides_nothing);
    tcase_add_test(tc, a_pgpool_keeps_its_number);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
