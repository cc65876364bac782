/* SPDX-License-Identifier: PostgreSQL
 * pool.c: hands out links: an idle one whose start-up parameters are the client's, else one that is
 * being cleaned, else a new one within the node's limit, else the client waits in turn. */
#include "config.h"

#include "backend/pool.h"

#include <string.h>

#include "backend/quota.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/orders.h"

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

static struct pool *pool_new(struct backend *be, const struct pool_key *k, uint64_t hash)
{
    struct pool *pool = mem_alloc_zero(sizeof *pool + k->user.n + k->database.n + 2);

    pool->be = be;
    pool->cluster_node = k->node;
    pool->user_len = (uint16_t)k->user.n;
    pool->database_len = (uint16_t)k->database.n;
    memcpy(pool->names, k->user.p, k->user.n);
    memcpy(pool->names + k->user.n + 1, k->database.p, k->database.n);
    list_init(&pool->lru_node);
    list_init(&pool->idle);
    list_init(&pool->busy);
    list_init(&pool->waiting);
    hash_table_add(&be->pools, &pool->node, hash);
    return pool;
}

struct pool *pool_attach(struct backend *be, struct slice user, struct slice database, int node)
{
    struct pool_key k = {user, database, node};
    uint64_t hash = pool_hash(&k);
    struct hash_node *n = hash_table_find(&be->pools, hash, pool_eq, &k);
    struct pool *pool = n == NULL ? pool_new(be, &k, hash) : LIST_ENTRY(n, struct pool, node);

    pool->nclients++;
    return pool;
}

static void pool_free_if_unused(struct pool *pool)
{
    if (pool->nclients > 0 || pool->nidle + pool->nbusy > 0)
        return;
    hash_table_del(&pool->be->pools, &pool->node);
    mem_free(pool);
}

void pool_detach(struct pool *pool)
{
    pool->nclients--;
    pool_free_if_unused(pool);
}

bool pool_is_trusted(const struct pool *pool)
{
    return pool->auth == LINK_AUTH_TRUST &&
           loop_now_us(pool->be->loop) - pool->auth_seen_us < POOL_TRUST_MAX_US;
}

void pool_learn_auth(struct pool *pool, enum link_auth auth)
{
    struct list *n;

    pool->auth_seen_us = loop_now_us(pool->be->loop);
    if (pool->auth == LINK_AUTH_TRUST && auth != LINK_AUTH_TRUST) {
        log_at(LVL_LOG,
            "server (node %d) asks user \"%s\" for a password now: cached connections are "
            "closed",
            pool->cluster_node, pool->names);
        while ((n = list_first(&pool->idle)) != NULL)
            link_close(LIST_ENTRY(n, struct link, pool_node));
    }
    pool->auth = (uint8_t)auth;
}

void pool_request_init(struct pool_request *req)
{
    memset(req, 0, sizeof *req);
    list_init(&req->pool_node);
    list_init(&req->all_node);
}

/* Tells the other workers how long this one's oldest client waits for the node. */
static void pool_publish_oldest(struct backend *be, int node)
{
    struct pool_request *req = backend_oldest_request(be, node);

    quota_set_oldest(be->shm, node, be->ordinal, req == NULL ? 0 : req->since_us);
}

static void pool_request_leave(struct pool_request *req)
{
    if (list_is_detached(&req->pool_node))
        return;
    list_remove(&req->pool_node);
    list_remove(&req->all_node);
    req->pool->nwaiting--;
    req->pool->be->nrequests--;
    quota_add_waiting(req->pool->be->shm, req->pool->cluster_node, req->pool->be->ordinal, -1);
    pool_publish_oldest(req->pool->be, req->pool->cluster_node);
}

void pool_request_cancel(struct pool_request *req)
{
    pool_request_leave(req);
}

static enum acquire_result pool_request_wait(struct pool_request *req, enum wait_reason reason)
{
    struct backend *be = req->pool->be;

    req->reason = (uint8_t)reason;
    if (!list_is_detached(&req->pool_node))
        return ACQUIRE_WAITING;
    req->since_us = loop_now_us(be->loop);
    list_push_back(&req->pool->waiting, &req->pool_node);
    list_push_back(&be->requests, &req->all_node);
    req->pool->nwaiting++;
    be->nrequests++;
    quota_add_waiting(be->shm, req->pool->cluster_node, be->ordinal, 1);
    pool_publish_oldest(be, req->pool->cluster_node);
    return ACQUIRE_WAITING;
}

/* Settings whose value the server reports, so that SET instead of the start-up packet can be made
 * to mean the same, RESET included. */
static bool is_patchable(struct slice name)
{
    static const char *const names[] = {
        "application_name", "client_encoding", "DateStyle", "IntervalStyle", "TimeZone"};
    size_t i;

    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (slice_ieq_str(name, names[i]))
            return true;
    return false;
}

/* True when SET can turn a session opened with `has` into one opened with `wants`: nothing has to
 * be unset, and what differs is patchable. */
static bool params_can_patch(const struct paramset *has, const struct paramset *wants)
{
    struct slice name;
    struct slice value;
    struct slice other;
    uint32_t at = 0;

    while (paramset_next(has, &at, &name, &value))
        if (paramset_get(wants, name).p == NULL)
            return false;
    at = 0;
    while (paramset_next(wants, &at, &name, &value)) {
        other = paramset_get(has, name);
        if ((other.p == NULL || !slice_eq(other, value)) &&
            (!is_patchable(name) || memchr(value.p, '\\', value.n) != NULL))
            return false;
    }
    return true;
}

static bool link_suits(const struct link *link, const struct pool_request *req, bool patch)
{
    if (link->version < req->startup->version)
        return false;
    if (req->is_shared)
        return link->startup.len == 0;
    if (!link_is_pristine(link))
        return false;
    if (patch)
        return params_can_patch(&link->startup, req->startup->params);
    return paramset_eq(&link->startup, req->startup->params);
}

static struct link *pool_lend(struct pool *pool, struct link *link, const struct pool_request *req)
{
    list_remove(&link->pool_node);
    list_remove(&link->lru_node);
    list_push_front(&pool->busy, &link->pool_node);
    pool->nidle--;
    pool->nbusy++;
    link_lend(link, req->owner, req->ops);
    return link;
}

/* How many idle links are looked at for one that has the settings wanted. */
#define SHARED_LOOK_MAX 8

/* A link that was idle for longer may have been closed by the server unseen: looked at first. */
#define SHARED_CHECK_US 10000

/* The newest idle link that suits a client that shares links: one with its settings rather than
 * one without. */
static struct link *pool_find_shared(const struct pool *pool, const struct pool_request *req)
{
    struct link *found = NULL;
    struct link *link;
    struct list *n;
    int looked = 0;

    LIST_FOREACH(n, &pool->idle)
    {
        link = LIST_ENTRY(n, struct link, pool_node);
        if (!link_suits(link, req, false) || link->id == req->avoid_id)
            continue;
        if (link->vars == req->vars)
            return link;
        if (found == NULL)
            found = link;
        if (++looked == SHARED_LOOK_MAX)
            break;
    }
    return found;
}

static struct link *pool_take_shared(struct pool *pool, struct pool_request *req)
{
    struct link *link;

    while ((link = pool_find_shared(pool, req)) != NULL) {
        if (loop_now_us(pool->be->loop) - link->idle_since_us > SHARED_CHECK_US &&
            stream_is_stale(&link->stream)) {
            link_close(link);
            continue;
        }
        return pool_lend(pool, link, req);
    }
    return NULL;
}

/* Takes the newest idle link that suits. Links that the server closed meanwhile are thrown away
 * unseen by the client. */
static struct link *pool_take_idle(struct pool *pool, struct pool_request *req)
{
    struct list *n;
    struct list *tmp;
    struct link *link;
    int patch;

    if (req->is_shared)
        return pool_take_shared(pool, req);
    for (patch = 0; patch <= (req->no_patch ? 0 : 1); patch++) {
        LIST_FOREACH_SAFE(n, tmp, &pool->idle)
        {
            link = LIST_ENTRY(n, struct link, pool_node);
            if (!link_suits(link, req, patch == 1))
                continue;
            if (stream_is_stale(&link->stream)) {
                link_close(link);
                continue;
            }
            req->needs_patch = patch == 1;
            return pool_lend(pool, link, req);
        }
    }
    return NULL;
}

/* True when a link that is being cleaned will be free for this request: no earlier one wants it. */
static bool pool_may_wait_for_cleaning(const struct pool *pool, const struct pool_request *req)
{
    uint32_t ahead = 0;
    struct list *n;

    LIST_FOREACH(n, &pool->waiting)
    {
        if (n == &req->pool_node)
            break;
        ahead++;
    }
    return pool->ncleaning > ahead;
}

static enum acquire_result pool_open_link(struct pool_request *req)
{
    pool_request_leave(req);
    req->link = link_open(req->pool, req->startup, req->owner, req->ops);
    req->link->is_private = req->is_private;
    req->link->may_answer = req->is_proved;
    return ACQUIRE_OPENING;
}

enum acquire_result pool_acquire(struct pool_request *req)
{
    struct pool *pool = req->pool;
    struct backend *be = pool->be;
    bool is_waiting = !list_is_detached(&req->pool_node);

    if ((orders_flags(be->shm, pool_database(pool)) & ORDER_PAUSE) != 0)
        return pool_request_wait(req, WAIT_REASON_PAUSED);
    if (req->may_reuse && !req->is_private && !be->is_stopping) {
        if (is_waiting || list_is_empty(&pool->waiting))
            req->link = pool_take_idle(pool, req);
        if (req->link != NULL) {
            pool_request_leave(req);
            return ACQUIRE_GRANTED;
        }
        if (pool_may_wait_for_cleaning(pool, req))
            return pool_request_wait(req, WAIT_REASON_CONNECTING);
    }
    if (quota_take(be->shm, pool->cluster_node, be->ordinal))
        return pool_open_link(req);
    /* The limit is reached: an idle link of somebody else makes room. */
    if (backend_evict_idle(be, pool->cluster_node) &&
        quota_take(be->shm, pool->cluster_node, be->ordinal))
        return pool_open_link(req);
    (void)pool_request_wait(req, WAIT_REASON_NODE_LIMIT);
    /* Somebody may have given a link back before we were seen waiting: nobody would tell us. */
    if (quota_take(be->shm, pool->cluster_node, be->ordinal))
        return pool_open_link(req);
    be->want_link(be, pool);
    return ACQUIRE_WAITING;
}

static void pool_touch(struct pool *pool)
{
    if (list_is_detached(&pool->lru_node))
        pool->be->npools_live++;
    list_remove(&pool->lru_node);
    list_push_back(&pool->be->pool_lru, &pool->lru_node);
}

void pool_link_added(struct pool *pool, struct link *link)
{
    list_push_front(&pool->busy, &link->pool_node);
    pool->nbusy++;
    pool_touch(pool);
}

static void pool_link_cleaned(struct pool *pool, struct link *link)
{
    if (link->is_counted_cleaning)
        pool->ncleaning--;
    link->is_counted_cleaning = false;
}

void pool_link_cleaning(struct pool *pool, struct link *link)
{
    link->is_counted_cleaning = true;
    pool->ncleaning++;
}

/* max_pool: how many user and database pairs keep idle links. The one unused for longest goes
 * first. */
static void pool_enforce_max(struct backend *be)
{
    struct list *n;
    struct list *tmp;
    struct list *l;
    struct pool *pool;

    LIST_FOREACH_SAFE(n, tmp, &be->pool_lru)
    {
        if (be->npools_live <= (unsigned)be->conf->max_pool)
            return;
        pool = LIST_ENTRY(n, struct pool, lru_node);
        if (pool->nbusy > 0)
            continue;
        pool->nclients++; /* hold it while its links go */
        while ((l = list_first(&pool->idle)) != NULL)
            link_close(LIST_ENTRY(l, struct link, pool_node));
        pool_detach(pool);
        return; /* one at a time: links come one at a time */
    }
}

/* A link of `pool` is idle: who gets it? The client that waits longest for the node, of whatever
 * worker. Only while the node's limit is reached: else everybody may open links. */
static void pool_offer_idle(struct pool *pool, struct link *link)
{
    struct backend *be = pool->be;
    int node = pool->cluster_node;
    struct pool_request *req = backend_oldest_request(be, node);
    int64_t other_us = 0;
    int other = -1;

    if (quota_limit(be->shm, node) > 0 && quota_waiting(be->shm, node) > 0)
        other = quota_find_oldest(be->shm, node, be->ordinal, &other_us);
    if (other != -1 && (req == NULL || other_us < req->since_us) && link_give_away(link, other))
        return;
    if (req == NULL)
        return;
    if (req->pool != pool && req->reason == WAIT_REASON_NODE_LIMIT) {
        link_close(link); /* makes room; the retry that follows begins with the oldest */
        return;
    }
    if (list_first(&pool->waiting) != NULL) {
        req = LIST_ENTRY(list_first(&pool->waiting), struct pool_request, pool_node);
        req->on_turn(req);
    }
}

void pool_link_idle(struct pool *pool, struct link *link)
{
    list_remove(&link->pool_node);
    list_push_front(&pool->idle, &link->pool_node);
    list_push_back(&pool->be->idle_lru, &link->lru_node);
    pool->nbusy--;
    pool->nidle++;
    pool_link_cleaned(pool, link);
    pool_touch(pool);
    if (pool->be->npools_live > (unsigned)pool->be->conf->max_pool)
        pool_enforce_max(pool->be);
    if (link->phase == LINK_IDLE &&
        orders_want_close(pool->be->shm, pool_database(pool), link->opened_us))
        link_close(link);
    else if (link->phase == LINK_IDLE)
        pool_offer_idle(pool, link);
}

void pool_link_gone(struct pool *pool, struct link *link)
{
    struct backend *be = pool->be;

    if (link->phase == LINK_IDLE)
        pool->nidle--;
    else
        pool->nbusy--;
    pool_link_cleaned(pool, link);
    list_remove(&link->pool_node);
    list_remove(&link->lru_node);
    if (pool->nidle + pool->nbusy == 0) {
        list_remove(&pool->lru_node);
        be->npools_live--;
    }
    backend_post_retry(be);
    pool_free_if_unused(pool);
}
