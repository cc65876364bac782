/* SPDX-License-Identifier: PostgreSQL
 * backend.c: a worker's pools and links as a whole. */
#include "config.h"

#include "backend/backend.h"

#include <string.h>
#include <time.h>

#include "backend/pool.h"
#include "backend/quota.h"
#include "backend/row_alloc.h"
#include "base/mem.h"
#include "config/conf.h"

#include "link_int.h"

/* The oldest request that had no turn in this pass and whose node is not known to be full. */
static struct pool_request *retry_next(struct backend *be, const bool *full)
{
    struct pool_request *req;
    struct list *n;

    LIST_FOREACH(n, &be->requests)
    {
        req = LIST_ENTRY(n, struct pool_request, all_node);
        if (req->pass != be->retry_pass && !full[req->pool->cluster_node])
            return req;
    }
    return NULL;
}

/* True when a request that had its turn in this pass still waits for the node: it is full. */
static bool retry_is_full(struct backend *be, int node)
{
    struct pool_request *req;
    struct list *n;

    LIST_FOREACH(n, &be->requests)
    {
        req = LIST_ENTRY(n, struct pool_request, all_node);
        if (req->pool->cluster_node == node)
            return req->pass == be->retry_pass && req->reason == WAIT_REASON_NODE_LIMIT;
    }
    return false;
}

/* Gives every waiting request a turn, oldest first, until the node it wants is found to be full. A
 * turn may free the request, so nothing of it is touched afterwards. */
static void backend_on_retry(struct task *t)
{
    struct backend *be = LIST_ENTRY(t, struct backend, retry);
    bool full[QUOTA_MAX_NODES] = {false};
    struct pool_request *req;
    int node;

    be->retry_pass++;
    while ((req = retry_next(be, full)) != NULL) {
        node = req->pool->cluster_node;
        req->pass = be->retry_pass;
        req->on_turn(req);
        full[node] = retry_is_full(be, node);
    }
}

void backend_init(
    struct backend *be, struct loop *loop, struct shm *shm, const struct conf *conf, int ordinal)
{
    struct timespec now;

    memset(be, 0, sizeof *be);
    be->loop = loop;
    be->shm = shm;
    be->conf = conf;
    be->ordinal = ordinal;
    be->read_buf = mem_alloc(BACKEND_READ_BYTES);
    hash_table_init(&be->pools);
    varset_store_init(&be->varsets);
    list_init(&be->pool_lru);
    list_init(&be->idle_lru);
    list_init(&be->links);
    list_init(&be->requests);
    task_init(&be->retry, backend_on_retry);
    be->link_rows = shm_get(shm, SHM_LINKS);
    be->row_alloc = row_alloc_new(be->link_rows, ordinal);
    clock_gettime(CLOCK_REALTIME, &now);
    be->wall_offset_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - loop_now_us(loop);
}

void backend_fini(struct backend *be)
{
    struct list *n;

    be->is_stopping = true;
    while ((n = list_first(&be->links)) != NULL)
        link_close(LIST_ENTRY(n, struct link, all_node));
    task_cancel(&be->retry);
    backend_tls_fini(be);
    row_alloc_free(&be->row_alloc);
    hash_table_fini(&be->pools);
    varset_store_fini(&be->varsets);
    mem_free(be->read_buf);
    be->read_buf = NULL;
}

void backend_set_conf(struct backend *be, const struct conf *conf)
{
    be->conf = conf;
}

void backend_post_retry(struct backend *be)
{
    if (!list_is_empty(&be->requests))
        task_post(be->loop, &be->retry);
}

struct pool_request *backend_oldest_request(struct backend *be, int node)
{
    struct pool_request *req;
    struct list *n;

    LIST_FOREACH(n, &be->requests)
    {
        req = LIST_ENTRY(n, struct pool_request, all_node);
        if (req->pool->cluster_node == node)
            return req;
    }
    return NULL;
}

void backend_on_wanted(
    struct backend *be, struct slice user, struct slice database, int node, int asking_ordinal)
{
    struct link *link;
    struct list *n;

    for (n = be->idle_lru.prev; n != &be->idle_lru; n = n->prev) {
        link = LIST_ENTRY(n, struct link, lru_node);
        if (link->pool->cluster_node == node && slice_eq(pool_user(link->pool), user) &&
            slice_eq(pool_database(link->pool), database)) {
            if (link_give_away(link, asking_ordinal))
                return;
            break;
        }
    }
    (void)backend_evict_idle(be, node);
}

bool backend_evict_idle(struct backend *be, int node)
{
    struct link *link;
    struct list *n;

    LIST_FOREACH(n, &be->idle_lru)
    {
        link = LIST_ENTRY(n, struct link, lru_node);
        if (node == ROWS_NO_NODE || link->pool->cluster_node == node) {
            link_close(link);
            return true;
        }
    }
    return false;
}

void backend_stop_caching(struct backend *be)
{
    be->is_stopping = true;
    while (backend_evict_idle(be, ROWS_NO_NODE))
        ;
}

int64_t backend_wall_us(const struct backend *be)
{
    return loop_now_us(be->loop) + be->wall_offset_us;
}
