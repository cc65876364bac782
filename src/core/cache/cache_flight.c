/* SPDX-License-Identifier: PostgreSQL
 * cache_flight.c: who is asking the server for which key, so that others may wait for it.
 * Runs in: workers. A place is found by the key's hash and taken by one compare-and-swap of hash
 * and process together, so that there is no moment at which it is taken by nobody. Two keys that
 * want one place do not wait for each other: the second goes alone. */
#include "config.h"

#include "base/assert.h"

#include "cache_int.h"

#define FLIGHT_BITS 14
#define FLIGHTS     (1U << FLIGHT_BITS)
/* Nobody waits for one that is older: its owner has forgotten it. */
#define FLIGHT_MAX_US INT64_C(60000000)

/* `who`: the hash without its lowest bits, which say where the place is, and in their stead 1 + the
 * process slot of who asks; 0: free. */
struct flight {
    _Atomic uint64_t who;
    _Atomic uint64_t waiters;
    _Atomic int64_t since_us; /* a moment after `who`; 0 until then */
};

size_t cache_flights_bytes(void)
{
    return FLIGHTS * sizeof(struct flight);
}

static struct flight *flight_at(const struct cache *c, uint64_t hash)
{
    return (struct flight *)(void *)((char *)c->region + c->shape.flights_at) +
           (hash & (FLIGHTS - 1));
}

static uint64_t who_is(uint64_t hash, int proc)
{
    ASSERT(proc + 1 < (int)FLIGHTS);
    return hash >> FLIGHT_BITS << FLIGHT_BITS | (uint64_t)(proc + 1);
}

enum cache_turn cache_flight_enter(struct cache *c, const struct cache_key *key, int64_t now_us)
{
    struct flight *f = flight_at(c, key->hash);
    uint64_t who = atomic_load(&f->who);

    for (;;) {
        int64_t since_us;

        if (who == 0) {
            if (!atomic_compare_exchange_strong(&f->who, &who, who_is(key->hash, c->proc)))
                continue;
            cache_step(c);
            atomic_store(&f->since_us, now_us);
            return CACHE_TURN_FILL;
        }
        since_us = atomic_load(&f->since_us);
        if (who >> FLIGHT_BITS != key->hash >> FLIGHT_BITS ||
            (since_us != 0 && now_us - since_us > FLIGHT_MAX_US))
            return CACHE_TURN_ALONE;
        atomic_fetch_or(&f->waiters, UINT64_C(1) << ((unsigned)c->ordinal % 64));
        if (atomic_load(&f->who) == who)
            return CACHE_TURN_WAIT; /* whoever frees the place looks for waiters after that */
        who = atomic_load(&f->who);
    }
}

bool cache_flight_is_on(const struct cache *c, uint64_t hash, int64_t now_us)
{
    const struct flight *f = flight_at(c, hash);
    int64_t since_us = atomic_load(&f->since_us);

    return atomic_load(&f->who) >> FLIGHT_BITS == hash >> FLIGHT_BITS &&
           (since_us == 0 || now_us - since_us <= FLIGHT_MAX_US);
}

static void leave(struct flight *f, uint64_t who, uint64_t hash, cache_wake_fn *wake, void *ctx)
{
    uint64_t waiters;

    if (atomic_load(&f->who) != who)
        return;
    atomic_store(&f->since_us, 0);
    if (!atomic_compare_exchange_strong(&f->who, &who, 0))
        return;
    waiters = atomic_exchange(&f->waiters, 0);
    if (waiters != 0 && wake != NULL)
        wake(ctx, hash, waiters);
}

void cache_flight_leave(struct cache *c, const struct cache_key *key)
{
    leave(flight_at(c, key->hash), who_is(key->hash, c->proc), key->hash, c->wake, c->wake_ctx);
}

void cache_set_waker(struct cache *c, int ordinal, cache_wake_fn *wake, void *ctx)
{
    c->ordinal = ordinal;
    c->wake = wake;
    c->wake_ctx = ctx;
}

void cache_flights_died(struct cache *c, int proc, cache_wake_fn *wake, void *ctx)
{
    uint64_t i;

    for (i = 0; i < FLIGHTS; i++) {
        struct flight *f = flight_at(c, i);
        uint64_t who = atomic_load(&f->who);

        if ((who & (FLIGHTS - 1)) == (uint64_t)(proc + 1))
            leave(f, who, who >> FLIGHT_BITS << FLIGHT_BITS | i, wake, ctx);
    }
}
