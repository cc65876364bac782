/* SPDX-License-Identifier: PostgreSQL
 * framer.h: finds message boundaries in a stream of bytes without collecting messages. Pure,
 * inline: this is the hot path. Bodies are looked at by nobody here.
 *
 * A framer remembers, between two reads, either a header that arrived in part or how many bytes of
 * the present message's body are still to come: 16 bytes per socket and no buffer. */
#ifndef PGP_WIRE_FRAMER_H
#define PGP_WIRE_FRAMER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wire/proto.h"

struct wire_framer {
    uint32_t body_left; /* of the message in progress */
    uint8_t head_len;   /* bytes of a partial header kept in `head` */
    char type;          /* of the message in progress */
    char head[PROTO_HEADER_BYTES];
};

enum frame_result {
    FRAME_HEADER, /* a header is complete: type and body_left are set */
    FRAME_MORE,   /* all bytes are used up, the header is not complete */
    FRAME_BAD     /* a length below 4 */
};

/* True between two messages: the next byte is a type byte. */
static inline bool wire_framer_at_boundary(const struct wire_framer *f)
{
    return f->body_left == 0 && f->head_len == 0;
}

/* Takes the next header from *pp; must be called with body_left == 0. Advances *pp behind what it
 * used. */
static inline enum frame_result wire_framer_header(
    struct wire_framer *f, const char **pp, const char *end)
{
    size_t have = (size_t)(end - *pp);
    size_t need;
    uint32_t len;

    if (f->head_len == 0 && have >= PROTO_HEADER_BYTES) {
        f->type = (*pp)[0];
        len = proto_get_u32(*pp + 1);
        *pp += PROTO_HEADER_BYTES;
    } else {
        need = (size_t)PROTO_HEADER_BYTES - f->head_len;
        if (have < need) {
            memcpy(f->head + f->head_len, *pp, have);
            f->head_len = (uint8_t)(f->head_len + have);
            *pp = end;
            return FRAME_MORE;
        }
        memcpy(f->head + f->head_len, *pp, need);
        *pp += need;
        f->head_len = 0;
        f->type = f->head[0];
        len = proto_get_u32(f->head + 1);
    }
    if (len < 4 || len > INT32_MAX)
        return FRAME_BAD;
    f->body_left = len - 4;
    return FRAME_HEADER;
}

/* Takes up to body_left bytes from *pp; true when the body is complete. */
static inline bool wire_framer_body(struct wire_framer *f, const char **pp, const char *end)
{
    size_t have = (size_t)(end - *pp);
    size_t take = have < f->body_left ? have : f->body_left;

    *pp += take;
    f->body_left -= (uint32_t)take;
    return f->body_left == 0;
}

#endif
