/* SPDX-License-Identifier: PostgreSQL
 * slice.h: a view into bytes owned by somebody else. No NUL at the end is promised. */
#ifndef PGP_BASE_SLICE_H
#define PGP_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct slice {
    const char *p;
    size_t n;
};

static inline struct slice slice_of(const char *p, size_t n)
{
    return (struct slice){p, n};
}

static inline struct slice slice_of_str(const char *s)
{
    return (struct slice){s, strlen(s)};
}

static inline bool slice_eq(struct slice a, struct slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool slice_eq_str(struct slice a, const char *s)
{
    return slice_eq(a, slice_of_str(s));
}

/* Case-insensitive (ASCII) comparison. */
static inline bool slice_ieq_str(struct slice a, const char *s)
{
    return a.n == strlen(s) && (a.n == 0 || strncasecmp(a.p, s, a.n) == 0);
}

/* `word` is part of it, in whatever case (ASCII). */
static inline bool slice_contains(struct slice s, const char *word)
{
    size_t n = strlen(word);
    size_t i;

    for (i = 0; i + n <= s.n; i++)
        if (strncasecmp(s.p + i, word, n) == 0)
            return true;
    return false;
}

#endif
