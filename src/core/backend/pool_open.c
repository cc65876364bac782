/* SPDX-License-Identifier: PostgreSQL
 * pool_open.c: opens links, within the limits.
 * Runs in: workers. A link that can log in without asking a client is opened for the pool: it goes
 * to whoever waits longest when it is there, and a client whose turn comes earlier by another link
 * does not wait for it. Only when the server asks for something that nobody here knows does a
 * client open a link of its own and answer. A server that has no room, or is starting up, is left
 * alone by all workers for a while; clients wait for it until their patience ends. */
#include "config.h"

#include <string.h>

#include "backend/quota.h"
#include "base/log.h"
#include "config/conf.h"
#include "wire/message.h"

#include "link_int.h"
#include "pool_int.h"

/* How long a pool without clients that cannot log in waits before it tries again. */
#define TRIAL_WAIT_MIN_US 1000000
#define TRIAL_WAIT_MAX_US 60000000

/* ---- limits ---- */

/* Leaves the last place to a client that has waited markedly longer: one of the same pool in
 * another worker, or one of another pool. Without that who closes a link for them takes its place
 * again before they have heard of it. */
static void keep_for_others(
    struct pool *pool, int64_t own_us, int64_t now_us, struct limits_max *max)
{
    struct backend *be = pool->be;
    int64_t other_us = 0;

    if (be->is_sweeping)
        return;
    if (limits_waiting_workers(be->shm, pool->limits.pool) > (pool->told.oldest_us != 0 ? 1 : 0) &&
        limits_find_oldest(be->shm, pool->limits.pool, be->ordinal, &other_us) != -1 &&
        pool_waits_longer(other_us, own_us, now_us, POOL_TRAVEL_US)) {
        max->keep_pool = 1;
        max->keep_node = 1;
    }
    max->keep_db = pool_is_behind(pool, LIMITS_AT_DB, own_us, now_us);
    max->keep_user = pool_is_behind(pool, LIMITS_AT_USER, own_us, now_us);
    if (max->keep_node == 0)
        max->keep_node = pool_is_behind(pool, LIMITS_AT_NODE, own_us, now_us);
}

/* Takes a place for one more link of the pool, on behalf of a client that waits since `since_us`.
 */
static enum limits_verdict take_place(struct pool *pool, int64_t since_us)
{
    struct backend *be = pool->be;
    const struct pool_settings *set = pool->set;
    int64_t now_us = loop_now_us(be->loop);
    struct limits_max max = {.pool = set->pool_size,
        .db = set->max_db_connections,
        .user = set->max_user_connections,
        .connecting = be->conf->server_connect_limit};

    if (pool->limits.pool == LIMITS_NO_ENTRY) {
        if (limits_attach(be->shm, be->ordinal, pool->cluster_node, pool_user(pool),
                pool_database(pool), &pool->limits) == -1)
            return LIMITS_NO_ROOM;
        pool_know_cells(pool);
    }
    if (max.pool > 0 && set->reserve_pool_timeout_ms > 0 &&
        now_us - since_us >= set->reserve_pool_timeout_ms * 1000)
        max.pool += set->reserve_pool_size;
    keep_for_others(pool, since_us, now_us, &max);
    return limits_take_link(be->shm, be->ordinal, pool->cluster_node, &pool->limits, &max, now_us);
}

/* ---- links of the pool's own ---- */

/* A pool that cannot log in by itself: clients open theirs, and are told what is wrong. Without any
 * client the log is. */
static void own_failed(struct pool *pool, const char *why)
{
    struct pool_warmth *warm = &pool->warmth;
    bool was_known = pool->opens == POOL_OWNER_OPENS;

    pool->opens = POOL_OWNER_OPENS;
    if (!warm->is_kept || was_known)
        return;
    warm->trial_wait_us *= 2;
    if (warm->trial_wait_us < TRIAL_WAIT_MIN_US)
        warm->trial_wait_us = TRIAL_WAIT_MIN_US;
    if (warm->trial_wait_us > TRIAL_WAIT_MAX_US)
        warm->trial_wait_us = TRIAL_WAIT_MAX_US;
    warm->trial_us = loop_now_us(pool->be->loop) + warm->trial_wait_us;
    log_at_detail(LVL_WARNING, why,
        "Give pgpool a password of that user (pool_passwd), or set min_pool_size = 0.",
        "min_pool_size of database \"%.*s\" cannot be kept: user \"%s\" cannot log in to node %d; "
        "tried again in %d s",
        (int)pool->database_len, pool_database(pool).p, pool->names, pool->cluster_node,
        (int)(warm->trial_wait_us / 1000000));
}

static void own_on_auth(void *owner, struct link *link, const char *msg, size_t n)
{
    struct pool *pool = owner;

    if (message_is_auth_ok(msg, n))
        return;
    /* nobody is here to answer */
    own_failed(pool, "The server asks for a password that is not known here (see pool_passwd).");
    link_close(link);
}

static void own_on_login_done(void *owner, struct link *link)
{
    struct pool *pool = owner;

    pool->nopening--;
    if (pool->opens == POOL_ON_TRIAL)
        pool->opens = POOL_OPENS;
    pool->warmth.trial_wait_us = 0;
    link->owner = NULL;
    link->ops = NULL;
    link->epoch = ++link->be->next_epoch;
    link->uses = 0;
    link_enter_idle(link);
}

static bool own_on_error(void *owner, struct link *link, const struct errmsg *m)
{
    (void)owner;
    (void)link;
    (void)m;
    return false;
}

static bool is_refusal(const char *sqlstate)
{
    return strcmp(sqlstate, "53300") == 0 || strcmp(sqlstate, "57P03") == 0;
}

/* Whoever waits opens the next one: so the client is told what is wrong. */
static void own_on_lost(void *owner, struct link *link, const struct err *err, bool told)
{
    struct pool *pool = owner;

    (void)link;
    (void)told;
    if (!is_refusal(err->sqlstate))
        own_failed(pool, err->msg);
}

static const struct link_owner_ops own_ops = {
    .on_auth = own_on_auth,
    .on_login_done = own_on_login_done,
    .on_bytes = link_ignore_bytes,
    .on_quiet = link_ignore,
    .on_settled = link_ignore,
    .on_error = own_on_error,
    .on_drained = link_ignore,
    .on_lost = own_on_lost,
    .says_unanswered = true,
};

/* The place is taken. */
static void open_own(
    struct pool *pool, const struct link_startup *startup, enum link_answers answers)
{
    struct link *link = link_open(pool, startup, pool, &own_ops);

    link->opening->holds_slot = true;
    link->opening->is_for_pool = true;
    link->opening->answers = (uint8_t)answers;
    pool->nopening++;
    timer_start(pool->be->loop, &link->timer, pool->be->conf->authentication_timeout_ms);
}

/* ---- for requests ---- */

static bool may_share_opening(const struct pool_request *req)
{
    return req->may_reuse && !req->is_private && req->pool->opens != POOL_OWNER_OPENS &&
           !req->pool->be->is_stopping;
}

/* The client is to show that the server still lets it in unasked. Others need not do so, too, and
 * its link comes instead of the oldest idle one: it is kept as those are. */
static void pool_trust_anew(struct pool *pool)
{
    pool->auth_seen_us = loop_now_us(pool->be->loop) - POOL_TRUST_MAX_US + POOL_TRUST_GRACE_US;
    if (pool->nidle > 0)
        link_close(LIST_ENTRY(list_last(&pool->idle), struct link, pool_node));
}

static enum acquire_result open_for_owner(struct pool_request *req)
{
    if (!req->may_reuse && !req->is_private && req->pool->auth == LINK_AUTH_TRUST)
        pool_trust_anew(req->pool);
    pool_request_leave(req);
    req->link = link_open(req->pool, req->startup, req->owner, req->ops);
    req->link->opening->holds_slot = true;
    req->link->is_private = req->is_private;
    req->link->opening->answers = req->answers;
    return ACQUIRE_OPENING;
}

/* The place is taken. */
static enum acquire_result open_taken(struct pool_request *req)
{
    if (!may_share_opening(req))
        return open_for_owner(req);
    open_own(req->pool, req->startup, (enum link_answers)req->answers);
    return pool_request_join(req, LIMITS_OK);
}

static bool make_room(struct pool *pool, enum limits_verdict v)
{
    return backend_make_room(
        pool->be, pool, v, pool_user(pool), pool_database(pool), pool->cluster_node);
}

enum acquire_result pool_open_for(struct pool_request *req)
{
    struct pool *pool = req->pool;
    bool was_waiting = !list_is_detached(&req->pool_node);
    int64_t since_us = was_waiting ? req->since_us : loop_now_us(pool->be->loop);
    enum limits_verdict v;

    pool->version = req->startup->version;
    if (may_share_opening(req) && pool->nopening + pool->ncleaning > 0)
        return pool_request_join(req, LIMITS_OK);
    v = take_place(pool, since_us);
    if (v != LIMITS_OK && make_room(pool, v))
        v = take_place(pool, since_us);
    if (v == LIMITS_OK)
        return open_taken(req);
    (void)pool_request_join(req, v);
    if (was_waiting)
        return ACQUIRE_WAITING;
    /* Somebody may have given a link back before we were seen waiting: nobody would tell us. */
    if (take_place(pool, since_us) == LIMITS_OK)
        return open_taken(req);
    if (!pool_frees_soon(pool))
        pool_ask_others(pool);
    return ACQUIRE_WAITING;
}

/* The request at place `i` of the line. */
static struct pool_request *request_at(struct pool *pool, uint32_t i)
{
    struct list *n = pool->waiting.next;

    while (i-- > 0)
        n = n->next;
    return LIST_ENTRY(n, struct pool_request, pool_node);
}

void pool_grow(struct pool *pool)
{
    struct pool_request *req;

    if (pool_is_paused(pool))
        return;
    while (pool->blocked == LIMITS_OK && pool->nopening + pool->ncleaning < pool->nwaiting) {
        req = request_at(pool, pool->nopening + pool->ncleaning);
        if (pool_check_for(pool, req))
            continue;
        /* Whoever is first may want another kind: what was opened for those behind lies there, and
         * must not be opened again and again until he is served. */
        if (pool_has_for(pool, req) || !may_share_opening(req) ||
            take_place(pool, req->since_us) != LIMITS_OK)
            return;
        open_own(pool, req->startup, (enum link_answers)req->answers);
    }
}

/* ---- links nobody waits for ---- */

static void open_unasked(struct pool *pool)
{
    static const struct paramset none;
    struct link_startup startup = {.version = pool->version,
        .user = pool_user(pool),
        .database = pool_database_there(pool),
        .params = &none};

    open_own(pool, &startup, LINK_ANSWERS_ALL);
}

static bool may_open_unasked(const struct pool *pool)
{
    return pool->opens != POOL_OWNER_OPENS && !pool->be->is_stopping && pool->version != 0;
}

void pool_open_moved(struct pool *pool)
{
    struct backend *be = pool->be;

    if (may_open_unasked(pool) && !pool->is_moved && !pool_is_paused(pool) &&
        limits_open_moved(be->shm, be->ordinal, pool->cluster_node, be->conf->server_connect_limit,
            loop_now_us(be->loop))) {
        open_unasked(pool);
        return;
    }
    limits_give_link(be->shm, be->ordinal, pool->cluster_node, &pool->limits);
    pool_wake_others(pool);
    backend_post_retry(be);
}

void pool_keep_warm(struct pool *pool, uint32_t version)
{
    pool->warmth.is_kept = true;
    if (pool->version == 0)
        pool->version = version;
    pool_warm(pool);
}

void pool_keep_warm_no_more(struct pool *pool)
{
    if (pool->opens == POOL_ON_TRIAL)
        pool->opens = POOL_OPENS;
    pool->warmth = (struct pool_warmth){0};
}

/* A pool that could not log in, and whose time has come, is tried with one link. */
static bool may_warm(struct pool *pool, int64_t now_us)
{
    if (pool->warmth.is_kept && pool->opens == POOL_OWNER_OPENS && now_us >= pool->warmth.trial_us)
        pool->opens = POOL_ON_TRIAL;
    return may_open_unasked(pool) && (pool->opens == POOL_OPENS || pool->nopening == 0);
}

void pool_warm(struct pool *pool)
{
    struct backend *be = pool->be;
    const struct pool_settings *set = pool->set;
    struct limits_max max = {.pool = set->min_pool_size,
        .db = set->max_db_connections,
        .user = set->max_user_connections,
        .connecting = be->conf->server_connect_limit};
    int64_t now_us = loop_now_us(be->loop);

    if (pool_is_paused(pool))
        return;
    while (may_warm(pool, now_us) && limits_used(be->shm, pool->limits.pool) < set->min_pool_size &&
           limits_take_link(
               be->shm, be->ordinal, pool->cluster_node, &pool->limits, &max, now_us) == LIMITS_OK)
        open_unasked(pool);
}

/* ---- the end of opening ---- */

void pool_link_opened(struct link *link, bool accepted)
{
    struct pool *pool = link->pool;

    if (accepted) {
        link_note_login(link, loop_now_us(link->be->loop));
        quota_accepted(link->be->shm, pool->cluster_node);
        pool_role_vouch(pool);
        if (!link->opening->is_for_pool &&
            (link->auth == LINK_AUTH_TRUST || link->opening->answers != LINK_ANSWERS_NOT))
            pool->opens = POOL_OPENS;
    }
    if (!link_holds_slot(link))
        return;
    link->opening->holds_slot = false;
    limits_opened(link->be->shm, link->be->ordinal, pool->cluster_node);
    backend_post_retry(link->be);
}

static const char *hint_of_refusal(const char *sqlstate)
{
    if (strcmp(sqlstate, "53300") == 0)
        return "It is full: raise max_connections there (or the CONNECTION LIMIT of the role or "
               "database), or lower max_backend_connections here.";
    return "It starts, stops or recovers: its own log says which, and how far it is.";
}

bool pool_link_refused(struct link *link, const char *sqlstate)
{
    struct backend *be = link->be;
    int node = link->pool->cluster_node;

    if (!is_refusal(sqlstate))
        return false;
    if (quota_refused(be->shm, node, loop_now_us(be->loop)))
        log_at_detail(LVL_WARNING, NULL, hint_of_refusal(sqlstate),
            "node %d refuses connections (SQLSTATE %s): clients wait while it is asked again now "
            "and then",
            node, sqlstate);
    return true;
}
