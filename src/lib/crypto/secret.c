/* SPDX-License-Identifier: PostgreSQL
 * secret.c: wiped-on-free byte strings. */
#include "config.h"

#include "crypto/secret.h"

#include <string.h>

#include "base/mem.h"
#include "crypto/crypto.h"

void secret_set(struct secret *s, struct slice from)
{
    char *copy = mem_alloc_secret(from.n + 1);
    size_t n = from.n;

    if (n > 0)
        memcpy(copy, from.p, n);

    secret_free(s);
    s->bytes = copy;
    s->n = n;
}

void secret_free(struct secret *s)
{
    mem_free_secret(s->bytes);
    s->bytes = NULL;
    s->n = 0;
}

void secret_move(struct secret *to, struct secret *from)
{
    if (to == from)
        return;
    secret_free(to);
    *to = *from;
    from->bytes = NULL;
    from->n = 0;
}

struct slice secret_slice(const struct secret *s)
{
    return slice_of(s->bytes == NULL ? "" : s->bytes, s->n);
}

bool secret_equal(const struct secret *a, struct slice b)
{
    size_t i;
    unsigned char diff = a->n != b.n;

    /* Walk the caller's string whatever our length is: the time says nothing about the secret. */
    for (i = 0; i < b.n; i++)
        diff |= (unsigned char)(b.p[i] ^ (a->n == 0 ? 0 : a->bytes[i % a->n]));
    return diff == 0;
}
