/* SPDX-License-Identifier: PostgreSQL
 * expect.h: which replies a server link still owes, in order. Pure.
 * Runs in: workers. Every message sent to a server pushes one op; every reply is matched with the
 * op at the head. So the link knows when it is quiet, and the replies to messages that we put in
 * ourselves are swallowed by position, not by guess.
 *
 * The server's rules that are modelled: after an error in the extended protocol everything up to
 * the next Sync is skipped; an error in a simple query or function call skips nothing; while COPY
 * FROM STDIN runs, Sync and Flush are ignored. One thing cannot be known from outside: which of the
 * Syncs sent during a COPY that failed were read before the failure. So many of those at the head
 * are `spare` then: perhaps they are answered, perhaps not. The reply to whatever is behind them
 * tells, and if that is nothing, a question of our own (decisions/0001). Where that cannot tell,
 * and when a reply does not fit, the queue is `lost`: everything is forwarded, and the link must be
 * closed instead of being reused. */
#ifndef PGP_BACKEND_EXPECT_H
#define PGP_BACKEND_EXPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/proto.h"

#define EXPECT_INLINE 10

/* What was sent, and who hears of the answer: the client, unless a flag says otherwise. */
enum expect_op {
    OP_QUERY = 1,
    OP_FUNCTION_CALL,
    OP_PARSE,
    OP_BIND,
    OP_DESCRIBE, /* of a statement or a portal */
    OP_EXECUTE,
    OP_CLOSE,
    OP_SYNC,
    OP_COPY_END, /* CopyDone or CopyFail: owed no reply of its own */
    /* Nothing was sent: the reply is made here when its turn comes. */
    OP_MADE_PARSED, /* ParseComplete */
    OP_MADE_CLOSED, /* CloseComplete */
    OP_MASK = 0x0F,
    OP_CUT = 0x10, /* a Sync of ours in place of a Flush: the client's sequence goes on behind it */
    OP_NOTE = 0x20,    /* the owner wants to know whether it worked: expect_take_notes */
    OP_QUIET = 0x40,   /* the replies are ours unless it is an error: that goes to the client */
    OP_SWALLOW = 0x80, /* the replies are ours: not for the client */
    /* The owner sees whole messages of the answer, whoever it is for (link_owner_ops); not with
     * OP_SYNC, OP_COPY_END and OP_MADE_... */
    OP_TEE = 0x100,     /* all of them: on_tee */
    OP_ROWS = 0x200,    /* DataRow: on_own_row */
    OP_COLUMNS = 0x400, /* ParameterDescription, RowDescription, NoData: on_columns */
    OP_SEEN = OP_TEE | OP_ROWS | OP_COLUMNS,
    OP_TAGS = 0x800 /* the owner sees CommandComplete before it is passed on: on_tag */
};

/* What became of messages of our own, those with OP_SWALLOW. */
enum expect_own_error {
    EXPECT_OWN_FINE,   /* none has met an error since that was forgotten */
    EXPECT_OWN_FAILED, /* one has */
    EXPECT_OWN_FAILS   /* one has, and this is the last error that came */
};

struct expect {
    uint16_t *op;   /* ring: `fixed` or heap */
    uint64_t notes; /* of ops with OP_NOTE that have ended, oldest at bit 0; 1: it worked */
    uint32_t cap;
    uint32_t head;
    uint32_t len;
    uint32_t nended;   /* ops that are over, however; modulo 2^32 */
    uint32_t refused;  /* serial of the op that the last error was an answer to */
    bool skipping : 1; /* an error was seen and no Sync is queued: the server ignores what comes */
    bool failed : 1;   /* an error was seen, and the ReadyForQuery of its Sync was not */
    bool holds : 1;    /* the last ReadyForQuery that is owed is not passed on: see expect_hold */
    bool is_held : 1;  /* a ReadyForQuery came that was not told, and spare ones may follow */
    bool
        is_asked : 1; /* all else is answered: what is under way is our question about spare ones */
    bool is_seen : 1; /* an op of OP_SEEN may be among what is owed */
    uint8_t own_error : 2; /* enum expect_own_error */
    bool copy_in;          /* CopyInResponse was seen for the op at the head */
    bool lost;
    char last;       /* the last reply to the op at the head; 0: none yet */
    uint8_t nnotes;  /* how many bits of `notes` there are */
    uint8_t spare;   /* so many of the Syncs that come next were ignored by a COPY, or were not */
    uint16_t pushed; /* the last op, answered or not; 0: none yet */
    uint16_t fixed[EXPECT_INLINE];
};

enum expect_verdict { EXPECT_FORWARD, EXPECT_SWALLOW };

/* Makes an empty queue, and frees what a queue holds (leaving it empty). */
/* What a server owes for a message of the extended protocol; 0: nothing. */
unsigned expect_op_of(char type);
void expect_init(struct expect *e);
void expect_fini(struct expect *e);
/* A message was sent. `op` may carry OP_SWALLOW. */
static inline void expect_push(struct expect *e, unsigned op);
/* A reply of `type` arrived (not NoticeResponse, NotificationResponse, ParameterStatus: those
 * belong to nobody). */
enum expect_verdict expect_reply(struct expect *e, char type);
/* Takes most replies in fewer steps than expect_reply: the whole messages at `p` that are for the
 * client, while something that the server will answer is owed behind them. Returns where the first
 * one is that expect_reply is to judge; with `stops_at_tags` CommandComplete is one. Adds the
 * numbers of rows that command tags tell to *nrows. */
const char *expect_pass(
    struct expect *e, const char *p, const char *end, bool stops_at_tags, uint64_t *nrows);
/* Takes ReadyForQuery in fewer steps than expect_reply: true when it is for the client, and nothing
 * is owed any more. Not while the end of what is owed is on hold. */
static inline bool expect_pass_last(struct expect *e);
/* True when nothing is owed: a ReadyForQuery was the last thing and nothing was sent since. */
static inline bool expect_is_quiet(const struct expect *e)
{
    return e->len == 0 && !e->skipping && !e->lost;
}
/* The reply that is to be made here now: its type, and its op is done with; 0: none is due. */
char expect_take_made(struct expect *e);
/* How many ops with OP_NOTE have ended since the last call (at most 64 are remembered), and which
 * of them worked: the oldest is bit 0. */
unsigned expect_take_notes(struct expect *e, uint64_t *worked);
/* Holds the end of what is owed, and of what is sent until all of it is answered: the client gets
 * its answers, but not the last ReadyForQuery. The owner, who hears of the outcome first, says that
 * itself. expect_take_hold ends the hold: was there one? */
static inline void expect_hold(struct expect *e)
{
    e->holds = true;
}
static inline bool expect_take_hold(struct expect *e)
{
    bool held = e->holds;

    e->holds = false;
    return held;
}
/* True when the ReadyForQuery that expect_reply has just seen is that: the last one that is surely
 * owed. Behind one that was held back already it is a spare one. */
bool expect_is_last_held(const struct expect *e);
/* Forgets them: whoever asked has gone. */
static inline void expect_drop_notes(struct expect *e)
{
    e->nnotes = 0;
    e->notes = 0;
}
/* True when a reply made here is due. */
static inline bool expect_is_made_due(const struct expect *e)
{
    return e->len > 0 && (e->op[e->head] & OP_MASK) >= OP_MADE_PARSED;
}
/* The op `i` places behind the head, with its flags; `i` below e->len. For who has to answer what a
 * dead link owes. */
unsigned expect_peek(const struct expect *e, unsigned i);
/* Numbers of ops in the order of their pushes: of the next one, and of the one at the head. */
static inline uint32_t expect_next_serial(const struct expect *e)
{
    return e->nended + e->len;
}
static inline uint32_t expect_head_serial(const struct expect *e)
{
    return e->nended;
}
/* The ops that the last error ended or made the server skip: from that of e->refused up to but
 * not including this one. While e->skipping more follow. */
static inline uint32_t expect_error_end(const struct expect *e)
{
    return e->nended == e->refused ? e->nended + 1 : e->nended;
}
/* True when Syncs that are queued may turn out to be spare, or have: a reply that is made here
 * would have no place of its own behind them. */
bool expect_may_blur(const struct expect *e);
/* True when it is known which replies come. */
static inline bool expect_is_certain(const struct expect *e)
{
    return !e->lost && e->spare == 0;
}
/* True when the ReadyForQuery that comes next, if one does, is that of a spare Sync. */
bool expect_head_is_spare(const struct expect *e);
/* True when that is all: a Close of ours would be answered, and tell. */
bool expect_may_ask(const struct expect *e);
/* True while it is: what follows is better sent when its answer is there, alone. */
static inline bool expect_is_asked(const struct expect *e)
{
    return e->is_asked && !e->lost && e->len > 0;
}
/* True when it is of no use to wait for the end of what is owed: a COPY has failed, and perhaps the
 * server has read all Syncs before that and skips what it gets up to another. Or it is lost. */
bool expect_is_stuck(const struct expect *e);
/* The server is gone: of what was sent to a COPY that it never ended, or that failed, so little is
 * owed as may be, but what is held back was not told. */
void expect_on_end(struct expect *e);
/* True while the server waits for COPY data and the end of them was not sent: what is sent now
 * meets the COPY. */
bool expect_is_copying(const struct expect *e);
/* With a COPY at the head that ends well now so many ops behind it will be over, too: the end of
 * its data, and the Syncs that were ignored. The serial of the head goes on by as many. */
unsigned expect_count_copied(const struct expect *e);
/* True while expect_is_copying says so and a Sync is among what was sent behind the COPY: should
 * that fail, nobody can tell whether the Sync was read before. */
bool expect_ignores_sync(const struct expect *e);
/* True when an Execute is owed with nothing but Syncs and ends of COPY data behind it: if it copies
 * in, or will, the server ignores these Syncs, and its sequence goes on behind the data. */
bool expect_ends_in_execute(const struct expect *e);
/* The op at the head without flags, 0 when nothing is owed. */
unsigned expect_head(const struct expect *e);
/* True when the op at the head has OP_TEE; takes that from it; how many ops that are owed have it.
 */
static inline bool expect_head_is_teed(const struct expect *e)
{
    return e->len > 0 && (e->op[e->head] & OP_TEE) != 0;
}
static inline bool expect_head_tells_tags(const struct expect *e)
{
    return e->len > 0 && (e->op[e->head] & OP_TAGS) != 0;
}
/* The flags of OP_SEEN that the op at the head has. */
static inline unsigned expect_head_seen(const struct expect *e)
{
    return e->len == 0 ? 0 : e->op[e->head] & (unsigned)OP_SEEN;
}
static inline void expect_untee_head(struct expect *e)
{
    e->op[e->head] &= (uint16_t)~OP_TEE;
}
unsigned expect_count_teed(const struct expect *e);
/* An error has come: it is the answer to the op at the head. Before expect_reply. */
void expect_note_error(struct expect *e);
/* True when the replies of the op at the head are ours. */
bool expect_head_is_ours(const struct expect *e);
/* True when all that is owed up to the end of the exchange at the head is ours: what a cancel
 * request would hit now is nothing of the client's. (A server tells what it has done in a sequence
 * with its end: a Close of ours in front of what the client runs is not heard of before that is
 * over.) */
bool expect_exchange_is_ours(const struct expect *e);
/* True when the replies of the op at the head are ours, or all of them but an error. */
bool expect_head_is_quiet(const struct expect *e);
/* True when the last thing heard of the Query at the head is that a statement of it was done:
 * CommandComplete or EmptyQueryResponse. The server says so of the last one of a Query only when it
 * has committed what the Query did. */
bool expect_head_has_done(const struct expect *e);
/* True when something was sent in the extended protocol that no Sync follows. */
bool expect_needs_sync(const struct expect *e);
/* True when something of the extended protocol was sent that no Sync has ended, answered or not:
 * what it did is not committed yet. */
bool expect_is_open(const struct expect *e);
/* True when a ReadyForQuery is owed in front of the last op. */
bool expect_owes_ready(const struct expect *e);
/* What no Sync or Query follows is told only if it is an error, as by a server that is not asked
 * for the rest; but for the `nkept` ops from the head on. */
void expect_hush(struct expect *e, unsigned nkept);

/* The part of expect_push for when there is more to it. */
void expect_push_any(struct expect *e, unsigned op);

/* The place in the ring that is `i` behind the head; `i` is at most e->cap. */
static inline uint32_t expect_place(const struct expect *e, uint32_t i)
{
    uint32_t at = e->head + i;

    return at < e->cap ? at : at - e->cap;
}

static inline void expect_push(struct expect *e, unsigned op)
{
    /* An end of COPY data, a reply made here, or one of OP_SEEN. */
    if (e->lost || e->skipping || e->len >= e->cap || (op & (OP_MASK | OP_SEEN)) >= OP_COPY_END) {
        expect_push_any(e, op);
        return;
    }
    e->op[expect_place(e, e->len)] = (uint16_t)op;
    e->pushed = (uint16_t)op;
    e->len++;
}

/* Pushes `n` ops, none of them OP_COPY_END, none with flags. */
static inline void expect_push_all(struct expect *e, const uint8_t *ops, unsigned n)
{
    unsigned i;

    if (e->lost || e->skipping || e->cap - e->len < n) {
        for (i = 0; i < n; i++)
            expect_push_any(e, ops[i]);
        return;
    }
    for (i = 0; i < n; i++)
        e->op[expect_place(e, e->len + i)] = ops[i];
    e->pushed = ops[n - 1];
    e->len += n;
}

static inline bool expect_pass_last(struct expect *e)
{
    unsigned op = e->len == 1 ? e->op[e->head] & ~(unsigned)OP_TAGS : 0;

    if ((op != OP_SYNC && op != OP_QUERY) || !expect_is_certain(e) || e->copy_in ||
        e->op != e->fixed || e->holds)
        return false;
    e->failed = e->failed && op != OP_SYNC;
    e->len = 0;
    e->head = 0;
    e->nended++;
    e->last = 0;
    return true;
}

#endif
