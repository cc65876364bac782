/* SPDX-License-Identifier: PostgreSQL
 * expect.c: the queue of replies a server owes. */
#include "config.h"

#include "backend/expect.h"

#include <string.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/mem.h"
#include "wire/message.h"

/* Messages without a reply that are followed. */
#define EXPECT_MAX (1U << 22)

unsigned expect_op_of(char type)
{
    switch (type) {
    case FE_PARSE:
        return OP_PARSE;
    case FE_BIND:
        return OP_BIND;
    case FE_DESCRIBE:
        return OP_DESCRIBE;
    case FE_EXECUTE:
        return OP_EXECUTE;
    case FE_CLOSE:
        return OP_CLOSE;
    case FE_SYNC:
        return OP_SYNC;
    default:
        return 0;
    }
}

void expect_init(struct expect *e)
{
    memset(e, 0, sizeof *e);
    e->op = e->fixed;
    e->cap = EXPECT_INLINE;
}

void expect_fini(struct expect *e)
{
    if (e->op != e->fixed)
        mem_free(e->op);
    expect_init(e);
}

static inline unsigned expect_at(const struct expect *e, unsigned i)
{
    return e->op[expect_place(e, i)];
}

static void expect_grow(struct expect *e)
{
    unsigned cap = e->cap * 2U;
    uint16_t *op;
    unsigned i;

    if (cap > EXPECT_MAX) {
        e->lost = true; /* follow no more, close at release */
        return;
    }
    op = mem_alloc(cap * sizeof *op);
    for (i = 0; i < e->len; i++)
        op[i] = (uint16_t)expect_at(e, i);
    if (e->op != e->fixed)
        mem_free(e->op);
    e->op = op;
    e->cap = (uint32_t)cap;
    e->head = 0;
}

static void expect_note(struct expect *e, bool ok)
{
    if (e->nnotes == 64) {
        e->lost = true; /* nobody took the notes: nobody knows what the server knows */
        return;
    }
    e->notes |= (uint64_t)ok << e->nnotes++;
}

HOT unsigned expect_take_notes(struct expect *e, uint64_t *worked)
{
    unsigned n = e->nnotes;

    *worked = e->notes;
    e->nnotes = 0;
    e->notes = 0;
    return n;
}

WARM static void expect_pop(struct expect *e, bool ok)
{
    ASSERT(e->len > 0);
    if ((expect_at(e, 0) & OP_NOTE) != 0)
        expect_note(e, ok);
    if ((expect_at(e, 0) & OP_MASK) == OP_SYNC)
        e->failed = false;
    e->head = expect_place(e, 1);
    e->len--;
    e->nended++;
    e->last = 0;
    /* A CopyDone that nothing waits for any more is ignored by the server, and by us. */
    while (e->len > 0 && (expect_at(e, 0) & OP_MASK) == OP_COPY_END && !e->copy_in)
        e->head = expect_place(e, 1), e->len--, e->nended++;
    if (e->len == 0 && e->op != e->fixed) {
        mem_free(e->op);
        e->op = e->fixed;
        e->cap = EXPECT_INLINE;
        e->head = 0;
    }
}

void expect_push_any(struct expect *e, unsigned op)
{
    unsigned kind = op & OP_MASK;

    ASSERT((op & OP_SEEN) == 0 || kind < OP_SYNC);
    /* The Syncs in front of the end of a COPY's data were ignored. */
    if (kind != OP_COPY_END)
        e->pushed = (uint16_t)op;
    else if (expect_ends_in_execute(e))
        e->pushed = OP_EXECUTE;
    if (e->lost)
        return;
    if (e->skipping) {
        if (kind != OP_SYNC) {
            if ((op & OP_NOTE) != 0)
                expect_note(e, false);
            return;
        }
        e->skipping = false;
    }
    if (kind == OP_COPY_END && e->len == 0)
        return;
    if (e->len == e->cap) {
        expect_grow(e);
        if (e->lost)
            return;
    }
    e->op[expect_place(e, e->len)] = (uint16_t)op;
    e->len++;
    e->is_seen = e->is_seen || (op & OP_SEEN) != 0;
}

/* Counts the Syncs between the running COPY and its end that the server ignores while it copies. */
static unsigned expect_count_copy_syncs(const struct expect *e, unsigned *end_at)
{
    unsigned n = 0;
    unsigned i;

    for (i = 1; i < e->len; i++) {
        if ((expect_at(e, i) & OP_MASK) == OP_COPY_END)
            break;
        if ((expect_at(e, i) & OP_MASK) == OP_SYNC)
            n++;
    }
    *end_at = i;
    return n;
}

unsigned expect_count_copied(const struct expect *e)
{
    unsigned end_at = 0;

    if (e->copy_in)
        (void)expect_count_copy_syncs(e, &end_at);
    return end_at < e->len ? end_at : e->len - 1;
}

/* The COPY at the head is over and well: drops the ignored Syncs and the end marker behind it.
 * Other messages in there would have made the server fail it. */
static void expect_finish_copy(struct expect *e)
{
    unsigned end_at;
    unsigned keep;
    unsigned i;

    (void)expect_count_copy_syncs(e, &end_at);
    e->copy_in = false;
    if (end_at < e->len)
        end_at++;
    keep = e->len - end_at;
    for (i = 0; i < keep; i++)
        e->op[expect_place(e, 1 + i)] = (uint16_t)expect_at(e, end_at + i);
    e->nended += e->len - (uint32_t)(1U + keep);
    e->len = (uint32_t)(1U + keep);
}

/* Counts the client's Syncs from a place on, with nothing but ends of COPY data between them; *end:
 * the place behind. */
static unsigned expect_count_lead(const struct expect *e, unsigned from, unsigned *end)
{
    unsigned n = 0;
    unsigned i;

    for (i = from; i < e->len; i++) {
        if (expect_at(e, i) == OP_SYNC)
            n++;
        else if ((expect_at(e, i) & OP_MASK) != OP_COPY_END)
            break;
    }
    *end = i;
    return n;
}

/* The COPY at the head has failed: any number of the Syncs sent to it may have been read before. */
static void expect_blur(struct expect *e)
{
    unsigned end_at;
    unsigned n = expect_count_copy_syncs(e, &end_at);

    e->copy_in = false;
    if (n == 0)
        return;
    /* Whether something else among them was read, too, would be one question more. */
    if (n != end_at - 1 || n > UINT8_MAX) {
        e->lost = true;
        return;
    }
    while (end_at > 1 && expect_at(e, end_at - 1) == OP_SYNC)
        end_at--;
    e->lost = end_at > 1; /* one of our own: its answer is told from the client's by its place */
    e->spare = (uint8_t)n;
}

static bool expect_has_sync(const struct expect *e, unsigned from)
{
    for (; from < e->len; from++)
        if ((expect_at(e, from) & OP_MASK) == OP_SYNC)
            return true;
    return false;
}

/* What a reply says about spare Syncs. The sure ones behind them are answered with the same
 * ReadyForQuery, so these are taken to come first. */
static void expect_sharpen(struct expect *e, char type)
{
    unsigned end;
    unsigned n = expect_count_lead(e, 0, &end);
    unsigned next = end < e->len ? expect_at(e, end) & OP_MASK : 0;

    if (n == 0 || n > e->spare)
        return;
    /* A reply made here has no place of its own, and a Sync of ours would be answered as a spare
     * one. While the server skips, it may do so up to a Sync behind other messages. */
    if (next == OP_SYNC || next >= OP_MADE_PARSED || (e->failed && expect_has_sync(e, end))) {
        e->lost = true;
    } else if (type == BE_READY) {
        e->spare--;
    } else if (next == 0 || e->failed) {
        e->lost = true;
    } else {
        e->spare = 0; /* it is the answer to what is behind them */
        while ((expect_at(e, 0) & OP_MASK) == OP_SYNC)
            expect_pop(e, true);
    }
}

/* An error: ends the op at the head, and in the extended protocol all up to the next Sync. */
static void expect_on_error(struct expect *e)
{
    unsigned kind = expect_at(e, 0) & OP_MASK;

    e->refused = e->nended;
    if (e->copy_in)
        expect_blur(e);
    if (kind == OP_QUERY || kind == OP_FUNCTION_CALL || kind == OP_SYNC)
        return; /* ReadyForQuery comes all the same */
    e->failed = true;
    while (e->len > 0 && (expect_at(e, 0) & OP_MASK) != OP_SYNC)
        expect_pop(e, false);
    if (e->len == 0)
        e->skipping = true;
}

/* True when a reply of `type` ends an op of `kind`; *belongs when it is a reply to it at all. */
static bool expect_ends(unsigned kind, char type, bool *belongs)
{
    *belongs = true;
    switch (kind) {
    case OP_QUERY:
    case OP_FUNCTION_CALL:
    case OP_SYNC:
        if (kind == OP_SYNC && type != BE_READY)
            *belongs = false;
        return type == BE_READY;
    case OP_PARSE:
        *belongs = type == BE_PARSE_COMPLETE;
        return true;
    case OP_BIND:
        *belongs = type == BE_BIND_COMPLETE;
        return true;
    case OP_CLOSE:
        *belongs = type == BE_CLOSE_COMPLETE;
        return true;
    case OP_DESCRIBE:
        if (type == BE_PARAMETER_DESCRIPTION)
            return false;
        *belongs = type == BE_ROW_DESCRIPTION || type == BE_NO_DATA;
        return true;
    case OP_EXECUTE:
        if (type == BE_COMMAND_COMPLETE || type == BE_EMPTY_QUERY || type == BE_PORTAL_SUSPENDED)
            return true;
        *belongs = type == BE_DATA_ROW || type == BE_COPY_IN || type == BE_COPY_OUT ||
                   type == BE_COPY_BOTH || type == BE_COPY_DATA || type == BE_COPY_DONE;
        return false;
    default:
        *belongs = false;
        return false;
    }
}

WARM enum expect_verdict expect_reply(struct expect *e, char type)
{
    enum expect_verdict verdict;
    unsigned op;
    bool belongs;
    bool ends;

    if (e->lost || e->len == 0)
        return EXPECT_FORWARD; /* e.g. a FATAL while idle: the end of the link follows */
    if (e->spare > 0)
        expect_sharpen(e, type);
    if (e->lost)
        return EXPECT_FORWARD;
    op = expect_at(e, 0);
    e->last = type;
    verdict = (op & (OP_SWALLOW | OP_QUIET)) != 0 ? EXPECT_SWALLOW : EXPECT_FORWARD;
    if (type == BE_ERROR) {
        if ((op & OP_QUIET) != 0)
            verdict = EXPECT_FORWARD;
        expect_on_error(e);
        return verdict;
    }
    ends = expect_ends(op & OP_MASK, type, &belongs);
    if (!belongs) {
        e->lost = true;
        return verdict;
    }
    if (type == BE_COPY_IN) {
        e->copy_in = true;
    } else if (e->copy_in && (type == BE_COMMAND_COMPLETE || type == BE_READY)) {
        expect_finish_copy(e);
    }
    if (ends)
        expect_pop(e, true);
    return verdict;
}

/* What ends an op mostly; 0: expect_reply is to judge. */
static const char ends[OP_MASK + 1] = {[OP_PARSE] = BE_PARSE_COMPLETE,
    [OP_BIND] = BE_BIND_COMPLETE,
    [OP_DESCRIBE] = BE_ROW_DESCRIPTION,
    [OP_EXECUTE] = BE_COMMAND_COMPLETE};

/* A reply in the midst of what an op owes. `op` has no flags, or is none of these. */
static inline bool expect_goes_on(unsigned op, char type)
{
    if (op == OP_EXECUTE)
        return type == BE_DATA_ROW;
    return op == OP_QUERY &&
           (type == BE_DATA_ROW || type == BE_ROW_DESCRIPTION || type == BE_COMMAND_COMPLETE);
}

/* Rows and the like of an op whose tags the owner sees. */
static inline bool expect_goes_on_tagged(unsigned op, char type)
{
    return (op & OP_TAGS) != 0 && type != BE_COMMAND_COMPLETE &&
           expect_goes_on(op & ~(unsigned)OP_TAGS, type);
}

/* A reply that ends `op`, when it takes not all of expect_pop: what is behind it, `next`, is no end
 * of a COPY, and it is no Sync. */
static inline bool expect_ends_plainly(unsigned op, unsigned next, char type)
{
    return type != 0 && (op & ~(unsigned)(OP_MASK | OP_NOTE)) == 0 && ends[op & OP_MASK] == type &&
           (next & OP_MASK) < OP_COPY_END;
}

HOT const char *expect_pass(
    struct expect *e, const char *p, const char *end, bool stops_at_tags, uint64_t *nrows)
{
    const uint16_t *ops = e->op;
    uint32_t head = e->head;
    uint32_t left = e->len;
    char last = e->last;
    uint32_t next;
    uint32_t n;
    unsigned op;

    if (e->lost || e->copy_in)
        return p;
    while (end - p >= PROTO_HEADER_BYTES && left > 0) {
        op = ops[head];
        n = message_length(p);
        if (n < 4 || n >= (size_t)(end - p) || (stops_at_tags && *p == BE_COMMAND_COMPLETE))
            break;
        if (expect_goes_on(op, *p) || expect_goes_on_tagged(op, *p)) {
            last = *p;
        } else {
            next = head + 1 < e->cap ? head + 1 : 0;
            if (left < 2 || !expect_ends_plainly(op, ops[next], *p))
                break;
            if ((op & OP_NOTE) != 0)
                expect_note(e, true);
            head = next;
            left--;
            last = 0;
        }
        if (*p == BE_COMMAND_COMPLETE)
            *nrows += proto_tag_rows(p, n);
        p += n + 1;
    }
    e->nended += e->len - left;
    e->head = head;
    e->len = left;
    e->last = last;
    return p;
}

char expect_take_made(struct expect *e)
{
    unsigned op;

    if (e->lost || !expect_is_made_due(e))
        return 0;
    op = expect_at(e, 0) & OP_MASK;
    expect_pop(e, true);
    return op == OP_MADE_PARSED ? BE_PARSE_COMPLETE : BE_CLOSE_COMPLETE;
}

unsigned expect_peek(const struct expect *e, unsigned i)
{
    ASSERT(i < e->len);
    return expect_at(e, i);
}

bool expect_is_copying(const struct expect *e)
{
    unsigned end_at = 0;

    if (!e->copy_in || e->lost)
        return false;
    (void)expect_count_copy_syncs(e, &end_at);
    return end_at >= e->len;
}

bool expect_ignores_sync(const struct expect *e)
{
    unsigned end_at = 0;

    return e->copy_in && !e->lost && expect_count_copy_syncs(e, &end_at) > 0 && end_at >= e->len;
}

bool expect_ends_in_execute(const struct expect *e)
{
    unsigned kind = OP_SYNC;
    uint32_t i = e->len;

    while (i > 0 && (kind == OP_SYNC || kind == OP_COPY_END))
        kind = expect_at(e, --i) & OP_MASK;
    return kind == OP_EXECUTE;
}

bool expect_may_blur(const struct expect *e)
{
    unsigned i;

    for (i = 0; i < e->len; i++)
        if ((expect_at(e, i) & OP_MASK) == OP_COPY_END)
            return true;
    return e->spare > 0 || e->copy_in;
}

bool expect_head_is_spare(const struct expect *e)
{
    unsigned end;

    return e->spare > 0 && !e->lost && expect_count_lead(e, 0, &end) == e->spare;
}

HOT bool expect_may_ask(const struct expect *e)
{
    unsigned end;

    return e->spare > 0 && !e->lost && !e->failed && expect_count_lead(e, 0, &end) == e->spare &&
           end == e->len;
}

bool expect_is_last_held(const struct expect *e)
{
    return e->holds && !e->is_held && (e->len == 0 || expect_may_ask(e));
}

/* Takes `n` of the client's Syncs out that are behind the first `at` ops. */
static void expect_drop_syncs(struct expect *e, unsigned at, unsigned n)
{
    unsigned to = at;
    unsigned i;

    for (i = at; i < e->len; i++) {
        if (n > 0 && expect_at(e, i) == OP_SYNC)
            n--;
        else
            e->op[expect_place(e, to++)] = (uint16_t)expect_at(e, i);
    }
    e->nended += e->len - to;
    e->len = to;
}

/* What was asked behind it, or a part of that, was answered: its Sync stands for the end that is
 * held back, whose error was told. */
static void expect_owe_held(struct expect *e)
{
    while (e->len > 1 && (expect_at(e, 0) & OP_MASK) != OP_SYNC)
        expect_pop(e, false);
    e->op[e->head] = OP_SYNC;
    e->failed = true;
}

/* The server has read data of a COPY up to its end, and perhaps every Sync in it. Its error is then
 * followed up to the Sync behind the end of the data: else two would be answered where the server
 * would have answered one. One Sync has to be left where the client has sent more without that, or
 * is owed an end that was held back. */
void expect_on_end(struct expect *e)
{
    bool skips = e->copy_in ? expect_head(e) == OP_EXECUTE : e->failed;
    unsigned at = expect_head(e) == OP_SYNC ? 0 : 1;
    unsigned nsyncs;
    unsigned end;
    bool may_leave_none;

    if (e->copy_in)
        expect_blur(e);
    if (e->is_held && !e->lost && e->spare == 0 && e->len > 0)
        expect_owe_held(e);
    if (e->lost || e->spare == 0)
        return;
    nsyncs = expect_count_lead(e, at, &end);
    may_leave_none = end == e->len && !e->is_held;
    if (e->is_held && !skips && at == 0 && nsyncs == e->spare)
        skips = e->failed = true; /* its error was told */
    if (skips && nsyncs == e->spare && !may_leave_none)
        e->spare--;
    expect_drop_syncs(e, at, e->spare);
    e->spare = 0;
    if (skips && e->len == 0) /* what is left of the COPY is to be skipped */
        e->op[expect_place(e, e->len++)] = OP_COPY_END;
}

WARM bool expect_is_stuck(const struct expect *e)
{
    return e->lost || (e->failed && expect_head_is_spare(e));
}

unsigned expect_head(const struct expect *e)
{
    return e->len == 0 ? 0 : expect_at(e, 0) & OP_MASK;
}

unsigned expect_count_teed(const struct expect *e)
{
    unsigned n = 0;
    uint32_t i;

    for (i = 0; i < e->len; i++)
        n += (expect_at(e, i) & OP_TEE) != 0;
    return n;
}

void expect_note_error(struct expect *e)
{
    if (expect_head_is_ours(e))
        e->own_error = EXPECT_OWN_FAILS;
    else if (e->own_error == EXPECT_OWN_FAILS)
        e->own_error = EXPECT_OWN_FAILED;
}

bool expect_head_is_ours(const struct expect *e)
{
    return e->len > 0 && (expect_at(e, 0) & OP_SWALLOW) != 0;
}

bool expect_head_is_quiet(const struct expect *e)
{
    return e->len > 0 && (expect_at(e, 0) & (OP_SWALLOW | OP_QUIET)) != 0;
}

bool expect_head_has_done(const struct expect *e)
{
    return expect_head(e) == OP_QUERY &&
           (e->last == BE_COMMAND_COMPLETE || e->last == BE_EMPTY_QUERY);
}

static bool ends_with_ready(unsigned kind)
{
    return kind == OP_SYNC || kind == OP_QUERY || kind == OP_FUNCTION_CALL;
}

bool expect_owes_ready(const struct expect *e)
{
    uint32_t i;

    if (expect_is_stuck(e) && !e->lost)
        return false;
    for (i = 0; i + 1 < e->len; i++)
        if (ends_with_ready(expect_at(e, i) & OP_MASK))
            return true;
    return false;
}

bool expect_exchange_is_ours(const struct expect *e)
{
    uint32_t i;

    for (i = 0; i < e->len; i++) {
        if ((expect_at(e, i) & OP_SWALLOW) == 0)
            return false;
        if (ends_with_ready(expect_at(e, i) & OP_MASK))
            break;
    }
    return e->len > 0;
}

void expect_hush(struct expect *e, unsigned nkept)
{
    uint32_t i = e->len;

    while (i > nkept && !ends_with_ready(expect_at(e, i - 1) & OP_MASK)) {
        i--;
        if ((expect_at(e, i) & OP_SWALLOW) == 0)
            e->op[expect_place(e, i)] |= OP_QUIET;
    }
}

HOT bool expect_is_open(const struct expect *e)
{
    return e->skipping || (e->pushed != 0 && !ends_with_ready(e->pushed & OP_MASK));
}

bool expect_needs_sync(const struct expect *e)
{
    if (e->skipping || (expect_is_stuck(e) && !e->lost))
        return true;
    return e->len > 0 && !ends_with_ready(expect_at(e, e->len - 1U) & OP_MASK);
}
