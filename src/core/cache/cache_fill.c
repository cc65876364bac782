/* SPDX-License-Identifier: PostgreSQL
 * cache_fill.c: results on their way into the cache.
 * Runs in: workers. They are gathered in memory of the process, and put into shared memory at once
 * when they are whole: what dies half-way with its process is nobody's concern. */
#include "config.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "sys/clock.h"

#include "cache_int.h"

struct cache_fill {
    struct cache *c;
    uint64_t hash;
    struct buf data; /* head, then the result */
    uint32_t head_len;
    uint16_t key_len;
    uint8_t ncells;
    uint8_t ntables;
    bool has_flight;
    bool is_large;
    int64_t expire_s;
    uint64_t sum;
};

struct cache_fill *cache_fill_begin(struct cache *c, const struct cache_fill_spec *spec)
{
    struct cache_fill *f = mem_alloc_zero(sizeof *f);

    f->c = c;
    f->hash = spec->key->hash;
    f->has_flight = spec->has_flight;
    f->expire_s = spec->expire_s;
    f->sum = spec->deps->sum;
    f->ncells = (uint8_t)spec->deps->ncells;
    f->ntables = (uint8_t)(spec->ntables < CACHE_ENTRY_TABLES ? spec->ntables : CACHE_ENTRY_TABLES);
    f->is_large = spec->key->bytes.n > CACHE_KEY_MAX;
    f->key_len = (uint16_t)(f->is_large ? 0 : spec->key->bytes.n);
    buf_put(&f->data, spec->deps->cell, f->ncells * sizeof spec->deps->cell[0]);
    buf_put(&f->data, spec->table, f->ntables * sizeof spec->table[0]);
    buf_put(&f->data, spec->key->bytes.p, spec->key->bytes.n);
    f->head_len = f->data.len;
    return f;
}

bool cache_fill_standby(const struct cache_fill *f, const struct cache_standby *s)
{
    uint32_t cell[CACHE_DEPS_MAX];

    memcpy(cell, f->data.data, f->ncells * sizeof cell[0]);
    return cache_gens_standby(f->c->gens, cell, f->ncells, s);
}

int cache_fill_append(struct cache_fill *f, const void *p, size_t n)
{
    if (f->is_large)
        return -1;
    if (n > f->c->shape.max_result_bytes ||
        f->data.len - f->head_len + n > f->c->shape.max_result_bytes) {
        f->is_large = true;
        return -1;
    }
    buf_put(&f->data, p, n);
    return 0;
}

/* Who waits for this key is told by its hash. */
void cache_fill_let_go(struct cache_fill *f)
{
    struct cache_key key = {{NULL, 0}, f->hash};

    if (f->has_flight)
        cache_flight_leave(f->c, &key);
    f->has_flight = false;
}

static void fill_free(struct cache_fill **fp)
{
    struct cache_fill *f = *fp;

    cache_fill_let_go(f);
    buf_free(&f->data);
    mem_free(f);
    *fp = NULL;
}

static uint32_t expires_at(const struct cache_fill *f, int64_t now_us)
{
    int64_t at = now_us / CLOCK_US_PER_S + f->expire_s;

    if (f->expire_s <= 0)
        return 0;
    return at > UINT32_MAX ? UINT32_MAX : (uint32_t)at;
}

struct cache_key cache_fill_key(const struct cache_fill *f)
{
    const char *p = f->data.data + entry_key_at(f->ncells, f->ntables);

    return (struct cache_key){slice_of(p, f->key_len), f->hash};
}

int64_t cache_fill_expire_s(const struct cache_fill *f)
{
    return f->expire_s;
}

enum cache_fill_reason cache_fill_check(const struct cache_fill *f, int64_t now_us)
{
    uint32_t cell[CACHE_DEPS_MAX];

    if (f->is_large)
        return CACHE_FILL_LARGE;
    if (cache_gens_off_bits(f->c->gens, now_us) != 0)
        return CACHE_FILL_OFF;
    memcpy(cell, f->data.data, f->ncells * sizeof cell[0]);
    return cache_gens_sum(f->c->gens, cell, f->ncells) != f->sum ? CACHE_FILL_MOVED : CACHE_FILL_OK;
}

static enum cache_fill_reason put(const struct cache_fill *f, int64_t now_us, uint32_t took_us)
{
    const char *p = f->data.data;
    enum cache_fill_reason reason = cache_fill_check(f, now_us);
    struct shard_ref r = shard_of(f->c, f->hash);
    struct shard_entry e = {.hash = f->hash,
        .head = p,
        .head_len = f->head_len,
        .data = p + f->head_len,
        .len = f->data.len - f->head_len,
        .key_len = f->key_len,
        .ncells = f->ncells,
        .ntables = f->ntables,
        .took = cache_time_pack(took_us),
        .expire_s = expires_at(f, now_us),
        .sum = f->sum};

    if (reason != CACHE_FILL_OK)
        return reason;
    if (shard_lock(&r) != 0)
        return CACHE_FILL_FULL;
    reason = shard_put(&r, &e, now_us);
    shard_unlock(&r);
    return reason;
}

enum cache_fill_reason cache_fill_commit(struct cache_fill **fp, int64_t now_us, uint32_t took_us)
{
    enum cache_fill_reason reason = put(*fp, now_us, took_us);

    fill_free(fp);
    return reason;
}

void cache_fill_abort(struct cache_fill **fp)
{
    if (*fp != NULL)
        fill_free(fp);
}
