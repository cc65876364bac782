/* SPDX-License-Identifier: PostgreSQL
 * cache_stream.c: the region CACHE_STREAMS.
 * Runs in: invalidator (writing), workers (adding names, reading), supervisor. A worker that dies
 * while it adds a name leaves a row that nobody uses. */
#include "config.h"

#include "cache/cache_stream.h"

#include "base/hot.h"
#include "sys/clock.h"

#define LEAVE_US (10 * CLOCK_US_PER_S)

enum name_state { NAME_FREE, NAME_WRITTEN, NAME_THERE };

struct stream_slot {
    _Atomic uint32_t name_state;
    char name[CACHE_STREAM_BYTES];
    _Atomic int64_t good_until_us;
    _Atomic int64_t asked_us;
    _Atomic int64_t leave_until_us;
    struct shm_seq seq;
    struct cache_stream_row row;
} __attribute__((aligned(64)));

struct cache_streams {
    _Atomic int32_t primary;
    _Atomic uint64_t primary_epoch;
    struct stream_slot slot[CACHE_STREAM_MAX];
};

static const char *const state_texts[] = {
#define STATE_TEXT(sym, text) text,
    CACHE_STREAM_STATES(STATE_TEXT)};

const char *cache_stream_state_text(enum cache_stream_state state)
{
    return state < CACHE_STREAM_STATE_COUNT ? state_texts[state] : "";
}

size_t cache_streams_bytes(void)
{
    return sizeof(struct cache_streams);
}

struct cache_streams *cache_streams_of(const struct shm *shm)
{
    return shm_get(shm, SHM_CACHE_STREAMS);
}

static bool is_named(const struct stream_slot *slot, struct slice database)
{
    return atomic_load_explicit(&slot->name_state, memory_order_acquire) == NAME_THERE &&
           slice_eq_str(database, slot->name);
}

/* Two workers may add one name at a time: the later row is found by nobody. */
int cache_stream_find(struct cache_streams *s, struct slice database)
{
    int i;

    if (database.n == 0 || database.n >= CACHE_STREAM_BYTES)
        return CACHE_STREAM_NONE;
    for (i = 0; i < CACHE_STREAM_MAX; i++)
        if (is_named(&s->slot[i], database))
            return i;
    for (i = 0; i < CACHE_STREAM_MAX; i++) {
        struct stream_slot *slot = &s->slot[i];
        uint32_t is_free = NAME_FREE;

        if (is_named(slot, database))
            return i;
        if (!atomic_compare_exchange_strong(&slot->name_state, &is_free, NAME_WRITTEN))
            continue;
        memcpy(slot->name, database.p, database.n);
        slot->name[database.n] = '\0';
        atomic_store_explicit(&slot->name_state, NAME_THERE, memory_order_release);
        return i;
    }
    return CACHE_STREAM_NONE;
}

/* Only the first one in a second writes: the line stays in all caches. */
HOT bool cache_stream_is_good(struct cache_streams *s, int n, int64_t now_us)
{
    struct stream_slot *slot;

    if (n < 0 || n >= CACHE_STREAM_MAX)
        return false;
    slot = &s->slot[n];
    if (now_us - atomic_load_explicit(&slot->asked_us, memory_order_relaxed) > CLOCK_US_PER_S)
        atomic_store_explicit(&slot->asked_us, now_us, memory_order_relaxed);
    return atomic_load_explicit(&slot->good_until_us, memory_order_acquire) > now_us;
}

bool cache_stream_is_followed(const struct cache_streams *s, int n, int64_t now_us)
{
    int64_t until_us;

    if (n < 0 || n >= CACHE_STREAM_MAX)
        return false;
    until_us = atomic_load_explicit(&s->slot[n].good_until_us, memory_order_acquire);
    return until_us > now_us && until_us != INT64_MAX;
}

bool cache_stream_row(const struct cache_streams *s, int n, char name[CACHE_STREAM_BYTES],
    struct cache_stream_row *out)
{
    const struct stream_slot *slot;
    uint32_t seen;

    if (n < 0 || n >= CACHE_STREAM_MAX)
        return false;
    slot = &s->slot[n];
    if (atomic_load_explicit(&slot->name_state, memory_order_acquire) != NAME_THERE)
        return false;
    do {
        seen = shm_read_begin(&slot->seq);
        *out = slot->row;
    } while (shm_read_retry(&slot->seq, seen));
    out->why[CACHE_STREAM_WHY_BYTES - 1] = '\0';
    if (name != NULL)
        memcpy(name, slot->name, CACHE_STREAM_BYTES);
    return true;
}

bool cache_stream_shows_good(const struct cache_streams *s, int n)
{
    return atomic_load(&s->slot[n].good_until_us) > clock_mono_us();
}

void cache_stream_publish(struct cache_streams *s, int n, const struct cache_stream_row *row)
{
    struct stream_slot *slot = &s->slot[n];

    shm_write_begin(&slot->seq);
    slot->row = *row;
    shm_write_end(&slot->seq);
}

void cache_stream_lease(struct cache_streams *s, int n, int64_t until_us)
{
    atomic_store_explicit(&s->slot[n].good_until_us, until_us, memory_order_release);
}

void cache_stream_let_go(struct cache_streams *s, struct slice database, int64_t now_us)
{
    int i;

    for (i = 0; s != NULL && i < CACHE_STREAM_MAX; i++) {
        if (!is_named(&s->slot[i], database))
            continue;
        atomic_store(&s->slot[i].leave_until_us, now_us + LEAVE_US);
        atomic_store(&s->slot[i].good_until_us, 0);
    }
}

int64_t cache_stream_leave_until_us(const struct cache_streams *s, int n)
{
    return atomic_load(&s->slot[n].leave_until_us);
}

int64_t cache_stream_asked_us(const struct cache_streams *s, int n)
{
    return atomic_load_explicit(&s->slot[n].asked_us, memory_order_relaxed);
}

struct cache_stream_primary cache_stream_primary(const struct cache_streams *s)
{
    return (struct cache_stream_primary){atomic_load(&s->primary), atomic_load(&s->primary_epoch)};
}

void cache_stream_set_primary(struct cache_streams *s, struct cache_stream_primary p)
{
    atomic_store(&s->primary, p.node);
    atomic_store(&s->primary_epoch, p.epoch);
}

/* With `statement` nothing depended on it. */
void cache_streams_died(struct shm *shm)
{
    struct cache_streams *s = cache_streams_of(shm);
    int i;

    for (i = 0; s != NULL && i < CACHE_STREAM_MAX; i++)
        if (atomic_load(&s->slot[i].good_until_us) != INT64_MAX)
            atomic_store(&s->slot[i].good_until_us, 0);
}
