/* SPDX-License-Identifier: PostgreSQL
 * qcache_book.c: judgements of a worker by the names they are about, least recently used out first.
 * Runs in: workers. A judgement holds as long as the catalogue was not changed through any pgpool
 * that shares the cache, and no longer than relcache_expire. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "cache/cache_stats.h"
#include "qcache/qcache.h"

struct qcache_book {
    struct hash_table table;
    struct list lru; /* most recently used first */
    uint32_t size;
    int64_t expire_us;
    struct qcache_asked asked;
    const struct qcache_judgement *noted; /* NULL: nothing is */
};

static int key_eq(const struct hash_node *node, const void *key)
{
    const struct qcache_judgement *j = (const struct qcache_judgement *)node;

    return slice_eq(slice_of(j->key, j->key_len), *(const struct slice *)key);
}

static uint64_t key_hash(struct slice key)
{
    return hash_bytes(key.p, key.n, 41);
}

struct qcache_book *qcache_book_new(uint32_t size, int64_t expire_ms)
{
    struct qcache_book *b = mem_alloc_zero(sizeof *b);

    hash_table_init(&b->table);
    list_init(&b->lru);
    b->size = size < 64 ? 64 : size;
    b->expire_us = expire_ms > INT64_MAX / 2000 ? 0 : expire_ms * 1000;
    return b;
}

static void drop(struct qcache_book *b, struct qcache_judgement *j)
{
    if (b->noted == j)
        b->noted = NULL;
    hash_table_del(&b->table, &j->node);
    list_remove(&j->lru);
    mem_free(j->reads);
    mem_free(j->writes);
    mem_free(j->tables);
    mem_free(j->columns);
    mem_free(j);
}

void qcache_book_clear(struct qcache_book *b)
{
    while (!list_is_empty(&b->lru))
        drop(b, LIST_ENTRY(list_first(&b->lru), struct qcache_judgement, lru));
}

void qcache_book_free(struct qcache_book **bp)
{
    struct qcache_book *b = *bp;

    *bp = NULL;
    if (b == NULL)
        return;
    qcache_book_clear(b);
    hash_table_fini(&b->table);
    mem_free(b);
}

static bool holds(const struct qcache_judgement *j, const struct cache_gens *gens, int64_t now_us)
{
    return now_us < j->until_us && cache_deps_hold(&j->known, gens);
}

const struct qcache_judgement *qcache_book_find(
    struct qcache_book *b, const struct cache_gens *gens, struct slice key, int64_t now_us)
{
    struct qcache_judgement *j =
        (struct qcache_judgement *)hash_table_find(&b->table, key_hash(key), key_eq, &key);

    if (j == NULL)
        return NULL;
    if (!holds(j, gens, now_us)) {
        drop(b, j);
        return NULL;
    }
    list_remove(&j->lru);
    list_push_front(&b->lru, &j->lru);
    return j;
}

void qcache_book_note(
    struct qcache_book *b, const struct qcache_asked *asked, const struct qcache_judgement *j)
{
    b->asked = *asked;
    b->noted = j;
}

const struct qcache_judgement *qcache_book_noted(const struct qcache_book *b,
    const struct qcache_asked *asked, const struct cache_gens *gens, int64_t now_us)
{
    const struct qcache_asked *is = &b->asked;

    if (b->noted == NULL || is->client != asked->client || is->vars != asked->vars ||
        is->facts != asked->facts || is->sql != asked->sql || !holds(b->noted, gens, now_us))
        return NULL;
    return b->noted;
}

void qcache_book_put(struct qcache_book *b, struct qcache_judgement *j, int64_t now_us)
{
    struct slice key = slice_of(j->key, j->key_len);
    struct qcache_judgement *old =
        (struct qcache_judgement *)hash_table_find(&b->table, key_hash(key), key_eq, &key);

    if (old != NULL)
        drop(b, old);
    if (b->table.count >= b->size)
        drop(b, LIST_ENTRY(list_last(&b->lru), struct qcache_judgement, lru));
    j->until_us = b->expire_us == 0 ? INT64_MAX : now_us + b->expire_us;
    hash_table_add(&b->table, &j->node, key_hash(key));
    list_push_front(&b->lru, &j->lru);
}

uint32_t qcache_number_tables(const struct qcache_judgement *j, struct cache *c,
    struct slice database, uint16_t table[CACHE_ENTRY_TABLES])
{
    uint32_t i;

    for (i = 0; i < j->ntables; i++) {
        struct qcache_table *t = &j->tables[i];

        if (t->number == 0)
            t->number = cache_table_number(c,
                cache_cell_table(cache_cell_database(database), t->oid), database,
                slice_of(t->text, t->schema_len), slice_of(t->text + t->schema_len, t->name_len));
        table[i] = t->number;
    }
    return i;
}
