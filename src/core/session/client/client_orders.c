/* SPDX-License-Identifier: PostgreSQL
 * client_orders.c: carries out the orders of operators: in the worker of the client that gave one,
 * and in all others, told by MAIL_ORDER. What lasts stands in shared memory (ipc/orders.h), so that
 * a worker that is started later knows it. Runs in: workers. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "cache/cache_stream.h"
#include "config/pools_conf.h"
#include "ipc/hold.h"
#include "ipc/mailbox.h"
#include "ipc/orders.h"
#include "login/login_auth.h"
#include "parser/leading.h"
#include "parser/parser.h"

#include "client/client_ddl_int.h"
#include "client/client_orders_int.h"
#include "console_int.h"
#include "client_int.h"

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

struct client_orders {
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

int client_orders_place(const struct client *c)
{
    int node = c->pool->cluster_node;

    if (client_console(c) != NULL)
        return ORDERS_NO_SERVERS;
    return node >= POOLS_FIRST_TARGET ? node : ORDERS_OUR_SERVERS;
}

static struct orders_giver giver_of(const struct client *c, char *who, size_t size)
{
    snprintf(who, size, "user \"%s\"", c->pool->names);
    return (struct orders_giver){
        .who = who, .user = pool_user(c->pool), .place = client_orders_place(c)};
}

/* --- waiting --- */

static void orders_give_up(struct client *c)
{
    struct client_orders *o = client_orders(c);

    timer_stop(c->ss->loop, &o->timer);
    c->rare->orders = NULL;
    mem_free(o);
}

/* The client waits with its input parked: only by asking can it be seen that it has gone. */
static bool has_hung_up(const struct client *c)
{
    char byte;

    return recv(stream_fd(&c->stream), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void orders_on_timer(struct timer *t)
{
    struct client_orders *o = LIST_ENTRY(t, struct client_orders, timer);
    struct client *c = o->client;

    if (has_hung_up(c)) {
        client_leave(c);
        return;
    }
    timer_start(c->ss->loop, &o->timer, o->poll_ms);
    client_unpark(c);
}

static struct client_orders *orders_begin_wait(struct client *c, unsigned poll_ms)
{
    struct client_orders *o = mem_alloc_zero(sizeof *o);

    o->client = c;
    o->poll_ms = poll_ms;
    timer_init(&o->timer, orders_on_timer);
    timer_start(c->ss->loop, &o->timer, poll_ms);
    client_rare(c)->orders = o;
    return o;
}

static enum admin_order_state orders_wait(
    struct client *c, const struct orders_pending *pending, bool is_unused)
{
    struct client_orders *o = orders_begin_wait(c, ORDERS_POLL_MS);

    o->is_unused = is_unused;
    rows_set_text(o->database, sizeof o->database, pending->database.p, pending->database.n);
    o->pending = *pending;
    o->pending.database = slice_of_str(o->database);
    return ADMIN_ORDER_WAITS;
}

static void orders_undo(struct client *c)
{
    orders_take_back(c->ss->env, &client_orders(c)->pending);
}

void client_orders_free(struct client *c)
{
    if (client_orders(c) == NULL)
        return;
    orders_undo(c);
    orders_give_up(c);
}

bool client_orders_cancel(struct client *c)
{
    if (client_orders(c) == NULL)
        return false;
    orders_undo(c);
    client_orders(c)->is_cancelled = true;
    client_unpark(c);
    return true;
}

/* --- orders --- */

/* PAUSE and DRAIN are begun. */
static enum admin_order_state orders_first_look(
    struct client *c, const struct admin_order *order, unsigned flag, struct err *err)
{
    struct orders_pending pending = {.database = order->database, .flag = flag};
    bool is_unused = !orders_database_is_used(c->ss->env->shm, order->database);
    char who[ORDERS_WHO_BYTES];
    struct orders_giver giver = giver_of(c, who, sizeof who);

    if (orders_begin(c->ss->env, &pending, &giver, err) == -1)
        return ADMIN_ORDER_REFUSED;
    return orders_wait(c, &pending, is_unused);
}

static enum admin_order_state orders_cancelled(struct client *c, struct err *err)
{
    err_set(err, "57014", "canceling statement due to user request");
    orders_give_up(c);
    return ADMIN_ORDER_REFUSED;
}

/* PAUSE and DRAIN: begun by the first call, looked after by those that follow until it is done. */
static enum admin_order_state orders_until_done(
    struct client *c, const struct admin_order *order, unsigned flag, struct err *err)
{
    struct client_orders *o = client_orders(c);

    if (o == NULL)
        return orders_first_look(c, order, flag, err);
    if (o->is_cancelled)
        return orders_cancelled(c, err);
    switch (orders_look(c->ss->env, &o->pending, c->row_index, err)) {
    case ORDERS_PENDING:
        if (++o->npolls % ORDERS_RETELL_POLLS == 0)
            orders_tell(c->ss->env);
        return ADMIN_ORDER_WAITS;
    case ORDERS_ENDED:
        orders_give_up(c);
        return ADMIN_ORDER_REFUSED;
    case ORDERS_DONE:
        break;
    }
    *order->is_unused = o->is_unused;
    orders_give_up(c);
    return ADMIN_ORDER_DONE;
}

static int order_now(struct client *c, const struct admin_order *order,
    const struct orders_giver *giver, struct err *err)
{
    const struct proc_env *env = c->ss->env;

    switch (order->kind) {
    case ADMIN_ORDER_RESUME:
        return orders_resume(env, order->database, giver, err);
    case ADMIN_ORDER_RECONNECT:
        *order->is_unused = !orders_database_is_used(env->shm, order->database);
        return orders_reconnect(env, order->database, giver, err);
    case ADMIN_ORDER_KILL_DATABASE:
        return orders_kill_database(
            env, order->database, c->row == NULL ? 0 : c->row->id, giver, err);
    case ADMIN_ORDER_DISABLE:
    case ADMIN_ORDER_ENABLE:
        return orders_disable(env, order->database, order->kind == ADMIN_ORDER_DISABLE, giver, err);
    default:
        return orders_shutdown(
            env, client_console(c) != NULL, order->kind == ADMIN_ORDER_SHUTDOWN_WAIT, giver, err);
    }
}

/* Orders that are done at once. */
static enum admin_order_state orders_at_once(
    struct client *c, const struct admin_order *order, struct err *err)
{
    char who[ORDERS_WHO_BYTES];
    struct orders_giver giver = giver_of(c, who, sizeof who);

    return order_now(c, order, &giver, err) == -1 ? ADMIN_ORDER_REFUSED : ADMIN_ORDER_DONE;
}

/* The worker that has the client; -1: none has. */
static int worker_of_client(const struct sessions *ss, uint32_t id)
{
    struct client_row row;

    return session_find_client(ss->client_rows, id, &row) == ROWS_NO_ROW ? -1 : row.worker;
}

static enum admin_order_state orders_kill(
    struct client *c, const struct admin_order *order, struct err *err)
{
    struct order_mail m = {.kind = ORDER_KILL_CLIENT, .client_id = order->client_id};
    int ordinal = worker_of_client(c->ss, order->client_id);

    if (ordinal != -1) {
        orders_tell_worker(c->ss->env, ordinal, &m);
        return ADMIN_ORDER_DONE;
    }
    err_set(err, "42704", "there is no client %u", order->client_id);
    err_hint(err, "SHOW POOL_CLIENTS lists them.");
    return ADMIN_ORDER_REFUSED;
}

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
static enum admin_order_state orders_look_begin(struct client *c)
{
    struct sessions *ss = c->ss;
    int64_t since_us = backend_wall_us(&ss->be) - LOOK_FRESH_US;
    struct client_orders *o;

    if (since_us < ss->suspected_us)
        since_us = ss->suspected_us;
    if (is_seen_since(ss, since_us))
        return ADMIN_ORDER_DONE;
    sessions_mail_monitor(ss, MAIL_NODES_LOOK, NULL, 0);
    o = orders_begin_wait(c, LOOK_POLL_MS);
    o->look_us = since_us;
    o->look_until_us = loop_now_us(ss->loop) + LOOK_LIMIT_US;
    return ADMIN_ORDER_WAITS;
}

static enum admin_order_state orders_look_at_servers(struct client *c)
{
    struct client_orders *o = client_orders(c);

    if (o == NULL)
        return orders_look_begin(c);
    if (!o->is_cancelled && loop_now_us(c->ss->loop) < o->look_until_us &&
        !is_seen_since(c->ss, o->look_us))
        return ADMIN_ORDER_WAITS;
    orders_give_up(c);
    return ADMIN_ORDER_DONE;
}

static enum admin_order_state orders_wait_close(
    struct client *c, const struct admin_order *order, struct err *err)
{
    struct client_orders *o = client_orders(c);

    if (orders_are_replaced(c->ss->env->shm, order->database, c->row_index)) {
        if (o != NULL)
            orders_give_up(c);
        return ADMIN_ORDER_DONE;
    }
    if (o == NULL) {
        (void)orders_begin_wait(c, ORDERS_POLL_MS);
    } else if (o->is_cancelled) {
        return orders_cancelled(c, err);
    }
    return ADMIN_ORDER_WAITS;
}

enum admin_order_state client_orders_run(
    void *ctx, const struct admin_order *order, struct err *err)
{
    struct client *c = ctx;

    switch (order->kind) {
    case ADMIN_ORDER_PAUSE:
        return orders_until_done(c, order, ORDER_PAUSE, err);
    case ADMIN_ORDER_DRAIN:
        return orders_until_done(c, order, ORDER_DRAIN, err);
    case ADMIN_ORDER_KILL_CLIENT:
        return orders_kill(c, order, err);
    case ADMIN_ORDER_CANCEL_CLIENT:
        return (enum admin_order_state)session_cancel_client(c->ss->env, order->client_id, err);
    case ADMIN_ORDER_WAIT_CLOSE:
        return orders_wait_close(c, order, err);
    case ADMIN_ORDER_RESUME:
    case ADMIN_ORDER_RECONNECT:
    case ADMIN_ORDER_KILL_DATABASE:
    case ADMIN_ORDER_DISABLE:
    case ADMIN_ORDER_ENABLE:
    case ADMIN_ORDER_SHUTDOWN:
    case ADMIN_ORDER_SHUTDOWN_WAIT:
        return orders_at_once(c, order, err);
    case ADMIN_ORDER_LOOK:
        return orders_look_at_servers(c);
    case ADMIN_ORDER_RELOAD:
        return (enum admin_order_state)orders_reload(c->ss->env, client_console(c) != NULL, err);
    }
    return ADMIN_ORDER_REFUSED;
}

/* --- DROP DATABASE, and what else needs a database to itself --- */

static void note_ddl(struct client *c, const struct sql_stmt *st)
{
    struct client_ddl *d = client_ddl(c);
    int node = c->pool->cluster_node;

    if (!client_ddl_note(
            &d, st, node < POOLS_FIRST_TARGET ? RETIRE_OUR_SERVERS : node, pool_user(c->pool)))
        return;
    client_rare(c)->ddl = d;
    c->drops_database = true;
}

/* Clients that share statements are not given one that was parsed before (follow_types.c). */
static void note_types(struct client *c, unsigned types)
{
    if (types == 0)
        return;
    client_ddl_note_types(&client_rare(c)->ddl, types);
    c->drops_database = true;
}

/* The database that nobody may be connected to while the server does `st`. */
static struct slice needs_alone(const struct sql_stmt *st)
{
    struct slice name = st->name;
    const char *end = name.n == 0 ? NULL : memchr(name.p, '\0', name.n);

    if (end != NULL)
        return slice_of(end + 1, name.n - (size_t)(end + 1 - name.p));
    return st->verb == SQL_VERB_CREATE_DATABASE ? slice_of_str("template1") : name;
}

static void close_free_everywhere(struct client *c, const struct sql_stmt *st)
{
    struct order_mail m = {.kind = ORDER_CLOSE_FREE, .client_id = c->row == NULL ? 0 : c->row->id};
    struct slice database = needs_alone(st);
    int i;

    if (database.n >= sizeof m.database)
        return;
    memcpy(m.database, database.p, database.n);
    c->drops_database = true;
    cache_stream_let_go(cache_streams_of(c->ss->env->shm), database, loop_now_us(c->ss->loop));
    for (i = 0; i < c->ss->env->nworkers; i++)
        orders_tell_worker(c->ss->env, i, &m);
}

static void tell_of_ddl_in(struct client *c, struct slice sql, bool is_relayed)
{
    struct sql_facts facts;
    struct arena *arena;
    uint32_t k;

    /* An arena of its own: others may hold facts of theirs. */
    arena = arena_new("drop database", 1 << 20);
    (void)sql_parse(arena, sql, &facts);
    if (is_relayed && facts.status != SQL_OK) /* perhaps not all of it is here */
        note_types(c, ROUTE_DDL_TYPES | ROUTE_DDL_NAMES);
    for (k = 0; k < facts.nstmts; k++) {
        note_ddl(c, &facts.stmts[k]);
        if (is_relayed)
            note_types(c, route_ddl_of(&facts.stmts[k], sql, false));
        if ((facts.stmts[k].flags & SQL_F_ALONE) != 0)
            close_free_everywhere(c, &facts.stmts[k]);
    }
    arena_free(&arena);
}

HOT void client_orders_on_statement(struct client *c, struct slice sql)
{
    static const char *const words[] = {"drop", "alter", "create database", NULL};

    if (sql_leads_with(sql, words))
        tell_of_ddl_in(c, sql, false);
}

HOT void client_orders_on_relayed(struct client *c, struct slice sql)
{
    static const char *const words[] = {"drop", "alter", "create", "do", "commit prepared", NULL};

    if (sql_leads_with(sql, words))
        tell_of_ddl_in(c, sql, true);
}

/* Tells this worker at once: its next client may be here before its mail. What was parsed and never
 * run counts, too, so that of a role whose links are meant nothing is forgotten on the word of
 * those who may not drop it. */
static void tell_of_ddl(void *ctx, const struct link_retire *told)
{
    struct client *c = ctx;
    const struct proc_env *env = c->ss->env;
    struct link_retire now = *told;
    const struct link_retire *what = &now;
    int slot;
    int i;

    now.is_gone = now.is_gone != 0 && pool_is_superuser(c->pool);
    for (i = 0; i < env->nworkers; i++) {
        slot = env->first_worker_slot + i;
        if (i == env->ordinal || proc_row(env->shm, slot)->pid == 0)
            continue;
        if (mailbox_post(env->boxes, slot, MAIL_LINKS_RETIRE, what, sizeof *what, -1) == -1)
            log_at_detail(LVL_WARNING, NULL,
                "Links of the role as it was may be used there: PGPOOL RECONNECT replaces them.",
                "worker %d could not be told that a role has changed: its mailbox is full", i);
    }
    orders_on_retire(c->ss, what, sizeof *what);
}

/* When it was done, the server saw nobody else there: what is lent to that database now, if a new
 * one of its name exists, may live. */
void client_orders_on_quiet(struct client *c, bool is_in_tx)
{
    struct order_mail m = {.kind = ORDER_KEEP, .client_id = c->row == NULL ? 0 : c->row->id};
    int i;

    if (client_ddl(c) != NULL) {
        session_ddl_done(
            c->ss->shared, client_ddl_on_quiet(&c->rare->ddl, is_in_tx, tell_of_ddl, c));
        client_rare_trim(c);
    }
    c->drops_database = client_ddl(c) != NULL;
    if (is_in_tx)
        return; /* no database is dropped there */
    for (i = 0; i < c->ss->env->nworkers; i++)
        orders_tell_worker(c->ss->env, i, &m);
}

void orders_on_retire(struct sessions *ss, const void *body, size_t len)
{
    backend_on_retire(&ss->be, body, len);
    greetings_forget(ss->greetings);
    login_auth_forget_roles(ss->auth);
}

void client_orders_on_leave(struct client *c)
{
    client_ddl_on_error(client_ddl(c)); /* anybody may ask for anything and hang up */
    client_orders_on_quiet(c, false);
}

/* --- in every worker --- */

/* What is being cleaned, or lent, goes as soon as it is free: the server waits for some seconds. */
static void close_free_links(struct sessions *ss, const char *database, uint32_t client_id)
{
    struct link *link;
    struct list *n;
    struct list *tmp;

    LIST_FOREACH(n, &ss->be.links)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (!slice_eq_str(pool_database(link->pool), database))
            continue;
        if (client_id == 0)
            link->is_retired = true;
        else
            link->dropped_by = client_id;
    }
    LIST_FOREACH_SAFE(n, tmp, &ss->be.idle_lru)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (slice_eq_str(pool_database(link->pool), database))
            link_close(link);
    }
}

static void keep_links(struct sessions *ss, uint32_t client_id)
{
    struct link *link;
    struct list *n;

    LIST_FOREACH(n, &ss->be.links)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (link->dropped_by == client_id)
            link->dropped_by = 0;
    }
}

static void close_unwanted_links(struct sessions *ss)
{
    struct link *link;
    struct list *n;
    struct list *tmp;

    LIST_FOREACH_SAFE(n, tmp, &ss->be.idle_lru)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (orders_want_close(ss->env->shm, pool_database(link->pool), link->opened_us))
            link_close(link);
    }
}

static bool is_between_transactions(const struct client *c)
{
    return c->phase == CL_ACTIVE && !c->is_parked && client_orders(c) == NULL &&
           (c->target == NULL || expect_is_quiet(&c->target->expect));
}

/* Clients are not ended here and now: the end of one may be that of another, in this walk. */
static void end_drained_clients(struct sessions *ss)
{
    bool is_held = hold_is_on(ss->env->shm);
    struct list *n;
    struct client *c;

    LIST_FOREACH(n, &ss->clients)
    {
        c = LIST_ENTRY(n, struct client, node);
        if ((is_held && client_is_native(c)) ||
            (is_between_transactions(c) && client_limits_must_leave(c)))
            client_limits_poke(c);
    }
}

static void kill_client(struct sessions *ss, uint32_t id)
{
    struct order_mail m = {.kind = ORDER_KILL_CLIENT, .client_id = id};
    struct list *n;
    struct client *c;
    int ordinal;

    LIST_FOREACH(n, &ss->clients)
    {
        c = LIST_ENTRY(n, struct client, node);
        if (c->row == NULL || c->row->id != id)
            continue;
        log_at(LVL_LOG, "client %u is ended by an operator's command", id);
        client_end_text(c, "57P01", "terminating connection due to administrator command");
        return;
    }
    ordinal = worker_of_client(ss, id); /* it has left meanwhile */
    if (ordinal != -1 && ordinal != ss->env->ordinal)
        orders_tell_worker(ss->env, ordinal, &m);
}

/* Ends clients by their numbers: the end of one may be that of another, and disturb a walk. */
static void kill_database(struct sessions *ss, const char *database, uint32_t but)
{
    uint32_t *ids = mem_alloc((ss->nclients + 1) * sizeof *ids);
    struct client *c;
    struct list *n;
    uint32_t count = 0;
    uint32_t i;

    LIST_FOREACH(n, &ss->clients)
    {
        c = LIST_ENTRY(n, struct client, node);
        if (c->row == NULL || c->pool == NULL || client_console(c) != NULL || c->row->id == but ||
            count > ss->nclients ||
            (database[0] != '\0' && !slice_eq_str(pool_database(c->pool), database)))
            continue;
        ids[count++] = c->row->id;
    }
    for (i = 0; i < count; i++)
        kill_client(ss, ids[i]);
    mem_free(ids);
}

void sessions_on_order(struct sessions *ss, const void *body, size_t len)
{
    struct order_mail m;

    if (len != sizeof m)
        return;
    memcpy(&m, body, sizeof m);
    if (m.kind == ORDER_KILL_CLIENT) {
        kill_client(ss, m.client_id);
        return;
    }
    m.database[sizeof m.database - 1] = '\0';
    if (m.kind == ORDER_KILL_DATABASE) {
        kill_database(ss, m.database, m.client_id);
        backend_post_retry(&ss->be);
        return;
    }
    if (m.kind == ORDER_CLOSE_FREE) {
        close_free_links(ss, m.database, m.client_id);
        backend_post_retry(&ss->be);
        return;
    }
    if (m.kind == ORDER_KEEP) {
        keep_links(ss, m.client_id);
        return;
    }
    close_unwanted_links(ss);
    end_drained_clients(ss);
    backend_post_retry(&ss->be);
}
