/* SPDX-License-Identifier: PostgreSQL
 * statements_int.h: the prepared statements of one client, by name. */
#ifndef PGP_SESSION_STATEMENTS_INT_H
#define PGP_SESSION_STATEMENTS_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/slice.h"

/* A Parse message above this is not kept: its statement stays on the own link. No more of a client
 * is ever looked at in one piece (CLIENT_COLLECT_MAX). */
#define STATEMENT_MSG_MAX 131072

/* What is counted per node (SHOW POOL_BACKEND_STATS). */
enum count_kind {
    COUNT_SELECT,
    COUNT_INSERT,
    COUNT_UPDATE,
    COUNT_DELETE,
    COUNT_DDL,
    COUNT_OTHER,
    COUNT_PANIC,
    COUNT_FATAL,
    COUNT_ERROR,
    COUNT_KINDS
};

/* More ops than a link ever owes. */
#define STATEMENTS_ALL_OPS 0x7fffffffU

/* What a link was asked for, and has not answered yet. */
enum statement_asked {
    STATEMENT_MAKE = 1,    /* by the client */
    STATEMENT_PUT = 2,     /* by us, on a link that did not know it */
    STATEMENT_CLOSE = 4,   /* by the client */
    STATEMENT_INEXACT = 8, /* within what does more than that: an error leaves it doubtful */
    STATEMENT_BOUND = 16   /* ... the op is the Bind of that: should it fail, nothing was done */
};

/* One prepared statement: of a Parse message, or of SQL's PREPARE. */
struct statement {
    struct hash_node node;
    struct list order;     /* oldest first; of s->going when it is being closed */
    struct list undecided; /* s->undecided */
    uint64_t on_readers;   /* which readers know it, by their bits */
    uint64_t known;        /* by the router: a read like the last time, route_is_known; else 0 */
    uint64_t asked_bit;    /* the link that was asked: a reader's bit; 0: the own link */
    uint32_t serial_in;    /* the ops there (expect_next_serial) that make it or put it there, */
    uint32_t serial_out;   /* and that close it */
    uint32_t name_len;
    uint32_t msg_len;       /* of the whole Parse or Query message; 0: too long to be kept */
    uint8_t count;          /* enum count_kind */
    uint8_t asked;          /* enum statement_asked, several */
    bool on_own : 1;        /* the client's own link knows it */
    bool is_doubtful : 1;   /* its exchange met an error: links may know it or not */
    bool calls_nothing : 1; /* it was judged, and is a read that does so */
    uint16_t room;          /* of data, when it has no name */
    uint32_t counted;       /* stmtstats_handle, in the figures */
    char data[];            /* name NUL, message */
};

struct statements {
    struct hash_table table;   /* those with names */
    struct statement *unnamed; /* changes with every Parse of most clients */
    uint32_t nsql;             /* of SQL's PREPARE */
    struct list order;
    struct list going; /* being closed: back in the table when that fails */
    struct list undecided;
};

/* Remembers a Parse, or the Query with a PREPARE; replaces one of the same name. `msg` is the whole
 * message. */
struct statement *statements_add(
    struct statements **sp, struct slice name, struct slice msg, enum count_kind count);
struct statement *statements_find(const struct statements *s, struct slice name);
void statements_remove(struct statements *s, struct slice name);
/* A link (`bit`) is being asked: `asked` is STATEMENT_MAKE or STATEMENT_PUT, and perhaps
 * STATEMENT_INEXACT; `serial` is that of the op. */
void statements_asked(
    struct statements *s, struct statement *st, unsigned asked, uint64_t bit, uint32_t serial);
/* It is being closed on that link, which is the only one to know it by now. */
void statements_closing(
    struct statements *s, struct statement *st, unsigned asked, uint64_t bit, uint32_t serial);
/* All that are being closed there are closed once more: should the first time fail, they are gone
 * all the same. */
void statements_closing_again(struct statements *s, uint64_t bit, uint32_t serial);
/* The link has answered everything, or everything in front of what failed: the ops `from` up to but
 * not including `to` did not come to anything. Nor did, with statements_undone, all that the link
 * was asked since it was quiet. */
void statements_answered(struct statements *s, uint64_t bit);
void statements_failed(struct statements *s, uint64_t bit, uint32_t from, uint32_t to);
void statements_undone(struct statements *s, uint64_t bit);
/* A link has done a simple query of ours. */
void statements_lose_unnamed(struct statements *s, uint64_t bit);
/* A reader is gone: nothing is known on it. */
void statements_forget_reader(struct statements *s, uint64_t bit);
void statements_free(struct statements **sp);
static inline struct slice statement_name(const struct statement *st)
{
    return slice_of(st->data, st->name_len);
}
static inline struct slice statement_message(const struct statement *st)
{
    return slice_of(st->data + st->name_len + 1, st->msg_len);
}
/* True when SQL's PREPARE made it. */
static inline bool statement_is_sql(const struct statement *st)
{
    return st->msg_len > 0 && st->data[st->name_len + 1] == 'Q';
}
/* The SQL text in the message; empty when the message was not kept. */
struct slice statement_sql(const struct statement *st);

#endif
