/* SPDX-License-Identifier: PostgreSQL
 * test_hook.c: signs in commands, in every kind of quotes and with values that a shell would take
 * for more; each line is given to a real shell, which must hand the value on unharmed. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "cluster/hook.h"

#include "run_suite.h"

static const char *const nasty[] = {"/data", "/my data", "it's", "a\"b", "$(touch /tmp/no)", "`id`",
    "a;b&c|d", "$HOME", "back\\slash", "*?[a]", "x'\"'y", "-n", "~root", "#c", "a\\'b", ""};

static struct hook_facts facts;
static struct view *view;
static struct hook_node nodes[2];

static void setup(void)
{
    view = mem_alloc_zero(sizeof *view);
    nodes[0] = (struct hook_node){.id = 0, .host = "h0", .port = 5432, .data_dir = "/d0"};
    nodes[1] = (struct hook_node){.id = 1, .host = "h1", .port = 5433, .data_dir = "/d1"};
    facts =
        (struct hook_facts){.kind = HOOK_FAILOVER, .reason = "gone", .who = "monitor", .nnodes = 2};
    facts.node = nodes[0];
    facts.new_main = nodes[1];
    facts.old_main = nodes[0];
    facts.old_primary = nodes[0];
    facts.nodes = nodes;
    facts.view = view;
}

static void teardown(void)
{
    mem_free(view);
}

/* What a shell makes of `line`: its output, cut to the room. */
static void ask_shell(const char *line, char *out, size_t room)
{
    int fd[2];
    size_t n = 0;
    ssize_t got;
    pid_t pid;

    ck_assert_int_eq(pipe(fd), 0);
    pid = fork();
    if (pid == 0) {
        dup2(fd[1], 1);
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    close(fd[1]);
    while (n < room - 1 && (got = read(fd[0], out + n, room - 1 - n)) > 0)
        n += (size_t)got;
    out[n] = '\0';
    close(fd[0]);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void expect(const char *line, const char *wanted)
{
    struct buf out = {0};
    struct err err = {0};

    ck_assert_int_eq(hook_line(line, &facts, &out, &err), 0);
    ck_assert_str_eq(out.data, wanted);
    buf_free(&out);
}

START_TEST(test_all_signs)
{
    expect(
        "f %d %h %p %D %m %H %r %R %M %P %N %S %%", "f 0 h0 5432 /d0 1 h1 5433 /d1 0 0 h0 5432 %");
    expect("%x f %", " f %");
    expect("'%h' \"%H\"", "'h0' \"h1\"");
}
END_TEST

START_TEST(test_nobody_is_left)
{
    facts.new_main = (struct hook_node){.id = VIEW_NO_NODE, .host = "", .data_dir = ""};
    expect("f %m %H %r %R", "f \"\" \"\" \"\" \"\"");
    expect("f '%H'", "f ''");
}
END_TEST

START_TEST(test_values_stay_values)
{
    static const char *const places[] = {
        "printf %%s %D", "printf %%s '%D'", "printf %%s \"%D\"", "printf '%%s' \"\"%D''"};
    struct buf out = {0};
    struct err err = {0};
    char got[256];
    size_t i;
    size_t k;

    for (i = 0; i < sizeof nasty / sizeof nasty[0]; i++) {
        facts.node.data_dir = nasty[i];
        for (k = 0; k < sizeof places / sizeof places[0]; k++) {
            buf_clear(&out);
            ck_assert_int_eq(hook_line(places[k], &facts, &out, &err), 0);
            ask_shell(out.data, got, sizeof got);
            ck_assert_msg(strcmp(got, nasty[i]) == 0, "%s gave %s", out.data, got);
        }
    }
    ck_assert_int_ne(access("/tmp/no", F_OK), 0);
    buf_free(&out);
}
END_TEST

START_TEST(test_refused_where_it_is_not_safe)
{
    static const char *const places[] = {
        "echo $(ls %D)", "echo `ls %D`", "echo ${x:-%D}", "echo \\%D", "echo $'\\'' %D"};
    struct buf out = {0};
    struct err err = {0};
    size_t i;

    for (i = 0; i < sizeof places / sizeof places[0]; i++) {
        facts.node.data_dir = "a b";
        ck_assert_int_eq(hook_line(places[i], &facts, &out, &err), -1);
        facts.node.data_dir = "/plain";
        ck_assert_int_eq(hook_line(places[i], &facts, &out, &err), 0);
    }
    facts.node.data_dir = "two\nlines";
    ck_assert_int_eq(hook_line("f %D", &facts, &out, &err), -1);
    buf_free(&out);
}
END_TEST

START_TEST(test_environment)
{
    struct buf out = {0};
    int n = hook_env(&facts, &out);
    bool found = false;
    size_t at;

    ck_assert_int_gt(n, 10);
    for (at = 0; at < out.len; at += strlen(out.data + at) + 1, n--)
        if (strcmp(out.data + at, "PGPOOL_NEW_PRIMARY_DATA_DIRECTORY=/d1") == 0)
            found = true;
    ck_assert_int_eq(n, 0);
    ck_assert(found);
    buf_free(&out);
}
END_TEST

/* The number of a failover that is in the log of several pgpools. */
START_TEST(test_epoch)
{
    static const struct {
        uint32_t epoch;
        const char *env, *json;
    } rows[] = {
        {0, "PGPOOL_EPOCH=", "\"actor\":\"monitor\",\"epoch\":null,\"node\":"},
        {1, "PGPOOL_EPOCH=1", "\"actor\":\"monitor\",\"epoch\":1,\"node\":"},
        {UINT32_MAX, "PGPOOL_EPOCH=4294967295",
            "\"actor\":\"monitor\",\"epoch\":4294967295,\"node\":"},
    };
    size_t i;
    size_t at;

    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct buf env = {0};
        struct buf json = {0};
        int found = 0;

        facts.epoch = rows[i].epoch;
        ck_assert_int_le(hook_env(&facts, &env), HOOK_MAX_ENV);
        for (at = 0; at < env.len; at += strlen(env.data + at) + 1)
            found += strcmp(env.data + at, rows[i].env) == 0;
        ck_assert_int_eq(found, 1);
        hook_json(&facts, &json);
        buf_put_byte(&json, '\0');
        ck_assert_ptr_nonnull(strstr(json.data, rows[i].json));
        buf_free(&env);
        buf_free(&json);
    }
}
END_TEST

START_TEST(test_json)
{
    struct buf out = {0};

    facts.node.data_dir = "a\"b\\c\n";
    view->node[1].received_lsn = UINT64_C(0x100000abc);
    hook_json(&facts, &out);
    buf_put_byte(&out, '\0');
    ck_assert_ptr_nonnull(strstr(out.data, "\"event\":\"failover\""));
    ck_assert_ptr_nonnull(strstr(out.data, "\"data_directory\":\"a\\\"b\\\\c\\u000a\""));
    ck_assert_ptr_nonnull(strstr(out.data, "\"received_lsn\":\"1/ABC\""));
    buf_free(&out);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("hook");
    TCase *t = tcase_create("all");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, test_all_signs);
    tcase_add_test(t, test_nobody_is_left);
    tcase_add_test(t, test_values_stay_values);
    tcase_add_test(t, test_refused_where_it_is_not_safe);
    tcase_add_test(t, test_environment);
    tcase_add_test(t, test_epoch);
    tcase_add_test(t, test_json);
    suite_add_tcase(s, t);
    return run_suite(s);
}
