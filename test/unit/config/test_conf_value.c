/* SPDX-License-Identifier: PostgreSQL
 * test_conf_value.c: values of every type, and the property that the canonical text of any settings
 * loads to equal settings. */
#include "config.h"

#include "conf_test.h"

#include <inttypes.h>

/* ---- one value ---- */

static int conf_test_check(const char *name, const char *value, struct err *err)
{
    memset(err, 0, sizeof(*err));
    return conf_set_check(name, value, CONF_CONTEXT_STARTUP, err);
}

static void conf_test_accepts(const char *name, const char *value)
{
    struct err err;
    ck_assert_msg(conf_test_check(name, value, &err) == 0, "%s = '%s': %s", name, value, err.msg);
}

static void conf_test_refuses(const char *name, const char *value, const char *part)
{
    struct err err;
    ck_assert_msg(conf_test_check(name, value, &err) == -1, "%s = '%s' accepted", name, value);
    ck_assert_msg(strstr(err.msg, part) != NULL || strstr(err.hint, part) != NULL,
        "%s = '%s': wanted %s, got %s / %s", name, value, part, err.msg, err.hint);
    ck_assert_str_ne(err.sqlstate, "");
}

/* The value of `name` after loading one line. */
static const struct conf *conf_test_one(const char *line, struct conf_gen **gen)
{
    *gen = conf_test_good(line);
    return conf_of(*gen);
}

START_TEST(booleans)
{
    static const char *const yes[] = {"on", "ON", "true", "t", "tr", "yes", "y", "1", "True"};
    static const char *const no[] = {"off", "of", "Off", "false", "f", "no", "n", "0", "FALS"};
    static const char *const bad[] = {"", "o", "2", "onn", "maybe", "10", "yess", " on"};
    struct conf_gen *gen;
    char line[64];
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        snprintf(line, sizeof(line), "log_connections = '%s'\n", yes[i]);
        ck_assert(conf_test_one(line, &gen)->log_connections);
        conf_gen_free(&gen);
    }
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        snprintf(line, sizeof(line), "load_balance_mode = %s\n", no[i]);
        ck_assert(!conf_test_one(line, &gen)->load_balance_mode);
        conf_gen_free(&gen);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        conf_test_refuses("log_connections", bad[i], "Boolean");
}
END_TEST

START_TEST(whole_numbers)
{
    struct conf_gen *gen;
    ck_assert_int_eq(conf_test_one("port = 0x1F90\n", &gen)->port, 8080);
    conf_gen_free(&gen);
    ck_assert_int_eq(
        conf_test_one("unix_socket_permissions = 0700\n", &gen)->unix_socket_permissions, 0700);
    conf_gen_free(&gen);
    conf_test_accepts("port", "1024");
    conf_test_accepts("port", "65535");
    conf_test_refuses("port", "1023", "outside the valid range");
    conf_test_refuses("port", "65536", "(1024 .. 65535)");
    conf_test_refuses("port", "-1", "outside the valid range");
    conf_test_refuses("port", "", "whole number");
    conf_test_refuses("port", "5432s", "without a unit");
    conf_test_refuses("port", "5432.0", "whole number");
    conf_test_refuses("port", "99999999999999999999", "outside the valid range");
    conf_test_refuses("unix_socket_permissions", "0800", "leading zero");
    conf_test_refuses("unix_socket_permissions", "777", "leading zero");
    conf_test_refuses("unix_socket_permissions", "777", "(0000 .. 0777)");
    conf_test_accepts("backend_port0", "0"); /* no such server */
    conf_test_refuses("backend_port0", "1", "1024");
}
END_TEST

static int64_t conf_test_time(const char *name, const char *value)
{
    struct conf_ref ref;
    struct err err = {0};
    struct buf b = {0};
    char line[128];
    snprintf(line, sizeof(line), "%s = '%s'\n", name, value);
    struct conf_gen *gen = conf_test_good(line);
    ck_assert_int_eq(conf_param_find(name, &ref, &err), 0);
    conf_format_value(gen, NULL, &ref, CONF_STYLE_CANONICAL, &b);
    buf_put_byte(&b, '\0');
    int64_t v = strtoll(b.data, NULL, 10);
    buf_free(&b);
    conf_gen_free(&gen);
    return v;
}

START_TEST(times)
{
    ck_assert_int_eq(conf_test_time("authentication_timeout", "90"), 90000);
    ck_assert_int_eq(conf_test_time("authentication_timeout", "1.5"), 1500);
    ck_assert_int_eq(conf_test_time("authentication_timeout", "500ms"), 500);
    ck_assert_int_eq(conf_test_time("authentication_timeout", "2min"), 120000);
    ck_assert_int_eq(conf_test_time("authentication_timeout", "2 min"), 120000);
    ck_assert_int_eq(conf_test_time("authentication_timeout", "1.5h"), 5400000);
    ck_assert_int_eq(conf_test_time("authentication_timeout", "1d"), 86400000);
    ck_assert_int_eq(conf_test_time("authentication_timeout", "5000us"), 5);
    ck_assert_int_eq(conf_test_time("authentication_timeout", "0"), 0);
    ck_assert_int_eq(conf_test_time("connect_timeout", "90"), 90);
    ck_assert_int_eq(conf_test_time("log_rotation_age", "2"), 120000);
    ck_assert_int_eq(conf_test_time("log_rotation_age", "2d"), 172800000);
    conf_test_refuses("authentication_timeout", "1m", "\"min\"");
    conf_test_refuses("authentication_timeout", "1 S", "Valid units");
    conf_test_refuses("authentication_timeout", "-1", "outside the valid range");
    conf_test_refuses("authentication_timeout", "x", "invalid value");
    conf_test_refuses("authentication_timeout", "inf", "invalid value");
    conf_test_refuses("authentication_timeout", "nan", "invalid value");
    conf_test_refuses("authentication_timeout", "1e400", "invalid value");
    conf_test_refuses("authentication_timeout", "9223372036854775807d", "outside the valid range");
    conf_test_refuses("authentication_timeout", "1e30", "outside the valid range");
    conf_test_refuses("authentication_timeout", "100us", "one millisecond");
    conf_test_accepts("authentication_timeout", "2147483647");
    conf_test_refuses("authentication_timeout", "2147483648", "2147483647 s");
    conf_test_accepts("client_idle_limit_in_recovery", "-1");
    conf_test_refuses("client_idle_limit_in_recovery", "-2", "outside the valid range");
    conf_test_refuses("replication_delay_source_timeout", "0", "(1 s .. 3600 s)");
    conf_test_accepts("replication_delay_source_timeout", "1h");
}
END_TEST

START_TEST(sizes)
{
    ck_assert_int_eq(conf_test_time("delay_threshold", "10"), 10);
    ck_assert_int_eq(conf_test_time("delay_threshold", "10MB"), 10485760);
    ck_assert_int_eq(conf_test_time("delay_threshold", "1.5kB"), 1536);
    ck_assert_int_eq(conf_test_time("delay_threshold", "1TB"), INT64_C(1099511627776));
    ck_assert_int_eq(conf_test_time("delay_threshold", "9223372036854775807"), INT64_MAX);
    ck_assert_int_eq(conf_test_time("log_rotation_size", "10"), 10240);
    ck_assert_int_eq(conf_test_time("log_rotation_size", "1 GB"), 1073741824);
    conf_test_refuses("delay_threshold", "10KB", "\"kB\"");
    conf_test_refuses("delay_threshold", "10mb", "\"MB\"");
    conf_test_refuses("delay_threshold", "9223372036854775808", "outside the valid range");
    conf_test_refuses("log_rotation_size", "3GB", "2097151 kB");
    conf_test_refuses("memqcache_cache_block_size", "511", "512 B");
}
END_TEST

START_TEST(reals)
{
    struct conf_gen *gen;
    ck_assert_double_eq(
        conf_test_one("backend_weight0 = 0.25\n", &gen)->nodes[0].backend_weight, 0.25);
    conf_gen_free(&gen);
    ck_assert_double_eq(
        conf_test_one("backend_weight0 = 1e3\n", &gen)->nodes[0].backend_weight, 1000);
    conf_gen_free(&gen);
    conf_test_refuses("backend_weight0", "-0.5", "outside the valid range");
    conf_test_refuses("backend_weight0", "nan", "invalid value");
    conf_test_refuses("backend_weight0", "1x", "invalid value");
    conf_test_refuses("backend_weight0", "", "invalid value");
    conf_test_refuses("track_table_mutation_ttl_factor", "0.9", "(1 .. 100)");
}
END_TEST

START_TEST(words)
{
    struct conf_gen *gen;
    ck_assert_int_eq(
        conf_test_one("pool_mode = Transaction\n", &gen)->pool_mode, CONF_POOL_TRANSACTION);
    conf_gen_free(&gen);
    ck_assert_int_eq(
        conf_test_one("log_min_messages = debug\n", &gen)->log_min_messages, LVL_DEBUG2);
    conf_gen_free(&gen);
    ck_assert_int_eq(
        conf_test_one("check_temp_table = off\n", &gen)->check_temp_table, CONF_TEMP_NONE);
    conf_gen_free(&gen);
    ck_assert_int_eq(
        conf_test_one("ssl_min_protocol_version = ''\n", &gen)->ssl_min_protocol_version,
        CONF_TLS_ANY);
    conf_gen_free(&gen);
    conf_test_refuses("pool_mode", "trans", "session, transaction, statement");
    conf_test_refuses("pool_mode", "", "session, transaction, statement");
    conf_test_refuses("log_min_messages", "chatty", "debug5");
    ck_assert_uint_eq(conf_test_one("log_destination = 'stderr, syslog'\n", &gen)->log_destination,
        CONF_LOG_TO_STDERR | CONF_LOG_TO_SYSLOG);
    conf_gen_free(&gen);
    conf_test_refuses("log_destination", "stderr,file", "stderr, syslog");
    conf_test_refuses("log_destination", "stderr,,syslog", "invalid value");
}
END_TEST

/* One of them stands in its sample. */
START_TEST(words_of_old_releases)
{
    struct conf_gen *gen = conf_test_good("relcache_query_target = master\nbackend_port0 = 5432\n"
                                          "backend_flag0 = 'ALWAYS_MASTER|DISALLOW_TO_FAILOVER'\n");
    ck_assert_int_eq(conf_of(gen)->relcache_query_target, CONF_CATALOG_PRIMARY);
    ck_assert_uint_eq(conf_of(gen)->nodes[0].backend_flag,
        CONF_BACKEND_ALWAYS_PRIMARY | CONF_BACKEND_DISALLOW_FAILOVER);
    conf_gen_free(&gen);
}
END_TEST

START_TEST(lists)
{
    struct conf_gen *gen;
    const struct conf *c = conf_test_one("listen_addresses = ' a , b,,c '\n"
                                         "reset_query_list = 'ABORT; DISCARD ALL;'\n"
                                         "primary_routing_query_pattern_list = 'a\\;b;c\\d\\\\;e'\n"
                                         "trusted_servers = ' , '\n",
        &gen);
    ck_assert_int_eq(c->listen_addresses.n, 3);
    ck_assert_str_eq(c->listen_addresses.item[0], "a");
    ck_assert_str_eq(c->listen_addresses.item[1], "b");
    ck_assert_str_eq(c->listen_addresses.item[2], "c");
    ck_assert_int_eq(c->reset_query_list.n, 2);
    ck_assert_str_eq(c->reset_query_list.item[1], "DISCARD ALL");
    ck_assert_int_eq(c->primary_routing_query_pattern_list.n, 3);
    ck_assert_str_eq(c->primary_routing_query_pattern_list.item[0], "a;b");
    ck_assert_str_eq(c->primary_routing_query_pattern_list.item[1], "c\\d\\\\");
    ck_assert_str_eq(c->primary_routing_query_pattern_list.item[2], "e");
    ck_assert_int_eq(c->trusted_servers.n, 0);
    conf_gen_free(&gen);
}
END_TEST

/* ---- properties over the whole table ---- */

/* Random numbers, equal at each run. */
static uint64_t conf_test_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* A valid text for `p`, from its type and range. */
static void conf_test_any(const struct conf_param *p, uint64_t *seed, char *out, size_t size)
{
    static const char *const texts[] = {"", "x", "a b", "it''s", "\\'", "a\\\\", "%m: %a ", "#no",
        "one;two", "one, two", "a\\;b;c", "\xC3\xA9", "md5''\\'x", " lead", "tail ", "''''"};
    static const char *const real[] = {"1", "1.5", "99.25", "3.0000001", "1e1"};
    static const char *const part[] = {"1", "0.5", "0.25", "0.0000001", "1e-1"};
    uint64_t r = conf_test_random(seed);
    int64_t max = p->max > 100000 ? 100000 : p->max;
    const struct conf_enum_value *v = p->values;
    int n = 0;
    switch (p->type) {
    case CONF_BOOL:
        snprintf(out, size, "%s", r % 2 == 0 ? "on" : "off");
        return;
    case CONF_INT:
    case CONF_TIME:
    case CONF_SIZE:
        snprintf(out, size, "%" PRId64, p->min + (int64_t)(r % (uint64_t)(max - p->min + 1)));
        return;
    case CONF_REAL:
        snprintf(out, size, "%s", (p->real_max > 1.0 ? real : part)[r % 5]);
        return;
    case CONF_STRING:
    case CONF_LIST:
        snprintf(out, size, "%s", texts[r % (sizeof(texts) / sizeof(texts[0]))]);
        return;
    case CONF_ENUM:
    case CONF_FLAGS:
        while (v[n].text != NULL)
            n++;
        snprintf(out, size, "%s", v[r % (uint64_t)n].text);
        return;
    }
}

/* Parameters that rules bind to others, or that ask for what is not built, get no random value. */
static bool conf_test_is_bound(const char *name)
{
    static const char *const names[] = {"reserved_connections", "max_clients", "pcp_port", "port",
        "http_port", "memqcache_maxcache", "memqcache_cache_block_size", "memqcache_total_size",
        "process_management_mode", "ssl", "ssl_max_protocol_version", "ssl_min_protocol_version",
        "write_function_list", "auth_query", "recovery_1st_stage_command", "log_filename",
        "recovery_2nd_stage_command", "listen_addresses", "backend_ssl_cert", "backend_ssl_key",
        "backend_ssl_negotiation", "backend_ssl_crl_file", "backend_ssl_mode",
        "backend_ssl_ca_cert", "dml_adaptive_object_relationship_list",
        "app_name_redirect_preference_list", "database_redirect_preference_list",
        "user_redirect_preference_list", "memqcache_expire_list", "memqcache_memcached_host",
        "use_watchdog", "replication_mode", "backend_clustering_mode"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void conf_test_any_file(uint64_t *seed, struct buf *out)
{
    int n;
    const struct conf_param *t = conf_param_table(&n);
    for (int i = 0; i < n; i++) {
        char value[64];
        if (conf_test_is_bound(t[i].name) || conf_test_random(seed) % 3 == 0)
            continue;
        for (int k = 0; k < (t[i].scope == CONF_SCOPE_GLOBAL ? 1 : 3); k++) {
            conf_test_any(&t[i], seed, value, sizeof(value));
            buf_printf(out, t[i].scope == CONF_SCOPE_GLOBAL ? "%s%.0d = '%s'\n" : "%s%d = '%s'\n",
                t[i].name, k, value);
        }
    }
    buf_put_byte(out, '\0');
}

START_TEST(canonical_text_gives_equal_settings)
{
    uint64_t seed = 42;
    for (int round = 0; round < 200; round++) {
        struct buf file = {0};
        struct buf text = {0};
        struct buf again = {0};
        struct conf_report report;
        conf_test_any_file(&seed, &file);
        struct conf_gen *gen = conf_test_good(file.data);
        conf_dump_canonical(gen, &text);
        conf_report_init(&report);
        struct conf_gen *copy = conf_load_canonical(buf_slice(&text), &report);
        ck_assert_msg(copy != NULL, "%s", conf_test_findings(&report));
        ck_assert(conf_equal(gen, copy));
        ck_assert_str_eq(conf_file(copy), conf_file(gen));
        ck_assert_uint_eq(conf_number(copy), conf_number(gen));
        conf_dump_canonical(copy, &again);
        ck_assert(slice_eq(buf_slice(&text), buf_slice(&again)));
        ck_assert_int_eq(memcmp(conf_session_of(gen, NULL), conf_session_of(copy, NULL),
                             sizeof(struct conf_session)),
            0);
        conf_gen_free(&gen);
        conf_gen_free(&copy);
        conf_report_fini(&report);
        buf_free(&file);
        buf_free(&text);
        buf_free(&again);
    }
}
END_TEST

/* Whatever differs in one parameter makes settings unequal, so that the test above can fail. */
START_TEST(every_parameter_counts_in_equality)
{
    int n;
    const struct conf_param *t = conf_param_table(&n);
    struct conf_gen *plain = conf_test_good("backend_port0 = 5432\nwd_port0 = 9000\n"
                                            "heartbeat_port0 = 9694\n");
    for (int i = 0; i < n; i++) {
        uint64_t seed = 7;
        bool differs = false;
        for (int tries = 0; tries < 40 && !differs; tries++) {
            char value[64];
            char file[512];
            struct conf_report report;
            conf_test_any(&t[i], &seed, value, sizeof(value));
            snprintf(file, sizeof(file),
                "backend_port0 = 5432\nwd_port0 = 9000\nheartbeat_port0 = 9694\n%s%s = '%s'\n",
                t[i].name, t[i].scope == CONF_SCOPE_GLOBAL ? "" : "0", value);
            struct conf_gen *gen = conf_test_load(file, &report);
            differs = gen == NULL ? conf_test_is_bound(t[i].name) : !conf_equal(plain, gen);
            conf_gen_free(&gen);
            conf_report_fini(&report);
        }
        ck_assert_msg(differs, "%s", t[i].name);
    }
    conf_gen_free(&plain);
}
END_TEST

/* What SHOW prints may be written into a file again. */
START_TEST(shown_values_can_be_set)
{
    int n;
    uint64_t seed = 3;
    const struct conf_param *t = conf_param_table(&n);
    for (int i = 0; i < n; i++) {
        struct conf_ref ref = {&t[i], t[i].scope == CONF_SCOPE_GLOBAL ? -1 : 0};
        if (conf_test_is_bound(t[i].name) || (t[i].flags & CONF_SECRET) != 0 ||
            t[i].type == CONF_STRING || t[i].type == CONF_LIST)
            continue;
        for (int tries = 0; tries < 20; tries++) {
            char value[64];
            char file[256];
            struct buf shown = {0};
            conf_test_any(&t[i], &seed, value, sizeof(value));
            snprintf(
                file, sizeof(file), "%s%s = '%s'\n", t[i].name, ref.index < 0 ? "" : "0", value);
            struct conf_gen *gen = conf_test_good(file);
            conf_format_value(gen, NULL, &ref, CONF_STYLE_SHOW, &shown);
            buf_put_byte(&shown, '\0');
            snprintf(file, sizeof(file), "%s%s = '%s'\n", t[i].name, ref.index < 0 ? "" : "0",
                shown.data);
            struct conf_gen *copy = conf_test_good(file);
            ck_assert_msg(conf_equal(gen, copy), "%s", file);
            conf_gen_free(&gen);
            conf_gen_free(&copy);
            buf_free(&shown);
        }
    }
}
END_TEST

START_TEST(canonical_text_is_guarded)
{
    struct conf_report report;
    conf_report_init(&report);
    ck_assert_ptr_null(conf_load_canonical(slice_of_str("port = 5000\n"), &report));
    ck_assert_ptr_null(conf_load_canonical(slice_of_str(""), &report));
    ck_assert_ptr_null(conf_load_canonical(slice_of_str("#! pgpool settings 1 /x"), &report));
    ck_assert_int_eq(report.nerrors, 3);
    conf_report_fini(&report);
}
END_TEST

static void collect_change(void *ctx, const char *name, const char *value)
{
    buf_printf(ctx, "%s=%s\n", name, value);
}

START_TEST(changes_are_told)
{
    struct conf_gen *from = conf_test_good("backend_port0 = 5432\nrecovery_password = 'a'\n");
    struct conf_gen *to = conf_test_good("backend_port0 = 5432\nrecovery_password = 'b'\n"
                                         "backend_port1 = 5433\nserver_lifetime = 1min\n"
                                         "health_check_max_retries = 7\n");
    struct buf told = {0};
    conf_each_change(from, from, collect_change, &told);
    ck_assert_uint_eq(told.len, 0);
    conf_each_change(from, to, collect_change, &told);
    buf_put_byte(&told, '\0');
    ck_assert_str_eq(told.data,
        "backend_port1=5433\nserver_lifetime=1min\nhealth_check_max_retries=7\n"
        "health_check_max_retries0=7\nhealth_check_max_retries1=7\n"
        "recovery_password=*****\n");
    buf_free(&told);
    conf_gen_free(&from);
    conf_gen_free(&to);
}
END_TEST

/* ---- several values for one name ---- */

START_TEST(last_one_wins)
{
    struct conf_gen *gen = conf_test_good("port = 2000\nport = 3000\n");
    ck_assert_int_eq(conf_of(gen)->port, 3000);
    conf_gen_free(&gen);
    conf_test_warns("port = 2000\n\nPort = 3000\n", CONF_WARNING, 1, "again in line 3");
    conf_test_warns("port = 2000\nport = 2000\nport = 2000\n", CONF_WARNING, 2, "again in line 3");
    conf_test_warns("backend_weight0 = 1\nbackend_weight0 = 2\n" CONF_TEST_SERVER, CONF_WARNING, 1,
        "\"backend_weight0\" is set here and again in line 2");
    conf_test_bad("port = 3000\nport = nonsense\n", 2, "nonsense");
    conf_test_bad("port = 'abc'\nport = 9999\n", 1, "port"); /* but it has to be one */
}
END_TEST

static Suite *conf_value_suite(void)
{
    Suite *s = suite_create("conf_value");
    TCase *types = tcase_create("types");
    tcase_add_test(types, booleans);
    tcase_add_test(types, whole_numbers);
    tcase_add_test(types, times);
    tcase_add_test(types, sizes);
    tcase_add_test(types, reals);
    tcase_add_test(types, words);
    tcase_add_test(types, words_of_old_releases);
    tcase_add_test(types, lists);
    suite_add_tcase(s, types);
    tcase_add_test(types, last_one_wins);
    TCase *properties = tcase_create("properties");
    tcase_set_timeout(properties, 120);
    tcase_add_test(properties, canonical_text_gives_equal_settings);
    tcase_add_test(properties, every_parameter_counts_in_equality);
    tcase_add_test(properties, shown_values_can_be_set);
    tcase_add_test(properties, canonical_text_is_guarded);
    tcase_add_test(properties, changes_are_told);
    suite_add_tcase(s, properties);
    return s;
}

int main(void)
{
    return conf_test_run(conf_value_suite());
}
