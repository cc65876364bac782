/* SPDX-License-Identifier: PostgreSQL
 * test_paramset.c: sets of names and values. */
#include "config.h"

#include <check.h>
#include <stdlib.h>

#include "backend/paramset.h"

#include "run_suite.h"

static struct slice s(const char *text)
{
    return slice_of_str(text);
}

START_TEST(set_get_replace)
{
    struct paramset ps = {0};

    ck_assert_ptr_null(paramset_get(&ps, s("a")).p);
    ck_assert(paramset_set(&ps, s("TimeZone"), s("UTC")));
    ck_assert(paramset_set(&ps, s("application_name"), s("")));
    ck_assert(!paramset_set(&ps, s("TimeZone"), s("UTC")));
    ck_assert(paramset_set(&ps, s("timezone"), s("Europe/Berlin")));
    ck_assert(slice_eq_str(paramset_get(&ps, s("TIMEZONE")), "Europe/Berlin"));
    ck_assert(slice_eq_str(paramset_get(&ps, s("application_name")), ""));
    ck_assert_ptr_nonnull(paramset_get(&ps, s("application_name")).p);
    paramset_free(&ps);
}
END_TEST

START_TEST(equality_ignores_order)
{
    struct paramset a = {0};
    struct paramset b = {0};

    ck_assert(paramset_eq(&a, &b));
    paramset_set(&a, s("x"), s("1"));
    paramset_set(&a, s("y"), s("2"));
    paramset_set(&b, s("y"), s("2"));
    ck_assert(!paramset_eq(&a, &b));
    paramset_set(&b, s("x"), s("1"));
    ck_assert(paramset_eq(&a, &b));
    paramset_set(&b, s("x"), s("3"));
    ck_assert(!paramset_eq(&a, &b));
    paramset_copy(&b, &a);
    ck_assert(paramset_eq(&a, &b));
    paramset_free(&a);
    paramset_free(&b);
}
END_TEST

START_TEST(walk_sees_each_once)
{
    struct paramset a = {0};
    struct slice n;
    struct slice v;
    uint32_t at = 0;
    int count = 0;

    paramset_set(&a, s("x"), s("1"));
    paramset_set(&a, s("y"), s("2"));
    paramset_set(&a, s("x"), s("9"));
    while (paramset_next(&a, &at, &n, &v))
        count++;
    ck_assert_int_eq(count, 2);
    paramset_free(&a);
}
END_TEST

START_TEST(equal_sets_share_one_block)
{
    struct paramset_store store;
    struct paramset many[3] = {{0}};
    struct paramset empty = {0};
    int i;

    paramset_store_init(&store);
    for (i = 0; i < 3; i++) {
        paramset_set(&many[i], s("x"), s("1"));
        paramset_set(&many[i], s("y"), s(i == 2 ? "3" : "2"));
        paramset_share(&many[i], &store);
        paramset_share(&many[i], &store); /* again: nothing happens */
    }
    paramset_share(&empty, &store);
    ck_assert_ptr_eq(many[0].block, many[1].block);
    ck_assert_ptr_ne(many[0].block, many[2].block);
    ck_assert_uint_eq(store.table.count, 2);
    ck_assert(!paramset_set(&many[0], s("x"), s("1")));
    ck_assert_ptr_eq(many[0].block, many[1].block);
    ck_assert(paramset_set(&many[0], s("x"), s("7"))); /* in front: the rest is moved */
    ck_assert_ptr_ne(many[0].block, many[1].block);
    ck_assert(slice_eq_str(paramset_get(&many[1], s("x")), "1"));
    ck_assert(slice_eq_str(paramset_get(&many[1], s("y")), "2"));
    paramset_set(&many[1], s("z"), s("0")); /* the last one that shared it */
    ck_assert_uint_eq(store.table.count, 1);
    paramset_copy(&many[1], &many[2]);
    ck_assert_ptr_eq(many[1].block, many[2].block);
    paramset_drop(&many[2], s("x"));
    ck_assert(slice_eq_str(paramset_get(&many[1], s("x")), "1"));
    ck_assert_ptr_null(paramset_get(&many[2], s("x")).p);
    ck_assert_uint_eq(store.table.count, 1); /* the copy has what the other one had */
    for (i = 0; i < 3; i++) {
        paramset_share(&many[i], &store);
        paramset_free(&many[i]);
    }
    paramset_store_fini(&store);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("paramset");
    TCase *tc = tcase_create("paramset");

    tcase_add_test(tc, set_get_replace);
    tcase_add_test(tc, equality_ignores_order);
    tcase_add_test(tc, walk_sees_each_once);
    tcase_add_test(tc, equal_sets_share_one_block);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
