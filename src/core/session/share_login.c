/* SPDX-License-Identifier: PostgreSQL
 * share_login.c: the login of a client whose pool is shared. Runs in: workers. Its start-up
 * parameters become settings, for links that are shared are opened without any; a link that has
 * them tells what the server makes of them, and that is what the client is greeted with. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/pools_conf.h"

#include "share_int.h"

static const struct paramset no_params;

void share_login_begin(struct client *c)
{
    struct client_login *login = c->login;
    const struct pool_settings *ps =
        pools_conf_find(c->ss->conf, login->startup.database, login->startup.user);
    struct share *s;

    if (ps->pool_mode == CONF_POOL_SESSION || login->startup.replication.n > 0)
        return;
    s = mem_alloc_zero(sizeof *s);
    if (!share_vars_of_startup(&c->ss->be.varsets, &login->params, &s->base)) {
        log_at(LVL_LOG,
            "user \"%.*s\" keeps a server connection: its start-up options cannot be SET",
            (int)login->startup.user.n, login->startup.user.p);
        mem_free(s);
        return;
    }
    s->vars.client = varset_ref(s->base);
    s->vars.link = varset_ref(s->base);
    s->mode = (uint8_t)ps->pool_mode;
    s->client = c;
    list_init(&s->homeless_node);
    s->version = login->startup.version;
    c->share = s;
    login->startup.version = PROTO_3_0;
    login->startup.params = &no_params;
    login->req.is_shared = true;
    login->req.vars = s->base;
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
    if (c->share->last_words != NULL)
        err = *c->share->last_words;
    else
        err_set(&err, "22023", "a start-up parameter is not accepted by the server");
    err.severity = ERR_FATAL;
    client_end(c, &err);
}

void share_login_done(struct client *c)
{
    struct share *s = c->share;

    s->phase = SHARE_ATTACHED;
    s->last_link = c->link->id;
    share_show_pins(c);
    share_detach(c);
}
