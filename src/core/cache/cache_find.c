/* SPDX-License-Identifier: PostgreSQL
 * cache_find.c: the way of a hit: a key is looked up and its result copied out, without a lock.
 * Runs in: workers. Whatever is read here may be changing: numbers are checked before they lead
 * anywhere, and what was read counts only when the row's sequence number is what it was. */
#include "config.h"

#include <string.h>

#include "base/hash.h"
#include "sys/clock.h"

#include "cache_int.h"

/* A chain is as long as this only while somebody rebuilds it. */
#define MAX_STEPS 64

HOT struct cache_key cache_key_of(struct slice bytes)
{
    return (struct cache_key){bytes, hash_bytes(bytes.p, bytes.n, 0x716b6579U)};
}

/* Nothing that was read before may be believed when this is false. */
static bool is_unchanged(const struct cache_row *row, uint32_t seq)
{
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&row->seq, memory_order_relaxed) == seq;
}

static bool is_valid(const struct cache *c, const uint32_t *cell, uint32_t ncells, uint64_t sum,
    uint32_t expire_s, int64_t now_us)
{
    if (expire_s != 0 && now_us / CLOCK_US_PER_S >= expire_s)
        return false;
    return cache_gens_sum(c->gens, cell, ncells) == sum;
}

/* Looks at one row: whether it is the key's, and valid. */
static bool row_match(const struct shard_ref *r, uint32_t i, uint32_t seq,
    const struct cache_key *key, int64_t now_us, struct cache_hit *hit)
{
    const struct cache_row *row = &r->rows[i];
    uint32_t cell[CACHE_DEPS_MAX];
    uint32_t ncells = row->ncells;
    uint32_t ntables = row->ntables;
    size_t key_at = entry_key_at(ncells, ntables);
    uint64_t sum = row->sum;
    uint32_t expire_s = row->expire_s;
    const char *head;

    if (row->key_len != key->bytes.n || ncells > CACHE_DEPS_MAX || ntables > CACHE_ENTRY_TABLES)
        return false;
    hit->at = atomic_load_explicit(&row->at, memory_order_relaxed);
    head = space_peek(r->arena, r->c->shape.nunits, hit->at, key_at + key->bytes.n);
    if (head == NULL || memcmp(head + key_at, key->bytes.p, key->bytes.n) != 0)
        return false;
    memcpy(cell, head, ncells * sizeof cell[0]);
    memcpy(hit->table, head + entry_key_at(ncells, 0), ntables * sizeof hit->table[0]);
    hit->ntables = ntables;
    hit->row = i;
    hit->seq = seq;
    hit->skip = key_at + key->bytes.n;
    hit->len = row->len;
    hit->took_us = cache_time_unpack(row->took);
    return is_unchanged(row, seq) && is_valid(r->c, cell, ncells, sum, expire_s, now_us);
}

static void count_hit(struct cache *c, struct cache_row *row)
{
    uint8_t hits = atomic_load_explicit(&row->hits, memory_order_relaxed);

    if (hits == 0)
        c->nagain++;
    if (hits < SKETCH_MAX)
        atomic_store_explicit(&row->hits, hits + 1, memory_order_relaxed);
}

HOT bool cache_find(
    struct cache *c, const struct cache_key *key, int64_t now_us, struct cache_hit *hit)
{
    struct shard_ref r = shard_of(c, key->hash);
    uint32_t tag = shard_tag(key->hash);
    uint32_t i = atomic_load_explicit(&r.heads[tag & (c->shape.nheads - 1)], memory_order_acquire);
    int steps;

    for (steps = 0; i != 0 && i < c->shape.nrows && steps < MAX_STEPS; steps++) {
        struct cache_row *row = &r.rows[i];
        uint32_t seq = atomic_load_explicit(&row->seq, memory_order_acquire);

        if ((seq & 1) == 0 && atomic_load_explicit(&row->tag, memory_order_relaxed) == tag &&
            row_match(&r, i, seq, key, now_us, hit)) {
            hit->shard = (uint32_t)key->hash & (c->shape.nshards - 1);
            if (cache_gens_off_bits(c->gens, now_us) != 0)
                return false;
            count_hit(c, row);
            return true;
        }
        i = atomic_load_explicit(&row->next, memory_order_acquire);
    }
    return false;
}

HOT bool cache_copy(struct cache *c, const struct cache_hit *hit, size_t from, size_t n, char *dst)
{
    struct shard_ref r = shard_at(c, hit->shard);

    return space_read(r.arena, c->shape.nunits, hit->at, hit->skip + from, dst, n) &&
           is_unchanged(&r.rows[hit->row], hit->seq);
}

bool cache_delete(struct cache *c, const struct cache_key *key)
{
    struct shard_ref r = shard_of(c, key->hash);
    uint32_t i;

    if (shard_lock(&r) != 0)
        return false;
    i = shard_find(&r, key->hash, key->bytes);
    if (i != 0)
        shard_remove(&r, i);
    shard_unlock(&r);
    return i != 0;
}

static bool is_of(const struct shard_ref *r, uint32_t i, cache_is_it_fn *is_it, void *ctx)
{
    const struct cache_row *row = &r->rows[i];
    uint32_t at = atomic_load_explicit(&row->at, memory_order_relaxed);
    size_t key_at = entry_key_at(row->ncells, row->ntables);
    const char *head;

    if (at == 0)
        return false;
    head = space_peek(r->arena, r->c->shape.nunits, at, key_at + row->key_len);
    return head != NULL && is_it(ctx, slice_of(head + key_at, row->key_len));
}

uint64_t cache_delete_all(struct cache *c, cache_is_it_fn *is_it, void *ctx)
{
    uint64_t n = 0;
    uint32_t shard;
    uint32_t i;

    for (shard = 0; shard < c->shape.nshards; shard++) {
        struct shard_ref r = shard_at(c, shard);

        if (shard_lock(&r) != 0)
            continue;
        for (i = 1; i < r.s->nrows_touched; i++)
            if (is_of(&r, i, is_it, ctx)) {
                shard_remove(&r, i);
                n++;
            }
        shard_unlock(&r);
    }
    return n;
}
