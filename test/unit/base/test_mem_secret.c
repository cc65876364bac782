/* SPDX-License-Identifier: PostgreSQL
 * test_mem_secret.c: memory for secrets: every size, reuse, wiping, resizing, threads, and what the
 * kernel says about its pages. */
#include "config.h"

#include <check.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#include "run_suite.h"

#define MANY 2000

/* True when the mapping of `p` is left out of core dumps. */
static bool is_hidden(const void *p)
{
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long begin;
    unsigned long end;
    bool inside = false;
    bool hidden = false;

    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            inside = (uintptr_t)p >= begin && (uintptr_t)p < end;
        else if (inside && strncmp(line, "VmFlags:", 8) == 0)
            hidden = strstr(line, " dd") != NULL;
    }
    fclose(f);
    return hidden;
}

static size_t size_of(unsigned i)
{
    return i < 1200 ? i : (size_t)i * 40;
}

static bool holds(const char *p, size_t n, char c)
{
    size_t i = 0;

    while (i < n && p[i] == c)
        i++;
    return i == n;
}

START_TEST(test_every_size)
{
    static char *p[MANY];
    size_t size;
    unsigned i;

    for (i = 0; i < MANY; i++) {
        size = size_of(i);
        p[i] = mem_alloc_secret(size);
        ck_assert_uint_eq((uintptr_t)p[i] % 16, 0);
        ck_assert(holds(p[i], size, 0));
        memset(p[i], (int)i, size);
    }
    for (i = 0; i < MANY; i++) {
        size = size_of(i);
        ck_assert(holds(p[i], size, (char)i));
        mem_free_secret(p[i]);
    }
    mem_free_secret(NULL);
    mem_free_hidden(NULL);
}
END_TEST

START_TEST(test_dumps_leave_it_out)
{
    static const size_t sizes[] = {1, 100, 5000, 60000, 70000, 3000000};
    char *heap = mem_alloc(100);
    unsigned i;

    ck_assert(!is_hidden(heap));
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *p = mem_alloc_hidden(sizes[i]);

        ck_assert(is_hidden(p));
        ck_assert(is_hidden(p + sizes[i] - 1));
        mem_free_hidden(p);
    }
    mem_free(heap);
}
END_TEST

START_TEST(test_freed_bytes_are_gone)
{
    char *p = mem_alloc_secret(200);
    char *again;

    memset(p, 'x', 200);
    mem_free_secret(p);
    again = mem_alloc_hidden(200); /* gives the piece as it was left */
    ck_assert_ptr_eq(again, p);
    ck_assert_ptr_null(memchr(again + sizeof(void *), 'x', 200 - sizeof(void *)));
    mem_free_hidden(again);
}
END_TEST

START_TEST(test_resizing)
{
    char *p = NULL;
    char *old;
    size_t size;

    for (size = 1; size < 300000; size = size * 5 / 4 + 1) {
        p = mem_resize_hidden(p, size);
        ck_assert(size == 1 || p[0] == 'a');
        p[0] = 'a';
        p[size - 1] = 'a';
    }
    old = mem_resize_hidden(p, 10);
    ck_assert_int_eq(old[0], 'a');
    mem_free_secret(old);
}
END_TEST

START_TEST(test_secret_buffers)
{
    struct buf b = {.is_secret = true};
    unsigned i;

    for (i = 0; i < 100000; i++)
        buf_put_byte(&b, (char)i);
    ck_assert(is_hidden(b.data));
    for (i = 0; i < 100000; i++)
        if (b.data[i] != (char)i)
            ck_abort_msg("byte %u is wrong", i);
    buf_free(&b);
    ck_assert(b.is_secret);
    buf_put_cstr(&b, "again");
    ck_assert(is_hidden(b.data));
    buf_free(&b);
}
END_TEST

static void *toil(void *arg)
{
    unsigned seed = *(unsigned *)arg;
    char *p[64] = {NULL};
    size_t n[64] = {0};
    unsigned i;
    unsigned k;

    for (i = 0; i < 100000; i++) {
        seed = seed * 1103515245U + 12345U;
        k = (seed >> 16) % 64;
        if (p[k] != NULL && (p[k][0] != (char)k || p[k][n[k] - 1] != (char)k))
            return p[k];
        mem_free_secret(p[k]);
        n[k] = (seed >> 8) % 3000 + 1;
        p[k] = mem_alloc_hidden(n[k]);
        memset(p[k], (int)k, n[k]);
    }
    for (k = 0; k < 64; k++)
        mem_free_secret(p[k]);
    return NULL;
}

START_TEST(test_threads)
{
    pthread_t thread[4];
    unsigned seed[4] = {1, 2, 3, 4};
    void *bad = NULL;
    int i;

    for (i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, toil, &seed[i]), 0);
    for (i = 0; i < 4; i++) {
        pthread_join(thread[i], &bad);
        ck_assert_ptr_null(bad);
    }
}
END_TEST

static void *swap(void *arg)
{
    char **p = arg;

    mem_free_secret(*p);
    *p = mem_alloc_secret(200);
    memset(*p, 'y', 200);
    return NULL;
}

/* What one thread got another may free; the first one finds its own again. */
START_TEST(test_freed_by_another_thread)
{
    char *mine = mem_alloc_secret(200);
    char *p = mine;
    char *again;
    pthread_t thread;
    int tries = 0;

    memset(p, 'x', 200);
    ck_assert_int_eq(pthread_create(&thread, NULL, swap, &p), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_ptr_ne(p, mine);
    do { /* until those that other tests have left are used up */
        again = mem_alloc_hidden(200);
    } while (again != mine && ++tries < 100000);
    ck_assert_ptr_eq(again, mine);
    ck_assert_ptr_null(memchr(again + sizeof(void *), 'x', 200 - sizeof(void *)));
    ck_assert(holds(p, 200, 'y'));
    ck_assert(is_hidden(p));
    mem_free_secret(p);
    again = mem_alloc_hidden(200);
    ck_assert_ptr_ne(again, p); /* that one is for other threads */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mem_secret");
    TCase *tc = tcase_create("all");

    tcase_add_test(tc, test_every_size);
    tcase_add_test(tc, test_dumps_leave_it_out);
    tcase_add_test(tc, test_freed_bytes_are_gone);
    tcase_add_test(tc, test_resizing);
    tcase_add_test(tc, test_secret_buffers);
    tcase_add_test(tc, test_threads);
    tcase_add_test(tc, test_freed_by_another_thread);
    tcase_set_timeout(tc, 60);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
