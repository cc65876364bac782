/* SPDX-License-Identifier: PostgreSQL
 * pcp_packet.c: reading and writing packets of PCP.
 * Runs in: control, the program pcp. Pure. */
#include "config.h"

#include "admin/pcp.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define LENGTH_BYTES 4
#define INT_CHARS    10

static uint32_t get_u32(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;

    return (uint32_t)u[0] << 24 | (uint32_t)u[1] << 16 | (uint32_t)u[2] << 8 | u[3];
}

int pcp_read(struct slice in, size_t max_bytes, struct pcp_packet *out, size_t *used)
{
    uint32_t length;

    if (in.n < PCP_HEADER_BYTES)
        return 0;
    length = get_u32(in.p + 1);
    if (length < LENGTH_BYTES || length > max_bytes)
        return -1;
    if (in.n < 1 + (size_t)length)
        return 0;
    out->type = in.p[0];
    out->body = slice_of(in.p + PCP_HEADER_BYTES, length - LENGTH_BYTES);
    *used = 1 + (size_t)length;
    return 1;
}

bool pcp_take_str(struct slice *rest, struct slice *out)
{
    const char *end = rest->n == 0 ? NULL : memchr(rest->p, '\0', rest->n);

    if (end == NULL)
        return false;
    *out = slice_of(rest->p, (size_t)(end - rest->p));
    *rest = slice_of(end + 1, rest->n - out->n - 1);
    return true;
}

bool pcp_take_int(struct slice *rest, int *out)
{
    struct slice text;
    long v;
    char *end;

    if (!pcp_take_str(rest, &text) || text.n == 0 || text.n > INT_CHARS)
        return false;
    if (strspn(text.p, "-0123456789") < text.n)
        return false;
    v = strtol(text.p, &end, 10);
    if (end != text.p + text.n || v < INT32_MIN || v > INT32_MAX)
        return false;
    *out = (int)v;
    return true;
}

char pcp_answer_type(char request)
{
    switch (request) {
#define PCP_REQUEST(SYM, type, answer, text)                                                       \
    case type:                                                                                     \
        return answer;
#include "admin/pcp_requests.def"
#undef PCP_REQUEST
    default:
        return 0;
    }
}

size_t pcp_begin(struct buf *out, char type)
{
    buf_put_byte(out, type);
    buf_put_u32(out, 0);
    return out->len;
}

void pcp_end(struct buf *out, size_t mark)
{
    uint32_t length = (uint32_t)(out->len - mark) + LENGTH_BYTES;
    char *at = out->data + mark - LENGTH_BYTES;
    int i;

    ASSERT(mark >= PCP_HEADER_BYTES && mark <= out->len);
    for (i = 0; i < LENGTH_BYTES; i++)
        at[i] = (char)(length >> (24 - 8 * i) & 0xff);
}

void pcp_put_slice(struct buf *out, struct slice text)
{
    buf_put(out, text.p, text.n);
    buf_put_byte(out, '\0');
}

void pcp_put_int(struct buf *out, int64_t v)
{
    buf_printf(out, "%lld", (long long)v);
    buf_put_byte(out, '\0');
}

void pcp_put_word(struct buf *out, char type, const char *word)
{
    size_t mark = pcp_begin(out, type);

    buf_put_cstr(out, word);
    pcp_end(out, mark);
}

static void put_field(struct buf *out, char code, const char *text)
{
    if (text[0] == '\0')
        return;
    buf_put_byte(out, code);
    buf_put_cstr(out, text);
}

void pcp_put_err(struct buf *out, char type, const char *severity, const struct err *err)
{
    size_t mark = pcp_begin(out, type);

    put_field(out, 'S', severity);
    put_field(out, 'C', err->sqlstate);
    put_field(out, 'M', err->msg);
    put_field(out, 'D', err->detail);
    put_field(out, 'H', err->hint);
    buf_put_byte(out, '\0');
    pcp_end(out, mark);
}
