/* SPDX-License-Identifier: PostgreSQL
 * batch.c: the messages of a client, decoded. Runs in: workers. What a statement is sent as is read
 * in one place, as whoever looks at it must see what the server will: a name that ends elsewhere
 * would be another one. Must never read behind a body, nor believe a length in it. */
#include "config.h"

#include "base/hot.h"
#include "wire/batch.h"
#include "wire/reader.h"

#include <string.h>

static struct slice rest_of(const struct wire_reader *r)
{
    return slice_of(r->p, wire_reader_left(r));
}

/* A text that is all there; else p is NULL. */
HOT static struct slice text_of(struct wire_reader *r)
{
    struct slice text = wire_get_cstr(r);

    return r->bad ? slice_of(NULL, 0) : text;
}

/* Describe and Close. */
static void read_named(struct batch_msg *m, struct wire_reader *r)
{
    m->what = (char)wire_get_u8(r);
    if (m->what == 'S')
        m->name = text_of(r);
    else if (m->what == 'P')
        m->portal = text_of(r);
    else
        r->bad = true;
}

HOT void batch_read(struct batch_msg *m, char type, struct slice body)
{
    struct wire_reader r;

    *m = (struct batch_msg){.type = type, .body = body};
    wire_reader_init(&r, body);
    switch (type) {
    case FE_QUERY:
        m->sql = text_of(&r);
        break;
    case FE_PARSE:
        m->name = text_of(&r);
        m->sql = text_of(&r);
        m->rest = rest_of(&r);
        m->is_bad = r.bad;
        return;
    case FE_BIND:
        m->portal = text_of(&r);
        m->name = text_of(&r);
        m->rest = rest_of(&r);
        m->is_bad = r.bad;
        return;
    case FE_DESCRIBE:
    case FE_CLOSE:
        read_named(m, &r);
        break;
    case FE_EXECUTE:
        m->portal = text_of(&r);
        m->max_rows = wire_get_u32(&r);
        break;
    case FE_SYNC:
    case FE_FLUSH:
        break;
    default:
        m->rest = body;
        return;
    }
    m->is_bad = !wire_reader_ok(&r);
}

HOT bool batch_next(const char **p, const char *end, struct batch_msg *m)
{
    struct message raw;

    if (!message_next(p, end, &raw))
        return false;
    batch_read(m, raw.type, raw.body);
    m->whole = raw.whole;
    return true;
}

bool batch_next_part(const char **p, const char *end, struct batch_msg *m)
{
    size_t bytes;

    if (end - *p < PROTO_HEADER_BYTES)
        return false;
    bytes = message_bytes(*p);
    if (!message_may_be(bytes))
        return false;
    if (bytes > (size_t)(end - *p))
        bytes = (size_t)(end - *p);
    batch_read(m, **p, message_body(slice_of(*p, bytes)));
    m->whole = slice_of(*p, bytes);
    *p += bytes;
    return true;
}

struct slice batch_to_sync(const char *p, const char *end, size_t max)
{
    const char *at = p;
    struct message m;

    while (message_next(&at, end, &m) && (size_t)(at - p) <= max)
        if (m.type == FE_SYNC)
            return slice_of(p, (size_t)(at - p));
    return slice_of(NULL, 0);
}

/* The bytes of the message at `p`, if it is of this type and all there; else 0. */
HOT static inline size_t bytes_of(char type, const char *p, const char *end)
{
    size_t bytes;

    if (end - p < PROTO_HEADER_BYTES || *p != type)
        return 0;
    bytes = message_bytes(p);
    return bytes < PROTO_HEADER_BYTES || bytes > (size_t)(end - p) ? 0 : bytes;
}

/* The text at `p`; p == NULL: it does not end before `end`. */
HOT static inline struct slice text_at(const char *p, const char *end)
{
    const char *nul = p >= end ? NULL : *p == '\0' ? p : memchr(p, '\0', (size_t)(end - p));

    return nul == NULL ? slice_of(NULL, 0) : slice_of(p, (size_t)(nul - p));
}

HOT static inline bool read_parse(struct batch_lone *l, const char *end)
{
    l->name = text_at(l->parse.p + PROTO_HEADER_BYTES, end);
    if (l->name.p == NULL)
        return false;
    l->sql = text_at(l->name.p + l->name.n + 1, end);
    return l->sql.p != NULL;
}

HOT static inline bool read_bind(struct batch_lone *l, const char *end)
{
    const char *body = l->bind.p + PROTO_HEADER_BYTES;
    struct slice name;

    if (body == end || *body != '\0')
        return false;
    name = text_at(body + 1, end);
    if (name.p == NULL || (l->parse.p != NULL && !slice_eq(name, l->name)))
        return false;
    l->name = name;
    return true;
}

HOT bool batch_lone_read(struct batch_lone *l, const char *p, const char *end)
{
    size_t n = bytes_of(FE_PARSE, p, end);

    l->parse = slice_of(n > 0 ? p : NULL, n);
    p += n;
    if (n > 0 && !read_parse(l, p))
        return false;
    n = bytes_of(FE_BIND, p, end);
    l->bind = slice_of(p, n);
    p += n;
    if (n == 0 || !read_bind(l, p))
        return false;
    n = bytes_of(FE_DESCRIBE, p, end);
    l->describes = n > 0;
    if (n > 0 && (n != PROTO_HEADER_BYTES + 2 || p[PROTO_HEADER_BYTES] != 'P' ||
                     p[PROTO_HEADER_BYTES + 1] != '\0'))
        return false;
    p += n;
    n = bytes_of(FE_EXECUTE, p, end);
    if (n != PROTO_HEADER_BYTES + 5 || p[PROTO_HEADER_BYTES] != '\0')
        return false;
    p += n;
    n = bytes_of(FE_SYNC, p, end);
    l->syncs = n == PROTO_HEADER_BYTES;
    l->end = l->syncs ? p + n : p;
    return true;
}

/* A server takes one format for values that are not there. */
static bool has_values(const struct batch_lone *l)
{
    struct wire_reader r;
    uint16_t nformats;

    wire_reader_init(&r, batch_lone_values(l));
    nformats = wire_get_u16(&r);
    if (nformats == 1)
        (void)wire_get_u16(&r);
    return nformats > 1 || wire_get_u16(&r) != 0 || r.bad;
}

static bool has_types(const struct batch_lone *l)
{
    struct wire_reader r;

    wire_reader_init(&r, batch_lone_statement(l));
    (void)wire_get_cstr(&r);
    return wire_get_u16(&r) != 0 || r.bad;
}

bool batch_lone_is_bare(const struct batch_lone *l)
{
    return !has_values(l) && (l->parse.p == NULL || !has_types(l));
}
