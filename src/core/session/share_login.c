/* SPDX-License-Identifier: PostgreSQL
 * share_login.c: the login of a client whose pool is shared. Runs in: workers. Its start-up
 * parameters become settings, for links that are shared are opened without any; a link that has
 * them tells what the server makes of them, and that is what the client is greeted with. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "auth/auth_book.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/pools_conf.h"
#include "wire/writer.h"

#include "share_int.h"

static const struct paramset no_params;

bool share_new(
    struct client *c, const struct paramset *params, enum conf_pool_mode mode, uint32_t version)
{
    struct share *s = mem_alloc_zero(sizeof *s);

    if (!share_vars_of_startup(&c->ss->be.varsets, params, &s->base)) {
        mem_free(s);
        return false;
    }
    s->vars.client = varset_ref(s->base);
    s->vars.link = varset_ref(s->base);
    s->mode = (uint8_t)mode;
    s->version = version;
    s->defaults_seen = c->ss->defaults_serial;
    c->share = s;
    share_turn_begin(c);
    return true;
}

void share_login_begin(struct client *c)
{
    struct client_login *login = c->login;
    const struct pool_settings *ps =
        pools_conf_find(c->ss->conf, login->startup.database, login->startup.user);
    enum conf_pool_mode mode = ps->pool_mode;

    if (login->pool_mode != SHARE_MODE_NONE)
        mode = (enum conf_pool_mode)login->pool_mode;
    if (mode == CONF_POOL_SESSION || login->startup.replication.n > 0)
        return;
    if (!share_new(c, &login->params, mode, login->startup.version)) {
        CLIENT_LOG(c, LVL_LOG,
            "user \"%.*s\" keeps a server connection: its start-up options cannot be SET",
            (int)login->startup.user.n, login->startup.user.p);
        return;
    }
    login->startup.version = PROTO_3_0;
    login->startup.params = &no_params;
    login->req.is_shared = true;
    login->req.vars = c->share->base;
}

bool share_login_granted(struct client *c)
{
    struct share *s = c->share;
    struct link *link = c->link;
    struct feed_run run = {0};
    struct buf sql = {0};

    link->ops = &share_link_ops;
    s->phase = SHARE_SYNCING;
    if (link->vars == s->base)
        return true;
    share_put_encoding(c, &run, link->vars, s->base);
    (void)varset_diff(link->vars, s->base, &sql);
    varset_assign(&link->vars, s->base);
    if (sql.len > 0)
        share_put_own_query(c, &run, buf_slice(&sql));
    buf_free(&sql);
    if (run.out.len == 0)
        return true;
    c->target = link;
    feed_flush(c, &run);
    return false;
}

void share_login_synced(struct client *c)
{
    struct link *link = c->link;
    struct err err;

    if (!link->own_failed) {
        client_login_welcome(c);
        return;
    }
    err_clear(&err);
    if (c->share->turn->last_words != NULL)
        err = *c->share->turn->last_words;
    else
        err_set(&err, "22023", "a start-up parameter is not accepted by the server");
    err.severity = ERR_FATAL;
    client_login_tell_ok(c); /* the server finds fault behind it */
    client_end(c, &err);
}

/* What a server said to clients with these start-up parameters. */
struct share_greeting {
    struct varset *base;
    struct varset *plain; /* base without application_name */
    struct paramset reported;
    int64_t seen_us;
    uint16_t serial; /* of sessions.defaults_serial */
    char *names;     /* user NUL database NUL */
    size_t names_len;
    int node;
};

/* Kinds of clients that are remembered, and for how long: settings of the server may change. */
#define SHARE_GREETINGS       64
#define SHARE_GREETING_OLD_US 30000000

static size_t names_len(const struct pool *pool)
{
    return (size_t)pool->user_len + pool->database_len + 2;
}

static bool is_of_pool(const struct share_greeting *g, const struct pool *pool)
{
    return g->base != NULL && g->node == pool->cluster_node && g->names_len == names_len(pool) &&
           memcmp(g->names, pool->names, g->names_len) == 0;
}

static struct share_greeting *greeting_find(const struct client *c)
{
    struct share_greeting *g = c->ss->greetings;
    int i;

    for (i = 0; g != NULL && i < SHARE_GREETINGS; i++, g++)
        if (g->base == c->share->base && is_of_pool(g, c->pool))
            return g;
    return NULL;
}

static bool greeting_is_fresh(const struct client *c, const struct share_greeting *g)
{
    return loop_now_us(c->ss->loop) - g->seen_us < SHARE_GREETING_OLD_US;
}

static struct varset *without_application(struct varset *vars)
{
    struct varset *plain = varset_ref(vars);

    varset_drop(&plain, slice_of_str("application_name"));
    return plain;
}

const struct paramset *share_login_parameters(const struct client *c)
{
    const struct share_greeting *g = greeting_find(c);

    return g == NULL ? &no_params : &g->reported;
}

static void greeting_clear(struct share_greeting *g)
{
    varset_unref(&g->base);
    varset_unref(&g->plain);
    paramset_free(&g->reported);
    mem_free(g->names);
    g->names = NULL;
}

/* The oldest makes room. */
static void greeting_keep(struct client *c, const struct paramset *reported, int64_t seen_us)
{
    struct sessions *ss = c->ss;
    struct share_greeting *g = greeting_find(c);
    int i;

    if (ss->greetings == NULL)
        ss->greetings = mem_alloc_zero(SHARE_GREETINGS * sizeof *g);
    if (g == NULL) {
        g = ss->greetings;
        for (i = 1; i < SHARE_GREETINGS; i++)
            if (ss->greetings[i].seen_us < g->seen_us)
                g = &ss->greetings[i];
    }
    greeting_clear(g);
    g->serial = ss->defaults_serial;
    g->base = varset_ref(c->share->base);
    g->plain = without_application(g->base);
    paramset_copy(&g->reported, reported);
    g->names_len = names_len(c->pool);
    g->names = mem_strndup(c->pool->names, g->names_len);
    g->node = c->pool->cluster_node;
    g->seen_us = seen_us;
}

/* ---- another application_name ---- */

/* What the server makes of such a name is the name. Others it changes. */
static bool is_plain_application(struct slice name)
{
    size_t i;

    if (name.p == NULL || name.n >= ROWS_NAME_BYTES)
        return false;
    for (i = 0; i < name.n; i++)
        if (name.p[i] < 32 || name.p[i] > 126)
            return false;
    return true;
}

static const struct share_greeting *greeting_find_like(const struct client *c)
{
    const struct share_greeting *g = c->ss->greetings;
    struct varset *plain = without_application(c->share->base);
    const struct share_greeting *found = NULL;
    int i;

    for (i = 0; g != NULL && i < SHARE_GREETINGS && found == NULL; i++, g++)
        if (g->plain == plain && is_of_pool(g, c->pool) && greeting_is_fresh(c, g))
            found = g;
    varset_unref(&plain);
    return found;
}

/* Clients whose names differ one by one are common (a process number in it): what a server said to
 * one of them it would say to another, but for the name. */
static const struct share_greeting *greeting_derive(struct client *c)
{
    struct slice name = paramset_get(&c->login->params, slice_of_str("application_name"));
    const struct share_greeting *like = is_plain_application(name) ? greeting_find_like(c) : NULL;
    struct paramset reported = {0};
    struct share_greeting *g;
    int64_t seen_us;
    uint16_t serial;

    if (like == NULL)
        return NULL;
    seen_us = like->seen_us;
    serial = like->serial;
    paramset_copy(&reported, &like->reported);
    (void)paramset_set(&reported, slice_of_str("application_name"), name);
    greeting_keep(c, &reported, seen_us);
    paramset_free(&reported);
    g = greeting_find(c);
    if (g != NULL)
        g->serial = serial;
    return g;
}

bool share_login_needs_no_link(struct client *c)
{
    const struct share_greeting *g;

    if (c->share == NULL || !c->login->req.may_reuse)
        return false;
    g = greeting_find(c);
    if (g == NULL || !greeting_is_fresh(c, g))
        g = greeting_derive(c);
    return g != NULL;
}

bool share_login_waits_for_none(struct client *c)
{
    struct pool_request *req = &c->login->req;

    if (!req->pool->role_due || req->reason == WAIT_REASON_CONNECTING ||
        !share_login_needs_no_link(c))
        return false;
    pool_request_cancel(req);
    pool_role_ask_everywhere(req->pool);
    return true;
}

static uint16_t greeting_serial(const struct client *c)
{
    const struct share_greeting *g = greeting_find(c);

    return g == NULL ? c->ss->defaults_serial : g->serial;
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
    alone_put(&params, "is_superuser", slice_of_str(c->pool->is_superuser ? "on" : "off"));
    greeting_keep(c, &params, loop_now_us(c->ss->loop) - SHARE_GREETING_OLD_US);
    paramset_free(&params);
}

bool share_login_alone(struct client *c)
{
    struct client_login *login = c->login;

    if (login->startup.replication.n > 0)
        return false;
    if (c->share == NULL) {
        if (!share_new(c, &login->params, CONF_POOL_SESSION, login->startup.version))
            return false;
        c->share->pins = ROWS_PIN(PIN_REASON_SESSION_MODE); /* the link that it gets is kept */
    }
    c->share->greeted_alone = true;
    if (greeting_find(c) == NULL)
        alone_greet(c);
    return true;
}

void share_login_correct(struct client *c, const struct link *link)
{
    struct buf out = {0};
    struct slice name;
    struct slice value;
    uint32_t at = 0;

    c->share->greeted_alone = false;
    while (paramset_next(&link->reported, &at, &name, &value)) {
        wire_put_parameter_status(&out, name, value);
        (void)paramset_set(&c->share->turn->told, name, value);
    }
    c->share->owes_parameters = true; /* the settings are still those of who had it before */
    client_send(c, &out);
}

/* Reported under its own name, but changed by another setting, or another user. */
static bool is_of_user(struct slice name)
{
    return slice_ieq_str(name, "is_superuser") || slice_ieq_str(name, "session_authorization");
}

bool share_login_is_set(const struct varset *vars, struct slice name)
{
    char folded[64];
    size_t i;

    if (name.n > sizeof folded)
        return false;
    for (i = 0; i < name.n; i++)
        folded[i] = (char)tolower((unsigned char)name.p[i]);
    return varset_get(vars, slice_of(folded, name.n)).p != NULL;
}

/* What the link reports of settings that nobody has SET: when that is not what others of its pool
 * have reported, a server was reloaded, and all clients have to be told. */
static void look_at_defaults(struct client *c, struct link *link)
{
    struct paramset *defaults = &link->pool->defaults;
    struct slice name;
    struct slice value;
    struct slice before;
    bool changed = false;
    uint32_t at = 0;

    link->defaults_known = true;
    while (paramset_next(&link->reported, &at, &name, &value)) {
        before = paramset_get(defaults, name);
        if (is_of_user(name) || share_login_is_set(link->vars, name) ||
            (before.p != NULL && slice_eq(before, value)))
            continue;
        changed = changed || before.p != NULL;
        (void)paramset_set(defaults, name, value);
    }
    if (changed)
        c->ss->defaults_serial++;
}

bool share_login_is_news(const struct client *c, struct slice name, struct slice value)
{
    struct slice before = paramset_get(&c->pool->defaults, name);

    return before.p != NULL && !slice_eq(before, value) && !is_of_user(name);
}

HOT void share_login_look(struct client *c, struct link *link)
{
    struct share *s = c->share;
    struct slice name;
    struct slice value;
    uint32_t at = 0;
    bool is_late = false; /* it has not heard of the reload itself */

    if (!link->defaults_known)
        look_at_defaults(c, link);
    if (s->defaults_seen == c->ss->defaults_serial)
        return;
    while (paramset_next(&link->reported, &at, &name, &value)) {
        if (is_of_user(name) || share_login_is_set(s->vars.client, name))
            continue;
        share_remember_told(s, name, slice_of("", 0));
        is_late = is_late ||
                  (!share_login_is_set(link->vars, name) && share_login_is_news(c, name, value));
    }
    if (!is_late)
        s->defaults_seen = c->ss->defaults_serial;
    s->owes_parameters = true;
}

void share_login_fini(struct sessions *ss)
{
    int i;

    for (i = 0; ss->greetings != NULL && i < SHARE_GREETINGS; i++)
        greeting_clear(&ss->greetings[i]);
    mem_free(ss->greetings);
    ss->greetings = NULL;
}

bool share_login_is_relayed(const struct client *c)
{
    const struct backend *be = &c->ss->be;

    return c->link->auth == LINK_AUTH_ASKED &&
           (be->book == NULL || auth_book_login(be->book, pool_book_name(c->pool)) == NULL);
}

void share_login_done(struct client *c)
{
    struct share *s = c->share;

    if (c->link == NULL) {
        s->defaults_seen = greeting_serial(c);
        s->phase = SHARE_DETACHED;
        share_turn_end(c);
        return;
    }
    s->phase = SHARE_ATTACHED;
    s->last_link = c->link->id;
    if (share_login_is_relayed(c)) {
        CLIENT_LOG(c, LVL_LOG,
            "user \"%s\" keeps a server connection: its password is not known here, so no other "
            "could be opened (see pool_passwd and auth_query)",
            c->pool->names);
        s->pins = 1U << PIN_REASON_SESSION_MODE;
        share_show_pins(c);
        return;
    }
    greeting_keep(c, &c->link->reported, loop_now_us(c->ss->loop));
    s->defaults_seen = c->ss->defaults_serial;
    share_show_pins(c);
    share_detach(c);
    share_turn_end(c);
}
