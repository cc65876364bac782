/* SPDX-License-Identifier: PostgreSQL
 * client_named.c: the names of a relayed session's prepared statements: as what an Execute of them
 * counts, and their texts, for the figures and for what others have to be told of. Runs in:
 * workers. Bounded: of more statements it is not known what they count as. */
#include "config.h"

#include <string.h>

#include "backend/prep.h"
#include "base/hot.h"
#include "base/mem.h"

#include "feed/client_named_int.h"

#define NAMED_MAX 4096

struct client_named {
    struct hash_table table;
};

HOT static int named_eq(const struct hash_node *node, const void *key)
{
    const struct named_statement *n = (const struct named_statement *)node;

    return prep_is_same_name(slice_of(n->name, n->len), *(const struct slice *)key);
}

static uint64_t named_hash(struct slice name)
{
    return hash_bytes(name.p, prep_known_name(name).n, 7);
}

HOT struct named_statement *client_named_find(const struct client_named *names, struct slice name)
{
    if (names == NULL)
        return NULL;
    return (struct named_statement *)hash_table_find(
        &names->table, named_hash(name), named_eq, &name);
}

void client_named_add(
    struct client_named **np, struct slice name, struct slice sql, enum count_kind kind)
{
    struct named_statement *n;

    client_named_remove(*np, name);
    if (*np == NULL) {
        *np = mem_alloc_zero(sizeof **np);
        hash_table_init(&(*np)->table);
    }
    if ((*np)->table.count == NAMED_MAX)
        return;
    n = mem_alloc_zero(sizeof *n + name.n + 1);
    n->kind = (uint8_t)kind;
    n->sql = mem_strndup(sql.p, sql.n);
    n->len = (uint32_t)name.n;
    memcpy(n->name, name.p, name.n);
    hash_table_add(&(*np)->table, &n->node, named_hash(name));
}

static void named_free(struct named_statement *n)
{
    mem_free(n->sql);
    mem_free(n);
}

void client_named_remove(struct client_named *names, struct slice name)
{
    struct named_statement *n = client_named_find(names, name);

    if (n == NULL)
        return;
    hash_table_del(&names->table, &n->node);
    named_free(n);
}

void client_named_free(struct client_named **np)
{
    struct hash_table *t = *np == NULL ? NULL : &(*np)->table;
    struct hash_node *node;
    struct hash_node *next;
    uint32_t i;

    for (i = 0; t != NULL && t->bucket != NULL && i <= t->mask; i++)
        for (node = t->bucket[i]; node != NULL; node = next) {
            next = node->next;
            named_free((struct named_statement *)node);
        }
    if (t != NULL)
        hash_table_fini(t);
    mem_free(*np);
    *np = NULL;
}
