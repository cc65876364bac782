/* SPDX-License-Identifier: PostgreSQL
 * limits_table.c: the table behind the limits: entries by name in shared memory, and the lock.
 * Runs in: workers and the supervisor. No worker's death can leave it broken: the lock tells the
 * next one, who builds buckets, free list and sums anew from the entries and shares. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"

#include "limits_int.h"

#define LIMITS_BASE_ENTRIES 8192
#define LIMITS_PER_CLIENT   4 /* a pool, its user's links, its user's clients, one to spare */
#define LIMITS_ALIGN        64

static int entries_for(int max_clients)
{
    return LIMITS_BASE_ENTRIES + LIMITS_PER_CLIENT * max_clients;
}

static uint32_t buckets_for(int entries)
{
    uint32_t n = 1024;

    while (n < (uint32_t)entries)
        n *= 2;
    return n;
}

static size_t align_up(size_t n)
{
    return (n + LIMITS_ALIGN - 1) / LIMITS_ALIGN * LIMITS_ALIGN;
}

/* Where the parts of the region begin; returns its size. */
static size_t lay_out(struct limits_region *r, int nworkers, int max_clients)
{
    size_t n = (size_t)entries_for(max_clients);
    uint32_t buckets = buckets_for((int)n);

    r->nworkers = nworkers;
    r->capacity = (int32_t)n;
    r->bucket_mask = buckets - 1;
    r->bucket_offset = align_up(sizeof *r);
    r->entry_offset = align_up(r->bucket_offset + buckets * sizeof(int32_t));
    r->share_offset = align_up(r->entry_offset + n * sizeof(struct limits_entry));
    return r->share_offset + (size_t)nworkers * n * sizeof(struct limits_share);
}

size_t limits_region_bytes(int nworkers, int max_clients)
{
    struct limits_region r;

    memset(&r, 0, sizeof r);
    return lay_out(&r, nworkers, max_clients);
}

void limits_region_init(struct shm *shm, int nworkers, int max_clients)
{
    struct limits_region *r = limits_region(shm);
    pthread_mutexattr_t attr;
    int rc;

    (void)lay_out(r, nworkers, max_clients);
    r->first_free = LIMITS_NO_ENTRY;
    rc = pthread_mutexattr_init(&attr);
    rc |= pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    rc |= pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    rc |= pthread_mutex_init(&r->lock, &attr);
    rc |= pthread_mutexattr_destroy(&attr);
    ASSERT(rc == 0);
}

/* ---- keys ---- */

struct limits_key limits_key_of(
    enum limits_kind kind, int node, struct slice user, struct slice database)
{
    struct limits_key k = {kind, node, slice_of("", 0), slice_of("", 0)};

    if (kind != LIMITS_DB && kind != LIMITS_DB_CLIENTS)
        k.user = slice_of(user.p, user.n < LIMITS_NAME_MAX ? user.n : LIMITS_NAME_MAX);
    if (kind != LIMITS_USER && kind != LIMITS_USER_CLIENTS)
        k.database =
            slice_of(database.p, database.n < LIMITS_NAME_MAX ? database.n : LIMITS_NAME_MAX);
    return k;
}

static uint32_t key_bucket(const struct limits_region *r, const struct limits_key *k)
{
    uint64_t h = hash_bytes(k->user.p, k->user.n, (uint64_t)k->kind << 32 | (uint32_t)k->node);

    return (uint32_t)hash_bytes(k->database.p, k->database.n, h) & r->bucket_mask;
}

static struct limits_key entry_key(const struct limits_entry *e)
{
    return (struct limits_key){
        e->kind, e->node, slice_of(e->user, e->user_len), slice_of(e->database, e->database_len)};
}

static bool entry_matches(const struct limits_entry *e, const struct limits_key *k)
{
    return e->kind == k->kind && e->node == k->node &&
           slice_eq(slice_of(e->user, e->user_len), k->user) &&
           slice_eq(slice_of(e->database, e->database_len), k->database);
}

/* ---- mending ---- */

void limits_count_anew(struct limits_region *r, int id)
{
    int32_t used = 0;
    int w;

    for (w = 0; w < r->nworkers; w++)
        used += limits_share(r, id, w)->held;
    atomic_store(&limits_entry(r, id)->used, used);
}

static void repair_entry(struct limits_region *r, int id)
{
    struct limits_entry *e = limits_entry(r, id);
    struct limits_key k = entry_key(e);
    int32_t *head;

    limits_count_anew(r, id);
    head = e->kind == LIMITS_FREE ? &r->first_free : limits_bucket(r, key_bucket(r, &k));
    if (e->kind == LIMITS_FREE) {
        e->next = *head;
        *head = id;
    } else {
        e->next = *head - 1;
        *head = id + 1;
    }
}

/* All that can be derived is derived anew. */
static void limits_repair(struct limits_region *r)
{
    int i;

    memset(limits_bucket(r, 0), 0, (r->bucket_mask + 1) * sizeof(int32_t));
    r->first_free = LIMITS_NO_ENTRY;
    for (i = 0; i < atomic_load(&r->high_water); i++)
        repair_entry(r, i);
}

void limits_lock(struct limits_region *r)
{
    int rc = pthread_mutex_lock(&r->lock);

    if (rc == EOWNERDEAD) {
        limits_repair(r);
        rc = pthread_mutex_consistent(&r->lock);
    }
    ASSERT(rc == 0);
}

void limits_unlock(struct limits_region *r)
{
    (void)pthread_mutex_unlock(&r->lock);
}

/* ---- entries ---- */

static int take_free(struct limits_region *r)
{
    int id = r->first_free;

    if (id != LIMITS_NO_ENTRY) {
        r->first_free = limits_entry(r, id)->next;
        return id;
    }
    id = atomic_load(&r->high_water);
    if (id == r->capacity) {
        atomic_fetch_add(&r->overflows, 1);
        return LIMITS_NO_ENTRY;
    }
    atomic_store(&r->high_water, id + 1);
    return id;
}

static void set_name(char *to, uint8_t *len, struct slice name)
{
    if (name.n > 0)
        memcpy(to, name.p, name.n);
    to[name.n] = '\0';
    *len = (uint8_t)name.n;
}

int limits_find(struct limits_region *r, const struct limits_key *key)
{
    int32_t *head = limits_bucket(r, key_bucket(r, key));
    struct limits_entry *e;
    int id;

    for (id = *head - 1; id != LIMITS_NO_ENTRY; id = limits_entry(r, id)->next)
        if (entry_matches(limits_entry(r, id), key))
            return id;
    id = take_free(r);
    if (id == LIMITS_NO_ENTRY)
        return id;
    e = limits_entry(r, id);
    set_name(e->user, &e->user_len, key->user);
    set_name(e->database, &e->database_len, key->database);
    e->node = (int16_t)key->node;
    atomic_store(&e->used, 0);
    atomic_store(&e->nwaiting, 0);
    e->peak = 0;
    e->refused = 0;
    atomic_store(&e->swapped_us, 0);
    e->next = *head - 1;
    e->kind = (uint8_t)key->kind;
    *head = id + 1;
    return id;
}

void limits_free_if_unused(struct limits_region *r, int id)
{
    struct limits_entry *e = limits_entry(r, id);
    struct limits_key k = entry_key(e);
    int32_t *head = limits_bucket(r, key_bucket(r, &k));
    int prev;
    int w;

    if (e->kind == LIMITS_FREE || atomic_load(&e->used) > 0)
        return;
    for (w = 0; w < r->nworkers; w++)
        if (limits_share(r, id, w)->refs > 0)
            return;
    e->kind = LIMITS_FREE;
    if (*head - 1 == id) {
        *head = e->next + 1;
    } else {
        for (prev = *head - 1; limits_entry(r, prev)->next != id;
             prev = limits_entry(r, prev)->next)
            ASSERT(prev != LIMITS_NO_ENTRY);
        limits_entry(r, prev)->next = e->next;
    }
    e->next = r->first_free;
    r->first_free = id;
}
