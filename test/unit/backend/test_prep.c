/* SPDX-License-Identifier: PostgreSQL
 * test_prep.c: prepared statements by content, and what a link knows of them. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backend/prep.h"

#include "run_suite.h"

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

START_TEST(columns_last_until_it_is_parsed_again)
{
    struct prepset set = {0};
    struct prepset there = {0};
    struct buf out = {0};
    uint8_t id[2][PREP_ID_BYTES] = {{1}, {2}};

    ck_assert_uint_eq(prepset_columns(&set, id[0]), 0);
    prepset_set_columns(&set, id[0], 7); /* it is not there */
    prepset_add(&set, id[0]);
    ck_assert_uint_eq(prepset_columns(&set, id[0]), 0);
    prepset_set_columns(&set, id[0], 7);
    prepset_add(&set, id[1]);
    ck_assert_uint_eq(prepset_columns(&set, id[1]), 0);
    ck_assert_uint_eq(prepset_columns(&set, id[0]), 7);
    prepset_encode(&set, &out);
    ck_assert(prepset_decode(&there, buf_slice(&out)));
    ck_assert_uint_eq(prepset_columns(&there, id[0]), 7);
    ck_assert_uint_eq(prepset_columns(&there, id[1]), 0);
    prepset_add(&set, id[0]);
    ck_assert_uint_eq(prepset_columns(&set, id[0]), 0);
    buf_free(&out);
    prepset_clear(&set);
    prepset_clear(&there);
}
END_TEST

START_TEST(all_is_known_behind_a_journey)
{
    struct prepset set = {0};
    struct prepset there = {0};
    struct buf out = {0};
    uint8_t id[PREP_ID_BYTES] = {9};
    uint8_t newer[PREP_ID_BYTES] = {3};
    char name[PREP_NAME_BYTES + 1];
    size_t n;

    prepset_encode(&set, &out);
    ck_assert_uint_eq(out.len, prepset_bytes(&set));
    ck_assert(prepset_decode(&there, buf_slice(&out)));
    ck_assert(prepset_is_empty(&there));
    prepset_add(&set, id);
    prepset_add(&set, newer);
    prepset_confirm(&set, id);
    ck_assert(prepset_is_sure(&set, id));
    ck_assert(!prepset_is_sure(&set, newer)); /* on its way */
    prepset_set_named(&set, slice_of_str("q"), 5);
    prepset_set_named(&set, slice_of_str("q"), 6);
    prepset_set_named(&set, slice_of_str(""), PREPSET_DOUBTFUL);
    ck_assert_uint_eq(prepset_named(&set, slice_of_str("q")), 6);
    ck_assert_uint_eq(prepset_named(&set, slice_of_str("w")), 0);
    buf_clear(&out);
    prepset_encode(&set, &out);
    ck_assert_uint_eq(out.len, prepset_bytes(&set));
    ck_assert(prepset_decode(&there, buf_slice(&out)));
    ck_assert_uint_eq(prepset_count(&there), 2);
    ck_assert(prepset_is_sure(&there, id));
    ck_assert_uint_eq(prepset_count_named(&there), 2);
    ck_assert_uint_eq(prepset_named(&there, slice_of_str("q")), 6);
    ck_assert_uint_eq(prepset_named(&there, slice_of_str("")), PREPSET_DOUBTFUL);
    ck_assert(prepset_evict(&there, 1, name));
    ck_assert(memcmp(name, "pgp_09", 6) == 0); /* the older one */
    for (n = 0; n < out.len; n++) {
        prepset_clear(&there);
        /* Without its last names it is complete in itself. */
        (void)prepset_decode(&there, slice_of(out.data, n));
        ck_assert_uint_le(prepset_count(&there), 2);
    }
    ck_assert(!prepset_decode(&there, slice_of(out.data, 3)));
    ck_assert(!prepset_decode(&there, slice_of(out.data, 5)));
    ck_assert(!prepset_decode(&there, slice_of(out.data, out.len - 1)));
    prepset_clear(&set);
    prepset_clear(&there);
    buf_free(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prep");
    TCase *tc = tcase_create("prep");

    tcase_add_test(tc, content_makes_the_name);
    tcase_add_test(tc, least_recently_used_goes);
    tcase_add_test(tc, columns_last_until_it_is_parsed_again);
    tcase_add_test(tc, all_is_known_behind_a_journey);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
