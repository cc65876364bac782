/* SPDX-License-Identifier: PostgreSQL
 * route_marks.c: tables written lately, in shared memory, one writer per table of marks.
 * Runs in: workers. A reader that meets an entry in the middle of a change sees the new key with
 * the old times or the other way round: the writer takes the key away first and sets it last, and
 * readers look at the key before and after. */
#include "config.h"

#include "route/route_marks.h"

#include <stdatomic.h>

#include "base/hash.h"
#include "cluster/view.h"
#include "config/conf.h"

#define TTL_MIN_US 100000
#define TTL_MAX_US 3600000000

struct mark {
    _Atomic uint64_t key; /* 0: free */
    _Atomic int64_t first_us;
    _Atomic int64_t last_us;
};

struct route_marks {
    _Atomic int64_t started_us; /* 0: nobody writes here yet */
    uint32_t buckets;
    uint32_t per_bucket;
    struct mark mark[];
};

static uint32_t per_bucket(const struct conf *conf)
{
    uint32_t size = (uint32_t)conf->track_table_mutation_table_size;
    uint32_t buckets = (uint32_t)conf->track_table_mutation_table_buckets;

    return size <= buckets ? 1 : (size + buckets - 1) / buckets;
}

size_t route_marks_bytes(const struct conf *conf)
{
    return sizeof(struct route_marks) + (size_t)conf->track_table_mutation_table_buckets *
                                            per_bucket(conf) * sizeof(struct mark);
}

struct route_marks *route_marks_init(void *mem, const struct conf *conf, int64_t now_us)
{
    struct route_marks *m = mem;

    m->buckets = (uint32_t)conf->track_table_mutation_table_buckets;
    m->per_bucket = per_bucket(conf);
    atomic_store(&m->started_us, now_us);
    return m;
}

uint64_t route_marks_key(struct slice database, uint32_t oid)
{
    uint64_t key = hash_bytes(database.p, database.n, oid);

    return key == 0 ? 1 : key;
}

static bool is_stale(const struct mark *k, const struct conf *conf, int64_t now_us, int64_t ttl_us)
{
    int64_t max_us = conf->track_table_mutation_max_staleness_ms * 1000;

    if (now_us - atomic_load(&k->last_us) > ttl_us)
        return true;
    return max_us > 0 && now_us - atomic_load(&k->first_us) > max_us;
}

static void set(struct mark *k, uint64_t key, int64_t first_us, int64_t now_us)
{
    atomic_store(&k->key, 0);
    atomic_store(&k->first_us, first_us);
    atomic_store(&k->last_us, now_us);
    atomic_store(&k->key, key);
}

void route_marks_add(struct route_marks *m, const struct conf *conf, uint64_t key, int64_t now_us)
{
    struct mark *bucket = &m->mark[(key % m->buckets) * m->per_bucket];
    struct mark *oldest = bucket;
    uint32_t i;

    for (i = 0; i < m->per_bucket; i++) {
        struct mark *k = &bucket[i];
        if (atomic_load(&k->key) == key) {
            /* A table written again after its mark ran out begins a new span. */
            if (is_stale(k, conf, now_us, TTL_MAX_US))
                atomic_store(&k->first_us, now_us);
            atomic_store(&k->last_us, now_us);
            return;
        }
        if (atomic_load(&k->key) == 0) {
            oldest = k;
            break;
        }
        if (atomic_load(&k->last_us) < atomic_load(&oldest->last_us))
            oldest = k;
    }
    set(oldest, key, now_us, now_us);
}

int64_t route_marks_ttl_us(const struct conf *conf, const struct view *view, int node)
{
    double delay_us = 0.0;
    double ttl_us;

    if (node >= 0 && node < view->nnodes) {
        delay_us = (double)view->node[node].delay_us;
        /* A lag known in bytes only: it is not older than the time between two checks. */
        if (!view->node[node].delay_is_time && delay_us <= 0.0 && view->node[node].delay_bytes > 0)
            delay_us = (double)conf->sr_check_period_ms * 1000.0;
    }
    ttl_us = delay_us * conf->track_table_mutation_ttl_factor;
    if (ttl_us < TTL_MIN_US)
        return TTL_MIN_US;
    return ttl_us > (double)TTL_MAX_US ? TTL_MAX_US : (int64_t)ttl_us;
}

static bool holds(const struct route_marks *m, const struct conf *conf, uint64_t key,
    int64_t now_us, int64_t ttl_us)
{
    const struct mark *bucket = &m->mark[(key % m->buckets) * m->per_bucket];
    uint32_t i;

    for (i = 0; i < m->per_bucket; i++) {
        const struct mark *k = &bucket[i];
        if (atomic_load(&k->key) == key && !is_stale(k, conf, now_us, ttl_us) &&
            atomic_load(&k->key) == key)
            return true;
    }
    return false;
}

bool route_marks_is_fresh(const struct route_marks *const *all, unsigned n, const struct conf *conf,
    uint64_t key, int64_t now_us, int64_t ttl_us)
{
    unsigned i;

    for (i = 0; i < n; i++)
        if (atomic_load(&all[i]->started_us) != 0 && holds(all[i], conf, key, now_us, ttl_us))
            return true;
    return false;
}

bool route_marks_is_cold(
    const struct route_marks *const *all, unsigned n, const struct conf *conf, int64_t now_us)
{
    int64_t cold_us = conf->track_table_mutation_cold_start_duration_ms * 1000;
    unsigned i;

    for (i = 0; i < n; i++) {
        int64_t started_us = atomic_load(&all[i]->started_us);
        if (started_us != 0 && now_us - started_us < cold_us)
            return true;
    }
    return false;
}
