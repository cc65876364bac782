/* SPDX-License-Identifier: PostgreSQL
 * link_travel.c: an idle link goes to another worker: its descriptor, and its state as a message.
 * The link is taken off this worker's loop before the other one puts it on its own. */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "backend/pool.h"
#include "backend/row_alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "ipc/mailbox.h"
#include "ipc/rows.h"

#include "link_int.h"
#include "pool_int.h"

/* Fixed part of MAIL_LINK_OFFER. Behind it: user NUL database NUL, the cancel key, the start-up
 * parameters, the reported parameters, the settings made since, what it knows of prepared
 * statements. Both sides are the same program: no byte order, no version.
 */
struct link_mail {
    int32_t node;
    int32_t server_pid;
    uint32_t version;
    uint32_t asked_version;
    int64_t opened_us;
    int64_t auth_seen_us;
    uint64_t uses;
    uint64_t place; /* which database it leads to, see pool_place */
    uint32_t startup_len;
    uint32_t reported_len;
    uint32_t vars_len;
    uint32_t preps_len;
    uint32_t last_client;
    uint16_t user_len;
    uint16_t database_len;
    uint16_t key_len;
    uint8_t auth;
    uint8_t pool_auth;
    uint8_t reset; /* enum link_reset */
    uint8_t login_took;
    uint8_t reads;     /* enum link_reads */
    uint8_t unused[1]; /* no byte leaves that nobody wrote */
};

static size_t travel_size(const struct link *link)
{
    return sizeof(struct link_mail) + link->pool->user_len + link->pool->database_len + 2U +
           link->key_len + paramset_bytes(&link->startup).n + paramset_bytes(&link->reported).n +
           link->vars->len + prepset_bytes(&link->preps);
}

static char *travel_put(char *p, const void *from, size_t n)
{
    if (n > 0)
        memcpy(p, from, n);
    return p + n;
}

static size_t travel_encode(const struct link *link, char *body)
{
    const struct pool *pool = link->pool;
    struct link_mail m = {.node = pool->cluster_node,
        .server_pid = link->server_pid,
        .version = link->version,
        .asked_version = link->asked_version,
        .opened_us = link->opened_us,
        .login_took = link->login_took,
        .auth_seen_us = pool->auth_seen_us,
        .uses = link->uses,
        .last_client = link->last_client,
        .place = pool_place(pool),
        .startup_len = (uint32_t)paramset_bytes(&link->startup).n,
        .reported_len = (uint32_t)paramset_bytes(&link->reported).n,
        .vars_len = link->vars->len,
        .preps_len = (uint32_t)prepset_bytes(&link->preps),
        .user_len = pool->user_len,
        .database_len = pool->database_len,
        .key_len = link->key_len,
        .auth = link->auth,
        .pool_auth = pool->auth,
        .reset = link->reset,
        .reads = link->reads};
    char *p = travel_put(body, &m, sizeof m);
    struct buf preps = {0};

    p = travel_put(p, pool->names, (size_t)pool->user_len + pool->database_len + 2U);
    p = travel_put(p, link_key(link).p, link->key_len);
    p = travel_put(p, paramset_bytes(&link->startup).p, m.startup_len);
    p = travel_put(p, paramset_bytes(&link->reported).p, m.reported_len);
    p = travel_put(p, link->vars->data, link->vars->len);
    prepset_encode(&link->preps, &preps);
    p = travel_put(p, preps.data, preps.len);
    buf_free(&preps);
    return (size_t)(p - body);
}

bool link_is_bound(const struct link *link)
{
    return stream_is_tls(&link->stream) || travel_size(link) > MAILBOX_MAX_BYTES;
}

bool link_can_travel(const struct link *link)
{
    return !link->in_cancel && link->be->has_more != link && link->carry == NULL &&
           !link_is_bound(link);
}

struct travel {
    struct link *link;
    int to;
    size_t len;
    char body[MAILBOX_MAX_BYTES];
};

static bool travel_post(void *ctx)
{
    struct travel *t = ctx;
    struct backend *be = t->link->be;

    return be->post(be, t->to, MAIL_LINK_OFFER, t->body, t->len, stream_fd(&t->link->stream)) == 0;
}

bool link_give_away(struct link *link, int ordinal)
{
    struct backend *be = link->be;
    struct travel t;

    ASSERT(link->phase == LINK_IDLE);
    if (!link_can_travel(link))
        return false;
    t.link = link;
    t.to = ordinal;
    t.len = travel_encode(link, t.body);
    io_want(&link->stream.io, 0);
    if (!limits_move_link(be->shm, link->pool->cluster_node, &link->pool->limits, be->ordinal,
            ordinal, travel_post, &t)) {
        io_want(&link->stream.io, IO_READ);
        return false;
    }
    link->has_quota = false;
    link_close_silently(link);
    return true;
}

static void travel_paramset(struct backend *be, struct paramset *ps, const char *p, uint32_t n)
{
    paramset_set_bytes(ps, slice_of(p, n));
    paramset_share(ps, &be->paramsets);
}

static struct link *travel_build(
    struct backend *be, const struct link_mail *m, const char *names, struct pool *pool, int fd)
{
    const char *p = names + m->user_len + m->database_len + 2U;
    struct link *link = link_adopt(pool, fd);

    link->server_pid = m->server_pid;
    link->version = m->version;
    link->asked_version = m->asked_version;
    link->opened_us = m->opened_us;
    link->login_took = m->login_took & 0x7f;
    link->uses = m->uses;
    link->last_client = m->last_client;
    link->auth = m->auth;
    link->reset = m->reset;
    link->reads = m->reads & 1;
    /* Who sent it may not have read the settings yet that are new here; TLS does not travel. */
    link->is_retired =
        m->place != pool_place(pool) || backend_tls_is_due(be->conf, pool->cluster_node);
    link_set_key(link, slice_of(p, m->key_len));
    p += m->key_len;
    travel_paramset(be, &link->startup, p, m->startup_len);
    p += m->startup_len;
    travel_paramset(be, &link->reported, p, m->reported_len);
    p += m->reported_len;
    varset_unref(&link->vars);
    link->vars = varset_of_bytes(&be->varsets, p, m->vars_len);
    p += m->vars_len;
    if (!prepset_decode(&link->preps, slice_of(p, m->preps_len)))
        link->is_retired = true; /* nobody knows what is there */
    if (pool->auth == LINK_AUTH_UNKNOWN) {
        pool->auth = m->pool_auth;
        pool->auth_seen_us = m->auth_seen_us;
    }
    return link;
}

void backend_on_offer(struct backend *be, const void *body, size_t len, int fd)
{
    const char *names = (const char *)body + sizeof(struct link_mail);
    struct link_mail m;
    struct pool *pool;
    struct link *link;

    if (fd == -1)
        return;
    memcpy(&m, body, len < sizeof m ? len : sizeof m);
    if (len < sizeof m || len != sizeof m + m.user_len + m.database_len + 2U + m.key_len +
                                     m.startup_len + m.reported_len + m.vars_len + m.preps_len) {
        log_at_detail(LVL_ERROR, NULL, LOG_HINT_MISFIT,
            "a connection handed over by another worker is malformed: closed");
        close(fd);
        return;
    }
    pool = pool_attach(
        be, slice_of(names, m.user_len), slice_of(names + m.user_len + 1, m.database_len), m.node);
    link = travel_build(be, &m, names, pool, fd);
    pool_detach(pool);
    if (be->is_stopping || pool_was_retired(link))
        link_close(link);
    else
        link_enter_idle(link);
}
