/* SPDX-License-Identifier: PostgreSQL
 * share_login.c: the login of a client whose pool is shared. Runs in: workers. Its start-up
 * parameters become settings, for links that are shared are opened without any; a link that has
 * them tells what the server makes of them, and that is what the client is greeted with. */
#include "config.h"

#include <string.h>

#include "auth/auth_book.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/pools_conf.h"

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
    struct paramset reported;
    int64_t seen_us;
    char *names; /* user NUL database NUL */
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

static struct share_greeting *greeting_find(const struct client *c)
{
    struct share_greeting *g = c->ss->greetings;
    const struct pool *pool = c->pool;
    int i;

    for (i = 0; g != NULL && i < SHARE_GREETINGS; i++, g++)
        if (g->base == c->share->base && g->node == pool->cluster_node &&
            g->names_len == names_len(pool) && memcmp(g->names, pool->names, g->names_len) == 0)
            return g;
    return NULL;
}

bool share_login_is_known(const struct client *c)
{
    const struct share_greeting *g = greeting_find(c);

    return g != NULL && loop_now_us(c->ss->loop) - g->seen_us < SHARE_GREETING_OLD_US;
}

const struct paramset *share_login_parameters(const struct client *c)
{
    const struct share_greeting *g = greeting_find(c);

    return g == NULL ? &no_params : &g->reported;
}

static void greeting_clear(struct share_greeting *g)
{
    varset_unref(&g->base);
    paramset_free(&g->reported);
    mem_free(g->names);
    g->names = NULL;
}

/* The oldest makes room. */
static void greeting_learn(struct client *c)
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
    g->base = varset_ref(c->share->base);
    paramset_copy(&g->reported, &c->link->reported);
    g->names_len = names_len(c->pool);
    g->names = mem_strndup(c->pool->names, g->names_len);
    g->node = c->pool->cluster_node;
    g->seen_us = loop_now_us(ss->loop);
}

void share_login_fini(struct sessions *ss)
{
    int i;

    for (i = 0; ss->greetings != NULL && i < SHARE_GREETINGS; i++)
        greeting_clear(&ss->greetings[i]);
    mem_free(ss->greetings);
    ss->greetings = NULL;
}

/* The server was told a password that the client alone knows: the link it opened is all there is.
 */
static bool must_stay(const struct client *c)
{
    const struct backend *be = &c->ss->be;

    return c->link->auth == LINK_AUTH_ASKED &&
           (be->book == NULL || auth_book_login(be->book, pool_user(c->pool)) == NULL);
}

void share_login_done(struct client *c)
{
    struct share *s = c->share;

    if (c->link == NULL) {
        s->phase = SHARE_DETACHED;
        share_turn_end(c);
        return;
    }
    s->phase = SHARE_ATTACHED;
    s->last_link = c->link->id;
    if (must_stay(c)) {
        CLIENT_LOG(c, LVL_LOG,
            "user \"%s\" keeps a server connection: its password is not known here, so no other "
            "could be opened (see pool_passwd and auth_query)",
            c->pool->names);
        s->pins = 1U << PIN_REASON_SESSION_MODE;
        share_show_pins(c);
        return;
    }
    greeting_learn(c);
    share_show_pins(c);
    share_detach(c);
    share_turn_end(c);
}
