/* SPDX-License-Identifier: PostgreSQL
 * paramset.c: name = value strings in one block. A server reports about fifteen of them, so a walk
 * is the fastest look-up there is. Blocks that are shared are never written: whoever changes its
 * set leaves them to the others. */
#include "config.h"

#include "backend/paramset.h"

#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"

struct paramset_block {
    struct hash_node node;
    struct paramset_store *store;
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

static int block_eq(const struct hash_node *node, const void *key)
{
    const struct paramset_block *block = (const struct paramset_block *)node;
    const struct paramset *ps = key;

    return block->len == ps->len && memcmp(block->data, ps->data, ps->len) == 0;
}

void paramset_share(struct paramset *ps, struct paramset_store *store)
{
    struct paramset_block *block;
    uint64_t hash;

    if (ps->len == 0 || ps->is_shared)
        return;
    hash = hash_bytes(ps->data, ps->len, 13);
    block = (struct paramset_block *)hash_table_find(&store->table, hash, block_eq, ps);
    if (block == NULL) {
        block = mem_alloc(sizeof *block + ps->len);
        block->store = store;
        block->refs = 0;
        block->len = ps->len;
        memcpy(block->data, ps->data, ps->len);
        hash_table_add(&store->table, &block->node, hash);
    }
    block->refs++;
    mem_free(ps->data);
    ps->data = block->data;
    ps->is_shared = true;
}

void paramset_free(struct paramset *ps)
{
    struct paramset_block *block;

    if (!ps->is_shared) {
        mem_free(ps->data);
    } else {
        block = LIST_ENTRY(ps->data, struct paramset_block, data);
        ASSERT(block->refs > 0);
        if (--block->refs == 0) {
            hash_table_del(&block->store->table, &block->node);
            mem_free(block);
        }
    }
    ps->data = NULL;
    ps->len = 0;
    ps->is_shared = false;
}

/* A block of its own, to be changed. */
static void paramset_own(struct paramset *ps)
{
    struct paramset own = {0};

    if (!ps->is_shared)
        return;
    paramset_copy(&own, ps);
    paramset_free(ps);
    *ps = own;
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
            paramset_own(ps);
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
    uint32_t len;
    size_t add = name.n + value.n + 2;
    char *data;

    while (paramset_next(ps, &at, &n, &v)) {
        if (!name_eq(n, name)) {
            start = at;
            continue;
        }
        if (slice_eq(v, value))
            return false;
        paramset_own(ps);
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
    len = ps->len + (uint32_t)add;
    paramset_free(ps);
    ps->data = data;
    ps->len = len;
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
