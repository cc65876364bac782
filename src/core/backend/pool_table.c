/* SPDX-License-Identifier: PostgreSQL
 * pool_table.c: the pools of a worker: found by user, database and node, made for the first client
 * and freed behind the last one and the last link. Runs in: workers. What a pool does with its
 * links is pool.c's; must never: lend or open one. */
#include "config.h"

#include <string.h>

#include "auth/auth_book.h"
#include "backend/quota.h"
#include "base/assert.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/orders.h"

#include "pool_int.h"

/* The number of idle links is published anew when it differs by this much, or is the first or the
 * last. */
#define TOLD_APART 4

struct pool_key {
    struct slice user;
    struct slice database;
    int node;
};

static int pool_eq(const struct hash_node *node, const void *key)
{
    const struct pool *pool = LIST_ENTRY(node, struct pool, node);
    const struct pool_key *k = key;

    return pool->cluster_node == k->node && slice_eq(pool_user(pool), k->user) &&
           slice_eq(pool_database(pool), k->database);
}

static uint64_t pool_hash(const struct pool_key *k)
{
    uint64_t h = hash_bytes(k->user.p, k->user.n, (uint64_t)k->node);

    return hash_bytes(k->database.p, k->database.n, h);
}

static void pool_complain_full(const struct backend *be)
{
    log_at_detail(LVL_WARNING, NULL,
        "Raise max_clients, by which the size of the table goes, and restart.",
        "the table of limits is full: %d different users and databases, %llu refused since the "
        "start",
        limits_capacity(be->shm), (unsigned long long)limits_overflows(be->shm));
}

void pool_know_cells(struct pool *pool)
{
    struct shm *shm = pool->be->shm;

    pool->idle_cell = limits_idle_cell(shm, pool->limits.pool, pool->be->ordinal);
    pool->waiting_workers[0] = quota_waiting_cell(shm, pool->cluster_node);
    if (pool->limits.pool == LIMITS_NO_ENTRY)
        return;
    pool->waiting_workers[1] = limits_waiting_cell(shm, pool->limits.pool);
    pool->waiting_workers[2] = limits_waiting_cell(shm, pool->limits.db);
    pool->waiting_workers[3] = limits_waiting_cell(shm, pool->limits.user);
}

bool pool_is_waited_for(const struct pool *pool)
{
    int i;

    for (i = 0; i < POOL_LIMITS; i++)
        if (pool->waiting_workers[i] != NULL && atomic_load(pool->waiting_workers[i]) != 0)
            return true;
    return false;
}

static struct pool *pool_new(struct backend *be, const struct pool_key *k, uint64_t hash)
{
    struct pool *pool = mem_alloc_zero(sizeof *pool + k->user.n + k->database.n + 3);

    pool->be = be;
    pool->cluster_node = k->node;
    pool->user_len = (uint16_t)k->user.n;
    pool->database_len = (uint16_t)k->database.n;
    pool->database_hash = hash_bytes(k->database.p, k->database.n, 1);
    memcpy(pool->names, k->user.p, k->user.n);
    memcpy(pool->names + k->user.n + 1, k->database.p, k->database.n);
    if (k->node >= POOLS_FIRST_TARGET)
        pool->names[k->user.n + k->database.n + 2] = (char)(k->node - POOLS_FIRST_TARGET + 1);
    list_init(&pool->waiting_node);
    list_init(&pool->kept_node);
    list_init(&pool->idle);
    list_init(&pool->busy);
    list_init(&pool->waiting);
    pool->set = pools_conf_find(be->conf, k->database, k->user);
    pool->is_mapped = pool->set->user != NULL;
    pool->has_own_book = pools_conf_asks_itself(be->conf, pool->set);
    pool->limits.pool = LIMITS_NO_ENTRY;
    if (limits_attach(be->shm, be->ordinal, k->node, k->user, k->database, &pool->limits) == -1)
        pool_complain_full(be);
    pool_know_cells(pool);
    hash_table_add(&be->pools, &pool->node, hash);
    if (be->book != NULL)
        auth_book_hold(be->book, pool_book_name(pool));
    return pool;
}

struct pool *pool_find(struct backend *be, struct slice user, struct slice database, int node)
{
    struct pool_key k = {user, database, node};
    struct hash_node *n = hash_table_find(&be->pools, pool_hash(&k), pool_eq, &k);

    return n == NULL ? NULL : LIST_ENTRY(n, struct pool, node);
}

struct pool *pool_attach(struct backend *be, struct slice user, struct slice database, int node)
{
    struct pool_key k = {user, database, node};
    struct pool *pool = pool_find(be, user, database, node);

    if (pool == NULL) {
        pool = pool_new(be, &k, pool_hash(&k));
        pool_check_place(pool); /* another worker may have chosen the server, with older settings */
    }
    list_remove(&pool->kept_node);
    pool->nclients++;
    return pool;
}

HOT struct pool *pool_near(struct pool *pool, int node)
{
    struct pool **slot = &pool->near[(unsigned)node % POOL_NEAR];

    if (pool->near_gone != pool->be->npools_gone) {
        memset(pool->near, 0, sizeof pool->near);
        pool->near_gone = pool->be->npools_gone;
    }
    if (*slot == NULL || (*slot)->cluster_node != node)
        *slot = pool_find(pool->be, pool_user(pool), pool_database(pool), node);
    return *slot;
}

void pool_free_if_unused(struct pool *pool)
{
    if (pool->nclients > 0 || pool->nidle + pool->nbusy > 0)
        return;
    pool->be->npools_gone++;
    list_remove(&pool->kept_node);
    pool_tell_idle(pool, false);
    limits_detach(pool->be->shm, pool->be->ordinal, &pool->limits);
    hash_table_del(&pool->be->pools, &pool->node);
    if (pool->be->book != NULL)
        auth_book_let_go(pool->be->book, pool_book_name(pool));
    paramset_free(&pool->defaults);
    pool_said_free(pool);
    mem_free(pool);
}

void pool_hold(struct pool *pool)
{
    ASSERT(pool->nclients > 0);
    pool->nclients++;
}

void pool_detach(struct pool *pool)
{
    ASSERT(pool->nclients > 0);
    pool->nclients--;
    if (pool->nclients == 0 && pool->nidle > 0)
        pool_keep_update(pool);
    else
        pool_free_if_unused(pool);
}

uint64_t pool_place(const struct pool *pool)
{
    const char *dbname = pool->set->dbname;

    return dbname == NULL ? 0 : hash_bytes(dbname, strlen(dbname), 1);
}

HOT struct slice pool_database_there(const struct pool *pool)
{
    const char *dbname = pool->set->dbname;

    return dbname == NULL ? pool_database(pool) : slice_of_str(dbname);
}

HOT bool pool_is_paused(const struct pool *pool)
{
    return pool_has_orders(pool) &&
           (orders_flags(pool->be->shm, pool_database(pool)) & ORDER_PAUSE) != 0;
}

/* What others go by is whether there are any; how many only says where to ask first. */
static bool is_about(uint32_t told, uint32_t n)
{
    return told == n || (told > 0 && n > 0 && told < n + TOLD_APART && n < told + TOLD_APART);
}

/* While some are told of already a barrier is not needed: who joins a line finds them. */
HOT void pool_tell_idle(struct pool *pool, bool barrier)
{
    if (is_about(pool->told.nidle, pool->nidle))
        return;
    pool->told.nidle = pool->nidle;
    if (pool->idle_cell == NULL)
        return;
    if (barrier)
        (void)atomic_exchange(pool->idle_cell, (int32_t)pool->nidle);
    else
        atomic_store_explicit(pool->idle_cell, (int32_t)pool->nidle, memory_order_relaxed);
}
