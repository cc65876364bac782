/* SPDX-License-Identifier: PostgreSQL
 * errmsg.c: fields of ErrorResponse and NoticeResponse.
 * Runs in: worker, monitor. A server may leave out any field, send it twice or send nonsense; what
 * comes out is always printable as an err of ours. */
#include "config.h"

#include "wire/errmsg.h"

#include <stdlib.h>
#include <string.h>

#include "base/hot.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

/* Of a statement, in an error of ours. */
#define DETAIL_BYTES 255

#define SQLSTATE_CHARS 5

/* The place for field `code`; NULL for fields nobody here looks at. */
static struct slice *errmsg_field(struct errmsg *m, struct slice *localized, uint8_t code)
{
    switch (code) {
    case 'S':
        return localized;
    case 'V':
        return &m->severity;
    case 'C':
        return &m->sqlstate;
    case 'M':
        return &m->message;
    case 'D':
        return &m->detail;
    case 'H':
        return &m->hint;
    default:
        return NULL;
    }
}

int errmsg_decode(struct slice body, struct errmsg *out)
{
    struct wire_reader r;
    struct slice localized = slice_of("", 0);
    struct slice value;
    struct slice *field;
    uint8_t code;

    *out = (struct errmsg){localized, localized, localized, localized, localized, localized};
    wire_reader_init(&r, body);
    for (;;) {
        code = wire_get_u8(&r);
        if (code == 0)
            break;
        value = wire_get_cstr(&r);
        field = errmsg_field(out, &localized, code);
        if (field != NULL && field->n == 0 && !r.bad)
            *field = value;
    }
    if (out->severity.n == 0)
        out->severity = localized;
    return wire_reader_ok(&r) ? 0 : -1;
}

static bool sqlstate_is_sane(struct slice s)
{
    size_t i;

    if (s.n != SQLSTATE_CHARS)
        return false;
    for (i = 0; i < s.n; i++) {
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'A' && s.p[i] <= 'Z')))
            return false;
    }
    return true;
}

/* Length for "%.*s" into a field of `cap` bytes: cut before, not in, a UTF-8 character. */
static int text_len(struct slice s, size_t cap)
{
    size_t n = s.n;

    if (n < cap)
        return (int)n;
    n = cap - 1;
    while (n > 0 && cap - n < 4 && ((unsigned char)s.p[n] & 0xC0) == 0x80)
        n--;
    return (int)n;
}

void errmsg_to_err(const struct errmsg *m, struct err *err)
{
    char sqlstate[SQLSTATE_CHARS + 1] = "XX000";
    struct slice text = m->message;

    if (sqlstate_is_sane(m->sqlstate))
        memcpy(sqlstate, m->sqlstate.p, SQLSTATE_CHARS);
    if (text.n == 0)
        text = slice_of_str("the server sent an error without a message");
    err_clear(err);
    err_set(err, sqlstate, "%.*s", text_len(text, sizeof err->msg), text.p);
    if (m->detail.n > 0)
        err_detail(err, "%.*s", text_len(m->detail, sizeof err->detail), m->detail.p);
    if (m->hint.n > 0)
        err_hint(err, "%.*s", text_len(m->hint, sizeof err->hint), m->hint.p);
    if (slice_eq_str(m->severity, "FATAL") || slice_eq_str(m->severity, "PANIC"))
        err->severity = ERR_FATAL;
    else if (m->severity.n > 0 && !slice_eq_str(m->severity, "ERROR"))
        err->severity = ERR_WARNING;
}

void errmsg_put_detail(struct buf *out, struct slice whole, const char *detail)
{
    uint32_t start = wire_begin(out, whole.p[0]);

    buf_put(out, whole.p + PROTO_HEADER_BYTES, whole.n - PROTO_HEADER_BYTES - 1);
    buf_put_byte(out, 'D');
    buf_put_cstr(out, detail);
    buf_put_byte(out, '\0');
    wire_end(out, start);
}

/* A field with its code and its NUL. */
static void put_field(struct buf *out, uint8_t code, struct slice value, uint32_t chars)
{
    unsigned long at;

    if (code != 'P') {
        buf_put_byte(out, (char)code);
        buf_put(out, value.p, value.n + 1);
        return;
    }
    at = strtoul(value.p, NULL, 10);
    if (at > chars) {
        buf_printf(out, "P%lu", at - chars);
        buf_put_byte(out, '\0');
    }
}

void errmsg_put_moved(struct buf *out, struct slice whole, uint32_t chars)
{
    uint32_t start = wire_begin(out, whole.p[0]);
    struct wire_reader r;
    struct slice value;
    uint8_t code;

    wire_reader_init(&r, slice_of(whole.p + PROTO_HEADER_BYTES, whole.n - PROTO_HEADER_BYTES));
    while ((code = wire_get_u8(&r)) != 0) {
        value = wire_get_cstr(&r);
        if (r.bad)
            break;
        put_field(out, code, value, chars);
    }
    buf_put_byte(out, '\0');
    wire_end(out, start);
}

/* The server's last words to all, when it was crashed or is stopped at once: they end the
 * connection, and answer nothing. */
static bool is_crash(struct slice body)
{
    struct errmsg m;

    (void)errmsg_decode(body, &m);
    return slice_eq_str(m.sqlstate, "57P02") || slice_eq_str(m.sqlstate, "57P01");
}

/* Mostly all of an answer is there at once. Bytes that only look like its end count as one: then
 * nothing is made again that might have been. */
static inline bool ends_with_ready(const char *p, size_t n)
{
    return n > PROTO_HEADER_BYTES && p[n - PROTO_HEADER_BYTES - 1] == BE_READY &&
           message_bytes(p + n - PROTO_HEADER_BYTES - 1) == PROTO_HEADER_BYTES + 1;
}

HOT bool errmsg_is_no_answer(const char *p, size_t n)
{
    const char *end = p + n;
    struct message m;

    if (ends_with_ready(p, n))
        return false;
    while (message_next(&p, end, &m)) {
        switch (m.type) {
        case BE_PARSE_COMPLETE:
        case BE_BIND_COMPLETE:
        case BE_NO_DATA:
        case BE_ROW_DESCRIPTION:
        case BE_PARAMETER_DESCRIPTION:
            break;
        case BE_NOTICE:
            if (!is_crash(m.body))
                return false;
            break;
        default:
            return false;
        }
    }
    return p == end;
}

HOT size_t errmsg_notified(size_t at, const char *p, size_t n)
{
    while (at < n && n - at >= PROTO_HEADER_BYTES && p[at] == BE_NOTIFICATION)
        at += message_bytes(p + at);
    return at < n ? at : n;
}

/* In no encoding that a client may have does a character begin within ASCII and end outside. */
static size_t whole_characters(struct slice sql, size_t max)
{
    size_t n = sql.n;

    if (n > max)
        for (n = max; n > 0 && (unsigned char)sql.p[n - 1] >= 0x80;)
            n--;
    return n;
}

void errmsg_refuse_aborted(struct err *err, struct slice sql)
{
    static const char head[] = "statement: ";

    err_clear(err);
    err_set(err, "25P02",
        "current transaction is aborted, commands ignored until end of transaction block");
    if (sql.p != NULL)
        err_detail(err, "%s%.*s", head,
            (int)whole_characters(sql, DETAIL_BYTES - (sizeof head - 1)), sql.p);
}
