/* SPDX-License-Identifier: PostgreSQL
 * link.c: life of a link: opening and lending. Its bytes are link_io.c's, its login link_login.c's,
 * its cleaning link_clean.c's, its end link_end.c's. */
#include "config.h"

#include "backend/link.h"

#include "backend/pool.h"
#include "backend/row_alloc.h"
#include "base/assert.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "wire/startup.h"

#include "link_int.h"

static void link_on_drained(struct stream *s)
{
    struct link *link = LIST_ENTRY(s, struct link, stream);

    if (link->owner != NULL && link->phase == LINK_LENT)
        link->ops->on_drained(link->owner, link);
}

static void link_on_closed(struct stream *s)
{
    struct link *link = LIST_ENTRY(s, struct link, stream);

    if (!link_tls_on_closed(link))
        link_free(link);
}

static const struct stream_ops link_stream_ops = {
    .on_readable = link_on_readable, .on_drained = link_on_drained, .on_closed = link_on_closed};

static void link_on_timer(struct timer *t)
{
    struct link *link = LIST_ENTRY(t, struct link, timer);

    if (link->phase == LINK_DIALING || link->phase == LINK_LOGIN) {
        link_fail_text(link, "08001", "login to node %d timed out", link->pool->cluster_node);
        return;
    }
    if (link->phase == LINK_IDLE) {
        link_clean_idle(link);
        return;
    }
    if (link->phase == LINK_CLEANING && link_clean_on_timer(link))
        return;
    if (link->phase == LINK_CLEANING)
        log_caused_detail(LVL_WARNING, NULL,
            "What a client left running there went on; pg_stat_activity of that server tells what "
            "it is.",
            "server process %d of node %d did not become idle in time: closing its "
            "connection",
            link->server_pid, link->pool->cluster_node);
    link_close(link);
}

static void link_keepalive(const struct conf *conf, int fd)
{
    if (conf->tcp_keepalives_idle_ms > 0 || conf->tcp_keepalives_interval_ms > 0 ||
        conf->tcp_keepalives_count > 0)
        net_set_keepalive(fd, conf->tcp_keepalives_idle_ms, conf->tcp_keepalives_interval_ms,
            conf->tcp_keepalives_count);
}

/* The startup packet waited in `carry` while the dial ran. */
static void link_on_dialed(int fd, const struct err *err, void *ctx)
{
    struct link *link = ctx;
    struct buf packet = {0};

    if (link->carry != NULL)
        packet = *link->carry;
    mem_free(link->carry);
    link->carry = NULL;
    link->opening->dial = NULL;
    if (fd == -1) {
        link_fail(link, err);
    } else {
        link_keepalive(link->be->conf, fd);
        stream_open(link->be->loop, &link->stream, fd, &link_stream_ops);
        link_tls_start(link, &packet);
    }
    buf_free(&packet);
}

static void link_dial(struct link *link)
{
    const struct conf *conf = link->be->conf;
    int node = link->pool->cluster_node;
    const char *host = "";
    int64_t limit_ms = 0;
    int port = 0;

    (void)pools_conf_address(conf, node, &host, &port, &limit_ms);
    link->opening->dial = dial_start(link->be->loop, host, port, limit_ms, link_on_dialed, link);
}

/* User and database are the pool's, the latter as the server knows it. */
static void link_encode_startup(
    struct buf *out, const struct pool *pool, const struct link_startup *st)
{
    struct slice database = st->database;
    struct startup_param extra[STARTUP_MAX_PARAMS + 1];
    uint32_t at = 0;
    unsigned n = 0;

    if (st->replication.n > 0)
        extra[n++] = (struct startup_param){slice_of_str("replication"), st->replication};
    while (n < STARTUP_MAX_PARAMS + 1 &&
           paramset_next(st->params, &at, &extra[n].name, &extra[n].value))
        n++;
    if (pool->set->dbname != NULL)
        database = slice_of_str(pool->set->dbname);
    startup_encode(out, st->version, pool_user(pool), database, extra, n);
}

/* What opened and adopted links have in common. */
static struct link *link_new(struct pool *pool)
{
    struct backend *be = pool->be;
    struct link *link = mem_alloc_zero(sizeof *link);

    link->be = be;
    link->pool = pool;
    link->epoch = ++be->next_epoch;
    link->id = link->epoch;
    stream_init_closed(&link->stream);
    link->tx_status = 'I';
    link->has_quota = true;
    link->vars = varset_empty(&be->varsets);
    link->row = row_alloc_take(be->row_alloc);
    expect_init(&link->expect);
    timer_init(&link->timer, link_on_timer);
    list_init(&link->pool_node);
    list_push_back(&be->links, &link->be_node);
    be->pool_ops->on_added(pool, link);
    return link;
}

struct link *link_open(
    struct pool *pool, const struct link_startup *st, void *owner, const struct link_owner_ops *ops)
{
    struct backend *be = pool->be;
    struct link *link = link_new(pool);

    link->owner = owner;
    link->ops = ops;
    link->phase = LINK_DIALING;
    link->opening = mem_alloc_zero(sizeof *link->opening);
    link->opening->stream_ops = &link_stream_ops;
    link->opening->redial = link_dial;
    link->version = st->version;
    link->asked_version = st->version;
    link->opened_us = loop_now_us(be->loop);
    paramset_copy(&link->startup, st->params);
    paramset_share(&link->startup, &pool->be->paramsets);
    link->carry = mem_alloc_zero(sizeof *link->carry);
    link_encode_startup(link->carry, pool, st);
    link_dial(link);
    link_row_update(link, ROWS_NO_ROW);
    return link;
}

struct link *link_adopt(struct pool *pool, int fd)
{
    struct link *link = link_new(pool);

    link->phase = LINK_CLEANING;
    stream_open(pool->be->loop, &link->stream, fd, &link_stream_ops);
    return link;
}

#define LOGIN_TICK_US  INT64_C(500000)
#define LOGIN_TOOK_MAX 127

void link_note_login(struct link *link, int64_t now_us)
{
    int64_t ticks = (now_us - link->opened_us + LOGIN_TICK_US - 1) / LOGIN_TICK_US;

    link->login_took = ticks > LOGIN_TOOK_MAX ? LOGIN_TOOK_MAX : (uint16_t)ticks & LOGIN_TOOK_MAX;
}

int64_t link_login_us(const struct link *link)
{
    if (link->login_took == LOGIN_TOOK_MAX)
        return INT64_MAX;
    return link->opened_us + link->login_took * LOGIN_TICK_US;
}

HOT void link_renew(struct link *link)
{
    link->epoch = ++link->be->next_epoch;
    if (link->loan.cancel_due)
        link_cancel_forget(link, false);
    link->loan = (struct link_loan){0};
    link_forget_failure(link);
    link->expect.holds = false;
    link->expect.is_held = false;
    link->expect.is_asked = false;
    link->resets_left = 0;
    link->resets_sent = 0;
    link->resets_done = 0;
    expect_drop_notes(&link->expect);
    link_resume(link);
}

HOT void link_lend(struct link *link, void *owner, const struct link_owner_ops *ops)
{
    ASSERT(link->phase == LINK_IDLE);
    link->phase = LINK_LENT;
    link->owner = owner;
    link->ops = ops;
    link_renew(link);
    link->uses++;
    timer_stop(link->be->loop, &link->timer);
}

bool link_must_replan(struct link *link, const struct varset *vars, uint32_t client)
{
    bool is_due = link_reads_otherwise(link, vars, client);

    if (is_due)
        link->reads = LINK_READS_ALIKE;
    else if (link->last_client != 0 && link->vars->reads != vars->reads)
        link->reads = LINK_READS_MIXED;
    return is_due;
}

void link_note_set(struct link *link, const struct varset *vars, struct slice local)
{
    if (link != NULL && (link->vars->reads != vars->reads || varset_may_read(local)))
        link->reads = LINK_READS_MIXED;
}
