/* SPDX-License-Identifier: PostgreSQL
 * buf.c: growing byte buffer. */
#include "config.h"

#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/mem.h"

HOT void buf_free_data(struct buf *b)
{
    bool is_secret = b->is_secret;

    if (is_secret)
        mem_free_secret(b->data);
    else
        mem_free(b->data);
    *b = (struct buf){.is_secret = is_secret};
}

HOT void buf_clear(struct buf *b)
{
    b->len = 0;
    b->pos = 0;
}

HOT char *buf_reserve(struct buf *b, size_t n)
{
    size_t need = b->len + n;
    size_t cap;

    if (need <= b->cap)
        return b->data + b->len;
    if (b->pos > 0) {
        memmove(b->data, b->data + b->pos, b->len - b->pos);
        b->len -= b->pos;
        b->pos = 0;
        need = b->len + n;
        if (need <= b->cap)
            return b->data + b->len;
    }
    ASSERT(need <= UINT32_MAX / 2);
    cap = b->cap == 0 ? BUF_SMALL_BYTES : b->cap;
    while (cap < need)
        cap *= 2;
    b->data = b->is_secret ? mem_resize_hidden(b->data, cap) : mem_resize(b->data, cap);
    b->cap = (uint32_t)cap;
    return b->data + b->len;
}

void buf_advance(struct buf *b, size_t n)
{
    ASSERT(b->len + n <= b->cap);
    b->len += (uint32_t)n;
}

HOT void buf_put(struct buf *b, const void *p, size_t n)
{
    if (n == 0)
        return;
    memcpy(buf_reserve(b, n), p, n);
    b->len += (uint32_t)n;
}

HOT void buf_put_byte(struct buf *b, char c)
{
    *buf_reserve(b, 1) = c;
    b->len++;
}

void buf_put_cstr(struct buf *b, const char *s)
{
    buf_put(b, s, strlen(s) + 1);
}

void buf_put_u16(struct buf *b, uint16_t v)
{
    unsigned char raw[2] = {(unsigned char)(v >> 8), (unsigned char)v};

    buf_put(b, raw, sizeof raw);
}

HOT void buf_put_u32(struct buf *b, uint32_t v)
{
    unsigned char raw[4] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16),
        (unsigned char)(v >> 8), (unsigned char)v};

    buf_put(b, raw, sizeof raw);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    ASSERT(n >= 0);
    vsnprintf(buf_reserve(b, (size_t)n + 1), (size_t)n + 1, fmt, again);
    va_end(again);
    b->len += (uint32_t)n;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_consume(struct buf *b, size_t n)
{
    ASSERT(n <= b->len - b->pos);
    b->pos += (uint32_t)n;
    if (b->pos == b->len)
        buf_free(b);
}
