/* SPDX-License-Identifier: PostgreSQL
 * exchange_login.c: the login of a client whose pool is shared. Runs in: workers. Its start-up
 * parameters become settings, for links that are shared are opened without any; a link that has
 * them tells what the server makes of them, and that is what the client is greeted with. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "auth/auth_book.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/pools_conf.h"

#include "exchange/exchange_mode_int.h"
#include "known/session_shared.h"
#include "lent/lent_int.h"
#include "sstate/phase_int.h"
#include "sstate/sstate_vars_int.h"

static const struct paramset no_params;

/* Clients of one application come with the same start-up parameters, one after the other. */
static bool base_of(struct sessions *ss, const struct paramset *params, struct varset **base)
{
    if (ss->last_base != NULL && paramset_eq(&ss->last_startup, params)) {
        *base = varset_ref(ss->last_base);
        return true;
    }
    if (!sstate_vars_of_startup(&ss->be.varsets, params, base))
        return false;
    exchange_login_forget(ss);
    paramset_copy(&ss->last_startup, params);
    ss->last_base = varset_ref(*base);
    return true;
}

void exchange_login_forget(struct sessions *ss)
{
    paramset_free(&ss->last_startup);
    if (ss->last_base != NULL)
        varset_unref(&ss->last_base);
}

bool exchange_login_new(
    struct client *c, const struct paramset *params, enum conf_pool_mode mode, uint32_t version)
{
    struct sstate *s = mem_alloc_zero(sizeof *s);

    if (!base_of(c->ss, params, &s->base)) {
        mem_free(s);
        return false;
    }
    s->vars.client = varset_ref(s->base);
    s->vars.link = varset_ref(s->base);
    s->mode = (uint8_t)mode;
    s->version = version;
    s->defaults_seen = c->ss->defaults_serial;
    c->sstate = s;
    c->kind = &c->ss->kinds->followed;
    errand_begin(c);
    return true;
}

/* Nobody looks at what it runs. A walsender without a database runs no statements. */
static void goes_unseen(struct client *c)
{
    struct slice how = c->login->startup.replication;

    if (c->ss->results != NULL && (how.n == 0 || slice_ieq_str(how, "database")))
        c->ss->results->unseen(c);
}

void exchange_login_begin(struct client *c)
{
    struct client_login *login = c->login;
    const struct pool_settings *ps =
        pools_conf_find(c->ss->conf, login->startup.database, login->startup.user);
    enum conf_pool_mode mode = ps->pool_mode;

    if (login->pool_mode != SSTATE_MODE_NONE)
        mode = (enum conf_pool_mode)login->pool_mode;
    if (login->startup.replication.n > 0 ||
        (mode == CONF_POOL_SESSION && c->ss->results == NULL && !sstate_is_followed(c))) {
        goes_unseen(c);
        return;
    }
    if (!exchange_login_new(c, &login->params, mode, login->startup.version)) {
        CLIENT_LOG(c, LVL_LOG,
            "user \"%.*s\" keeps a server connection: its start-up options cannot be SET",
            (int)login->startup.user.n, login->startup.user.p);
        goes_unseen(c);
        return;
    }
    login->startup.version = PROTO_3_0;
    login->startup.params = &no_params;
    login->req.is_shared = true;
    login->req.vars = c->sstate->base;
    greeting_learn_trust(c->ss->greetings, c->pool);
}

bool exchange_login_granted(struct client *c)
{
    struct sstate *s = c->sstate;
    struct link *link = c->link;
    struct feed_run run = {0};
    struct buf sql = {0};

    link->ops = &exchange_link_ops;
    phase_goto(c, PHASE_SYNCING);
    if (link->vars == s->base)
        return true;
    lent_put_encoding(c, &run, link->vars, s->base);
    (void)varset_diff(link->vars, s->base, &sql);
    link_note_set(link, s->base, slice_of_str(""));
    varset_assign(&link->vars, s->base);
    if (sql.len > 0)
        lent_put_own_query(c, &run, buf_slice(&sql));
    buf_free(&sql);
    if (run.out.len == 0)
        return true;
    c->target = link;
    feed_flush(c, &run);
    return false;
}

void exchange_login_synced(struct client *c)
{
    struct link *link = c->link;
    struct err err = {0};

    if (!link_own_failed(link)) {
        client_login_welcome(c);
        return;
    }
    if (c->sstate->errand->last_words != NULL)
        err = *c->sstate->errand->last_words;
    else {
        err_set(&err, "22023", "a start-up parameter is not accepted by the server");
        err_hint(&err, "ignore_startup_parameters names those that are left out.");
    }
    err.severity = ERR_FATAL;
    client_login_tell_ok(c); /* the server finds fault behind it */
    client_end(c, &err);
}

bool exchange_login_needs_no_link(struct client *c)
{
    return c->kind->pool_mode(c) != CONF_POOL_SESSION && c->login->req.may_reuse &&
           greeting_find(c->ss->greetings, greeting_of(c), false);
}

bool exchange_login_waits_for_none(struct client *c)
{
    struct pool_request *req = &c->login->req;

    if (c->kind->pool_mode(c) == CONF_POOL_SESSION || !req->may_reuse ||
        req->reason == WAIT_REASON_CONNECTING ||
        !greeting_find(c->ss->greetings, greeting_of(c), true))
        return false;
    pool_request_cancel(req);
    if (req->pool->role_due)
        pool_role_ask_everywhere(req->pool);
    return true;
}

static void alone_put(struct paramset *params, const char *name, struct slice value)
{
    (void)paramset_set(params, slice_of_str(name), value);
}

/* The version that some server was seen to have, as drivers expect to be told one; else ours. */
static void alone_put_version(const struct view *view, struct paramset *params)
{
    char text[32] = PACKAGE_VERSION;
    int i;

    for (i = 0; i < view->nnodes; i++) {
        uint32_t v = view->node[i].server_version;

        if (v >= 100000)
            snprintf(text, sizeof text, "%u.%u", v / 10000, v % 10000);
        else if (v > 0)
            snprintf(text, sizeof text, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
    }
    alone_put(params, "server_version", slice_of_str(text));
}

/* What a client is greeted with when nobody can say what the servers' settings are: how our own
 * answers are to be read. A link corrects it later. */
static void alone_greet(struct client *c)
{
    static const char *const fixed[][2] = {{"server_encoding", "UTF8"},
        {"standard_conforming_strings", "on"}, {"integer_datetimes", "on"},
        {"DateStyle", "ISO, MDY"}, {"IntervalStyle", "postgres"}, {"TimeZone", "UTC"},
        {"client_encoding", "UTF8"}, {"application_name", ""}};
    struct paramset params = {0};
    struct slice wanted;
    size_t i;

    alone_put_version(&c->ss->view, &params);
    for (i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        wanted = paramset_get(&c->login->params, slice_of_str(fixed[i][0]));
        alone_put(
            &params, fixed[i][0], wanted.p != NULL && i >= 3 ? wanted : slice_of_str(fixed[i][1]));
    }
    alone_put(&params, "session_authorization", pool_user(c->pool));
    alone_put(&params, "is_superuser", slice_of_str(pool_is_superuser(c->pool) ? "on" : "off"));
    greeting_make_up(c->ss->greetings, greeting_of(c), &params);
    paramset_free(&params);
}

bool exchange_login_follow(struct client *c)
{
    return exchange_login_new(c, &c->login->params, CONF_POOL_SESSION, c->login->startup.version);
}

bool exchange_login_alone(struct client *c)
{
    struct client_login *login = c->login;

    if (login->startup.replication.n > 0)
        return false;
    if (!c->kind->follow(c))
        return false;
    c->sstate->parameters = PARAMETERS_UNKNOWN;
    if (!greeting_find(c->ss->greetings, greeting_of(c), true))
        alone_greet(c);
    return true;
}

bool exchange_login_is_relayed(const struct client *c)
{
    const struct backend *be = &c->ss->be;

    return c->link->auth == LINK_AUTH_ASKED &&
           (be->book == NULL || auth_book_login(be->book, pool_book_name(c->pool)) == NULL);
}

/* Once an hour for each user and database: nothing changes from one login to the next. */
static void tell_kept_for_login(struct client *c)
{
    size_t n = (size_t)c->pool->user_len + 1 + c->pool->database_len;
    bool is_due = session_tells_again(
        c->ss->shared, slice_of(c->pool->names, n), backend_wall_us(&c->ss->be));

    CLIENT_LOG(c, is_due ? LVL_LOG : LVL_DEBUG1,
        "user \"%s\" keeps a server connection: its password is not known here, so no other "
        "could be opened (see pool_passwd and auth_query); told once an hour",
        c->pool->names);
}

void exchange_login_done(struct client *c)
{
    struct sstate *s = c->sstate;

    if (c->link == NULL) {
        s->defaults_seen = greeting_serial(c->ss->greetings, greeting_of(c));
        phase_goto(c, PHASE_DETACHED);
        errand_end(c);
        return;
    }
    phase_goto(c, PHASE_ATTACHED);
    s->last_link = c->link->id;
    lent_kept_note(c, c->link);
    s->kept_uses = 0;
    if (exchange_login_is_relayed(c) && !lent_keeps(s)) {
        tell_kept_for_login(c);
        s->pins = 1U << PIN_REASON_SESSION_MODE;
        leg_show_pins(c);
        return;
    }
    if (!exchange_login_is_relayed(c))
        greeting_learn(c->ss->greetings, greeting_of(c), &c->link->reported);
    s->defaults_seen = c->ss->defaults_serial;
    leg_show_pins(c);
    leg_detach(c);
    errand_end(c);
}
