/* SPDX-License-Identifier: PostgreSQL
 * paramset.c: name = value strings in one block. A server reports about fifteen of them, so a walk
 * is the fastest look-up there is. */
#include "config.h"

#include "backend/paramset.h"

#include <string.h>

#include "base/mem.h"

void paramset_free(struct paramset *ps)
{
    mem_free(ps->data);
    ps->data = NULL;
    ps->len = 0;
}

bool paramset_next(const struct paramset *ps, uint32_t *at, struct slice *name, struct slice *value)
{
    if (*at >= ps->len)
        return false;
    *name = slice_of_str(ps->data + *at);
    *value = slice_of_str(ps->data + *at + name->n + 1);
    *at += (uint32_t)(name->n + value->n + 2);
    return true;
}

static bool name_eq(struct slice a, struct slice b)
{
    return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

struct slice paramset_get(const struct paramset *ps, struct slice name)
{
    struct slice n;
    struct slice v;
    uint32_t at = 0;

    while (paramset_next(ps, &at, &n, &v))
        if (name_eq(n, name))
            return v;
    return slice_of(NULL, 0);
}

void paramset_drop(struct paramset *ps, struct slice name)
{
    struct slice n;
    struct slice v;
    uint32_t at = 0;
    uint32_t start = 0;

    while (paramset_next(ps, &at, &n, &v)) {
        if (name_eq(n, name)) {
            memmove(ps->data + start, ps->data + at, ps->len - at);
            ps->len -= at - start;
            return;
        }
        start = at;
    }
}

bool paramset_set(struct paramset *ps, struct slice name, struct slice value)
{
    struct slice n;
    struct slice v;
    uint32_t at = 0;
    uint32_t start = 0;
    size_t add = name.n + value.n + 2;
    char *data;

    while (paramset_next(ps, &at, &n, &v)) {
        if (!name_eq(n, name)) {
            start = at;
            continue;
        }
        if (slice_eq(v, value))
            return false;
        memmove(ps->data + start, ps->data + at, ps->len - at);
        ps->len -= at - start;
        break;
    }
    data = mem_alloc(ps->len + add);
    if (ps->len > 0)
        memcpy(data, ps->data, ps->len);
    memcpy(data + ps->len, name.p, name.n);
    data[ps->len + name.n] = '\0';
    if (value.n > 0)
        memcpy(data + ps->len + name.n + 1, value.p, value.n);
    data[ps->len + add - 1] = '\0';
    mem_free(ps->data);
    ps->data = data;
    ps->len += (uint32_t)add;
    return true;
}

void paramset_copy(struct paramset *dst, const struct paramset *src)
{
    paramset_free(dst);
    if (src->len == 0)
        return;
    dst->data = mem_alloc(src->len);
    memcpy(dst->data, src->data, src->len);
    dst->len = src->len;
}

/* Order does not matter. */
bool paramset_eq(const struct paramset *a, const struct paramset *b)
{
    struct slice n;
    struct slice v;
    struct slice other;
    uint32_t at = 0;

    if (a->len != b->len)
        return false;
    if (a->len == 0 || memcmp(a->data, b->data, a->len) == 0)
        return true;
    while (paramset_next(a, &at, &n, &v)) {
        other = paramset_get(b, n);
        if (other.p == NULL || !slice_eq(other, v))
            return false;
    }
    return true;
}
