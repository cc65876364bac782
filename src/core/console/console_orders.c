/* SPDX-License-Identifier: PostgreSQL
 * console_orders.c: orders of operators, in the worker of the client that gave one: PAUSE, RESUME,
 * DRAIN, RECONNECT, KILL and the like. What they mean for clients and links is sessions_orders.c's,
 * in every worker; what lasts stands in shared memory (ipc/orders.h). Runs in: workers. */
#include "config.h"

#include <stdio.h>

#include "backend/pool.h"
#include "base/mem.h"
#include "ipc/mailbox.h"
#include "ipc/orders.h"
#include "session/nodes.h"
#include "session/session.h"

#include "console_int.h"

/* How often a client that waits looks whether its order is done. */
#define ORDERS_POLL_MS 50
/* How many looks later the workers are told again: a mailbox may have been full. */
#define ORDERS_RETELL_POLLS 20
/* SHOW POOL_NODES shows nothing that is older than that, if servers answer in time. */
#define LOOK_FRESH_US 1000000
/* How long SHOW POOL_NODES waits for servers to answer. */
#define LOOK_LIMIT_US 1000000
#define LOOK_POLL_MS  5
/* user "..." */
#define ORDERS_WHO_BYTES (ROWS_NAME_BYTES + 8)

struct console_wait {
    struct timer timer;
    struct client *client;
    struct orders_pending pending;
    bool is_cancelled;
    bool is_unused; /* nobody was in the database */
    unsigned npolls;
    unsigned poll_ms;
    int64_t look_us;       /* wall clock: servers asked since then are fresh enough; 0: no look */
    int64_t look_until_us; /* monotonic clock */
    char database[ROWS_NAME_BYTES];
};

/* One order. It may have been given before, and be waited for. */
struct given {
    struct client *client;
    struct sessions *ss;
    const struct admin_order *order;
    struct console_wait *wait; /* NULL: it is new */
    struct orders_giver giver;
    struct err *err;
};

/* --- waiting --- */

static struct console_wait *wait_of(const struct client *c)
{
    const struct console *console = client_console(c);

    return console == NULL ? NULL : console->wait;
}

static void give_up(struct client *c)
{
    struct console_wait *w = wait_of(c);

    timer_stop(client_sessions(c)->loop, &w->timer);
    client_console(c)->wait = NULL;
    mem_free(w);
}

static void undo(struct client *c)
{
    orders_take_back(client_sessions(c)->env, &wait_of(c)->pending);
}

static void on_timer(struct timer *t)
{
    struct console_wait *w = LIST_ENTRY(t, struct console_wait, timer);

    timer_start(client_sessions(w->client)->loop, &w->timer, w->poll_ms);
    client_look_again(w->client);
}

static struct console_wait *begin_wait(const struct given *g, unsigned poll_ms)
{
    struct console_wait *w = mem_alloc_zero(sizeof *w);

    w->client = g->client;
    w->poll_ms = poll_ms;
    timer_init(&w->timer, on_timer);
    timer_start(g->ss->loop, &w->timer, poll_ms);
    console_of(g->client)->wait = w;
    return w;
}

void orders_wait_end(struct client *c)
{
    if (wait_of(c) == NULL)
        return;
    undo(c);
    give_up(c);
}

bool orders_wait_cancel(struct client *c)
{
    if (wait_of(c) == NULL)
        return false;
    undo(c);
    wait_of(c)->is_cancelled = true;
    client_unpark(c);
    return true;
}

static enum admin_order_state cancelled(const struct given *g)
{
    err_set(g->err, "57014", "canceling statement due to user request");
    give_up(g->client);
    return ADMIN_ORDER_REFUSED;
}

/* --- PAUSE and DRAIN: begun by the first call, looked after by those that follow until it is done
 * --- */

static enum admin_order_state begin_until(const struct given *g, unsigned flag)
{
    struct orders_pending pending = {.database = g->order->database, .flag = flag};
    bool is_unused = !orders_database_is_used(g->ss->env->shm, g->order->database);
    struct console_wait *w;

    if (orders_begin(g->ss->env, &pending, &g->giver, g->err) == -1)
        return ADMIN_ORDER_REFUSED;
    w = begin_wait(g, ORDERS_POLL_MS);
    w->is_unused = is_unused;
    rows_set_text(w->database, sizeof w->database, pending.database.p, pending.database.n);
    w->pending = pending;
    w->pending.database = slice_of_str(w->database);
    return ADMIN_ORDER_WAITS;
}

static enum admin_order_state until_done(const struct given *g, unsigned flag)
{
    struct console_wait *w = g->wait;

    if (w == NULL)
        return begin_until(g, flag);
    if (w->is_cancelled)
        return cancelled(g);
    switch (orders_look(g->ss->env, &w->pending, client_row_index(g->client), g->err)) {
    case ORDERS_PENDING:
        if (++w->npolls % ORDERS_RETELL_POLLS == 0)
            orders_tell(g->ss->env);
        return ADMIN_ORDER_WAITS;
    case ORDERS_ENDED:
        give_up(g->client);
        return ADMIN_ORDER_REFUSED;
    case ORDERS_DONE:
        break;
    }
    *g->order->is_unused = w->is_unused;
    give_up(g->client);
    return ADMIN_ORDER_DONE;
}

static enum admin_order_state pause_pools(const struct given *g)
{
    return until_done(g, ORDER_PAUSE);
}

static enum admin_order_state drain(const struct given *g)
{
    return until_done(g, ORDER_DRAIN);
}

/* --- those that are done at once --- */

static enum admin_order_state done(int result)
{
    return result == -1 ? ADMIN_ORDER_REFUSED : ADMIN_ORDER_DONE;
}

static enum admin_order_state resume(const struct given *g)
{
    return done(orders_resume(g->ss->env, g->order->database, &g->giver, g->err));
}

static enum admin_order_state reconnect(const struct given *g)
{
    *g->order->is_unused = !orders_database_is_used(g->ss->env->shm, g->order->database);
    return done(orders_reconnect(g->ss->env, g->order->database, &g->giver, g->err));
}

static enum admin_order_state kill_database(const struct given *g)
{
    return done(orders_kill_database(
        g->ss->env, g->order->database, client_number(g->client), &g->giver, g->err));
}

static enum admin_order_state disable(const struct given *g)
{
    bool is_on = g->order->kind == ADMIN_ORDER_DISABLE;

    return done(orders_disable(g->ss->env, g->order->database, is_on, &g->giver, g->err));
}

static enum admin_order_state stop(const struct given *g)
{
    bool waits = g->order->kind == ADMIN_ORDER_SHUTDOWN_WAIT;

    return done(orders_shutdown(g->ss->env, console_is_alone(g->client), waits, &g->giver, g->err));
}

static enum admin_order_state reload(const struct given *g)
{
    return done(orders_reload(g->ss->env, console_is_alone(g->client), g->err));
}

static enum admin_order_state kill_client(const struct given *g)
{
    struct order_mail m = {.kind = ORDER_KILL_CLIENT, .client_id = g->order->client_id};
    struct client_row row;

    if (session_find_client(g->ss->client_rows, m.client_id, &row) != ROWS_NO_ROW) {
        orders_tell_worker(g->ss->env, row.worker, &m);
        return ADMIN_ORDER_DONE;
    }
    err_set(g->err, "42704", "there is no client %u", m.client_id);
    err_hint(g->err, "SHOW POOL_CLIENTS lists them.");
    return ADMIN_ORDER_REFUSED;
}

static enum admin_order_state cancel_client(const struct given *g)
{
    return done(session_cancel_client(g->ss->env, g->order->client_id, g->err));
}

/* --- others that are waited for --- */

/* True when every server that is watched was asked after `since_us` (wall clock). */
static bool is_seen_since(struct sessions *ss, int64_t since_us)
{
    const struct view *v = &ss->view;
    int i;

    (void)view_refresh(ss->env->shm, &ss->view);
    for (i = 0; i < v->nnodes; i++)
        if (v->node[i].is_watched && v->node[i].probed_us < since_us)
            return false;
    return true;
}

/* What a connection that broke in this worker tells about its server is newer than any look. */
static enum admin_order_state begin_look(const struct given *g)
{
    struct sessions *ss = g->ss;
    int64_t since_us = backend_wall_us(&ss->be) - LOOK_FRESH_US;
    struct console_wait *w;

    if (since_us < ss->suspected_us)
        since_us = ss->suspected_us;
    if (is_seen_since(ss, since_us))
        return ADMIN_ORDER_DONE;
    sessions_mail_monitor(ss, MAIL_NODES_LOOK, NULL, 0);
    w = begin_wait(g, LOOK_POLL_MS);
    w->look_us = since_us;
    w->look_until_us = loop_now_us(ss->loop) + LOOK_LIMIT_US;
    return ADMIN_ORDER_WAITS;
}

static enum admin_order_state look_at_servers(const struct given *g)
{
    const struct console_wait *w = g->wait;

    if (w == NULL)
        return begin_look(g);
    if (!w->is_cancelled && loop_now_us(g->ss->loop) < w->look_until_us &&
        !is_seen_since(g->ss, w->look_us))
        return ADMIN_ORDER_WAITS;
    give_up(g->client);
    return ADMIN_ORDER_DONE;
}

static enum admin_order_state wait_close(const struct given *g)
{
    if (orders_are_replaced(g->ss->env->shm, g->order->database, client_row_index(g->client))) {
        if (g->wait != NULL)
            give_up(g->client);
        return ADMIN_ORDER_DONE;
    }
    if (g->wait == NULL)
        (void)begin_wait(g, ORDERS_POLL_MS);
    else if (g->wait->is_cancelled)
        return cancelled(g);
    return ADMIN_ORDER_WAITS;
}

enum admin_order_state orders_run(void *ctx, const struct admin_order *order, struct err *err)
{
    static enum admin_order_state (*const run[])(const struct given *g) = {
        [ADMIN_ORDER_PAUSE] = pause_pools,
        [ADMIN_ORDER_RESUME] = resume,
        [ADMIN_ORDER_DRAIN] = drain,
        [ADMIN_ORDER_RECONNECT] = reconnect,
        [ADMIN_ORDER_KILL_CLIENT] = kill_client,
        [ADMIN_ORDER_CANCEL_CLIENT] = cancel_client,
        [ADMIN_ORDER_RELOAD] = reload,
        [ADMIN_ORDER_KILL_DATABASE] = kill_database,
        [ADMIN_ORDER_DISABLE] = disable,
        [ADMIN_ORDER_ENABLE] = disable,
        [ADMIN_ORDER_WAIT_CLOSE] = wait_close,
        [ADMIN_ORDER_SHUTDOWN] = stop,
        [ADMIN_ORDER_SHUTDOWN_WAIT] = stop,
        [ADMIN_ORDER_LOOK] = look_at_servers,
    };
    struct client *c = ctx;
    char who[ORDERS_WHO_BYTES];
    struct given g = {.client = c,
        .ss = client_sessions(c),
        .order = order,
        .wait = wait_of(c),
        .giver = {.who = who, .user = pool_user(client_pool(c)), .place = client_role_place(c)},
        .err = err};

    snprintf(who, sizeof who, "user \"%s\"", client_pool(c)->names);
    return run[order->kind](&g);
}
