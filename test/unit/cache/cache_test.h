/* SPDX-License-Identifier: PostgreSQL
 * cache_test.h: a cache in memory that the processes of a test share. */
#ifndef PGP_CACHE_TEST_H
#define PGP_CACHE_TEST_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cache_int.h"

#define NOW INT64_C(1000000000)
#define MB  (UINT64_C(1) << 20)

/* A key with its bytes. */
struct test_key {
    char text[64];
    struct cache_key is;
};

static inline struct cache *test_cache_new(
    uint64_t bytes, uint32_t entries, uint32_t result, uint32_t block, int nprocs)
{
    struct cache_shape shape = cache_shape_of(bytes, entries, result, block, nprocs);
    void *mem = mmap(NULL, shape.bytes, PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    ck_assert_ptr_ne(mem, MAP_FAILED);
    cache_region_init(mem, &shape, 1);
    return cache_region_open(mem, 0);
}

static inline void test_cache_free(struct cache *c)
{
    void *mem = c->region;
    size_t bytes = c->shape.bytes;

    cache_close(&c);
    munmap(mem, bytes);
}

static inline struct test_key *test_key(struct test_key *key, const char *what, unsigned n)
{
    int len = snprintf(key->text, sizeof key->text, "select %s %u", what, n);

    key->is = cache_key_of(slice_of(key->text, (size_t)len));
    return key;
}

/* A result of this length that can be checked: it begins with its key's number. */
static inline void test_result(char *out, size_t len, unsigned n)
{
    size_t i;

    for (i = 0; i < len; i++)
        out[i] = (char)((n * 31 + i * 7 + (i >> 8)) & 0xFF);
}

static inline enum cache_fill_reason test_put_deps(
    struct cache *c, struct test_key *key, unsigned n, size_t len, const struct cache_deps *deps)
{
    struct cache_fill_spec spec = {.key = &key->is, .deps = deps, .ntables = 1, .table = {7}};
    struct cache_fill *f = cache_fill_begin(c, &spec);
    char *bytes = malloc(len + 1);

    test_result(bytes, len, n);
    if (cache_fill_append(f, bytes, len / 2) == 0)
        (void)cache_fill_append(f, bytes + len / 2, len - len / 2);
    free(bytes);
    return cache_fill_commit(&f, NOW, 1234);
}

static inline enum cache_fill_reason test_put(
    struct cache *c, struct test_key *key, unsigned n, size_t len)
{
    struct cache_deps deps;

    cache_deps_init(&deps);
    cache_deps_add(&deps, c->gens, cache_cell_database(slice_of_str("db")));
    ck_assert_int_eq(cache_deps_read(&deps, c->gens, NOW), CACHE_FILL_OK);
    return test_put_deps(c, key, n, len, &deps);
}

/* -1: not there; 0: there and right; 1: there and wrong. */
static inline int test_get(struct cache *c, struct test_key *key, unsigned n)
{
    struct cache_hit hit;
    char *got;
    char *want;
    int rc = -1;

    if (!cache_find(c, &key->is, NOW, &hit))
        return -1;
    got = malloc(hit.len + 1);
    want = malloc(hit.len + 1);
    test_result(want, hit.len, n);
    if (cache_copy(c, &hit, 0, hit.len / 3, got) &&
        cache_copy(c, &hit, hit.len / 3, hit.len - hit.len / 3, got + hit.len / 3))
        rc = memcmp(got, want, hit.len) == 0 ? 0 : 1;
    free(got);
    free(want);
    return rc;
}

#endif
