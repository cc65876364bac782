/* SPDX-License-Identifier: PostgreSQL
 * pool_share.c: what workers say to each other about links: give me an idle one, or make room;
 * there is room.
 * Runs in: workers. Nothing is said while nobody waits, and at most one message is under way to a
 * worker that is to try again. A message that finds no room in a mailbox is not repeated here: the
 * sweep of pool_wait.c asks again. */
#include "config.h"

#include <string.h>

#include "auth/auth_book.h"
#include "backend/quota.h"
#include "base/mem.h"

#include "link_int.h"
#include "pool_int.h"

/* Body of MAIL_LINK_WANTED and MAIL_CLIENT_WANTED; user and database follow, each with its NUL. */
struct wanted_mail {
    int32_t node;
    int32_t ordinal;
    int32_t detail; /* a link: enum limits_verdict, what is in the way. Clients: how many */
    uint16_t user_len;
    uint16_t database_len;
};

static void post_wanted(struct pool *pool, int to, enum mail_type type, int detail)
{
    struct backend *be = pool->be;
    struct wanted_mail m = {
        pool->cluster_node, be->ordinal, detail, pool->user_len, pool->database_len};
    size_t names = (size_t)pool->user_len + pool->database_len + 2U;
    char body[MAILBOX_MAX_BYTES];

    if (sizeof m + names > sizeof body)
        return;
    memcpy(body, &m, sizeof m);
    memcpy(body + sizeof m, pool->names, names);
    (void)be->post(be, to, type, body, sizeof m + names, -1);
}

void pool_ask_others(struct pool *pool)
{
    struct backend *be = pool->be;
    enum limits_verdict v = pool->blocked;
    int nworkers = limits_nworkers(be->shm);
    int to = limits_find_idle(be->shm, pool->limits.pool, be->ordinal);
    int i;

    if (to != -1) {
        post_wanted(pool, to, MAIL_LINK_WANTED, (int)v);
        return;
    }
    if (v != LIMITS_AT_DB && v != LIMITS_AT_USER && v != LIMITS_AT_NODE)
        return;
    for (i = 0; i < nworkers; i++)
        if (i != be->ordinal)
            post_wanted(pool, i, MAIL_LINK_WANTED, (int)v);
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

/* Closes the link of `pool` that is unused for longest, unless it may be used soon: then clients of
 * worker `to` come to it. */
static void spare(struct pool *pool, int to)
{
    struct backend *be = pool->be;
    struct link *link = LIST_ENTRY(list_last(&pool->idle), struct link, pool_node);
    bool is_unused =
        link_is_bound(link) && loop_now_us(be->loop) - link->quiet_us >= POOL_REOPEN_US;

    if (!is_unused && !limits_keeps(be->shm, pool->limits.pool, to))
        pool_call_clients(pool, to);
    else if (may_go(link, LIMITS_AT_POOL))
        link_close(link);
}

/* False: it is none of ours. */
static bool read_wanted(const struct backend *be, const void *body, size_t len,
    struct wanted_mail *m, struct slice *user, struct slice *database)
{
    const char *names = (const char *)body + sizeof *m;

    if (len < sizeof *m)
        return false;
    memcpy(m, body, sizeof *m);
    *user = slice_of(names, m->user_len);
    *database = slice_of(names + m->user_len + 1, m->database_len);
    return len == sizeof *m + m->user_len + m->database_len + 2U && m->node >= 0 &&
           m->node < QUOTA_MAX_NODES && m->ordinal >= 0 && m->ordinal < limits_nworkers(be->shm);
}

void backend_on_wanted(struct backend *be, const void *body, size_t len)
{
    struct wanted_mail m;
    struct slice user;
    struct slice database;
    struct link *link;

    if (!read_wanted(be, body, len, &m, &user, &database))
        return;
    link = find_spare(be, user, database, m.node);
    if (link != NULL && pool_keeps_link(link->pool, link)) {
        spare(link->pool, m.ordinal); /* its place goes to who asks */
        return;
    }
    if (link != NULL && link_give_away(link, m.ordinal))
        return;
    if (m.detail == LIMITS_AT_DB || m.detail == LIMITS_AT_USER || m.detail == LIMITS_AT_NODE)
        (void)backend_make_room(be, NULL, (enum limits_verdict)m.detail, user, database, m.node);
}

/* ---- clients that go where links are ---- */

void pool_call_clients(struct pool *pool, int to)
{
    struct backend *be = pool->be;
    int64_t now_us = loop_now_us(be->loop);
    int n;

    if (now_us - pool->called_us < POOL_CALL_US || pool->limits.pool == LIMITS_NO_ENTRY)
        return;
    pool->called_us = now_us;
    n = limits_surplus(be->shm, pool->limits.pool, to, be->ordinal);
    post_wanted(pool, to, MAIL_CLIENT_WANTED, n < POOL_CALL_MAX ? n : POOL_CALL_MAX);
}

/* Sends the clients that wait longest. When the very first cannot go, the others know: it must get
 * a link here. */
void backend_on_called(struct backend *be, const void *body, size_t len)
{
    struct wanted_mail m;
    struct slice user;
    struct slice database;
    struct pool *pool;
    struct pool_request *req;
    struct list *n;
    struct list *tmp;

    if (!read_wanted(be, body, len, &m, &user, &database) || m.ordinal == be->ordinal)
        return;
    pool = pool_find(be, user, database, m.node);
    if (pool == NULL)
        return;
    pool->nclients++; /* the last client may go */
    LIST_FOREACH_SAFE(n, tmp, &pool->waiting)
    {
        req = LIST_ENTRY(n, struct pool_request, pool_node);
        if (m.detail-- <= 0)
            break;
        if (req->on_called != NULL && req->on_called(req, m.ordinal))
            continue;
        if (req == pool_head(pool) && !pool->told.head_stays) {
            pool->told.head_stays = true;
            limits_set_keeps(be->shm, pool->limits.pool, be->ordinal, true);
        }
    }
    pool_detach(pool);
}

/* ---- places ---- */

/* Body of MAIL_LINK_PLACE; user and database follow, each with its NUL, and what logs in. */
struct place_mail {
    int32_t node;
    uint32_t version;
    uint16_t user_len;
    uint16_t database_len;
};

struct move {
    struct link *link;
    int to;
    struct slice body;
};

static bool post_place(void *ctx)
{
    const struct move *m = ctx;
    struct backend *be = m->link->be;

    return be->post(be, m->to, MAIL_LINK_PLACE, m->body.p, m->body.n, -1) == 0;
}

bool pool_give_place(struct link *link, int to)
{
    struct pool *pool = link->pool;
    struct backend *be = pool->be;
    struct place_mail m = {pool->cluster_node, pool->version, pool->user_len, pool->database_len};
    struct buf body = {.is_secret = true};
    struct move move = {.link = link, .to = to};
    bool is_moved;

    buf_put(&body, &m, sizeof m);
    buf_put(&body, pool->names, (size_t)pool->user_len + pool->database_len + 2U);
    if (be->book != NULL)
        auth_book_pack_login(be->book, pool_book_name(pool), &body);
    move.body = buf_slice(&body);
    is_moved =
        body.len <= MAILBOX_MAX_BYTES && limits_move_link(be->shm, pool->cluster_node,
                                             &pool->limits, be->ordinal, to, post_place, &move);
    buf_free(&body);
    if (!is_moved)
        return false;
    link->has_quota = false;
    link_close(link);
    return true;
}

static void place_take(struct backend *be, const void *body, size_t len)
{
    const char *names = (const char *)body + sizeof(struct place_mail);
    struct place_mail m;
    struct pool *pool;
    size_t n;

    if (len < sizeof m)
        return;
    memcpy(&m, body, sizeof m);
    n = sizeof m + m.user_len + m.database_len + 2U;
    if (len < n)
        return;
    pool = pool_attach(
        be, slice_of(names, m.user_len), slice_of(names + m.user_len + 1, m.database_len), m.node);
    if (pool->limits.pool == LIMITS_NO_ENTRY &&
        limits_attach(be->shm, be->ordinal, pool->cluster_node, pool_user(pool),
            pool_database(pool), &pool->limits) == 0)
        pool_know_cells(pool);
    if (pool->version == 0)
        pool->version = m.version;
    if (len > n && be->book != NULL)
        auth_book_learn_packed(
            be->book, pool_book_name(pool), slice_of((const char *)body + n, len - n));
    pool_open_moved(pool);
    pool_detach(pool);
}

void backend_on_place(struct backend *be, void *body, size_t len)
{
    place_take(be, body, len);
    mem_wipe(body, len); /* keys to log in with */
}
