/* SPDX-License-Identifier: PostgreSQL
 * reader.c: bounds-checked reading of one message body.
 * Runs in: worker, monitor, control. Both peers are hostile: no length is believed before it was
 * compared with what is there, and a reader that went bad stays bad. Must never assert on input. */
#include "config.h"

#include "base/hot.h"
#include "wire/reader.h"

#include <string.h>

#include "wire/proto.h"

/* Takes `n` bytes; NULL, and bad from now on, when they are not there. */
static const char *reader_take(struct wire_reader *r, size_t n)
{
    const char *p = r->p;

    if (r->bad || n > wire_reader_left(r)) {
        r->bad = true;
        return NULL;
    }
    r->p += n;
    return p;
}

uint8_t wire_get_u8(struct wire_reader *r)
{
    const char *p = reader_take(r, 1);

    return p == NULL ? 0 : (uint8_t)p[0];
}

uint16_t wire_get_u16(struct wire_reader *r)
{
    const char *p = reader_take(r, 2);

    return p == NULL ? 0 : proto_get_u16(p);
}

uint32_t wire_get_u32(struct wire_reader *r)
{
    const char *p = reader_take(r, 4);

    return p == NULL ? 0 : proto_get_u32(p);
}

HOT struct slice wire_get_text(struct wire_reader *r)
{
    const char *nul;
    const char *p = r->p;

    if (r->bad)
        return slice_of("", 0);
    nul = memchr(p, '\0', wire_reader_left(r));
    if (nul == NULL) {
        r->bad = true;
        return slice_of("", 0);
    }
    r->p = nul + 1;
    return slice_of(p, (size_t)(nul - p));
}

struct slice wire_get_bytes(struct wire_reader *r, uint32_t n)
{
    const char *p = reader_take(r, n);

    return p == NULL ? slice_of("", 0) : slice_of(p, n);
}

struct slice wire_get_value(struct wire_reader *r, bool *is_null)
{
    uint32_t n = wire_get_u32(r);

    *is_null = !r->bad && n == UINT32_MAX;
    if (*is_null)
        return slice_of(NULL, 0);
    if (n > INT32_MAX)
        r->bad = true;
    return wire_get_bytes(r, n);
}

bool wire_reader_ok(const struct wire_reader *r)
{
    return !r->bad && r->p == r->end;
}

bool wire_row_values(struct slice body, struct slice *value, int n)
{
    struct wire_reader r;
    bool is_null;
    int i;

    wire_reader_init(&r, body);
    if (wire_get_u16(&r) != n)
        return false;
    for (i = 0; i < n; i++)
        value[i] = wire_get_value(&r, &is_null);
    return wire_reader_ok(&r);
}
