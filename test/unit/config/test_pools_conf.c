/* SPDX-License-Identifier: PostgreSQL
 * test_pools_conf.c: pools.conf: what holds for which database and user, what is refused, what a
 * reload and another process make of it. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/conf.h"
#include "config/pools_conf.h"

#include "run_suite.h"

static char folder[64];
static struct conf_report report;

static void put_file(const char *name, const char *text)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    fclose(f);
}

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/pools-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    put_file("pgpool.conf", "backend_hostname0 = 'h'\nbackend_port0 = 5432\n"
                            "default_pool_size = 7\nquery_timeout = 3s\n");
}

static void teardown(void)
{
    char path[128];

    snprintf(path, sizeof path, "%s/pgpool.conf", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/pools.conf", folder);
    unlink(path);
    rmdir(folder);
    conf_report_fini(&report);
}

static struct conf_gen *load(const char *pools)
{
    char path[128];

    if (pools != NULL)
        put_file("pools.conf", pools);
    snprintf(path, sizeof path, "%s/pgpool.conf", folder);
    conf_report_fini(&report);
    conf_report_init(&report);
    return conf_load(path, NULL, &report);
}

static const struct pool_settings *find(const struct conf_gen *gen, const char *d, const char *u)
{
    return pools_conf_find(conf_of(gen), slice_of_str(d), slice_of_str(u));
}

START_TEST(without_a_file_pgpool_conf_holds)
{
    struct conf_gen *gen = load(NULL);
    const struct pool_settings *s = find(gen, "any", "body");

    ck_assert_int_eq(s->pool_size, 7);
    ck_assert_int_eq(s->query_timeout_ms, 3000);
    ck_assert_int_eq(s->pool_mode, CONF_POOL_SESSION);
    ck_assert_int_eq(s->target, POOLS_NO_TARGET);
    ck_assert_ptr_null(s->dbname);
    ck_assert_ptr_eq(s, find(gen, "other", "user"));
    conf_gen_free(&gen);
}
END_TEST

START_TEST(user_wins_over_database_and_the_pair_over_both)
{
    struct conf_gen *gen = load("[database shop]\npool_size = 50\npool_mode = transaction\n"
                                "query_timeout = 9s\n"
                                "[user bob] # comment\npool_size = 5\n"
                                "[database shop user bob]\nquery_timeout = 1min\n"
                                "[database \"a b\"]\nmax_db_connections = 3\n"
                                "[user *]\nreserve_pool_size = 2\n");
    ck_assert_ptr_nonnull(gen);
    ck_assert_int_eq(find(gen, "shop", "al")->pool_size, 50);
    ck_assert_int_eq(find(gen, "shop", "al")->query_timeout_ms, 9000);
    ck_assert_int_eq(find(gen, "shop", "al")->reserve_pool_size, 2);
    ck_assert_int_eq(find(gen, "shop", "bob")->pool_size, 5);
    ck_assert_int_eq(find(gen, "shop", "bob")->pool_mode, CONF_POOL_TRANSACTION);
    ck_assert_int_eq(find(gen, "shop", "bob")->query_timeout_ms, 60000);
    ck_assert_int_eq(find(gen, "shop", "bob")->reserve_pool_size, 0);
    ck_assert_int_eq(find(gen, "x", "bob")->query_timeout_ms, 3000);
    ck_assert_int_eq(find(gen, "a b", "al")->max_db_connections, 3);
    ck_assert_int_eq(find(gen, "a", "al")->max_db_connections, 0);
    conf_gen_free(&gen);
}
END_TEST

START_TEST(automatic_size_goes_by_the_mode)
{
    struct conf_gen *gen;

    put_file("pgpool.conf", "backend_hostname0 = 'h'\nbackend_port0 = 5432\n");
    gen = load("[database t]\npool_mode = transaction\n[database s]\npool_mode = statement\n");
    ck_assert_int_eq(find(gen, "t", "u")->pool_size, POOLS_AUTO_SIZE);
    ck_assert_int_eq(find(gen, "s", "u")->pool_size, POOLS_AUTO_SIZE);
    ck_assert_int_eq(find(gen, "x", "u")->pool_size, 0);
    conf_gen_free(&gen);
}
END_TEST

START_TEST(databases_live_on_other_servers)
{
    struct conf_gen *gen = load("[database a]\nhost = db1\nport = 6000\ndbname = real\nuser = own\n"
                                "[database b]\nhost = 'db1'\nport = 6000\n"
                                "[database *]\nhost = db2\n"
                                "auth_query = 'select 1'\n");
    const struct conf *conf = conf_of(gen);
    const char *host;
    int64_t limit_ms;
    int port;

    ck_assert_int_ge(find(gen, "a", "u")->target, POOLS_FIRST_TARGET);
    ck_assert_int_eq(find(gen, "a", "u")->target, find(gen, "b", "u")->target);
    ck_assert_int_ne(find(gen, "a", "u")->target, find(gen, "zzz", "u")->target);
    ck_assert_str_eq(find(gen, "a", "u")->dbname, "real");
    ck_assert_str_eq(find(gen, "a", "u")->user, "own");
    ck_assert_str_eq(find(gen, "zzz", "u")->auth_query, "select 1");
    ck_assert(pools_conf_address(conf, find(gen, "zzz", "u")->target, &host, &port, &limit_ms));
    ck_assert_str_eq(host, "db2");
    ck_assert_int_eq(port, 5432);
    ck_assert(pools_conf_address(conf, 0, &host, &port, &limit_ms));
    ck_assert_str_eq(host, "h");
    ck_assert(!pools_conf_address(conf, 1, &host, &port, &limit_ms));
    ck_assert(!pools_conf_address(conf, POOLS_FIRST_TARGET + 2, &host, &port, &limit_ms));
    conf_gen_free(&gen);
}
END_TEST

/* A server keeps its number, whatever the file says in the meantime, also in another process. */
START_TEST(numbers_of_servers_outlive_a_reload)
{
    struct conf_gen *gen = load("[database a]\nhost = one\n[database b]\nhost = two\n");
    struct conf_gen *next;
    struct conf_gen *copy;
    struct buf text = {0};
    int b = find(gen, "b", "u")->target;

    put_file("pools.conf", "[database c]\nhost = three\n[database b]\nhost = two\n");
    next = conf_reload(gen, conf_file(gen), &report);
    ck_assert_ptr_nonnull(next);
    ck_assert(!conf_equal(gen, next));
    ck_assert(!conf_equal_pools(gen, next));
    ck_assert_int_eq(find(next, "b", "u")->target, b);
    ck_assert_int_eq(find(next, "c", "u")->target, POOLS_FIRST_TARGET + 2);
    conf_dump_canonical(next, &text);
    copy = conf_load_canonical(buf_slice(&text), &report);
    ck_assert_ptr_nonnull(copy);
    ck_assert(conf_equal(next, copy));
    ck_assert_int_eq(find(copy, "b", "u")->target, b);
    ck_assert_int_eq(find(copy, "c", "u")->target, POOLS_FIRST_TARGET + 2);
    ck_assert_str_eq(pools_conf_target(conf_of(copy), POOLS_FIRST_TARGET + 2)->host, "three");
    buf_free(&text);
    conf_gen_free(&copy);
    conf_gen_free(&next);
    conf_gen_free(&gen);
}
END_TEST

static const struct {
    const char *text;
    int line;
    const char *says;
} bad_rows[] = {
    {"pool_size = 3\n", 1, "stands before the first section"},
    {"[database]\n", 1, "not the head of a section"},
    {"[table x]\n", 1, "not the head of a section"},
    {"[database x\n", 1, "not the head of a section"},
    {"[database x] y\n", 1, "not the head of a section"},
    {"[database \"x]\n", 1, "not the head of a section"},
    {"[database x]\n[user y]\n[database x]\n", 3, "exists already, at line 1"},
    {"[database * user u]\n", 1, "cannot stand"},
    {"[database x]\n\npool_sise = 3\n", 3, "unknown name \"pool_sise\""},
    {"[database x]\npool_size = many\n", 2, "pool_size"},
    {"[database x]\npool_mode = often\n", 2, "pool_mode"},
    {"[database x]\nmax_user_connections = 3\n", 2, "does not belong here"},
    {"[user x]\nmax_db_connections = 3\n", 2, "does not belong here"},
    {"[user x]\nhost = y\n", 2, "belongs to a database"},
    {"[database x]\nhost = y\nport = 70000\n", 3, "is not a port"},
    {"[database x]\nport = 5432\n", 2, "a port without a host"},
    {"[database x]\nhost = '10.0.0.1,10.0.0.2'\n", 2, "names several hosts"},
    {"[database x]\ndbname = ''\n", 2, "is empty"},
    {"[database 0123456789012345678901234567890123456789012345678901234567890123]\n", 1,
        "too long"},
};

START_TEST(what_is_wrong_is_told_with_its_line)
{
    struct conf_gen *gen = load(bad_rows[_i].text);
    int i;

    ck_assert_ptr_null(gen);
    for (i = 0; i < report.n; i++)
        if (report.issue[i].severity == CONF_ERROR && report.issue[i].line == bad_rows[_i].line &&
            strstr(report.issue[i].file, "pools.conf") != NULL &&
            strstr(report.issue[i].text, bad_rows[_i].says) != NULL)
            return;
    ck_abort_msg("not told: %s", bad_rows[_i].says);
}
END_TEST

START_TEST(a_named_file_must_exist)
{
    struct conf_gen *gen;

    put_file("pgpool.conf", "backend_hostname0 = 'h'\nbackend_port0 = 5432\npools_file = 'none'\n");
    gen = load(NULL);
    ck_assert_ptr_null(gen);
    ck_assert_int_eq(report.nerrors, 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pools_conf");
    TCase *tc = tcase_create("pools_conf");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, without_a_file_pgpool_conf_holds);
    tcase_add_test(tc, user_wins_over_database_and_the_pair_over_both);
    tcase_add_test(tc, automatic_size_goes_by_the_mode);
    tcase_add_test(tc, databases_live_on_other_servers);
    tcase_add_test(tc, numbers_of_servers_outlive_a_reload);
    tcase_add_loop_test(
        tc, what_is_wrong_is_told_with_its_line, 0, (int)(sizeof bad_rows / sizeof bad_rows[0]));
    tcase_add_test(tc, a_named_file_must_exist);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
