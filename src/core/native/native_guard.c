/* SPDX-License-Identifier: PostgreSQL
 * native_guard.c: a statement that the main node has done, and that waits on another node for a
 * lock. Whoever holds that may wait for this session on the main node, or on a third one: no server
 * sees more of such a deadlock than its own part, so it would stand for ever. Runs in: workers.
 *
 * The node is asked on another connection of the same user what the session waits for; who waits
 * for the same lock still when it is asked again is cancelled in the same statement, on that node
 * alone, and undone on all as by any lock that one node could not give. What merely takes long
 * there waits for no lock. Must never: let the session go on while a cancel may be on its way, for
 * it would meet what comes next, as a COMMIT that the main node has done. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "wire/errmsg.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "native_int.h"

enum guard_state { GUARD_RESTS, GUARD_BORROWS, GUARD_ASKS };

struct native_guard {
    struct native *n;
    enum guard_state state;
    unsigned leg; /* the one that is looked after */
    struct pool *pool;
    struct pool_request req;
    struct link_startup startup;
    struct link *link;
    struct buf waits; /* the lock that it was seen to wait for */
    uint32_t cut;     /* legs that were cancelled, as bits */
};

/* What it did can be undone: else nobody may cut it short (is_too_late in native.c). */
static bool is_guarded(const struct native *n)
{
    return n->step == STEP_OTHERS && n->ss->conf->replication_lock_timeout_ms > 0 &&
           n->failed < 0 && !n->ex.is_commit && !n->commit.is_clients &&
           (n->wrapped || native_tx(n) == 'T');
}

static void let_go(struct native_guard *g)
{
    struct link *link = g->link;

    g->state = GUARD_RESTS;
    g->link = NULL;
    if (g->pool == NULL)
        return;
    pool_request_cancel(&g->req);
    if (link != NULL)
        link_release(link, true);
    pool_detach(g->pool);
    g->pool = NULL;
}

static bool guard_done(struct native *n)
{
    if (n->guard != NULL && n->guard->state == GUARD_ASKS)
        return false;
    if (n->step == STEP_OTHERS)
        timer_stop(n->ss->loop, &n->timer);
    if (n->guard != NULL)
        let_go(n->guard);
    return true;
}

static void guard_over(struct native *n)
{
    struct native_guard *g = n->guard;

    if (g == NULL)
        return;
    let_go(g);
    buf_free(&g->waits);
    mem_free(g);
    n->guard = NULL;
}

/* ---- the question ---- */

static void put_quoted(struct buf *out, struct slice s)
{
    buf_put_byte(out, '\'');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\'')
            buf_put_byte(out, '\'');
        buf_put_byte(out, s.p[i]);
    }
    buf_put_byte(out, '\'');
}

static void ask(struct native_guard *g)
{
    const struct link *asked = g->n->leg[g->leg].link;
    struct buf sql = {0};
    struct buf out = {0};

    if (asked == NULL) {
        let_go(g);
        return;
    }
    buf_printf(&sql, "SELECT w, CASE WHEN w OPERATOR(pg_catalog.=) ");
    put_quoted(&sql, buf_slice(&g->waits));
    buf_printf(&sql,
        " THEN pg_catalog.pg_cancel_backend(pid) ELSE false END FROM (SELECT pid, "
        "l::pg_catalog.text AS w FROM pg_catalog.pg_locks l WHERE NOT granted AND "
        "pid OPERATOR(pg_catalog.=) %d LIMIT 1) l",
        (int)asked->server_pid);
    buf_clear(&g->waits);
    g->state = GUARD_ASKS;
    link_expect(g->link, OP_QUERY | OP_ROWS | OP_SWALLOW);
    wire_put_query(&out, buf_slice(&sql));
    (void)link_send(g->link, out.data, out.len);
    buf_free(&sql);
    buf_free(&out);
}

static void on_own_row(void *owner, struct link *link, struct slice body)
{
    struct native_guard *g = owner;
    struct slice value[2];

    (void)link;
    if (!wire_row_values(body, value, 2) || value[0].p == NULL)
        return;
    buf_put(&g->waits, value[0].p, value[0].n);
    if (value[1].p != NULL && slice_eq_str(value[1], "t"))
        g->cut |= 1U << g->leg;
}

/* The session may go on; it has waited for this if all have answered meanwhile. */
static void answered(struct native_guard *g)
{
    struct native *n = g->n;
    enum guard_state was = g->state;

    let_go(g);
    if (was == GUARD_ASKS && n->step == STEP_OTHERS)
        native_wait(n);
}

static void on_quiet(void *owner, struct link *link)
{
    struct native_guard *g = owner;

    (void)link;
    if ((g->cut >> g->leg & 1) != 0)
        CLIENT_LOG(g->n->c, LVL_LOG,
            "a statement is cancelled on node %d: it waits there for a lock, and the main node has "
            "done it",
            g->n->leg[g->leg].node);
    answered(g);
}

/* A guard that may not ask, or for whom there is no room, tries again. */
static bool on_error(void *owner, struct link *link, const struct errmsg *m)
{
    struct native_guard *g = owner;

    (void)link;
    CLIENT_LOG(g->n->c, LVL_DEBUG1, "node %d does not say whether a statement waits: %.*s",
        g->n->leg[g->leg].node, (int)m->message.n, m->message.p);
    return true;
}

static void on_lost(void *owner, struct link *link, const struct err *err, bool told)
{
    struct native_guard *g = owner;

    (void)link;
    (void)err;
    (void)told;
    g->link = NULL;
    answered(g);
}

/* ---- its connection ---- */

static void acquire(struct native_guard *g)
{
    client_entitle(g->n->c, &g->req);
    switch (pool_acquire(&g->req)) {
    case ACQUIRE_GRANTED:
        g->link = g->req.link;
        ask(g);
        break;
    case ACQUIRE_OPENING:
        g->link = g->req.link;
        break;
    case ACQUIRE_WAITING:
        break;
    }
}

static void on_turn(struct pool_request *req)
{
    acquire(req->owner);
}

static void on_login_done(void *owner, struct link *link)
{
    (void)link;
    ask(owner);
}

/* Nobody asks the client now. */
static void on_auth(void *owner, struct link *link, const char *msg, size_t n)
{
    (void)link;
    if (!message_is_auth_ok(msg, n))
        let_go(owner);
}

static const struct link_owner_ops guard_link_ops = {
    .on_auth = on_auth,
    .on_login_done = on_login_done,
    .on_bytes = link_ignore_bytes,
    .on_quiet = on_quiet,
    .on_settled = link_ignore,
    .on_error = on_error,
    .on_own_row = on_own_row,
    .on_drained = link_ignore,
    .on_lost = on_lost,
};

static void borrow(struct native_guard *g)
{
    struct native *n = g->n;
    const struct pool *pool = client_pool(n->c);

    g->pool = pool_attach(&n->ss->be, pool_user(pool), pool_database(pool), n->leg[g->leg].node);
    pool_request_init(&g->req);
    g->startup.version = client_link(n->c)->version;
    g->startup.user = pool_user(pool);
    g->startup.database = pool_database(pool);
    g->startup.params = &n->params;
    g->req.pool = g->pool;
    g->req.startup = &g->startup;
    g->req.no_patch = true;
    g->req.on_turn = on_turn;
    g->req.owner = g;
    g->req.ops = &guard_link_ops;
    g->state = GUARD_BORROWS;
    acquire(g);
}

/* ---- the session ---- */

/* Twice within the limit, as it is the second question that cancels. */
static void wait_on(struct native *n)
{
    timer_start(n->ss->loop, &n->timer, (n->ss->conf->replication_lock_timeout_ms + 1) / 2);
}

static void guard_begins(struct native *n)
{
    guard_over(n);
    if (is_guarded(n))
        wait_on(n);
}

static void guard_looks(struct native *n)
{
    struct native_guard *g = n->guard;
    unsigned i = 0;

    while (i < n->nlegs && !n->leg[i].is_asked)
        i++;
    if (!is_guarded(n) || i == n->nlegs)
        return;
    wait_on(n);
    if (g == NULL) {
        g = mem_alloc_zero(sizeof *g);
        g->n = n;
        n->guard = g;
    }
    if (g->state != GUARD_RESTS)
        return;
    if (g->leg != i)
        buf_clear(&g->waits);
    g->leg = i;
    borrow(g);
}

static bool guard_cut(struct native *n, struct native_leg *leg)
{
    struct err err;

    if (n->guard == NULL || (n->guard->cut >> (leg - n->leg) & 1) == 0 || leg->said.len < 5 ||
        memcmp(leg->said.data, "57014", 5) != 0)
        return false;
    err_clear(&err);
    err_set(&err, "40P01",
        "node %d waited for a lock longer than replication_lock_timeout, with what the main node "
        "had done",
        leg->node);
    err_hint(&err, "The holder may wait for this session on another node, which no server sees as "
                   "a deadlock. Nothing of it is done on any node: do it again.");
    buf_clear(&leg->error);
    wire_put_err(&leg->error, &err);
    return true;
}

const struct native_guard_ops native_guard_ops = {
    .begins = guard_begins,
    .looks = guard_looks,
    .was_cut = guard_cut,
    .done = guard_done,
    .over = guard_over,
};
