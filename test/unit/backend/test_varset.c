/* SPDX-License-Identifier: PostgreSQL
 * test_varset.c: sets of settings, and what turns one into another. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "backend/varset.h"

#include "run_suite.h"

static struct varset_store store;

static struct slice s(const char *text)
{
    return slice_of_str(text);
}

static void start(void)
{
    varset_store_init(&store);
}

/* Every set that a test made was given up: nothing but the empty one is left. */
static void end(void)
{
    ck_assert_uint_eq(store.table.count, 1);
    varset_store_fini(&store);
}

static void put(struct varset **v, const char *name, const char *sql)
{
    ck_assert_int_eq(varset_put(v, s(name), s(sql)), 0);
}

static void check_diff(
    const struct varset *from, const struct varset *to, const char *sql, bool safe)
{
    struct buf out = {0};

    ck_assert_int_eq(varset_diff(from, to, &out), safe);
    buf_put_byte(&out, '\0');
    ck_assert_str_eq(out.data, sql);
    buf_free(&out);
}

START_TEST(sets_read_literals_alike)
{
    struct varset *none = varset_empty(&store);
    struct varset *iso = varset_empty(&store);
    struct varset *dmy = varset_empty(&store);
    struct varset *zone = varset_empty(&store);

    put(&iso, "datestyle", "SELECT pg_catalog.set_config('datestyle','ISO',false)");
    put(&iso, "work_mem", "SET work_mem = '1MB'");
    put(&dmy, "datestyle", "SET datestyle = 'iso, dmy'");
    put(&zone, "timezone", "SET TIME ZONE 'UTC'");
    ck_assert_uint_eq(none->reads, iso->reads);
    ck_assert_uint_ne(none->reads, dmy->reads);
    ck_assert_uint_ne(none->reads, zone->reads);
    ck_assert_uint_ne(dmy->reads, zone->reads);
    put(&zone, "application_name", "SET application_name = 'x'");
    varset_drop(&zone, s("timezone"));
    ck_assert_uint_eq(none->reads, zone->reads);
    varset_unref(&none);
    varset_unref(&iso);
    varset_unref(&dmy);
    varset_unref(&zone);
}
END_TEST

static const struct {
    const char *sql;
    bool may;
} may_read[] = {{"timezone", true}, {"work_mem", false}, {"my.own", false}, {"", false},
    {"set_config('TimeZone', 'UTC', true)", true},
    {"set_config('my.own', 'timezone', true)", false}, {"set_config($1, 'UTC', true)", true},
    {"set_config(E'time\\zone', '', true)", true},
    {"set_config('IntervalStyle', $1, true), 1", true}};

START_TEST(what_may_read_otherwise)
{
    ck_assert_int_eq(varset_may_read(s(may_read[_i].sql)), may_read[_i].may);
}
END_TEST

START_TEST(equal_sets_are_one)
{
    struct varset *a = varset_empty(&store);
    struct varset *b = varset_empty(&store);

    ck_assert_ptr_eq(a, b);
    put(&a, "work_mem", "SET work_mem = '1MB'");
    put(&a, "datestyle", "SET datestyle = ISO");
    ck_assert_ptr_ne(a, b);
    put(&b, "datestyle", "SET datestyle = German");
    put(&b, "work_mem", "SET work_mem = '1MB'");
    put(&b, "datestyle", "SET datestyle = ISO");
    ck_assert_ptr_eq(a, b);
    varset_drop(&a, s("work_mem"));
    ck_assert_ptr_null(varset_get(a, s("work_mem")).p);
    ck_assert(slice_eq_str(varset_get(b, s("work_mem")), "SET work_mem = '1MB'"));
    varset_drop(&a, s("datestyle"));
    ck_assert(varset_is_empty(a));
    varset_unref(&a);
    varset_unref(&b);
}
END_TEST

START_TEST(diff_sets_and_resets)
{
    struct varset *none = varset_empty(&store);
    struct varset *a = varset_empty(&store);
    struct varset *b = varset_empty(&store);

    put(&a, "work_mem", "SET work_mem = '1MB'");
    put(&b, "timezone", "SET TIME ZONE 'UTC'");
    check_diff(a, a, "", true);
    check_diff(none, a, "SET work_mem = '1MB';", true);
    check_diff(a, none, "RESET work_mem;", true);
    check_diff(a, b, "RESET work_mem;SET TIME ZONE 'UTC';", true);
    put(&b, "my.tenant", "SET my.tenant = '7'");
    check_diff(none, b, "SET my.tenant = '7';SET TIME ZONE 'UTC';", false);
    check_diff(b, none, "RESET \"my\".\"tenant\";RESET timezone;", false);
    put(&a, "user.id.x", "SET \"user\".\"id\".\"x\" = '7'");
    check_diff(a, none, "RESET \"user\".\"id\".\"x\";RESET work_mem;", false);
    varset_unref(&none);
    varset_unref(&a);
    varset_unref(&b);
}
END_TEST

/* Settings are made with the rights of the login role: identities go first and come last. */
START_TEST(identity_goes_first_and_comes_last)
{
    struct varset *none = varset_empty(&store);
    struct varset *a = varset_empty(&store);

    put(&a, "role", "SET ROLE app");
    put(&a, "session_authorization", "SET SESSION AUTHORIZATION other");
    put(&a, "work_mem", "SET work_mem = '1MB'");
    check_diff(
        none, a, "SET work_mem = '1MB';SET SESSION AUTHORIZATION other;SET ROLE app;", false);
    check_diff(a, none, "RESET ROLE;RESET SESSION AUTHORIZATION;RESET work_mem;", false);
    ck_assert_uint_ne(a->path_hash, none->path_hash);
    varset_reset_all(&a);
    check_diff(none, a, "SET SESSION AUTHORIZATION other;SET ROLE app;", false);
    varset_unref(&none);
    varset_unref(&a);
}
END_TEST

START_TEST(too_much_is_refused)
{
    struct varset *a = varset_empty(&store);
    struct buf big = {0};
    int i;

    for (i = 0; i < VARSET_MAX_BYTES; i++)
        buf_put_byte(&big, 'x');
    ck_assert_int_eq(varset_put(&a, s("work_mem"), buf_slice(&big)), -1);
    ck_assert_int_eq(varset_put(&a, s("work_mem"), slice_of("a\0b", 3)), -1);
    ck_assert(varset_is_empty(a));
    buf_free(&big);
    varset_unref(&a);
}
END_TEST

START_TEST(a_set_travels)
{
    struct varset *a = varset_empty(&store);
    struct varset *b;

    put(&a, "work_mem", "SET work_mem = '1MB'");
    b = varset_of_bytes(&store, a->data, a->len);
    ck_assert_ptr_eq(a, b);
    varset_unref(&a);
    varset_unref(&b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("varset");
    TCase *tc = tcase_create("varset");

    tcase_add_checked_fixture(tc, start, end);
    tcase_add_test(tc, sets_read_literals_alike);
    tcase_add_loop_test(
        tc, what_may_read_otherwise, 0, (int)(sizeof may_read / sizeof may_read[0]));
    tcase_add_test(tc, equal_sets_are_one);
    tcase_add_test(tc, diff_sets_and_resets);
    tcase_add_test(tc, identity_goes_first_and_comes_last);
    tcase_add_test(tc, too_much_is_refused);
    tcase_add_test(tc, a_set_travels);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
