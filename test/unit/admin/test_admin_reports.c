/* SPDX-License-Identifier: PostgreSQL
 * test_admin_reports.c: columns, rows and formats of every report; PGPOOL SHOW, SET, RESET; answers
 * as messages of both protocols. Times are shown in local time: the test runs in UTC. */
#include "config.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "admin/admin.h"
#include "admin_int.h"
#include "base/arena.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "ipc/proc.h"
#include "ipc/rows.h"
#include "wire/proto.h"
#include "wire/reader.h"

#define NWORKERS    2
#define PER_WORKER  4
#define NSLOTS      (1 + NWORKERS)
#define NOW_US      (1706702400LL * 1000000) /* 2024-01-31 12:00:00 UTC */
#define AGO(second) (NOW_US - (second)*1000000LL)

static const char settings[] = "port = 11000\n"
                               "backend_hostname0 = '/tmp'\n"
                               "backend_port0 = 11002\n"
                               "backend_weight0 = 1\n"
                               "backend_hostname2 = 'db2'\n"
                               "backend_port2 = 11004\n"
                               "backend_weight2 = 3\n"
                               "client_idle_limit = 0\n";

static struct shm *shm;
static struct conf_gen *gen;
static struct conf_override *ov;
static struct admin_sources src;
static struct admin_result res;
static struct err err;

static void load(const char *text)
{
    struct conf_report report;
    struct buf why = {0};

    conf_report_init(&report);
    gen = conf_load_text("/nonexistent/pgpool.conf", slice_of_str(text), &report);
    conf_report_format(&report, &why);
    ck_assert_msg(gen != NULL, "%.*s", (int)why.len, why.data);
    buf_free(&why);
    conf_report_fini(&report);
    src.gen = gen;
}

static void setup(void)
{
    struct shm_plan plan = {{0}};
    struct proc_row *proc;
    int i;

    setenv("TZ", "UTC", 1);
    tzset();
    err_clear(&err);
    ov = NULL;
    plan.bytes[SHM_PROCS] = proc_table_bytes(NSLOTS);
    plan.bytes[SHM_CLIENTS] = rows_bytes(sizeof(struct client_row), NWORKERS, PER_WORKER);
    plan.bytes[SHM_LINKS] = rows_bytes(sizeof(struct link_row), NWORKERS, PER_WORKER);
    shm = shm_new(&plan, &err);
    ck_assert_ptr_nonnull(shm);
    rows_init(shm_get(shm, SHM_CLIENTS), sizeof(struct client_row), NWORKERS, PER_WORKER);
    rows_init(shm_get(shm, SHM_LINKS), sizeof(struct link_row), NWORKERS, PER_WORKER);
    for (i = 0; i < NWORKERS; i++) {
        proc = proc_row(shm, 1 + i);
        proc->pid = 4000 + i;
        proc->start_time_us = AGO(3600 + i);
    }
    memset(&src, 0, sizeof src);
    src.ov = &ov;
    src.shm = shm;
    src.first_worker_slot = 1;
    src.now_us = NOW_US;
    src.user = slice_of_str("alice");
    src.database = slice_of_str("shop");
    src.balance_node = -1;
    load(settings);
}

static void teardown(void)
{
    admin_result_fini(&res);
    conf_override_free(&ov);
    conf_gen_free(&gen);
    shm_free(&shm);
}

/* Takes row `i` of worker `ordinal`. */
static struct client_row *put_client(int ordinal, int i, enum client_state state, const char *user)
{
    struct rows_header *rows = shm_get(shm, SHM_CLIENTS);
    struct rows_worker *range = rows_worker(rows, (uint32_t)ordinal);
    struct client_row *row = client_row_at(rows, (int64_t)range->first + i);

    if (range->high_water < (uint32_t)i + 1)
        range->high_water = (uint32_t)i + 1;
    range->served += 1;
    row->state = (uint8_t)state;
    row->node = ROWS_NO_NODE;
    row->balance_node = ROWS_NO_NODE;
    row->link_row = ROWS_NO_ROW;
    row->worker = (uint16_t)ordinal;
    row->id = 100 + range->first + (uint32_t)i;
    row->connected_us = AGO(100);
    row->state_since_us = AGO(10);
    client_row_set_names(row, user, strlen(user), "shop", 4, "psql", 4);
    return row;
}

static struct link_row *put_link(int ordinal, int i, enum link_state state)
{
    struct rows_header *rows = shm_get(shm, SHM_LINKS);
    struct rows_worker *range = rows_worker(rows, (uint32_t)ordinal);
    struct link_row *row = link_row_at(rows, (int64_t)range->first + i);

    if (range->high_water < (uint32_t)i + 1)
        range->high_water = (uint32_t)i + 1;
    row->state = (uint8_t)state;
    row->server_pid = 7000 + i;
    row->node = 2;
    row->worker = (uint16_t)ordinal;
    row->created_us = AGO(50);
    row->acquired_us = AGO(40);
    row->uses = 5;
    row->client_row = ROWS_NO_ROW;
    row->protocol = PROTO_3_0;
    rows_set_text(row->user, sizeof row->user, "alice", 5);
    rows_set_text(row->database, sizeof row->database, "shop", 4);
    rows_set_text(row->statement, sizeof row->statement, "select 1", 8);
    return row;
}

/* Connects the two rows. */
static void lend(struct link_row *link, struct client_row *client)
{
    struct rows_header *links = shm_get(shm, SHM_LINKS);
    struct rows_header *clients = shm_get(shm, SHM_CLIENTS);

    link->client_row = (int32_t)(client - client_row_at(clients, 0));
    client->link_row = (int32_t)(link - link_row_at(links, 0));
    client->node = link->node;
    client->server_pid = link->server_pid;
}

static void run_report(enum admin_report report)
{
    admin_result_fini(&res);
    ck_assert_msg(admin_run_report(report, &src, &res, &err) == 0, "%s", err.msg);
}

/* All rows as text: cells joined by '|', rows ended by '\n'. */
static const char *rows_text(void)
{
    static char text[65536];
    const struct admin_row *row;
    size_t used = 0;
    unsigned i;

    text[0] = '\0';
    for (row = res.rows; row != NULL; row = row->next) {
        for (i = 0; i < res.ncolumns; i++) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%.*s%c", (int)row->cell[i].n,
                row->cell[i].p, i + 1 < res.ncolumns ? '|' : '\n');
            ck_assert_ptr_nonnull(row->cell[i].p);
            ck_assert_uint_lt(used, sizeof text);
        }
    }
    return text;
}

static void assert_rows(const char *expected)
{
    ck_assert_str_eq(rows_text(), expected);
}

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
        "connected_at last_query_at wait_ms pinned pin_reason statement");
    assert_columns(ADMIN_REPORT_QUEUE, "database username node waiting longest_wait_ms reason");
}
END_TEST

START_TEST(every_report_runs_with_nothing_to_show)
{
    int i;

    src.shm = shm;
    for (i = 0; i < ADMIN_REPORT_COUNT; i++) {
        run_report((enum admin_report)i);
        ck_assert_uint_eq(res.ncolumns, admin_report_info((enum admin_report)i)->ncolumns);
        rows_text();
    }
    run_report(ADMIN_REPORT_VERSION);
    assert_rows(PACKAGE_VERSION " (" PGPOOL_CODENAME ")\n");
    run_report(ADMIN_REPORT_CACHE);
    assert_rows("0|0|0.00|0|0|0|0|0|0\n");
    run_report(ADMIN_REPORT_POOLS);
    ck_assert_uint_eq(res.nrows, 0);
    run_report(ADMIN_REPORT_QUEUE);
    ck_assert_uint_eq(res.nrows, 0);
    run_report(ADMIN_REPORT_NODES);
    assert_rows("0|/tmp|11002|waiting|unknown|0.250000|unknown|unknown|0|false|0|||\n"
                "2|db2|11004|waiting|unknown|0.750000|unknown|unknown|0|false|0|||\n");
}
END_TEST

static void some_node(void *ctx, int id, struct admin_node *out)
{
    out->status = id == 0 ? ADMIN_NODE_DOWN : ADMIN_NODE_UP;
    out->pg_status = id == 0 ? ADMIN_PG_DOWN : ADMIN_PG_UP;
    out->role = id == 0 ? ADMIN_ROLE_STANDBY : ADMIN_ROLE_PRIMARY;
    out->pg_role = id == 0 ? ADMIN_ROLE_UNKNOWN : ADMIN_ROLE_PRIMARY;
    out->delay_bytes = id == 0 ? 4096 : 0;
    out->delay_us = id == 0 ? 2500000 : 0;
    out->delay_is_time = *(bool *)ctx;
    if (id == 0) {
        memcpy(out->replication_state, "streaming", 10);
        memcpy(out->replication_sync_state, "async", 6);
    }
    out->status_changed_us = AGO(60);
    out->counts = (struct admin_counts){12, 10, 30, 0, 2, 31, 0, 1, 4};
    out->health =
        (struct admin_health){4, 2, 1, 1, 2, 2, 9, 2, 19, AGO(1), AGO(2), id == 0 ? AGO(3) : 0, 0};
}

START_TEST(nodes_as_the_cluster_view_says)
{
    bool delay_is_time = false;

    src.node = some_node;
    src.node_ctx = &delay_is_time;
    src.balance_node = 2;
    run_report(ADMIN_REPORT_NODES);
    assert_rows(
        "0|/tmp|11002|down|down|0.250000|standby|unknown|12|false|4096|streaming|async|2024-01-31 "
        "11:59:00\n"
        "2|db2|11004|up|up|0.750000|primary|primary|12|true|0|||2024-01-31 11:59:00\n");
    delay_is_time = true;
    run_report(ADMIN_REPORT_NODES);
    ck_assert_ptr_nonnull(strstr(rows_text(), "|2.500000 seconds|streaming"));
    ck_assert_ptr_nonnull(strstr(rows_text(), "|0.000000 second||"));
    run_report(ADMIN_REPORT_BACKEND_STATS);
    assert_rows("0|/tmp|11002|down|standby|12|10|30|0|2|31|0|1|4\n"
                "2|db2|11004|up|primary|12|10|30|0|2|31|0|1|4\n");
    run_report(ADMIN_REPORT_HEALTH_CHECK_STATS);
    assert_rows("0|/tmp|11002|down|standby|2024-01-31 11:59:00|4|2|1|1|2|0.500000|2|9|2|6.333333|"
                "2024-01-31 11:59:59|2024-01-31 11:59:58|2024-01-31 11:59:57|\n"
                "2|db2|11004|up|primary|2024-01-31 11:59:00|4|2|1|1|2|0.500000|2|9|2|6.333333|"
                "2024-01-31 11:59:59|2024-01-31 11:59:58||\n");
}
END_TEST

START_TEST(roles_are_main_and_replica_elsewhere)
{
    bool delay_is_time = false;

    conf_gen_free(&gen);
    load("backend_clustering_mode = 'raw'\nbackend_hostname0 = 'a'\nbackend_port0 = 5432\n"
         "backend_hostname1 = 'b'\nbackend_port1 = 5432\n");
    src.node = some_node;
    src.node_ctx = &delay_is_time;
    run_report(ADMIN_REPORT_NODES);
    ck_assert_ptr_nonnull(strstr(rows_text(), "0|a|5432|down|down|0.500000|replica|replica|"));
    ck_assert_ptr_nonnull(strstr(rows_text(), "1|b|5432|up|up|0.500000|main|main|"));
}
END_TEST

START_TEST(processes_speak_of_their_busiest_client)
{
    struct client_row *c;

    run_report(ADMIN_REPORT_PROCESSES);
    assert_rows("4000|2024-01-31 11:00:00|0|||||Wait for connection\n"
                "4001|2024-01-31 10:59:59|0|||||Wait for connection\n");
    put_client(0, 0, CLIENT_STATE_IDLE, "bob");
    c = put_client(0, 1, CLIENT_STATE_IDLE_TX, "alice");
    lend(put_link(0, 2, LINK_STATE_LENT), c);
    put_client(1, 0, CLIENT_STATE_LOGIN, "");
    run_report(ADMIN_REPORT_PROCESSES);
    assert_rows("4000|2024-01-31 11:00:00|2|shop|alice|2024-01-31 11:59:10|5|Idle in transaction\n"
                "4001|2024-01-31 10:59:59|1|shop||||Connecting\n");
    put_client(0, 3, CLIENT_STATE_ACTIVE, "carol")->state_since_us = AGO(99);
    run_report(ADMIN_REPORT_PROCESSES);
    ck_assert_ptr_nonnull(strstr(rows_text(), "|3|shop|carol|||Execute command\n"));
    /* Of two equally busy ones the later. */
    put_client(0, 2, CLIENT_STATE_ACTIVE, "dave")->state_since_us = AGO(98);
    run_report(ADMIN_REPORT_PROCESSES);
    ck_assert_ptr_nonnull(strstr(rows_text(), "|4|shop|dave|||Execute command\n"));
}
END_TEST

START_TEST(pools_show_links_and_who_has_them)
{
    struct client_row *c = put_client(1, 2, CLIENT_STATE_IDLE, "alice");
    struct link_row *stale = put_link(0, 1, LINK_STATE_IDLE);

    stale->released_us = AGO(30);
    stale->client_row = 0; /* the client has gone, the row was not yet updated */
    stale->protocol = PROTO_3_2;
    lend(put_link(1, 0, LINK_STATE_LENT), c);
    c->addr_kind = ROW_ADDR_IPV4;
    memcpy(c->addr, "\xc0\xa8\x0a\x0b", 4);
    c->port = 39216;
    c->balance_node = 2;
    run_report(ADMIN_REPORT_POOLS);
    assert_rows("4000|2024-01-31 11:00:00|0|1|2|shop|alice|2024-01-31 11:59:10|2024-01-31 "
                "11:59:20|2024-01-31 11:59:30|0|3|2|5|7001|0|Wait for "
                "connection|0|||select 1\n"
                "4001|2024-01-31 10:59:59|1|0|2|shop|alice|2024-01-31 11:59:10|2024-01-31 "
                "11:58:20||10|3|0|5|7000|1|Idle|1|192.168.10.11|39216|select 1\n");
    c->balance_node = 0;
    c->addr_kind = ROW_ADDR_LOCAL;
    conf_gen_free(&gen);
    load("client_idle_limit = 305\nbackend_hostname0 = 'a'\nbackend_port0 = 5432\n");
    run_report(ADMIN_REPORT_POOLS);
    ck_assert_ptr_nonnull(strstr(
        rows_text(), "||10 (4:55 before client disconnected)|3|0|5|7000|1|Idle|0|[local]||select"));
}
END_TEST

START_TEST(statements_of_others_are_hidden)
{
    put_link(0, 0, LINK_STATE_IDLE);
    rows_set_text(put_client(0, 0, CLIENT_STATE_ACTIVE, "alice")->statement, 64, "mine", 4);
    rows_set_text(put_client(0, 1, CLIENT_STATE_ACTIVE, "bob")->statement, 64, "his", 3);
    put_client(0, 2, CLIENT_STATE_ACTIVE, "bob");
    run_report(ADMIN_REPORT_CLIENTS);
    ck_assert_ptr_nonnull(strstr(rows_text(), "|mine\n"));
    ck_assert_ptr_null(strstr(rows_text(), "his\n"));
    ck_assert_ptr_nonnull(strstr(rows_text(), "|<insufficient privilege>\n102|4000|bob|"));
    ck_assert_str_eq(strrchr(rows_text(), '|'), "|\n");
    src.user = slice_of_str("bob");
    run_report(ADMIN_REPORT_POOLS);
    ck_assert_ptr_null(strstr(rows_text(), "select 1"));
    src.user = slice_of_str("");
    run_report(ADMIN_REPORT_CLIENTS);
    ck_assert_ptr_null(strstr(rows_text(), "mine"));
    src.is_operator = true;
    run_report(ADMIN_REPORT_CLIENTS);
    ck_assert_ptr_nonnull(strstr(rows_text(), "|mine\n"));
    ck_assert_ptr_nonnull(strstr(rows_text(), "|his\n"));
}
END_TEST

START_TEST(clients_one_by_one)
{
    struct client_row *c = put_client(0, 1, CLIENT_STATE_WAITING, "alice");

    c->wait_reason = WAIT_REASON_NODE_LIMIT;
    c->state_since_us = NOW_US - 1500000;
    c->query_start_us = AGO(2);
    c->addr_kind = ROW_ADDR_IPV6;
    ck_assert_int_eq(inet_pton(AF_INET6, "2001:db8::1", c->addr), 1);
    c->port = 5;
    c = put_client(1, 0, CLIENT_STATE_FAILED_TX, "bob");
    lend(put_link(0, 0, LINK_STATE_LENT), c);
    c->pin_reason = PIN_REASON_TEMP_TABLE;
    run_report(ADMIN_REPORT_CLIENTS);
    assert_rows("101|4000|alice|shop|psql|2001:db8::1|5|waiting|||2024-01-31 11:58:20|2024-01-31 "
                "11:59:58|1500|false||\n"
                "104|4001|bob|shop|psql|[local]||idle in transaction (aborted)|2|7000|2024-01-31 "
                "11:58:20||0|true|temporary table|\n");
}
END_TEST

START_TEST(queue_counts_what_waits_for_the_same)
{
    struct client_row *c;
    int i;

    for (i = 0; i < 4; i++) {
        c = put_client(0, i, CLIENT_STATE_WAITING, i == 2 ? "bob" : "alice");
        c->wait_reason = WAIT_REASON_NODE_LIMIT;
        c->node = i == 3 ? 0 : 2;
        c->state_since_us = NOW_US - (i + 1) * 1000;
    }
    c = put_client(1, 0, CLIENT_STATE_WAITING, "alice");
    c->wait_reason = WAIT_REASON_PAUSED;
    c->state_since_us = NOW_US + 5000; /* the clock went back */
    put_client(1, 1, CLIENT_STATE_ACTIVE, "alice");
    run_report(ADMIN_REPORT_QUEUE);
    assert_rows("shop|alice||1|0|paused\n"
                "shop|alice|0|1|4|node limit\n"
                "shop|alice|2|2|2|node limit\n"
                "shop|bob|2|1|3|node limit\n");
}
END_TEST

START_TEST(torn_rows_do_no_harm)
{
    struct client_row *c = put_client(0, 0, CLIENT_STATE_ACTIVE, "alice");
    struct link_row *l = put_link(0, 0, LINK_STATE_LENT);
    int i;

    memset((char *)c + sizeof c->seq, 0xff, sizeof *c - sizeof c->seq);
    memset((char *)l + sizeof l->seq, 0xff, sizeof *l - sizeof l->seq);
    c->seq.n = 7; /* its writer died in the middle */
    rows_worker(shm_get(shm, SHM_CLIENTS), 0)->high_water = UINT32_MAX;
    for (i = 0; i < ADMIN_REPORT_COUNT; i++)
        run_report((enum admin_report)i);
}
END_TEST

static void some_cache(void *ctx, struct admin_cache *out)
{
    *out = (struct admin_cache){891703, 99995, 131072, 99992, 99992, 12482600, 54626264, 0, AGO(0)};
}

static bool delete_from_cache(void *ctx, struct slice sql, struct slice user, struct slice database)
{
    return slice_eq_str(sql, "select 'x';") && slice_eq_str(user, "alice") &&
           slice_eq_str(database, "shop");
}

/* Runs an SQL command. */
static int run_sql(const char *sql)
{
    struct admin_cmd cmd;

    err_clear(&err);
    admin_result_fini(&res);
    ck_assert_msg(admin_recognise(slice_of_str(sql), &cmd), "%s", sql);
    return admin_run(&cmd, &src, &res, &err);
}

START_TEST(cache_report_and_delete)
{
    ck_assert_int_eq(run_sql("PGPOOL SET CACHE DELETE 'select 1'"), -1);
    ck_assert_str_eq(err.msg, "query cache is not enabled");
    src.cache = some_cache;
    src.cache_delete = delete_from_cache;
    run_report(ADMIN_REPORT_CACHE);
    assert_rows("891703|99995|0.90|131072|99992|99992|12482600|54626264|0\n");
    ck_assert_int_eq(run_sql("PGPOOL SET CACHE DELETE 'select ''x'';'"), 0);
    ck_assert_str_eq(res.notices->msg, "query cache deleted. query: \"select 'x';\"");
    ck_assert_str_eq(res.tag, "SET");
    ck_assert_int_eq(run_sql("PGPOOL SET CACHE DELETE e'select\\t1'"), 0);
    ck_assert_str_eq(res.notices->msg, "query cache does not exist for query: \"select\t1\"");
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

    src.node = some_node;
    src.node_ctx = &delay_is_time;
    src.cache = some_cache;
    ck_assert_int_eq(run_sql("show pool_status"), 0);
    ck_assert_str_eq(value_of("port"), "11000");
    ck_assert_str_eq(value_of("backend_hostname2"), "db2");
    ck_assert_str_eq(value_of("backend_weight0"), "0.250000");
    ck_assert_str_eq(value_of("backend_status0"), "down");
    ck_assert_str_eq(value_of("backend_status2"), "up");
    ck_assert_str_eq(value_of("standby_delay0"), "4096");
    ck_assert_str_eq(value_of("memqcache_cache_hits"), "891703");
    ck_assert_str_eq(value_of("memqcache_no_cache_hits"), "99995");
    ck_assert_str_eq(value_of("memqcache_stats_start_time"), "Wed Jan 31 12:00:00 2024");
}
END_TEST

START_TEST(show_set_and_reset_settings)
{
    ck_assert_int_eq(run_sql("PGPOOL SHOW port"), 0);
    ck_assert_uint_eq(res.ncolumns, 1);
    ck_assert_str_eq(res.columns[0], "port");
    assert_rows("11000\n");
    ck_assert_int_eq(run_sql("pgpool show all"), 0);
    ck_assert_uint_eq(res.ncolumns, 3);
    ck_assert_uint_gt(res.nrows, 200);
    ck_assert_str_eq(value_of("port"), "11000");
    ck_assert_int_eq(run_sql("pgpool show backend"), 0);
    ck_assert_str_eq(value_of("backend_port2"), "11004");
    ck_assert_int_eq(run_sql("pgpool show nonsense"), -1);
    ck_assert_str_eq(err.msg, "config variable \"nonsense\" not found");
    ck_assert_int_eq(run_sql("PGPOOL SET client_idle_limit = 350"), 0);
    ck_assert_ptr_null(res.columns);
    ck_assert_str_eq(res.tag, "SET");
    ck_assert_int_eq(run_sql("pgpool show client_idle_limit"), 0);
    assert_rows("350s\n");
    ck_assert_int_eq(run_sql("pgpool set client_idle_limit to '2min'"), 0);
    ck_assert_int_eq(run_sql("pgpool show client_idle_limit"), 0);
    assert_rows("2min\n");
    ck_assert_int_eq(run_sql("pgpool set client_idle_limit to default"), 0);
    ck_assert_int_eq(run_sql("pgpool show client_idle_limit"), 0);
    assert_rows("0\n");
    ck_assert_int_eq(run_sql("pgpool set log_statement = on"), 0);
    ck_assert_int_eq(run_sql("pgpool reset all"), 0);
    ck_assert_str_eq(res.tag, "RESET");
    ck_assert_int_eq(run_sql("pgpool show log_statement"), 0);
    assert_rows("off\n");
    ck_assert_int_eq(run_sql("pgpool set client_idle_limit = -1"), -1);
    ck_assert_int_eq(run_sql("pgpool set log_statement = banana"), -1);
    ck_assert_str_eq(err.sqlstate, "22023");
    ck_assert_int_eq(run_sql("pgpool set port = 1"), -1);
    ck_assert_ptr_nonnull(strstr(err.msg, "cannot be changed"));
    ck_assert_int_eq(run_sql("pgpool set nonsense = 1"), -1);
    ck_assert_str_eq(err.msg, "unrecognized configuration parameter \"nonsense\"");
    ck_assert_ptr_null(res.arena);
}
END_TEST

START_TEST(a_skin_without_a_session_cannot_set)
{
    src.ov = NULL;
    ck_assert_int_eq(run_sql("pgpool set client_idle_limit = 1"), -1);
    ck_assert_str_eq(err.sqlstate, "0A000");
    ck_assert_int_eq(run_sql("pgpool reset all"), -1);
    ck_assert_int_eq(run_sql("pgpool show port"), 0);
    ck_assert_int_eq(run_sql("show pool_status"), 0);
}
END_TEST

START_TEST(syntax_errors_name_the_place)
{
    struct admin_cmd cmd;
    struct buf out = {0};

    ck_assert_int_eq(run_sql("pgpool dance on"), -1);
    ck_assert_str_eq(err.sqlstate, "42601");
    ck_assert_str_eq(err.msg, "syntax error at or near \"dance\"");
    ck_assert_int_eq(run_sql("pgpool show"), -1);
    ck_assert_str_eq(err.msg, "syntax error at end of input");
    ck_assert(admin_recognise(slice_of_str("pgpool dance"), &cmd));
    err_clear(&err);
    ck_assert_int_eq(admin_encode_describe(&cmd, &out, &err), -1);
    ck_assert_str_eq(err.sqlstate, "42601");
    ck_assert_uint_eq(out.len, 0);
    err_clear(&err);
    admin_refuse_aborted(&err);
    ck_assert_str_eq(err.sqlstate, "25P02");
}
END_TEST

START_TEST(an_answer_has_a_limit)
{
    struct admin_rows rows;
    int i;

    for (i = 0; i < PER_WORKER; i++)
        put_client(0, i, CLIENT_STATE_WAITING, "alice");
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

    src.cache_delete = delete_from_cache;
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

    ck_assert_int_eq(run_sql("show pool_version"), 0);
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
    ck_assert_int_eq(run_sql("show pool_pools"), 0);
    admin_encode(&res, &out);
    ck_assert_str_eq(types_of(&out, tag, sizeof tag), "TC");
    ck_assert_str_eq(tag, "SELECT 0");
    buf_clear(&out);
    ck_assert_int_eq(run_sql("pgpool reset all"), 0);
    admin_encode(&res, &out);
    ck_assert_str_eq(types_of(&out, tag, sizeof tag), "C");
    ck_assert_str_eq(tag, "RESET");
    buf_clear(&out);
    src.cache_delete = delete_from_cache;
    ck_assert_int_eq(run_sql("pgpool set cache delete 'x'"), 0);
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
        put_client(0, (int)i, CLIENT_STATE_IDLE, "alice");
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
    Suite *s = suite_create("admin_reports");
    TCase *tc = tcase_create("all");
    SRunner *sr;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, columns_are_those_of_pgpool);
    tcase_add_test(tc, every_report_runs_with_nothing_to_show);
    tcase_add_test(tc, nodes_as_the_cluster_view_says);
    tcase_add_test(tc, roles_are_main_and_replica_elsewhere);
    tcase_add_test(tc, processes_speak_of_their_busiest_client);
    tcase_add_test(tc, pools_show_links_and_who_has_them);
    tcase_add_test(tc, statements_of_others_are_hidden);
    tcase_add_test(tc, clients_one_by_one);
    tcase_add_test(tc, queue_counts_what_waits_for_the_same);
    tcase_add_test(tc, torn_rows_do_no_harm);
    tcase_add_test(tc, cache_report_and_delete);
    tcase_add_test(tc, status_mixes_settings_and_facts);
    tcase_add_test(tc, show_set_and_reset_settings);
    tcase_add_test(tc, a_skin_without_a_session_cannot_set);
    tcase_add_test(tc, syntax_errors_name_the_place);
    tcase_add_test(tc, an_answer_has_a_limit);
    tcase_add_test(tc, random_commands_do_no_harm);
    tcase_add_test(tc, simple_protocol);
    tcase_add_test(tc, extended_protocol);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
