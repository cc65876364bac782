/* SPDX-License-Identifier: PostgreSQL
 * test_prep.c: prepared statements by content, and what a link knows of them. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backend/prep.h"

static struct slice body(const char *sql)
{
    static char bytes[256];
    size_t n = strlen(sql);

    memcpy(bytes, sql, n);
    memset(bytes + n, 0, 3); /* NUL, no parameter types */
    return slice_of(bytes, n + 3);
}

START_TEST(content_makes_the_name)
{
    struct prep_store store;
    struct prep *a;
    struct prep *b;
    struct prep *c;
    bool is_new;

    prep_store_init(&store);
    a = prep_get(&store, body("select 1"), 0, &is_new);
    ck_assert(is_new);
    b = prep_get(&store, body("select 1"), 0, &is_new);
    ck_assert(!is_new);
    ck_assert_ptr_eq(a, b);
    c = prep_get(&store, body("select 1"), 7, &is_new); /* names mean something else */
    ck_assert(is_new);
    prep_need_name(a);
    prep_need_name(c);
    ck_assert_uint_eq(strlen(a->name), PREP_NAME_BYTES);
    ck_assert_str_ne(a->name, c->name);
    ck_assert(slice_eq_str(prep_sql(a), "select 1"));
    prep_unref(&a);
    prep_unref(&b);
    prep_unref(&c);
    ck_assert_uint_eq(store.table.count, 0);
    ck_assert_uint_eq(store.bytes, 0);
    prep_store_fini(&store);
}
END_TEST

START_TEST(least_recently_used_goes)
{
    struct prepset set = {0};
    char name[PREP_NAME_BYTES + 1];
    uint8_t id[3][PREP_ID_BYTES] = {{1}, {2}, {3}};
    int i;

    for (i = 0; i < 3; i++)
        prepset_add(&set, id[i]);
    ck_assert_uint_eq(prepset_count(&set), 3);
    ck_assert(prepset_touch(&set, id[0]));
    ck_assert(!prepset_evict(&set, 3, name));
    ck_assert(prepset_evict(&set, 2, name));
    ck_assert(memcmp(name, "pgp_02", 6) == 0);
    ck_assert(!prepset_touch(&set, id[1]));
    ck_assert(prepset_touch(&set, id[0]));
    prepset_remove(&set, id[0]);
    ck_assert(!prepset_touch(&set, id[0]));
    prepset_clear(&set);
    ck_assert(prepset_is_empty(&set));
}
END_TEST

START_TEST(named_ones_do_not_travel)
{
    struct prepset set = {0};
    struct buf out = {0};
    uint8_t id[PREP_ID_BYTES] = {9};

    prepset_add(&set, id);
    ck_assert(prepset_encode(&set, &out));
    ck_assert_uint_eq(out.len, PREP_ID_BYTES);
    prepset_set_named(&set, slice_of_str("q"), 5);
    prepset_set_named(&set, slice_of_str("q"), 6);
    ck_assert_uint_eq(prepset_named(&set, slice_of_str("q")), 6);
    ck_assert_uint_eq(prepset_named(&set, slice_of_str("w")), 0);
    ck_assert(slice_eq_str(prepset_any_named(&set), "q"));
    buf_clear(&out);
    ck_assert(!prepset_encode(&set, &out));
    prepset_drop_named(&set, slice_of_str("q"));
    ck_assert(prepset_encode(&set, &out));
    prepset_clear(&set);
    buf_free(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prep");
    TCase *tc = tcase_create("prep");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(tc, content_makes_the_name);
    tcase_add_test(tc, least_recently_used_goes);
    tcase_add_test(tc, named_ones_do_not_travel);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
