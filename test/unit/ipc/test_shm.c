/* SPDX-License-Identifier: PostgreSQL
 * test_shm.c: regions, rows with a sequence counter, the process table. */
#include "config.h"

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/proc.h"
#include "ipc/shm.h"

#include "run_suite.h"

START_TEST(regions_are_apart_and_aligned)
{
    struct shm_plan plan = {{0}};
    struct err err = {0};
    struct shm *shm;
    char *procs;
    char *stats;

    plan.bytes[SHM_PROCS] = 100;
    plan.bytes[SHM_STATS] = 1;
    shm = shm_new(&plan, &err);
    ck_assert_ptr_nonnull(shm);
    procs = shm_get(shm, SHM_PROCS);
    stats = shm_get(shm, SHM_STATS);
    ck_assert_uint_eq((uintptr_t)procs % 64, 0);
    ck_assert_uint_eq((uintptr_t)stats % 64, 0);
    ck_assert(stats >= procs + 100);
    ck_assert_ptr_null(shm_get(shm, SHM_CLIENTS));
    ck_assert_uint_eq(shm_bytes(shm, SHM_PROCS), 100);
    ck_assert_int_eq(procs[99], 0);
    shm_free(&shm);
}
END_TEST

START_TEST(impossible_sizes_are_refused)
{
    struct shm_plan plan = {{0}};
    struct err err = {0};

    plan.bytes[SHM_PROCS] = SIZE_MAX - 100;
    ck_assert_ptr_null(shm_new(&plan, &err));
    ck_assert_str_eq(err.sqlstate, "53200");
}
END_TEST

/* A child counts all fields of a row up together; a copy must never show two generations. But where
 * the child stood in the middle for longer than it is waited for (it looks dead then), which is a
 * copy with an odd number: on a busy machine it may. */
START_TEST(copies_are_never_torn)
{
    struct shm_plan plan = {{0}};
    struct err err = {0};
    struct shm *shm;
    struct proc_row row;
    const struct proc_row *theirs;
    uint32_t n;
    pid_t pid;
    int status;
    int i;

    plan.bytes[SHM_PROCS] = proc_table_bytes(3);
    shm = shm_new(&plan, &err);
    ck_assert_int_eq(proc_nslots(shm), 3);
    pid = fork();
    if (pid == 0) {
        struct proc_row *mine = proc_row(shm, 1);

        for (i = 1; i <= 200000; i++) {
            shm_write_begin(&mine->seq);
            mine->pid = i;
            mine->start_time_us = i;
            mine->conf_generation = (uint64_t)i;
            mine->restarts = (uint32_t)i;
            shm_write_end(&mine->seq);
        }
        _exit(0);
    }
    theirs = proc_row(shm, 1);
    do {
        do {
            n = shm_read_begin(&theirs->seq);
            row = *theirs;
        } while (shm_read_retry(&theirs->seq, n));
        if ((n & 1) != 0)
            continue;
        ck_assert_int_eq(row.start_time_us, row.pid);
        ck_assert_uint_eq(row.conf_generation, (uint64_t)row.pid);
        ck_assert_uint_eq(row.restarts, (uint32_t)row.pid);
    } while (waitpid(pid, &status, WNOHANG) == 0);
    proc_row_copy(shm, 1, &row);
    ck_assert_int_eq(row.pid, 200000);
    shm_free(&shm);
}
END_TEST

START_TEST(dead_writer_does_not_hold_readers)
{
    struct shm_plan plan = {{0}};
    struct err err = {0};
    struct shm *shm;
    struct proc_row row;

    plan.bytes[SHM_PROCS] = proc_table_bytes(1);
    shm = shm_new(&plan, &err);
    shm_write_begin(&proc_row(shm, 0)->seq);
    proc_row(shm, 0)->pid = 77;
    proc_row_copy(shm, 0, &row); /* returns, torn or not */
    ck_assert_int_eq(row.pid, 77);
    shm_write_begin(&proc_row(shm, 0)->seq); /* its successor */
    proc_row(shm, 0)->pid = 78;
    shm_write_end(&proc_row(shm, 0)->seq);
    ck_assert_uint_eq(shm_read_begin(&proc_row(shm, 0)->seq) & 1, 0);
    shm_free(&shm);
}
END_TEST

START_TEST(roles_have_names)
{
    ck_assert_str_eq(proc_role_name(ROLE_WORKER), "worker");
    ck_assert_str_eq(proc_role_app_name(ROLE_SUPERVISOR), "main");
    ck_assert_str_eq(proc_role_title(ROLE_WORKER), "wait for connection request");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("shm");
    TCase *t = tcase_create("shm");

    tcase_add_test(t, regions_are_apart_and_aligned);
    tcase_add_test(t, impossible_sizes_are_refused);
    tcase_add_test(t, copies_are_never_torn);
    tcase_add_test(t, dead_writer_does_not_hold_readers);
    tcase_add_test(t, roles_have_names);
    suite_add_tcase(s, t);
    return run_suite(s);
}
