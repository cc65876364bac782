/* SPDX-License-Identifier: PostgreSQL
 * test_admin_answers.c: PGPOOL SHOW, SET, RESET, and answers as messages of both protocols. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "admin_fixture.h"
#include "admin_int.h"
#include "base/arena.h"
#include "wire/errmsg.h"
#include "wire/proto.h"
#include "wire/reader.h"

#include "run_suite.h"

START_TEST(cache_report_and_delete)
{
    ck_assert_int_eq(fixture_run_sql("PGPOOL SET CACHE DELETE 'select 1'"), -1);
    ck_assert_str_eq(err.msg, "query cache is not enabled");
    fixture_run_report(ADMIN_REPORT_CACHE);
    fixture_assert_rows("0|0|0.00|0|0|0|0|0|0\n");
    fixture_some_cache();
    src.cache_delete = fixture_delete_from_cache;
    fixture_run_report(ADMIN_REPORT_CACHE);
    fixture_assert_rows("3|1|0.75|1048576|0|0|0|67108864|0\n");
    ck_assert_int_eq(fixture_run_sql("PGPOOL SET CACHE DELETE 'select ''x'';'"), 0);
    ck_assert_str_eq(res.notices->msg, "query cache deleted. query: \"select 'x';\"");
    ck_assert_str_eq(res.tag, "SET");
    ck_assert_int_eq(fixture_run_sql("PGPOOL SET CACHE DELETE e'select\\t1'"), 0);
    ck_assert_str_eq(res.notices->msg, "query cache does not exist for query: \"select\t1\"");
}
END_TEST

START_TEST(cache_reports)
{
    char text[2048];

    fixture_run_report(ADMIN_REPORT_CACHE_TABLES);
    fixture_assert_rows("");
    fixture_run_report(ADMIN_REPORT_CACHE_QUERIES);
    fixture_assert_rows("");
    fixture_some_cache();
    fixture_run_report(ADMIN_REPORT_CACHE_TABLES);
    snprintf(text, sizeof text, "%s", fixture_rows_text());
    ck_assert_msg(
        strncmp(text,
            "shop|public|orders|0|0|3|1|2|written meanwhile: 1, too large: 1|1|0|statement|20",
            80) == 0,
        "%s", text);
    ck_assert_ptr_nonnull(strstr(
        text, "\nshop|public|items|0|0|0|1|2|written meanwhile: 1, too large: 1|0|0|||0.000000\n"));
    fixture_run_report(ADMIN_REPORT_CACHE_QUERIES);
    fixture_assert_rows("|2|3.000000\n|1|1.500000\n");
    src.is_operator = true;
    fixture_run_report(ADMIN_REPORT_CACHE_QUERIES);
    fixture_assert_rows("select * from orders where id = 1|2|3.000000\n"
                        "select count(*) from orders|1|1.500000\n");
}
END_TEST

/* The value in the row of `item`, of an answer with three columns. */
static const char *value_of(const char *item)
{
    static char text[256];
    const struct admin_row *row;

    for (row = res.rows; row != NULL; row = row->next) {
        if (slice_eq_str(row->cell[0], item)) {
            snprintf(text, sizeof text, "%.*s", (int)row->cell[1].n, row->cell[1].p);
            return text;
        }
    }
    return "(no such row)";
}

START_TEST(status_mixes_settings_and_facts)
{
    bool delay_is_time = false;

    src.node = fixture_some_node;
    src.node_ctx = &delay_is_time;
    fixture_some_cache();
    ck_assert_int_eq(fixture_run_sql("show pool_status"), 0);
    ck_assert_str_eq(value_of("port"), "11000");
    ck_assert_str_eq(value_of("backend_hostname2"), "db2");
    ck_assert_str_eq(value_of("backend_weight0"), "0.250000");
    ck_assert_str_eq(value_of("backend_status0"), "down");
    ck_assert_str_eq(value_of("backend_status2"), "up");
    ck_assert_str_eq(value_of("standby_delay0"), "4096");
    ck_assert_str_eq(value_of("memqcache_cache_hits"), "3");
    ck_assert_str_eq(value_of("memqcache_no_cache_hits"), "1");
    ck_assert_uint_eq(strlen(value_of("memqcache_stats_start_time")), 24);
}
END_TEST

/* pgpool's default of work_dir is /tmp. */
START_TEST(a_folder_that_forgets_commits_is_warned_of)
{
    ck_assert_int_eq(fixture_run_sql("PGPOOL SET replication_commit = two_phase"), 0);
    ck_assert_str_eq(res.tag, "SET");
    ck_assert_ptr_nonnull(res.notices);
    ck_assert_str_eq(res.notices->severity, "WARNING");
    ck_assert_ptr_nonnull(strstr(res.notices->msg, "work_dir \"/tmp\" is emptied"));
    ck_assert_int_eq(fixture_run_sql("PGPOOL SET replication_commit = plain"), 0);
    ck_assert_ptr_null(res.notices);
    ck_assert_int_eq(fixture_run_sql("PGPOOL SET client_idle_limit = 0"), 0);
    ck_assert_ptr_null(res.notices);
}
END_TEST

START_TEST(show_set_and_reset_settings)
{
    ck_assert_int_eq(fixture_run_sql("PGPOOL SHOW port"), 0);
    ck_assert_uint_eq(res.ncolumns, 1);
    ck_assert_str_eq(res.columns[0], "port");
    fixture_assert_rows("11000\n");
    ck_assert_int_eq(fixture_run_sql("pgpool show all"), 0);
    ck_assert_uint_eq(res.ncolumns, 3);
    ck_assert_uint_gt(res.nrows, 200);
    ck_assert_str_eq(value_of("port"), "11000");
    ck_assert_int_eq(fixture_run_sql("pgpool show backend"), 0);
    ck_assert_str_eq(value_of("backend_port2"), "11004");
    ck_assert_int_eq(fixture_run_sql("pgpool show nonsense"), -1);
    ck_assert_str_eq(err.msg, "config variable \"nonsense\" not found");
    ck_assert_int_eq(fixture_run_sql("PGPOOL SET client_idle_limit = 350"), 0);
    ck_assert_ptr_null(res.columns);
    ck_assert_str_eq(res.tag, "SET");
    ck_assert_int_eq(fixture_run_sql("pgpool show client_idle_limit"), 0);
    fixture_assert_rows("350s\n");
    ck_assert_int_eq(fixture_run_sql("pgpool set client_idle_limit to '2min'"), 0);
    ck_assert_int_eq(fixture_run_sql("pgpool show client_idle_limit"), 0);
    fixture_assert_rows("2min\n");
    ck_assert_int_eq(fixture_run_sql("pgpool set client_idle_limit to default"), 0);
    ck_assert_int_eq(fixture_run_sql("pgpool show client_idle_limit"), 0);
    fixture_assert_rows("0\n");
    ck_assert_int_eq(fixture_run_sql("pgpool set log_statement = on"), 0);
    ck_assert_int_eq(fixture_run_sql("pgpool reset all"), 0);
    ck_assert_str_eq(res.tag, "RESET");
    ck_assert_int_eq(fixture_run_sql("pgpool show log_statement"), 0);
    fixture_assert_rows("off\n");
    ck_assert_int_eq(fixture_run_sql("pgpool set client_idle_limit = -1"), -1);
    ck_assert_int_eq(fixture_run_sql("pgpool set log_min_messages = a , 'b''c' , -5"), -1);
    ck_assert_msg(strstr(err.msg, "\"a, b'c, -5\"") != NULL, "%s", err.msg);
    ck_assert_int_eq(fixture_run_sql("pgpool set log_statement = banana"), -1);
    ck_assert_str_eq(err.sqlstate, "22023");
    ck_assert_int_eq(fixture_run_sql("pgpool set port = 1"), -1);
    ck_assert_ptr_nonnull(strstr(err.msg, "cannot be changed"));
    ck_assert_int_eq(fixture_run_sql("pgpool set nonsense = 1"), -1);
    ck_assert_str_eq(err.msg, "unrecognized configuration parameter \"nonsense\"");
    ck_assert_ptr_null(res.arena);
}
END_TEST

START_TEST(a_skin_without_a_session_cannot_set)
{
    src.ov = NULL;
    ck_assert_int_eq(fixture_run_sql("pgpool set client_idle_limit = 1"), -1);
    ck_assert_str_eq(err.sqlstate, "0A000");
    ck_assert_int_eq(fixture_run_sql("pgpool reset all"), -1);
    ck_assert_int_eq(fixture_run_sql("pgpool show port"), 0);
    ck_assert_int_eq(fixture_run_sql("show pool_status"), 0);
}
END_TEST

static struct admin_order last_order;
static enum admin_order_state next_state;

static enum admin_order_state take_order(
    void *ctx, const struct admin_order *order, struct err *why)
{
    (void)ctx;
    last_order = *order;
    if (next_state == ADMIN_ORDER_REFUSED)
        err_set(why, "55000", "no");
    return next_state;
}

START_TEST(orders_are_for_operators)
{
    src.order = take_order;
    ck_assert_int_eq(fixture_run_sql("pgpool pause"), -1);
    ck_assert_str_eq(err.sqlstate, "42501");
    src.is_operator = true;
    next_state = ADMIN_ORDER_DONE;
    ck_assert_int_eq(fixture_run_sql("pgpool kill client 4294967295"), 0);
    ck_assert_int_eq(last_order.kind, ADMIN_ORDER_KILL_CLIENT);
    ck_assert_uint_eq(last_order.client_id, UINT32_MAX);
    ck_assert_str_eq(res.tag, "KILL CLIENT");
    ck_assert_int_eq(fixture_run_sql("pgpool kill client 4294967296"), -1);
    ck_assert_str_eq(err.sqlstate, "22023");
    ck_assert_int_eq(fixture_run_sql("pgpool kill client 1.5"), -1);
    ck_assert_str_eq(err.sqlstate, "22023");
    ck_assert_int_eq(fixture_run_sql("pgpool reconnect"), 0);
    ck_assert_int_eq(last_order.kind, ADMIN_ORDER_RECONNECT);
    ck_assert_uint_eq(last_order.database.n, 0);
    ck_assert(!res.is_waiting);
    next_state = ADMIN_ORDER_WAITS;
    ck_assert_int_eq(fixture_run_sql("pgpool drain"), 0);
    ck_assert(res.is_waiting);
    next_state = ADMIN_ORDER_REFUSED;
    ck_assert_int_eq(fixture_run_sql("pgpool resume"), -1);
    ck_assert_str_eq(err.sqlstate, "55000");
    src.order = NULL;
    ck_assert_int_eq(fixture_run_sql("pgpool pause"), -1);
    ck_assert_str_eq(err.sqlstate, "0A000");
}
END_TEST

START_TEST(syntax_errors_name_the_place)
{
    struct admin_cmd cmd;
    struct buf out = {0};

    ck_assert_int_eq(fixture_run_sql("pgpool dance on"), -1);
    ck_assert_str_eq(err.sqlstate, "42601");
    ck_assert_str_eq(err.msg, "syntax error at or near \"dance\"");
    ck_assert_int_eq(fixture_run_sql("pgpool show"), -1);
    ck_assert_str_eq(err.msg, "syntax error at end of input");
    ck_assert(admin_recognise(slice_of_str("pgpool dance"), &cmd));
    err_clear(&err);
    ck_assert_int_eq(admin_encode_describe(&cmd, &out, &err), -1);
    ck_assert_str_eq(err.sqlstate, "42601");
    ck_assert_uint_eq(out.len, 0);
    err_clear(&err);
    errmsg_refuse_aborted(&err, slice_of(NULL, 0));
    ck_assert_str_eq(err.sqlstate, "25P02");
    ck_assert_str_eq(err.detail, "");
    errmsg_refuse_aborted(&err, slice_of_str("select 1"));
    ck_assert_str_eq(err.detail, "statement: select 1");
}
END_TEST

START_TEST(an_answer_has_a_limit)
{
    struct admin_rows rows;
    int i;

    for (i = 0; i < PER_WORKER; i++)
        fixture_put_client(0, i, CLIENT_STATE_WAITING, "alice");
    for (i = 0; i < ADMIN_REPORT_COUNT; i++) {
        admin_result_fini(&res);
        res.arena = arena_new("test", 256);
        res.ncolumns = admin_report_info((enum admin_report)i)->ncolumns;
        admin_rows_init(&rows, &res);
        if (i == ADMIN_REPORT_CLIENTS)
            admin_rows_clients(&src, &rows);
        else if (i == ADMIN_REPORT_QUEUE)
            admin_rows_queue(&src, &rows);
        else if (i == ADMIN_REPORT_STATUS)
            admin_rows_status(&src, &rows);
        else
            continue;
        admin_rows_end(&rows);
        ck_assert(rows.full);
    }
}
END_TEST

START_TEST(random_commands_do_no_harm)
{
    static const char *const parts[] = {"pgpool", "show", "set", "reset", "all", "port", "=", "to",
        "client_idle_limit", "log_statement", "'", "''", "\"", "E'\\'", "5", "-", ",", ";", "--",
        "\n", "/*", "*/", "default", "cache", "delete", "pool_nodes", ".", "on", "\\", "\x80"};
    struct admin_cmd cmd;
    struct buf sql = {0};
    unsigned seed = 12345;
    unsigned nours = 0;
    char *copy;
    int i;
    int n;

    src.cache_delete = fixture_delete_from_cache;
    for (i = 0; i < 100000; i++) {
        buf_clear(&sql);
        buf_printf(&sql, "%s ", rand_r(&seed) % 8 == 0 ? "show" : "pgpool");
        for (n = rand_r(&seed) % 8; n > 0; n--)
            buf_printf(&sql, "%s%s",
                parts[(unsigned)rand_r(&seed) % (sizeof parts / sizeof parts[0])],
                rand_r(&seed) % 3 == 0 ? "" : " ");
        copy = malloc(sql.len); /* of exactly that size: the sanitizer sees a read too far */
        ck_assert_ptr_nonnull(copy);
        memcpy(copy, sql.data, sql.len);
        if (admin_recognise(slice_of(copy, sql.len), &cmd)) {
            err_clear(&err);
            if (admin_run(&cmd, &src, &res, &err) == 0)
                nours++;
            else
                ck_assert_int_ne(err.msg[0], '\0');
            admin_result_fini(&res);
        }
        free(copy);
    }
    ck_assert_uint_gt(nours, 100);
    buf_free(&sql);
}
END_TEST

/* Types of the messages in `b`, one character each; *tag is the last command tag. */
static const char *types_of(const struct buf *b, char *tag, size_t tag_size)
{
    static char types[64];
    struct slice all = buf_slice(b);
    size_t n = 0;
    uint32_t len;

    tag[0] = '\0';
    while (all.n > 0 && n + 1 < sizeof types) {
        ck_assert_uint_ge(all.n, 5);
        types[n++] = all.p[0];
        len = proto_get_u32(all.p + 1);
        ck_assert_uint_ge(all.n, len + 1);
        if (all.p[0] == BE_COMMAND_COMPLETE)
            snprintf(tag, tag_size, "%s", all.p + 5);
        all = slice_of(all.p + len + 1, all.n - len - 1);
    }
    types[n] = '\0';
    return types;
}

START_TEST(simple_protocol)
{
    struct wire_reader r;
    struct buf out = {0};
    char tag[64];
    bool is_null;

    ck_assert_int_eq(fixture_run_sql("show pool_version"), 0);
    admin_encode(&res, &out);
    ck_assert_str_eq(types_of(&out, tag, sizeof tag), "TDC");
    ck_assert_str_eq(tag, "SELECT 1");
    wire_reader_init(&r, slice_of(out.data + 5, proto_get_u32(out.data + 1) - 4));
    ck_assert_uint_eq(wire_get_u16(&r), 1);
    ck_assert(slice_eq_str(wire_get_cstr(&r), "pool_version"));
    ck_assert_uint_eq(wire_get_u32(&r), 0);
    ck_assert_uint_eq(wire_get_u16(&r), 0);
    ck_assert_uint_eq(wire_get_u32(&r), ADMIN_TEXT_OID);
    ck_assert_uint_eq(wire_get_u16(&r), UINT16_MAX);
    ck_assert_uint_eq(wire_get_u32(&r), UINT32_MAX);
    ck_assert_uint_eq(wire_get_u16(&r), 0);
    ck_assert(wire_reader_ok(&r));
    wire_reader_init(&r, slice_of(r.end + 5, proto_get_u32(r.end + 1) - 4));
    ck_assert_uint_eq(wire_get_u16(&r), 1);
    ck_assert(slice_eq_str(wire_get_value(&r, &is_null), PACKAGE_VERSION " (" PGPOOL_CODENAME ")"));
    ck_assert(!is_null && wire_reader_ok(&r));
    buf_clear(&out);
    ck_assert_int_eq(fixture_run_sql("show pool_pools"), 0);
    admin_encode(&res, &out);
    ck_assert_str_eq(types_of(&out, tag, sizeof tag), "TC");
    ck_assert_str_eq(tag, "SELECT 0");
    buf_clear(&out);
    ck_assert_int_eq(fixture_run_sql("pgpool reset all"), 0);
    admin_encode(&res, &out);
    ck_assert_str_eq(types_of(&out, tag, sizeof tag), "C");
    ck_assert_str_eq(tag, "RESET");
    buf_clear(&out);
    src.cache_delete = fixture_delete_from_cache;
    ck_assert_int_eq(fixture_run_sql("pgpool set cache delete 'x'"), 0);
    admin_encode(&res, &out);
    ck_assert_str_eq(types_of(&out, tag, sizeof tag), "NC");
    ck_assert_str_eq(tag, "SET");
    buf_free(&out);
}
END_TEST

START_TEST(extended_protocol)
{
    static const char *const rowless[] = {"pgpool reset all", "pgpool set client_idle_limit = 1"};
    struct admin_cmd cmd;
    struct admin_cursor cur = {0};
    struct buf out = {0};
    struct buf simple = {0};
    char tag[64];
    size_t i;

    for (i = 0; i < 4; i++)
        fixture_put_client(0, (int)i, CLIENT_STATE_IDLE, "alice");
    ck_assert(admin_recognise(slice_of_str("show pool_clients"), &cmd));
    ck_assert_int_eq(admin_encode_describe(&cmd, &out, &err), 0);
    ck_assert_int_eq(admin_run(&cmd, &src, &res, &err), 0);
    /* Describe says what the simple protocol says. */
    admin_encode(&res, &simple);
    ck_assert_uint_lt(out.len, simple.len);
    ck_assert_mem_eq(out.data, simple.data, out.len);
    buf_free(&simple);
    buf_clear(&out);
    cur.next = res.rows;
    admin_encode_execute(&res, &cur, 3, &out);
    ck_assert_str_eq(types_of(&out, tag, sizeof tag), "DDDs");
    admin_encode_execute(&res, &cur, 3, &out);
    ck_assert_str_eq(types_of(&out, tag, sizeof tag), "DDDsDC");
    ck_assert_str_eq(tag, "SELECT 1");
    buf_clear(&out);
    cur = (struct admin_cursor){res.rows, false};
    admin_encode_execute(&res, &cur, 4, &out);
    ck_assert_str_eq(types_of(&out, tag, sizeof tag), "DDDDs");
    admin_encode_execute(&res, &cur, 0, &out);
    ck_assert_str_eq(types_of(&out, tag, sizeof tag), "DDDDsC");
    ck_assert_str_eq(tag, "SELECT 0");
    buf_clear(&out);
    ck_assert(admin_recognise(slice_of_str("pgpool show PORT"), &cmd));
    ck_assert_int_eq(admin_encode_describe(&cmd, &out, &err), 0);
    ck_assert_str_eq(out.data + 7, "port");
    buf_clear(&out);
    ck_assert(admin_recognise(slice_of_str("pgpool show nonsense"), &cmd));
    ck_assert_int_eq(admin_encode_describe(&cmd, &out, &err), -1);
    ck_assert_uint_eq(out.len, 0);
    for (i = 0; i < 2; i++) {
        buf_clear(&out);
        ck_assert(admin_recognise(slice_of_str(rowless[i]), &cmd));
        ck_assert_int_eq(admin_encode_describe(&cmd, &out, &err), 0);
        ck_assert_str_eq(types_of(&out, tag, sizeof tag), "n");
    }
    buf_free(&out);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("admin_answers");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
    tcase_add_test(tc, cache_report_and_delete);
    tcase_add_test(tc, cache_reports);
    tcase_add_test(tc, status_mixes_settings_and_facts);
    tcase_add_test(tc, a_folder_that_forgets_commits_is_warned_of);
    tcase_add_test(tc, show_set_and_reset_settings);
    tcase_add_test(tc, a_skin_without_a_session_cannot_set);
    tcase_add_test(tc, orders_are_for_operators);
    tcase_add_test(tc, syntax_errors_name_the_place);
    tcase_add_test(tc, an_answer_has_a_limit);
    tcase_add_test(tc, random_commands_do_no_harm);
    tcase_add_test(tc, simple_protocol);
    tcase_add_test(tc, extended_protocol);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
