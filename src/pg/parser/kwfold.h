/* SPDX-License-Identifier: PostgreSQL
 * kwfold.h: how a word is folded and hashed for the key word table, by the scanner and by the tool
 * that makes the table. Runs in: workers, and at build time. A word is at most 24 bytes; setting
 * bit 0x20 of each byte folds letters, leaves digits and '$', and turns '_' into 0x7f, which no
 * word contains: so comparing three 64-bit words is exact. */
#ifndef PGP_PARSER_KWFOLD_H
#define PGP_PARSER_KWFOLD_H

#include <stdint.h>
#include <string.h>

#define KW_MAX_LEN   17
#define KW_SLOTS     1024
#define KW_BUCKETS   128
#define KW_FOLD_BITS 0x2020202020202020ULL

struct kw_key {
    uint64_t w[3];
};

struct kw_entry {
    struct kw_key key;
    short token;
    short is_new; /* newer than PostgreSQL 15 */
};

/* Read at 24 - n, these are masks for the first n of 24 bytes. */
static const unsigned char kw_ones[48] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};

/* Takes `n` <= 24 bytes as they are at `p`, of which 24 must be readable. */
static inline void kw_mask(const char *p, unsigned n, struct kw_key *key)
{
    uint64_t mask[3];

    memcpy(mask, kw_ones + 24 - n, sizeof(mask));
    memcpy(key->w, p, sizeof(key->w));
    for (int i = 0; i < 3; i++)
        key->w[i] &= mask[i];
}

/* Folds `n` <= 24 bytes at `p`, of which 24 must be readable. */
static inline void kw_fold(const char *p, unsigned n, struct kw_key *key)
{
    uint64_t mask[3];

    memcpy(mask, kw_ones + 24 - n, sizeof(mask));
    memcpy(key->w, p, sizeof(key->w));
    for (int i = 0; i < 3; i++)
        key->w[i] = (key->w[i] | KW_FOLD_BITS) & mask[i];
}

static inline uint64_t kw_hash(const struct kw_key *key)
{
    uint64_t h = key->w[0] * 0x9e3779b97f4a7c15ULL;

    h ^= (h >> 29) ^ (key->w[1] * 0xc2b2ae3d27d4eb4fULL) ^ (key->w[2] * 0x165667b19e3779f9ULL);
    h *= 0xbf58476d1ce4e5b9ULL;
    return h ^ (h >> 32);
}

static inline unsigned kw_bucket(uint64_t h)
{
    return (unsigned)(h & (KW_BUCKETS - 1));
}

static inline unsigned kw_slot(uint64_t h, unsigned disp)
{
    return (unsigned)(((h >> 8) + (uint64_t)disp * ((h >> 40) | 1)) & (KW_SLOTS - 1));
}

#endif
