/* SPDX-License-Identifier: PostgreSQL
 * sessions.c: a worker's clients as a whole: start, new configuration, stop. */
#include "config.h"

#include <string.h>

#include "auth/auth_book.h"
#include "backend/pool.h"
#include "backend/retire.h"
#include "backend/row_alloc.h"
#include "base/arena.h"
#include "base/log.h"
#include "config/conf.h"
#include "ipc/mailbox.h"
#include "ipc/orders.h"
#include "parser/sql_cache.h"
#include "route/route_oracle.h"
#include "route/route_rules.h"
#include "login/login_auth.h"

#include "plan_int.h"
#include "client/client_watch_int.h"
#include "client/client_tls_int.h"
#include "leg/leg_int.h"
#include "sstate_int.h"
#include "client_events_int.h"

/* Facts of recent statements, per worker. */
#define SESSION_FACTS_MAX   4096
#define SESSION_FACTS_BYTES (8U << 20)

/* Tells everybody how many clients this worker has. Put off to the end of the turn: a burst of a
 * thousand connects is one update. */
static void sessions_on_publish(struct task *t)
{
    struct sessions *ss = LIST_ENTRY(t, struct sessions, publish);
    struct proc_row *row = proc_row(ss->env->shm, ss->env->slot);

    atomic_store(&row->nclients, ss->nclients);
    atomic_store(&row->nwaiting, ss->be.nrequests);
    sessions_title_set(ss);
}

void sessions_on_retire(struct sessions *ss, const void *body, size_t len)
{
    struct link_retire what = {0};

    client_watch_retire(ss, body, len);
    if (len == sizeof what)
        memcpy(&what, body, sizeof what);
    if (ss->results != NULL && what.sets != 0)
        ss->results->sets_changed(ss);
}

static int sessions_post(
    struct backend *be, int ordinal, enum mail_type type, const void *body, size_t len, int fd)
{
    const struct proc_env *env = ((struct sessions *)be->ctx)->env;

    return mailbox_post(env->boxes, env->first_worker_slot + ordinal, type, body, len, fd);
}

/* The lists of the settings, compiled. A wrong pattern was refused when the file was checked;
 * should one slip through, nothing is balanced, and the log says why. */
static void sessions_make_rules(struct sessions *ss)
{
    struct err err;

    err_clear(&err);
    route_rules_free(&ss->rules);
    ss->rules = route_rules_new(ss->conf, &err);
    if (ss->rules == NULL)
        log_err(LVL_WARNING, &err);
    route_cache_touch(ss->answers);
}

/* A server that stops ends all its links: the monitor is told once for all of them. */
static void on_free_ended(struct backend *be, int node)
{
    struct sessions *ss = be->ctx;

    if (node < 0 || node >= VIEW_MAX_NODES || ss->stop != SESSION_RUNNING)
        return;
    ss->suspected[node / 64] |= UINT64_C(1) << (node % 64);
    task_post(ss->loop, &ss->suspect);
}

static void on_suspects(struct task *t)
{
    struct sessions *ss = LIST_ENTRY(t, struct sessions, suspect);
    int node;

    for (node = 0; node < VIEW_MAX_NODES; node++)
        if (view_has_node(ss->suspected, node))
            sessions_suspect_node(ss, node);
    memset(ss->suspected, 0, sizeof ss->suspected);
}

static const struct client_events client_events = {.end = client_do_end,
    .leave = client_do_leave,
    .drop_link = client_do_drop_link,
    .feed = client_do_feed,
    .unpark = client_do_unpark,
    .after_quiet = client_do_after_quiet,
    .acquire = client_do_acquire,
    .welcome = client_do_welcome,
    .enter = client_do_enter,
    .idle = sessions_do_idle,
    .travel_waiting = client_do_travel_waiting};

/* Functions of login_worker, for logins. */
static int ask_node(void *ctx, int lost)
{
    return sessions_ask_node(ctx, lost);
}

static bool all_asked_since(void *ctx, int64_t since_us)
{
    struct sessions *ss = ctx;

    (void)view_refresh(ss->env->shm, &ss->view);
    return sessions_all_asked_since(&ss->view, since_us);
}

static void suspect(void *ctx, int node)
{
    sessions_suspect_node(ctx, node);
}

static void make_known(struct sessions *ss)
{
    const struct known_worker of = {.shm = ss->env->shm,
        .loop = ss->loop,
        .view = &ss->view,
        .answers = ss->answers,
        .ordinal = ss->env->ordinal};

    ss->known = known_new(&of, ss->conf, backend_wall_us(&ss->be));
}

void sessions_init(struct sessions *ss, struct loop *loop, struct proc_env *env)
{
    const struct login_worker worker = {.be = &ss->be,
        .env = env,
        .silent_us = session_silent_cell(shm_get(env->shm, SHM_STATS), env->ordinal),
        .preps = &ss->preps,
        .ctx = ss,
        .suspect = suspect,
        .ask_node = ask_node,
        .all_asked_since = all_asked_since};

    memset(ss, 0, sizeof *ss);
    ss->loop = loop;
    ss->env = env;
    ss->events = &client_events;
    ss->kinds = &client_kinds;
    ss->gen = env->conf;
    ss->conf = conf_of(env->conf);
    ss->logs_statements = sessions_log_statements(env->conf);
    list_init(&ss->clients);
    prep_store_init(&ss->preps);
    leg_wait_init(ss);
    list_init(&ss->cancel_searches);
    sessions_view_init(ss);
    sessions_title_init(ss);
    sessions_give_init(ss);
    task_init(&ss->publish, sessions_on_publish);
    task_init(&ss->suspect, on_suspects);
    backend_init(&ss->be, loop, env->shm, ss->conf, env->ordinal);
    ss->be.ctx = ss;
    ss->be.book = auth_book_new();
    ss->be.post = sessions_post;
    ss->be.on_free_ended = on_free_ended;
    ss->client_rows = shm_get(env->shm, SHM_CLIENTS);
    ss->client_row_alloc = row_alloc_new(ss->client_rows, env->ordinal);
    ss->shared = shm_get(env->shm, SHM_STATS);
    ss->has_orders = orders_mark(env->shm);
    ss->view_version = view_version_mark(env->shm);
    ss->scratch = arena_new("statement", 0);
    hash_table_init(&ss->said);
    ss->sql_cache = sql_cache_new(SESSION_FACTS_MAX, SESSION_FACTS_BYTES);
    ss->answers = route_cache_new((uint32_t)ss->conf->relcache_size, ss->conf->relcache_expire_ms);
    sessions_make_rules(ss);
    make_known(ss);
    ss->greetings = greetings_new(env->shm, loop, env->ordinal, env->nworkers);
    backend_tls_set_conf(&ss->be, ss->gen);
    session_tls_set_conf(ss);
    ss->auth = login_auth_new(&worker, env->conf);
    sessions_warm_init(ss);
    session_stmts_set(ss);
}

void sessions_fini(struct sessions *ss)
{
    sessions_warm_end(ss);
    client_cancel_end(ss);
    known_free(&ss->known);
    session_tls_fini(ss);
    login_auth_free(&ss->auth);
    greetings_free(&ss->greetings);
    exchange_login_forget(ss);
    backend_fini(&ss->be);
    auth_book_free(&ss->be.book);
    stmts_free(&ss->stmts_kept);
    sql_cache_free(&ss->sql_cache);
    route_cache_free(&ss->answers);
    hash_table_fini(&ss->said);
    route_rules_free(&ss->rules);
    arena_free(&ss->scratch);
    prep_store_fini(&ss->preps);
    errand_spare_free(ss);
    row_alloc_free(&ss->client_row_alloc);
}

void sessions_set_conf(struct sessions *ss, const struct conf_gen *gen)
{
    struct list *n;

    ss->gen = gen;
    ss->conf = conf_of(gen);
    ss->writes.hold = WRITES_NOT_KNOWN;
    ss->logs_statements = sessions_log_statements(gen);
    backend_set_conf(&ss->be, ss->conf);
    sessions_make_rules(ss);
    if (ss->results != NULL)
        ss->results->conf(ss);
    backend_tls_set_conf(&ss->be, gen);
    session_tls_set_conf(ss);
    login_auth_reload(ss->auth, ss->gen);
    sessions_warm_on_conf(ss);
    session_stmts_set(ss);
    LIST_FOREACH(n, &ss->clients)
    client_limits_on_reload(LIST_ENTRY(n, struct client, node));
}

/* One that ends may end another, who waits for its result, say: so no place in the list is kept. */
static void end_all(struct sessions *ss)
{
    struct list told;
    struct list *n;

    list_init(&told);
    while (!list_is_empty(&ss->clients)) {
        n = list_first(&ss->clients);
        list_remove(n);
        list_push_back(&told, n);
        client_end_text(LIST_ENTRY(n, struct client, node), "57P01",
            "terminating connection due to administrator command");
    }
    while (!list_is_empty(&told)) { /* they have their goodbye to send */
        n = list_first(&told);
        list_remove(n);
        list_push_back(&ss->clients, n);
    }
}

void sessions_stop(struct sessions *ss, enum session_stop how)
{
    if (how <= ss->stop)
        return;
    ss->stop = how;
    backend_stop_caching(&ss->be);
    if (how == SESSION_STOP_FAST)
        end_all(ss);
    if (ss->nclients == 0 && ss->on_empty != NULL)
        ss->on_empty(ss);
}
