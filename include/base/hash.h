/* SPDX-License-Identifier: PostgreSQL
 * hash.h: 64-bit hash of bytes (not cryptographic), and a table of string keys. */
#ifndef PGP_BASE_HASH_H
#define PGP_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Hashes `n` bytes, mixed with `seed`. */
uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);
/* Two numbers that are hashes, or count something, as one. */
static inline uint64_t hash_pair(uint64_t a, uint64_t b)
{
    __uint128_t m = (__uint128_t)(a ^ 0xD6E8FEB86659FD93ULL) * (b ^ 0x9E3779B97F4A7C15ULL);

    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/* Chained table with the link inside the object; keys are compared by the caller's function. */
struct hash_node {
    struct hash_node *next;
    uint64_t hash;
};

struct hash_table {
    struct hash_node **bucket;
    uint32_t mask;
    uint32_t count;
};

typedef int hash_eq_fn(const struct hash_node *node, const void *key);

/* Makes an empty table. */
void hash_table_init(struct hash_table *t);
/* Frees the buckets, not the objects. */
void hash_table_fini(struct hash_table *t);
/* Returns the node whose hash is equal and for which eq(node, key) is true, or NULL. */
struct hash_node *hash_table_find(
    const struct hash_table *t, uint64_t hash, hash_eq_fn *eq, const void *key);
/* Adds `node` under `hash`; duplicates are the caller's business. Grows when full. */
void hash_table_add(struct hash_table *t, struct hash_node *node, uint64_t hash);
/* Removes `node`, which must be in the table. */
void hash_table_del(struct hash_table *t, struct hash_node *node);

#endif
