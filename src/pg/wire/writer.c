/* SPDX-License-Identifier: PostgreSQL
 * writer.c: builds whole messages into a buffer.
 * Runs in: every process that speaks the protocol. A string field ends at its first NUL whatever
 * the caller says its length is: no text can smuggle a second field into a message. */
#include "config.h"

#include "base/hot.h"
#include "wire/message.h"
#include "wire/writer.h"

#include <string.h>

#define TEXT_FORMAT 0

uint32_t wire_begin(struct buf *b, char type)
{
    /* Counted from the first unread byte: buf_reserve may move the content. */
    uint32_t start = (uint32_t)buf_unread(b);

    buf_put_byte(b, type);
    buf_put_u32(b, 0);
    return start;
}

void wire_end(struct buf *b, uint32_t start)
{
    uint32_t len = (uint32_t)buf_unread(b) - start - 1;

    proto_put_u32(b->data + b->pos + start + 1, len);
}

static void put_string(struct buf *b, struct slice s)
{
    buf_put(b, s.p, s.n == 0 ? 0 : strnlen(s.p, s.n));
    buf_put_byte(b, '\0');
}

static void put_field(struct buf *b, char code, const char *text)
{
    buf_put_byte(b, code);
    buf_put_cstr(b, text);
}

void wire_put_auth(struct buf *b, enum auth_code code, struct slice rest)
{
    uint32_t start = wire_begin(b, BE_AUTHENTICATION);

    buf_put_u32(b, (uint32_t)code);
    buf_put(b, rest.p, rest.n);
    wire_end(b, start);
}

/* A dozen of them greet each client: written at one go. */
void wire_put_parameter_status(struct buf *b, struct slice name, struct slice value)
{
    size_t name_len = name.n == 0 ? 0 : strnlen(name.p, name.n);
    size_t value_len = value.n == 0 ? 0 : strnlen(value.p, value.n);
    size_t body = name_len + value_len + 2;
    char *p = buf_reserve(b, PROTO_HEADER_BYTES + body);

    *p = BE_PARAMETER_STATUS;
    proto_put_u32(p + 1, (uint32_t)(4 + body));
    p += PROTO_HEADER_BYTES;
    if (name_len > 0)
        memcpy(p, name.p, name_len);
    p += name_len;
    *p++ = '\0';
    if (value_len > 0)
        memcpy(p, value.p, value_len);
    p[value_len] = '\0';
    buf_advance(b, PROTO_HEADER_BYTES + body);
}

void wire_put_key_data(struct buf *b, int32_t pid, struct slice key)
{
    uint32_t start = wire_begin(b, BE_BACKEND_KEY_DATA);

    buf_put_u32(b, (uint32_t)pid);
    buf_put(b, key.p, key.n);
    wire_end(b, start);
}

WARM void wire_put_ready(struct buf *b, char tx_status)
{
    uint32_t start = wire_begin(b, BE_READY);

    buf_put_byte(b, tx_status);
    wire_end(b, start);
}

void wire_put_negotiate(struct buf *b, uint32_t version, const struct slice *unknown, unsigned n)
{
    uint32_t start = wire_begin(b, BE_NEGOTIATE);
    unsigned i;

    buf_put_u32(b, version);
    buf_put_u32(b, n);
    for (i = 0; i < n; i++)
        put_string(b, unknown[i]);
    wire_end(b, start);
}

static void put_response(struct buf *b, char type, const char *severity, const char *sqlstate,
    const char *msg, const char *detail, const char *hint)
{
    uint32_t start = wire_begin(b, type);

    put_field(b, 'S', severity);
    put_field(b, 'V', severity);
    put_field(b, 'C', sqlstate[0] == '\0' ? "XX000" : sqlstate);
    put_field(b, 'M', msg);
    if (detail[0] != '\0')
        put_field(b, 'D', detail);
    if (hint[0] != '\0')
        put_field(b, 'H', hint);
    buf_put_byte(b, '\0');
    wire_end(b, start);
}

void wire_put_err(struct buf *b, const struct err *err)
{
    char type = err->severity == ERR_WARNING ? BE_NOTICE : BE_ERROR;

    put_response(
        b, type, err_severity_text(err->severity), err->sqlstate, err->msg, err->detail, err->hint);
}

void wire_put_notice(struct buf *b, const char *severity, const char *sqlstate, const char *msg)
{
    put_response(b, BE_NOTICE, severity, sqlstate, msg, "", "");
}

static void put_column(struct buf *b, const char *name, unsigned number, uint32_t type_oid)
{
    buf_put_cstr(b, name);
    buf_put_u32(b, 0); /* table */
    buf_put_u16(b, (uint16_t)number);
    buf_put_u32(b, type_oid);
    buf_put_u16(b, UINT16_MAX); /* length -1: variable */
    buf_put_u32(b, UINT32_MAX); /* no modifier */
    buf_put_u16(b, TEXT_FORMAT);
}

void wire_put_row_description(
    struct buf *b, const char *const *names, unsigned n, uint32_t type_oid)
{
    uint32_t start = wire_begin(b, BE_ROW_DESCRIPTION);
    unsigned i;

    buf_put_u16(b, (uint16_t)n);
    for (i = 0; i < n; i++)
        put_column(b, names[i], i, type_oid);
    wire_end(b, start);
}

void wire_put_typed_columns(
    struct buf *b, const char *const *names, unsigned n, const uint32_t *type_oids)
{
    uint32_t start = wire_begin(b, BE_ROW_DESCRIPTION);
    unsigned i;

    buf_put_u16(b, (uint16_t)n);
    for (i = 0; i < n; i++)
        put_column(b, names[i], i, type_oids[i]);
    wire_end(b, start);
}

void wire_put_data_row(struct buf *b, const struct slice *values, unsigned n)
{
    uint32_t start = wire_begin(b, BE_DATA_ROW);
    unsigned i;

    buf_put_u16(b, (uint16_t)n);
    for (i = 0; i < n; i++) {
        if (values[i].p == NULL) {
            buf_put_u32(b, UINT32_MAX);
            continue;
        }
        buf_put_u32(b, (uint32_t)values[i].n);
        buf_put(b, values[i].p, values[i].n);
    }
    wire_end(b, start);
}

void wire_put_command_complete(struct buf *b, const char *tag)
{
    uint32_t start = wire_begin(b, BE_COMMAND_COMPLETE);

    buf_put_cstr(b, tag);
    wire_end(b, start);
}

void wire_put_empty(struct buf *b, char type)
{
    wire_end(b, wire_begin(b, type));
}

WARM void wire_put_query(struct buf *b, struct slice sql)
{
    uint32_t start = wire_begin(b, FE_QUERY);

    put_string(b, sql);
    wire_end(b, start);
}

void wire_put_password(struct buf *b, struct slice bytes)
{
    uint32_t start = wire_begin(b, FE_PASSWORD);

    buf_put(b, bytes.p, bytes.n);
    wire_end(b, start);
}

void wire_put_parse(struct buf *b, struct slice name, struct slice sql)
{
    uint32_t start = wire_begin(b, FE_PARSE);

    put_string(b, name);
    put_string(b, sql);
    buf_put_u16(b, 0); /* no parameter types given */
    wire_end(b, start);
}

void wire_put_close(struct buf *b, char what, struct slice name)
{
    uint32_t start = wire_begin(b, FE_CLOSE);

    buf_put_byte(b, what);
    put_string(b, name);
    wire_end(b, start);
}

void wire_drop(struct buf *b, uint32_t at)
{
    uint32_t bytes = (uint32_t)message_bytes(b->data + at);

    memmove(b->data + at, b->data + at + bytes, b->len - at - bytes);
    b->len -= bytes;
}
