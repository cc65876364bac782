/* SPDX-License-Identifier: PostgreSQL
 * batch.h: what a client asks for, message by message: the one decoder of what clients send once
 * they are let in. Pure. It says what stands where and has no opinion of it: names are as they were
 * sent, a text may be any, and what a server would refuse for another reason than its form is not
 * bad here. */
#ifndef PGP_WIRE_BATCH_H
#define PGP_WIRE_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "wire/message.h"

/* One message. Views into the bytes that were read; where its kind has no such field, or that is
 * not all there, p is NULL. */
struct batch_msg {
    char type;
    char what;          /* of Describe and Close, as it was sent: 'S' or 'P' */
    bool is_bad;        /* a field is not all there, or there are bytes behind the last one */
    uint32_t max_rows;  /* of Execute; 0: all */
    struct slice whole; /* with type and length; p is NULL when it was a body that was read */
    struct slice body;
    struct slice name;   /* of a statement: Parse, Bind, and Describe and Close of one */
    struct slice portal; /* Bind, Execute, and Describe and Close of one */
    struct slice sql;    /* Query, Parse; p[n] is '\0' */
    struct slice rest;   /* of Parse types, of Bind formats and values, of other kinds the body */
};

/* Reads a body. Of what has not all come there are the fields in front of the cut, and it is bad.
 */
void batch_read(struct batch_msg *m, char type, struct slice body);

/* Takes the message at `*p`, reads it, and goes behind it. False, and nothing is taken: it has not
 * all come, or its length is none that a message may have. */
bool batch_next(const char **p, const char *end, struct batch_msg *m);

/* batch_next that also takes what there is of a message, its header at least; `whole` is that. */
bool batch_next_part(const char **p, const char *end, struct batch_msg *m);

/* What a Parse says of its statement: text, the NUL behind it, and types. */
static inline struct slice batch_statement(const struct batch_msg *m)
{
    return slice_of(m->sql.p, m->sql.n + 1 + m->rest.n);
}

/* The sequence at `p` up to its Sync, that included, if it has come and is no longer than `max`;
 * else p is NULL. */
struct slice batch_to_sync(const char *p, const char *end, size_t max);

/* One statement as drivers send it: [Parse] Bind [Describe] Execute [Sync], each of the unnamed
 * portal and, with a Parse, of its statement. */
struct batch_lone {
    struct slice parse; /* the message; p == NULL: there is none */
    struct slice bind;  /* the message */
    struct slice name;  /* of the statement */
    struct slice sql;   /* of the Parse; p[n] is '\0' */
    const char *end;    /* behind all of it */
    bool describes;
    bool syncs;
};

/* What its Parse says of the statement, as batch_statement; not without one. */
static inline struct slice batch_lone_statement(const struct batch_lone *l)
{
    return slice_of(l->sql.p, (size_t)(l->parse.p + l->parse.n - l->sql.p));
}

/* Formats and values of its Bind. */
static inline struct slice batch_lone_values(const struct batch_lone *l)
{
    const char *p = l->bind.p + PROTO_HEADER_BYTES + l->name.n + 2;

    return slice_of(p, (size_t)(l->bind.p + l->bind.n - p));
}

/* The statement has no parameters: neither types of a Parse nor values. */
bool batch_lone_is_bare(const struct batch_lone *l);

/* True when the bytes begin with one, complete up to its Execute. */
bool batch_lone_read(struct batch_lone *l, const char *p, const char *end);

#endif
