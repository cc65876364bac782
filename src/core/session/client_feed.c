/* SPDX-License-Identifier: PostgreSQL
 * client_feed.c: bytes from a client in a session: the hot path of requests.
 * Only headers are looked at; runs of messages go to the server in one piece, straight from the
 * worker's read buffer. The text of a query is looked at in place, when it might be a command of
 * ours. What the server must answer is pushed on the link's expect queue, message by message. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "base/log.h"
#include "config/conf.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "client_orders_int.h"
#include "console_int.h"
#include "native_int.h"
#include "share_cache_int.h"
#include "share_int.h"
#include "client_events_int.h"

/* What the client sent before is answered first, as the server does; and sent first, too: the
 * server may wait for the end of a message. */
enum feed_step feed_bad(struct client *c, struct feed_run *run, char type)
{
    feed_flush(c, run);
    if (c->phase != CL_ACTIVE)
        return FEED_STOP;
    if (c->target != NULL && !expect_is_quiet(&c->target->expect) && !c->target->expect.skipping)
        return FEED_PARK;
    client_end_text(c, "08P01", "invalid frontend message type %d", (unsigned char)type);
    return FEED_STOP;
}

/* The same for what cannot be a message at all. */
static enum feed_step feed_bad_length(struct client *c)
{
    bool attached = c->share == NULL || c->share->phase == SHARE_ATTACHED;

    if (c->target == NULL || !attached
            ? c->share != NULL && share_is_busy(c)
            : !expect_is_quiet(&c->target->expect) && !c->target->expect.skipping)
        return FEED_PARK;
    client_end_text(c, "08P01", "invalid message length");
    return FEED_STOP;
}

static enum feed_step feed_query(struct client *c, struct slice msg, bool is_whole)
{
    struct slice sql = slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES);
    enum count_kind kind;
    enum local_verdict v;

    if (is_whole && sql.n > 0 && sql.p[sql.n - 1] == '\0')
        sql.n--;
    if (is_whole && client_local_is_likely(sql)) {
        v = client_local_query(c, sql);
        if (v != LOCAL_NO)
            return feed_of_verdict(v);
    }
    client_stats_on_query(c);
    link_expect(c->target, OP_QUERY);
    kind = count_kind_of(sql);
    count_statement(c->ss, c->target->pool->cluster_node, kind);
    if (feed_note_text(c, sql, is_whole ? kind : COUNT_OTHER))
        client_note_sent(c, sql);
    else
        client_note_statement(c, sql);
    if (client_log_statements(c))
        client_log_statement(c, "", sql);
    return FEED_PASS;
}

/* Messages of the extended protocol. */
static enum feed_step feed_extended(struct client *c, char type, struct slice msg, bool is_whole)
{
    struct slice body = slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES);
    struct slice sql = slice_of(NULL, 0);
    enum local_verdict v;
    unsigned op;

    if (is_whole && (type == FE_PARSE || type == FE_SYNC || client_local(c) != NULL)) {
        v = client_local_extended(c, type, body);
        if (v != LOCAL_NO)
            return feed_of_verdict(v);
    }
    if (is_whole)
        sql = feed_note_extended(c, type, msg);
    c->leaves_traces = c->leaves_traces || (!is_whole && type == FE_PARSE);
    op = feed_is_bad_flush(c->target, type, msg) ? OP_CLOSE : feed_op(type);
    if (op != 0) {
        link_expect(c->target, op);
        c->server_batch = type != FE_SYNC;
    }
    if (type == FE_EXECUTE)
        client_stats_on_query(c);
    if (type == FE_EXECUTE)
        client_note_statement(c, slice_of(NULL, 0));
    else if (type == FE_PARSE && is_whole)
        client_note_statement(c, sql);
    if (client_log_statements(c))
        client_said(c, type, body);
    return FEED_PASS;
}

/* An error was told of which no server knows: what follows is skipped here up to the Sync. */
static bool feed_skips(const struct client *c, char type)
{
    return c->local_error && strchr("QPBDECHF", type) != NULL;
}

static enum feed_step feed_message(
    struct client *c, struct feed_run *run, char type, struct slice msg, bool is_whole)
{
    if (feed_skips(c, type))
        return FEED_SKIP;
    switch (type) {
    case FE_COPY_DATA:
        return FEED_PASS;
    case FE_PASSWORD:
        return feed_bad(c, run, type);
    case FE_QUERY:
        return feed_query(c, msg, is_whole);
    case FE_PARSE:
    case FE_BIND:
    case FE_DESCRIBE:
    case FE_EXECUTE:
    case FE_CLOSE:
    case FE_FLUSH:
    case FE_SYNC:
        return feed_extended(c, type, msg, is_whole);
    case FE_COPY_DONE:
    case FE_COPY_FAIL:
        client_note_copy_end(c, c->target);
        link_expect(c->target, OP_COPY_END);
        return FEED_PASS;
    case FE_FUNCTION_CALL:
        client_stats_on_query(c);
        c->leaves_traces = true;
        link_expect(c->target, OP_FUNCTION_CALL);
        client_note_statement(c, slice_of_str("<function call>"));
        return FEED_PASS;
    default:
        return feed_bad(c, run, type);
    }
}

/* Which messages have to be complete before they can be judged. Others may go in parts. */
static bool feed_wants_whole(const struct client *c, char type, size_t bytes)
{
    if (bytes > CLIENT_COLLECT_MAX)
        return false;
    if (c->share != NULL)
        return type != FE_COPY_DATA && type != FE_BIND && type != FE_FUNCTION_CALL;
    return type == FE_QUERY || type == FE_PARSE || type == FE_SYNC || type == FE_FLUSH ||
           (client_local(c) != NULL && type != FE_COPY_DATA);
}

static void feed_park(struct client *c, const char *p, const char *end)
{
    struct buf out = {0};

    buf_put(&c->carry, p, (size_t)(end - p));
    c->is_parked = true;
    /* Most have nothing more to say until they are answered: reading stays on, and if something
     * comes it is switched off then (client_on_readable). TLS may hold input that was read. */
    if (stream_is_tls(&c->stream))
        stream_pause(&c->stream);
    /* The server may sit on its replies until it is asked for them. */
    if (c->target != NULL && expect_needs_sync(&c->target->expect)) {
        wire_put_empty(&out, FE_FLUSH);
        (void)link_send(c->target, out.data, out.len);
        buf_free(&out);
    }
}

/* What becomes of the message at `p`. Returns where to go on, or NULL. */
HOT static const char *feed_after(
    struct client *c, struct feed_run *run, enum feed_step step, const char *p, const char *end)
{
    size_t len = message_bytes(p);
    size_t have = (size_t)(end - p) < len ? (size_t)(end - p) : len;

    if (step == FEED_PASS || step == FEED_PUT) {
        if (step == FEED_PUT && run->start != run->end)
            feed_put(run, "", 0); /* what comes next does not follow on it */
        if (step == FEED_PASS && run->start == run->end)
            run->start = p;
        if (step == FEED_PASS)
            run->end = p + have;
        c->body_left = (uint32_t)(len - have);
        return p + have;
    }
    feed_flush(c, run); /* before what is not for the server */
    if (step == FEED_SKIP || step == FEED_LOCAL) {
        c->body_skip = (uint32_t)(len - have);
        return c->phase == CL_ACTIVE ? p + have : NULL;
    }
    if (step == FEED_PARK)
        feed_park(c, p, end);
    else if (step == FEED_CARRY)
        buf_put(&c->carry, p, (size_t)(end - p));
    return NULL;
}

/* One message at `p`. Returns where to go on, or NULL: the rest was kept, or the client has gone.
 */
static const char *feed_one(struct client *c, struct feed_run *run, const char *p, const char *end)
{
    size_t bytes = message_bytes(p);
    char type = p[0];
    size_t have = (size_t)(end - p);
    const char *whole;
    enum feed_step step;
    bool is_whole;

    if (!message_may_be(bytes)) {
        feed_flush(c, run); /* the end of a message, perhaps, for which the server waits */
        return feed_after(c, run, feed_bad_length(c), p, end);
    }
    if (type == FE_TERMINATE && c->trace.client)
        client_trace_message(c, type, slice_of("", 0));
    if (type == FE_TERMINATE) {
        feed_flush(c, run);
        client_say_goodbye(c);
        return NULL;
    }
    if (client_waits_for_answer(c, type)) {
        feed_flush(c, run);
        feed_park(c, p, end);
        return NULL;
    }
    is_whole = have >= bytes;
    if (!is_whole && feed_wants_whole(c, type, bytes)) {
        feed_flush(c, run);
        buf_put(&c->carry, p, have);
        return NULL;
    }
    if (have > bytes)
        have = bytes;
    if (c->share != NULL && c->share->turn == NULL && (type == FE_PARSE || type == FE_BIND)) {
        step = share_quick_batch(c, run, p, end, &whole);
        if (step == FEED_PASS)
            return whole;
        if (step != FEED_AGAIN)
            return feed_after(c, run, step, p, end);
    }
    step = c->share != NULL ? share_message(c, run, type, slice_of(p, have), is_whole, end)
                            : feed_message(c, run, type, slice_of(p, have), is_whole);
    if (type == FE_FLUSH && step == FEED_PASS)
        c->target->flushed_to = (uint16_t)expect_next_serial(&c->target->expect);
    if (c->trace.client && step != FEED_PARK && step != FEED_CARRY && step != FEED_STOP)
        client_trace_message(c, type, slice_of(p + PROTO_HEADER_BYTES, have - PROTO_HEADER_BYTES));
    return feed_after(c, run, step, p, end);
}

COLD static bool feed_is_all_told(const struct client *c)
{
    return c->target == NULL || expect_is_quiet(&c->target->expect);
}

HOT void client_do_feed(struct client *c, const char *p, const char *end)
{
    struct feed_run run = {p, p, {0}};
    const char *next;
    size_t take;

    if (c->row != NULL && c->row->tx_status == 'E')
        client_failed_note(&client_rare(c)->refused, p, feed_is_all_told(c) ? end : p);
    if (client_console(c) != NULL) {
        c->ss->console->feed(c, p, end);
        return;
    }
    if (client_native(c) != NULL) {
        c->ss->native->feed(c, p, end);
        return;
    }
    if (feed_is_own(c)) {
        run.end = feed_own(c, p, end);
        p = run.end;
        if (p == end) {
            feed_send(c, run.start, (size_t)(end - run.start));
            return;
        }
    }
    while (p < end) {
        if (c->body_skip > 0) {
            take = (size_t)(end - p) < c->body_skip ? (size_t)(end - p) : c->body_skip;
            p += take;
            c->body_skip -= (uint32_t)take;
            continue;
        }
        if (c->body_left > 0) {
            take = (size_t)(end - p) < c->body_left ? (size_t)(end - p) : c->body_left;
            if (run.start == run.end)
                run.start = p;
            p += take;
            run.end = p;
            c->body_left -= (uint32_t)take;
            if (c->body_left == 0 && c->target != NULL && expect_may_ask(&c->target->expect)) {
                feed_flush(c, &run);
                client_on_doubt(c, c->target);
            }
            if (c->phase != CL_ACTIVE)
                break;
            continue;
        }
        if (end - p < PROTO_HEADER_BYTES) {
            buf_put(&c->carry, p, (size_t)(end - p));
            break;
        }
        next = feed_one(c, &run, p, end);
        if (next == NULL || c->phase != CL_ACTIVE)
            break;
        p = next;
    }
    if (c->phase == CL_ACTIVE)
        feed_flush(c, &run);
    if (c->phase == CL_ACTIVE && c->share != NULL && c->share->loan.detach_due)
        share_detach_if_due(c);
    share_cache_after_feed(c);
    buf_free(&run.out);
    share_turn_end(c);
}

void client_do_unpark(struct client *c)
{
    struct buf parked = c->carry;

    if (c->phase != CL_ACTIVE)
        return;
    memset(&c->carry, 0, sizeof c->carry);
    c->is_parked = false;
    if (parked.len > parked.pos)
        client_do_feed(c, parked.data + parked.pos, parked.data + parked.len);
    buf_free(&parked);
    if (c->is_hung_up && !c->is_parked && c->phase == CL_ACTIVE)
        client_set_timer(
            c, c->ss->conf->half_closed_timeout_ms); /* it waits no longer: what runs may end */
    client_read_on(c);
    share_turn_end(c);
}
