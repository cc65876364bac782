/* SPDX-License-Identifier: PostgreSQL
 * paramset.c: name = value strings in one block. A server reports about fifteen of them, so a walk
 * is the fastest look-up there is. Blocks are never changed: whoever changes its set gets a new
 * one. */
#include "config.h"

#include "backend/paramset.h"

#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/mem.h"

struct paramset_block {
    struct hash_node node;
    struct paramset_store *store; /* NULL: it is in none */
    uint32_t refs;
    uint32_t len;
    char data[];
};

void paramset_store_init(struct paramset_store *store)
{
    hash_table_init(&store->table);
}

void paramset_store_fini(struct paramset_store *store)
{
    ASSERT(store->table.count == 0);
    hash_table_fini(&store->table);
}

/* A block for `len` bytes. */
static struct paramset_block *block_new(size_t len)
{
    struct paramset_block *block = mem_alloc(sizeof *block + len);

    block->store = NULL;
    block->refs = 1;
    block->len = (uint32_t)len;
    return block;
}

static int block_eq(const struct hash_node *node, const void *key)
{
    const struct paramset_block *block = (const struct paramset_block *)node;
    const struct paramset_block *other = key;

    return block->len == other->len && memcmp(block->data, other->data, block->len) == 0;
}

void paramset_share(struct paramset *ps, struct paramset_store *store)
{
    struct paramset_block *own = ps->block;
    struct paramset_block *block;
    uint64_t hash;

    if (paramset_is_empty(ps) || own->store != NULL)
        return;
    hash = hash_bytes(own->data, own->len, 13);
    block = (struct paramset_block *)hash_table_find(&store->table, hash, block_eq, own);
    if (block != NULL) {
        block->refs++;
        paramset_free(ps);
        ps->block = block;
    } else {
        own->store = store;
        hash_table_add(&store->table, &own->node, hash);
    }
}

struct slice paramset_bytes(const struct paramset *ps)
{
    return ps->block == NULL ? slice_of("", 0) : slice_of(ps->block->data, ps->block->len);
}

void paramset_set_bytes(struct paramset *ps, struct slice bytes)
{
    struct paramset_block *block = NULL;

    if (bytes.n > 0) {
        block = block_new(bytes.n);
        memcpy(block->data, bytes.p, bytes.n);
    }
    paramset_free(ps);
    ps->block = block;
}

void paramset_free(struct paramset *ps)
{
    struct paramset_block *block = ps->block;

    ps->block = NULL;
    if (block == NULL)
        return;
    ASSERT(block->refs > 0);
    if (--block->refs > 0)
        return;
    if (block->store != NULL)
        hash_table_del(&block->store->table, &block->node);
    mem_free(block);
}

bool paramset_next(const struct paramset *ps, uint32_t *at, struct slice *name, struct slice *value)
{
    const char *p;

    if (ps->block == NULL || *at >= ps->block->len)
        return false;
    p = ps->block->data + *at;
    *name = slice_of_str(p);
    *value = slice_of_str(p + name->n + 1);
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

/* Where the pair of that name begins and ends; false when there is none. */
static bool find_pair(const struct paramset *ps, struct slice name, uint32_t *start, uint32_t *end,
    struct slice *value)
{
    struct slice n;

    *start = 0;
    *end = 0;
    while (paramset_next(ps, end, &n, value)) {
        if (name_eq(n, name))
            return true;
        *start = *end;
    }
    return false;
}

/* The set without the bytes from `start` to `end`, and with `add` at its end. */
static void cut_and_add(struct paramset *ps, uint32_t start, uint32_t end, struct slice add)
{
    struct slice old = paramset_bytes(ps);
    size_t left = old.n - (end - start);
    struct paramset_block *block = NULL;

    if (left + add.n > 0) {
        block = block_new(left + add.n);
        memcpy(block->data, old.p, start);
        memcpy(block->data + start, old.p + end, old.n - end);
        if (add.n > 0)
            memcpy(block->data + left, add.p, add.n);
    }
    paramset_free(ps);
    ps->block = block;
}

void paramset_drop(struct paramset *ps, struct slice name)
{
    struct slice value;
    uint32_t start;
    uint32_t end;

    if (find_pair(ps, name, &start, &end, &value))
        cut_and_add(ps, start, end, slice_of("", 0));
}

bool paramset_set(struct paramset *ps, struct slice name, struct slice value)
{
    struct slice before;
    uint32_t start;
    uint32_t end;
    struct buf pair = {0};

    if (!find_pair(ps, name, &start, &end, &before))
        start = end;
    else if (slice_eq(before, value))
        return false;
    buf_put(&pair, name.p, name.n);
    buf_put_byte(&pair, '\0');
    buf_put(&pair, value.p, value.n);
    buf_put_byte(&pair, '\0');
    cut_and_add(ps, start, end, buf_slice(&pair));
    buf_free(&pair);
    return true;
}

bool paramset_has_room(const struct paramset *ps, struct slice name, struct slice value,
    uint32_t max_pairs, uint32_t max_bytes)
{
    size_t bytes = paramset_bytes(ps).n + name.n + value.n + 2;
    struct slice n;
    struct slice v;
    uint32_t pairs = 1;
    uint32_t at = 0;

    while (paramset_next(ps, &at, &n, &v)) {
        if (name_eq(n, name))
            bytes -= n.n + v.n + 2;
        else
            pairs++;
    }
    return pairs <= max_pairs && bytes <= max_bytes;
}

void paramset_copy(struct paramset *dst, const struct paramset *src)
{
    struct paramset_block *block = src->block;

    if (block != NULL)
        block->refs++;
    paramset_free(dst);
    dst->block = block;
}

/* Order does not matter. */
bool paramset_eq(const struct paramset *a, const struct paramset *b)
{
    struct slice n;
    struct slice v;
    struct slice other;
    uint32_t at = 0;

    if (a->block == b->block || slice_eq(paramset_bytes(a), paramset_bytes(b)))
        return true;
    if (paramset_bytes(a).n != paramset_bytes(b).n)
        return false;
    while (paramset_next(a, &at, &n, &v)) {
        other = paramset_get(b, n);
        if (other.p == NULL || !slice_eq(other, v))
            return false;
    }
    return true;
}
