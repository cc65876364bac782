/* SPDX-License-Identifier: PostgreSQL
 * pool_share.c: what workers say to each other about links: give me an idle one, or make room;
 * there is room.
 * Runs in: workers. Nothing is said while nobody waits, and at most one message is under way to a
 * worker that is to try again. A message that finds no room in a mailbox is not repeated here: the
 * sweep of pool_wait.c asks again. */
#include "config.h"

#include <string.h>

#include "backend/quota.h"

#include "link_int.h"
#include "pool_int.h"

/* Body of MAIL_LINK_WANTED; user and database follow, each with its NUL. */
struct wanted_mail {
    int32_t node;
    int32_t ordinal;
    int32_t verdict; /* enum limits_verdict: what is in the way */
    uint16_t user_len;
    uint16_t database_len;
};

static void post_wanted(struct pool *pool, int to)
{
    struct backend *be = pool->be;
    struct wanted_mail m = {
        pool->cluster_node, be->ordinal, pool->blocked, pool->user_len, pool->database_len};
    size_t names = (size_t)pool->user_len + pool->database_len + 2U;
    char body[MAILBOX_MAX_BYTES];

    if (sizeof m + names > sizeof body)
        return;
    memcpy(body, &m, sizeof m);
    memcpy(body + sizeof m, pool->names, names);
    (void)be->post(be, to, MAIL_LINK_WANTED, body, sizeof m + names, -1);
}

void pool_ask_others(struct pool *pool)
{
    struct backend *be = pool->be;
    enum limits_verdict v = pool->blocked;
    int nworkers = limits_nworkers(be->shm);
    int to = limits_find_idle(be->shm, pool->limits.pool, be->ordinal);
    int i;

    if (to != -1) {
        post_wanted(pool, to);
        return;
    }
    if (v != LIMITS_AT_DB && v != LIMITS_AT_USER && v != LIMITS_AT_NODE)
        return;
    for (i = 0; i < nworkers; i++)
        if (i != be->ordinal)
            post_wanted(pool, i);
}

static bool worker_waits(const struct pool *pool, int ordinal)
{
    const struct shm *shm = pool->be->shm;

    return limits_waits(shm, pool->limits.pool, ordinal) ||
           limits_waits(shm, pool->limits.db, ordinal) ||
           limits_waits(shm, pool->limits.user, ordinal) ||
           quota_waits(shm, pool->cluster_node, ordinal);
}

void pool_wake_others(const struct pool *pool)
{
    struct backend *be = pool->be;
    int32_t node = pool->cluster_node;
    int nworkers;
    int i;

    if (!pool_is_waited_for(pool))
        return;
    nworkers = limits_nworkers(be->shm);
    for (i = 0; i < nworkers; i++) {
        if (i == be->ordinal || !worker_waits(pool, i) || !quota_tell(be->shm, i))
            continue;
        if (be->post(be, i, MAIL_QUOTA_FREED, &node, sizeof node, -1) != 0)
            quota_told_clear(be->shm, i);
    }
}

/* True when closing `link` makes room for what waits. */
static bool stands_in_way(const struct link *link, const struct pool *pool, enum limits_verdict v,
    struct slice user, struct slice database, int node)
{
    const struct pool *other = link->pool;

    if (other->cluster_node != node)
        return false;
    switch (v) {
    case LIMITS_AT_POOL:
        return pool != NULL && other == pool;
    case LIMITS_AT_DB:
        return slice_eq(pool_database(other), database);
    case LIMITS_AT_USER:
        return slice_eq(pool_user(other), user);
    case LIMITS_AT_NODE:
        return true;
    case LIMITS_AT_CONNECT:
    case LIMITS_NO_ROOM:
    case LIMITS_OK:
        break;
    }
    return false;
}

/* Between two transactions of a busy client a link is idle, too: that is none to spare. */
static bool may_go(const struct link *link, enum limits_verdict v)
{
    return loop_now_us(link->be->loop) - link->quiet_us >= POOL_REOPEN_US ||
           pool_may_swap(link->pool, v);
}

bool backend_make_room(struct backend *be, const struct pool *pool, enum limits_verdict v,
    struct slice user, struct slice database, int node)
{
    struct link *link;
    struct list *n;

    if (v == LIMITS_AT_CONNECT || v == LIMITS_NO_ROOM)
        return false;
    LIST_FOREACH(n, &be->idle_lru)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (!stands_in_way(link, pool, v, user, database, node))
            continue;
        /* The one unused for longest. What suits none of its own pool is in nobody's way there. */
        if (v != LIMITS_AT_POOL && !may_go(link, v))
            return false;
        link_close(link);
        return true;
    }
    return false;
}

/* The newest idle link of a pool that nobody here waits for. */
static struct link *find_spare(
    struct backend *be, struct slice user, struct slice database, int node)
{
    struct link *link;
    struct list *n;

    for (n = be->idle_lru.prev; n != &be->idle_lru; n = n->prev) {
        link = LIST_ENTRY(n, struct link, be_node);
        if (link->pool->cluster_node == node && slice_eq(pool_user(link->pool), user) &&
            slice_eq(pool_database(link->pool), database))
            return link->pool->nwaiting == 0 ? link : NULL;
    }
    return NULL;
}

/* Closes the link of `pool` that is unused for longest, unless it may be used soon. */
static void close_spare(struct pool *pool)
{
    struct link *link = LIST_ENTRY(list_last(&pool->idle), struct link, pool_node);

    if (may_go(link, LIMITS_AT_POOL))
        link_close(link);
}

void backend_on_wanted(struct backend *be, const void *body, size_t len)
{
    const char *names = (const char *)body + sizeof(struct wanted_mail);
    struct wanted_mail m;
    struct slice user;
    struct slice database;
    struct link *link;

    if (len < sizeof m)
        return;
    memcpy(&m, body, sizeof m);
    if (len != sizeof m + m.user_len + m.database_len + 2U || m.node < 0 ||
        m.node >= QUOTA_MAX_NODES || m.ordinal < 0 || m.ordinal >= limits_nworkers(be->shm))
        return;
    user = slice_of(names, m.user_len);
    database = slice_of(names + m.user_len + 1, m.database_len);
    link = find_spare(be, user, database, m.node);
    if (link != NULL && link_give_away(link, m.ordinal))
        return;
    if (link != NULL && link_is_bound(link)) {
        close_spare(link->pool); /* its place goes to who asks */
        return;
    }
    if (m.verdict == LIMITS_AT_DB || m.verdict == LIMITS_AT_USER || m.verdict == LIMITS_AT_NODE)
        (void)backend_make_room(be, NULL, (enum limits_verdict)m.verdict, user, database, m.node);
}
