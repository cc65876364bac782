/* SPDX-License-Identifier: PostgreSQL
 * client_above.c: what a machine above the session sees of a client (session/client.h). Runs in:
 * workers. */
#include "config.h"

#include "config/conf_param.h"

#include "client_int.h"

void client_serve(struct client *c, struct native *n)
{
    client_rare(c)->native = n;
    c->kind = &c->ss->kinds->native;
}

void client_serve_no_more(struct client *c)
{
    c->rare->native = NULL;
    c->kind = &c->ss->kinds->relayed;
    c->target = c->link;
    if (c->link == NULL)
        return;
    c->link->owner = c;
    c->link->ops = &client_link_ops;
    c->link->loan.tells = LINK_TELLS_HIS;
}

struct native *client_native(const struct client *c)
{
    return c->rare == NULL ? NULL : c->rare->native;
}

struct sessions *client_sessions(const struct client *c)
{
    return c->ss;
}

bool client_is_active(const struct client *c)
{
    return c->phase == CL_ACTIVE;
}

bool client_is_leaving(const struct client *c)
{
    return c->sends == CLIENT_HAS_SENT_ALL || c->ss->stop == SESSION_STOP_FAST;
}

struct link *client_link(const struct client *c)
{
    return c->link;
}

struct pool *client_pool(const struct client *c)
{
    return c->pool;
}

const struct paramset *client_startup_params(const struct client *c)
{
    return &c->login->params;
}

const struct conf_session *client_conf(const struct client *c)
{
    return conf_session_of(c->ss->gen, client_override(c));
}

int32_t client_row_index(const struct client *c)
{
    return c->row_index;
}

void client_target(struct client *c, struct link *link)
{
    c->target = link;
}

void client_untarget(struct client *c, const struct link *link)
{
    if (c->target == link)
        c->target = c->link;
}

void client_lose_link(struct client *c)
{
    c->link = NULL;
    c->target = NULL;
}

void client_pause(struct client *c)
{
    stream_pause(&c->stream);
}

void client_resume(struct client *c)
{
    stream_resume(&c->stream);
}

void client_park(struct client *c, struct slice in)
{
    buf_put(&c->carry, in.p, in.n);
    c->is_parked = true;
}

bool client_is_parked(const struct client *c)
{
    return c->is_parked;
}

void client_row_held(struct client *c, enum wait_reason reason)
{
    if (c->row == NULL)
        return;
    shm_write_begin(&c->row->seq);
    c->row->state = CLIENT_STATE_WAITING;
    c->row->wait_reason = (uint8_t)reason;
    c->row->state_since_us = backend_wall_us(&c->ss->be);
    shm_write_end(&c->row->seq);
}
