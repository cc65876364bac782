/* SPDX-License-Identifier: PostgreSQL
 * pool_wait.c: the lines of waiting clients, and whose turn it is.
 * Runs in: workers. A line per pool and worker, first come, first served. What the other workers
 * have to know of a line, its age, is published; so a link that becomes free goes to who waits
 * longest without anybody asking. No wake-up can be lost: who joins a line publishes first and
 * looks for free links after, who frees a link does it the other way round; and a sweep goes over
 * all lines now and then, should a message not have found room in a mailbox. */
#include "config.h"

#include "backend/quota.h"

#include "pool_int.h"

/* The age of a line is published anew when it differs by this much. */
#define PUBLISH_US 1000

HOT struct pool_request *pool_head(struct pool *pool)
{
    struct list *n = list_first(&pool->waiting);

    return n == NULL ? NULL : LIST_ENTRY(n, struct pool_request, pool_node);
}

/* ---- what is in the way ---- */

static enum wait_reason reason_of(enum limits_verdict v)
{
    switch (v) {
    case LIMITS_AT_POOL:
    case LIMITS_NO_ROOM:
        return WAIT_REASON_POOL_LIMIT;
    case LIMITS_AT_DB:
        return WAIT_REASON_DATABASE_LIMIT;
    case LIMITS_AT_USER:
        return WAIT_REASON_USER_LIMIT;
    case LIMITS_AT_NODE:
        return WAIT_REASON_NODE_LIMIT;
    case LIMITS_AT_CONNECT:
    case LIMITS_OK:
        break;
    }
    return WAIT_REASON_CONNECTING;
}

/* True when both wait for the same room. */
static bool is_same_block(const struct pool *a, const struct pool *b, enum limits_verdict v)
{
    if (a->blocked != v || a->cluster_node != b->cluster_node)
        return false;
    return v == LIMITS_AT_NODE || (v == LIMITS_AT_DB && a->limits.db == b->limits.db) ||
           (v == LIMITS_AT_USER && a->limits.user == b->limits.user);
}

/* Tells the others since when this worker waits for what `pool` waits for. */
static void publish_block(struct pool *pool, enum limits_verdict v)
{
    struct backend *be = pool->be;
    int64_t since_us = 0;
    struct pool *other;
    struct list *n;

    if (v != LIMITS_AT_DB && v != LIMITS_AT_USER && v != LIMITS_AT_NODE)
        return;
    LIST_FOREACH(n, &be->waiting_pools)
    {
        other = LIST_ENTRY(n, struct pool, waiting_node);
        if (is_same_block(other, pool, v) && !list_is_empty(&other->waiting) &&
            (since_us == 0 || pool_head(other)->since_us < since_us))
            since_us = pool_head(other)->since_us;
    }
    if (v == LIMITS_AT_NODE)
        quota_set_oldest(be->shm, pool->cluster_node, be->ordinal, since_us);
    else
        limits_set_oldest(be->shm, v == LIMITS_AT_DB ? pool->limits.db : pool->limits.user,
            be->ordinal, since_us);
}

static void set_block(struct pool *pool, enum limits_verdict v)
{
    enum limits_verdict was = pool->blocked;

    if (was == v)
        return;
    pool->blocked = (uint8_t)v;
    publish_block(pool, was);
    publish_block(pool, v);
}

/* The head of the line is another one. */
static void publish_head(struct pool *pool)
{
    struct pool_request *head = pool_head(pool);
    int64_t since_us = head == NULL ? 0 : head->since_us;
    int64_t told_us = pool->told.oldest_us;

    if (since_us >= told_us && told_us != 0 && since_us - told_us < PUBLISH_US)
        return;
    if (since_us == told_us)
        return;
    pool->told.oldest_us = since_us;
    limits_set_oldest(pool->be->shm, pool->limits.pool, pool->be->ordinal, since_us);
    if (head != NULL)
        publish_block(pool, pool->blocked);
}

/* ---- who waits longer ---- */

bool pool_waits_longer(int64_t other_us, int64_t own_us, int64_t now_us, int64_t least_us)
{
    int64_t own_wait_us = now_us > own_us ? now_us - own_us : 0;
    int64_t margin_us = own_wait_us / 2 > least_us ? own_wait_us / 2 : least_us;

    return now_us - other_us > own_wait_us + margin_us;
}

bool pool_frees_soon(const struct pool *pool)
{
    return pool->nbusy > 0 && loop_now_us(pool->be->loop) - pool->freed_us < POOL_PATIENCE_US;
}

/* Finds an older line. By the age of the lines alone, links would travel to and fro between workers
 * that both have enough of them, whenever one of them is not scheduled for a moment. */
int pool_find_older(struct pool *pool)
{
    struct backend *be = pool->be;
    struct pool_request *head = pool_head(pool);
    int64_t now_us = loop_now_us(be->loop);
    int64_t own_us = head == NULL ? now_us : head->since_us;
    int64_t other_us = 0;
    int other;

    if (limits_waiting_workers(be->shm, pool->limits.pool) <= (pool->told.oldest_us != 0 ? 1 : 0))
        return -1;
    other = limits_find_oldest(be->shm, pool->limits.pool, be->ordinal, &other_us);
    if (other == -1 || pool_waits_longer(other_us, own_us, now_us, POOL_STUCK_US))
        return other;
    if (head != NULL && !pool_waits_longer(other_us, own_us, now_us, POOL_TRAVEL_US))
        return -1;
    return limits_is_busier(be->shm, pool->limits.pool, other, be->ordinal) ? other : -1;
}

/* The entry that counts what the limit `v` is about; LIMITS_NO_ENTRY: none does. */
static int entry_of(const struct pool *pool, enum limits_verdict v)
{
    switch (v) {
    case LIMITS_AT_POOL:
        return pool->limits.pool;
    case LIMITS_AT_DB:
        return pool->limits.db;
    case LIMITS_AT_USER:
        return pool->limits.user;
    case LIMITS_AT_NODE:
    case LIMITS_AT_CONNECT:
    case LIMITS_NO_ROOM:
    case LIMITS_OK:
        break;
    }
    return LIMITS_NO_ENTRY;
}

/* Since when the oldest client of any worker waits at the limit `v`; 0: none does. */
static int64_t oldest_at(const struct pool *pool, enum limits_verdict v)
{
    const struct shm *shm = pool->be->shm;
    int id = entry_of(pool, v);
    int64_t t = 0;

    if (v == LIMITS_AT_NODE)
        return quota_waiting_workers(shm, pool->cluster_node) > 0 &&
                       quota_find_oldest(shm, pool->cluster_node, -1, &t) != -1
                   ? t
                   : 0;
    return limits_waiting_workers(shm, id) > 0 && limits_find_oldest(shm, id, -1, &t) != -1 ? t : 0;
}

bool pool_is_behind(const struct pool *pool, enum limits_verdict v, int64_t own_us, int64_t now_us)
{
    int64_t other_us = oldest_at(pool, v);

    return other_us != 0 && pool_waits_longer(other_us, own_us, now_us, POOL_REOPEN_US);
}

enum limits_verdict pool_oldest_blocked(const struct pool *pool, int64_t *since_us)
{
    static const enum limits_verdict at[] = {LIMITS_AT_NODE, LIMITS_AT_DB, LIMITS_AT_USER};
    enum limits_verdict found = LIMITS_OK;
    size_t i;

    for (i = 0; i < sizeof at / sizeof at[0]; i++) {
        int64_t t = oldest_at(pool, at[i]);

        if (t != 0 && (found == LIMITS_OK || t < *since_us)) {
            found = at[i];
            *since_us = t;
        }
    }
    return found;
}

bool pool_may_swap(const struct pool *pool, enum limits_verdict v)
{
    struct shm *shm = pool->be->shm;
    int64_t now_us = loop_now_us(pool->be->loop);
    int64_t since_us = oldest_at(pool, v);
    int64_t least_us =
        since_us != 0 && now_us - since_us >= POOL_STARVED_US ? POOL_SWAP_STARVED_US : POOL_SWAP_US;

    return v == LIMITS_AT_NODE ? quota_may_swap(shm, pool->cluster_node, now_us, least_us)
                               : limits_may_swap(shm, entry_of(pool, v), now_us, least_us);
}

bool pool_call_older(struct pool *pool)
{
    struct backend *be = pool->be;
    int64_t since_us;
    int other = limits_find_oldest(be->shm, pool->limits.pool, be->ordinal, &since_us);

    if (other == -1 || limits_keeps(be->shm, pool->limits.pool, other))
        return false;
    other = pool_find_older(pool);
    if (other != -1)
        pool_call_clients(pool, other);
    return true;
}

bool pool_gives_place(const struct pool *pool)
{
    return pool->be->gives_to != -1 && pool->nidle + pool->nbusy > 1 &&
           pool->opens != POOL_OWNER_OPENS &&
           limits_waiting_workers(pool->be->shm, pool->limits.pool) > 0 &&
           pool_may_swap(pool, LIMITS_AT_POOL);
}

bool pool_lets_go(const struct pool *pool)
{
    return !pool->is_bound || pool->nidle + pool->nbusy == 0 ||
           limits_waiting_workers(pool->be->shm, pool->limits.pool) == 0;
}

/* What clients of other workers wait for a little longer is no reason to close a link, nor that
 * none of ours waits at the moment: the next one does. A worker without any link waits for none of
 * its own. */
bool pool_must_hand_over(struct pool *pool)
{
    struct backend *be = pool->be;
    struct pool_request *head = pool_head(pool);
    int64_t now_us = loop_now_us(be->loop);
    int64_t own_us = head == NULL ? now_us : head->since_us;
    int64_t other_us = 0;
    int other = limits_find_oldest(be->shm, pool->limits.pool, be->ordinal, &other_us);
    bool waits = other != -1 && pool_waits_longer(other_us, own_us, now_us, POOL_REOPEN_US);
    bool is_uneven = waits && limits_is_busier(be->shm, pool->limits.pool, other, be->ordinal);

    if (!limits_is_long_uneven(&pool->uneven, is_uneven, now_us) &&
        (!waits || (limits_has_links(be->shm, pool->limits.pool, other) &&
                       !pool_waits_longer(other_us, own_us, now_us, POOL_STUCK_REOPEN_US))))
        return false;
    return pool_may_swap(pool, LIMITS_AT_POOL);
}

/* ---- the line ---- */

/* At the end, or where it stood before. */
static void line_join(struct pool *pool, struct pool_request *req)
{
    struct list *before = pool->waiting.prev;

    if (req->keeps_place)
        while (before != &pool->waiting &&
               LIST_ENTRY(before, struct pool_request, pool_node)->since_us > req->since_us)
            before = before->prev;
    else
        req->since_us = loop_now_us(pool->be->loop);
    req->keeps_place = false;
    list_insert_after(before, &req->pool_node);
}

enum acquire_result pool_request_join(struct pool_request *req, enum limits_verdict v)
{
    struct pool *pool = req->pool;
    struct backend *be = pool->be;
    bool is_first = list_is_empty(&pool->waiting);

    req->reason = (uint8_t)reason_of(v);
    if (list_is_detached(&req->pool_node)) {
        if (is_first)
            list_push_back(&be->waiting_pools, &pool->waiting_node);
        line_join(pool, req);
        pool->nwaiting++;
        be->nrequests++;
        limits_set_waiting(be->shm, pool->limits.pool, be->ordinal, pool->nwaiting);
        if (pool_head(pool) == req)
            publish_head(pool);
        if (!timer_is_armed(&be->sweep))
            timer_start(be->loop, &be->sweep, POOL_SWEEP_MS);
    }
    if (pool_head(pool) == req)
        set_block(pool, v);
    return ACQUIRE_WAITING;
}

void pool_request_leave(struct pool_request *req)
{
    struct pool *pool = req->pool;
    bool was_head;

    if (list_is_detached(&req->pool_node))
        return;
    was_head = pool_head(pool) == req;
    list_remove(&req->pool_node);
    pool->nwaiting--;
    pool->be->nrequests--;
    limits_set_waiting(pool->be->shm, pool->limits.pool, pool->be->ordinal, pool->nwaiting);
    if (!was_head)
        return;
    pool->head_changes++;
    if (pool->told.head_stays)
        limits_set_keeps(pool->be->shm, pool->limits.pool, pool->be->ordinal, false);
    pool->told.head_stays = false;
    list_remove(&pool->waiting_node);
    if (list_is_empty(&pool->waiting))
        set_block(pool, LIMITS_OK);
    else
        list_push_back(&pool->be->waiting_pools, &pool->waiting_node);
    publish_head(pool);
}

void pool_request_cancel(struct pool_request *req)
{
    pool_request_leave(req);
}

/* ---- turns ---- */

void pool_serve(struct pool *pool)
{
    struct backend *be = pool->be;
    struct pool_request *head = pool_head(pool);

    if (be->is_serving) {
        backend_post_retry(be);
        return;
    }
    be->is_serving = true;
    pool->nclients++; /* the turn may let the last client go */
    head->on_turn(head);
    be->is_serving = false;
    pool_detach(pool);
}

/* Lets the line of a pool try until nothing moves any more. A turn may free the request. */
static void pool_turns(struct pool *pool)
{
    uint32_t turns = pool->nwaiting;
    uint32_t changes;

    pool->nclients++;
    while (turns-- > 0 && pool->nwaiting > 0) {
        changes = pool->head_changes;
        pool_head(pool)->on_turn(pool_head(pool));
        if (pool->head_changes == changes)
            break;
    }
    if (pool->nwaiting > 0) {
        pool_grow(pool);
        if (pool->be->is_sweeping)
            pool_ask_others(pool);
    }
    pool_detach(pool);
}

/* Every pool that somebody waits for has its turn, the one served last at the end. A turn may
 * change the list: the pools are counted before, and each goes to the end when its turn comes. */
static void retry_all(struct backend *be)
{
    unsigned left = 0;
    struct list *n;

    if (be->is_retrying)
        return;
    be->is_retrying = true;
    quota_told_clear(be->shm, be->ordinal);
    LIST_FOREACH(n, &be->waiting_pools)
    left++;
    while (left-- > 0 && (n = list_first(&be->waiting_pools)) != NULL) {
        list_remove(n);
        list_push_back(&be->waiting_pools, n);
        pool_turns(LIST_ENTRY(n, struct pool, waiting_node));
    }
    be->is_retrying = false;
}

void backend_on_retry(struct task *t)
{
    retry_all(LIST_ENTRY(t, struct backend, retry));
}

void backend_on_sweep(struct timer *t)
{
    struct backend *be = LIST_ENTRY(t, struct backend, sweep);

    be->is_sweeping = true;
    retry_all(be);
    be->is_sweeping = false;
    if (be->nrequests > 0 && !timer_is_armed(&be->sweep))
        timer_start(be->loop, &be->sweep, POOL_SWEEP_MS);
}

void backend_post_retry(struct backend *be)
{
    if (be->nrequests > 0)
        task_post(be->loop, &be->retry);
}
