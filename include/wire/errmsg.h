/* SPDX-License-Identifier: PostgreSQL
 * errmsg.h: reads the fields of an ErrorResponse or NoticeResponse that a server sent. Pure. The
 * server is not trusted: any field may be missing. */
#ifndef PGP_WIRE_ERRMSG_H
#define PGP_WIRE_ERRMSG_H

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

struct errmsg {
    struct slice severity; /* 'V' when there, else 'S' */
    struct slice sqlstate; /* empty when missing */
    struct slice message;
    struct slice detail;
    struct slice hint;
    struct slice whole; /* the message with its header, where the caller has set it */
};

/* Decodes `body`; returns -1 when it is not well formed (what could be read is filled in). */
int errmsg_decode(struct slice body, struct errmsg *out);
/* Copies into a struct err (severity FATAL and PANIC become ERR_FATAL). */
void errmsg_to_err(const struct errmsg *m, struct err *err);
/* The error PostgreSQL gives for any statement in a failed transaction, with pgpool-II's DETAIL:
 * the start of the text; p is NULL when there is none. */
void errmsg_refuse_aborted(struct err *err, struct slice sql);

/* The message `whole` (with its header) with one more field: DETAIL. */
void errmsg_put_detail(struct buf *out, struct slice whole, const char *detail);
/* The message `whole` of a text in front of which `chars` characters had been put: its position
 * (field P) is so much lower; left out where it lies in these. */
void errmsg_put_moved(struct buf *out, struct slice whole, uint32_t chars);

/* True for messages of a server after which the exchange can still be made elsewhere. */
bool errmsg_is_no_answer(const char *p, size_t n);
/* The bytes of notifications at the front, `at` of which are the rest of a message before; they may
 * end before the end of the last one. */
size_t errmsg_notified(size_t at, const char *p, size_t n);

#endif
