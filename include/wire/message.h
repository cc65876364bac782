/* SPDX-License-Identifier: PostgreSQL
 * message.h: where a message ends, in bytes of either peer. Pure, inline: this is the hot path.
 * A message is one byte of type, four of length, and a body; the length counts itself and the body.
 */
#ifndef PGP_WIRE_MESSAGE_H
#define PGP_WIRE_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "wire/proto.h"

struct message {
    char type;
    struct slice whole; /* with type and length */
    struct slice body;
};

/* Bytes of the message at `p`, type and length included; its header is there. What a peer says is
 * not believed: see message_may_be. */
static inline size_t message_bytes(const char *p)
{
    return (size_t)proto_get_u32(p + 1) + 1;
}

/* What its length says: itself and the body. */
static inline uint32_t message_length(const char *p)
{
    return proto_get_u32(p + 1);
}

/* The number that a body of four bytes or more begins with: the code of an authentication request,
 * a server process, a version. */
static inline uint32_t message_number(struct slice body)
{
    return proto_get_u32(body.p);
}

/* False: no message is that long, or that short. */
static inline bool message_may_be(size_t bytes)
{
    return bytes >= PROTO_HEADER_BYTES && bytes <= (size_t)INT32_MAX + 1;
}

/* What there is of the body of a message that has come as far as `msg`, header included. */
static inline struct slice message_body(struct slice msg)
{
    return slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES);
}

/* Takes the message at `*p`, and goes behind it. False, and nothing is taken: it has not all come,
 * or its length is none that a message may have. */
static inline bool message_next(const char **p, const char *end, struct message *m)
{
    size_t bytes;

    if (end - *p < PROTO_HEADER_BYTES)
        return false;
    bytes = message_bytes(*p);
    if (bytes < PROTO_HEADER_BYTES || bytes > (size_t)(end - *p))
        return false;
    m->type = **p;
    m->whole = slice_of(*p, bytes);
    m->body = message_body(m->whole);
    *p += bytes;
    return true;
}

/* True for a server's AuthenticationOk; another message of that kind asks for something. */
static inline bool message_is_auth_ok(const char *msg, size_t n)
{
    return n >= PROTO_HEADER_BYTES + 4 && proto_get_u32(msg + PROTO_HEADER_BYTES) == AUTH_OK;
}

#endif
