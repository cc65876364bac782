/* SPDX-License-Identifier: PostgreSQL
 * test_log.c: log lines: prefix escapes and padding, levels, DETAIL and HINT, escaping, JSON,
 * limits. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"

#include "run_suite.h"

#define REPLACED "\xef\xbf\xbd"

struct catcher {
    char text[2 * LOG_JSONLINE_MAX];
    enum log_level level;
    int events;
};

static void catch_event(enum log_level level, const char *text, unsigned len, void *ctx)
{
    struct catcher *c = ctx;

    ck_assert_uint_lt(len, sizeof c->text);
    memcpy(c->text, text, len);
    c->text[len] = '\0';
    c->level = level;
    c->events++;
}

static struct catcher caught;

static void setup(void)
{
    memset(&caught, 0, sizeof caught);
    log_set_sink(catch_event, &caught);
    log_set_process("child", "wait for connection request");
    log_configure("", LVL_DEBUG5, LOG_DEFAULT);
    log_set_json(false);
    log_set_jsonlog(NULL, NULL, false);
    log_set_client_limit(100);
}

START_TEST(layout_is_pgpools)
{
    struct err err = {0};

    log_at(LVL_LOG, "new %s", "thing");
    ck_assert_str_eq(caught.text, "LOG:  new thing\n");
    log_at(LVL_DEBUG3, "x");
    ck_assert_str_eq(caught.text, "DEBUG:  x\n");
    err_set_fatal(&err, "08006", "server gone");
    err_detail(&err, "It closed.");
    err_hint(&err, "Look at it.");
    log_err(LVL_FATAL, &err);
    ck_assert_str_eq(caught.text, "FATAL:  server gone\nDETAIL:  It closed.\nHINT:  Look at it.\n");
    ck_assert_int_eq(caught.events, 3);
}
END_TEST

START_TEST(detail_lines_have_the_prefix)
{
    log_configure("%a %p ", LVL_LOG, LOG_DEFAULT);
    log_at_detail(LVL_LOG, "why", NULL, "what");
    {
        char want[128];

        snprintf(want, sizeof want, "child %d LOG:  what\nchild %d DETAIL:  why\n", (int)getpid(),
            (int)getpid());
        ck_assert_str_eq(caught.text, want);
    }
}
END_TEST

START_TEST(verbosity_cuts_and_adds)
{
    struct err err = {0};
    char want[128];
    int line;

    err_set(&err, "53300", "too many");
    err_hint(&err, "Wait.");
    log_configure("", LVL_LOG, LOG_TERSE);
    log_err(LVL_FATAL, &err);
    ck_assert_str_eq(caught.text, "FATAL:  too many\n");
    log_configure("", LVL_LOG, LOG_VERBOSE);
    line = __LINE__ + 1;
    log_err(LVL_FATAL, &err);
    snprintf(want, sizeof want,
        "FATAL:  53300: too many\nHINT:  Wait.\nLOCATION:  %s, test_log.c:%d\n", __func__, line);
    ck_assert_str_eq(caught.text, want);
    log_at(LVL_LOG, "x");
    ck_assert_int_eq(strncmp(caught.text, "LOG:  00000: x\nLOCATION:  ", 26), 0);
}
END_TEST

START_TEST(levels_of_a_session_are_its_own)
{
    static const struct log_context loud = {
        .has_levels = true, .min_level = LVL_DEBUG1, .verbosity = LOG_TERSE};
    static const struct log_context quiet = {
        .has_levels = true, .min_level = LVL_FATAL, .verbosity = LOG_DEFAULT};

    log_configure("", LVL_WARNING, LOG_DEFAULT);
    log_use_context(&loud);
    log_at_detail(LVL_DEBUG1, "why", NULL, "what");
    ck_assert_str_eq(caught.text, "DEBUG:  what\n");
    log_use_context(&quiet);
    log_at(LVL_LOG, "not written");
    log_use_context(NULL);
    log_at(LVL_DEBUG1, "nor this");
    ck_assert_int_eq(caught.events, 1);
}
END_TEST

static void cause(int n)
{
    while (n-- > 0)
        log_caused(LVL_LOG, "caused");
}

START_TEST(what_clients_cause_is_limited_by_place)
{
    log_set_client_limit(5);
    cause(1000);
    ck_assert_int_ge(caught.events, 5);
    ck_assert_int_le(caught.events, 10); /* the second may turn in between */
    log_caused(LVL_LOG, "another place");
    ck_assert_str_eq(caught.text, "LOG:  another place\n");
    log_set_client_limit(0);
    caught.events = 0;
    cause(1000);
    ck_assert_int_eq(caught.events, 1000);
}
END_TEST

START_TEST(escapes_and_padding)
{
    static const struct log_context ctx = {
        .app_name = "psql", .user = "alice", .database = "db", .host = "192.0.2.1", .port = 4711};
    static const struct log_context local = {.host = "[local]"};
    char want[256];

    log_use_context(&ctx);
    log_configure("[%a|%8u|%-6d|%%|%P|%q|%p]", LVL_LOG, LOG_DEFAULT);
    log_at(LVL_LOG, "x");
    snprintf(want, sizeof want,
        "[psql|   alice|db    |%%|wait for connection request||%d]LOG:  x\n", (int)getpid());
    ck_assert_str_eq(caught.text, want);
    log_configure("%h|%r|%20r|", LVL_LOG, LOG_DEFAULT);
    log_at(LVL_LOG, "x");
    ck_assert_str_eq(caught.text, "192.0.2.1|192.0.2.1(4711)|     192.0.2.1(4711)|LOG:  x\n");
    ck_assert_ptr_eq(log_use_context(&local), &ctx);
    log_at(LVL_LOG, "x");
    ck_assert_str_eq(caught.text, "[local]|[local]|             [local]|LOG:  x\n");
    log_use_context(NULL);
    log_configure("%a %u %d %h %r ", LVL_LOG, LOG_DEFAULT);
    log_at(LVL_LOG, "x");
    ck_assert_str_eq(caught.text,
        "child [No Connection] [No Connection] [No Connection] [No Connection] LOG:  x\n");
}
END_TEST

START_TEST(odd_prefixes_do_no_harm)
{
    static const char *const odd[] = {
        "%", "abc%", "%-", "%99999999999999999999a", "%-0u", "%5", ""};
    size_t i;

    for (i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        log_configure(odd[i], LVL_LOG, LOG_DEFAULT);
        log_at(LVL_LOG, "end");
        ck_assert_ptr_nonnull(strstr(caught.text, "LOG:  end\n"));
        ck_assert_uint_lt(strlen(caught.text), 300);
    }
}
END_TEST

START_TEST(line_numbers_count_events)
{
    log_configure("%l:", LVL_LOG, LOG_DEFAULT);
    log_at(LVL_LOG, "a");
    ck_assert_str_eq(caught.text, "1:LOG:  a\n");
    log_at_detail(LVL_LOG, "d", NULL, "b");
    ck_assert_str_eq(caught.text, "2:LOG:  b\n2:DETAIL:  d\n");
}
END_TEST

START_TEST(times_are_local)
{
    struct timespec now;
    struct tm tm;
    char want[32];
    int tries;

    setenv("TZ", "Asia/Kolkata", 1);
    tzset();
    for (tries = 0; tries < 3; tries++) {    /* the second may turn between the two looks */
        clock_gettime(CLOCK_REALTIME, &now); /* time() lags behind it by up to a tick */
        localtime_r(&now.tv_sec, &tm);
        strftime(want, sizeof want, "%Y-%m-%d %H:%M:%S", &tm);
        log_configure("%t|%m|", LVL_LOG, LOG_DEFAULT);
        log_at(LVL_LOG, "x");
        if (strncmp(caught.text, want, 19) == 0)
            break;
    }
    ck_assert_int_lt(tries, 3);
    ck_assert_int_eq(caught.text[19], '|');
    ck_assert_int_eq(strncmp(caught.text + 20, want, 18), 0);
    ck_assert_int_eq(caught.text[39], '.');
    ck_assert_int_eq(caught.text[43], '|');
}
END_TEST

START_TEST(one_event_is_one_line)
{
    log_at(LVL_LOG, "a\nLOG:  forged\r\x01\x7fz\ttab");
    ck_assert_str_eq(caught.text, "LOG:  a\\nLOG:  forged\\r\\x01\\x7fz\ttab\n");
}
END_TEST

START_TEST(prefix_values_are_escaped_too)
{
    static const struct log_context ctx = {.user = "eve\nLOG:  root logged in"};

    log_use_context(&ctx);
    log_configure("%u ", LVL_LOG, LOG_DEFAULT);
    log_at(LVL_LOG, "x");
    ck_assert_str_eq(caught.text, "eve\\nLOG:  root logged in LOG:  x\n");
    log_use_context(NULL);
}
END_TEST

START_TEST(long_texts_are_whole)
{
    char text[5000];

    memset(text, 'q', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    log_at(LVL_LOG, "%s", text);
    ck_assert_uint_eq(strlen(caught.text), strlen("LOG:  \n") + sizeof text - 1);
}
END_TEST

START_TEST(levels_rank_as_in_pgpool)
{
    log_configure("", LVL_WARNING, LOG_DEFAULT);
    ck_assert(!log_is_on(LVL_NOTICE) && !log_is_on(LVL_INFO) && log_is_on(LVL_ERROR));
    ck_assert(log_is_on(LVL_LOG)); /* LOG ranks above ERROR for the log */
    log_configure("", LVL_FATAL, LOG_DEFAULT);
    ck_assert(!log_is_on(LVL_LOG));
    log_at(LVL_LOG, "not written");
    ck_assert_int_eq(caught.events, 0);
    ck_assert(!log_level_reaches_client(LVL_LOG, LVL_NOTICE));
    ck_assert(log_level_reaches_client(LVL_LOG, LVL_DEBUG1));
    ck_assert(log_level_reaches_client(LVL_LOG, LVL_LOG));
    ck_assert(!log_level_reaches_client(LVL_DEBUG1, LVL_LOG));
    ck_assert(log_level_reaches_client(LVL_NOTICE, LVL_LOG));
    ck_assert(log_level_reaches_client(LVL_INFO, LVL_FATAL));
    ck_assert(!log_level_reaches_client(LVL_WARNING, LVL_ERROR));
}
END_TEST

START_TEST(json_is_one_object)
{
    static const struct log_context ctx = {.user = "a\"b", .database = "c\\d"};
    struct err err = {0};

    log_set_json(true);
    log_use_context(&ctx);
    err_set(&err, "08P01", "two\nlines \x02");
    err_hint(&err, "h");
    log_err(LVL_ERROR, &err);
    log_use_context(NULL);
    ck_assert_ptr_nonnull(strstr(caught.text, "\"level\":\"ERROR\""));
    ck_assert_ptr_nonnull(strstr(caught.text, "\"user\":\"a\\\"b\",\"database\":\"c\\\\d\""));
    ck_assert_ptr_nonnull(strstr(caught.text, "\"message\":\"two\\nlines \\u0002\""));
    ck_assert_ptr_nonnull(strstr(caught.text, "\"sqlstate\":\"08P01\""));
    ck_assert_ptr_nonnull(strstr(caught.text, "\"hint\":\"h\"}\n"));
    ck_assert_ptr_eq(strchr(caught.text, '\n'), caught.text + strlen(caught.text) - 1);
}
END_TEST

START_TEST(jsonlog_escapes_strictly)
{
    static const struct {
        const char *text;
        const char *json;
    } table[] = {
        {"plain", "plain"},
        {"", ""},
        {"a\"b\\c", "a\\\"b\\\\c"},
        {"\n\r\t", "\\n\\r\\t"},
        {"\x01\x1f\x7f", "\\u0001\\u001f\\u007f"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x98", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x98"},
        {"\xff|\x80", REPLACED "|" REPLACED},
        {"\xc3", REPLACED},              /* ends too early */
        {"\xc0\xaf", REPLACED REPLACED}, /* overlong */
        {"\xe0\x9f\xbf", REPLACED REPLACED REPLACED},
        {"\xed\xa0\x80", REPLACED REPLACED REPLACED}, /* half a surrogate pair */
        {"\xf4\x90\x80\x80", REPLACED REPLACED REPLACED REPLACED},
        {"\xe2\x82\"", REPLACED REPLACED "\\\""},
    };
    char wanted[256];
    size_t i;

    log_set_jsonlog(catch_event, &caught, true);
    for (i = 0; i < sizeof table / sizeof table[0]; i++) {
        log_at(LVL_LOG, "%s", table[i].text);
        snprintf(wanted, sizeof wanted, ",\"message\":\"%s\"}\n", table[i].json);
        ck_assert_msg(strstr(caught.text, wanted) != NULL, "%zu: %s", i, caught.text);
    }
    ck_assert_int_eq(caught.events, (int)i); /* nothing for the other sink */
}
END_TEST

START_TEST(jsonlog_has_postgresqls_names)
{
    static const struct log_context ctx = {.user = "u\n\"",
        .database = "d",
        .app_name = "psql",
        .host = "::1",
        .port = 5,
        .client_id = 7,
        .node = 0,
        .server_pid = 99,
        .fingerprint = "00ff00ff00ff00ff",
        .trace_id = "0af7651916cd43dd8448eb211c80319c",
        .span_id = "b7ad6b7169203331"};
    struct err err = {0};
    char pid[32];

    log_set_jsonlog(catch_event, &caught, false);
    log_use_context(&ctx);
    err_set(&err, "08P01", "m");
    err_detail(&err, "more");
    err_hint(&err, "h");
    log_set_sink(NULL, NULL); /* standard error has the text */
    log_err(LVL_ERROR, &err);
    log_use_context(NULL);
    snprintf(pid, sizeof pid, "\"pid\":%d,", (int)getpid());
    ck_assert_ptr_eq(strstr(caught.text, "{\"timestamp\":\""), caught.text);
    ck_assert_ptr_nonnull(strstr(caught.text, pid));
    ck_assert_ptr_nonnull(strstr(caught.text,
        "\"ps\":\"wait for connection request\",\"backend_type\":\"child\",\"user\":\"u\\n\\\"\","
        "\"dbname\":\"d\",\"application_name\":\"psql\",\"remote_host\":\"::1\",\"remote_port\":5,"
        "\"client_id\":7,\"node\":0,\"server_pid\":99,\"fingerprint\":\"00ff00ff00ff00ff\","
        "\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\",\"span_id\":\"b7ad6b7169203331\","
        "\"error_severity\":\"ERROR\","
        "\"state_code\":\"08P01\",\"message\":\"m\",\"detail\":\"more\",\"hint\":\"h\"}\n"));
    ck_assert_int_eq(caught.events, 1);
}
END_TEST

START_TEST(jsonlog_lines_are_bounded)
{
    char *text = malloc(2 * LOG_JSONLINE_MAX);
    size_t n;

    memset(text, 1, 2 * LOG_JSONLINE_MAX); /* six bytes each */
    text[2 * LOG_JSONLINE_MAX - 1] = '\0';
    log_set_jsonlog(catch_event, &caught, true);
    log_at_detail(LVL_LOG, text, text, "%s", text);
    n = strlen(caught.text);
    ck_assert_uint_le(n, LOG_JSONLINE_MAX);
    ck_assert_uint_gt(n, LOG_JSONLINE_MAX / 2);
    ck_assert_str_eq(caught.text + n - strlen("\\u0001...\"}\n"), "\\u0001...\"}\n");
    free(text);
}
END_TEST

START_TEST(limits_count_what_they_swallow)
{
    struct log_limit lim = {.burst = 3};
    int passed = 0;
    int i;

    for (i = 0; i < 20; i++)
        passed += log_limit_pass(&lim);
    ck_assert_int_ge(passed, 3); /* the second may turn in between */
    ck_assert_int_le(passed, 6);
    lim.window_start_s--; /* the next second */
    ck_assert(log_limit_pass(&lim));
    log_at(LVL_LOG, "again");
    ck_assert_ptr_nonnull(strstr(caught.text, "similar messages suppressed)\n"));
    log_at(LVL_LOG, "other");
    ck_assert_str_eq(caught.text, "LOG:  other\n");
}
END_TEST

START_TEST(zeroed_limit_follows_the_setting)
{
    struct log_limit lim = {0};
    int passed = 0;
    int i;

    log_set_client_limit(2);
    for (i = 0; i < 20; i++)
        passed += log_limit_pass(&lim);
    ck_assert_int_le(passed, 4);
    log_set_client_limit(0);
    for (i = 0; i < 20; i++)
        ck_assert(log_limit_pass(&lim));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("log");
    TCase *t = tcase_create("log");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, layout_is_pgpools);
    tcase_add_test(t, detail_lines_have_the_prefix);
    tcase_add_test(t, verbosity_cuts_and_adds);
    tcase_add_test(t, levels_of_a_session_are_its_own);
    tcase_add_test(t, what_clients_cause_is_limited_by_place);
    tcase_add_test(t, escapes_and_padding);
    tcase_add_test(t, odd_prefixes_do_no_harm);
    tcase_add_test(t, line_numbers_count_events);
    tcase_add_test(t, times_are_local);
    tcase_add_test(t, one_event_is_one_line);
    tcase_add_test(t, prefix_values_are_escaped_too);
    tcase_add_test(t, long_texts_are_whole);
    tcase_add_test(t, levels_rank_as_in_pgpool);
    tcase_add_test(t, json_is_one_object);
    tcase_add_test(t, jsonlog_escapes_strictly);
    tcase_add_test(t, jsonlog_has_postgresqls_names);
    tcase_add_test(t, jsonlog_lines_are_bounded);
    tcase_add_test(t, limits_count_what_they_swallow);
    tcase_add_test(t, zeroed_limit_follows_the_setting);
    suite_add_tcase(s, t);
    return run_suite(s);
}
