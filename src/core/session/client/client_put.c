/* SPDX-License-Identifier: PostgreSQL
 * client_put.c: bytes between a client and its link: runs of its messages, replies. Runs in:
 * workers. Must never: keep bytes of somebody who has gone. */
#include "config.h"

#include "base/hot.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "feed_int.h"
#include "sstate_int.h"

/* More than this is not copied behind what we put in ourselves. */
#define FEED_COPY_MAX 16384
/* More than this of a message that nobody reads is not made up. */
#define FEED_IGNORED_MAX (1U << 20)
/* What waits for a client that asks and does not read: it is not answered further. */
#define FEED_BEHIND_BYTES 262144

HOT void client_pass_reply(struct client *c, struct link *link, const char *p, size_t n)
{
    stats_on_bytes_out(&c->stats, n);
    if (c->ss->be.nrows > 0)
        client_stmts_rows(c);
    if (c->trace.server != 0)
        client_trace_reply(c, link->pool->cluster_node, p, n);
    if (stream_send_later(&c->stream, p, n) == STREAM_CLOGGED)
        link_pause(link);
}

HOT void feed_send(struct client *c, const char *p, size_t n)
{
    if (c->traces == TRACES_NONE)
        c->traces = TRACES_READS;
    stats_on_bytes_in(&c->stats, n);
    if (link_send(c->target, p, n) == 0 && stream_is_clogged(&c->target->stream))
        stream_pause(&c->stream);
}

COLD APART static bool end_ignored(struct client *c)
{
    static const char zeros[4096];
    uint32_t left = c->body_left;
    uint32_t n;

    if (left > FEED_IGNORED_MAX) {
        client_end_text(c, "08P01", "too much is left of the data of a COPY that is over");
        return false;
    }
    c->body_left = 0;
    c->body_skip = left; /* what the client still sends of it is for nobody */
    for (; left > 0; left -= n) {
        n = left < sizeof zeros ? left : sizeof zeros;
        (void)link_send(c->target, zeros, n);
    }
    return true;
}

bool feed_end_ignored(struct client *c)
{
    return c->body_left == 0 || c->target == NULL || end_ignored(c);
}

bool client_hold(struct client *c)
{
    if (c->phase != CL_ACTIVE || stream_owes(&c->stream) <= FEED_BEHIND_BYTES)
        return false;
    client_rare(c)->is_behind = true;
    stream_pause(&c->stream);
    return true;
}

void feed_put(struct feed_run *run, const char *p, size_t n)
{
    if (run->start != run->end)
        buf_put(&run->out, run->start, (size_t)(run->end - run->start));
    run->start = run->end = NULL;
    buf_put(&run->out, p, n);
}

HOT void feed_flush(struct client *c, struct feed_run *run)
{
    size_t n = (size_t)(run->end - run->start);
    const char *p = run->start;
    struct buf out = run->out;

    run->start = run->end = NULL;
    if (n == 0 && out.len == 0)
        return;
    memset(&run->out, 0, sizeof run->out);
    if (c->target != NULL && out.len == 0) {
        feed_send(c, p, n);
    } else if (c->target != NULL) {
        if (n > 0 && n <= FEED_COPY_MAX)
            buf_put(&out, p, n);
        feed_send(c, out.data, out.len);
        if (n > FEED_COPY_MAX && c->target != NULL)
            feed_send(c, p, n);
    }
    buf_free(&out);
}

enum feed_step feed_cut(struct client *c, struct feed_run *run)
{
    struct buf sync = {0};

    wire_put_empty(&sync, FE_SYNC);
    link_expect(c->target, OP_SYNC | OP_SWALLOW | OP_CUT);
    c->server_batch = false;
    feed_put(run, sync.data, sync.len);
    buf_free(&sync);
    return FEED_PUT;
}

bool feed_is_bad_flush(const struct link *link, char type, struct slice msg)
{
    return type == FE_FLUSH && message_bytes(msg.p) != PROTO_HEADER_BYTES &&
           !expect_is_copying(&link->expect);
}

enum feed_step feed_of_verdict(enum local_verdict v)
{
    return v == LOCAL_DONE ? FEED_LOCAL : FEED_PARK;
}

struct slice feed_parse_sql(struct slice body)
{
    struct wire_reader r;

    wire_reader_init(&r, body);
    (void)wire_get_cstr(&r);
    return wire_get_cstr(&r);
}

void client_read_on(struct client *c)
{
    if (c->phase == CL_ACTIVE && !c->is_parked && c->sends != CLIENT_HAS_SENT_ALL &&
        (c->target == NULL || !stream_is_clogged(&c->target->stream)))
        stream_resume(&c->stream);
}

/* Another Sync commits what was copied, however many the server ignored before. */
void client_note_copy_end(struct client *c, const struct link *link)
{
    if (expect_ends_in_execute(&link->expect))
        c->server_batch = true;
}
