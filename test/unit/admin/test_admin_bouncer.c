/* SPDX-License-Identifier: PostgreSQL
 * test_admin_bouncer.c: PgBouncer's reports: their columns, what their rows say, and that they are
 * known in the virtual database alone. */
#include "config.h"

#include <check.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "admin_fixture.h"
#include "ipc/dbstats.h"
#include "ipc/orders.h"
#include "wire/message.h"

#include "run_suite.h"

static void ask(const char *sql)
{
    struct admin_cmd cmd;

    err_clear(&err);
    admin_result_fini(&res);
    admin_recognise_alone(slice_of_str(sql), &cmd);
    ck_assert_int_eq(admin_run(&cmd, &src, &res, &err), 0);
}

static void assert_columns(const char *sql, const char *expected)
{
    char text[1024] = "";
    size_t used = 0;
    unsigned i;

    ask(sql);
    for (i = 0; i < res.ncolumns; i++)
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s%s", i == 0 ? "" : " ", res.columns[i]);
    ck_assert_str_eq(text, expected);
}

START_TEST(columns_are_pgbouncers)
{
#define CONNECTIONS                                                                                \
    "type user database replication state addr port local_addr local_port connect_time "           \
    "request_time wait wait_us close_needed ptr link remote_pid tls application_name "             \
    "prepared_statements id"
    assert_columns("SHOW VERSION", "version");
    assert_columns("SHOW POOLS",
        "database user cl_active cl_waiting cl_active_cancel_req cl_waiting_cancel_req sv_active "
        "sv_active_cancel sv_being_canceled sv_idle sv_used sv_tested sv_login maxwait maxwait_us "
        "pool_mode load_balance_hosts");
    assert_columns("SHOW DATABASES",
        "name host port database force_user pool_size min_pool_size reserve_pool_size "
        "server_lifetime pool_mode load_balance_hosts max_connections current_connections "
        "max_client_connections current_client_connections paused disabled reserve_pool");
    assert_columns("SHOW CLIENTS", CONNECTIONS);
    assert_columns("SHOW SERVERS", CONNECTIONS);
    assert_columns("SHOW STATS",
        "database total_server_assignment_count total_xact_count total_query_count total_received "
        "total_sent total_xact_time total_query_time total_wait_time total_client_parse_count "
        "total_server_parse_count total_bind_count total_client_login_count "
        "avg_server_assignment_count avg_xact_count avg_query_count avg_recv avg_sent "
        "avg_xact_time avg_query_time avg_wait_time avg_client_parse_count avg_server_parse_count "
        "avg_bind_count avg_client_login_count total_requests");
    assert_columns("SHOW STATS_TOTALS",
        "database server_assignment_count xact_count query_count bytes_received bytes_sent "
        "xact_time query_time wait_time client_parse_count server_parse_count bind_count "
        "client_login_count");
    assert_columns("SHOW STATS_AVERAGES",
        "database server_assignment_count xact_count query_count bytes_received bytes_sent "
        "xact_time query_time wait_time avg_client_parse_count avg_server_parse_count "
        "avg_bind_count avg_client_login_count");
    assert_columns("SHOW TOTALS", "name value");
#define BUFFERS " recv_pos pkt_pos pkt_remain send_pos send_remain pkt_avail send_avail"
    assert_columns("SHOW SOCKETS", CONNECTIONS BUFFERS);
    assert_columns("SHOW ACTIVE_SOCKETS", CONNECTIONS BUFFERS);
    assert_columns("SHOW PEERS", "peer_id host port pool_size");
    assert_columns("SHOW PEER_POOLS",
        "peer_id cl_active_cancel_req cl_waiting_cancel_req sv_active_cancel sv_login");
    assert_columns("SHOW DNS_HOSTS", "hostname ttl addrs");
    assert_columns("SHOW DNS_ZONES", "zonename serial count");
    assert_columns("SHOW MEM", "name size used free memtotal");
    assert_columns("SHOW HELP", "command");
    assert_columns("SHOW USERS",
        "name pool_size reserve_pool_size pool_mode max_user_connections current_connections "
        "max_user_client_connections current_client_connections");
    assert_columns("SHOW STATE", "key value");
    assert_columns("SHOW LISTS", "list items");
    assert_columns("SHOW CONFIG", "key value default changeable");
}
END_TEST

/* The types of the columns as the simple protocol tells them. */
static void assert_types(const char *sql, const char *expected)
{
    struct buf out = {0};
    char text[256] = "";
    const char *p;
    uint32_t oid;
    unsigned i;

    ask(sql);
    admin_encode(&res, &out);
    p = out.data + 7; /* type, length, number of columns */
    for (i = 0; i < res.ncolumns; i++) {
        p += strlen(p) + 1 + 6;
        oid = proto_get_u32(p);
        p += 12;
        text[i] = oid == 25 ? 't' : oid == 23 ? 'i' : oid == 20 ? 'q' : 'n';
        ck_assert(oid == 25 || oid == 23 || oid == 20 || oid == 1700);
    }
    ck_assert_str_eq(text, expected);
    buf_free(&out);
}

/* As PgBouncer 1.18 tells them, where it has the column: an exporter adds maxwait and maxwait_us.
 */
START_TEST(types_are_pgbouncers)
{
    assert_types("SHOW VERSION", "t");
    assert_types("SHOW POOLS", "ttiiiiiiiiiiiiitt");
    assert_types("SHOW DATABASES", "ttittiiiittiiiiiii");
    assert_types("SHOW CLIENTS", "ttttttitittiiittittii");
    assert_types("SHOW SERVERS", "ttttttitittiiittittii");
    assert_types("SHOW SOCKETS", "ttttttitittiiittittiiiiiiiii");
    assert_types("SHOW STATS", "tnnnnnnnnnnnnnnnnnnnnnnnnn");
    assert_types("SHOW STATS_TOTALS", "tnnnnnnnnnnnn");
    assert_types("SHOW TOTALS", "tn");
    assert_types("SHOW LISTS", "ti");
    assert_types("SHOW CONFIG", "tttt");
    assert_types("SHOW DNS_HOSTS", "tqt");
    assert_types("SHOW DNS_ZONES", "tqi");
    assert_types("SHOW POOL_VERSION", "t");
}
END_TEST

START_TEST(only_in_the_virtual_database)
{
    static const char *const mine[] = {"show pools", "SHOW Pools;", " /* x */ sHoW \"pools\" ; "};
    static const char *const not_mine[] = {
        "show poolss", "show pools x", "show pools; show pools", "show \"POOLS\"", "show"};
    struct admin_cmd cmd;
    struct buf out = {0};
    size_t i;

    for (i = 0; i < sizeof mine / sizeof mine[0]; i++) {
        ck_assert_msg(!admin_recognise(slice_of_str(mine[i]), &cmd), "%s", mine[i]);
        admin_recognise_alone(slice_of_str(mine[i]), &cmd);
        ck_assert_msg(cmd.kind == ADMIN_KIND_BOUNCER, "%s", mine[i]);
        ck_assert_int_eq(admin_encode_describe(&cmd, &out, &err), 0);
        ck_assert_int_eq(out.data[0], 'T');
        buf_clear(&out);
    }
    for (i = 0; i < sizeof not_mine / sizeof not_mine[0]; i++) {
        admin_recognise_alone(slice_of_str(not_mine[i]), &cmd);
        ck_assert_msg(cmd.kind == ADMIN_KIND_FOREIGN, "%s", not_mine[i]);
    }
    buf_free(&out);
}
END_TEST

/* Two pools: alice has one active, one waiting and one idle client, and three links; bob logs in.
 */
static void fill(void)
{
    static bool in_time;
    struct client_row *c = fixture_put_client(0, 0, CLIENT_STATE_ACTIVE, "alice");
    struct dbstats_row *stats = dbstats_row_of(shm, 0, slice_of_str("shop"));

    src.node = fixture_some_node;
    src.node_ctx = &in_time;
    c->addr_kind = ROW_ADDR_IPV4;
    inet_pton(AF_INET, "192.0.2.7", c->addr);
    c->port = 41822;
    c->tls_version = 13;
    c->query_start_us = AGO(3);
    fixture_lend(fixture_put_link(0, 0, LINK_STATE_ACTIVE), c);
    fixture_put_client(0, 1, CLIENT_STATE_WAITING, "alice")->state_since_us = AGO(2) - 500;
    fixture_put_client(1, 0, CLIENT_STATE_IDLE, "alice");
    fixture_put_client(1, 1, CLIENT_STATE_LOGIN, "bob");
    fixture_put_link(0, 1, LINK_STATE_IDLE)->is_tls = true;
    fixture_put_link(1, 0, LINK_STATE_CLEANING);
    dbstats_add(&stats->logins, 1);
    dbstats_add(&stats->assignments, 2);
    dbstats_add(&stats->transactions, 3);
    dbstats_add(&stats->queries, 4);
    dbstats_add(&stats->bytes_in, 5);
    dbstats_add(&stats->bytes_out, 6);
    dbstats_add(&stats->transaction_us, 7);
    dbstats_add(&stats->query_us, 8);
    dbstats_add(&stats->wait_us, 9);
}

/* What has a type is a number in every row. */
START_TEST(numbers_are_numbers)
{
    const struct admin_row *row;
    static const char *const reports[] = {"pools", "databases", "clients", "servers", "sockets",
        "stats", "stats_totals", "stats_averages", "totals", "users", "lists", "mem"};
    char sql[64];
    size_t i;
    unsigned k;

    fill();
    for (i = 0; i < sizeof reports / sizeof reports[0]; i++) {
        snprintf(sql, sizeof sql, "show %s", reports[i]);
        ask(sql);
        ck_assert_ptr_nonnull(res.rows);
        for (row = res.rows; row != NULL; row = row->next)
            for (k = 0; k < res.ncolumns; k++)
                ck_assert_msg(res.types[k] == 't' ||
                                  (row->cell[k].n > 0 &&
                                      strspn(row->cell[k].p, "0123456789") == row->cell[k].n),
                    "%s.%s", reports[i], res.columns[k]);
    }
}
END_TEST

START_TEST(pools_and_lists)
{
    fill();
    ask("show pools");
    fixture_assert_rows("shop|alice|2|1|0|0|1|0|0|1|0|1|0|2|500|session|\n"
                        "shop|bob|0|0|0|0|0|0|0|0|0|0|0|0|0|session|\n");
    ask("show lists");
    fixture_assert_rows("databases|1\nusers|2\npeers|0\npools|2\npeer_pools|0\nfree_clients|0\n"
                        "used_clients|3\nlogin_clients|1\nfree_servers|0\nused_servers|3\n"
                        "dns_names|0\ndns_zones|0\ndns_queries|0\ndns_pending|0\n");
}
END_TEST

START_TEST(databases_and_stats)
{
    fill();
    ck_assert_int_eq(orders_set(shm, slice_of_str("shop"), ORDER_PAUSE, &err), 0);
    ask("show databases");
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "shop|db2|11004|shop||"));
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|session||0|3|0|4|1|0|0\n"));
    ck_assert_uint_eq(res.nrows, 1);
    ask("show stats");
    ck_assert_ptr_eq(
        strstr(fixture_rows_text(), "shop|2|3|4|5|6|7|8|9|0|0|0|1|"), fixture_rows_text());
}
END_TEST

/* The row of SHOW TOTALS of that name. */
static const char *total(const char *name)
{
    static char value[32];
    const char *text = fixture_rows_text();
    const char *at = strstr(text, name);

    ck_assert_ptr_nonnull(at);
    ck_assert(at == text || at[-1] == '\n');
    ck_assert_int_eq(at[strlen(name)], '|');
    snprintf(value, sizeof value, "%.*s", (int)strcspn(at + strlen(name) + 1, "|\n"),
        at + strlen(name) + 1);
    return value;
}

/* 120 statements of 60 us in one minute, and nothing yet in the next. */
START_TEST(averages_are_of_the_last_minute)
{
    struct dbstats_row *row = dbstats_row_of(shm, 0, slice_of_str("shop"));
    struct timespec now;
    int64_t now_us;

    clock_gettime(CLOCK_MONOTONIC, &now);
    now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    atomic_store(&row->period_us, now_us - 60000000);
    dbstats_add(&row->queries, 120);
    dbstats_add(&row->transactions, 60);
    dbstats_add(&row->query_us, 7200);
    dbstats_add(&row->transaction_us, 9000);
    dbstats_look(row, now_us);
    dbstats_add(&row->queries, 5);
    ask("show stats_averages");
    fixture_assert_rows("shop|0|1|2|0|0|150|60|0|0|0|0|0\n");
    ask("show totals");
    ck_assert_str_eq(total("total_query_count"), "125");
    ck_assert_str_eq(total("avg_query_count"), "2");
    ck_assert_str_eq(total("avg_query_time"), "60");
    ck_assert_uint_eq(res.nrows, 24);
    /* Two minutes without anything: the average of that is nearly nothing. */
    atomic_store(&row->period_us, now_us - 120000000);
    ask("show stats_averages");
    fixture_assert_rows("shop|0|0|0|0|0|0|0|0|0|0|0|0\n");
}
END_TEST

START_TEST(sockets_and_the_rest)
{
    fill();
    ask("show sockets");
    ck_assert_uint_eq(res.nrows, 7);
    ask("show active_sockets");
    ck_assert_uint_eq(res.nrows, 3);
    ask("show peers");
    ck_assert_uint_eq(res.nrows, 0);
    ask("show dns_hosts");
    ck_assert_uint_eq(res.nrows, 0);
    ask("show mem");
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "clients|"));
    ask("show help");
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "SHOW pools\n"));
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "KILL_CLIENT id\n"));
}
END_TEST

START_TEST(its_settings_are_not_set)
{
    struct admin_cmd cmd;

    admin_recognise_alone(slice_of_str("SET default_pool_size = 5;"), &cmd);
    err_clear(&err);
    ck_assert_int_eq(admin_run(&cmd, &src, &res, &err), -1);
    ck_assert_str_eq(err.sqlstate, "0A000");
    ask("set extra_float_digits = 3"); /* as drivers do */
}
END_TEST

START_TEST(users_and_state)
{
    fill();
    ask("show stats_totals");
    fixture_assert_rows("shop|2|3|4|5|6|7|8|9|0|0|0|1\n");
    ask("show users");
    ck_assert_uint_eq(res.nrows, 2);
    ck_assert_ptr_eq(strstr(fixture_rows_text(), "alice|"), fixture_rows_text());
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|0|session|0|3|0|3\nbob|"));
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|0|session|0|0|0|1\n"));
    ask("show state");
    fixture_assert_rows("active|yes\npaused|no\nsuspended|no\n");
    ck_assert_int_eq(orders_set(shm, slice_of("", 0), ORDER_PAUSE, &err), 0);
    ask("show state");
    fixture_assert_rows("active|no\npaused|yes\nsuspended|no\n");
}
END_TEST

START_TEST(orders_as_pgbouncer_spells_them)
{
    struct admin_cmd cmd;

    admin_recognise_alone(slice_of_str("KILL_CLIENT 12;"), &cmd);
    ck_assert_int_eq(cmd.kind, ADMIN_KIND_KILL_CLIENT);
    ck_assert(slice_eq(cmd.value, slice_of_str("12")));
    admin_recognise_alone(slice_of_str("kill_client x"), &cmd);
    ck_assert_int_eq(cmd.kind, ADMIN_KIND_BAD);
    ck_assert(!admin_recognise(slice_of_str("kill_client 12"), &cmd));
    admin_recognise_alone(slice_of_str("KILL shop;"), &cmd);
    ck_assert_int_eq(cmd.kind, ADMIN_KIND_KILL);
    ck_assert_str_eq(cmd.name, "shop");
    admin_recognise_alone(slice_of_str("disable Shop"), &cmd);
    ck_assert_int_eq(cmd.kind, ADMIN_KIND_DISABLE);
    ck_assert_str_eq(cmd.name, "shop");
    admin_recognise_alone(slice_of_str("WAIT_CLOSE"), &cmd);
    ck_assert_int_eq(cmd.kind, ADMIN_KIND_WAIT_CLOSE);
    admin_recognise_alone(slice_of_str("shutdown wait_for_clients;"), &cmd);
    ck_assert_int_eq(cmd.kind, ADMIN_KIND_SHUTDOWN_CLIENTS);
    admin_recognise_alone(slice_of_str("SHUTDOWN"), &cmd);
    ck_assert_int_eq(cmd.kind, ADMIN_KIND_SHUTDOWN);
    admin_recognise_alone(slice_of_str("RELOAD;"), &cmd);
    ck_assert_int_eq(cmd.kind, ADMIN_KIND_RELOAD);
    admin_recognise_alone(slice_of_str("reload x"), &cmd);
    ck_assert_int_eq(cmd.kind, ADMIN_KIND_BAD);
    ck_assert(!admin_recognise(slice_of_str("reload"), &cmd));
}
END_TEST

START_TEST(clients_and_servers)
{
    const char *text;

    fill();
    ask("show clients");
    text = fixture_rows_text();
    ck_assert_ptr_eq(strstr(text, "C|alice|shop|none|active|192.0.2.7|41822||"), text);
    ck_assert_ptr_nonnull(strstr(
        text, "|2024-01-31 11:58:20|2024-01-31 11:59:57|0|0|0|c100|s0|0|TLSv1.3|psql|0|100\n"));
    ck_assert_ptr_nonnull(strstr(text, "C|alice|shop|none|waiting|unix|0||0|"));
    ck_assert_ptr_nonnull(strstr(text, "|2|500|0|c101||0||psql|0|101\n"));
    ck_assert_ptr_nonnull(strstr(text, "C|alice|shop|none|idle|"));
    ck_assert_ptr_nonnull(strstr(text, "C|bob|shop|none|login|"));
    ask("show servers");
    text = fixture_rows_text();
    ck_assert_ptr_eq(strstr(text, "S|alice|shop|none|active|"), text);
    ck_assert_ptr_nonnull(
        strstr(text, "|2024-01-31 11:59:10|2024-01-31 11:59:20|0|0|0|s0|c100|7000|||0|0\n"));
    ck_assert_ptr_nonnull(strstr(text, "S|alice|shop|none|idle|"));
    ck_assert_ptr_nonnull(strstr(text, "|s1||7001|TLS||0|1\n"));
    ck_assert_ptr_nonnull(strstr(text, "S|alice|shop|none|tested|"));
}
END_TEST

START_TEST(settings_under_pgbouncers_names)
{
    static const char *const wanted[] = {
#define BOUNCER_SETTING(theirs, ours) theirs,
#include "admin_bouncer_config.def"
#undef BOUNCER_SETTING
    };
    char start[64];
    size_t i;

    ask("show config");
    ck_assert_uint_eq(res.nrows, sizeof wanted / sizeof wanted[0]);
    for (i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        snprintf(start, sizeof start, "%s|", wanted[i]);
        ck_assert_msg(strstr(fixture_rows_text(), start) != NULL, "%s", wanted[i]);
    }
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "max_client_conn|10000|10000|no\n"));
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "pool_mode|session|session|yes\n"));
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "query_wait_timeout|120|120|yes\n"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("admin_bouncer");
    TCase *t = tcase_create("admin_bouncer");

    tcase_add_checked_fixture(t, fixture_setup, fixture_teardown);
    tcase_add_test(t, columns_are_pgbouncers);
    tcase_add_test(t, types_are_pgbouncers);
    tcase_add_test(t, numbers_are_numbers);
    tcase_add_test(t, only_in_the_virtual_database);
    tcase_add_test(t, pools_and_lists);
    tcase_add_test(t, databases_and_stats);
    tcase_add_test(t, averages_are_of_the_last_minute);
    tcase_add_test(t, sockets_and_the_rest);
    tcase_add_test(t, its_settings_are_not_set);
    tcase_add_test(t, users_and_state);
    tcase_add_test(t, orders_as_pgbouncer_spells_them);
    tcase_add_test(t, clients_and_servers);
    tcase_add_test(t, settings_under_pgbouncers_names);
    suite_add_tcase(s, t);
    return run_suite(s);
}
