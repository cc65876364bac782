/* SPDX-License-Identifier: PostgreSQL
 * cache_shard.c: changes of a shard: entries put in, driven out and removed, under its lock.
 * Runs in: workers. Readers come at any time: a row's sequence number is odd while it changes, and
 * has moved on before its bytes are another entry's. A holder of the lock who dies leaves a shard
 * of which nothing is believed: whoever takes the lock next empties it.
 *
 * Who goes when there is no room: new entries stand in a list in order of arrival. Whoever comes to
 * its end and was asked for meanwhile moves to the list of the proven ones, which may have four
 * fifths of the space; from its end entries fall back among the new. So a scan, whose entries
 * nobody asks for again, drives out only itself. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "sys/clock.h"

#include "cache_int.h"

/* Who holds a lock longer than this is stopped, or not given a processor: then nothing is kept. */
#define LOCK_WAIT_NS 3000000
/* Entries that are moved in the search of one that can go. */
#define MAX_MOVES      24
#define PROVEN_PERCENT 80

static void list_add(const struct shard_ref *r, uint32_t i, enum row_list which)
{
    struct cache_list *list = &r->s->list[which];
    struct cache_row *row = &r->rows[i];

    row->list = (uint8_t)which;
    row->prev_used = 0;
    row->next_used = list->head;
    if (list->head != 0)
        r->rows[list->head].prev_used = i;
    else
        list->tail = i;
    list->head = i;
    list->units += space_units(r->arena, atomic_load_explicit(&row->at, memory_order_relaxed));
}

static void list_del(const struct shard_ref *r, uint32_t i)
{
    struct cache_row *row = &r->rows[i];
    struct cache_list *list = &r->s->list[row->list];

    if (row->prev_used != 0)
        r->rows[row->prev_used].next_used = row->next_used;
    else
        list->head = row->next_used;
    if (row->next_used != 0)
        r->rows[row->next_used].prev_used = row->prev_used;
    else
        list->tail = row->prev_used;
    list->units -= space_units(r->arena, atomic_load_explicit(&row->at, memory_order_relaxed));
}

/* After the lock's holder died: every row moves on, so that a reader in the middle of one notices,
 * and then there is nothing. */
static void shard_reset(const struct shard_ref *r)
{
    uint32_t i;

    for (i = 1; i < r->s->nrows_touched && i < r->c->shape.nrows; i++) {
        uint32_t seq = atomic_load_explicit(&r->rows[i].seq, memory_order_relaxed);

        atomic_store_explicit(&r->rows[i].seq, (seq | 1) + 1, memory_order_relaxed);
        atomic_store_explicit(&r->rows[i].at, 0, memory_order_relaxed);
        cache_step(r->c);
    }
    atomic_thread_fence(memory_order_seq_cst);
    for (i = 0; i < r->c->shape.nheads; i++)
        atomic_store_explicit(&r->heads[i], 0, memory_order_relaxed);
    cache_step(r->c);
    memset(r->s->list, 0, sizeof r->s->list);
    memset(r->s->share, 0, sizeof r->s->share);
    r->s->free_row = 0;
    cache_step(r->c);
    /* Rows that were used go into the chain of free ones: their sequence numbers go on. */
    for (i = 1; i < r->s->nrows_touched && i < r->c->shape.nrows; i++) {
        r->rows[i].next_used = r->s->free_row;
        r->rows[i].list = ROW_FREE;
        r->s->free_row = i;
    }
    atomic_store(&r->s->nentries, 0);
    space_init(&r->s->space, r->arena, r->c->shape.nunits);
    cache_step(r->c);
    atomic_fetch_add(&r->s->resets, 1);
}

/* The answer of a call that takes the lock. */
static int taken(const struct shard_ref *r, int rc)
{
    if (rc == EOWNERDEAD) {
        pthread_mutex_consistent(&r->s->lock);
        shard_reset(r);
        return 0;
    }
    return rc == 0 ? 0 : -1;
}

int shard_lock(const struct shard_ref *r)
{
    int rc = pthread_mutex_trylock(&r->s->lock);

    if (rc == EBUSY) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOCK_WAIT_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        rc = pthread_mutex_timedlock(&r->s->lock, &until);
    }
    return taken(r, rc);
}

void shard_unlock(const struct shard_ref *r)
{
    cache_step(r->c);
    pthread_mutex_unlock(&r->s->lock);
}

uint32_t shard_find(const struct shard_ref *r, uint64_t hash, struct slice key)
{
    uint32_t i = r->heads[shard_tag(hash) & (r->c->shape.nheads - 1)];

    while (i != 0) {
        const struct cache_row *row = &r->rows[i];

        if (row->tag == shard_tag(hash) && row->key_len == key.n &&
            memcmp(space_peek(r->arena, r->c->shape.nunits, row->at, 0) +
                       entry_key_at(row->ncells, row->ntables),
                key.p, key.n) == 0)
            return i;
        i = row->next;
    }
    return 0;
}

static void chain_del(const struct shard_ref *r, uint32_t i)
{
    _Atomic uint32_t *link = &r->heads[r->rows[i].tag & (r->c->shape.nheads - 1)];

    while (atomic_load_explicit(link, memory_order_relaxed) != i) {
        ASSERT(atomic_load_explicit(link, memory_order_relaxed) != 0);
        link = &r->rows[atomic_load_explicit(link, memory_order_relaxed)].next;
    }
    atomic_store_explicit(link, r->rows[i].next, memory_order_release);
}

/* Counts the entry's tables up or down. */
static void share_count(const struct shard_ref *r, uint32_t i, int sign)
{
    const struct cache_row *row = &r->rows[i];
    uint64_t bytes = (uint64_t)space_units(r->arena, row->at) * SPACE_UNIT;
    const char *head = space_peek(r->arena, r->c->shape.nunits, row->at, 0);
    uint32_t k;

    for (k = 0; k < row->ntables; k++) {
        uint16_t table;

        memcpy(&table, head + entry_key_at(row->ncells, k), sizeof table);
        r->s->share[table % CACHE_TABLES].nentries += (uint32_t)sign;
        r->s->share[table % CACHE_TABLES].bytes += (uint64_t)(int64_t)sign * bytes;
    }
}

void shard_remove(const struct shard_ref *r, uint32_t i)
{
    struct cache_row *row = &r->rows[i];
    uint32_t at = row->at;
    uint32_t seq = row->seq;

    cache_step(r->c);
    chain_del(r, i);
    cache_step(r->c);
    atomic_store_explicit(&row->seq, seq + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    share_count(r, i, -1);
    list_del(r, i);
    cache_step(r->c);
    atomic_store_explicit(&row->at, 0, memory_order_relaxed);
    atomic_store_explicit(&row->seq, seq + 2, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    row->list = ROW_FREE;
    row->next_used = r->s->free_row;
    r->s->free_row = i;
    cache_step(r->c);
    space_give(&r->s->space, r->arena, at);
    cache_step(r->c);
    atomic_fetch_sub(&r->s->nentries, 1);
}

static bool is_dead(const struct shard_ref *r, const struct cache_row *row, int64_t now_us)
{
    uint32_t cell[CACHE_DEPS_MAX];

    if (row->expire_s != 0 && now_us / CLOCK_US_PER_S >= row->expire_s)
        return true;
    memcpy(
        cell, space_peek(r->arena, r->c->shape.nunits, row->at, 0), row->ncells * sizeof cell[0]);
    return cache_gens_sum(r->c->gens, cell, row->ncells) != row->sum;
}

static void move(const struct shard_ref *r, uint32_t i, enum row_list to)
{
    struct cache_row *row = &r->rows[i];
    uint8_t hits = atomic_load_explicit(&row->hits, memory_order_relaxed);

    list_del(r, i);
    cache_step(r->c);
    list_add(r, i, to);
    atomic_store_explicit(&row->hits, hits / 2, memory_order_relaxed);
    cache_step(r->c);
}

/* Entries fall back among the new until the proven ones have their share again, or few are new. */
static void demote(const struct shard_ref *r)
{
    const struct cache_list *proven = &r->s->list[ROW_PROVEN];
    uint64_t most = (uint64_t)r->c->shape.nunits * PROVEN_PERCENT / 100;
    int n;

    for (n = 0; n < MAX_MOVES && proven->tail != 0 &&
                (proven->units > most || r->s->list[ROW_NEW].tail == 0);
         n++)
        move(r, proven->tail, ROW_NEW);
}

/* Drives out one entry of the shard for a key that was asked for `asked` times lately. */
static enum cache_fill_reason evict(const struct shard_ref *r, unsigned asked, int64_t now_us)
{
    unsigned moves;

    for (moves = 0;; moves++) {
        uint32_t i;
        unsigned hits;

        demote(r);
        i = r->s->list[ROW_NEW].tail;
        if (i == 0)
            return CACHE_FILL_FULL;
        if (is_dead(r, &r->rows[i], now_us)) {
            shard_remove(r, i);
            return CACHE_FILL_OK;
        }
        hits = atomic_load_explicit(&r->rows[i].hits, memory_order_relaxed);
        if (hits > 0 && moves < MAX_MOVES) {
            move(r, i, ROW_PROVEN);
            continue;
        }
        if (asked < hits)
            return CACHE_FILL_RARE;
        /* Should it come back it is no stranger. */
        if (hits > 0)
            sketch_add(r, r->rows[i].tag, hits);
        shard_remove(r, i);
        atomic_fetch_add_explicit(&r->s->evicted, 1, memory_order_relaxed);
        return CACHE_FILL_OK;
    }
}

static uint32_t count_entries(struct cache *c)
{
    uint32_t n = 0;
    uint32_t i;

    for (i = 0; i < c->shape.nshards; i++)
        n += atomic_load_explicit(&shard_at(c, i).s->nentries, memory_order_relaxed);
    return n;
}

/* The limit is reached and this shard has nothing to give: another has. */
static enum cache_fill_reason evict_elsewhere(
    const struct shard_ref *r, unsigned asked, int64_t now_us)
{
    enum cache_fill_reason reason = CACHE_FILL_FULL;
    uint32_t i;

    for (i = 0; i < r->c->shape.nshards && reason != CACHE_FILL_OK; i++) {
        struct shard_ref other = shard_at(r->c, i);

        if (other.s == r->s || atomic_load(&other.s->nentries) == 0 ||
            taken(&other, pthread_mutex_trylock(&other.s->lock)) != 0)
            continue;
        reason = evict(&other, asked, now_us);
        shard_unlock(&other);
    }
    return reason;
}

static uint32_t row_take(const struct shard_ref *r)
{
    uint32_t i = r->s->free_row;

    if (i != 0) {
        r->s->free_row = r->rows[i].next_used;
        return i;
    }
    if (r->s->nrows_touched == r->c->shape.nrows)
        return 0;
    return r->s->nrows_touched++;
}

static enum cache_fill_reason make_row(
    const struct shard_ref *r, unsigned asked, int64_t now_us, uint32_t *out)
{
    enum cache_fill_reason reason = CACHE_FILL_OK;

    while (reason == CACHE_FILL_OK && count_entries(r->c) >= r->c->shape.max_entries)
        reason = atomic_load(&r->s->nentries) > 0 ? evict(r, asked, now_us)
                                                  : evict_elsewhere(r, asked, now_us);
    while (reason == CACHE_FILL_OK && (*out = row_take(r)) == 0)
        reason = evict(r, asked, now_us);
    return reason;
}

static void row_give(const struct shard_ref *r, uint32_t i)
{
    r->rows[i].next_used = r->s->free_row;
    r->s->free_row = i;
}

static void row_fill(
    const struct shard_ref *r, uint32_t i, const struct shard_entry *e, uint32_t at)
{
    struct cache_row *row = &r->rows[i];
    _Atomic uint32_t *head = &r->heads[shard_tag(e->hash) & (r->c->shape.nheads - 1)];
    uint32_t seq = row->seq;

    atomic_store_explicit(&row->seq, seq + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    cache_step(r->c);
    space_write(r->arena, at, 0, e->head, e->head_len);
    cache_step(r->c);
    space_write(r->arena, at, e->head_len, e->data, e->len);
    row->len = e->len;
    row->key_len = e->key_len;
    row->took = e->took;
    row->expire_s = e->expire_s;
    row->ncells = e->ncells;
    row->ntables = e->ntables;
    row->sum = e->sum;
    atomic_store_explicit(&row->hits, 0, memory_order_relaxed);
    atomic_store_explicit(&row->tag, shard_tag(e->hash), memory_order_relaxed);
    atomic_store_explicit(&row->at, at, memory_order_relaxed);
    atomic_store_explicit(
        &row->next, atomic_load_explicit(head, memory_order_relaxed), memory_order_relaxed);
    cache_step(r->c);
    atomic_store_explicit(&row->seq, seq + 2, memory_order_release);
    list_add(r, i, ROW_NEW);
    share_count(r, i, 1);
    cache_step(r->c);
    atomic_store_explicit(head, i, memory_order_release);
    atomic_fetch_add(&r->s->nentries, 1);
}

enum cache_fill_reason shard_put(
    const struct shard_ref *r, const struct shard_entry *e, int64_t now_us)
{
    struct slice key = slice_of(e->head + entry_key_at(e->ncells, e->ntables), e->key_len);
    unsigned asked = sketch_add(r, shard_tag(e->hash), 1);
    uint32_t old = shard_find(r, e->hash, key);
    enum cache_fill_reason reason;
    uint32_t i = 0;
    uint32_t at;

    if (old != 0)
        shard_remove(r, old);
    if ((e->head_len + (size_t)e->len + SPACE_HEAD) / SPACE_UNIT >= r->s->space.nunits / 2)
        return CACHE_FILL_LARGE;
    reason = make_row(r, asked, now_us, &i);
    if (reason != CACHE_FILL_OK)
        return reason;
    cache_step(r->c);
    while ((at = space_take(&r->s->space, r->arena, e->head_len + e->len, e->head_len)) == 0) {
        reason = evict(r, asked, now_us);
        if (reason != CACHE_FILL_OK) {
            row_give(r, i);
            return reason;
        }
    }
    cache_step(r->c);
    row_fill(r, i, e, at);
    return CACHE_FILL_OK;
}
