/* SPDX-License-Identifier: PostgreSQL
 * test_admin_recognise.c: which statements are pgpool's own: all spellings of ours, and look-alikes
 * that belong to the server. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin.h"
#include "admin/kill.h"
#include "wire/errmsg.h"

#include "run_suite.h"

static struct admin_cmd cmd;

static bool ours(const char *sql)
{
    return admin_recognise(slice_of_str(sql), &cmd);
}

START_TEST(every_report_by_name)
{
    struct buf sql = {0};
    int i;

    for (i = 0; i < ADMIN_REPORT_COUNT; i++) {
        buf_clear(&sql);
        buf_printf(&sql, "SHOW %s", admin_report_info((enum admin_report)i)->name);
        ck_assert(admin_recognise(buf_slice(&sql), &cmd));
        ck_assert_int_eq(cmd.kind, ADMIN_KIND_REPORT);
        ck_assert_int_eq(cmd.report, i);
    }
    buf_free(&sql);
}
END_TEST

START_TEST(everybody_may_read_reports)
{
    int i;

    /* A report for operators only has to be added here by name. */
    for (i = 0; i < ADMIN_REPORT_COUNT; i++)
        ck_assert_int_eq(admin_report_info((enum admin_report)i)->privilege, ADMIN_MAY_ANYONE);
}
END_TEST

START_TEST(mode_of_the_session)
{
    static const struct {
        const char *sql;
        enum admin_kind kind;
    } is[] = {{"show pool_mode", ADMIN_KIND_MODE_SHOW},
        {"SHOW \"pool_mode\";", ADMIN_KIND_MODE_SHOW},
        {"set pool_mode = 'session'", ADMIN_KIND_MODE_SET},
        {"Set Session Pool_Mode To statement", ADMIN_KIND_MODE_SET},
        {"/* c */ set/**/pool_mode=default -- d", ADMIN_KIND_MODE_SET},
        {"reset pool_mode;", ADMIN_KIND_MODE_RESET}};
    static const char *const no[] = {"set pool_modes = 'a'", "set pool_mode",
        "set pool_mode =", "set local pool_mode = 'session'", "set pool_mode = 'session'; select 1",
        "reset all", "reset pool_mode, x", "show pool_mode x", "set \"POOL_MODE\" = 'session'",
        "set x.pool_mode = 1", "reset", "set", "res", "set session",
        "set session characteristics as transaction read only", "select 1",
        "release savepoint pool_mode", "reset session authorization"};
    size_t i;

    for (i = 0; i < sizeof is / sizeof is[0]; i++) {
        ck_assert_msg(ours(is[i].sql), "%s", is[i].sql);
        ck_assert_int_eq(cmd.kind, is[i].kind);
        ck_assert_str_eq(cmd.name, "pool_mode");
    }
    ck_assert(ours("set pool_mode to 'session'"));
    ck_assert(slice_eq_str(cmd.value, "'session'") && !cmd.is_default);
    ck_assert(ours("set pool_mode to default") && cmd.is_default);
    for (i = 0; i < sizeof no / sizeof no[0]; i++)
        ck_assert_msg(!ours(no[i]), "%s", no[i]);
}
END_TEST

START_TEST(spellings_of_a_report)
{
    static const char *const yes[] = {"show pool_nodes", "SHOW POOL_NODES", "ShOw PoOl_NoDeS",
        "show pool_nodes;", "show pool_nodes ; ;\n", " \t\r\n\f\vshow\npool_nodes",
        "SHOW \"pool_nodes\"", "/* a */ show /* b /* nested */ */ pool_nodes -- c",
        "-- first\nshow pool_nodes", "show--\npool_nodes", "show/**/pool_nodes",
        "show pool_nodes --", "show pool_nodes;/* end */ -- end", "show\"pool_nodes\""};
    size_t i;

    for (i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        ck_assert_msg(ours(yes[i]), "%s", yes[i]);
        ck_assert_int_eq(cmd.kind, ADMIN_KIND_REPORT);
        ck_assert_int_eq(cmd.report, ADMIN_REPORT_NODES);
    }
}
END_TEST

START_TEST(statements_of_the_server)
{
    static const char *const no[] = {"", " ", ";", "--", "/*", "/* show pool_nodes */",
        "-- show pool_nodes", "show", "show ", "show all", "show pool", "show pool_",
        "show pool_node", "show pool_nodes2", "show pool_nodes.x", "show pool_nodes x",
        "show pool_nodes, pool_cache", "show pool_nodes; select 1",
        "show pool_nodes; show pool_nodes", "select 1; show pool_nodes", "SHOW \"POOL_NODES\"",
        "SHOW \"pool_nodes", "show 'pool_nodes'", "show pool_nodes /* open",
        "show pool_nodes 'open", "showpool_nodes", "show_pool_nodes", "\"show\" pool_nodes",
        "'show pool_nodes'", "e'show'", "; show pool_nodes", "(show pool_nodes)",
        "explain show pool_nodes", "select * from pgpool", "set pgpool.x = 1", "pgpool_show all",
        "\"pgpool\" show all", "\"PGPOOL\" show all", "pgpoolshow all", "pgpool$ show",
        "update pgpool set x = 1", "select 'it''s", "$$ show pool_nodes",
        "\xef\xbb\xbfshow pool_nodes", "show pool_nodes\xc3\xa4"};
    size_t i;

    for (i = 0; i < sizeof no / sizeof no[0]; i++) {
        ck_assert_msg(!ours(no[i]), "%s", no[i]);
        ck_assert_int_eq(cmd.kind, ADMIN_KIND_NONE);
    }
    /* A NUL is no blank. */
    ck_assert(!admin_recognise(slice_of("show\0pool_nodes", 15), &cmd));
    ck_assert(!admin_recognise(slice_of(NULL, 0), &cmd));
}
END_TEST

START_TEST(nothing_behind_the_end_is_read)
{
    /* A report's bytes, cut at every length: only the whole one is a report. */
    static const char sql[] = "/*x*/ show \"pool_nodes\"--c";
    char *copy;
    size_t n;

    for (n = 0; n < sizeof sql; n++) {
        copy = malloc(n + 1);
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, sql, n);
        ck_assert_int_eq(admin_recognise(slice_of(copy, n), &cmd), n >= 23 && n != 24);
        free(copy);
    }
}
END_TEST

static void assert_name(const char *sql, enum admin_kind kind, const char *name)
{
    ck_assert_msg(ours(sql), "%s", sql);
    ck_assert_msg(cmd.kind == kind, "%s", sql);
    ck_assert_str_eq(cmd.name, name);
}

START_TEST(pgpool_show_and_reset)
{
    assert_name("PGPOOL SHOW port", ADMIN_KIND_SHOW, "port");
    assert_name("pgpool show PORT;", ADMIN_KIND_SHOW, "port");
    assert_name("pgpool /**/ show ALL", ADMIN_KIND_SHOW, "all");
    assert_name("pgpool show backend_port0", ADMIN_KIND_SHOW, "backend_port0");
    assert_name("pgpool show \"Port\"", ADMIN_KIND_SHOW, "Port");
    assert_name("pgpool show \"a\"\"b\"", ADMIN_KIND_SHOW, "a\"b");
    assert_name("pgpool show a . B", ADMIN_KIND_SHOW, "a.b");
    assert_name("PGPOOL RESET ALL", ADMIN_KIND_RESET, "all");
    assert_name("PGPOOL RESET client_idle_limit --", ADMIN_KIND_RESET, "client_idle_limit");
    /* Reports are no settings. */
    assert_name("pgpool show pool_nodes", ADMIN_KIND_SHOW, "pool_nodes");
    /* "set" as a name, "cache" as a name. */
    assert_name("pgpool show set", ADMIN_KIND_SHOW, "set");
    assert_name("pgpool set cache = 1", ADMIN_KIND_SET, "cache");
}
END_TEST

static void assert_set(const char *sql, const char *name, const char *value)
{
    assert_name(sql, ADMIN_KIND_SET, name);
    ck_assert_msg(slice_eq_str(cmd.value, value), "%s: %.*s", sql, (int)cmd.value.n, cmd.value.p);
}

static void assert_bad(const char *sql, const char *at)
{
    ck_assert_msg(ours(sql), "%s", sql);
    ck_assert_msg(cmd.kind == ADMIN_KIND_BAD, "%s", sql);
    ck_assert_msg(slice_eq_str(cmd.bad_at, at), "%s: %.*s", sql, (int)cmd.bad_at.n, cmd.bad_at.p);
}

START_TEST(pgpool_orders)
{
    assert_name("PGPOOL PAUSE", ADMIN_KIND_PAUSE, "");
    assert_name("pgpool pause;", ADMIN_KIND_PAUSE, "");
    assert_name("pgpool pause Shop ;", ADMIN_KIND_PAUSE, "shop");
    assert_name("pgpool resume \"Shop\" -- now", ADMIN_KIND_RESUME, "Shop");
    assert_name("pgpool drain", ADMIN_KIND_DRAIN, "");
    assert_name("pgpool reconnect shop", ADMIN_KIND_RECONNECT, "shop");
    ck_assert(ours("pgpool kill shop"));
    ck_assert(ours("pgpool shutdown wait_for_clients"));
    ck_assert(ours("PGPOOL KILL CLIENT 17;"));
    ck_assert_int_eq(cmd.kind, ADMIN_KIND_KILL_CLIENT);
    ck_assert(slice_eq_str(cmd.value, "17"));
    assert_bad("pgpool pause a b", "b");
    assert_bad("pgpool pause 'a'", "'a'");
    assert_bad("pgpool pause \"\"", "\"\"");
    assert_bad("pgpool pause a; select 1", "select");
    assert_bad("pgpool kill client", "");
    assert_bad("pgpool kill client -1", "-");
    assert_bad("pgpool kill client x", "x");
    assert_bad("pgpool kill client 1 2", "2");
}
END_TEST

START_TEST(pgpool_set)
{
    assert_set("PGPOOL SET client_idle_limit = 350", "client_idle_limit", "350");
    assert_set("pgpool set client_idle_limit to '6min';", "client_idle_limit", "'6min'");
    assert_set("pgpool set log_statement=on", "log_statement", "on");
    assert_set("pgpool set a = -5 ;", "a", "-5");
    assert_set("pgpool set a = - 5", "a", "- 5");
    assert_set("pgpool set a = 1.5, b , 'c'", "a", "1.5, b , 'c'");
    assert_set("pgpool set a = 'it''s; -- no /* end'", "a", "'it''s; -- no /* end'");
    assert_set("pgpool set a = E'\\'x'", "a", "E'\\'x'");
    assert_set("pgpool set a = ''", "a", "''");
    ck_assert(!cmd.is_default);
    assert_set("pgpool set a to DEFAULT", "a", "DEFAULT");
    ck_assert(cmd.is_default);
    assert_set("pgpool set a to 'default'", "a", "'default'");
    ck_assert(!cmd.is_default);
    ck_assert(ours("PGPOOL SET CACHE DELETE 'select 1;'"));
    ck_assert_int_eq(cmd.kind, ADMIN_KIND_CACHE_DELETE);
    ck_assert(slice_eq_str(cmd.value, "'select 1;'"));
}
END_TEST

START_TEST(pgpool_and_nonsense)
{
    char longer[300];

    assert_bad("PGPOOL", "");
    assert_bad("pgpool ;", ";");
    assert_bad("pgpool dance", "dance");
    assert_bad("pgpool 'show' all", "'show'");
    assert_bad("pgpool show", "");
    assert_bad("pgpool show ;", ";");
    assert_bad("pgpool show 'port'", "'port'");
    assert_bad("pgpool show 1", "1");
    assert_bad("pgpool show \"\"", "\"\"");
    assert_bad("pgpool show a b", "b");
    assert_bad("pgpool show a.", "");
    assert_bad("pgpool show all; select 1", "select");
    assert_bad("pgpool show all /* open", "/* open");
    assert_bad("pgpool set", "");
    assert_bad("pgpool set a", "");
    assert_bad("pgpool set a b", "b");
    assert_bad("pgpool set a =", "");
    assert_bad("pgpool set a = ;", ";");
    assert_bad("pgpool set a = (1)", "(");
    assert_bad("pgpool set a = 1,", "");
    assert_bad("pgpool set a = - x", "x");
    assert_bad("pgpool set a = 'open", "'open");
    assert_bad("pgpool set a = default, 1", ",");
    assert_bad("pgpool set a = 1 b = 2", "b");
    assert_bad("pgpool set cache delete", "");
    assert_bad("pgpool set cache delete x", "x");
    assert_bad("pgpool set cache delete 'a' 'b'", "'b'");
    assert_bad("pgpool reset", "");
    assert_bad("pgpool reset a, b", ",");
    memset(longer, 'x', sizeof longer);
    memcpy(longer, "pgpool show ", 12);
    longer[sizeof longer - 1] = '\0';
    assert_bad(longer, longer + 12);
}
END_TEST

/* What a server says is what a client hears, by the server's version. */
START_TEST(orders_about_clients_are_refused_as_by_the_server)
{
    static const struct {
        const char *version;
        bool is_cancel;
        const char *why; /* in the server's answer */
        const char *msg;
        const char *detail;
    } row[] = {
        {"15.4 (Debian)", true, "superuser", "must be a superuser to cancel superuser query", ""},
        {"15.4", false, "superuser", "must be a superuser to terminate superuser process", ""},
        {"9.6.1", true, "another role",
            "must be a member of the role whose query is being canceled or member of "
            "pg_signal_backend",
            ""},
        {"15.4", false, "another role",
            "must be a member of the role whose process is being terminated or member of "
            "pg_signal_backend",
            ""},
        {"16beta1", true, "superuser", "permission denied to cancel query",
            "Only roles with the SUPERUSER attribute may cancel queries of roles with the "
            "SUPERUSER attribute."},
        {"17.2", false, "superuser", "permission denied to terminate process",
            "Only roles with the SUPERUSER attribute may terminate processes of roles with the "
            "SUPERUSER attribute."},
        {"18.0", true, "another role", "permission denied to cancel query",
            "Only roles with privileges of the role whose query is being canceled or with "
            "privileges of the \"pg_signal_backend\" role may cancel this query."},
        {"16.1", false, "another role", "permission denied to terminate process",
            "Only roles with privileges of the role whose process is being terminated or with "
            "privileges of the \"pg_signal_backend\" role may terminate this process."},
    };
    struct errmsg m = {.sqlstate = slice_of_str("22P02")};
    struct buf question = {0};
    struct buf said = {0};
    struct admin_kill k = {0};
    struct err err;
    size_t i;

    admin_kill_put_question(slice_of_str("o'neill\\"), &question);
    ck_assert_ptr_nonnull(memmem(question.data, question.len, "6f276e65696c6c5c", 16));
    for (i = 0; i < sizeof row / sizeof row[0]; i++) {
        buf_clear(&said);
        buf_printf(&said, "invalid input syntax for type boolean: \"pgpool: of a %s\"", row[i].why);
        if (row[i].why[0] == 'a') {
            buf_clear(&said);
            buf_printf(&said, "ungültig: »pgpool: of %s«", row[i].why);
        }
        m.message = buf_slice(&said);
        k.is_cancel = row[i].is_cancel;
        ck_assert(admin_kill_refused(&k, &m, slice_of_str(row[i].version), &err));
        ck_assert_str_eq(err.sqlstate, "42501");
        ck_assert_str_eq(err.msg, row[i].msg);
        ck_assert_str_eq(err.detail, row[i].detail);
    }
    m.message = slice_of_str("division by zero");
    ck_assert(!admin_kill_refused(&k, &m, slice_of_str("15.4"), &err));
    buf_free(&question);
    buf_free(&said);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("admin_recognise");
    TCase *tc = tcase_create("all");

    tcase_add_test(tc, every_report_by_name);
    tcase_add_test(tc, everybody_may_read_reports);
    tcase_add_test(tc, spellings_of_a_report);
    tcase_add_test(tc, mode_of_the_session);
    tcase_add_test(tc, statements_of_the_server);
    tcase_add_test(tc, nothing_behind_the_end_is_read);
    tcase_add_test(tc, pgpool_show_and_reset);
    tcase_add_test(tc, pgpool_set);
    tcase_add_test(tc, pgpool_orders);
    tcase_add_test(tc, pgpool_and_nonsense);
    tcase_add_test(tc, orders_about_clients_are_refused_as_by_the_server);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
