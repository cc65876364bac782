/* SPDX-License-Identifier: PostgreSQL
 * route_cache.c: answers about the catalogue, one cache per worker, least recently used out first.
 * Runs in: workers. */
#include "config.h"

#include <string.h>

#include "base/hash.h"
#include "base/hot.h"
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
    uint64_t scope;
    uint32_t schema_len;
    uint32_t name_len;
    uint8_t kind;
    char text[]; /* schema, name */
};

struct kind_cache {
    struct hash_table table;
    struct list lru; /* most recently used first */
};

struct route_cache {
    struct kind_cache kind[ROUTE_QUESTION_KINDS];
    uint32_t size;
    int64_t expire_us;
    uint64_t epoch;     /* grows with every change */
    int64_t soonest_us; /* no answer expires before */
    struct route_cache_stats stats;
};

struct key {
    const struct route_question *q;
    uint64_t scope;
};

/* A name with a schema means the same under every search_path. What a database has in store depends
 * on the user, who is part of what names mean. */
uint64_t route_question_scope(struct route_scope scope, const struct route_question *q)
{
    bool is_same_for_all =
        q->schema.n != 0 || q->kind == ROUTE_Q_OPERATOR || q->kind == ROUTE_Q_WORD;

    return is_same_for_all ? scope.database : scope.names;
}

WARM uint64_t route_question_hash(struct route_scope scope, const struct route_question *q)
{
    uint64_t h = hash_bytes(q->name.p, q->name.n, route_question_scope(scope, q) + q->nargs);

    return q->schema.n == 0 ? h : hash_bytes(q->schema.p, q->schema.n, h);
}

struct route_cache *route_cache_new(uint32_t size, int64_t expire_ms)
{
    struct route_cache *c = mem_alloc_zero(sizeof *c);
    unsigned k;

    c->soonest_us = INT64_MAX;
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
    c->epoch++;
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

static int key_eq(const struct hash_node *node, const void *p)
{
    const struct entry *e = (const struct entry *)(const void *)node;
    const struct key *key = p;

    return e->scope == key->scope && e->nargs == key->q->nargs &&
           slice_eq(slice_of(e->text, e->schema_len), key->q->schema) &&
           slice_eq(slice_of(e->text + e->schema_len, e->name_len), key->q->name);
}

static struct entry *find(struct route_cache *c, const struct key *key, uint64_t hash)
{
    struct hash_node *node = hash_table_find(&c->kind[key->q->kind].table, hash, key_eq, key);

    return node == NULL ? NULL : (struct entry *)(void *)node;
}

WARM int route_cache_get(struct route_cache *c, struct route_scope scope,
    const struct route_question *q, int64_t now_us, uint32_t *bits_r)
{
    struct key key = {q, route_question_scope(scope, q)};
    struct entry *e = find(c, &key, route_question_hash(scope, q));

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
    case ROUTE_Q_WORD:
        break;
    }
    return false;
}

int64_t route_cache_valid_until(
    const struct route_cache *c, const struct route_question *q, int64_t now_us, uint32_t bits)
{
    int64_t span_us = c->expire_us;

    if (is_short_lived(q, bits) && (span_us == 0 || span_us > SHORT_LIVED_US))
        span_us = SHORT_LIVED_US;
    return span_us == 0 || span_us > INT64_MAX - now_us ? INT64_MAX : now_us + span_us;
}

void route_cache_put(struct route_cache *c, struct route_scope scope,
    const struct route_question *q, int64_t until_us, uint32_t bits)
{
    struct key key = {q, route_question_scope(scope, q)};
    uint64_t hash = route_question_hash(scope, q);
    struct kind_cache *k = &c->kind[q->kind];
    struct entry *e = find(c, &key, hash);

    if (e != NULL)
        remove_entry(c, e);
    if (k->table.count >= c->size) {
        remove_entry(c, LIST_ENTRY(list_last(&k->lru), struct entry, lru));
        c->stats.evictions++;
    }
    e = mem_alloc(sizeof *e + q->schema.n + q->name.n);
    e->kind = (uint8_t)q->kind;
    e->nargs = q->nargs;
    e->bits = bits;
    e->until_us = until_us;
    e->scope = key.scope;
    e->schema_len = (uint32_t)q->schema.n;
    e->name_len = (uint32_t)q->name.n;
    if (q->schema.n > 0)
        memcpy(e->text, q->schema.p, q->schema.n);
    if (q->name.n > 0)
        memcpy(e->text + q->schema.n, q->name.p, q->name.n);
    list_init(&e->lru);
    list_push_front(&k->lru, &e->lru);
    hash_table_add(&k->table, &e->node, hash);
    if (e->until_us < c->soonest_us)
        c->soonest_us = e->until_us;
    c->epoch++;
    c->stats.entries++;
}

/* An answer has expired: a new epoch begins. Notes when the next one expires. */
static void expire(struct route_cache *c, int64_t now_us)
{
    struct list *n;
    unsigned k;

    c->epoch++;
    c->soonest_us = INT64_MAX;
    for (k = 0; k < ROUTE_QUESTION_KINDS; k++)
        LIST_FOREACH(n, &c->kind[k].lru)
        {
            int64_t until_us = LIST_ENTRY(n, struct entry, lru)->until_us;

            if (until_us > now_us && until_us < c->soonest_us)
                c->soonest_us = until_us;
        }
}

HOT uint64_t route_cache_id(struct route_cache *c, struct route_scope scope, int64_t now_us)
{
    if (now_us >= c->soonest_us)
        expire(c, now_us);
    return hash_pair(hash_pair(scope.database, scope.names), c->epoch) | 1;
}

void route_cache_touch(struct route_cache *c)
{
    c->epoch++;
}

void route_cache_stats(const struct route_cache *c, struct route_cache_stats *out)
{
    *out = c->stats;
}
