/* SPDX-License-Identifier: PostgreSQL
 * secret.h: bytes that must never be printed nor dumped and are overwritten when freed.
 * Runs in: every process that holds a password or key. A type of its own, so that no formatter or
 * log call takes it by accident; secret_slice is the one place where it becomes readable. */
#ifndef PGP_CRYPTO_SECRET_H
#define PGP_CRYPTO_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* A zeroed struct is an empty secret. */
struct secret {
    char *bytes; /* of mem_alloc_secret, NUL behind the last byte */
    size_t n;
};

/* Replaces *s by a copy of `from`; the old bytes are wiped. `from` may lie inside *s. */
void secret_set(struct secret *s, struct slice from);
/* Wipes and frees; *s is empty afterwards. */
void secret_free(struct secret *s);
/* Moves the bytes of *from into *to, whose old bytes are wiped. */
void secret_move(struct secret *to, struct secret *from);
/* A view, valid until the secret changes. */
struct slice secret_slice(const struct secret *s);
static inline bool secret_is_empty(const struct secret *s)
{
    return s->n == 0;
}
/* Compares content in a time that depends on the length of `b` alone. */
bool secret_equal(const struct secret *a, struct slice b);

#endif
