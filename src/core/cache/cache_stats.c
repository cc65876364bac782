/* SPDX-License-Identifier: PostgreSQL
 * cache_stats.c: counters of the query cache.
 * Runs in: workers and the invalidator, which count in rows of their own; whoever shows them. A
 * process that takes a dead one's slot goes on with its rows: counters never go back. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "ipc/rows.h"
#include "sys/clock.h"

#include "cache_int.h"

/* Texts of which one process keeps how much they saved. The one that saved least makes room. */
#define QUERY_WAYS 4
#define QUERY_SETS 64
#define PACK_BITS  11
#define PACK_ABOVE (1U << PACK_BITS)

struct table_counts {
    _Atomic uint64_t hits;
    _Atomic uint64_t misses;
    _Atomic uint64_t fills[CACHE_FILL_REASON_COUNT];
    _Atomic uint64_t row_writes;
    _Atomic uint64_t table_writes;
    _Atomic int64_t last_us; /* wall clock */
    _Atomic int64_t lag_us;
    _Atomic uint32_t last_by_stream;
};

struct query_counts {
    struct shm_seq seq;
    uint32_t text_len;
    uint64_t hash; /* 0: free */
    uint64_t hits;
    uint64_t saved_us;
    char text[CACHE_TEXT_BYTES];
};

struct proc_counts {
    struct table_counts all; /* of every table together, each statement once */
    struct table_counts table[CACHE_TABLES];
    struct query_counts query[QUERY_SETS * QUERY_WAYS];
} __attribute__((aligned(64)));

/* The name of a table. `cell` is taken first, then anybody may write the name: all write the same.
 */
struct table_name {
    _Atomic uint64_t cell; /* 0: free */
    _Atomic uint32_t is_ready;
    char name[3][CACHE_NAME_PART];
};

uint16_t cache_time_pack(uint32_t us)
{
    uint32_t shift = 0;

    while (us >> shift >= PACK_ABOVE)
        shift++;
    return (uint16_t)(shift << PACK_BITS | us >> shift);
}

uint32_t cache_time_unpack(uint16_t packed)
{
    return (uint32_t)(packed & (PACK_ABOVE - 1)) << (packed >> PACK_BITS);
}

size_t cache_stats_bytes(int nprocs)
{
    return (size_t)nprocs * sizeof(struct proc_counts);
}

size_t cache_tables_bytes(void)
{
    return CACHE_TABLES * sizeof(struct table_name);
}

static struct proc_counts *counts_of(const struct cache *c, uint32_t proc)
{
    return (struct proc_counts *)(void *)((char *)c->region + c->shape.stats_at) + proc;
}

static struct table_name *names_of(const struct cache *c)
{
    return (struct table_name *)(void *)((char *)c->region + c->shape.tables_at);
}

static void add(_Atomic uint64_t *cell, uint64_t n)
{
    atomic_store_explicit(
        cell, atomic_load_explicit(cell, memory_order_relaxed) + n, memory_order_relaxed);
}

uint16_t cache_table_find(struct cache *c, cache_cell table)
{
    const struct table_name *names = names_of(c);
    uint32_t i = (uint32_t)table % CACHE_TABLES;
    uint32_t n;

    for (n = 0; n < CACHE_TABLES; n++, i = (i + 1) % CACHE_TABLES) {
        uint64_t there = atomic_load_explicit(&names[i].cell, memory_order_acquire);

        if (i != 0 && there == table)
            return (uint16_t)i;
        if (i != 0 && there == 0)
            return 0;
    }
    return 0;
}

uint16_t cache_table_number(struct cache *c, cache_cell table, struct slice database,
    struct slice schema, struct slice name)
{
    struct table_name *names = names_of(c);
    uint32_t i = (uint32_t)table % CACHE_TABLES;
    uint32_t n;

    for (n = 0; n < CACHE_TABLES; n++, i = (i + 1) % CACHE_TABLES) {
        uint64_t there = i == 0 ? 1 : atomic_load_explicit(&names[i].cell, memory_order_acquire);

        if (i == 0 || (there != 0 && there != table))
            continue;
        if (there == 0 && !atomic_compare_exchange_strong(&names[i].cell, &there, table) &&
            there != table)
            continue;
        if (atomic_load_explicit(&names[i].is_ready, memory_order_acquire) == 0) {
            rows_set_text(names[i].name[0], CACHE_NAME_PART, database.p, database.n);
            rows_set_text(names[i].name[1], CACHE_NAME_PART, schema.p, schema.n);
            rows_set_text(names[i].name[2], CACHE_NAME_PART, name.p, name.n);
            atomic_store_explicit(&names[i].is_ready, 1, memory_order_release);
        }
        return (uint16_t)i;
    }
    return 0;
}

static void note_query(struct proc_counts *p, uint64_t hash, struct slice text, uint32_t saved_us)
{
    struct query_counts *set = &p->query[hash % QUERY_SETS * QUERY_WAYS];
    struct query_counts *q = set;
    int i;

    for (i = 0; i < QUERY_WAYS && set[i].hash != hash; i++)
        if (set[i].saved_us < q->saved_us)
            q = &set[i];
    if (i < QUERY_WAYS)
        q = &set[i];
    shm_write_begin(&q->seq);
    if (q->hash != hash) {
        q->hash = hash;
        q->hits = 0;
        q->saved_us = 0;
        q->text_len = (uint32_t)rows_clip(text.p, text.n, sizeof q->text - 1);
        rows_set_text(q->text, sizeof q->text, text.p, q->text_len);
    }
    q->hits++;
    q->saved_us += saved_us;
    shm_write_end(&q->seq);
}

void cache_note_hit(
    struct cache *c, const struct cache_hit *hit, uint64_t text_hash, struct slice text)
{
    struct proc_counts *p = counts_of(c, (uint32_t)c->proc);
    uint32_t i;

    add(&p->all.hits, 1);
    for (i = 0; i < hit->ntables; i++)
        add(&p->table[hit->table[i] % CACHE_TABLES].hits, 1);
    if (text_hash != 0)
        note_query(p, text_hash, text, hit->took_us);
}

void cache_note_miss(struct cache *c, const uint16_t *tables, uint32_t ntables)
{
    struct proc_counts *p = counts_of(c, (uint32_t)c->proc);
    uint32_t i;

    add(&p->all.misses, 1);
    for (i = 0; i < ntables; i++)
        add(&p->table[tables[i] % CACHE_TABLES].misses, 1);
}

void cache_note_fill(
    struct cache *c, const uint16_t *tables, uint32_t ntables, enum cache_fill_reason reason)
{
    struct proc_counts *p = counts_of(c, (uint32_t)c->proc);
    uint32_t i;

    add(&p->all.fills[reason], 1);
    for (i = 0; i < ntables; i++)
        add(&p->table[tables[i] % CACHE_TABLES].fills[reason], 1);
}

static void note_write(struct table_counts *t, bool by_row, bool by_stream, int64_t lag_us)
{
    add(by_row ? &t->row_writes : &t->table_writes, 1);
    atomic_store_explicit(&t->last_us, clock_wall_us(), memory_order_relaxed);
    atomic_store_explicit(&t->last_by_stream, by_stream, memory_order_relaxed);
    if (by_stream)
        atomic_store_explicit(&t->lag_us, lag_us, memory_order_relaxed);
}

void cache_note_write(struct cache *c, uint16_t table, bool by_row, bool by_stream, int64_t lag_us)
{
    struct proc_counts *p = counts_of(c, (uint32_t)c->proc);

    note_write(&p->all, by_row, by_stream, lag_us);
    note_write(&p->table[table % CACHE_TABLES], by_row, by_stream, lag_us);
}

void cache_note_writes(struct cache *c, const cache_cell *cells, size_t n, bool by_row)
{
    size_t i;

    for (i = 0; i < n; i++) {
        uint16_t table = cache_table_find(c, cells[i]);

        /* Only tables that results depend on have numbers. */
        if (table != 0)
            cache_note_write(c, table, by_row, false, 0);
    }
}

static uint64_t get(const _Atomic uint64_t *cell)
{
    return atomic_load_explicit(cell, memory_order_relaxed);
}

/* What is read here is for people: a number may be a moment older than its neighbour. */
void cache_totals(struct cache *c, struct cache_totals *out)
{
    uint32_t i;
    int k;

    memset(out, 0, sizeof *out);
    for (i = 0; i < c->shape.nprocs; i++) {
        const struct table_counts *t = &counts_of(c, i)->all;

        out->hits += get(&t->hits);
        out->misses += get(&t->misses);
        out->row_writes += get(&t->row_writes);
        out->table_writes += get(&t->table_writes);
        for (k = 0; k < CACHE_FILL_REASON_COUNT; k++)
            out->fills[k] += get(&t->fills[k]);
    }
    for (i = 0; i < c->shape.nshards; i++) {
        const struct cache_shard *s = shard_at(c, i).s;
        uint64_t nfree = *(const volatile uint32_t *)&s->space.nfree;

        out->nentries += atomic_load_explicit(&s->nentries, memory_order_relaxed);
        out->free_bytes += nfree * SPACE_UNIT;
        out->used_bytes += (s->space.nunits - 2 - nfree) * SPACE_UNIT;
        out->wasted_bytes += (uint64_t) * (const volatile uint32_t *)&s->space.nsmall * SPACE_UNIT;
        out->evicted += get(&s->evicted);
        out->resets += get(&s->resets);
    }
    out->nhash = (uint64_t)c->shape.nheads * c->shape.nshards;
    out->since_us = c->region->since_us;
    out->off_bits = cache_gens_off_bits(c->gens, clock_mono_us());
    out->far_untold = get(&c->region->far.failures);
    for (i = 0; i < CACHE_FAR_SERVERS; i++) {
        struct cache_far_server *s = &c->region->far.server[i];

        out->far_failures += get(&s->timeouts) + get(&s->errors);
        out->far_down += atomic_load_explicit(&s->backoff_s, memory_order_relaxed) != 0;
    }
}

bool cache_far_row(struct cache *c, unsigned i, struct cache_far_row *out)
{
    const struct cache_far_state *far = &c->region->far;
    const struct cache_far_server *s;
    int64_t left_us;

    if (i >= far->nservers)
        return false;
    s = &far->server[i];
    memset(out, 0, sizeof *out);
    memcpy(out->host, s->host, sizeof out->host);
    out->port = s->port;
    out->is_down = atomic_load_explicit(&s->backoff_s, memory_order_relaxed) != 0;
    left_us = atomic_load_explicit(&s->down_until_us, memory_order_relaxed) - clock_mono_us();
    if (out->is_down)
        out->retry_at_us = clock_wall_us() + left_us;
    out->failed_at_us = atomic_load_explicit(&s->failed_at_us, memory_order_relaxed);
    out->hits = get(&s->hits);
    out->misses = get(&s->misses);
    out->kept = get(&s->kept);
    out->told = get(&s->told);
    out->timeouts = get(&s->timeouts);
    out->errors = get(&s->errors);
    return true;
}

static void add_counts(const struct table_counts *t, struct cache_table_row *out)
{
    int64_t last_us = atomic_load_explicit(&t->last_us, memory_order_relaxed);
    int k;

    out->hits += get(&t->hits);
    out->misses += get(&t->misses);
    out->row_writes += get(&t->row_writes);
    out->table_writes += get(&t->table_writes);
    for (k = 0; k < CACHE_FILL_REASON_COUNT; k++)
        out->fills[k] += get(&t->fills[k]);
    if (last_us > out->last_us) {
        out->last_us = last_us;
        out->last_by_stream = atomic_load_explicit(&t->last_by_stream, memory_order_relaxed) != 0;
    }
    if (atomic_load_explicit(&t->lag_us, memory_order_relaxed) > out->lag_us)
        out->lag_us = atomic_load_explicit(&t->lag_us, memory_order_relaxed);
}

bool cache_table_row(struct cache *c, unsigned i, struct cache_table_row *out)
{
    struct table_name *names = names_of(c);
    uint32_t k;

    ASSERT(i < CACHE_TABLES);
    memset(out, 0, sizeof *out);
    if (i != 0 && atomic_load_explicit(&names[i].is_ready, memory_order_acquire) == 0)
        return false;
    if (i != 0)
        memcpy(out->name, names[i].name, sizeof out->name);
    for (k = 0; k < c->shape.nprocs; k++)
        add_counts(&counts_of(c, k)->table[i], out);
    for (k = 0; k < c->shape.nshards; k++) {
        const volatile struct cache_share *share = &shard_at(c, k).s->share[i];

        out->nentries += share->nentries;
        out->bytes += share->bytes;
    }
    return i != 0 || out->hits + out->misses + out->nentries > 0;
}

static bool query_copy(const struct query_counts *q, struct cache_query_row *out)
{
    uint32_t n;

    do {
        n = shm_read_begin(&q->seq);
        out->hash = q->hash;
        out->hits = q->hits;
        out->saved_us = q->saved_us;
        memcpy(out->text, q->text, sizeof out->text);
    } while (shm_read_retry(&q->seq, n));
    out->text[sizeof out->text - 1] = '\0';
    return out->hash != 0;
}

static int compare_hash(const void *a, const void *b)
{
    const struct cache_query_row *x = a;
    const struct cache_query_row *y = b;

    return (x->hash > y->hash) - (x->hash < y->hash);
}

/* Adds up what several processes have of one text; returns how many texts there are. */
static unsigned merge(struct cache_query_row *all, unsigned n)
{
    unsigned to = 0;
    unsigned i;

    qsort(all, n, sizeof *all, compare_hash);
    for (i = 1; i < n; i++)
        if (all[i].hash == all[to].hash) {
            all[to].hits += all[i].hits;
            all[to].saved_us += all[i].saved_us;
        } else {
            all[++to] = all[i];
        }
    return n == 0 ? 0 : to + 1;
}

static int compare_saved(const void *a, const void *b)
{
    const struct cache_query_row *x = a;
    const struct cache_query_row *y = b;

    return (x->saved_us < y->saved_us) - (x->saved_us > y->saved_us);
}

unsigned cache_top_queries(struct cache *c, struct cache_query_row *out, unsigned max)
{
    struct cache_query_row *all =
        mem_alloc((size_t)c->shape.nprocs * QUERY_SETS * QUERY_WAYS * sizeof *all);
    unsigned n = 0;
    uint32_t i;
    uint32_t k;

    for (i = 0; i < c->shape.nprocs; i++)
        for (k = 0; k < QUERY_SETS * QUERY_WAYS; k++)
            if (query_copy(&counts_of(c, i)->query[k], &all[n]))
                n++;
    n = merge(all, n);
    qsort(all, n, sizeof *all, compare_saved);
    if (n > max)
        n = max;
    memcpy(out, all, n * sizeof *out);
    mem_free(all);
    return n;
}
