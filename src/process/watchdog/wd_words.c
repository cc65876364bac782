/* SPDX-License-Identifier: PostgreSQL
 * wd_words.c: messages between pgpools as bytes.
 * Runs in: watchdog. Pure. Numbers are big-endian; texts end with a zero byte. */
#include "config.h"

#include "wd_words.h"

#include <string.h>

#include "wire/reader.h"

/* Bits of a status. */
enum { FLAG_UNFIT = 1, FLAG_WITNESS = 2, FLAG_CALLED_DEAD = 4, FLAG_HINDERED = 8 };

static void put_u64(struct buf *out, uint64_t v)
{
    buf_put_u32(out, (uint32_t)(v >> 32));
    buf_put_u32(out, (uint32_t)v);
}

static void put_set(struct buf *out, const uint64_t set[2])
{
    put_u64(out, set[0]);
    put_u64(out, set[1]);
}

static uint64_t get_u64(struct wire_reader *r)
{
    uint64_t high = wire_get_u32(r);

    return high << 32 | wire_get_u32(r);
}

static void get_set(struct wire_reader *r, uint64_t set[2])
{
    set[0] = get_u64(r);
    set[1] = get_u64(r);
}

/* A longer one than we have room for is cut. */
static void get_text(struct wire_reader *r, char *to, size_t room)
{
    struct slice from = wire_get_cstr(r);

    memset(to, 0, room);
    memcpy(to, from.p, from.n < room ? from.n : room - 1);
}

void wd_status_put(const struct wd_status *s, struct buf *out)
{
    buf_put_byte(out, (char)s->begin);
    buf_put_byte(out, (char)s->role);
    buf_put_byte(out,
        (char)((s->is_unfit ? FLAG_UNFIT : 0) | (s->is_witness ? FLAG_WITNESS : 0) |
               (s->is_called_dead ? FLAG_CALLED_DEAD : 0) | (s->is_hindered ? FLAG_HINDERED : 0)));
    buf_put_u32(out, (uint32_t)s->priority);
    buf_put(out, s->identity, sizeof s->identity);
    put_set(out, s->lost);
    put_set(out, s->dead);
    put_set(out, s->listed);
    buf_put_cstr(out, s->name);
    buf_put_u32(out, (uint32_t)s->follows);
    buf_put_cstr(out, s->release);
    put_set(out, s->silent);
}

bool wd_status_get(struct slice in, struct wd_status *s)
{
    struct wire_reader r;
    struct slice identity;
    uint8_t flags;

    memset(s, 0, sizeof *s);
    wire_reader_init(&r, in);
    s->begin = wire_get_u8(&r);
    s->role = wire_get_u8(&r);
    flags = wire_get_u8(&r);
    s->is_unfit = (flags & FLAG_UNFIT) != 0;
    s->is_witness = (flags & FLAG_WITNESS) != 0;
    s->is_called_dead = (flags & FLAG_CALLED_DEAD) != 0;
    s->is_hindered = (flags & FLAG_HINDERED) != 0;
    s->priority = (int32_t)wire_get_u32(&r);
    identity = wire_get_bytes(&r, WD_IDENTITY_BYTES);
    if (!r.bad)
        memcpy(s->identity, identity.p, WD_IDENTITY_BYTES);
    get_set(&r, s->lost);
    get_set(&r, s->dead);
    get_set(&r, s->listed);
    get_text(&r, s->name, sizeof s->name);
    s->follows = WD_NO_MEMBER;
    if (!r.bad && wire_reader_left(&r) > 0)
        s->follows = (int32_t)wire_get_u32(&r);
    if (!r.bad && wire_reader_left(&r) > 0)
        get_text(&r, s->release, sizeof s->release);
    if (!r.bad && wire_reader_left(&r) > 0)
        get_set(&r, s->silent);
    return !r.bad;
}

void wd_barred_put(const struct wd_barred *b, struct buf *out)
{
    buf_put_byte(out, (char)b->n);
    buf_put(out, b->bytes, sizeof b->bytes);
}

bool wd_barred_get(struct slice in, struct wd_barred *b)
{
    struct wire_reader r;
    struct slice bytes;

    memset(b, 0, sizeof *b);
    wire_reader_init(&r, in);
    b->n = wire_get_u8(&r);
    bytes = wire_get_bytes(&r, sizeof b->bytes);
    if (r.bad || (b->n != 4 && b->n != 16))
        return false;
    memcpy(b->bytes, bytes.p, sizeof b->bytes);
    return true;
}
