/* SPDX-License-Identifier: PostgreSQL
 * client_login.c: from the startup packet to the first ReadyForQuery.
 * Authentication is the server's own: its requests go to the client and the answers back. A cached
 * link goes to a client without that only when the server lets this user in without asking (trust),
 * as seen lately; whoever must prove something gets a link of its own making. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/pools_conf.h"
#include "ipc/mailbox.h"
#include "ipc/orders.h"
#include "login/login_auth.h"
#include "wire/message.h"
#include "wire/writer.h"

#include "client/client_ddl_int.h"
#include "exchange/exchange_mode_int.h"
#include "sstate_int.h"
#include "client_events_int.h"

/* NAMEDATALEN of PostgreSQL, less the NUL. */
#define NAME_MAX_BYTES 63
/* Any password fits. */
#define LOGIN_CARRY_BYTES 2048
#define LOOK_AGAIN_MS     50
/* What is said to a client that is let in is mostly shorter. */
#define GREETING_BYTES 1024

static const struct link_owner_ops login_link_ops;

void client_login_leave(struct client *c)
{
    struct client_login *login = c->login;

    if (login == NULL)
        return;
    client_auth_leave(login->auth);
    client_auth_close(login->auth);
    if (!list_is_detached(&login->look_node))
        list_remove(&login->look_node);
    pool_request_cancel(&login->req);
}

void client_login_free(struct client *c)
{
    struct client_login *login = c->login;

    if (login == NULL)
        return;
    client_login_leave(c);
    c->login = NULL;
    client_auth_free(&login->auth);
    paramset_free(&login->params);
    buf_free(&login->packet);
    mem_free(login);
}

/* max_db_client_connections and max_user_client_connections: of the user as the client calls
 * itself, whoever pools.conf makes of all of them at the server. To say a name takes no place. */
static bool login_count_limits(struct client *c)
{
    struct sessions *ss = c->ss;
    struct slice user = c->login->auth_user;
    struct slice database = pool_database(c->pool);
    const struct pool_settings *set = pools_conf_find(ss->conf, database, user);
    struct err err = {0};

    if (c->ticket.db != 0 || limits_client_add(ss->env->shm, ss->env->ordinal, database, user,
                                 set->max_db_client_connections, set->max_user_client_connections,
                                 &c->ticket, &err) == 0)
        return true;
    client_end(c, &err);
    return false;
}

static bool login_too_many(struct client *c)
{
    const struct conf *conf = c->ss->conf;
    struct err err = {0};

    err_set_fatal(&err, "53300", "Sorry, too many clients already");
    err_hint(
        &err, "Raise max_clients, or let clients disconnect that do nothing: SHOW POOL_CLIENTS.");
    err_detail(&err, "max_clients is %d, reserved_connections is %d.", conf->max_clients,
        conf->reserved_connections);
    client_end(c, &err);
    return false;
}

/* There are max_clients: lets it in for the one, in whichever worker, who has been asked for a
 * password and has been silent for longest. It goes at once, or as soon as its worker has looked;
 * should it answer in between, there is one client more for a while. */
static bool login_replaces(struct client *c)
{
    struct sessions *ss = c->ss;
    int64_t before_us = loop_now_us(ss->loop) - LOGIN_SILENT_US;
    int w = session_take_silent(ss->shared, before_us);

    if (w == -1)
        return false;
    if (w == ss->env->ordinal)
        (void)login_auth_make_room(ss->auth);
    else if (mailbox_post(ss->env->boxes, ss->env->first_worker_slot + w, MAIL_PLACE_TAKEN, NULL, 0,
                 -1) == -1)
        return false; /* it is told of again with the next login there */
    return session_count_add(ss->shared, ss->env->ordinal, INT32_MAX);
}

/* max_clients, with reserved_connections kept for superusers. Who is one may only be known when a
 * server has said it: login_may_stay. */
static bool login_count_in(struct client *c, const struct pool *pool)
{
    int limit = c->ss->conf->max_clients;

    if (pool->role == POOL_ROLE_PLAIN)
        limit -= c->ss->conf->reserved_connections;
    if (!session_count_add(c->ss->shared, c->ss->env->ordinal, limit) && !login_replaces(c))
        return login_too_many(c);
    c->is_counted = true;
    return true;
}

/* The login is over: a client that is no superuser leaves when it has a place that is reserved. */
static bool login_may_stay(struct client *c)
{
    const struct conf *conf = c->ss->conf;
    struct slice super = paramset_get(client_login_parameters(c), slice_of_str("is_superuser"));

    /* A link knows. What was said to others counts only where nobody has said anything since. */
    if (super.p != NULL &&
        (c->link != NULL ||
            (!pool_is_role_known(c->pool) && greeting_is_fresh(c->ss->greetings, greeting_of(c)))))
        pool_note_role(c->pool, super);
    if (conf->reserved_connections == 0 || pool_is_superuser(c->pool))
        return true;
    return session_count_all(c->ss->env->shm) <= conf->max_clients - conf->reserved_connections ||
           login_too_many(c);
}

static void login_on_turn(struct pool_request *req)
{
    if (!client_auth_on_turn(client_auth_of(req->owner)))
        client_do_acquire(req->owner);
}

/* A server takes the first 63 bytes of a name. So do we, or else rules for a user would not find
 * the one who lets the server cut a longer name. */
static struct slice login_name(struct slice name)
{
    return slice_of(name.p, name.n < NAME_MAX_BYTES ? name.n : NAME_MAX_BYTES);
}

/* Copies the packet, so that names and parameters live as long as the login. */
static void login_keep(struct client_login *login, struct slice packet)
{
    struct startup again;
    struct err err = {0};
    unsigned i;

    buf_put(&login->packet, packet.p, packet.n);
    (void)startup_decode(buf_slice(&login->packet), &again, &err);
    login->version = again.version > PROTO_3_2 ? PROTO_3_2 : again.version;
    login->startup.version = login->version;
    login->startup.user = login_name(again.user);
    login->auth_user = login->startup.user;
    login->startup.database = login_name(again.database);
    login->startup.replication = again.is_replication ? again.replication : slice_of(NULL, 0);
    login->startup.params = &login->params;
    if (again.version <= PROTO_3_2 && again.nunknown == 0)
        login->negotiation = NEGOTIATION_SPARED;
    for (i = 0; i < again.nparams; i++)
        (void)paramset_set(&login->params, again.params[i].name, again.params[i].value);
    if (again.options.n > 0)
        (void)paramset_set(&login->params, slice_of_str("options"), again.options);
    login->nunknown = again.nunknown < 8 ? again.nunknown : 8;
    memcpy(login->unknown, again.unknown, login->nunknown * sizeof again.unknown[0]);
}

static void login_all_down(struct client *c)
{
    struct err err = {0};

    err_set_fatal(&err, "08S01", "pgpool is not accepting any new connections");
    err_detail(&err, "all backend nodes are down, pgpool requires at least one valid node");
    err_hint(&err, "repair the backend nodes: pgpool uses them again by itself. Its log says what "
                   "it saw of each.");
    client_end(c, &err);
}

/* False: where writes go to all nodes, a replication client that names a database is refused, for
 * its SQL would run on one node alone. */
static bool login_may_replicate(struct client *c)
{
    const struct conf *conf = c->ss->conf;
    struct err err = {0};

    if (!conf_writes_everywhere(conf) || !slice_eq_str(c->login->startup.replication, "database"))
        return true;
    err_set_fatal(&err, "0A000", "replication=database is not supported in native replication");
    err_hint(&err, "It would write to one of the servers alone: connect to a server itself.");
    client_end(c, &err);
    return false;
}

/* With login_without_server: whose pool a client without a server is counted in; else -1. */
static int login_node_for_none(const struct client *c)
{
    const struct conf *conf = c->ss->conf;
    int i;

    for (i = 0; conf->login_without_server && i < conf->nnodes; i++)
        if (conf_has_node(conf, i))
            return i;
    return -1;
}

/* All databases are paused, and here is a superuser, who may end that: known as one by a server
 * that was asked before, or as the one who paused them. */
static bool login_is_to_resume(struct client *c)
{
    struct shm *shm = c->ss->env->shm;
    struct pool *pool = c->pool;

    if ((orders_flags(shm, slice_of(NULL, 0)) & ORDER_PAUSE) == 0)
        return false;
    if (!pool_is_role_known(pool) && orders_is_giver(shm, pool_user(pool), client_role_place(c)))
        pool->role = POOL_ROLE_BELIEVED;
    return pool_is_superuser(pool);
}

/* No server can be had: begins the session of a client who has proved to us who it is. */
static bool login_alone(struct client *c, bool is_allowed)
{
    if (!is_allowed || !c->login->req.may_reuse || !exchange_login_alone(c))
        return false;
    client_login_welcome(c);
    return true;
}

/* The client asks for the virtual database: no server is needed at any step. The pool is a name
 * only, it never has a link. */
static bool login_is_alone(struct client *c)
{
    struct client_login *login = c->login;
    const struct conf *conf = c->ss->conf;
    int node = 0;

    if (c->ss->console == NULL || !console_is_named(conf, login->startup.database))
        return false;
    while (node < conf->nnodes && !conf_has_node(conf, node))
        node++;
    c->kind = &c->ss->kinds->console;
    c->pool = pool_attach(
        &c->ss->be, login->startup.user, login->startup.database, node < conf->nnodes ? node : 0);
    login->req.pool = c->pool;
    if (login->startup.replication.n > 0)
        client_end_text(c, "0A000", "database \"%s\" is pgpool's own: nothing to replicate",
            pool_database(c->pool).p);
    else
        client_gate_open(c);
    return true;
}

void client_login_begin(struct client *c, struct slice packet)
{
    struct client_login *login = mem_alloc_zero(sizeof *login);
    const struct pool_settings *set;
    struct err err;
    int node;

    c->phase = CL_LOGIN;
    c->login = login;
    login->client = c;
    list_init(&login->look_node);
    pool_request_init(&login->req);
    login_keep(login, packet);
    if (login_is_alone(c))
        return;
    set = pools_conf_find(c->ss->conf, login->startup.database, login->startup.user);
    node = set->target != POOLS_NO_TARGET ? set->target : sessions_write_node(c->ss);
    if (set->user != NULL)
        login->startup.user = slice_of_str(set->user);
    login->has_no_server = node == -1;
    if (node == -1 && (node = login_node_for_none(c)) == -1) {
        login_all_down(c);
        return;
    }
    c->pool = pool_attach(&c->ss->be, login->startup.user, login->startup.database, node);
    if (set->user != NULL) {
        login->startup.user = pool_user(c->pool); /* the settings may be reloaded */
        place_learn_secret(c->pool);
    }
    if (!login_count_in(c, c->pool) || (node < POOLS_FIRST_TARGET && !login_may_replicate(c)))
        return;
    login->req.pool = c->pool;
    login->req.startup = &login->startup;
    login->req.is_private = login->startup.replication.n > 0;
    login->req.on_turn = login_on_turn;
    login->req.owner = c;
    login->req.ops = &login_link_ops;
    err_clear(&err);
    if (exchange_mode_take(c, &err) == -1) {
        client_end(c, &err);
        return;
    }
    exchange_login_begin(c);
    client_gate_open(c);
}

/* What a server says beside a login is told to a session that is let in without one of its own. Who
 * wants to hear none of it has said so at his login only. */
static void login_put_notices(const struct client *c, struct buf *out)
{
    static const char level[] = "client_min_messages";
    struct slice said = pool_said(c->pool, &c->login->params);

    if (said.n > 0 && paramset_get(&c->login->params, slice_of_str(level)).p == NULL &&
        c->kind->setting(c, level).p == NULL)
        buf_put(out, said.p, said.n);
}

/* Parameters, key and ReadyForQuery: the session begins. */
void client_do_welcome(struct client *c)
{
    struct link *link = c->link;
    const struct paramset *params;
    struct buf out = {0};
    struct slice name;
    struct slice value;
    uint32_t at = 0;

    if (link != NULL && !c->kind->granted(c))
        return; /* its start-up parameters are on their way to the link */
    if (!login_may_stay(c))
        return;
    (void)buf_reserve(&out, GREETING_BYTES);
    client_login_put_ok(c, &out);
    params = client_login_parameters(c);
    while (paramset_next(params, &at, &name, &value))
        wire_put_parameter_status(&out, name, value);
    c->epoch = link == NULL ? 0 : link->epoch;
    c->target = link;
    c->phase = CL_ACTIVE;
    if (link != NULL && exchange_login_is_relayed(c))
        link->is_retired = true; /* whoever comes next makes one of his own */
    if (!client_limits_on_login(c)) {
        buf_free(&out);
        return;
    }
    stats_on_login(&c->stats,
        dbstats_row_of(c->ss->env->shm, c->ss->env->ordinal, pool_database(c->pool)),
        c->link != NULL);
    c->kind->entered(c);
    client_row_login(c);
    client_row_put_key(c, &out);
    login_put_notices(c, &out);
    wire_put_ready(&out, link == NULL ? 'I' : link->tx_status);
    client_login_free(c);
    client_note_idle(c);
    (void)stream_send_ahead(&c->stream, out.data, out.len);
    buf_free(&out);
    c->kind->welcomed(c);
    client_unpark(c);
}

void client_do_enter(struct client *c, bool may_all)
{
    struct slice app = paramset_get(&c->login->params, slice_of_str("application_name"));
    struct buf out = {0};
    struct err err;

    err_clear(&err);
    if (c->ss->console->enter(c, may_all, app, &out, &err) == -1) {
        client_end(c, &err);
        return;
    }
    client_login_tell_ok(c);
    c->phase = CL_ACTIVE;
    client_set_timer(c, 0);
    client_row_console(c, may_all); /* DRAIN does not wait for who may all */
    client_row_put_key(c, &out);
    wire_put_ready(&out, client_tx_status(c));
    client_login_free(c);
    client_note_idle(c);
    client_send(c, &out);
    client_unpark(c);
}

/* Until servers were looked at once more, up to failover_wait in all; false when that is over. */
static bool login_waits_for_look(struct client *c)
{
    struct client_login *login = c->login;
    struct sessions *ss = c->ss;

    if (login->look_until_us == 0)
        login->look_until_us = loop_now_us(ss->loop) + ss->conf->failover_wait_ms * 1000;
    if (loop_now_us(ss->loop) >= login->look_until_us)
        return false;
    if (list_is_detached(&login->look_node))
        list_push_back(&ss->looking, &login->look_node);
    client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_NO_PRIMARY);
    if (!timer_is_armed(&ss->view_timer))
        timer_start(ss->loop, &ss->view_timer, LOOK_AGAIN_MS);
    return true;
}

/* pgpool has just started: the session's own link is to go to the primary. */
static bool login_needs_look(struct client *c)
{
    struct sessions *ss = c->ss;

    (void)view_refresh(ss->env->shm, &ss->view);
    return ss->view.is_looking && c->kind->pool_mode(c) == CONF_POOL_SESSION &&
           c->pool->cluster_node < POOLS_FIRST_TARGET;
}

void client_do_acquire(struct client *c)
{
    struct client_login *login = c->login;
    struct pool_request *req = &login->req;
    bool was_waiting;

    if (!client_place_login(c) || !login_count_limits(c))
        return;
    was_waiting = !list_is_detached(&req->pool_node);
    client_entitle(c, req);
    if (login->has_no_server) {
        if (!login_alone(c, c->ss->conf->login_without_server))
            login_all_down(c);
        return;
    }
    if ((!was_waiting && login_alone(c, login_is_to_resume(c))) ||
        (login_needs_look(c) && login_waits_for_look(c)))
        return;
    if (req->may_reuse)
        pool_role_ask(req->pool);
    if (!was_waiting && !req->pool->role_due && exchange_login_needs_no_link(c)) {
        client_login_welcome(c);
        return;
    }
    switch (pool_acquire(req)) {
    case ACQUIRE_GRANTED:
        stats_on_link(&c->stats, loop_now_us(c->ss->loop));
        c->link = req->link;
        c->epoch = c->link->epoch;
        if (req->needs_patch)
            client_patch_start(c, &login->params);
        else
            client_login_welcome(c);
        break;
    case ACQUIRE_OPENING:
        stats_on_link(&c->stats, loop_now_us(c->ss->loop));
        c->link = req->link;
        c->epoch = c->link->epoch;
        client_auth_on_opening(login->auth);
        client_row_state(c, CLIENT_STATE_LOGIN, WAIT_REASON_NONE);
        client_set_timer(c, c->ss->conf->authentication_timeout_ms); /* not that of a wait */
        break;
    case ACQUIRE_WAITING:
        if (!was_waiting && exchange_login_waits_for_none(c)) {
            client_login_welcome(c);
            break;
        }
        if (!was_waiting) {
            client_set_timer(c, 0);
            task_post(c->ss->loop, &c->ss->publish);
        }
        client_row_state(c, CLIENT_STATE_WAITING, (enum wait_reason)req->reason);
        break;
    }
}

/* The server of a login was gone before it said anything: another one is chosen when roles are
 * known and there is one. False when it is too late for that. */
static bool login_again(struct client *c, struct link *link)
{
    struct client_login *login = c->login;
    const struct sessions *ss = c->ss;

    if (c->link != link || !link_holds_slot(link) || !ss->view.is_streaming ||
        ss->view.primary_epoch == 0 || ss->view.nnodes < 2 ||
        pools_conf_find(ss->conf, login->startup.database, login->startup.user)->target !=
            POOLS_NO_TARGET ||
        !login_waits_for_look(c))
        return false;
    c->link = NULL;
    login->req.link = NULL;
    return true;
}

/* In the queue of a server that is not the primary any more nobody's turn may come. */
void client_login_leave_queues(struct sessions *ss)
{
    struct list *n;

    if (!ss->view.is_streaming || !view_can_write(&ss->view))
        return;
    LIST_FOREACH(n, &ss->clients)
    {
        struct client *c = LIST_ENTRY(n, struct client, node);
        struct client_login *login = c->login;

        if (login == NULL || list_is_detached(&login->req.pool_node) ||
            c->pool->cluster_node >= ss->view.nnodes || c->pool->cluster_node == ss->view.primary)
            continue;
        pool_request_cancel(&login->req);
        login->look_until_us = loop_now_us(ss->loop) + ss->conf->failover_wait_ms * 1000;
        list_push_back(&ss->looking, &login->look_node);
    }
}

/* Another server, when there is one by now, be it a standby: reads go on there, and writes wait. */
static void login_look_again(struct client *c)
{
    struct sessions *ss = c->ss;
    int node = sessions_write_node(ss);
    struct pool *pool = c->pool;

    if (loop_now_us(ss->loop) < c->login->look_until_us &&
        (node == VIEW_NO_NODE ||
            (node == pool->cluster_node && view_must_hold_writes(&ss->view)))) {
        list_push_back(&ss->looking, &c->login->look_node);
        return;
    }
    if (node == VIEW_NO_NODE) {
        client_end_text(c, "57P03", "no server was found within failover_wait (%d s)",
            (int)(ss->conf->failover_wait_ms / 1000));
        return;
    }
    if (pool->cluster_node != node)
        client_place_login_at(c, node);
    client_do_acquire(c);
}

void client_login_look_again(struct sessions *ss)
{
    struct list all;
    struct list *n;

    list_init(&all);
    while ((n = list_first(&ss->looking)) != NULL) {
        list_remove(n);
        list_push_back(&all, n);
    }
    while ((n = list_first(&all)) != NULL) {
        list_remove(n);
        login_look_again(LIST_ENTRY(n, struct client_login, look_node)->client);
    }
}

/* A password or SASL message, for us or for the server that judges. */
static bool login_take_answer(struct client *c, struct slice msg)
{
    enum client_auth_input wants = client_auth_wants(client_auth_of(c));

    if (wants == CLIENT_AUTH_ANSWER) {
        client_auth_input(c->login->auth, message_body(msg));
        return true;
    }
    if (wants == CLIENT_AUTH_NOTHING || c->link == NULL || c->link->phase != LINK_LOGIN) {
        client_end_text(c, "08P01", "unexpected password response");
        return false;
    }
    if (!client_auth_passes_on(client_auth_of(c), c->link, message_body(msg)))
        return false;
    (void)link_send(c->link, msg.p, msg.n);
    return true;
}

/* What a client may say before it is let in: answers to the server's requests, and goodbye. */
void client_login_input(struct client *c, const char *p, const char *end)
{
    size_t bytes;

    while (end - p >= PROTO_HEADER_BYTES && c->phase == CL_LOGIN) {
        bytes = message_bytes(p);
        if (p[0] == FE_TERMINATE) {
            client_end(c, NULL);
            return;
        }
        if (p[0] != FE_PASSWORD || !message_may_be(bytes) || bytes > PROTO_AUTH_MAX_BYTES + 1) {
            if (client_auth_wants(client_auth_of(c)) == CLIENT_AUTH_NOTHING)
                break; /* early: it waits for the session to begin */
            client_end_text(
                c, "08P01", "expected password response, got message type %d", (unsigned char)p[0]);
            return;
        }
        if ((size_t)(end - p) < bytes)
            break;
        if (!login_take_answer(c, slice_of(p, bytes)))
            return;
        p += bytes;
    }
    if (p == end || c->phase >= CL_CLOSING)
        return;
    if (c->phase == CL_ACTIVE) {
        feed_client(c, p, end); /* it did not wait for the end of the login */
        return;
    }
    if (buf_unread(&c->carry) + (size_t)(end - p) > PROTO_AUTH_MAX_BYTES) {
        client_end_text(c, "08P01", "too many bytes before the login is complete");
        return;
    }
    buf_reserve(&c->carry, LOGIN_CARRY_BYTES); /* it shall not move: see client_free_carry */
    buf_put(&c->carry, p, (size_t)(end - p));
    if (client_auth_wants(client_auth_of(c)) == CLIENT_AUTH_NOTHING)
        stream_pause(&c->stream); /* a level-triggered loop must not spin on what waits */
}

static void login_on_auth(void *owner, struct link *link, const char *msg, size_t n)
{
    if (!client_auth_on_link(client_auth_of(owner), link, msg, n))
        link_close(link);
}

/* The server has no room for now. When it has asked nothing of the client, nobody will notice that
 * another link is tried later. */
static bool login_on_refused(void *owner, struct link *link)
{
    struct client *c = owner;

    if (c->link != link || !link_holds_slot(link))
        return false;
    c->link = NULL;
    c->login->req.link = NULL;
    if (c->stats.wait_us < 0) /* that wait goes on */
        c->stats.wait_us += loop_now_us(c->ss->loop);
    client_do_acquire(c);
    return true;
}

static void login_on_done(void *owner, struct link *link)
{
    struct client *c = owner;

    (void)link;
    if (client_auth_is_over(client_auth_of(c)))
        client_login_welcome(c);
    else
        client_end_text(c, "08P01", "the server began a session before the login was over");
}

static void login_on_bytes(void *owner, struct link *link, const char *p, size_t n)
{
    struct client *c = owner;
    struct buf ok = {0};

    if (!client_is_its_reply(c, link) || client_auth_hold(client_auth_of(c), p, n))
        return;
    if (p[0] == BE_NOTICE && client_auth_is_over(client_auth_of(c))) {
        client_login_put_ok(c, &ok); /* what a server says besides comes behind it */
        client_send(c, &ok);
    }
    client_pass_reply(c, link, p, n);
}

/* The cached link was brought up to date, or would not be: then a fresh one is opened, and the
 * server itself tells the client what is wrong with its parameters. */
static void login_on_patched(void *owner, struct link *link)
{
    struct client *c = owner;

    (void)link;
    if (client_patch_finish(c) == 0) {
        client_login_welcome(c);
        return;
    }
    client_patch_free(c);
    client_drop_link(c, true);
    c->login->req.link = NULL;
    c->login->req.no_patch = true;
    client_do_acquire(c);
}

HOT void client_do_after_quiet(struct client *c)
{
    if (c->sends == CLIENT_HAS_SENT_ALL)
        client_leave(c);
    else if (c->ss->stop == SESSION_STOP_FAST || client_limits_must_leave(c))
        client_end_text(c, "57P01", "terminating connection due to administrator command");
    else if (c->is_parked)
        client_unpark(c);
}

static void login_on_lost(void *owner, struct link *link, const struct err *err, bool told)
{
    struct client *c = owner;
    bool in_message = link->body_left > 0;
    bool is_again = !told && login_again(c, link);
    bool is_seen_to = !is_again && client_auth_on_link_lost(client_auth_of(c), err);

    if (!told)
        sessions_suspect_node(c->ss, c->pool->cluster_node);
    if (is_again)
        return;
    client_lose_link(c);
    if (!told && !is_seen_to && !link_is_let_in(link) &&
        login_alone(c, c->ss->conf->login_without_server))
        return;
    if (!told)
        client_link_log_lost(c, err);
    if (is_seen_to)
        return;
    client_log_refusal(c, err);
    client_end(c, told || in_message ? NULL : err);
}

static const struct link_owner_ops login_link_ops = {
    .on_log = client_log_link,
    .on_auth = login_on_auth,
    .on_refused = login_on_refused,
    .on_login_done = login_on_done,
    .on_bytes = login_on_bytes,
    .on_quiet = login_on_patched,
    .on_settled = client_on_link_settled,
    .on_parameter = client_on_link_parameter,
    .on_tag = client_on_link_tag,
    .on_error = client_on_link_error,
    .on_drained = client_on_link_drained,
    .on_lost = login_on_lost,
};
