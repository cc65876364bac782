/* SPDX-License-Identifier: PostgreSQL
 * test_conf_show.c: SHOW POOL_STATUS, PGPOOL SHOW, PGPOOL SET and RESET. */
#include "config.h"

#include "conf_test.h"

#include "config/conf_show.h"

/* Rows as "item|value\n". */
struct conf_test_rows {
    struct buf b;
    int n;
    size_t longest_description;
};

static void conf_test_row(void *ctx, const char *item, const char *value, const char *description)
{
    struct conf_test_rows *rows = ctx;
    buf_printf(&rows->b, "%s|%s\n", item, value);
    rows->n++;
    if (strlen(description) > rows->longest_description)
        rows->longest_description = strlen(description);
    ck_assert_uint_gt(strlen(description), 0);
}

static void conf_test_fact(void *ctx, enum conf_fact fact, int node, struct buf *out)
{
    static const char *const names[] = {"status", "delay", "", "start", "misses", "hits"};
    (void)ctx;
    if (fact != CONF_FACT_BACKEND_WEIGHT)
        buf_printf(out, "%s%d", names[fact], node);
}

static struct conf_show conf_test_show(struct conf_gen *gen, struct conf_test_rows *rows)
{
    memset(rows, 0, sizeof(*rows));
    return (struct conf_show){
        .gen = gen, .fact = conf_test_fact, .row = conf_test_row, .row_ctx = rows};
}

static const char *conf_test_rows_text(struct conf_test_rows *rows)
{
    buf_put_byte(&rows->b, '\0');
    return rows->b.data;
}

static void conf_test_has(struct conf_test_rows *rows, const char *row)
{
    char line[512];
    const char *text = rows->b.data;
    size_t n = (size_t)snprintf(line, sizeof(line), "\n%s\n", row) - 1;
    bool at_start = strncmp(text, line + 1, n) == 0;
    ck_assert_msg(at_start || strstr(text, line) != NULL, "no row %s in\n%s", row, text);
}

static const char *const conf_test_file =
    "backend_hostname0 = '/tmp'\nbackend_port0 = 11002\nbackend_weight0 = 3\n"
    "backend_flag0 = 'DISALLOW_TO_FAILOVER|ALWAYS_PRIMARY'\n"
    "backend_hostname2 = 'h2'\nbackend_port2 = 11003\nbackend_weight2 = 1\n"
    "hostname0 = 'p0'\nwd_port0 = 9000\npgpool_port0 = 9999\n"
    "heartbeat_hostname0 = 'p0;p1'\nheartbeat_port0 = 9694\n"
    "sr_check_password = 'geheim'\nhealth_check_password = 'geheim'\n"
    "health_check_password0 = 'geheim'\nrecovery_password = 'geheim'\n"
    "wd_lifecheck_password = 'geheim'\nwd_authkey = 'geheim'\n"
    "authentication_timeout = 5min\nconnect_timeout = 1s\n"
    "reset_query_list = 'ABORT ; DISCARD ALL'\n"
    "primary_routing_query_pattern_list = 'a\\;b ; c'\nsyslog_facility = LOCAL3\n"
    "client_min_messages = log\nlog_min_messages = fatal\nport = 11000\n";

START_TEST(pool_status)
{
    struct conf_test_rows rows;
    struct conf_gen *gen = conf_test_good(conf_test_file);
    struct conf_show show = conf_test_show(gen, &rows);
    conf_show_status(&show);
    const char *text = conf_test_rows_text(&rows);
    static const char *const begin = "backend_clustering_mode|1\nlisten_addresses|localhost\n"
                                     "port|11000\nunix_socket_directories|/tmp\n"
                                     "unix_socket_group|\nunix_socket_permissions|0777\n"
                                     "pcp_listen_addresses|localhost\npcp_port|9898\n"
                                     "pcp_socket_dir|/tmp\nenable_pool_hba|0\npool_passwd|*****\n"
                                     "authentication_timeout|300\n";
    ck_assert_int_eq(strncmp(text, begin, strlen(begin)), 0);
    static const char *const end =
        "cache_unsafe_memqcache_table_list|\n"
        "backend_hostname0|/tmp\nbackend_port0|11002\nbackend_weight0|0.750000\n"
        "backend_data_directory0|\nbackend_status0|status0\nstandby_delay0|delay0\n"
        "backend_flag0|DISALLOW_TO_FAILOVER|ALWAYS_PRIMARY\nbackend_application_name0|\n"
        "backend_hostname2|h2\nbackend_port2|11003\nbackend_weight2|0.250000\n"
        "backend_data_directory2|\nbackend_status2|status2\nstandby_delay2|delay2\n"
        "backend_flag2|ALLOW_TO_FAILOVER\nbackend_application_name2|\n";
    ck_assert_str_eq(text + strlen(text) - strlen(end), end);
    conf_test_has(&rows, "reset_query_list|ABORT;DISCARD ALL");
    conf_test_has(&rows, "primary_routing_query_pattern_list|a\\;b;c");
    conf_test_has(&rows, "connect_timeout|1000");
    conf_test_has(&rows, "syslog_facility|LOCAL3");
    conf_test_has(&rows, "client_min_messages|15");
    conf_test_has(&rows, "log_min_messages|21");
    conf_test_has(&rows, "log_destination|stderr");
    conf_test_has(&rows, "memqcache_cache_oiddir|/var/log/pgpool/oiddir");
    conf_test_has(&rows, "memqcache_stats_start_time|start-1");
    conf_test_has(&rows, "memqcache_total_size|67108864");
    conf_test_has(&rows, "wd_lifecheck_method|2");
    ck_assert_ptr_nonnull(
        strstr(text, "wd_lifecheck_user|\nhostname0|p0\npgpool_port0|9999\nwd_port0|9000\n"
                     "heartbeat_hostname0|p0;p1\nheartbeat_device0|\n"
                     "heartbeat_port0|9694\nwd_monitoring_interfaces_list|\n"));
    ck_assert_ptr_null(strstr(text, "geheim"));
    ck_assert_ptr_null(strstr(text, "max_clients"));
    ck_assert_uint_le(rows.longest_description, 80);
    ck_assert_int_eq(rows.n, 149 + 3 + 3 + 2 * 8);
    buf_free(&rows.b);
    conf_gen_free(&gen);
}
END_TEST

static const char *conf_test_show_one(struct conf_gen *gen, const char *name, int columns)
{
    static char value[256];
    struct conf_test_rows rows;
    struct err err = {0};
    struct conf_show show = conf_test_show(gen, &rows);
    ck_assert_int_eq(conf_show_columns(name, &err), columns);
    ck_assert_int_eq(conf_show_one(&show, name, &err), columns);
    snprintf(value, sizeof(value), "%s", conf_test_rows_text(&rows));
    buf_free(&rows.b);
    return value;
}

START_TEST(pgpool_show_one)
{
    struct conf_gen *gen = conf_test_good(conf_test_file);
    ck_assert_str_eq(conf_test_show_one(gen, "port", 1), "port|11000\n");
    ck_assert_str_eq(
        conf_test_show_one(gen, "authentication_timeout", 1), "authentication_timeout|5min\n");
    ck_assert_str_eq(conf_test_show_one(gen, "connect_timeout0", 1), "connect_timeout0|1s\n");
    ck_assert_str_eq(
        conf_test_show_one(gen, "memqcache_maxcache", 1), "memqcache_maxcache|400kB\n");
    ck_assert_str_eq(conf_test_show_one(gen, "ssl", 1), "ssl|off\n");
    ck_assert_str_eq(conf_test_show_one(gen, "pool_mode", 1), "pool_mode|session\n");
    ck_assert_str_eq(conf_test_show_one(gen, "log_file_mode", 1), "log_file_mode|0600\n");
    ck_assert_str_eq(conf_test_show_one(gen, "backend_port2", 1), "backend_port2|11003\n");
    ck_assert_str_eq(conf_test_show_one(gen, "backend_weight0", 1), "backend_weight0|3\n");
    ck_assert_str_eq(conf_test_show_one(gen, "sr_check_password", 1), "sr_check_password|*****\n");
    ck_assert_str_eq(conf_test_show_one(gen, "wd_authkey", 1), "wd_authkey|*****\n");
    ck_assert_str_eq(conf_test_show_one(gen, "logdir", 1), "logdir|/tmp\n"); /* named as typed */
    ck_assert_str_eq(
        conf_test_show_one(gen, "backend_port", 3), "backend_port0|11002\nbackend_port2|11003\n");
    ck_assert_str_eq(
        conf_test_show_one(gen, "watchdog", 3), "hostname0|p0\npgpool_port0|9999\nwd_port0|9000\n");
    ck_assert_str_eq(conf_test_show_one(gen, "heartbeat", 3),
        "heartbeat_device0|\nheartbeat_hostname0|p0;p1\nheartbeat_port0|9694\n");
    conf_gen_free(&gen);
}
END_TEST

START_TEST(pgpool_show_errors)
{
    struct err err = {0};
    struct conf_test_rows rows;
    struct conf_gen *gen = conf_test_good(conf_test_file);
    struct conf_show show = conf_test_show(gen, &rows);
    ck_assert_int_eq(conf_show_columns("nonsense", &err), -1);
    ck_assert_str_eq(err.msg, "config variable \"nonsense\" not found");
    memset(&err, 0, sizeof(err));
    ck_assert_int_eq(conf_show_one(&show, "backend_port200", &err), -1);
    ck_assert_ptr_nonnull(strstr(err.detail, "between 0 and 127"));
    ck_assert_int_eq(rows.n, 0);
    conf_gen_free(&gen);
}
END_TEST

START_TEST(pgpool_show_all)
{
    int n;
    struct conf_test_rows rows;
    const struct conf_param *t = conf_param_table(&n);
    struct conf_gen *gen = conf_test_good(conf_test_file);
    struct conf_show show = conf_test_show(gen, &rows);
    struct err err = {0};
    ck_assert_int_eq(conf_show_one(&show, "all", &err), 3);
    const char *text = conf_test_rows_text(&rows);
    static const char *const begin =
        "backend_hostname0|/tmp\nbackend_port0|11002\nbackend_weight0|3\n";
    ck_assert_int_eq(strncmp(text, begin, strlen(begin)), 0);
    ck_assert_ptr_null(strstr(text, "geheim"));
    for (int i = 0; i < n; i++) { /* each is there, with its number where it has one */
        char item[128];
        if ((t[i].flags & CONF_NO_SHOW) != 0)
            continue;
        snprintf(
            item, sizeof(item), "\n%s%s|", t[i].name, t[i].scope == CONF_SCOPE_GLOBAL ? "" : "0");
        ck_assert_msg(strstr(text, item) != NULL || strncmp(text, item + 1, strlen(item + 1)) == 0,
            "%s", item + 1);
    }
    /* After the groups the names get shorter. */
    const char *p = strstr(text, "\ntrack_table_mutation_cold_start_duration|");
    ck_assert_ptr_nonnull(p);
    size_t last = 1000;
    for (p++; *p != '\0'; p = strchr(p, '\n') + 1) {
        size_t len = strcspn(p, "|");
        ck_assert_uint_le(len, last);
        last = len;
    }
    ck_assert_ptr_null(strstr(text, "replication_mode|"));
    buf_free(&rows.b);
    conf_gen_free(&gen);
}
END_TEST

/* ---- PGPOOL SET and RESET ---- */

START_TEST(set_in_one_session)
{
    struct err err = {0};
    struct conf_override *ov = NULL;
    struct conf_gen *gen = conf_test_good("log_statement = off\nclient_idle_limit = 7\n");
    ck_assert(!conf_session_of(gen, NULL)->log_statement);
    ck_assert_int_eq(conf_session_of(gen, NULL)->client_idle_limit_ms, 7000);
    ck_assert_int_eq(conf_override_set(&ov, "log_statement", "on", &err), 0);
    ck_assert_int_eq(conf_override_set(&ov, "client_idle_limit", "2min", &err), 0);
    ck_assert_int_eq(conf_override_set(&ov, "log_min_messages", "debug3", &err), 0);
    ck_assert(conf_session_of(gen, ov)->log_statement);
    ck_assert_int_eq(conf_session_of(gen, ov)->client_idle_limit_ms, 120000);
    ck_assert_int_eq(conf_session_of(gen, ov)->log_min_messages, LVL_DEBUG3);
    ck_assert(conf_session_of(gen, ov)->check_unlogged_table); /* untouched */
    ck_assert(!conf_session_of(gen, NULL)->log_statement);     /* other sessions */

    struct conf_ref ref;
    struct buf b = {0};
    ck_assert_int_eq(conf_param_find("client_idle_limit", &ref, &err), 0);
    conf_format_value(gen, ov, &ref, CONF_STYLE_SHOW, &b);
    conf_format_value(gen, NULL, &ref, CONF_STYLE_SHOW, &b);
    buf_put_byte(&b, '\0');
    ck_assert_str_eq(b.data, "2min7s");
    buf_free(&b);

    ck_assert_int_eq(conf_override_reset(&ov, "client_idle_limit", &err), 0);
    ck_assert_int_eq(conf_session_of(gen, ov)->client_idle_limit_ms, 7000);
    ck_assert(conf_session_of(gen, ov)->log_statement);
    ck_assert_int_eq(conf_override_reset(&ov, "ALL", &err), 0);
    ck_assert_ptr_null(ov);
    ck_assert(!conf_session_of(gen, ov)->log_statement);
    ck_assert_int_eq(conf_override_reset(&ov, "log_statement", &err), 0); /* nothing to do */
    ck_assert(!err_is_set(&err));
    conf_gen_free(&gen);
}
END_TEST

START_TEST(set_survives_reload)
{
    struct err err = {0};
    struct conf_report report;
    struct conf_override *ov = NULL;
    struct conf_gen *one = conf_test_good("client_idle_limit = 7\n");
    ck_assert_int_eq(conf_override_set(&ov, "log_statement", "on", &err), 0);
    ck_assert_int_eq(conf_session_of(one, ov)->client_idle_limit_ms, 7000);
    conf_report_init(&report);
    struct conf_gen *two = conf_load_canonical(
        slice_of_str("#! pgpool settings 2 /x\nclient_idle_limit = 9\n"), &report);
    ck_assert_ptr_nonnull(two);
    ck_assert_int_eq(conf_session_of(two, ov)->client_idle_limit_ms, 9000);
    ck_assert(conf_session_of(two, ov)->log_statement);
    conf_override_free(&ov);
    conf_gen_free(&one);
    conf_gen_free(&two);
    conf_report_fini(&report);
}
END_TEST

static void conf_test_set_fails(const char *name, const char *value, const char *text)
{
    struct err err = {0};
    struct conf_override *ov = NULL;
    ck_assert_int_eq(conf_override_set(&ov, name, value, &err), -1);
    ck_assert_str_eq(err.msg, text);
    ck_assert_ptr_null(ov);
    struct err check = {0};
    ck_assert_int_eq(conf_set_check(name, value, CONF_CONTEXT_SESSION, &check), -1);
    ck_assert_str_eq(check.msg, text);
}

START_TEST(set_errors)
{
    struct err err = {0};
    struct conf_override *ov = NULL;
    conf_test_set_fails("nonsense", "1", "unrecognized configuration parameter \"nonsense\"");
    conf_test_set_fails(
        "port", "5000", "invalid Context, value for parameter \"port\" cannot be changed");
    conf_test_set_fails("sr_check_period", "1",
        "invalid Context, value for parameter \"sr_check_period\" cannot be changed");
    conf_test_set_fails("log_statement", "huh",
        "parameter \"log_statement\" requires a Boolean value, not \"huh\"");
    conf_test_set_fails(
        "log_min_messages", "loud", "invalid value for parameter \"log_min_messages\": \"loud\"");
    conf_test_set_fails("client_idle_limit", "-1",
        "-1 is outside the valid range for parameter \"client_idle_limit\" (0 s .. 2147483647 s)");
    ck_assert_int_eq(conf_override_reset(&ov, "port", &err), -1);
    ck_assert_str_eq(err.msg, "invalid Context, value for parameter \"port\" cannot be changed");
    memset(&err, 0, sizeof(err));
    ck_assert_int_eq(conf_override_reset(&ov, "nonsense", &err), -1);
    ck_assert_str_eq(err.msg, "unrecognized configuration parameter \"nonsense\"");
}
END_TEST

START_TEST(set_check_by_context)
{
    struct err err = {0};
    ck_assert_int_eq(conf_set_check("port", "5000", CONF_CONTEXT_STARTUP, &err), 0);
    ck_assert_int_eq(conf_set_check("sr_check_period", "5", CONF_CONTEXT_RELOAD, &err), 0);
    ck_assert_int_eq(conf_set_check("backend_weight1", "5", CONF_CONTEXT_RELOAD, &err), 0);
    ck_assert_int_eq(conf_set_check("log_statement", "on", CONF_CONTEXT_SESSION, &err), 0);
    ck_assert_int_eq(conf_set_check("port", "5000", CONF_CONTEXT_RELOAD, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.msg, "without restarting"));
    memset(&err, 0, sizeof(err));
    ck_assert_int_eq(conf_set_check("backend_weight", "5", CONF_CONTEXT_RELOAD, &err), -1);
    ck_assert_ptr_nonnull(strstr(err.msg, "needs a number"));
}
END_TEST

/* pgpool-II's parameters may be set in a session, and how its writes are committed; no others. */
START_TEST(which_may_be_set)
{
    static const char *const names[] = {"log_statement", "log_per_node_statement",
        "notice_per_node_statement", "log_client_messages", "log_backend_messages",
        "log_error_verbosity", "client_min_messages", "log_min_messages", "client_idle_limit",
        "client_idle_limit_in_recovery", "check_unlogged_table", "allow_sql_comments",
        "replication_commit"};
    int n;
    int count = 0;
    const struct conf_param *t = conf_param_table(&n);
    for (int i = 0; i < n; i++)
        count += t[i].context == CONF_CONTEXT_SESSION;
    ck_assert_int_eq(count, (int)(sizeof(names) / sizeof(names[0])));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct conf_ref ref;
        struct err err = {0};
        ck_assert_int_eq(conf_param_find(names[i], &ref, &err), 0);
        ck_assert_int_eq(ref.param->context, CONF_CONTEXT_SESSION);
    }
}
END_TEST

static Suite *conf_show_suite(void)
{
    Suite *s = suite_create("conf_show");
    TCase *show = tcase_create("show");
    tcase_add_test(show, pool_status);
    tcase_add_test(show, pgpool_show_one);
    tcase_add_test(show, pgpool_show_errors);
    tcase_add_test(show, pgpool_show_all);
    suite_add_tcase(s, show);
    TCase *set = tcase_create("set");
    tcase_add_test(set, set_in_one_session);
    tcase_add_test(set, set_survives_reload);
    tcase_add_test(set, set_errors);
    tcase_add_test(set, set_check_by_context);
    tcase_add_test(set, which_may_be_set);
    suite_add_tcase(s, set);
    return s;
}

int main(void)
{
    return conf_test_run(conf_show_suite());
}
