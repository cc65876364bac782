/* SPDX-License-Identifier: PostgreSQL
 * backend_maint.c: what is done to links by the clock: those unused or too old are closed, pools
 * are kept warm, a link unused for long is checked before it is lent. Runs in: workers. One timer
 * for all links: a link that is lent and given back thousands of times a second arms none. */
#include "config.h"

#include <string.h>

#include "backend/quota.h"
#include "config/conf.h"
#include "wire/writer.h"

#include "link_int.h"
#include "pool_int.h"

#define MAINT_MS 1000

/* Links above min_pool_size go when nobody used them for server_idle_timeout. */
static bool is_unused(const struct link *link, int64_t now_us)
{
    const struct pool_settings *set = link->pool->set;

    return set->server_idle_timeout_ms > 0 &&
           now_us - link->quiet_us >= set->server_idle_timeout_ms * 1000 &&
           limits_used(link->be->shm, link->pool->limits.pool) > set->min_pool_size;
}

static bool exceeds(int used, int limit)
{
    return limit > 0 && used > limit;
}

/* A limit can become lower than what is open: by a reload, or because the monitor finds a server
 * that has less room. */
static bool pool_exceeds(const struct pool *pool)
{
    const struct pool_settings *set = pool->set;
    const struct shm *shm = pool->be->shm;
    int size = set->pool_size == 0 ? 0 : set->pool_size + set->reserve_pool_size;

    return exceeds(limits_used(shm, pool->limits.pool), size) ||
           exceeds(limits_used(shm, pool->limits.db), set->max_db_connections) ||
           exceeds(limits_used(shm, pool->limits.user), set->max_user_connections) ||
           exceeds(quota_used(shm, pool->cluster_node), quota_limit(shm, pool->cluster_node));
}

/* server_lifetime = 0. */
static bool is_for_one_use(const struct link *link)
{
    return link->pool->set->server_lifetime_ms == 0 && link->uses > 0;
}

HOT bool pool_is_done_with(const struct pool *pool, const struct link *link)
{
    return pool->is_moved || is_for_one_use(link) || (pool->may_exceed && pool_exceeds(pool));
}

/* Links that were opened together do not go together: one at a time, as many per lifetime as there
 * are. */
static bool is_too_old(struct link *link, int64_t now_us)
{
    struct pool *pool = link->pool;
    int64_t life_us = pool->set->server_lifetime_ms * 1000;
    int64_t links = limits_used(link->be->shm, pool->limits.pool);

    if (life_us == 0 || now_us - link->opened_us < life_us ||
        (pool->retired_us != 0 && now_us - pool->retired_us < life_us / (links > 0 ? links : 1)))
        return false;
    pool->retired_us = now_us;
    return true;
}

static void maint_link(struct link *link, int64_t now_us)
{
    bool is_idle = link->phase == LINK_IDLE;

    if (link->phase < LINK_LENT || link->is_retired)
        return;
    if (is_idle && (is_unused(link, now_us) || pool_is_done_with(link->pool, link)))
        link_close(link);
    else if (is_too_old(link, now_us)) {
        if (is_idle)
            link_close(link);
        else
            link->is_retired = true;
    }
}

void backend_look_for_excess(struct backend *be)
{
    struct hash_node *n;
    uint32_t i;

    for (i = 0; be->pools.count > 0 && i <= be->pools.mask; i++) {
        for (n = be->pools.bucket[i]; n != NULL; n = n->next) {
            struct pool *pool = LIST_ENTRY(n, struct pool, node);

            pool->may_exceed = pool_exceeds(pool);
        }
    }
}

static void warm_pools(struct backend *be)
{
    struct hash_node *n;
    struct hash_node *next;
    uint32_t i;

    if (be->pools.count == 0)
        return;
    for (i = 0; i <= be->pools.mask; i++) {
        for (n = be->pools.bucket[i]; n != NULL; n = next) {
            struct pool *pool = LIST_ENTRY(n, struct pool, node);

            next = n->next;
            if (pool->set->min_pool_size > 0)
                pool_warm(pool);
        }
    }
}

void backend_on_maint(struct timer *t)
{
    struct backend *be = LIST_ENTRY(t, struct backend, maint);
    int64_t now_us = loop_now_us(be->loop);
    struct list *n;
    struct list *tmp;

    backend_look_for_excess(be);
    LIST_FOREACH_SAFE(n, tmp, &be->links)
    maint_link(LIST_ENTRY(n, struct link, be_node), now_us);
    LIST_FOREACH_SAFE(n, tmp, &be->idle_lru)
    maint_link(LIST_ENTRY(n, struct link, be_node), now_us);
    warm_pools(be);
    timer_start(be->loop, &be->maint, MAINT_MS);
}

/* ---- checks ---- */

void pool_link_taken(struct pool *pool, struct link *link)
{
    list_remove(&link->pool_node);
    list_remove(&link->be_node);
    list_push_back(&pool->be->links, &link->be_node);
    list_push_front(&pool->busy, &link->pool_node);
    pool->nidle--;
    pool->nbusy++;
    pool_tell_idle(pool, false);
    link->phase = LINK_CLEANING;
    link->epoch = ++pool->be->next_epoch;
    link->loan.error_told = false;
    link_forget_failure(link);
    link_clean_start_timer(link);
}

static bool check_is_due(const struct link *link)
{
    const struct backend *be = link->be;

    return be->conf->server_check_query[0] != '\0' &&
           loop_now_us(be->loop) - link->quiet_us > link->pool->set->server_check_delay_ms * 1000;
}

static void check_put(struct link *link, const char *sql, struct buf *out)
{
    link_expect(link, OP_QUERY | OP_SWALLOW);
    wire_put_query(out, strcmp(sql, "<empty>") == 0 ? slice_of_str("") : slice_of_str(sql));
}

/* Whether a link has to be cleaned by the clock. A client that shares links puts a reset in front
 * of nothing. Others are to find a fresh session: what code of those who shared the link left on it
 * goes first. */
static bool cleaning_is_due(const struct link *link, bool for_sharing)
{
    return for_sharing ? link->reset == LINK_RESET_DUE : link->last_client != 0;
}

/* The link goes through the end of a cleaning: idle again when the server has answered, closed when
 * it has not or says that something is wrong. */
bool pool_check_idle(struct pool *pool, struct link *link, bool for_sharing)
{
    struct backend *be = pool->be;
    struct buf out = {0};
    bool is_unsure = check_is_due(link);
    int rc;

    if (!is_unsure && !pool->role_due) {
        if (!cleaning_is_due(link, for_sharing))
            return false;
        link->must_clean = link->must_clean || link->last_client != 0;
        link_clean_idle(link);
        return true;
    }
    pool_link_taken(pool, link);
    link->check = pool->role_due ? LINK_CHECK_ROLE : LINK_CHECK_ALIVE;
    link->resets_left = 0;
    link->resets_sent = 0; /* unless they go in front */
    link->resets_done = 0;
    link->discards = 0;
    pool_link_cleaning(pool, link);
    if (is_unsure)
        check_put(link, be->conf->server_check_query, &out);
    if (pool->role_due) { /* the last answer counts */
        link_expect(link, OP_QUERY | OP_SWALLOW);
        pool_role_put_question(link, &out);
    }
    rc = link_send(link, out.data, out.len);
    buf_free(&out);
    if (rc == -1)
        link_close(link);
    return true;
}
