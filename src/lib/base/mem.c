/* SPDX-License-Identifier: PostgreSQL
 * mem.c: the process heap. */
#include "config.h"

#include "base/hot.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

HOT void *mem_alloc(size_t size)
{
    void *p = malloc(size == 0 ? 1 : size);

    ASSERT(p != NULL);
    return p;
}

/* glibc keeps small pieces at hand for malloc, not for calloc, which searches. */
#define SMALL_BYTES 1024

void *mem_alloc_zero(size_t size)
{
    void *p;

    if (size <= SMALL_BYTES) {
        p = mem_alloc(size);
        memset(p, 0, size);
        return p;
    }
    p = calloc(1, size);
    ASSERT(p != NULL);
    return p;
}

HOT void *mem_resize(void *p, size_t size)
{
    void *q;

    if (p == NULL)
        return mem_alloc(size);
    q = realloc(p, size == 0 ? 1 : size);
    ASSERT(q != NULL);
    return q;
}

char *mem_strndup(const char *p, size_t n)
{
    char *s = mem_alloc(n + 1);

    if (n > 0)
        memcpy(s, p, n);
    s[n] = '\0';
    return s;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

HOT void mem_free(void *p)
{
    free(p);
}

void mem_wipe(void *p, size_t n)
{
    explicit_bzero(p, n);
}
