/* SPDX-License-Identifier: PostgreSQL
 * client_gate.c: a client's login (the module of that name) tells its session what to do: to say
 * something, to get a link, to end; which links it may have. Runs in: workers. Must never: lend a
 * used link to a client whose login is not over. */
#include "config.h"

#include "base/hot.h"
#include "base/log.h"
#include "wire/writer.h"

#include "sstate_int.h"

struct client_auth *client_auth_of(const struct client *c)
{
    return c->login == NULL ? NULL : c->login->auth;
}

HOT bool client_may_reuse(const struct client *c, const struct pool *pool)
{
    return c->phase < CL_CLOSING &&
           client_auth_may_reuse(&c->proof, client_auth_of(c), c->login == NULL, pool);
}

void client_entitle(const struct client *c, struct pool_request *req)
{
    req->may_reuse = client_may_reuse(c, req->pool);
    req->answers = (uint8_t)login_answers(&c->proof);
}

/* NegotiateProtocolVersion, when the link speaks an older minor than it was asked for, which says
 * nothing of the client where links are opened plainly, or options are unknown. It is the first
 * thing a server says. */
static void login_negotiate(struct client *c, struct buf *out)
{
    struct client_login *login = c->login;
    const struct link *link = c->link;
    uint8_t was = login->negotiation;

    login->negotiation = NEGOTIATION_OVER; /* whatever is said now */
    if (was == NEGOTIATION_OVER)
        return;
    if (link != NULL && link->phase != LINK_DIALING && link->version < login->startup.version)
        login->version = login->startup.version = link->version;
    else if (was == NEGOTIATION_SPARED)
        return;
    wire_put_negotiate(out, login->version, login->unknown, login->nunknown);
}

static bool gate_say(void *owner, struct buf *out, bool is_ok)
{
    struct client *c = owner;
    struct buf all = {0};

    if (is_ok && c->login->outcome != LOGIN_OPEN) {
        buf_free(out);
        return false;
    }
    if (out->len > 0) {
        login_negotiate(c, &all);
        buf_put(&all, out->data, out->len);
    }
    if (is_ok)
        c->login->outcome = LOGIN_LET_IN;
    buf_free(out);
    client_send(c, &all);
    return true;
}

static void gate_end(void *owner, const struct err *err)
{
    client_end(owner, err);
}

static void gate_drop_link(void *owner)
{
    client_drop_link(owner, false);
}

static void gate_acquire(void *owner)
{
    struct client *c = owner;

    c->ss->events->acquire(c);
}

static bool gate_follow(void *owner)
{
    return client_place_login(owner);
}

static void gate_use_pool(void *owner, struct pool *pool)
{
    struct client *c = owner;

    pool_detach(c->pool);
    c->pool = pool;
}

static void gate_refused(void *owner, const char *reason, const char *hint, const char *where)
{
    struct client *c = owner;
    struct client_log_scope scope;
    struct slice user = c->login->auth_user;
    char host[64];

    client_log_enter(&scope, c);
    client_host_text(c, host, sizeof host);
    log_caused_detail(LVL_LOG, reason, hint,
        "authentication of user \"%.*s\" failed%s: database \"%s\", host %s", (int)user.n, user.p,
        where, pool_database(c->pool).p, host);
    c->login->outcome = LOGIN_REFUSED;
    client_log_leave(&scope);
}

static void gate_passed(void *owner, const char *method, const char *where)
{
    struct client *c = owner;
    struct client_log_scope scope;
    struct slice user = c->login->auth_user;

    client_log_enter(&scope, c);
    log_at(LVL_LOG, "connection authenticated: user=%.*s method=%s%s", (int)user.n, user.p, method,
        where);
    client_log_leave(&scope);
}

static void gate_enter(void *owner, bool may_all)
{
    struct client *c = owner;

    c->ss->events->enter(c, may_all);
}

static const struct login_ops gate_ops = {
    .say = gate_say,
    .end = gate_end,
    .drop_link = gate_drop_link,
    .acquire = gate_acquire,
    .follow = gate_follow,
    .use_pool = gate_use_pool,
    .refused = gate_refused,
    .passed = gate_passed,
    .enter = gate_enter,
};

void client_gate_open(struct client *c)
{
    struct client_login *login = c->login;
    struct login_who who = {.ops = &gate_ops,
        .owner = c,
        .stream = &c->stream,
        .row = c->row,
        .user = login->auth_user,
        .startup = &login->startup,
        .req = &login->req,
        .link = &c->link,
        .proof = &c->proof,
        .console = client_is_alone(c) ? &login->console : NULL};

    login->auth = client_auth_new(c->ss->auth, &who);
    client_auth_start(login->auth);
}

/* AuthenticationOk, unless it was told already. */
void client_login_put_ok(struct client *c, struct buf *out)
{
    if (c->login->outcome != LOGIN_OPEN)
        return;
    login_negotiate(c, out);
    wire_put_auth(out, AUTH_OK, slice_of(NULL, 0));
    c->login->outcome = LOGIN_LET_IN;
}

void client_login_tell_ok(struct client *c)
{
    struct buf out = {0};

    client_login_put_ok(c, &out);
    client_send(c, &out);
}
