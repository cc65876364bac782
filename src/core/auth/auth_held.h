/* SPDX-License-Identifier: PostgreSQL
 * auth_held.h: how many pools there are of which user of the book.
 * Runs in: workers. Apart from the book's users: a pool is there before anything is known, and
 * often nothing ever is. */
#ifndef PGP_AUTH_AUTH_HELD_H
#define PGP_AUTH_AUTH_HELD_H

#include <stdbool.h>

#include "base/hash.h"
#include "base/slice.h"

struct auth_held {
    struct hash_table names;
};

void auth_held_init(struct auth_held *h);
void auth_held_fini(struct auth_held *h);
/* One more, one less; one that was not counted is not taken away. */
void auth_held_add(struct auth_held *h, struct slice name);
void auth_held_del(struct auth_held *h, struct slice name);
/* There is at least one. */
bool auth_held_has(const struct auth_held *h, struct slice name);

#endif
