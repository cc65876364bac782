/* SPDX-License-Identifier: PostgreSQL
 * cache_int.h: what the files of the query cache tell each other: how the region CACHE is laid out,
 * and who may change what in it.
 *
 * A region is a header, the generations, the flights, the counters of every process, the names of
 * tables, and the shards. A shard is one lock, what it guards, and three tables: rows (one per
 * entry, of a fixed kind for ever, so that a reader who holds the number of one never reads
 * anything else through it), heads of chains of rows by hash, and an arena in which the entries'
 * bytes lie. */
#ifndef PGP_CACHE_INT_H
#define PGP_CACHE_INT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hot.h"
#include "cache/cache_gen.h"
#include "cache/cache_stats.h"
#include "cache/cache_store.h"

/* Sum of the generations of these cells and of `all`. Any number is a cell: what a torn read takes
 * for one leads nowhere. */
uint64_t cache_gens_sum(const struct cache_gens *g, const uint32_t *cell, uint32_t ncells);

/* Whether a standby has the last known writes of these cells. */
bool cache_gens_standby(const struct cache_gens *g, const uint32_t *cell, uint32_t ncells,
    const struct cache_standby *s);

/* ---- the arena of a shard: cache_space.c ---- */

/* The arena is cut into units; a place in it is the number of a unit, 0 none. */
#define SPACE_UNIT    16U
#define SPACE_CLASSES 256
/* Bytes in front of what is kept in a piece. */
#define SPACE_HEAD 8U
/* An entry that fits nowhere as one piece is kept in several, none of them less than this. */
#define SPACE_PIECE_MIN 256U

struct cache_space {
    uint32_t nunits;
    uint32_t nfree;  /* units */
    uint32_t nsmall; /* of these, in pieces too small to be part of an entry of several */
    uint64_t used[SPACE_CLASSES / 64];
    uint32_t head[SPACE_CLASSES]; /* free pieces by size */
};

/* Everything is free. */
void space_init(struct cache_space *s, char *arena, uint32_t nunits);
/* Takes room for `bytes`, of which the first `whole` lie together. Returns the first piece, 0 when
 * there is no room. */
uint32_t space_take(struct cache_space *s, char *arena, size_t bytes, size_t whole);
/* Gives all pieces of an entry back. */
void space_give(struct cache_space *s, char *arena, uint32_t at);
/* Writes `n` bytes at `from` of the entry. */
void space_write(char *arena, uint32_t at, size_t from, const void *p, size_t n);
/* Copies out; the caller holds no lock, and checks afterwards. Returns false when the chain leads
 * out of the arena or ends early. */
bool space_read(const char *arena, uint32_t nunits, uint32_t at, size_t from, void *dst, size_t n);
/* `n` bytes at the start of the first piece, or NULL when they are not all in the arena. */
const char *space_peek(const char *arena, uint32_t nunits, uint32_t at, size_t n);
/* Units of all pieces of an entry. */
uint32_t space_units(const char *arena, uint32_t at);
/* ---- a shard: cache_shard.c ---- */

enum row_list { ROW_FREE, ROW_NEW, ROW_PROVEN, ROW_LISTS };

/* One entry. `seq` is odd while a writer changes the row; it has changed before the row's bytes in
 * the arena are given to another. Its bytes: cells, tables, key, result. */
struct cache_row {
    _Atomic uint32_t seq;
    _Atomic uint32_t next; /* in the chain */
    _Atomic uint32_t tag;  /* of the key's hash */
    _Atomic uint32_t at;   /* in the arena; 0: free */
    uint32_t len;          /* of the result */
    uint16_t key_len;
    uint16_t took;      /* cache_time_pack */
    uint32_t prev_used; /* more lately used */
    uint32_t next_used; /* less lately */
    uint32_t expire_s;  /* clock_mono; 0: never */
    uint8_t ncells;
    uint8_t ntables;
    _Atomic uint8_t hits; /* lately; counted by readers, up to SKETCH_MAX */
    uint8_t list;
    uint64_t sum;
};
_Static_assert(sizeof(struct cache_row) == 48, "memory per entry has a budget");

struct cache_list {
    uint32_t head;
    uint32_t tail;
    uint64_t units;
};

/* What a table has in a shard. */
struct cache_share {
    uint32_t nentries;
    uint64_t bytes;
};

struct cache_shard {
    pthread_mutex_t lock;
    _Atomic uint32_t nentries;
    uint32_t nrows_touched; /* rows from here on were never used */
    uint32_t free_row;      /* chain by next_used */
    _Atomic uint64_t evicted;
    _Atomic uint64_t resets;
    struct cache_list list[ROW_LISTS];
    uint32_t sketch_adds;
    struct cache_space space;
    struct cache_share share[CACHE_TABLES];
} __attribute__((aligned(64)));

/* Sizes of a region, from the settings. */
struct cache_shape {
    uint64_t total_bytes; /* of all arenas */
    uint32_t max_entries;
    uint32_t max_result_bytes;
    uint32_t nshards;
    uint32_t nprocs;
    /* of one shard */
    uint32_t nunits;
    uint32_t nrows; /* row 0 is none */
    uint32_t nheads;
    uint32_t sketch_bytes;
    size_t shard_bytes;
    size_t heads_at;
    size_t rows_at;
    size_t sketch_at;
    size_t arena_at;
    /* of the region */
    uint32_t ngens;
    size_t gens_at;
    size_t flights_at;
    size_t asked_at;
    size_t stats_at;
    size_t tables_at;
    size_t shards_at;
    size_t bytes;
};

/* What all processes know of one. Its place is written before the forks. */
struct cache_far_server {
    char host[CACHE_FAR_HOST]; /* or the path of a socket */
    int port;                  /* 0: a socket */
    _Atomic int64_t down_until_us;
    _Atomic uint32_t backoff_s;   /* 0: it answers */
    _Atomic bool is_told;         /* the log has been, that it does not answer */
    _Atomic int64_t failed_at_us; /* the last time, wall clock */
    _Atomic uint64_t hits;
    _Atomic uint64_t misses;
    _Atomic uint64_t kept;
    _Atomic uint64_t told; /* generations */
    _Atomic uint64_t timeouts;
    _Atomic uint64_t errors;
};

struct cache_far_state {
    unsigned nservers;
    _Atomic bool is_used;
    _Atomic uint64_t failures; /* words about writes that did not reach a server */
    struct cache_far_server server[CACHE_FAR_SERVERS];
};

/* Where the servers of memqcache_memcached_host are. */
void cache_far_list(const struct conf *conf, struct cache_far_state *out);

struct cache_region {
    struct cache_shape shape;
    int64_t since_us; /* wall clock */
    struct cache_far_state far;
};

/* A process's handle, made of addresses in its own mapping. */
struct cache {
    struct cache_region *region;
    struct cache_shape shape;
    struct cache_gens *gens;
    int proc;
    int ordinal;
    cache_wake_fn *wake;
    void *wake_ctx;
    /* cache_worth.c */
    uint32_t nnew;   /* keys that were not found, of the present count */
    uint32_t nagain; /* keys that came again since `nnew` was 0 */
    bool is_choosy;
    uint64_t kill_at; /* test: the process kills itself at this step of changing shared memory */
    uint64_t step;
};

/* A shard and the addresses of its tables. */
struct shard_ref {
    struct cache *c;
    struct cache_shard *s;
    struct cache_row *rows;
    _Atomic uint32_t *heads;
    uint8_t *sketch;
    char *arena;
};

/* Sizes for these settings: `block_bytes` and `max_result_bytes` bound how small a shard may be. */
struct cache_shape cache_shape_of(uint64_t total_bytes, uint32_t max_entries,
    uint32_t max_result_bytes, uint32_t block_bytes, int nprocs);
/* Makes a region in zeroed memory of shape->bytes, aligned to a page. */
void cache_region_init(void *mem, const struct cache_shape *shape, int64_t wall_us);
/* A handle on a region. */
struct cache *cache_region_open(void *mem, int proc);

/* One step of a change of shared memory: the test of kills dies at each of them in turn. */
void cache_die(void);
static inline void cache_step(struct cache *c)
{
    if (c->kill_at != 0 && ++c->step == c->kill_at)
        cache_die();
}

/* What a fill is for: cache_far_keep. */
struct cache_key cache_fill_key(const struct cache_fill *f);
int64_t cache_fill_expire_s(const struct cache_fill *f);

/* The shard of a hash. */
struct shard_ref shard_of(struct cache *c, uint64_t hash);
struct shard_ref shard_at(struct cache *c, uint32_t i);
/* Takes the lock, within a few milliseconds; empties the shard when its last holder died. Returns
 * -1 when somebody keeps it. */
int shard_lock(const struct shard_ref *r);
void shard_unlock(const struct shard_ref *r);
/* What a row keeps of the hash, and finds its chain by. The low bits say which shard. */
static inline uint32_t shard_tag(uint64_t hash)
{
    return (uint32_t)(hash >> 32);
}

/* An entry's bytes and what stands in its row. */
struct shard_entry {
    uint64_t hash;
    const char *head; /* cells, tables, key */
    size_t head_len;
    const char *data;
    uint32_t len;
    uint16_t key_len;
    uint8_t ncells;
    uint8_t ntables;
    uint16_t took;
    uint32_t expire_s;
    uint64_t sum;
};
/* Under the lock: puts an entry in, in the place of one with its key, and makes room for it. */
enum cache_fill_reason shard_put(
    const struct shard_ref *r, const struct shard_entry *e, int64_t now_us);
/* Under the lock: the row of this key, valid or not; 0 none. */
uint32_t shard_find(const struct shard_ref *r, uint64_t hash, struct slice key);
/* Under the lock: removes an entry. */
void shard_remove(const struct shard_ref *r, uint32_t row);

static inline size_t entry_key_at(uint32_t ncells, uint32_t ntables)
{
    return (size_t)ncells * sizeof(uint32_t) + (size_t)ntables * sizeof(uint16_t);
}

/* ---- how often a key was asked for lately: cache_sketch.c ---- */

#define SKETCH_MAX 15
/* Counts one asking, or `n` at once; tells how many there were. */
unsigned sketch_add(const struct shard_ref *r, uint32_t tag, unsigned n);

/* ---- counters: cache_stats.c ---- */

/* A time in microseconds in 16 bits, exact to one in two thousand. */
uint16_t cache_time_pack(uint32_t us);
uint32_t cache_time_unpack(uint16_t packed);

size_t cache_stats_bytes(int nprocs);
size_t cache_tables_bytes(void);
size_t cache_flights_bytes(void);
size_t cache_asked_bytes(void);
/* Clears the flights of a dead process. */
void cache_flights_died(struct cache *c, int proc, cache_wake_fn *wake, void *ctx);

#endif
