/* SPDX-License-Identifier: PostgreSQL
 * statements_int.h: the prepared statements of one client, by name. */
#ifndef PGP_SESSION_STATEMENTS_INT_H
#define PGP_SESSION_STATEMENTS_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/slice.h"

/* A Parse message above this is not kept: its statement stays on the own link. */
#define STATEMENT_MSG_MAX 16384

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

/* One prepared statement. The client's own link knows all of them; the reader link knows those with
 * its epoch in `reader_epoch`. */
struct statement {
    struct hash_node node;
    struct list order; /* oldest first */
    uint64_t reader_epoch;
    uint64_t batch; /* the sequence that parsed it */
    uint32_t name_len;
    uint32_t msg_len; /* of the whole Parse message; 0: too long to be kept */
    uint8_t count;    /* enum count_kind */
    bool on_own;      /* the client's own link knows it (always, but for the unnamed one) */
    char data[];      /* name NUL, Parse message */
};

struct statements {
    struct hash_table table;
    struct list order;
};

/* Remembers a Parse; replaces one of the same name. `msg` is the whole message. */
struct statement *statements_add(
    struct statements **sp, struct slice name, struct slice msg, enum count_kind count);
struct statement *statements_find(const struct statements *s, struct slice name);
void statements_remove(struct statements *s, struct slice name);
/* Forgets what the sequence `batch` parsed: it failed, nobody knows how far it came. */
void statements_remove_batch(struct statements *s, uint64_t batch);
void statements_free(struct statements **sp);
static inline struct slice statement_name(const struct statement *st)
{
    return slice_of(st->data, st->name_len);
}
static inline struct slice statement_message(const struct statement *st)
{
    return slice_of(st->data + st->name_len + 1, st->msg_len);
}
/* The SQL text in the Parse message; empty when the message was not kept. */
struct slice statement_sql(const struct statement *st);

#endif
