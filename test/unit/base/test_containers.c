/* SPDX-License-Identifier: PostgreSQL
 * test_containers.c: arena.c, buf.c, hash.c, list.h and err.c. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/list.h"

#include "run_suite.h"

START_TEST(arena_keeps_its_limit)
{
    struct arena *a = arena_new("test", 4096);
    char *p = arena_alloc(a, 100);

    ck_assert_ptr_nonnull(p);
    memset(p, 1, 100);
    ck_assert_uint_eq((uintptr_t)arena_alloc(a, 3) % 8, 0);
    ck_assert_ptr_null(arena_alloc(a, 5000));
    ck_assert_ptr_nonnull(arena_alloc(a, 50));
    arena_free(&a);
    ck_assert_ptr_null(a);
    arena_free(&a);
}
END_TEST

START_TEST(arena_release_returns_to_the_mark)
{
    struct arena *a = arena_new("test", 0);
    struct arena_mark mark;
    size_t used;
    int i;

    ck_assert_str_eq(arena_strdup(a, "kept"), "kept");
    mark = arena_mark(a);
    used = arena_used(a);
    for (i = 0; i < 1000; i++)
        ck_assert_str_eq(arena_printf(a, "%d-%s", 7, "x"), "7-x");
    ck_assert_uint_gt(arena_used(a), used);
    arena_release(a, mark);
    ck_assert_uint_eq(arena_used(a), used);
    arena_reset(a);
    ck_assert_uint_eq(arena_used(a), 0);
    arena_free(&a);
}
END_TEST

START_TEST(buf_moves_its_window)
{
    struct buf b = {0};
    uint32_t i;

    for (i = 0; i < 1000; i++)
        buf_put_u32(&b, i);
    ck_assert_uint_eq(buf_unread(&b), 4000);
    for (i = 0; i < 999; i++) {
        ck_assert_int_eq(memcmp(buf_slice(&b).p, (char[]){0, 0, (char)(i >> 8), (char)i}, 4), 0);
        buf_consume(&b, 4);
        buf_put_byte(&b, 'x');
    }
    ck_assert_uint_eq(buf_unread(&b), 4 + 999);
    buf_consume(&b, 4 + 999);
    ck_assert_uint_eq(buf_unread(&b), 0);
    ck_assert_ptr_null(b.data); /* an empty buffer owns nothing */
    buf_printf(&b, "%s-%d", "abc", 5);
    buf_put_cstr(&b, "!");
    ck_assert_str_eq(b.data, "abc-5!");
    buf_free(&b);
}
END_TEST

struct item {
    struct hash_node node;
    int key;
};

static int item_eq(const struct hash_node *node, const void *key)
{
    return LIST_ENTRY(node, const struct item, node)->key == *(const int *)key;
}

START_TEST(hash_finds_what_was_added)
{
    enum { N = 2000 };
    struct item *items = calloc(N, sizeof *items);
    struct hash_table t;
    int i;

    hash_table_init(&t);
    for (i = 0; i < N; i++) {
        items[i].key = i;
        hash_table_add(&t, &items[i].node, hash_bytes(&i, sizeof i, 7));
    }
    for (i = 0; i < N; i += 2)
        hash_table_del(&t, &items[i].node);
    ck_assert_uint_eq(t.count, N / 2);
    for (i = 0; i < N; i++) {
        struct hash_node *n = hash_table_find(&t, hash_bytes(&i, sizeof i, 7), item_eq, &i);

        ck_assert((n != NULL) == (i % 2 == 1));
    }
    hash_table_fini(&t);
    free(items);
}
END_TEST

START_TEST(list_detaches)
{
    struct list head;
    struct list a;
    struct list b;
    struct list *it;
    struct list *tmp;
    int n = 0;

    list_init(&head);
    list_init(&a);
    list_init(&b);
    ck_assert_ptr_null(list_first(&head));
    list_push_back(&head, &a);
    list_push_front(&head, &b);
    ck_assert_ptr_eq(list_first(&head), &b);
    ck_assert_ptr_eq(list_last(&head), &a);
    LIST_FOREACH_SAFE(it, tmp, &head)
    {
        list_remove(it);
        list_remove(it); /* allowed again */
        n++;
    }
    ck_assert_int_eq(n, 2);
    ck_assert(list_is_empty(&head) && list_is_detached(&a));
}
END_TEST

START_TEST(err_keeps_the_first)
{
    struct err err = {0};

    err_set_errno(&err, ENOENT, "could not open \"%s\"", "f");
    err_set(&err, "XX000", "later");
    err_wrap(&err, "reading %d", 5);
    ck_assert_str_eq(err.msg, "reading 5: could not open \"f\": No such file or directory");
    ck_assert_str_eq(err.sqlstate, "58P01");
    err_clear(&err);
    ck_assert(!err_is_set(&err));
    err_set(NULL, "XX000", "nobody listens");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base");
    TCase *t = tcase_create("base");

    tcase_add_test(t, arena_keeps_its_limit);
    tcase_add_test(t, arena_release_returns_to_the_mark);
    tcase_add_test(t, buf_moves_its_window);
    tcase_add_test(t, hash_finds_what_was_added);
    tcase_add_test(t, list_detaches);
    tcase_add_test(t, err_keeps_the_first);
    suite_add_tcase(s, t);
    return run_suite(s);
}
