/* SPDX-License-Identifier: PostgreSQL
 * buf.h: a growing byte buffer with a read position.
 * Runs in: every process. Owns its memory only while it holds bytes: buf_compact gives it back, so
 * that an idle client owns none. */
#ifndef PGP_BASE_BUF_H
#define PGP_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* What a buffer has at least when it has any memory. */
#define BUF_SMALL_BYTES 256

struct buf {
    char *data;   /* heap, NULL when empty */
    uint32_t len; /* end of valid bytes */
    uint32_t pos; /* start of unread bytes */
    uint32_t cap;
    bool is_secret; /* memory of mem_alloc_secret: set it while the buffer is empty */
};

/* For buf_free. */
void buf_free_data(struct buf *b);

/* Frees the memory and empties the buffer. A zeroed struct is an empty buffer; so is one that has
 * is_secret and nothing else, and stays secret. */
static inline void buf_free(struct buf *b)
{
    if (b->data != NULL) /* mostly there is nothing, and that costs no call */
        buf_free_data(b);
}

/* Forgets the content, keeps the memory. */
void buf_clear(struct buf *b);
/* Forgets the content; keeps the memory when that is no more than a small buffer's, else frees it.
 * For who is not idle and fills it again soon. */
static inline void buf_empty(struct buf *b)
{
    if (b->cap > BUF_SMALL_BYTES) {
        buf_free_data(b);
        return;
    }
    b->len = 0;
    b->pos = 0;
}
/* Makes room for `n` more bytes and returns the place to write to; follow with buf_advance. */
char *buf_reserve(struct buf *b, size_t n);
/* Says that `n` of the reserved bytes were written. */
void buf_advance(struct buf *b, size_t n);
void buf_put(struct buf *b, const void *p, size_t n);
void buf_put_byte(struct buf *b, char c);
/* Puts `s` with its NUL. */
void buf_put_cstr(struct buf *b, const char *s);
/* Puts big-endian integers. */
void buf_put_u16(struct buf *b, uint16_t v);
void buf_put_u32(struct buf *b, uint32_t v);
/* Puts formatted text without a NUL. */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Marks `n` unread bytes as read; frees the memory when nothing is left. */
void buf_consume(struct buf *b, size_t n);

static inline size_t buf_unread(const struct buf *b)
{
    return b->len - b->pos;
}

static inline struct slice buf_slice(const struct buf *b)
{
    return slice_of(b->data == NULL ? "" : b->data + b->pos, b->len - b->pos);
}

#endif
