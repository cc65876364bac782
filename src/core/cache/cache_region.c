/* SPDX-License-Identifier: PostgreSQL
 * cache_region.c: how large the cache's region of shared memory is, its first content, handles on
 * it. Runs in: the supervisor (makes it), every process that has to do with the cache (opens it).
 */
#include "config.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/shm.h"
#include "sys/clock.h"

#include "cache_int.h"

#define PAGE_BYTES 4096
#define MAX_SHARDS 64
/* One lock guards at least so many blocks, and so many entries. */
#define SHARD_BLOCKS  4
#define SHARD_ENTRIES 1024
/* An entry has a key, what it depends on and a reply: there are never more than this allows. */
#define ENTRY_MIN_BYTES 64
/* A shard larger than this could not number its units. */
#define SHARD_MAX_BYTES (INT64_C(8) << 30)
#define MIN_GENS        (UINT32_C(1) << 16)
#define MAX_GENS        (UINT32_C(1) << 24)

static size_t up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static uint32_t power_above(uint64_t n)
{
    uint32_t p = 1;

    while (p < n && p < UINT32_C(1) << 31)
        p <<= 1;
    return p;
}

static uint32_t shards_for(uint64_t total_bytes, uint32_t max_entries, uint32_t block_bytes)
{
    uint32_t n = 1;

    while (n < MAX_SHARDS && total_bytes / (n * 2) >= (uint64_t)block_bytes * SHARD_BLOCKS &&
           max_entries / (n * 2) >= SHARD_ENTRIES)
        n *= 2;
    while (total_bytes / n > SHARD_MAX_BYTES)
        n *= 2;
    return n;
}

struct cache_shape cache_shape_of(uint64_t total_bytes, uint32_t max_entries,
    uint32_t max_result_bytes, uint32_t block_bytes, int nprocs)
{
    struct cache_shape p = {0};
    uint64_t most = total_bytes / ENTRY_MIN_BYTES;

    p.max_entries = max_entries < most ? max_entries : (uint32_t)most;
    p.max_result_bytes = max_result_bytes;
    p.nprocs = (uint32_t)nprocs;
    p.nshards = shards_for(total_bytes, p.max_entries, block_bytes);
    p.total_bytes = total_bytes;
    /* Keys fall unevenly into shards; the limit of entries holds for all of them together. */
    p.nrows = p.max_entries / p.nshards + (p.nshards > 1 ? p.max_entries / p.nshards / 4 : 0) + 2;
    p.nheads = power_above(p.max_entries / p.nshards);
    p.sketch_bytes = power_above(p.nrows < 64 ? 64 : p.nrows);
    p.nunits = (uint32_t)(total_bytes / p.nshards / SPACE_UNIT) + 2;
    if (p.nunits < 64)
        p.nunits = 64;
    p.heads_at = up(sizeof(struct cache_shard), 64);
    p.rows_at = up(p.heads_at + p.nheads * sizeof(uint32_t), 64);
    p.sketch_at = up(p.rows_at + p.nrows * sizeof(struct cache_row), 64);
    p.arena_at = up(p.sketch_at + p.sketch_bytes, 64);
    p.shard_bytes = up(p.arena_at + (size_t)p.nunits * SPACE_UNIT, PAGE_BYTES);
    p.ngens = power_above((uint64_t)p.max_entries * 2);
    p.ngens = p.ngens < MIN_GENS ? MIN_GENS : p.ngens > MAX_GENS ? MAX_GENS : p.ngens;
    p.gens_at = up(sizeof(struct cache_region), 64);
    p.flights_at = up(p.gens_at + cache_gens_bytes(p.ngens, nprocs), 64);
    p.asked_at = up(p.flights_at + cache_flights_bytes(), 64);
    p.stats_at = up(p.asked_at + cache_asked_bytes(), PAGE_BYTES);
    p.tables_at = up(p.stats_at + cache_stats_bytes(nprocs), 64);
    p.shards_at = up(p.tables_at + cache_tables_bytes(), PAGE_BYTES);
    p.bytes = p.shards_at + p.nshards * p.shard_bytes;
    return p;
}

struct shard_ref shard_at(struct cache *c, uint32_t i)
{
    char *at = (char *)c->region + c->shape.shards_at + i * c->shape.shard_bytes;

    return (struct shard_ref){.c = c,
        .s = (struct cache_shard *)(void *)at,
        .rows = (struct cache_row *)(void *)(at + c->shape.rows_at),
        .heads = (_Atomic uint32_t *)(void *)(at + c->shape.heads_at),
        .sketch = (uint8_t *)at + c->shape.sketch_at,
        .arena = at + c->shape.arena_at};
}

HOT struct shard_ref shard_of(struct cache *c, uint64_t hash)
{
    return shard_at(c, (uint32_t)hash & (c->shape.nshards - 1));
}

static void shard_init(const struct shard_ref *r)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&r->s->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    r->s->nrows_touched = 1;
    space_init(&r->s->space, r->arena, r->c->shape.nunits);
}

void cache_region_init(void *mem, const struct cache_shape *shape, int64_t wall_us)
{
    struct cache_region *region = mem;
    struct cache *c;
    uint32_t i;

    region->shape = *shape;
    region->since_us = wall_us;
    cache_gens_init((char *)mem + shape->gens_at, shape->ngens, (int)shape->nprocs);
    c = cache_region_open(mem, 0);
    for (i = 0; i < shape->nshards; i++) {
        struct shard_ref r = shard_at(c, i);

        shard_init(&r);
    }
    cache_close(&c);
}

struct cache *cache_region_open(void *mem, int proc)
{
    struct cache *c = mem_alloc_zero(sizeof *c);

    c->region = mem;
    c->shape = c->region->shape;
    c->gens = (struct cache_gens *)(void *)((char *)mem + c->shape.gens_at);
    c->proc = proc;
    ASSERT(proc >= 0 && (uint32_t)proc < c->shape.nprocs);
    return c;
}

/* Where results are in memcached there are none here. */
#define FAR_BYTES (1 << 20)

static struct cache_shape shape_for(const struct conf *conf, int nprocs)
{
    bool is_far = conf->memqcache_method == CONF_CACHE_MEMCACHED;

    return cache_shape_of(is_far ? FAR_BYTES : (uint64_t)conf->memqcache_total_size_bytes,
        (uint32_t)conf->memqcache_max_num_cache, (uint32_t)conf->memqcache_maxcache_bytes,
        (uint32_t)conf->memqcache_cache_block_size_bytes, nprocs);
}

void cache_plan_shm(const struct conf *conf, int nprocs, struct shm_plan *plan)
{
    if (conf->memory_cache_enabled)
        plan->bytes[SHM_CACHE] += shape_for(conf, nprocs).bytes;
}

void cache_init_shm(const struct conf *conf, int nprocs, struct shm *shm)
{
    struct cache_region *region = shm_get(shm, SHM_CACHE);
    struct cache_shape shape;

    if (region == NULL)
        return;
    shape = shape_for(conf, nprocs);
    cache_region_init(region, &shape, clock_wall_us());
    if (conf->memqcache_method == CONF_CACHE_MEMCACHED)
        cache_far_list(conf, &region->far);
}

struct cache *cache_open(const struct shm *shm, int proc)
{
    void *mem = shm_get(shm, SHM_CACHE);

    return mem == NULL ? NULL : cache_region_open(mem, proc);
}

void cache_close(struct cache **cp)
{
    mem_free(*cp);
    *cp = NULL;
}

struct cache_gens *cache_gens_of(const struct cache *c)
{
    return c->gens;
}

/* What has to be told to memcached, and was not. */
static void far_owes_all(struct cache *c)
{
    if (!atomic_load(&c->region->far.is_used))
        return;
    atomic_fetch_add(&c->region->far.failures, 1);
    cache_gens_off(c->gens, CACHE_OFF_FAR);
}

void cache_empty(struct cache *c, int64_t now_us)
{
    cache_gens_empty(c->gens, now_us);
    far_owes_all(c);
}

void cache_die(void)
{
    kill(getpid(), SIGKILL);
}

void cache_died(struct shm *shm, int proc, int64_t now_us, cache_wake_fn *wake, void *ctx)
{
    struct cache *c = cache_open(shm, proc);

    if (c == NULL)
        return;
    if (cache_gens_died(c->gens, proc, now_us))
        far_owes_all(c);
    cache_flights_died(c, proc, wake, ctx);
    cache_close(&c);
}
