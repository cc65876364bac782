/* SPDX-License-Identifier: PostgreSQL
 * pool.c: hands out links: an idle one whose start-up parameters are the client's, else one that is
 * being cleaned, else a new one within the node's limit, else the client waits in turn. */
#include "config.h"

#include "backend/pool.h"

#include <string.h>

#include "base/hot.h"
#include "base/log.h"
#include "config/conf.h"
#include "ipc/orders.h"

#include "pool_int.h"

HOT bool pool_is_trusted(const struct pool *pool)
{
    return pool->auth == LINK_AUTH_TRUST &&
           loop_now_us(pool->be->loop) - pool->auth_seen_us < POOL_TRUST_MAX_US;
}

void pool_learn_auth(struct pool *pool, enum link_auth auth)
{
    struct list *n;

    pool->auth_seen_us = loop_now_us(pool->be->loop);
    if (pool->auth == LINK_AUTH_TRUST && auth != LINK_AUTH_TRUST) {
        log_caused(LVL_LOG,
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
    if (link->asked_version < req->startup->version)
        return false;
    if (!link_is_pristine(link) && !(req->allows_names && link_has_only_names(link)))
        return false;
    if (patch)
        return params_can_patch(&link->startup, req->startup->params);
    return paramset_eq(&link->startup, req->startup->params);
}

HOT static struct link *pool_lend(
    struct pool *pool, struct link *link, void *owner, const struct link_owner_ops *ops)
{
    list_remove(&link->pool_node);
    list_remove(&link->be_node);
    list_push_back(&pool->be->links, &link->be_node);
    list_push_front(&pool->busy, &link->pool_node);
    pool->nidle--;
    pool->nbusy++;
    pool_tell_idle(pool, false);
    link_lend(link, owner, ops);
    return link;
}

/* How many idle links are looked at for one that has the settings wanted. */
#define SHARED_LOOK_MAX 8

/* A link that was idle for longer may have been closed by the server unseen: looked at first. */
#define SHARED_CHECK_US 10000

/* The newest idle link that suits a followed client: one with its settings rather than
 * one without. */
HOT static struct link *pool_find_shared(
    const struct pool *pool, const struct varset *vars, uint64_t avoid_id)
{
    struct link *found = NULL;
    struct link *link;
    struct list *n;
    int looked = 0;

    LIST_FOREACH(n, &pool->idle)
    {
        link = LIST_ENTRY(n, struct link, pool_node);
        if (link->asked_version < PROTO_3_0 || !paramset_is_empty(&link->startup) ||
            link->id == avoid_id)
            continue;
        if (link->vars == vars)
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

    while ((link = pool_find_shared(pool, req->vars, req->avoid_id)) != NULL) {
        if (loop_now_us(pool->be->loop) - link->quiet_us > SHARED_CHECK_US &&
            stream_is_stale(&link->stream)) {
            link_close(link);
            continue;
        }
        if (pool_check_idle(pool, link, true))
            return NULL;
        return pool_lend(pool, link, req->owner, req->ops);
    }
    return NULL;
}

/* A link that can be lent as it is; NULL: there is none, or others wait. */
HOT static inline struct link *pool_find_ready(
    const struct pool *pool, const struct varset *vars, uint64_t avoid_id)
{
    int64_t check_us = pool->set->server_check_delay_ms * 1000;
    struct link *link;

    if (!list_is_empty(&pool->waiting) || pool->nidle == 0 || pool->role_due ||
        pool->be->is_stopping || pool_is_paused(pool))
        return NULL;
    link = pool_find_shared(pool, vars, avoid_id);
    if (check_us > SHARED_CHECK_US)
        check_us = SHARED_CHECK_US;
    if (link == NULL || link->reset != LINK_RESET_NONE ||
        loop_now_us(pool->be->loop) - link->quiet_us > check_us)
        return NULL;
    return link;
}

HOT struct link *pool_borrow(struct pool *pool, const struct varset *vars, uint64_t avoid_id,
    void *owner, const struct link_owner_ops *ops)
{
    struct link *link = pool_find_ready(pool, vars, avoid_id);

    return link == NULL ? NULL : pool_lend(pool, link, owner, ops);
}

bool pool_has_ready(const struct pool *pool, const struct varset *vars, uint64_t avoid_id)
{
    return pool_find_ready(pool, vars, avoid_id) != NULL;
}

bool pool_has_parsed(const struct pool *pool, const uint8_t id[PREP_ID_BYTES])
{
    struct list *n;

    if (pool->nidle > 0 && list_is_empty(&pool->waiting))
        return false;
    LIST_FOREACH(n, &pool->busy)
    {
        if (prepset_is_sure(&LIST_ENTRY(n, struct link, pool_node)->preps, id))
            return true;
    }
    return false;
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
            if (pool_check_idle(pool, link, false))
                return NULL;
            req->needs_patch = patch == 1;
            return pool_lend(pool, link, req->owner, req->ops);
        }
    }
    return NULL;
}

static struct link *pool_find_idle(const struct pool *pool, const struct pool_request *req)
{
    struct list *n;

    if (!req->may_reuse || req->is_private || pool->be->is_stopping || pool->nidle == 0)
        return NULL;
    if (req->is_shared)
        return pool_find_shared(pool, req->vars, req->avoid_id);
    LIST_FOREACH(n, &pool->idle)
    {
        if (link_suits(LIST_ENTRY(n, struct link, pool_node), req, !req->no_patch))
            return LIST_ENTRY(n, struct link, pool_node);
    }
    return NULL;
}

bool pool_has_for(const struct pool *pool, const struct pool_request *req)
{
    return !pool->role_due && pool_find_idle(pool, req) != NULL;
}

bool pool_check_for(struct pool *pool, const struct pool_request *req)
{
    struct link *found = pool_find_idle(pool, req);

    return found != NULL && pool_check_idle(pool, found, req->is_shared);
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

/* Behind others there is nothing to try; but one more link may be worth opening. Those in front may
 * be waiting for links that are asked something while others lie idle: then all have their turn. */
static enum acquire_result pool_join_tail(struct pool_request *req)
{
    struct pool *pool = req->pool;

    (void)pool_request_join(req, (enum limits_verdict)pool->blocked);
    if (pool_is_paused(pool))
        req->reason = WAIT_REASON_PAUSED;
    else if (pool->nidle > 0 && !pool->role_due)
        backend_post_retry(pool->be);
    else if (pool->blocked == LIMITS_OK)
        pool_grow(pool);
    return ACQUIRE_WAITING;
}

HOT enum acquire_result pool_acquire(struct pool_request *req)
{
    struct pool *pool = req->pool;
    struct pool_request *head = pool_head(pool);

    if (head != NULL && head != req)
        return list_is_detached(&req->pool_node) ? pool_join_tail(req) : ACQUIRE_WAITING;
    if (pool_is_paused(pool)) {
        (void)pool_request_join(req, LIMITS_OK);
        req->reason = WAIT_REASON_PAUSED;
        return ACQUIRE_WAITING;
    }
    if (req->may_reuse && !req->is_private && !pool->be->is_stopping) {
        req->link = pool_take_idle(pool, req);
        if (req->link != NULL) {
            pool_request_leave(req);
            return ACQUIRE_GRANTED;
        }
        if (pool_may_wait_for_cleaning(pool, req))
            return pool_request_join(req, LIMITS_OK);
    }
    return pool_open_for(req);
}

void pool_link_added(struct pool *pool, struct link *link)
{
    list_push_front(&pool->busy, &link->pool_node);
    pool->nbusy++;
}

static void pool_link_cleaned(struct pool *pool, struct link *link)
{
    if (link->hope == LINK_HOPE_COUNTED)
        pool->ncleaning--;
    link->hope = LINK_HOPE_NONE;
}

void pool_link_cleaning(struct pool *pool, struct link *link)
{
    if (link->hope == LINK_HOPE_LOST)
        return;
    link->hope = LINK_HOPE_COUNTED;
    pool->ncleaning++;
}

void pool_link_slow(struct pool *pool, struct link *link)
{
    pool_link_cleaned(pool, link);
    link->hope = LINK_HOPE_LOST;
    backend_post_retry(pool->be);
}

/* With pool_test_rotate every other link behaves so. */
bool pool_keeps_link(struct pool *pool, const struct link *link)
{
    pool->is_bound = link_is_bound(link);
    if (pool->is_bound || !pool->be->conf->pool_test_rotate)
        return pool->is_bound;
    pool->rotates = !pool->rotates;
    return pool->rotates;
}

/* A client of another worker has waited markedly longer than ours, or none of ours waits: the link
 * goes there. When it cannot travel the client comes here; when that cannot either, the link's
 * place goes. */
static bool pool_offer_others(struct pool *pool, struct link *link)
{
    int other;

    if (!pool_keeps_link(pool, link)) {
        other = pool_find_older(pool);
        return other != -1 && link_give_away(link, other);
    }
    if (pool_gives_place(pool) && pool_give_place(link, pool->be->gives_to))
        return true;
    if (pool_call_older(pool) || !pool_must_hand_over(pool))
        return false;
    link_close(link);
    return true;
}

/* A client of another pool needs the place, and has waited long enough that closing a link and
 * opening another is worth it. When nobody of ours waits, somebody may in a moment. */
static bool pool_make_way(struct pool *pool, struct link *link)
{
    struct pool_request *head = pool_head(pool);
    int64_t now_us = loop_now_us(pool->be->loop);
    int64_t other_us = 0;
    enum limits_verdict v = pool_oldest_blocked(pool, &other_us);

    if (v == LIMITS_OK)
        return false;
    if (head == NULL ? now_us - other_us < POOL_TRAVEL_US
                     : !pool_waits_longer(other_us, head->since_us, now_us, POOL_REOPEN_US))
        return false;
    if (!pool_may_swap(pool, v))
        return false;
    link_close(link);
    return true;
}

/* Our own links come free, but not fast enough. */
static void pool_ask_if_late(struct pool *pool)
{
    struct pool_request *head = pool_head(pool);
    int64_t now_us = loop_now_us(pool->be->loop);
    int64_t least_us = pool->blocked == LIMITS_AT_POOL ? POOL_PATIENCE_US : POOL_REOPEN_US;

    if (head == NULL || now_us - head->since_us < POOL_PATIENCE_US ||
        now_us - pool->asked_us < least_us)
        return;
    pool->asked_us = now_us;
    pool_ask_others(pool);
}

/* A link of `pool` is idle: who gets it? */
static void pool_offer_idle(struct pool *pool, struct link *link)
{
    bool has_head = pool_head(pool) != NULL;

    if (!has_head)
        pool_tell_idle(pool, true);
    if (pool_is_waited_for(pool) && (pool_offer_others(pool, link) || pool_make_way(pool, link)))
        return;
    if (!has_head) {
        pool_keep_update(pool);
        return;
    }
    pool->nclients++;
    pool_serve(pool);
    pool_tell_idle(pool, true);
    pool_ask_if_late(pool);
    pool_detach(pool);
}

HOT void pool_link_idle(struct pool *pool, struct link *link)
{
    list_remove(&link->pool_node);
    list_push_front(&pool->idle, &link->pool_node);
    list_remove(&link->be_node);
    list_push_back(&pool->be->idle_lru, &link->be_node);
    pool->nbusy--;
    pool->nidle++;
    pool->freed_us = loop_now_us(pool->be->loop);
    pool_link_cleaned(pool, link);
    if (link->is_retired || link->dropped_by != 0 || pool->be->is_stopping ||
        pool_is_done_with(pool, link) ||
        (pool_has_orders(pool) &&
            orders_want_close(pool->be->shm, pool_database(pool), link->opened_us)))
        link_close(link);
    else
        pool_offer_idle(pool, link);
}

void pool_link_gone(struct pool *pool, struct link *link)
{
    struct backend *be = pool->be;

    pool_link_opened(link, false);
    link_cancel_forget(link, true);
    if (link->phase == LINK_IDLE)
        pool->nidle--;
    else
        pool->nbusy--;
    if (link->opening != NULL && link->opening->is_for_pool)
        pool->nopening--;
    pool_link_cleaned(pool, link);
    list_remove(&link->pool_node);
    list_remove(&link->be_node);
    pool_tell_idle(pool, false);
    if (link->has_quota) {
        limits_give_link(be->shm, be->ordinal, pool->cluster_node, &pool->limits);
        link->has_quota = false;
        pool_wake_others(pool);
    }
    backend_post_retry(be);
    pool_free_if_unused(pool);
}
