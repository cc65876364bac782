/* SPDX-License-Identifier: PostgreSQL
 * cache_store.h: results of queries in shared memory.
 * Runs in: workers; the supervisor makes it and cleans up after the dead. Many writers: a shard of
 * the keys has a robust lock, which is held for microseconds and never while anything waits.
 * Readers take none: what they have copied is checked after the copy. When a process dies at
 * whatever instruction in the middle of a change, the shard it was changing is emptied by the next
 * one who comes.
 *
 * A statement goes through it like this:
 *
 *   key = cache_key_of(bytes)                    everything that decides about the result
 *   if (cache_find(c, &key, now, &hit) && cache_copy(c, &hit, 0, hit.len, room))
 *       cache_note_hit(...); answer              a false cache_copy is a miss like any other
 *   if (!cache_is_worth(c, &key))                ask the server, and keep nothing
 *   switch (cache_flight_enter(c, &key, now))
 *   WAIT   park the client; on being woken, or after a time of the caller's own, begin again, and
 * if it is a miss once more, ask without waiting and without a fill FILL   deps as cache_gen.h
 * says, then cache_fill_begin, send the query, cache_fill_append while the reply is streamed to the
 * client, cache_fill_commit or cache_fill_abort at its end. Where no fill is begun after all:
 * cache_flight_leave ALONE  as FILL, nobody waits for it
 *
 * What is kept is bytes of the caller's. The store never looks into them. */
#ifndef PGP_CACHE_CACHE_STORE_H
#define PGP_CACHE_CACHE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "cache/cache_gen.h"

struct cache; /* a process's handle */
struct conf;
struct shm;
struct shm_plan;

/* Tables whose counters are told apart in one entry; of more, the first. */
#define CACHE_ENTRY_TABLES 4
/* Longer keys are not kept. */
#define CACHE_KEY_MAX 65535

/* The supervisor, before the forks; nothing is planned where there is no cache. `nprocs`: process
 * slots. */
void cache_plan_shm(const struct conf *conf, int nprocs, struct shm_plan *plan);
void cache_init_shm(const struct conf *conf, int nprocs, struct shm *shm);
/* A process's own handle; NULL when there is no cache. The caller closes it. */
struct cache *cache_open(const struct shm *shm, int proc);
void cache_close(struct cache **cp);
/* The generations; see cache_gen.h. */
struct cache_gens *cache_gens_of(const struct cache *c);

struct cache_key {
    struct slice bytes;
    uint64_t hash;
};
/* The key made of these bytes, which stay the caller's. */
struct cache_key cache_key_of(struct slice bytes);

/* An entry that was found. Only `len`, `took_us` and the tables are the caller's business. */
struct cache_hit {
    uint32_t shard;
    uint32_t row;
    uint32_t seq;
    uint32_t at;
    size_t skip;
    size_t len;       /* bytes of the result */
    uint32_t took_us; /* what the query took when it was asked */
    uint32_t ntables;
    uint16_t table[CACHE_ENTRY_TABLES];
};

/* Finds the valid, unexpired result of this key, compared byte by byte. */
bool cache_find(
    struct cache *c, const struct cache_key *key, int64_t now_us, struct cache_hit *hit);
/* Copies `n` bytes of it from `from` on. Returns false when it has gone meanwhile: what was copied,
 * by this call or one before, may be anything, and nothing of it may be used. */
bool cache_copy(struct cache *c, const struct cache_hit *hit, size_t from, size_t n, char *dst);

/* What is kept elsewhere was found there, which cache_is_worth has to know. */
void cache_note_again(struct cache *c, const struct cache_key *key);
/* Hardly any key comes again, and this one was not asked for lately: to look for it elsewhere is
 * not worth it. It is a miss; cache_is_worth then knows that it was asked for. */
bool cache_is_rare(const struct cache *c, const struct cache_key *key);
/* After a miss: whether a fill is worth it. It counts the key as asked for: to be called once. */
bool cache_is_worth(struct cache *c, const struct cache_key *key);

enum cache_turn { CACHE_TURN_FILL, CACHE_TURN_WAIT, CACHE_TURN_ALONE };
/* After a miss: who asks the server. WAIT: somebody does already, and the waker of this process
 * will be called with the key's hash when that is over (or, seldom, without cause). */
enum cache_turn cache_flight_enter(struct cache *c, const struct cache_key *key, int64_t now_us);
/* Somebody asks for the key with this hash, or for another one that stands in the same place. */
bool cache_flight_is_on(const struct cache *c, uint64_t hash, int64_t now_us);
/* The one who got FILL will not ask, or not keep it. Wakes those who wait. A fill that was begun
 * does this by itself at its end. */
void cache_flight_leave(struct cache *c, const struct cache_key *key);
/* Wakes waiters: in every worker whose ordinal modulo 64 is a bit of `workers`, this one perhaps
 * among them, each client parked on `hash` shall look again. Called by functions that end a flight.
 */
typedef void cache_wake_fn(void *ctx, uint64_t hash, uint64_t workers);
/* `ordinal`: under which this process is woken. */
void cache_set_waker(struct cache *c, int ordinal, cache_wake_fn *wake, void *ctx);

/* What is to be kept, and for how long. The pointers are needed during cache_fill_begin only. */
struct cache_fill_spec {
    const struct cache_key *key;
    const struct cache_deps *deps; /* read before the query is sent */
    int64_t expire_s;              /* 0: until its tables change; see cache_expire.h */
    bool has_flight;               /* cache_flight_enter said FILL */
    uint32_t ntables;
    uint16_t table[CACHE_ENTRY_TABLES]; /* numbers of cache_table_number */
};
struct cache_fill;
/* Begins to gather a result, in memory of this process. */
struct cache_fill *cache_fill_begin(struct cache *c, const struct cache_fill_spec *spec);
/* Whether this standby has the last known writes of what the result depends on: to be asked before
 * the query is sent to it. */
bool cache_fill_standby(const struct cache_fill *f, const struct cache_standby *s);
/* Returns -1 when it has become larger than memqcache_maxcache: the fill shall be given up. */
int cache_fill_append(struct cache_fill *f, const void *p, size_t n);
/* Nobody shall wait for it any longer: it may take its time. Harmless when nobody does. */
void cache_fill_let_go(struct cache_fill *f);
/* Keeps it, if nothing was written meanwhile and its key is worth the space; wakes those who wait.
 * Frees the fill. `took_us`: what the query took. */
enum cache_fill_reason cache_fill_commit(struct cache_fill **fp, int64_t now_us, uint32_t took_us);
/* Whether nothing speaks against keeping it elsewhere: see cache_far_keep. */
enum cache_fill_reason cache_fill_check(const struct cache_fill *f, int64_t now_us);
/* Forgets it, wakes those who wait, frees the fill. Harmless when *fp is NULL. */
void cache_fill_abort(struct cache_fill **fp);

/* Everything cached is invalid from now on; with memcached for all pgpools that share it: until
 * that is told there, nothing is answered here (CACHE_OFF_FAR). A standby must have what was
 * committed before `now_us`. */
void cache_empty(struct cache *c, int64_t now_us);

/* Removes this one result; true when there was one. */
bool cache_delete(struct cache *c, const struct cache_key *key);

/* Removes all results whose keys `is_it` tells; returns how many. It looks at every one there is,
 * and holds the lock of a shard while it looks at that. */
typedef bool cache_is_it_fn(void *ctx, struct slice key);
uint64_t cache_delete_all(struct cache *c, cache_is_it_fn *is_it, void *ctx);

/* The supervisor: this process died. Its generations' holds end, its flights end. Wakes by `wake`,
 * which posts to the workers. */
void cache_died(struct shm *shm, int proc, int64_t now_us, cache_wake_fn *wake, void *ctx);

#endif
