/* SPDX-License-Identifier: PostgreSQL
 * link_io.c: bytes from a server: the hot path of replies.
 * Only headers are looked at. Runs of messages for the client are passed on in one piece, straight
 * from the worker's read buffer; messages that matter to us (ReadyForQuery, ParameterStatus,
 * errors) are seen whole first. A reply reaches the owner of the present loan or nobody. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "backend/pool.h"
#include "base/assert.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/mem.h"
#include "wire/errmsg.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

#include "link_int.h"

/* A run of bytes to pass on, not sent yet. */
struct link_run {
    const char *start;
    const char *end;
    uint64_t epoch; /* of the loan in which the run began */
};

HOT static void link_flush_run(struct link *link, struct link_run *run)
{
    const char *start = run->start;
    const char *end = run->end;

    run->start = run->end = NULL;
    if (start == end)
        return;
    if (link->owner == NULL) {
        link->in_body = 0;
        return;
    }
    if (run->epoch != link->epoch) {
        /* Never deliver: this would be one client's bytes for another. */
        link->be->epoch_mismatches++;
        link_log(link, LVL_ERROR,
            "a reply met another loan of its link: dropped, connection to node %d closed",
            link->pool->cluster_node);
        link_fail_text(link, "XX000", "internal error: reply of an earlier loan");
        return;
    }
    link->ops->on_bytes(link->owner, link, start, (size_t)(end - start));
    link->in_body = 0;
}

static void link_run_add(struct link_run *run, struct link *link, const char *p, const char *end)
{
    if (run->start == NULL) {
        run->start = p;
        run->epoch = link->epoch;
    }
    run->end = end;
}

/* Messages that have to be seen whole before they are passed on. */
static bool link_wants_whole(const struct link *link, char type, uint32_t body)
{
    if (link->phase == LINK_LOGIN)
        return true;
    switch (type) {
    case BE_READY:
    case BE_PARAMETER_STATUS:
        return body <= LINK_COLLECT_MAX;
    case BE_ERROR:
        return body <= LINK_COLLECT_MAX;
    case BE_COMMAND_COMPLETE:
        if (link->phase == LINK_CLEANING || link_awaits_reset(link))
            return body <= LINK_COLLECT_MAX;
        return (link->loan.tells == LINK_TELLS_ALL || expect_head_tells_tags(&link->expect)) &&
               body <= LINK_COLLECT_MAX;
    default:
        return false;
    }
}

bool link_takes_parameter(struct link *link, struct slice name, struct slice value)
{
    if (paramset_has_room(
            &link->reported, name, value, LINK_PARAMETERS_MAX, LINK_PARAMETERS_MAX_BYTES))
        return true;
    log_caused(LVL_LOG,
        "node %d reports more parameters than anybody needs: its connection is closed",
        link->pool->cluster_node);
    link_fail_text(link, "08P01",
        "the server (node %d) reports more than %d parameters, or more than %d bytes of them",
        link->pool->cluster_node, LINK_PARAMETERS_MAX, LINK_PARAMETERS_MAX_BYTES);
    return false;
}

static void link_on_parameter(struct link *link, struct slice body)
{
    struct wire_reader r;
    struct slice name;
    struct slice value;
    struct slice before;

    wire_reader_init(&r, body);
    name = wire_get_cstr(&r);
    value = wire_get_cstr(&r);
    if (!wire_reader_ok(&r))
        return;
    before = paramset_get(&link->reported, name);
    if ((before.p != NULL && slice_eq(before, value)) || !link_takes_parameter(link, name, value))
        return;
    if (link->owner == NULL)
        link->defaults_known = false;
    if (link->owner != NULL && link->phase == LINK_LENT && link->ops->on_parameter != NULL)
        link->ops->on_parameter(link->owner, link, name, value);
    link->loan.has_news = link->loan.has_news || link->phase == LINK_LENT;
    if (link->phase == LINK_CLOSED)
        return;
    (void)paramset_set(&link->reported, name, value);
    paramset_share(&link->reported, &link->be->paramsets);
}

/* An owner that repeats an error later, or in other words, has to have all of it; of one that is
 * too long, what its beginning says. */
static bool link_tell_error(struct link *link, struct errmsg *m)
{
    struct buf brief = {0};
    struct err err;
    bool keep;

    if (link->owner == NULL || link->phase != LINK_LENT)
        return false;
    if (link->body_left > 0) {
        errmsg_to_err(m, &err);
        wire_put_err(&brief, &err);
        m->whole = buf_slice(&brief);
    }
    keep = link->ops->on_error(link->owner, link, m);
    buf_free(&brief);
    return keep;
}

/* An error ends the link when it is FATAL or PANIC: remember that the client has been told. Returns
 * true when the owner keeps it from the client. `failed`: the sequence at hand had failed before.
 */
static bool link_on_error(struct link *link, const char *msg, const char *end, bool failed)
{
    struct slice body = message_body(slice_of(msg, (size_t)(end - msg)));
    struct errmsg m;
    bool keep;

    (void)errmsg_decode(body, &m);
    m.whole = slice_of(msg, (size_t)(end - msg));
    keep = link_tell_error(link, &m);
    if (link->phase == LINK_CLOSED)
        return keep;
    if (slice_eq_str(m.severity, "FATAL") || slice_eq_str(m.severity, "PANIC")) {
        link->loan.error_told = link->owner != NULL && !keep;
        link->expect.failed = failed; /* it is no answer to what was asked */
    }
    if (slice_eq_str(m.sqlstate, "42704") &&
        memmem(m.message.p, m.message.n, "role OID", 8) != NULL)
        link->is_private = true; /* its role was dropped and made again: nobody can use it */
    if (link->phase == LINK_CLEANING && link->resets_left == 0)
        link->loan.error_told = !link_clean_forgives(link, m.sqlstate);
    if (link->phase == LINK_CLEANING || link->phase == LINK_IDLE)
        log_at(LVL_DEBUG1, "server process %d of node %d says while it is cleaned: %.*s",
            link->server_pid, link->pool->cluster_node, (int)m.message.n, m.message.p);
    return keep;
}

/* The server's last words are no answer to anything: what it owes is owed until the end. */
WARM static bool link_are_last_words(struct slice body)
{
    struct errmsg m;

    (void)errmsg_decode(body, &m);
    return slice_eq_str(m.severity, "FATAL") || slice_eq_str(m.severity, "PANIC");
}

/* A reply that somebody has asked for: is it for the owner? So much of it is there. */
static inline bool link_answers_owner(struct link *link, const char *msg, size_t have)
{
    if (link->expect.is_seen)
        return link_see_reply(link, msg, have) == EXPECT_FORWARD;
    return expect_reply(&link->expect, msg[0]) == EXPECT_FORWARD;
}

/* Is a message, asked for or not, for the owner? `have` bytes of it are there. */
WARM static bool link_is_for_owner(struct link *link, const char *msg, size_t have)
{
    switch (msg[0]) {
    case BE_NOTIFICATION: /* nothing of ours listens: whatever is under way, it is his */
        return link->loan.tells != LINK_TELLS_ANSWERS &&
               ((link->phase == LINK_LENT && !link_awaits_reset(link)) ||
                   !expect_head_is_ours(&link->expect));
    case BE_NOTICE: /* the client was told when it parsed what is parsed again */
        return !expect_head_is_quiet(&link->expect);
    case BE_PARAMETER_STATUS:
        return link->loan.tells == LINK_TELLS_ALL ||
               (link->loan.tells == LINK_TELLS_HIS && !expect_head_is_ours(&link->expect));
    default:
        return link_answers_owner(link, msg, have);
    }
}

/* What was judged goes into the run, or nowhere. */
static inline void link_take(
    struct link *link, struct link_run *run, const char *p, const char *end, bool for_owner)
{
    link->swallow_body = !for_owner || link->owner == NULL; /* in the next loan, too */
    if (for_owner)
        link_run_add(run, link, p, end);
    else
        link_flush_run(link, run);
}

static void link_tell_no_wait(struct link *link)
{
    if (link->owner != NULL && link->phase == LINK_LENT && link->ops->on_no_wait != NULL)
        link->ops->on_no_wait(link->owner, link);
}

/* The replies that are made here and whose turn has come. */
static void link_make_replies(struct link *link, struct link_run *run)
{
    char msg[PROTO_HEADER_BYTES] = {0, 0, 0, 0, 4};

    while (link->body_left == 0 && (msg[0] = expect_take_made(&link->expect)) != 0) {
        link_flush_run(link, run);
        if (link->phase != LINK_LENT || link->owner == NULL)
            continue; /* whoever asked has gone */
        link->ops->on_bytes(link->owner, link, msg, sizeof msg);
    }
}

void link_reply_made(struct link *link, unsigned op)
{
    struct link_run run = {NULL, NULL, link->epoch};

    link_expect(link, op);
    if (expect_is_made_due(&link->expect))
        link_make_replies(link, &run);
}

/* Asks whether anything is owed: closes a statement of a name that no client has any use for; that
 * nobody has it is no error. */
void link_ask(struct link *link)
{
    static const char name[] = "pgpool: is anything owed?";
    struct buf out = {0};
    uint32_t start;

    link_expect(link, OP_CLOSE | OP_SWALLOW);
    link_expect(link, OP_SYNC | OP_SWALLOW);
    start = wire_begin(&out, FE_CLOSE);
    buf_put_byte(&out, 'S');
    buf_put(&out, name, sizeof name);
    wire_end(&out, start);
    wire_put_empty(&out, FE_SYNC);
    (void)link_send(link, out.data, out.len);
    buf_free(&out);
    link->expect.is_asked = true;
}

/* After a ReadyForQuery, or when the last owed reply came without one. */
HOT static void link_after_reply(struct link *link, char type)
{
    if (link->phase == LINK_CLEANING) {
        if (type == BE_READY && expect_is_quiet(&link->expect))
            link_clean_step(link);
        else if (link->expect.lost)
            link_close(link); /* it would not be seen when all is read */
        return;
    }
    if (link->expect.lost && type == BE_READY)
        link_tell_no_wait(link);
    if (link->owner == NULL)
        return;
    if (expect_may_ask(&link->expect) && type == BE_READY && link->ops->on_doubt != NULL)
        link->ops->on_doubt(link->owner, link);
    if (link->phase == LINK_CLOSED)
        return;
    if (link->expect.len > 0) {
        if (link->loan.settle_early && type == BE_READY && !expect_owes_ready(&link->expect))
            link->ops->on_settled(link->owner, link);
        return;
    }
    link->expect.is_held = false; /* now it is the owner's to say */
    link->expect.is_asked = false;
    if (type == BE_READY)
        link->ops->on_quiet(link->owner, link);
    else
        link->ops->on_settled(link->owner, link);
}

/* The server says what nobody asked for, while the link is nobody's: it might reach the next
 * client. */
static bool link_unasked(struct link *link)
{
    log_caused_detail(LVL_WARNING, NULL,
        "An extension that sends from the background, or a pg_terminate_backend: the log of that "
        "server.",
        "server process %d of node %d sent something unasked on an idle connection: "
        "closed",
        link->server_pid, link->pool->cluster_node);
    link_close(link);
    return false;
}

static void link_on_ready(struct link *link, char tx_status, bool for_owner)
{
    link->tx_status = tx_status;
    if (!for_owner || link->owner == NULL)
        return;
    link->quiet_us = loop_now_us(link->be->loop);
    if (tx_status == 'I' && link->ready_as == 0)
        link->ntransactions++;
}

/* ReadyForQuery is on its way to an owner whose transaction is not (only) this link's. The bytes
 * are in our read buffer, which nobody reads again. */
static void link_tell_status(struct link *link, const char *body)
{
    if (link->ready_as != 0)
        link->be->read_buf[body - link->be->read_buf] = link->ready_as;
}

/* The reset that went out in front of the owner's first message failed, or is not what came back.
 */
static void link_fail_reset(struct link *link)
{
    link->pool->resets_work = false;
    link_fail_text(link, "08006", "server connection could not be reset (node %d, process %d)",
        link->pool->cluster_node, link->server_pid);
}

/* A whole message while the reset queries in front of the owner's first message are answered. What
 * the reset changed is news for the owner. Returns false when the link is gone. */
static bool link_on_reset_reply(
    struct link *link, struct link_run *run, char type, const char *msg, const char *end)
{
    struct slice body = message_body(slice_of(msg, (size_t)(end - msg)));
    bool fits = link_clean_is_answer(link, type, body);

    if (!fits || (type == BE_ERROR && !link_are_last_words(body)) ||
        (type == BE_READY && body.p[0] != 'I')) {
        link_fail_reset(link);
        return false;
    }
    if (type == BE_PARAMETER_STATUS && link->loan.tells < LINK_TELLS_NOTHING)
        link_run_add(run, link, msg, end);
    else if (type != BE_PARAMETER_STATUS && type != BE_ERROR)
        (void)expect_reply(&link->expect, type);
    if (type == BE_PARAMETER_STATUS)
        link_on_parameter(link, body);
    link_flush_run(link, run);
    if (type == BE_READY && link->phase == LINK_LENT && !link_awaits_reset(link))
        link_after_reply(link, type); /* an owner who has left may wait for nothing else */
    if (type == BE_READY && link->loan.cancel_due)
        link_cancel_look(link);
    return link->phase != LINK_CLOSED;
}

/* The server has ended a link that is nobody's. */
static void link_end_free(struct link *link)
{
    struct backend *be = link->be;
    int node = link->pool->cluster_node;

    log_at(LVL_DEBUG1, "idle connection to node %d (server process %d) was closed by the server",
        node, link->server_pid);
    link_close(link);
    if (be->on_free_ended != NULL)
        be->on_free_ended(be, node);
}

static void link_on_end(struct link *link, int errnum)
{
    if (link->phase == LINK_IDLE || link->phase == LINK_CLEANING) {
        link_end_free(link);
        return;
    }
    if (errnum == 0)
        link_fail_text(link, "08006", "server closed the connection unexpectedly (node %d)",
            link->pool->cluster_node);
    else
        link_fail_text(link, "08006", "connection to server was lost (node %d): %s",
            link->pool->cluster_node, strerror(errnum));
}

/* False: nobody can have asked for such a message, and the link is gone. */
static bool link_is_asked_for(struct link *link, char type, struct slice body, bool is_whole)
{
    switch ((enum link_phase)link->phase) {
    case LINK_IDLE:
        if (type == BE_NOTICE || type == BE_NOTIFICATION ||
            (type == BE_PARAMETER_STATUS && is_whole))
            return true;
        if (type != BE_ERROR)
            return link_unasked(link);
        link_end_free(link); /* its last words: the connection itself may end much later */
        return false;
    case LINK_CLEANING:
        return link_clean_is_answer(link, type, body) || link_unasked(link);
    default:
        if (!link_awaits_reset(link) || link_clean_is_answer(link, type, body))
            return true;
        link_fail_reset(link);
        return false;
    }
}

/* An error: who gets it, and in whose words. */
static void link_take_error(
    struct link *link, struct link_run *run, const char *msg, const char *end, struct slice body)
{
    bool failed = link->expect.failed;
    bool is_end = link_are_last_words(body);
    bool at_rest = link->phase == LINK_LENT && expect_is_quiet(&link->expect);
    bool for_owner;

    expect_note_error(&link->expect);
    if (is_end)
        for_owner = !expect_head_is_ours(&link->expect);
    else
        for_owner = link_answers_owner(link, msg, (size_t)(end - msg));
    link_flush_run(link, run); /* the owner may say it in other words */
    if (link->phase != LINK_CLOSED && link_on_error(link, msg, end, failed)) {
        for_owner = false;
        /* The session outlives it, and the connection itself may end much later: what the client
         * says from now on is for another link, or told that its transaction was lost. */
        if (is_end && at_rest)
            link_on_end(link, 0);
    }
    if (link->phase != LINK_CLOSED)
        link_take(link, run, msg, end, for_owner);
}

static void link_take_tag(
    struct link *link, struct link_run *run, const char *msg, const char *end, struct slice body)
{
    bool for_owner;

    if (link->owner != NULL && link->phase == LINK_LENT && link->ops->on_tag != NULL)
        link->ops->on_tag(link->owner, link, slice_of(body.p, body.n > 0 ? body.n - 1 : 0));
    if (link->phase == LINK_CLOSED)
        return;
    for_owner = link_answers_owner(link, msg, (size_t)(end - msg));
    link_take(link, run, msg, end, for_owner);
    if (for_owner)
        link->be->nrows += proto_tag_rows(msg, (uint32_t)body.n + 4);
}

static void link_take_ready(
    struct link *link, struct link_run *run, const char *msg, const char *end, struct slice body)
{
    char status = body.n == 1 ? body.p[0] : 0;
    bool for_owner = link_answers_owner(link, msg, (size_t)(end - msg));
    bool is_held = expect_is_last_held(&link->expect);

    if (is_held)
        link->expect.is_held = link->expect.len > 0;
    if (for_owner && !is_held && status != 0)
        link_tell_status(link, body.p);
    link_take(link, run, msg, end, for_owner && !is_held);
    if (status != 0)
        link_on_ready(link, status, for_owner || is_held);
}

/* Behind such a message: what is due by now. Returns false when the link is gone. */
static bool link_behind_whole(struct link *link, struct link_run *run, char type)
{
    const struct expect *owed = &link->expect;

    if (link->phase == LINK_CLOSED)
        return false;
    if (expect_is_made_due(owed))
        link_make_replies(link, run);
    if (type == BE_ERROR && expect_head_is_spare(owed))
        link_tell_no_wait(link);
    if (link->body_left == 0 &&
        (type == BE_READY || (owed->len == 0 && type != BE_PARAMETER_STATUS) ||
            (owed->lost && link->phase == LINK_CLEANING))) {
        link_flush_run(link, run);
        if (link->phase != LINK_CLOSED)
            link_after_reply(link, type);
        if (link->loan.cancel_due)
            link_cancel_look(link);
    }
    return link->phase != LINK_CLOSED;
}

/* One whole message that matters, or the beginning of an error that is too long: link->body_left is
 * still to come of it. Returns false when the link is gone. */
static bool link_on_whole(
    struct link *link, struct link_run *run, char type, const char *msg, const char *end)
{
    struct slice body = message_body(slice_of(msg, (size_t)(end - msg)));

    if (link->phase == LINK_LOGIN) {
        link_login_message(link, type, msg, (size_t)(end - msg));
        return link->phase != LINK_CLOSED && stream_fd(&link->stream) != -1;
    }
    if (link_awaits_reset(link))
        return link_on_reset_reply(link, run, type, msg, end);
    if (!link_is_asked_for(link, type, body, true))
        return false;
    switch (type) {
    case BE_READY:
        link_take_ready(link, run, msg, end, body);
        break;
    case BE_ERROR:
        link_take_error(link, run, msg, end, body);
        break;
    case BE_COMMAND_COMPLETE:
        link_take_tag(link, run, msg, end, body);
        break;
    default:
        ASSERT(type == BE_PARAMETER_STATUS);
        link_take(link, run, msg, end, link_is_for_owner(link, msg, (size_t)(end - msg)));
        link_on_parameter(link, body);
        break;
    }
    return link_behind_whole(link, run, type);
}

static bool link_bad_message(struct link *link, struct link_run *run)
{
    link_flush_run(link, run);
    link_fail_text(link, "08P01", "invalid message from server (node %d, process %d)",
        link->pool->cluster_node, link->server_pid);
    return false;
}

/* An error of which not all is collected: its beginning says which it is, and what it means is
 * noted before a byte of it goes anywhere. */
COLD APART static const char *link_on_long_error(
    struct link *link, struct link_run *run, const char *p, const char *end)
{
    size_t len = message_bytes(p);
    size_t have = (size_t)(end - p);

    if (have < LINK_COLLECT_MAX)
        return NULL;
    link->be->has_more = have > len ? link : NULL;
    if (have > len)
        have = len;
    link->body_left = (uint32_t)(len - have);
    link->swallow_body = true;
    return link_on_whole(link, run, BE_ERROR, p, p + have) ? p + have : NULL;
}

/* Who notified stands in a NotificationResponse as a server process. When that is the link's own,
 * it was the client that has the link now, and tied it to itself when it began to listen: it is
 * told the number that it goes by. False: not enough of the message is there. */
COLD APART static bool link_name_notifier(struct link *link, const char *p, size_t have)
{
    struct slice body = message_body(slice_of(p, have));
    int32_t told;

    if (message_length(p) < 8)
        return true;
    if (have < PROTO_HEADER_BYTES + 4)
        return false;
    if (link->phase != LINK_LENT || message_number(body) != (uint32_t)link->server_pid)
        return true;
    told = link_row_told_pid(link);
    if (told != 0)
        proto_put_u32(link->be->read_buf + (body.p - link->be->read_buf), (uint32_t)told);
    return true;
}

/* A message that is passed on as it comes, or its beginning, up to `end`. */
static void link_on_part(
    struct link *link, struct link_run *run, char type, const char *p, const char *end)
{
    bool for_owner = link_is_for_owner(link, p, (size_t)(end - p)) && link->owner != NULL;
    uint32_t len = message_length(p);

    link->body_left = len + 1U - (uint32_t)(end - p);
    link_take(link, run, p, end, for_owner);
    if (type == BE_COMMAND_COMPLETE && for_owner && link->body_left == 0)
        link->be->nrows += proto_tag_rows(p, len);
    if (type == BE_COPY_IN && link->phase == LINK_CLEANING)
        link_clean_copy_in(link);
    if (expect_is_made_due(&link->expect))
        link_make_replies(link, run);
    if (link->expect.len == 0 && link->body_left == 0 && type != BE_NOTICE &&
        type != BE_NOTIFICATION) {
        link_flush_run(link, run);
        if (link->phase != LINK_CLOSED)
            link_after_reply(link, type);
    }
    if (type == BE_COPY_IN && link->phase == LINK_LENT) {
        link_flush_run(link, run);
        link_tell_no_wait(link);
    }
}

/* What a server says beside its answers goes to the owner when it is all there: it may come while
 * nothing is owed, and what we answer ourselves meanwhile would be taken for a part of it. */
static bool link_says_beside(const struct link *link, char type, uint32_t len)
{
    return link->phase == LINK_LENT && len <= LINK_COLLECT_MAX &&
           (type == BE_NOTIFICATION || type == BE_NOTICE);
}

/* Starts one message at `p`. Returns where to go on, or NULL to stop: the rest is carried over, or
 * the link is gone. */
WARM APART static const char *link_on_header(
    struct link *link, struct link_run *run, const char *p, const char *end)
{
    uint32_t len = message_length(p);
    char type = p[0];
    size_t have = (size_t)(end - p);

    if (len < 4 || len > INT32_MAX)
        return link_bad_message(link, run), NULL;
    if (type == BE_ERROR && len - 4 > LINK_COLLECT_MAX)
        return link_on_long_error(link, run, p, end);
    if (link_wants_whole(link, type, len - 4)) {
        if (link->phase == LINK_LOGIN && len > LINK_COLLECT_MAX)
            return link_bad_message(link, run), NULL;
        if (have < len + 1U)
            return NULL;
        link->be->has_more = have > len + 1U ? link : NULL;
        return link_on_whole(link, run, type, p, p + len + 1U) ? p + len + 1U : NULL;
    }
    if (have < len + 1U && link_says_beside(link, type, len))
        return NULL;
    if ((type == BE_NOTIFICATION && !link_name_notifier(link, p, have)) ||
        !link_is_asked_for(link, type, slice_of(p + PROTO_HEADER_BYTES, 0), false))
        return NULL;
    if (have < len + 1U && link->expect.is_seen && link_see_waits(link, type, len + (size_t)1))
        return NULL;
    if (have > len + 1U)
        have = len + 1U;
    link_on_part(link, run, type, p, p + have);
    return link->phase == LINK_CLOSED ? NULL : p + have;
}

/* The rest of a body that began in an earlier read. */
static const char *link_on_body(
    struct link *link, struct link_run *run, const char *p, const char *end)
{
    size_t take = (size_t)(end - p);

    if (take > link->body_left)
        take = link->body_left;
    link->body_left -= (uint32_t)take;
    if (link->seeing != LINK_SEEING_NOTHING)
        link_see_body(link, p, take);
    if (!link->swallow_body) {
        link->in_body = (uint32_t)take;
        link_run_add(run, link, p, p + take);
    }
    if (expect_is_made_due(&link->expect))
        link_make_replies(link, run);
    if (link->body_left == 0 && link->expect.len == 0) {
        link_flush_run(link, run);
        if (link->phase != LINK_CLOSED)
            link_after_reply(link, 0);
    }
    return link->phase == LINK_CLOSED ? NULL : p + take;
}

/* Whole messages at `p` that the client gets and nobody has to look at: most are. Returns where
 * others begin. */
static const char *link_pass_on(
    struct link *link, struct link_run *run, const char *p, const char *end)
{
    const char *from = p;

    if (link->phase != LINK_LENT)
        return p;
    p = expect_pass(&link->expect, p, end, link->loan.tells == LINK_TELLS_ALL, &link->be->nrows);
    if (p != from)
        link_run_add(run, link, from, p);
    return p;
}

/* What most reads end with: ReadyForQuery for the owner, behind which nothing is owed, and nothing
 * of ours is to be done about it. True: the link is quiet, or gone. */
static bool link_pass_end(struct link *link, struct link_run *run, const char *p, const char *end)
{
    if (end - p != PROTO_HEADER_BYTES + 1 || *p != BE_READY || message_length(p) != 5 ||
        link->phase != LINK_LENT || link->owner == NULL || link->loan.cancel_due ||
        link->ready_as != 0 || link_awaits_reset(link) || !expect_pass_last(&link->expect))
        return false;
    link->be->has_more = NULL; /* a message in front may have been looked at */
    link_run_add(run, link, p, end);
    link_on_ready(link, p[PROTO_HEADER_BYTES], true);
    link_flush_run(link, run);
    if (link->phase != LINK_CLOSED)
        link_after_reply(link, BE_READY);
    if (link->loan.cancel_due)
        link_cancel_look(link);
    return true;
}

static void link_feed(struct link *link, const char *p, const char *end)
{
    struct link_run run = {NULL, NULL, 0};
    const char *next;

    while (p < end) {
        if (link->body_left == 0)
            p = link_pass_on(link, &run, p, end);
        if (p == end)
            break;
        if (link->body_left == 0 && link_pass_end(link, &run, p, end))
            return;
        if (link->body_left > 0)
            next = link_on_body(link, &run, p, end);
        else if (end - p < PROTO_HEADER_BYTES)
            break;
        else
            next = link_on_header(link, &run, p, end);
        if (link->phase == LINK_CLOSED)
            return;
        if (next == NULL)
            break;
        p = next;
    }
    link_flush_run(link, &run);
    link->be->has_more = NULL;
    if (link->phase != LINK_CLOSED && p < end)
        link_carry(link, slice_of(p, (size_t)(end - p)));
}

HOT void link_on_readable(struct stream *s)
{
    struct link *link = LIST_ENTRY(s, struct link, stream);
    char *buf = link->be->read_buf;
    bool is_carried = link->carry != NULL && link->seeing == LINK_SEEING_NOTHING;
    size_t carried = is_carried ? link->carry->len : 0;
    ssize_t n;

    ASSERT(carried <= BACKEND_CARRY_MAX);
    if (carried > 0)
        memcpy(buf, link->carry->data, carried);
    n = stream_recv(s, buf + carried, BACKEND_TAKE_BYTES);
    if (n == 0)
        return;
    if (n == -1) {
        link_on_end(link, errno);
        return;
    }
    if (is_carried)
        link_carry_free(link);
    link->be->nrows = 0;
    link_feed(link, buf, buf + carried + (size_t)n);
}
