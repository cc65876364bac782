/* SPDX-License-Identifier: PostgreSQL
 * route_cache.c: answers about the catalogue, one cache per worker, least recently used out first.
 * Runs in: workers. */
#include "config.h"

#include <string.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/mem.h"
#include "route/route_oracle.h"
#include "route_int.h"

/* One string must be decidable whatever relcache_size is, or it would be asked about for ever. */
#define CACHE_MIN (ROUTE_MAX_LOOKUPS + ROUTE_MAX_QUESTIONS)
/* Answers that other sessions may falsify without a word hold for this long. */
#define SHORT_LIVED_US 1000000

struct entry {
    struct hash_node node;
    struct list lru;
    int64_t until_us; /* INT64_MAX: for ever */
    uint32_t bits;
    uint32_t nargs;
    uint32_t len[4]; /* database, path, schema, name */
    uint8_t kind;
    char text[];
};

struct kind_cache {
    struct hash_table table;
    struct list lru; /* most recently used first */
};

struct route_cache {
    struct kind_cache kind[ROUTE_QUESTION_KINDS];
    uint32_t size;
    int64_t expire_us;
    struct route_cache_stats stats;
};

struct key {
    const struct route_question *q;
    struct slice part[4];
};

struct route_cache *route_cache_new(uint32_t size, int64_t expire_ms)
{
    struct route_cache *c = mem_alloc_zero(sizeof *c);
    unsigned k;

    c->size = size < CACHE_MIN ? CACHE_MIN : size;
    c->expire_us = expire_ms > INT64_MAX / 2000 ? 0 : expire_ms * 1000;
    for (k = 0; k < ROUTE_QUESTION_KINDS; k++) {
        hash_table_init(&c->kind[k].table);
        list_init(&c->kind[k].lru);
    }
    return c;
}

static void remove_entry(struct route_cache *c, struct entry *e)
{
    hash_table_del(&c->kind[e->kind].table, &e->node);
    list_remove(&e->lru);
    mem_free(e);
    c->stats.entries--;
}

void route_cache_clear(struct route_cache *c)
{
    unsigned k;
    struct list *first;

    for (k = 0; k < ROUTE_QUESTION_KINDS; k++)
        while ((first = list_first(&c->kind[k].lru)) != NULL)
            remove_entry(c, LIST_ENTRY(first, struct entry, lru));
}

void route_cache_free(struct route_cache **cp)
{
    struct route_cache *c = *cp;
    unsigned k;

    *cp = NULL;
    if (c == NULL)
        return;
    route_cache_clear(c);
    for (k = 0; k < ROUTE_QUESTION_KINDS; k++)
        hash_table_fini(&c->kind[k].table);
    mem_free(c);
}

/* A name with a schema means the same under every search_path. What a database has in store depends
 * on the user, who is part of the path. */
static struct key make_key(struct slice database, struct slice path, const struct route_question *q)
{
    struct key key = {.q = q};

    key.part[0] = database;
    key.part[1] = q->schema.n != 0 || q->kind == ROUTE_Q_OPERATOR ? slice_of("", 0) : path;
    key.part[2] = q->schema;
    key.part[3] = q->name;
    return key;
}

static uint64_t hash_key(const struct key *key)
{
    uint64_t h = key->q->nargs;
    int i;

    for (i = 0; i < 4; i++)
        h = hash_bytes(key->part[i].p, key->part[i].n, h);
    return h;
}

static int key_eq(const struct hash_node *node, const void *p)
{
    const struct entry *e = (const struct entry *)(const void *)node;
    const struct key *key = p;
    const char *at = e->text;
    int i;

    if (e->nargs != key->q->nargs)
        return 0;
    for (i = 0; i < 4; i++) {
        if (!slice_eq(slice_of(at, e->len[i]), key->part[i]))
            return 0;
        at += e->len[i];
    }
    return 1;
}

static struct entry *find(struct route_cache *c, const struct key *key, uint64_t hash)
{
    struct hash_node *node = hash_table_find(&c->kind[key->q->kind].table, hash, key_eq, key);

    return node == NULL ? NULL : (struct entry *)(void *)node;
}

int route_cache_get(struct route_cache *c, struct slice database, struct slice path,
    const struct route_question *q, int64_t now_us, uint32_t *bits_r)
{
    struct key key = make_key(database, path, q);
    struct entry *e = find(c, &key, hash_key(&key));

    if (e == NULL) {
        c->stats.misses++;
        return -1;
    }
    if (e->until_us <= now_us) {
        c->stats.misses++;
        c->stats.expired++;
        remove_entry(c, e);
        return -1;
    }
    c->stats.hits++;
    list_remove(&e->lru);
    list_push_front(&c->kind[q->kind].lru, &e->lru);
    *bits_r = e->bits;
    return 0;
}

static bool is_short_lived(const struct route_question *q, uint32_t bits)
{
    switch (q->kind) {
    case ROUTE_Q_RELATION:
        return (bits & (ROUTE_REL_TEMP | ROUTE_REL_MISSING)) != 0;
    case ROUTE_Q_FUNCTION:
    case ROUTE_Q_OPERATOR:
        return (bits & ROUTE_FUNC_MISSING) != 0;
    case ROUTE_Q_OID:
        return bits == 0;
    case ROUTE_Q_DATABASE:
        break;
    }
    return false;
}

static int64_t valid_until(
    const struct route_cache *c, const struct route_question *q, int64_t now_us, uint32_t bits)
{
    int64_t span_us = c->expire_us;

    if (is_short_lived(q, bits) && (span_us == 0 || span_us > SHORT_LIVED_US))
        span_us = SHORT_LIVED_US;
    return span_us == 0 || span_us > INT64_MAX - now_us ? INT64_MAX : now_us + span_us;
}

void route_cache_put(struct route_cache *c, struct slice database, struct slice path,
    const struct route_question *q, int64_t now_us, uint32_t bits)
{
    struct key key = make_key(database, path, q);
    uint64_t hash = hash_key(&key);
    struct kind_cache *k = &c->kind[q->kind];
    struct entry *e = find(c, &key, hash);
    char *at;
    int i;

    if (e != NULL)
        remove_entry(c, e);
    if (k->table.count >= c->size) {
        remove_entry(c, LIST_ENTRY(list_last(&k->lru), struct entry, lru));
        c->stats.evictions++;
    }
    e = mem_alloc(sizeof *e + key.part[0].n + key.part[1].n + key.part[2].n + key.part[3].n);
    e->kind = (uint8_t)q->kind;
    e->nargs = q->nargs;
    e->bits = bits;
    e->until_us = valid_until(c, q, now_us, bits);
    for (i = 0, at = e->text; i < 4; i++) {
        e->len[i] = (uint32_t)key.part[i].n;
        if (key.part[i].n > 0)
            memcpy(at, key.part[i].p, key.part[i].n);
        at += key.part[i].n;
    }
    list_init(&e->lru);
    list_push_front(&k->lru, &e->lru);
    hash_table_add(&k->table, &e->node, hash);
    c->stats.entries++;
}

void route_cache_stats(const struct route_cache *c, struct route_cache_stats *out)
{
    *out = c->stats;
}
