/* SPDX-License-Identifier: PostgreSQL
 * feed.c: bytes from a client in a session: the hot path of requests.
 * Only headers are looked at; runs of messages go to the server in one piece, straight from the
 * worker's read buffer. The text of a query is looked at in place, when it might be a command of
 * ours. What the server must answer is pushed on the link's expect queue, message by message. */
#include "config.h"

#include <string.h>

#include "base/hot.h"
#include "config/conf.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "client/client_watch_int.h"
#include "sstate_int.h"
#include "client_events_int.h"

/* A message that no client may send now. What the client sent before is answered first, as the
 * server does; and sent first, too: the server may wait for the end of a message. */
COLD static enum feed_step bad_message(struct client *c, struct feed_run *run, char type)
{
    feed_flush(c, run);
    if (c->target != NULL && !expect_is_quiet(&c->target->expect) && !c->target->expect.skipping)
        return FEED_PARK;
    client_end_text(c, "08P01", "invalid frontend message type %d", (unsigned char)type);
    return FEED_STOP;
}

/* What cannot be a message at all ends the client, when what it sent before is answered. */
static enum feed_step feed_bad_length(struct client *c)
{
    enum client_pace pace = c->kind->pace(c);

    if (pace != PACE_REST && pace != PACE_SKIPS)
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
    if (!feed_note_text(c, sql, is_whole ? kind : COUNT_OTHER))
        client_watch_relayed(c, sql);
    client_note_sent(c, sql);
    if (client_patch(c) != NULL)
        client_patch_note(c, sql);
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

    if (is_whole && (type == FE_PARSE || type == FE_SYNC || client_has_console(c) ||
                        c->local_part != LOCAL_PART_NONE)) {
        v = client_local_extended(c, type, body);
        if (v != LOCAL_NO)
            return feed_of_verdict(v);
    }
    if (is_whole)
        sql = feed_note_extended(c, type, msg);
    if (!is_whole && type == FE_PARSE)
        c->traces = TRACES_MORE;
    if (type == FE_PARSE && client_patch(c) != NULL)
        client_patch_note(c, body);
    op = feed_is_bad_flush(c->target, type, msg) ? OP_CLOSE : expect_op_of(type);
    if (op != 0) {
        link_expect(c->target, op);
        c->server_batch = type != FE_SYNC;
    }
    if (type == FE_EXECUTE)
        client_stats_on_query(c);
    else if (type == FE_PARSE && is_whole)
        client_watch_relayed(c, sql);
    if (type == FE_EXECUTE || (type == FE_PARSE && is_whole))
        client_note_sent(c, sql);
    if (client_log_statements(c))
        client_said(c, type, body);
    return FEED_PASS;
}

/* An error was told of which no server knows: what follows is skipped here up to the Sync. */
static bool feed_skips(const struct client *c, char type)
{
    return c->local_part == LOCAL_PART_FAILED && strchr("QPBDECHF", type) != NULL;
}

enum feed_step client_message(struct client *c, struct feed_run *run, char type, struct slice msg,
    bool is_whole, const char *end)
{
    (void)end;
    if (feed_skips(c, type))
        return FEED_SKIP;
    switch (type) {
    case FE_COPY_DATA:
        return FEED_PASS;
    case FE_PASSWORD:
        return bad_message(c, run, type);
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
        c->traces = TRACES_MORE;
        link_expect(c->target, OP_FUNCTION_CALL);
        client_note_statement(c, slice_of_str("<function call>"));
        return FEED_PASS;
    default:
        return bad_message(c, run, type);
    }
}

enum feed_step feed_alone(struct client *c, struct feed_run *run, char type, struct slice msg,
    bool is_whole, const char *end)
{
    (void)run;
    (void)end;
    if (feed_skips(c, type))
        return FEED_SKIP;
    return c->ss->console->alone(c, type, message_body(msg), is_whole);
}

static void feed_park(struct client *c, const char *p, const char *end)
{
    struct buf out = {0};

    buf_put(&c->carry, p, (size_t)(end - p));
    c->is_parked = true;
    if (c->rare != NULL && c->rare->is_behind) {
        c->rare->is_behind = false; /* who it waits for goes on with it, and nobody else */
        client_rare_trim(c);
    }
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
        return p + have;
    }
    if (step == FEED_PARK)
        feed_park(c, p, end);
    else if (step == FEED_CARRY)
        buf_put(&c->carry, p, (size_t)(end - p));
    return NULL;
}

/* What cannot be judged now: it is kept, or ends the session. */
static bool feed_stays(
    struct client *c, struct feed_run *run, const char *p, const char *end, bool is_whole)
{
    char type = p[0];

    if (type == FE_TERMINATE) {
        if (c->trace.client)
            client_trace_message(c, type, slice_of("", 0));
        feed_flush(c, run);
        client_say_goodbye(c);
        return true;
    }
    if (client_waits_for_answer(c, type) ||
        (client_patch(c) != NULL && client_patch_holds(c, type))) {
        feed_flush(c, run);
        feed_park(c, p, end);
        return true;
    }
    if (is_whole || message_bytes(p) > CLIENT_COLLECT_MAX || !c->kind->wants_whole(c, type))
        return false;
    feed_flush(c, run);
    buf_put(&c->carry, p, (size_t)(end - p));
    return true;
}

/* One message at `p`. Returns where to go on, or NULL: the rest was kept, or the client is gone. */
static const char *feed_one(struct client *c, struct feed_run *run, const char *p, const char *end)
{
    size_t bytes = message_bytes(p);
    size_t have = (size_t)(end - p);
    bool is_whole = have >= bytes;
    enum feed_step step;

    if (!message_may_be(bytes)) {
        feed_flush(c, run); /* the end of a message, perhaps, for which the server waits */
        return feed_after(c, run, feed_bad_length(c), p, end);
    }
    if (feed_stays(c, run, p, end, is_whole))
        return NULL;
    if (have > bytes)
        have = bytes;
    step = c->kind->message(c, run, p[0], slice_of(p, have), is_whole, end);
    if (step == FEED_TAKEN)
        return run->taken;
    if (p[0] == FE_FLUSH && step == FEED_PASS)
        c->target->flushed_to = (uint16_t)expect_next_serial(&c->target->expect);
    if (c->trace.client && step != FEED_PARK && step != FEED_CARRY && step != FEED_STOP)
        client_trace_message(c, p[0], slice_of(p + PROTO_HEADER_BYTES, have - PROTO_HEADER_BYTES));
    return feed_after(c, run, step, p, end);
}

/* What is still to come of a message that goes in parts, or to nobody. */
static const char *feed_rest(struct client *c, struct feed_run *run, const char *p, const char *end)
{
    uint32_t *left = c->body_skip > 0 ? &c->body_skip : &c->body_left;
    size_t take = (size_t)(end - p) < *left ? (size_t)(end - p) : *left;

    *left -= (uint32_t)take;
    if (left == &c->body_skip)
        return p + take;
    if (run->start == run->end)
        run->start = p;
    run->end = p + take;
    if (c->body_left == 0 && c->target != NULL && expect_may_ask(&c->target->expect)) {
        feed_flush(c, run);
        client_on_doubt(c, c->target);
    }
    return p + take;
}

/* A client that asks, is answered here, and does not read is held. */
COLD static const char *feed_hold(
    struct client *c, struct feed_run *run, const char *p, const char *end)
{
    feed_flush(c, run);
    if (p < end) {
        feed_park(c, p, end);
        client_rare(c)->is_behind = true;
    }
    return NULL;
}

HOT static void feed_messages(
    struct client *c, struct feed_run *run, const char *p, const char *end)
{
    while (p != NULL && p < end && c->phase == CL_ACTIVE) {
        if (c->body_skip > 0 || c->body_left > 0) {
            p = feed_rest(c, run, p, end);
        } else if (end - p < PROTO_HEADER_BYTES) {
            buf_put(&c->carry, p, (size_t)(end - p));
            break;
        } else {
            p = feed_one(c, run, p, end);
            if (p != NULL && client_hold(c))
                p = feed_hold(c, run, p, end);
        }
    }
    feed_flush(c, run);
    buf_free(&run->out);
    c->kind->fed(c);
}

HOT void feed_each_message(struct client *c, const char *p, const char *end)
{
    struct feed_run run = {.start = p, .end = p};

    feed_messages(c, &run, p, end);
}

HOT void feed_relayed(struct client *c, const char *p, const char *end)
{
    struct feed_run run = {.start = p, .end = p};

    if (feed_is_own(c)) {
        run.end = feed_own(c, p, end);
        if (run.end == end) {
            feed_send(c, run.start, (size_t)(end - run.start));
            return;
        }
    }
    feed_messages(c, &run, run.end, end);
}

COLD static bool feed_is_all_told(const struct client *c)
{
    return c->target == NULL || expect_is_quiet(&c->target->expect);
}

HOT void client_do_feed(struct client *c, const char *p, const char *end)
{
    if (c->row != NULL && c->row->tx_status == 'E')
        client_failed_note(&client_rare(c)->refused, p, feed_is_all_told(c) ? end : p);
    c->kind->feed(c, p, end);
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
    if (c->sends == CLIENT_HAS_HUNG_UP && !c->is_parked && c->phase == CL_ACTIVE)
        client_set_timer(
            c, c->ss->conf->half_closed_timeout_ms); /* it waits no longer: what runs may end */
    client_read_on(c);
    errand_end(c);
}
