/* SPDX-License-Identifier: PostgreSQL
 * auth_held.c: a table of names and how often each is held.
 * Runs in: workers. */
#include "config.h"

#include "auth_held.h"

#include <stdint.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"

struct held_name {
    struct hash_node node;
    uint32_t count;
    uint32_t len;
    char name[];
};

static int held_eq(const struct hash_node *node, const void *key)
{
    const struct held_name *n = LIST_ENTRY(node, struct held_name, node);
    const struct slice *name = key;

    return slice_eq(slice_of(n->name, n->len), *name);
}

static struct held_name *held_find(const struct auth_held *h, struct slice name)
{
    struct hash_node *n = hash_table_find(&h->names, hash_bytes(name.p, name.n, 0), held_eq, &name);

    return n == NULL ? NULL : LIST_ENTRY(n, struct held_name, node);
}

void auth_held_init(struct auth_held *h)
{
    hash_table_init(&h->names);
}

void auth_held_fini(struct auth_held *h)
{
    hash_table_fini(&h->names);
}

void auth_held_add(struct auth_held *h, struct slice name)
{
    struct held_name *n = held_find(h, name);

    if (n == NULL) {
        n = mem_alloc_zero(sizeof *n + name.n);
        n->len = (uint32_t)name.n;
        memcpy(n->name, name.p, name.n);
        hash_table_add(&h->names, &n->node, hash_bytes(name.p, name.n, 0));
    }
    n->count++;
}

void auth_held_del(struct auth_held *h, struct slice name)
{
    struct held_name *n = held_find(h, name);

    if (n == NULL || --n->count > 0)
        return;
    hash_table_del(&h->names, &n->node);
    mem_free(n);
}

bool auth_held_has(const struct auth_held *h, struct slice name)
{
    return held_find(h, name) != NULL;
}
