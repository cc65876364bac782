/* SPDX-License-Identifier: PostgreSQL
 * test_admin_reports.c: columns, rows and formats of every report. */
#include "config.h"

#include <check.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "admin_fixture.h"
#include "backend/limits.h"
#include "backend/quota.h"
#include "cluster/wd_share.h"
#include "config/conf.h"
#include "ipc/dbstats.h"
#include "ipc/orders.h"
#include "wire/proto.h"

#include "run_suite.h"

static void assert_columns(enum admin_report report, const char *expected)
{
    const struct admin_report_info *info = admin_report_info(report);
    char text[1024] = "";
    size_t used = 0;
    unsigned i;

    for (i = 0; i < info->ncolumns; i++) {
        used += (size_t)snprintf(
            text + used, sizeof text - used, "%s%s", i == 0 ? "" : " ", info->columns[i]);
        ck_assert_int_gt(strlen(info->column_texts[i]), 0);
    }
    ck_assert_str_eq(text, expected);
}

START_TEST(columns_are_those_of_pgpool)
{
    assert_columns(ADMIN_REPORT_VERSION, "pool_version");
    assert_columns(ADMIN_REPORT_STATUS, "item value description");
    assert_columns(ADMIN_REPORT_PROCESSES, "pool_pid start_time client_connection_count database "
                                           "username backend_connection_time pool_counter status");
    assert_columns(ADMIN_REPORT_POOLS,
        "pool_pid start_time client_connection_count pool_id backend_id database username "
        "backend_connection_time client_connection_time client_disconnection_time "
        "client_idle_duration majorversion minorversion pool_counter pool_backendpid "
        "pool_connected status load_balance_node client_host client_port statement");
    assert_columns(ADMIN_REPORT_NODES,
        "node_id hostname port status pg_status lb_weight role pg_role select_cnt "
        "load_balance_node replication_delay replication_state replication_sync_state "
        "last_status_change");
    assert_columns(ADMIN_REPORT_BACKEND_STATS,
        "node_id hostname port status role select_cnt insert_cnt update_cnt delete_cnt ddl_cnt "
        "other_cnt panic_cnt fatal_cnt error_cnt");
    assert_columns(ADMIN_REPORT_HEALTH_CHECK_STATS,
        "node_id hostname port status role last_status_change total_count success_count "
        "fail_count skip_count retry_count average_retry_count max_retry_count max_duration "
        "min_duration average_duration last_health_check last_successful_health_check "
        "last_skip_health_check last_failed_health_check");
    assert_columns(ADMIN_REPORT_CACHE,
        "num_cache_hits num_selects cache_hit_ratio num_hash_entries used_hash_entries "
        "num_cache_entries used_cache_entries_size free_cache_entries_size "
        "fragment_cache_entries_size");
    assert_columns(ADMIN_REPORT_CLIENTS,
        "id pid user database application_name client_host client_port state node server_pid "
        "connected_at last_query_at wait_ms pinned pin_reason statement pool_mode tls_version "
        "tls_cipher ktls not_balanced");
    assert_columns(ADMIN_REPORT_QUEUE, "database username node waiting longest_wait_ms reason");
    assert_columns(ADMIN_REPORT_STATS,
        "database logins assignments transactions queries bytes_received bytes_sent "
        "transaction_time_us query_time_us wait_time_us query_p50_us query_p90_us query_p99_us "
        "query_p999_us wait_p50_us wait_p90_us wait_p99_us wait_p999_us transaction_p50_us "
        "transaction_p90_us transaction_p99_us transaction_p999_us");
    assert_columns(ADMIN_REPORT_NODE_TIMES,
        "node_id hostname port status role requests query_time_us query_p50_us query_p90_us "
        "query_p99_us query_p999_us");
    assert_columns(ADMIN_REPORT_LINKS,
        "id pid node user database state server_pid client_id created_at lent_at returned_at uses "
        "tls pin_reason statement ktls");
    assert_columns(ADMIN_REPORT_LIMITS, "name node user database used limit waiting");
    assert_columns(ADMIN_REPORT_PINS, "database reason clients total");
    assert_columns(ADMIN_REPORT_ORDERS, "database paused draining reconnect_at disabled");
}
END_TEST

START_TEST(every_report_runs_with_nothing_to_show)
{
    int i;

    src.shm = shm;
    for (i = 0; i < ADMIN_REPORT_COUNT; i++) {
        fixture_run_report((enum admin_report)i);
        ck_assert_uint_eq(res.ncolumns, admin_report_info((enum admin_report)i)->ncolumns);
        fixture_rows_text();
    }
    fixture_run_report(ADMIN_REPORT_VERSION);
    fixture_assert_rows(PACKAGE_VERSION " (" PGPOOL_CODENAME ")\n");
    fixture_run_report(ADMIN_REPORT_CACHE);
    fixture_assert_rows("0|0|0.00|0|0|0|0|0|0\n");
    fixture_run_report(ADMIN_REPORT_POOLS);
    ck_assert_uint_eq(res.nrows, 0);
    fixture_run_report(ADMIN_REPORT_QUEUE);
    ck_assert_uint_eq(res.nrows, 0);
    fixture_run_report(ADMIN_REPORT_NODES);
    fixture_assert_rows("0|/tmp|11002|waiting|unknown|0.250000|unknown|unknown|0|false|0|||\n"
                        "2|db2|11004|waiting|unknown|0.750000|unknown|unknown|0|false|0|||\n");
}
END_TEST

START_TEST(nodes_as_the_cluster_view_says)
{
    bool delay_is_time = false;

    src.node = fixture_some_node;
    src.node_ctx = &delay_is_time;
    src.balance_node = 2;
    fixture_run_report(ADMIN_REPORT_NODES);
    fixture_assert_rows(
        "0|/tmp|11002|down|down|0.250000|standby|unknown|12|false|4096|streaming|async|2024-01-31 "
        "11:59:00\n"
        "2|db2|11004|up|up|0.750000|primary|primary|12|true|0|||2024-01-31 11:59:00\n");
    delay_is_time = true;
    fixture_run_report(ADMIN_REPORT_NODES);
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|2.500000 seconds|streaming"));
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|0.000000 second||"));
    fixture_run_report(ADMIN_REPORT_BACKEND_STATS);
    fixture_assert_rows("0|/tmp|11002|down|standby|12|10|30|0|2|31|0|1|4\n"
                        "2|db2|11004|up|primary|12|10|30|0|2|31|0|1|4\n");
    fixture_run_report(ADMIN_REPORT_HEALTH_CHECK_STATS);
    fixture_assert_rows(
        "0|/tmp|11002|down|standby|2024-01-31 11:59:00|4|2|1|1|2|0.500000|2|9|2|6.333333|"
        "2024-01-31 11:59:59|2024-01-31 11:59:58|2024-01-31 11:59:57|\n"
        "2|db2|11004|up|primary|2024-01-31 11:59:00|4|2|1|1|2|0.500000|2|9|2|6.333333|"
        "2024-01-31 11:59:59|2024-01-31 11:59:58||\n");
}
END_TEST

START_TEST(roles_are_main_and_replica_elsewhere)
{
    bool delay_is_time = false;

    conf_gen_free(&gen);
    fixture_load("backend_clustering_mode = 'raw'\nbackend_hostname0 = 'a'\nbackend_port0 = 5432\n"
                 "backend_hostname1 = 'b'\nbackend_port1 = 5432\n");
    src.node = fixture_some_node;
    src.node_ctx = &delay_is_time;
    fixture_run_report(ADMIN_REPORT_NODES);
    ck_assert_ptr_nonnull(
        strstr(fixture_rows_text(), "0|a|5432|down|down|0.500000|replica|replica|"));
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "1|b|5432|up|up|0.500000|main|main|"));
}
END_TEST

START_TEST(processes_speak_of_their_busiest_client)
{
    struct client_row *c;

    fixture_run_report(ADMIN_REPORT_PROCESSES);
    fixture_assert_rows("4000|2024-01-31 11:00:00|0|||||Wait for connection\n"
                        "4001|2024-01-31 10:59:59|0|||||Wait for connection\n");
    fixture_put_client(0, 0, CLIENT_STATE_IDLE, "bob");
    c = fixture_put_client(0, 1, CLIENT_STATE_IDLE_TX, "alice");
    fixture_lend(fixture_put_link(0, 2, LINK_STATE_LENT), c);
    fixture_put_client(1, 0, CLIENT_STATE_LOGIN, "");
    fixture_run_report(ADMIN_REPORT_PROCESSES);
    fixture_assert_rows(
        "4000|2024-01-31 11:00:00|2|shop|alice|2024-01-31 11:59:10|5|Idle in transaction\n"
        "4001|2024-01-31 10:59:59|1|shop||||Connecting\n");
    fixture_put_client(0, 3, CLIENT_STATE_ACTIVE, "carol")->state_since_us = AGO(99);
    fixture_run_report(ADMIN_REPORT_PROCESSES);
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|3|shop|carol|||Execute command\n"));
    /* Of two equally busy ones the later. */
    fixture_put_client(0, 2, CLIENT_STATE_ACTIVE, "dave")->state_since_us = AGO(98);
    fixture_run_report(ADMIN_REPORT_PROCESSES);
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|4|shop|dave|||Execute command\n"));
}
END_TEST

START_TEST(pools_show_links_and_who_has_them)
{
    struct client_row *c = fixture_put_client(1, 2, CLIENT_STATE_IDLE, "alice");
    struct link_row *stale = fixture_put_link(0, 1, LINK_STATE_IDLE);

    stale->released_us = AGO(30);
    stale->client_row = 0; /* the client has gone, the row was not yet updated */
    stale->protocol = PROTO_3_2;
    fixture_lend(fixture_put_link(1, 0, LINK_STATE_LENT), c);
    c->addr_kind = ROW_ADDR_IPV4;
    memcpy(c->addr, "\xc0\xa8\x0a\x0b", 4);
    c->port = 39216;
    c->balance_node = 2;
    fixture_run_report(ADMIN_REPORT_POOLS);
    fixture_assert_rows("4000|2024-01-31 11:00:00|0|1|2|shop|alice|2024-01-31 11:59:10|2024-01-31 "
                        "11:59:20|2024-01-31 11:59:30|0|3|2|5|7001|0|Wait for "
                        "connection|0|||select 1\n"
                        "4001|2024-01-31 10:59:59|1|0|2|shop|alice|2024-01-31 11:59:10|2024-01-31 "
                        "11:58:20||10|3|0|5|7000|1|Idle|1|192.168.10.11|39216|select 1\n");
    c->balance_node = 0;
    c->addr_kind = ROW_ADDR_LOCAL;
    conf_gen_free(&gen);
    fixture_load("client_idle_limit = 305\nbackend_hostname0 = 'a'\nbackend_port0 = 5432\n");
    fixture_run_report(ADMIN_REPORT_POOLS);
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(),
        "||10 (4:55 before client disconnected)|3|0|5|7000|1|Idle|0|[local]||select"));
}
END_TEST

START_TEST(statements_of_others_are_hidden)
{
    fixture_put_link(0, 0, LINK_STATE_IDLE);
    fixture_say(fixture_put_client(0, 0, CLIENT_STATE_ACTIVE, "alice"), "mine");
    fixture_say(fixture_put_client(0, 1, CLIENT_STATE_ACTIVE, "bob"), "his");
    fixture_put_client(0, 2, CLIENT_STATE_ACTIVE, "bob");
    fixture_run_report(ADMIN_REPORT_CLIENTS);
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|mine|session||||\n"));
    ck_assert_ptr_null(strstr(fixture_rows_text(), "|his|"));
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|<insufficient privilege>|session||||\n"
                                                      "102|4000|bob|"));
    ck_assert_str_eq(strrchr(fixture_rows_text(), '|'), "|\n");
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "||session||||\n"));
    src.user = slice_of_str("bob");
    fixture_run_report(ADMIN_REPORT_POOLS);
    ck_assert_ptr_null(strstr(fixture_rows_text(), "select 1"));
    src.user = slice_of_str("");
    fixture_run_report(ADMIN_REPORT_CLIENTS);
    ck_assert_ptr_null(strstr(fixture_rows_text(), "mine"));
    src.is_operator = true;
    fixture_run_report(ADMIN_REPORT_CLIENTS);
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|mine|session||||\n"));
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|his|session||||\n"));
}
END_TEST

START_TEST(a_sessions_statement_is_that_of_its_link)
{
    struct client_row *c = fixture_put_client(1, 2, CLIENT_STATE_IDLE, "alice");
    struct link_row *link = fixture_put_link(0, 1, LINK_STATE_LENT);

    fixture_lend(link, c);
    c->statement = ROW_STATEMENT_LINK;
    src.is_operator = true;
    fixture_run_report(ADMIN_REPORT_CLIENTS);
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|select 1|session|"));
    link->client_row++; /* lent to somebody else meanwhile */
    fixture_run_report(ADMIN_REPORT_CLIENTS);
    ck_assert_ptr_null(strstr(fixture_rows_text(), "select 1"));
    link->client_row--;
    fixture_lend(link, fixture_put_client(1, 2, CLIENT_STATE_IDLE, "bob"));
    fixture_run_report(ADMIN_REPORT_CLIENTS);
    ck_assert_ptr_null(strstr(fixture_rows_text(), "select 1"));
}
END_TEST

START_TEST(clients_one_by_one)
{
    struct client_row *c = fixture_put_client(0, 1, CLIENT_STATE_WAITING, "alice");

    c->wait_reason = WAIT_REASON_NODE_LIMIT;
    c->state_since_us = NOW_US - 1500000;
    c->query_start_us = AGO(2);
    c->addr_kind = ROW_ADDR_IPV6;
    ck_assert_int_eq(inet_pton(AF_INET6, "2001:db8::1", c->addr), 1);
    c->port = 5;
    c->pool_mode = 1;
    c = fixture_put_client(1, 0, CLIENT_STATE_FAILED_TX, "bob");
    fixture_lend(fixture_put_link(0, 0, LINK_STATE_LENT), c);
    c->pins = ROWS_PIN(PIN_REASON_TEMP_TABLE) | ROWS_PIN(PIN_REASON_LISTEN);
    c->tls_version = 13;
    c->tls_cipher = 0x1302;
    c->tls_kernel = 1;
    fixture_run_report(ADMIN_REPORT_CLIENTS);
    fixture_assert_rows(
        "101|4000|alice|shop|psql|2001:db8::1|5|waiting|||2024-01-31 11:58:20|2024-01-31 "
        "11:59:58|1500|false|||transaction||||\n"
        "104|4001|bob|shop|psql|[local]||idle in transaction (aborted)|2|7000|2024-01-31 "
        "11:58:20||0|true|temporary table, "
        "listen||session|TLSv1.3|TLS_AES_256_GCM_SHA384|sends|\n");
}
END_TEST

START_TEST(queue_counts_what_waits_for_the_same)
{
    struct client_row *c;
    int i;

    for (i = 0; i < 4; i++) {
        c = fixture_put_client(0, i, CLIENT_STATE_WAITING, i == 2 ? "bob" : "alice");
        c->wait_reason = WAIT_REASON_NODE_LIMIT;
        c->node = i == 3 ? 0 : 2;
        c->state_since_us = NOW_US - (i + 1) * 1000;
    }
    c = fixture_put_client(1, 0, CLIENT_STATE_WAITING, "alice");
    c->wait_reason = WAIT_REASON_PAUSED;
    c->state_since_us = NOW_US + 5000; /* the clock went back */
    fixture_put_client(1, 1, CLIENT_STATE_ACTIVE, "alice");
    fixture_run_report(ADMIN_REPORT_QUEUE);
    fixture_assert_rows("shop|alice||1|0|paused\n"
                        "shop|alice|0|1|4|node limit\n"
                        "shop|alice|2|2|2|node limit\n"
                        "shop|bob|2|1|3|node limit\n");
}
END_TEST

START_TEST(figures_per_database)
{
    struct dbstats_row *row = dbstats_row_of(shm, 1, slice_of_str("shop"));
    int i;

    dbstats_add(&row->logins, 3);
    dbstats_add(&row->assignments, 4);
    dbstats_add(&row->transactions, 5);
    dbstats_add(&row->queries, 6);
    dbstats_add(&row->bytes_in, 7);
    dbstats_add(&row->bytes_out, 8);
    dbstats_add(&row->transaction_us, 9);
    dbstats_add(&row->query_us, 10);
    dbstats_add(&dbstats_row_of(shm, 0, slice_of_str("shop"))->wait_us, 11);
    for (i = 1; i <= 10; i++)
        histogram_add(&row->query, i);
    histogram_add(&row->wait, 15);
    for (i = 1; i <= 10; i++)
        histogram_add(&row->transaction, i + 2);
    fixture_run_report(ADMIN_REPORT_STATS);
    fixture_assert_rows("shop|3|4|5|6|7|8|9|10|11|5|9|10|10|15|15|15|15|7|11|12|12\n");
}
END_TEST

START_TEST(links_one_by_one)
{
    struct client_row *c = fixture_put_client(1, 2, CLIENT_STATE_IDLE, "alice");
    struct link_row *idle = fixture_put_link(0, 1, LINK_STATE_IDLE);
    struct link_row *lent;

    idle->released_us = AGO(30);
    idle->client_row = 0; /* of who had it: not updated yet */
    lent = fixture_put_link(1, 0, LINK_STATE_ACTIVE);
    lent->tls_kernel = 3;
    fixture_lend(lent, c);
    c->pins = ROWS_PIN(PIN_REASON_ADVISORY_LOCK);
    src.is_operator = true;
    fixture_run_report(ADMIN_REPORT_LINKS);
    ck_assert_uint_eq(res.nrows, 2);
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "1|4000|2|alice|shop|idle|7001||2024-01-31"));
    ck_assert_ptr_nonnull(
        strstr(fixture_rows_text(), "4|4001|2|alice|shop|active|7000|106|2024-01-31"));
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|false|advisory lock|select 1|both\n"));
}
END_TEST

START_TEST(limits_with_use_and_waiters)
{
    struct limits_ids ids;

    fixture_put_client(0, 0, CLIENT_STATE_IDLE, "alice");
    fixture_put_client(1, 0, CLIENT_STATE_CLOSING, "alice");
    quota_set_limit(shm, 2, 50);
    ck_assert(quota_take(shm, 2, 1, 0));
    ck_assert_int_eq(
        limits_attach(shm, 0, 2, slice_of_str("alice"), slice_of_str("shop"), &ids), 0);
    limits_set_waiting(shm, ids.pool, 0, 1);
    fixture_run_report(ADMIN_REPORT_LIMITS);
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "max_clients||||1|10000|0\n"));
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "max_backend_connections|0|||0|0|0\n"));
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "max_backend_connections|2|||1|50|1\n"));
    ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "default_pool_size|2|alice|shop|0|"));
}
END_TEST

START_TEST(pins_now_and_ever)
{
    struct dbstats_row *row = dbstats_row_of(shm, 0, slice_of_str("shop"));

    dbstats_add(&row->npins[PIN_REASON_LISTEN], 4);
    dbstats_add(&row->npins[PIN_REASON_LOAD], 1);
    fixture_put_client(1, 0, CLIENT_STATE_IDLE, "alice")->pins = ROWS_PIN(PIN_REASON_LISTEN);
    fixture_put_client(0, 0, CLIENT_STATE_IDLE, "bob")->pins = ROWS_PIN(PIN_REASON_LISTEN);
    fixture_run_report(ADMIN_REPORT_PINS);
    fixture_assert_rows("shop|listen|2|4\nshop|load|0|1\n");
}
END_TEST

START_TEST(orders_that_hold)
{
    ck_assert_int_eq(orders_set(shm, slice_of_str("shop"), ORDER_PAUSE, &err), 0);
    ck_assert_int_eq(orders_set(shm, slice_of_str("gone"), ORDER_DRAIN, &err), 0);
    orders_clear(shm, slice_of_str("gone"), ORDER_DRAIN);
    fixture_run_report(ADMIN_REPORT_ORDERS);
    fixture_assert_rows("shop|true|false||false\n");
    ck_assert_int_eq(orders_set(shm, slice_of_str(""), ORDER_DRAIN, &err), 0);
    fixture_run_report(ADMIN_REPORT_ORDERS);
    fixture_assert_rows("|false|true||false\nshop|true|false||false\n");
}
END_TEST

/* The log of the cluster is behind an election: who leads, and why the one before did. */
START_TEST(a_leader_of_whom_the_log_does_not_tell_yet)
{
    static struct wd_share s;
    int told;

    s.is_on = true;
    s.self = 1;
    s.leader = 1;
    s.member[1].exists = true;
    s.member[1].state = WD_MEMBER_LEADER;
    s.state.leader_since_us = AGO(30);
    snprintf(s.state.leader_why, sizeof s.state.leader_why, "it was the first to be elected");
    for (told = 0; told < 2; told++) {
        s.state.leader = told;
        ck_assert_int_eq(wd_share_knows_leader(&s), told == 1);
        wd_share_publish(shm, &s);
        fixture_run_report(ADMIN_REPORT_WATCHDOG);
        ck_assert_ptr_nonnull(strstr(fixture_rows_text(), "|LEADER|"));
        ck_assert_int_eq(strstr(fixture_rows_text(), "|2024-01-31 11:59:30") != NULL, told == 1);
        ck_assert_int_eq(strstr(fixture_rows_text(), "the first") != NULL, told == 1);
    }
    s.leader = s.state.leader = WD_NO_MEMBER;
    ck_assert(!wd_share_knows_leader(&s));
}
END_TEST

START_TEST(torn_rows_do_no_harm)
{
    struct client_row *c = fixture_put_client(0, 0, CLIENT_STATE_ACTIVE, "alice");
    struct link_row *l = fixture_put_link(0, 0, LINK_STATE_LENT);
    int i;

    memset((char *)c + sizeof c->seq, 0xff, sizeof *c - sizeof c->seq);
    memset((char *)l + sizeof l->seq, 0xff, sizeof *l - sizeof l->seq);
    c->seq.n = 7; /* its writer died in the middle */
    rows_worker(shm_get(shm, SHM_CLIENTS), 0)->high_water = UINT32_MAX;
    for (i = 0; i < ADMIN_REPORT_COUNT; i++)
        fixture_run_report((enum admin_report)i);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("admin_reports");
    TCase *tc = tcase_create("all");

    tcase_add_checked_fixture(tc, fixture_setup, fixture_teardown);
    tcase_add_test(tc, columns_are_those_of_pgpool);
    tcase_add_test(tc, every_report_runs_with_nothing_to_show);
    tcase_add_test(tc, nodes_as_the_cluster_view_says);
    tcase_add_test(tc, roles_are_main_and_replica_elsewhere);
    tcase_add_test(tc, processes_speak_of_their_busiest_client);
    tcase_add_test(tc, pools_show_links_and_who_has_them);
    tcase_add_test(tc, statements_of_others_are_hidden);
    tcase_add_test(tc, a_sessions_statement_is_that_of_its_link);
    tcase_add_test(tc, clients_one_by_one);
    tcase_add_test(tc, queue_counts_what_waits_for_the_same);
    tcase_add_test(tc, figures_per_database);
    tcase_add_test(tc, links_one_by_one);
    tcase_add_test(tc, limits_with_use_and_waiters);
    tcase_add_test(tc, pins_now_and_ever);
    tcase_add_test(tc, orders_that_hold);
    tcase_add_test(tc, a_leader_of_whom_the_log_does_not_tell_yet);
    tcase_add_test(tc, torn_rows_do_no_harm);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
