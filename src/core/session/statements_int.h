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

/* One prepared statement: of a Parse message, or of SQL's PREPARE. */
struct statement {
    struct hash_node node;
    struct list order;   /* oldest first */
    uint64_t on_readers; /* which readers know it, by their bits */
    uint64_t batch;      /* the exchange that made it */
    uint32_t name_len;
    uint32_t msg_len; /* of the whole Parse or Query message; 0: too long to be kept */
    uint8_t count;    /* enum count_kind */
    bool on_own;      /* the client's own link knows it */
    bool is_doubtful; /* its exchange met an error: links may know it or not */
    uint16_t room;    /* of data, when it has no name */
    char data[];      /* name NUL, message */
};

struct statements {
    struct hash_table table;   /* those with names */
    struct statement *unnamed; /* changes with every Parse of most clients */
    struct list order;
};

/* Remembers a Parse, or the Query with a PREPARE; replaces one of the same name. `msg` is the whole
 * message. */
struct statement *statements_add(
    struct statements **sp, struct slice name, struct slice msg, enum count_kind count);
struct statement *statements_find(const struct statements *s, struct slice name);
void statements_remove(struct statements *s, struct slice name);
/* The exchange `batch` failed, nobody knows how far it came: what it made is doubtful, and what
 * cannot be made again is forgotten. Where the own link got it that link knows: it is not made
 * there again, for it may not be there with good reason. */
void statements_doubt_batch(struct statements *s, uint64_t batch);
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
