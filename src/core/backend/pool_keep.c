/* SPDX-License-Identifier: PostgreSQL
 * pool_keep.c: max_pool: how many pairs of user and database a worker keeps links for when none of
 * its clients is of that pair.
 * Runs in: workers. Costs nothing unless max_pool is set. The pair that was left longest ago loses
 * its idle links; what clients use at the moment is never counted and never touched. */
#include "config.h"

#include "base/hot.h"
#include "base/list.h"
#include "config/conf.h"

#include "link_int.h"
#include "pool_int.h"

static struct pool *pool_on(const struct pool *pool, int node)
{
    return pool_find(pool->be, pool_user(pool), pool_database(pool), node);
}

static bool is_kept(const struct pool *pool)
{
    return pool != NULL && pool->nclients == 0 && pool->nidle > 0;
}

/* A server of pools.conf is the only one of its databases. */
static int first_node(const struct pool *pool)
{
    return pool->cluster_node >= CONF_MAX_NODES ? pool->cluster_node : 0;
}

static int end_node(const struct pool *pool)
{
    return pool->cluster_node >= CONF_MAX_NODES ? pool->cluster_node + 1 : pool->be->conf->nnodes;
}

/* A reader's pool may be without a client while the session goes on. */
static bool pair_has_clients(const struct pool *pool)
{
    int node;

    for (node = first_node(pool); node < end_node(pool); node++) {
        const struct pool *other = pool_on(pool, node);

        if (other != NULL && other->nclients > 0)
            return true;
    }
    return false;
}

/* True for one pool of each kept pair: that on the lowest node. */
static bool stands_for_pair(const struct pool *pool)
{
    int node;

    if (!is_kept(pool) || pair_has_clients(pool))
        return false;
    for (node = first_node(pool); node < pool->cluster_node; node++)
        if (is_kept(pool_on(pool, node)))
            return false;
    return true;
}

static uint32_t count_pairs(struct backend *be)
{
    uint32_t n = 0;
    struct list *it;

    LIST_FOREACH(it, &be->kept)
    {
        if (stands_for_pair(LIST_ENTRY(it, struct pool, kept_node)))
            n++;
    }
    return n;
}

/* The pool goes with its last link. */
static void close_idle(struct pool *pool)
{
    uint32_t n = pool->nidle;

    while (n-- > 0)
        link_close(LIST_ENTRY(list_last(&pool->idle), struct link, pool_node));
}

static void close_oldest(struct backend *be)
{
    struct pool *pool = NULL;
    struct list *it;
    int node;
    int end;

    LIST_FOREACH(it, &be->kept)
    {
        pool = LIST_ENTRY(it, struct pool, kept_node);
        if (stands_for_pair(pool))
            break;
    }
    end = end_node(pool);
    for (node = end - 1; node > pool->cluster_node; node--) {
        struct pool *other = pool_on(pool, node);

        if (is_kept(other))
            close_idle(other);
    }
    close_idle(pool);
}

/* Puts all kept pools of the pair at the end: it was left just now. */
static void make_newest(struct pool *pool)
{
    int node;

    for (node = first_node(pool); node < end_node(pool); node++) {
        struct pool *other = pool_on(pool, node);

        if (is_kept(other)) {
            list_remove(&other->kept_node);
            list_push_back(&pool->be->kept, &other->kept_node);
        }
    }
}

HOT void pool_keep_update(struct pool *pool)
{
    struct backend *be = pool->be;
    uint32_t max = (uint32_t)be->conf->max_pool;
    uint32_t pairs;

    if (max == 0 || !is_kept(pool) || be->is_stopping)
        return;
    make_newest(pool);
    for (pairs = count_pairs(be); pairs > max; pairs--)
        close_oldest(be);
}
