/* SPDX-License-Identifier: PostgreSQL
 * hash.c: multiply-and-fold hash over 8-byte words, and a chained table. */
#include "config.h"

#include "base/hash.h"

#include <string.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/mem.h"

#define HASH_K1       0x9E3779B97F4A7C15ULL
#define HASH_K2       0xD6E8FEB86659FD93ULL
#define TABLE_BUCKETS 2

static uint64_t fold(uint64_t a, uint64_t b)
{
    __uint128_t m = (__uint128_t)a * b;

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

HOT uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
    const unsigned char *s = p;
    uint64_t h = seed ^ fold(n + HASH_K2, HASH_K1);
    uint64_t w;

    for (; n >= 8; n -= 8, s += 8) {
        memcpy(&w, s, 8);
        h = fold(h ^ w, HASH_K1);
    }
    if (n > 0) {
        w = 0;
        memcpy(&w, s, n);
        h = fold(h ^ w, HASH_K2);
    }
    return fold(h ^ HASH_K2, HASH_K1);
}

void hash_table_init(struct hash_table *t)
{
    t->bucket = mem_alloc_zero(TABLE_BUCKETS * sizeof *t->bucket);
    t->mask = TABLE_BUCKETS - 1;
    t->count = 0;
}

void hash_table_fini(struct hash_table *t)
{
    mem_free(t->bucket);
    memset(t, 0, sizeof *t);
}

HOT struct hash_node *hash_table_find(
    const struct hash_table *t, uint64_t hash, hash_eq_fn *eq, const void *key)
{
    struct hash_node *n;

    for (n = t->bucket[hash & t->mask]; n != NULL; n = n->next)
        if (n->hash == hash && eq(n, key))
            return n;
    return NULL;
}

static void table_grow(struct hash_table *t)
{
    uint32_t size = (t->mask + 1) * 2;
    struct hash_node **bucket = mem_alloc_zero(size * sizeof *bucket);
    struct hash_node *n;
    uint32_t i;

    for (i = 0; i <= t->mask; i++) {
        while ((n = t->bucket[i]) != NULL) {
            t->bucket[i] = n->next;
            n->next = bucket[n->hash & (size - 1)];
            bucket[n->hash & (size - 1)] = n;
        }
    }
    mem_free(t->bucket);
    t->bucket = bucket;
    t->mask = size - 1;
}

void hash_table_add(struct hash_table *t, struct hash_node *node, uint64_t hash)
{
    if (t->count > t->mask)
        table_grow(t);
    node->hash = hash;
    node->next = t->bucket[hash & t->mask];
    t->bucket[hash & t->mask] = node;
    t->count++;
}

void hash_table_del(struct hash_table *t, struct hash_node *node)
{
    struct hash_node **np = &t->bucket[node->hash & t->mask];

    while (*np != node) {
        ASSERT(*np != NULL);
        np = &(*np)->next;
    }
    *np = node->next;
    t->count--;
}
