/* SPDX-License-Identifier: PostgreSQL
 * balance_reader.c: the life of a client's reader link: opened at the first read that may leave the
 * primary, given back at the end or when it fails. Its failure is never the client's: what it has
 * not begun to answer is sent again on the client's own link. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "wire/writer.h"

#include "balance_int.h"

static const struct link_owner_ops reader_ops;

void balance_drop_reader(struct client *c, bool boundary)
{
    struct balance *b = c->balance;
    struct link *reader = b->reader;

    pool_request_cancel(&b->req);
    b->reader = NULL;
    b->phase = READER_NONE;
    b->replayed = 0;
    buf_free(&b->retry);
    buf_free(&b->early);
    if (c->target == reader)
        c->target = c->link;
    if (reader != NULL)
        link_release(reader, boundary);
    if (b->pool != NULL)
        pool_detach(b->pool);
    b->pool = NULL;
}

/* It did not work out: reads stay on the own link for a while. */
static void reader_avoid(struct client *c)
{
    c->balance->avoid_until_us = loop_now_us(c->ss->loop) + BALANCE_RETRY_US;
}

static void reader_is_ready(struct client *c)
{
    struct balance *b = c->balance;

    b->phase = READER_READY;
    b->epoch = b->reader->epoch;
    b->replayed = 0;
    b->is_fresh = true;
    b->reader->hide_parameters = true;
    link_row_update(b->reader, c->row_index);
}

static enum balance_verdict reader_acquire(struct client *c)
{
    struct balance *b = c->balance;

    b->req.may_reuse = pool_is_trusted(b->pool);
    switch (pool_acquire(&b->req)) {
    case ACQUIRE_GRANTED:
        b->reader = b->req.link;
        reader_is_ready(c);
        return BALANCE_GO;
    case ACQUIRE_OPENING:
        b->reader = b->req.link;
        b->epoch = b->reader->epoch;
        b->phase = READER_OPENING;
        timer_start(c->ss->loop, &b->reader->timer, BALANCE_LOGIN_MS);
        return BALANCE_PARK;
    case ACQUIRE_WAITING:
        break;
    }
    if (b->req.reason == WAIT_REASON_CONNECTING) {
        b->phase = READER_OPENING; /* one is being cleaned: it is ours in a moment */
        return BALANCE_PARK;
    }
    /* The node is full: the own link can answer now. */
    balance_drop_reader(c, true);
    reader_avoid(c);
    return BALANCE_GO;
}

static void reader_on_turn(struct pool_request *req)
{
    struct client *c = req->owner;

    if (reader_acquire(c) == BALANCE_GO)
        client_unpark(c);
}

enum balance_verdict balance_open_reader(struct client *c, int node)
{
    struct balance *b = c->balance;

    if (b->phase == READER_READY && b->node == node)
        return BALANCE_GO;
    balance_drop_reader(c, true);
    if (loop_now_us(c->ss->loop) < b->avoid_until_us)
        return BALANCE_GO;
    b->node = node;
    b->pool = pool_attach(&c->ss->be, pool_user(c->pool), pool_database(c->pool), node);
    pool_request_init(&b->req);
    b->startup.version = c->link->version;
    b->startup.user = pool_user(c->pool);
    b->startup.database = pool_database(c->pool);
    b->startup.params = &b->params;
    b->req.pool = b->pool;
    b->req.startup = &b->startup;
    b->req.no_patch = true;
    b->req.on_turn = reader_on_turn;
    b->req.owner = c;
    b->req.ops = &reader_ops;
    return reader_acquire(c);
}

/* Login of a fresh reader: only a server that lets us in without asking will do, for the client has
 * nothing more to say. */
static void reader_on_auth(void *owner, struct link *link, const char *msg, size_t n)
{
    struct client *c = owner;

    if (n >= PROTO_HEADER_BYTES + 4 && proto_get_u32(msg + PROTO_HEADER_BYTES) == AUTH_OK)
        return;
    log_at(LVL_DEBUG1,
        "node %d asks user \"%s\" for a password: reads of this session stay on node %d",
        link->pool->cluster_node, c->pool->names, c->pool->cluster_node);
    c->balance->avoid_until_us = INT64_MAX;
    balance_drop_reader(c, false);
    client_unpark(c);
}

static void reader_on_login_done(void *owner, struct link *link)
{
    struct client *c = owner;

    (void)link;
    reader_is_ready(c);
    client_unpark(c);
}

/* ParseComplete and BindComplete alone: the read can still be made elsewhere. */
static bool is_no_answer_yet(const char *p, size_t n)
{
    size_t i;

    for (i = 0; i + PROTO_HEADER_BYTES <= n; i += PROTO_HEADER_BYTES)
        if ((p[i] != BE_PARSE_COMPLETE && p[i] != BE_BIND_COMPLETE) ||
            proto_get_u32(p + i + 1) != 4)
            return false;
    return i == n;
}

static void reader_on_bytes(void *owner, struct link *link, const char *p, size_t n)
{
    struct client *c = owner;
    struct balance *b = c->balance;

    if (link != b->reader || link->epoch != b->epoch) {
        link->be->epoch_mismatches++;
        log_at(LVL_ERROR, "a reply of a reader met another client: dropped");
        link_close(link);
        return;
    }
    if (c->target != link)
        return; /* a notice between two reads: not for the client */
    if (!b->reply_begun && is_no_answer_yet(p, n)) {
        buf_put(&b->early, p, n);
        return;
    }
    if (!b->reply_begun) {
        b->reply_begun = true;
        buf_free(&b->retry);
        client_send(c, &b->early);
    }
    if (stream_send(&c->stream, p, n) == 0 && stream_is_clogged(&c->stream))
        link_pause(link);
}

void balance_to_own(struct client *c)
{
    struct balance *b = c->balance;
    struct buf held = b->held;

    c->target = c->link;
    b->reply_begun = false;
    buf_free(&b->retry);
    memset(&b->held, 0, sizeof b->held);
    client_send(c, &held);
    if (!stream_is_clogged(&c->stream))
        link_resume(c->link);
}

static void reader_on_quiet(void *owner, struct link *link)
{
    struct client *c = owner;

    if (c->target != link)
        return;
    if (link->own_failed)
        c->balance->rs.state_unknown = true; /* a setting could not be replayed */
    client_note_idle(c);
    c->server_batch = false;
    balance_to_own(c);
    client_after_quiet(c);
}

static void reader_on_settled(void *owner, struct link *link)
{
    (void)owner;
    (void)link;
}

static void reader_on_parameter(
    void *owner, struct link *link, struct slice name, struct slice value)
{
    (void)owner;
    (void)link;
    (void)name;
    (void)value;
}

static void reader_on_tag(void *owner, struct link *link, struct slice tag)
{
    (void)owner;
    (void)link;
    (void)tag;
}

static bool is_fatal(const struct errmsg *m)
{
    return slice_eq_str(m->severity, "FATAL") || slice_eq_str(m->severity, "PANIC");
}

/* The end of a standby's server process is not the client's business as long as the read can be
 * made elsewhere. */
static bool reader_on_error(void *owner, struct link *link, const struct errmsg *m)
{
    struct client *c = owner;

    count_statement(c->ss, link->pool->cluster_node, is_fatal(m) ? COUNT_FATAL : COUNT_ERROR);
    return is_fatal(m) && !c->balance->reply_begun;
}

static void reader_on_own_row(void *owner, struct link *link, struct slice body)
{
    (void)owner;
    (void)link;
    (void)body;
}

static void reader_on_drained(void *owner, struct link *link)
{
    struct client *c = owner;

    if (c->target == link && !c->is_parked && !c->is_half_closed)
        stream_resume(&c->stream);
}

/* Sends again, on the own link, what the dead reader did not begin to answer. */
static void reader_retry_on_own(struct client *c, struct buf *retry)
{
    log_at(LVL_LOG, "a read of user \"%s\" is sent again to node %d: its standby was lost",
        c->pool->names, c->pool->cluster_node);
    /* In front of what the client sent since. */
    buf_put(retry, buf_slice(&c->carry).p, buf_unread(&c->carry));
    buf_free(&c->carry);
    c->is_parked = false;
    client_feed(c, retry->data + retry->pos, retry->data + retry->len);
    if (c->phase == CL_ACTIVE && !c->is_parked && !c->is_half_closed)
        stream_resume(&c->stream);
}

/* The client saw part of an answer: it has to be told that no more comes. */
static void reader_tell_lost(struct client *c, const struct err *err, bool in_message)
{
    struct err told;
    struct buf out = {0};

    if (in_message) {
        client_end(c, err); /* in the middle of a message: nothing can follow it */
        return;
    }
    err_clear(&told);
    err_set(&told, "08006", "%s", err->msg);
    err_detail(&told, "The read had begun to return rows from a standby.");
    wire_put_err(&out, &told);
    wire_put_ready(&out, 'I');
    client_send(c, &out);
    client_note_idle(c);
}

static void reader_on_lost(void *owner, struct link *link, const struct err *err, bool told)
{
    struct client *c = owner;
    struct balance *b = c->balance;
    struct buf retry = b->retry;
    bool was_opening = b->phase == READER_OPENING;
    bool was_target = c->target == link;
    bool begun = b->reply_begun;

    (void)told;
    sessions_suspect_node(c->ss, link->pool->cluster_node);
    memset(&b->retry, 0, sizeof b->retry);
    b->reader = NULL;
    balance_drop_reader(c, false);
    reader_avoid(c);
    if (was_target) {
        c->server_batch = false;
        balance_to_own(c);
        if (begun || retry.len == 0)
            reader_tell_lost(c, err, link->body_left > 0);
        else
            reader_retry_on_own(c, &retry);
    }
    buf_free(&retry);
    if (c->phase == CL_ACTIVE && (was_opening || c->is_parked) && c->target == c->link &&
        expect_is_quiet(&c->link->expect))
        client_unpark(c);
}

static const struct link_owner_ops reader_ops = {
    .on_auth = reader_on_auth,
    .on_login_done = reader_on_login_done,
    .on_bytes = reader_on_bytes,
    .on_quiet = reader_on_quiet,
    .on_settled = reader_on_settled,
    .on_parameter = reader_on_parameter,
    .on_tag = reader_on_tag,
    .on_error = reader_on_error,
    .on_own_row = reader_on_own_row,
    .on_drained = reader_on_drained,
    .on_lost = reader_on_lost,
};
