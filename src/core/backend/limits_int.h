/* SPDX-License-Identifier: PostgreSQL
 * limits_int.h: the table of limits.c and limits_table.c.
 * Runs in: workers and the supervisor. */
#ifndef PGP_BACKEND_LIMITS_INT_H
#define PGP_BACKEND_LIMITS_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "backend/limits.h"

#define LIMITS_NAME_MAX (LIMITS_NAME_BYTES - 1)

/* One counter. Names and kind change under the lock only. */
struct limits_entry {
    uint8_t kind; /* enum limits_kind; written last when made, first when freed */
    uint8_t user_len;
    uint8_t database_len;
    int16_t node;
    int32_t next;             /* in its bucket, or in the list of free ones */
    _Atomic int32_t used;     /* sum of held */
    _Atomic int32_t nwaiting; /* workers whose `oldest_us` is not 0 */
    int32_t peak;
    uint64_t refused;
    _Atomic int64_t swapped_us; /* a link was closed so that another could be opened */
    char user[LIMITS_NAME_BYTES];
    char database[LIMITS_NAME_BYTES];
} __attribute__((aligned(64)));

/* What one worker has of an entry. Shares of a worker lie together, away from those of others:
 * publishing disturbs nobody. */
struct limits_share {
    _Atomic int32_t held; /* links; changed under the lock */
    int32_t refs;         /* pools of the worker that know the entry */
    _Atomic int32_t nidle;
    _Atomic int32_t nclients; /* that wait */
    _Atomic int32_t keeps;    /* 1: the one that waits longest cannot go to another worker */
    _Atomic int64_t oldest_us;
};

struct limits_region {
    pthread_mutex_t lock; /* robust: who finds its holder dead repairs the table */
    int32_t nworkers;
    int32_t capacity;
    uint32_t bucket_mask;
    int32_t first_free;
    _Atomic int32_t high_water;
    _Atomic uint64_t overflows;
    size_t bucket_offset;
    size_t entry_offset;
    size_t share_offset;
} __attribute__((aligned(64)));

static inline struct limits_region *limits_region(const struct shm *shm)
{
    return shm_get(shm, SHM_LIMITS);
}

/* First entry of bucket `i` + 1; 0: none. */
static inline int32_t *limits_bucket(struct limits_region *r, uint32_t i)
{
    return (int32_t *)(void *)((char *)r + r->bucket_offset) + i;
}

static inline struct limits_entry *limits_entry(struct limits_region *r, int id)
{
    return (struct limits_entry *)(void *)((char *)r + r->entry_offset) + id;
}

static inline struct limits_share *limits_share(struct limits_region *r, int id, int ordinal)
{
    return (struct limits_share *)(void *)((char *)r + r->share_offset) +
           (size_t)ordinal * (size_t)r->capacity + id;
}

struct limits_key {
    enum limits_kind kind;
    int node;
    struct slice user; /* cut to what the server knows */
    struct slice database;
};

/* limits_table.c; all but the first under the lock. */
/* Takes the lock; mends the table when its last holder died. */
void limits_lock(struct limits_region *r);
void limits_unlock(struct limits_region *r);
/* The key of an entry, with the names cut. */
struct limits_key limits_key_of(
    enum limits_kind kind, int node, struct slice user, struct slice database);
/* Finds or makes an entry; LIMITS_NO_ENTRY when the table is full. */
int limits_find(struct limits_region *r, const struct limits_key *key);
/* Adds up what the workers hold of it. */
void limits_count_anew(struct limits_region *r, int id);
/* Frees the entry when nobody holds it or counts in it. */
void limits_free_if_unused(struct limits_region *r, int id);

#endif
