/* SPDX-License-Identifier: PostgreSQL
 * arena.c: blocks chained newest first; small requests are cut from the newest block. */
#include "config.h"

#include "base/arena.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/hot.h"
#include "base/mem.h"

#define ARENA_BLOCK_BYTES 8000
#define ARENA_ALIGN(n)    (((n) + 7U) & ~(size_t)7)

struct arena_block {
    struct arena_block *prev;
    size_t cap;
    char data[] __attribute__((aligned(8)));
};

struct arena {
    const char *name;
    struct arena_block *block;
    size_t used;  /* of the newest block */
    size_t total; /* handed out of all blocks */
    size_t limit;
    bool is_secret; /* blocks of mem_alloc_secret */
};

struct arena *arena_new(const char *name, size_t limit)
{
    struct arena *a = mem_alloc_zero(sizeof *a);

    a->name = name;
    a->limit = limit;
    return a;
}

struct arena *arena_new_secret(const char *name, size_t limit)
{
    struct arena *a = arena_new(name, limit);

    a->is_secret = true;
    return a;
}

static void arena_free_block(const struct arena *a, struct arena_block *b)
{
    if (a->is_secret)
        mem_free_secret(b);
    else
        mem_free(b);
}

void arena_free(struct arena **ap)
{
    struct arena *a = *ap;
    struct arena_block *b;

    if (a == NULL)
        return;
    while ((b = a->block) != NULL) {
        a->block = b->prev;
        arena_free_block(a, b);
    }
    mem_free(a);
    *ap = NULL;
}

static void arena_add_block(struct arena *a, size_t size)
{
    size_t cap = size > ARENA_BLOCK_BYTES ? size : ARENA_BLOCK_BYTES;
    size_t size_all = sizeof(struct arena_block) + cap;
    struct arena_block *b = a->is_secret ? mem_alloc_secret(size_all) : mem_alloc(size_all);

    b->prev = a->block;
    b->cap = cap;
    a->block = b;
    a->used = 0;
}

void *arena_alloc(struct arena *a, size_t size)
{
    size_t need = ARENA_ALIGN(size);
    void *p;

    if (need < size || (a->limit != 0 && a->total + need > a->limit))
        return NULL;
    if (a->block == NULL || a->block->cap - a->used < need)
        arena_add_block(a, need);
    p = a->block->data + a->used;
    a->used += need;
    a->total += need;
    return p;
}

void *arena_alloc_zero(struct arena *a, size_t size)
{
    void *p = arena_alloc(a, size);

    if (p != NULL)
        memset(p, 0, size);
    return p;
}

char *arena_strndup(struct arena *a, const char *p, size_t n)
{
    char *s = arena_alloc(a, n + 1);

    if (s == NULL)
        return NULL;
    if (n > 0)
        memcpy(s, p, n);
    s[n] = '\0';
    return s;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_list again;
    char *s = NULL;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0)
        s = arena_alloc(a, (size_t)n + 1);
    if (s != NULL)
        vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}

struct arena_mark arena_mark(struct arena *a)
{
    return (struct arena_mark){a->block, a->used, a->total};
}

void arena_release(struct arena *a, struct arena_mark mark)
{
    struct arena_block *b;

    while (a->block != mark.block) {
        b = a->block;
        ASSERT(b != NULL);
        a->block = b->prev;
        arena_free_block(a, b);
    }
    a->used = mark.used;
    a->total = mark.total;
}

HOT void arena_reset(struct arena *a)
{
    struct arena_block *b;

    while (a->block != NULL && a->block->prev != NULL) {
        b = a->block;
        a->block = b->prev;
        arena_free_block(a, b);
    }
    a->used = 0;
    a->total = 0;
}

size_t arena_used(const struct arena *a)
{
    return a->total;
}
