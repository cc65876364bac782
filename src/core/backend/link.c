/* SPDX-License-Identifier: PostgreSQL
 * link.c: life of a link: opening, lending, closing. Its bytes are link_io.c's, its login
 * link_login.c's, its cleaning link_clean.c's. */
#include "config.h"

#include "backend/link.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/pool.h"
#include "backend/row_alloc.h"
#include "base/assert.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/rows.h"
#include "net/tls.h"
#include "wire/startup.h"

#include "link_int.h"

static void link_free(struct link *link)
{
    if (link->opening != NULL)
        buf_free(&link->opening->said);
    mem_free(link->opening);
    mem_free(link);
}

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

const struct stream_ops *link_default_ops(void)
{
    return &link_stream_ops;
}

static void link_on_timer(struct timer *t)
{
    struct link *link = LIST_ENTRY(t, struct link, timer);

    if (link->phase == LINK_DIALING || link->phase == LINK_LOGIN) {
        link_fail_text(link, "08001", "login to node %d timed out", link->pool->cluster_node);
        return;
    }
    if (link->phase == LINK_IDLE) {
        link_reset_idle(link);
        return;
    }
    if (link->phase == LINK_CLEANING && link_clean_on_timer(link))
        return;
    if (link->phase == LINK_CLEANING)
        log_caused(LVL_WARNING,
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

void link_dial(struct link *link)
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

void link_set_key(struct link *link, struct slice key)
{
    struct slice old = link_key(link);

    if (old.n > 0)
        mem_wipe((char *)(uintptr_t)old.p, old.n);
    if (old.n > sizeof link->key.here)
        mem_free(link->key.heap);
    link->key_len = (uint16_t)key.n;
    if (key.n > sizeof link->key.here)
        link->key.heap = mem_strndup(key.p, key.n);
    else if (key.n > 0)
        memcpy(link->key.here, key.p, key.n);
}

HOT int link_send(struct link *link, const char *p, size_t n)
{
    if (link->reset != LINK_RESET_NONE)
        return link_reset_send(link, p, n);
    return stream_send(&link->stream, p, n);
}

HOT void link_lend(struct link *link, void *owner, const struct link_owner_ops *ops)
{
    ASSERT(link->phase == LINK_IDLE);
    link->phase = LINK_LENT;
    link->owner = owner;
    link->ops = ops;
    link->epoch = ++link->be->next_epoch;
    link->error_told = false;
    link->own_failed = false;
    link->cancel_due = false;
    link->watch_tags = false;
    link->hold_ready = false;
    link->expect.is_held = false;
    link->expect.is_asked = false;
    link->see_tags = false;
    link->see_columns = false;
    link->settle_early = false;
    link->capture = false;
    link->hide_parameters = false;
    link->has_news = false;
    link->reset_may_wait = false;
    link->resets_left = 0;
    link->resets_sent = 0;
    link->resets_done = 0;
    expect_drop_notes(&link->expect);
    link->uses++;
    timer_stop(link->be->loop, &link->timer);
}

void link_release(struct link *link, bool boundary)
{
    link->owner = NULL;
    link->ops = NULL;
    link->epoch = ++link->be->next_epoch;
    if (link->phase == LINK_CLOSED)
        return;
    link_clean_start(link, boundary);
}

/* Between two transactions of clients that share it a link needs no cleaning. */
static bool link_may_stay(const struct link *link)
{
    return link->phase == LINK_LENT && link->tx_status == 'I' && expect_is_quiet(&link->expect) &&
           !expect_is_open(&link->expect) && link->body_left == 0 && !link->must_clean &&
           !link->in_cancel && !link->is_private && !link->own_failed && !link->error_told &&
           !stream_has_failed(&link->stream) && !link->be->is_stopping &&
           link->be->conf->connection_cache;
}

HOT void link_return(struct link *link)
{
    if (!link_may_stay(link)) {
        link_release(link, true);
        return;
    }
    link->owner = NULL;
    link->ops = NULL;
    link->epoch = ++link->be->next_epoch;
    link_resume(link);
    link_enter_idle(link);
}

/* Gives back everything but the memory, which libuv may still need. */
void link_close(struct link *link)
{
    struct backend *be = link->be;

    if (link->phase == LINK_CLOSED)
        return;
    if (link->opening != NULL)
        dial_cancel(&link->opening->dial);
    timer_stop(be->loop, &link->timer);
    if (link->phase == LINK_IDLE && stream_fd(&link->stream) != -1 && !link->is_travelling)
        (void)stream_send(&link->stream, "X\0\0\0\4", 5);
    list_remove(&link->be_node);
    row_alloc_give(be->row_alloc, link->row);
    be->pool_ops->on_gone(link->pool, link);
    link->pool = NULL;
    link->phase = LINK_CLOSED;
    link->owner = NULL;
    expect_fini(&link->expect);
    link_carry_free(link);
    paramset_free(&link->reported);
    paramset_free(&link->startup);
    varset_unref(&link->vars);
    prepset_clear(&link->preps);
    link_answer_free(link);
    link_set_key(link, slice_of("", 0));
    if (link_tls_close(link))
        return;
    if (stream_fd(&link->stream) != -1)
        stream_close(&link->stream);
    else
        link_free(link);
}

void link_log_put(const struct log_place *place, const struct link *link, enum log_level level,
    const char *fmt, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (link->owner != NULL && link->ops->on_log != NULL)
        link->ops->on_log(link->owner, place, level, text);
    else
        log_put_limited(place, level, NULL, NULL, "%s", text);
}

void link_fail(struct link *link, const struct err *err)
{
    void *owner = link->owner;
    const struct link_owner_ops *ops = link->ops;
    bool told = link->error_told;

    if (link->phase == LINK_CLOSED)
        return;
    if (owner == NULL) {
        link_close(link);
        return;
    }
    link->owner = NULL;
    expect_on_end(&link->expect);
    ops->on_lost(owner, link, err, told);
    link_close(link);
}

void link_fail_text(struct link *link, const char *sqlstate, const char *fmt, ...)
{
    struct err err;
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    err_clear(&err);
    err_set_fatal(&err, sqlstate, "%s", text);
    link_fail(link, &err);
}

static enum link_state link_state_of_phase(const struct link *link)
{
    switch ((enum link_phase)link->phase) {
    case LINK_DIALING:
    case LINK_LOGIN:
        return LINK_STATE_CONNECTING;
    case LINK_LENT:
        return LINK_STATE_LENT;
    case LINK_CLEANING:
        return LINK_STATE_CLEANING;
    case LINK_IDLE:
        return LINK_STATE_IDLE;
    case LINK_CLOSED:
        break;
    }
    return LINK_STATE_FREE;
}

void link_row_update(struct link *link, int client_row)
{
    struct link_row *row = link_row_at(link->be->link_rows, link->row);
    int64_t now = backend_wall_us(link->be);

    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    if (row->state == LINK_STATE_FREE) {
        row_alloc_name(link->be->row_alloc, link->row, pool_user(link->pool),
            pool_database(link->pool), slice_of("", 0));
        row->worker = (uint16_t)link->be->ordinal;
        row->created_us = now;
        row->released_us = 0;
        row->has_statement = false;
    }
    row->state = (uint8_t)link_state_of_phase(link);
    row->tx_status = link->tx_status;
    row->is_tls = stream_is_secured(&link->stream);
    row->tls_kernel = (uint8_t)stream_tls_kernel(&link->stream) & 3;
    row->server_pid = link->server_pid;
    row->node = (int16_t)link->pool->cluster_node;
    row->uses = link->uses;
    row->protocol = link->version;
    if (link->phase == LINK_LENT && client_row != ROWS_NO_ROW)
        row->acquired_us = now;
    else if (link->phase == LINK_IDLE)
        row->released_us = now;
    row->client_row = client_row;
    shm_write_end(&row->seq);
}

/* Whose server it is stands in the row. */
static bool row_is_known(const struct link_row *row)
{
    return row != NULL && row->state != LINK_STATE_FREE && row->state != LINK_STATE_CONNECTING;
}

HOT void link_row_note_lent(struct link *link, int client_row)
{
    struct link_row *row = link_row_at(link->be->link_rows, link->row);

    if (!row_is_known(row)) {
        link_row_update(link, client_row);
        return;
    }
    shm_write_begin(&row->seq);
    row->state = LINK_STATE_LENT;
    row->uses = link->uses;
    row->acquired_us = backend_wall_us(link->be);
    row->client_row = client_row;
    shm_write_end(&row->seq);
}

HOT void link_row_note_free(struct link *link)
{
    struct link_row *row = link_row_at(link->be->link_rows, link->row);

    if (!row_is_known(row)) {
        link_row_update(link, ROWS_NO_ROW);
        return;
    }
    shm_write_begin(&row->seq);
    row->state = LINK_STATE_IDLE;
    row->tx_status = link->tx_status;
    row->released_us = backend_wall_us(link->be);
    row->client_row = ROWS_NO_ROW;
    shm_write_end(&row->seq);
}

HOT void link_row_note_begun(struct link *link, int client_row, struct slice sql)
{
    struct link_row *row = link_row_at(link->be->link_rows, link->row);

    if (!row_is_known(row)) {
        link_row_update(link, client_row);
        link_row_note_sent(link, sql);
        return;
    }
    shm_write_begin(&row->seq);
    row->state = LINK_STATE_ACTIVE;
    row->uses = link->uses;
    row->acquired_us = backend_wall_us(link->be);
    row->client_row = client_row;
    if (sql.p != NULL) {
        rows_set_statement(link->be->link_rows, link->row, sql);
        row->has_statement = true;
    }
    shm_write_end(&row->seq);
}

HOT void link_row_note_sent(struct link *link, struct slice sql)
{
    struct link_row *row = link_row_at(link->be->link_rows, link->row);

    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    row->state = LINK_STATE_ACTIVE;
    if (sql.p != NULL) {
        rows_set_statement(link->be->link_rows, link->row, sql);
        row->has_statement = true;
    }
    shm_write_end(&row->seq);
}

HOT void link_row_note_quiet(struct link *link)
{
    struct link_row *row = link_row_at(link->be->link_rows, link->row);

    if (row == NULL)
        return;
    shm_write_begin(&row->seq);
    row->state = link->tx_status == 'I' ? LINK_STATE_LENT : LINK_STATE_IDLE_TX;
    row->tx_status = link->tx_status;
    shm_write_end(&row->seq);
}
