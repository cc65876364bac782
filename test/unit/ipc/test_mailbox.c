/* SPDX-License-Identifier: PostgreSQL
 * test_mailbox.c: messages and descriptors between processes. */
#include "config.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/mailbox.h"

#include "run_suite.h"

static int count_fds(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

START_TEST(message_arrives_with_its_descriptor)
{
    struct err err = {0};
    struct mailboxes *m = mailboxes_open(3, &err);
    struct mail mail;
    int ends[2];
    char byte = 0;

    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(mailbox_take(m, &mail), 0);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(mailbox_post(m, 0, MAIL_RELOAD, "hello", 5, ends[1]), 0);
    close(ends[1]);
    ck_assert_int_eq(mailbox_take(m, &mail), 1);
    ck_assert_int_eq(mail.type, MAIL_RELOAD);
    ck_assert_int_eq(mail.from_slot, 0);
    ck_assert_uint_eq(mail.len, 5);
    ck_assert_int_eq(memcmp(mail.body, "hello", 5), 0);
    ck_assert_int_ne(mail.fd, -1);
    ck_assert_int_eq(write(mail.fd, "x", 1), 1);
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 'x');
    close(mail.fd);
    close(ends[0]);
    mailboxes_close(&m);
    ck_assert_ptr_null(m);
}
END_TEST

START_TEST(child_reads_its_own_box)
{
    struct err err = {0};
    struct mailboxes *m = mailboxes_open(3, &err);
    struct mail mail;
    int status;
    pid_t pid;

    ck_assert_int_eq(mailbox_post(m, 2, MAIL_SHUTDOWN, "f", 1, -1), 0);
    pid = fork();
    if (pid == 0) {
        int ok = mailboxes_attach(m, 2) != -1 && mailbox_take(m, &mail) == 1 &&
                 mail.type == MAIL_SHUTDOWN && mail.body[0] == 'f' &&
                 mailbox_post(m, 0, MAIL_REQUEST, "r", 1, -1) == 0;

        _exit(ok ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(mailbox_take(m, &mail), 1);
    ck_assert_int_eq(mail.type, MAIL_REQUEST);
    ck_assert_int_eq(mail.from_slot, 2);
    mailboxes_close(&m);
}
END_TEST

START_TEST(full_box_is_an_error_and_drains)
{
    struct err err = {0};
    struct mailboxes *m = mailboxes_open(2, &err);
    static char body[MAILBOX_MAX_BYTES / 4];
    int before = count_fds();
    int ends[2];
    int posted = 0;

    ck_assert_int_eq(pipe(ends), 0);
    while (posted < 100000 &&
           mailbox_post(m, 1, MAIL_CLIENT, body, sizeof body, posted < 5 ? ends[0] : -1) == 0)
        posted++;
    ck_assert_int_gt(posted, 20);
    ck_assert_int_lt(posted, 100000);
    ck_assert_int_eq(errno, EAGAIN);
    close(ends[0]);
    close(ends[1]);
    mailbox_drain(m, 1);
    ck_assert_int_eq(count_fds(), before);
    ck_assert_int_eq(mailbox_post(m, 1, MAIL_CLIENT, body, 1, -1), 0);
    mailboxes_close(&m);
}
END_TEST

START_TEST(list_names_all_a_child_keeps)
{
    struct err err = {0};
    struct mailboxes *m = mailboxes_open(4, &err);
    int fds[16];

    ck_assert_int_eq(mailboxes_list_fds(m, 2, fds, 16), 5);
    ck_assert_int_eq(mailboxes_list_fds(m, 2, fds, 3), 3);
    ck_assert_str_eq(mail_name(MAIL_RELOAD), "RELOAD");
    mailboxes_close(&m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mailbox");
    TCase *t = tcase_create("mailbox");

    tcase_add_test(t, message_arrives_with_its_descriptor);
    tcase_add_test(t, child_reads_its_own_box);
    tcase_add_test(t, full_box_is_an_error_and_drains);
    tcase_add_test(t, list_names_all_a_child_keeps);
    suite_add_tcase(s, t);
    return run_suite(s);
}
