/* SPDX-License-Identifier: PostgreSQL
 * cache_worth.c: is the result of a key that was not found worth to be kept? Runs in: workers.
 *
 * As long as of the last new keys some were asked for again, all are kept. When hardly any was, as
 * in a stream of statements that never come twice, a key is kept when it is asked for the second
 * time: to gather its result and drive out another for it would be in vain. Keys that were asked
 * for stand in a table that all processes share, in which a later one takes the place of an earlier
 * one. Whoever reads a torn state of it keeps one result more or one less. */
#include "config.h"

#include "cache_int.h"

/* New keys by which it is judged, and the part of them that must have been asked for again. */
#define NEW_KEYS 256
#define AGAIN_IN 8
#define ASKED    65536U

size_t cache_asked_bytes(void)
{
    return ASKED * sizeof(uint32_t);
}

static _Atomic uint32_t *asked_at(const struct cache *c, uint64_t hash)
{
    return (_Atomic uint32_t *)(void *)((char *)c->region + c->shape.asked_at) + hash % ASKED;
}

/* In its place stands a key's tag, or what is left of that when it was found elsewhere. */
static bool is_known(uint32_t asked, uint32_t tag)
{
    return asked == tag || asked == ~tag;
}

/* True when it was asked for lately; it is now. */
static bool was_asked(const struct cache *c, uint64_t hash)
{
    _Atomic uint32_t *asked = asked_at(c, hash);
    uint32_t tag = shard_tag(hash);

    if (is_known(atomic_load_explicit(asked, memory_order_relaxed), tag))
        return true;
    atomic_store_explicit(asked, tag, memory_order_relaxed);
    return false;
}

void cache_note_again(struct cache *c, const struct cache_key *key)
{
    _Atomic uint32_t *asked = asked_at(c, key->hash);
    uint32_t found = ~shard_tag(key->hash);

    if (atomic_load_explicit(asked, memory_order_relaxed) == found)
        return; /* it counts once */
    atomic_store_explicit(asked, found, memory_order_relaxed);
    c->nagain++;
}

bool cache_is_rare(const struct cache *c, const struct cache_key *key)
{
    return c->is_choosy &&
           !is_known(atomic_load_explicit(asked_at(c, key->hash), memory_order_relaxed),
               shard_tag(key->hash));
}

HOT bool cache_is_worth(struct cache *c, const struct cache_key *key)
{
    if (c->is_choosy && was_asked(c, key->hash)) {
        c->nagain++;
        return true;
    }
    if (++c->nnew >= NEW_KEYS) {
        c->is_choosy = c->nagain < NEW_KEYS / AGAIN_IN;
        c->nnew = 0;
        c->nagain = 0;
    }
    return !c->is_choosy;
}
