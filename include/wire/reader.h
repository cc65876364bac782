/* SPDX-License-Identifier: PostgreSQL
 * reader.h: bounds-checked reading of one message body; the only place where lengths that a peer
 * sent are believed. A read past the end sets `bad`, returns zero or an empty slice, and every
 * later read does the same: check once, at the end, with wire_reader_ok. */
#ifndef PGP_WIRE_READER_H
#define PGP_WIRE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct wire_reader {
    const char *p;
    const char *end;
    bool bad;
};

/* Starts reading `body` (the bytes after type and length). */
static inline void wire_reader_init(struct wire_reader *r, struct slice body)
{
    r->p = body.p == NULL ? "" : body.p;
    r->end = r->p + (body.p == NULL ? 0 : body.n);
    r->bad = false;
}
uint8_t wire_get_u8(struct wire_reader *r);
uint16_t wire_get_u16(struct wire_reader *r);
uint32_t wire_get_u32(struct wire_reader *r);
/* A NUL-ended string; the slice leaves the NUL out (but p[n] is '\0'). */
struct slice wire_get_text(struct wire_reader *r);
static inline struct slice wire_get_cstr(struct wire_reader *r)
{
    if (r->bad || r->p == r->end || *r->p != '\0')
        return wire_get_text(r);
    return slice_of(r->p++, 0); /* most names are empty */
}
struct slice wire_get_bytes(struct wire_reader *r, uint32_t n);
/* A value with a 32-bit length before it; *is_null for length -1. Other negative lengths are bad.
 */
struct slice wire_get_value(struct wire_reader *r, bool *is_null);
/* The `n` columns of a DataRow; false when there are not so many. */
bool wire_row_values(struct slice body, struct slice *value, int n);
/* Bytes not read yet. */
static inline size_t wire_reader_left(const struct wire_reader *r)
{
    return (size_t)(r->end - r->p);
}
/* True when nothing was bad and every byte was read. */
bool wire_reader_ok(const struct wire_reader *r);

#endif
