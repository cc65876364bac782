/* SPDX-License-Identifier: PostgreSQL
 * row_alloc.c: a stack of free rows over a high-water mark, and the same for names. Runs in:
 * workers. Names are kept once for all rows of the worker that have them: who uses which is known
 * here alone. A place is given to other names only when no row says that its own stand there, so a
 * reader that copied other names by mistake finds that the row has changed meanwhile. */
#include "config.h"

#include "backend/row_alloc.h"

#include <stdatomic.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/mem.h"

struct name_entry {
    struct hash_node node; /* `next` leads to the next free one while nobody uses it */
    uint32_t refs;
    int32_t place;
};

struct row_alloc {
    struct rows_header *rows;
    struct rows_worker *range;
    uint32_t next; /* rows from here on were never used */
    uint32_t nfree;
    uint32_t cap;
    int32_t *free_row;
    struct hash_table names;
    struct name_entry **entry; /* by place in the worker's range */
    uint32_t nentries;
    uint32_t entries_cap;
    struct hash_node *free_entry;
};

struct row_alloc *row_alloc_new(struct rows_header *rows, int ordinal)
{
    struct row_alloc *a = mem_alloc_zero(sizeof *a);

    a->rows = rows;
    a->range = rows_worker(rows, (uint32_t)ordinal);
    hash_table_init(&a->names);
    return a;
}

void row_alloc_free(struct row_alloc **ap)
{
    struct row_alloc *a = *ap;
    uint32_t i;

    *ap = NULL;
    if (a == NULL)
        return;
    hash_table_fini(&a->names);
    for (i = 0; i < a->nentries; i++)
        mem_free(a->entry[i]);
    mem_free(a->entry);
    mem_free(a->free_row);
    mem_free(a);
}

int row_alloc_take(struct row_alloc *a)
{
    if (a->nfree > 0) {
        atomic_fetch_add(&a->range->served, 1);
        return a->free_row[--a->nfree];
    }
    if (a->next == a->range->count)
        return ROWS_NO_ROW;
    atomic_fetch_add(&a->range->served, 1);
    if (++a->next > a->range->high_water)
        a->range->high_water = a->next;
    return (int)(a->range->first + a->next - 1);
}

/* ---- names ---- */

static bool names_eq(const struct row_names *a, const struct row_names *b)
{
    return a->user_len == b->user_len && a->database_len == b->database_len &&
           a->application_len == b->application_len &&
           memcmp(a->text, b->text, (size_t)a->user_len + a->database_len + a->application_len) ==
               0;
}

struct names_key {
    const struct row_alloc *a;
    const struct row_names *names;
};

static int entry_eq(const struct hash_node *node, const void *key)
{
    const struct names_key *k = key;

    return names_eq(rows_names_at(k->a->rows, ((const struct name_entry *)node)->place), k->names);
}

static struct name_entry *entry_new(struct row_alloc *a)
{
    struct name_entry *e = (struct name_entry *)a->free_entry;

    if (e != NULL) {
        a->free_entry = e->node.next;
        return e;
    }
    ASSERT(a->nentries < a->range->count); /* no row has two, and this one has none */
    if (a->nentries == a->entries_cap) {
        a->entries_cap = a->entries_cap == 0 ? 8 : a->entries_cap * 2;
        a->entry = mem_resize(a->entry, a->entries_cap * sizeof(struct name_entry *));
    }
    e = mem_alloc_zero(sizeof *e);
    e->place = (int32_t)(a->range->first + a->nentries);
    a->entry[a->nentries++] = e;
    return e;
}

static void names_release(struct row_alloc *a, int32_t names)
{
    struct name_entry *e;

    if (names == ROWS_NO_NAMES)
        return;
    e = a->entry[(uint32_t)names - 1 - a->range->first];
    ASSERT(e->refs > 0);
    if (--e->refs > 0)
        return;
    hash_table_del(&a->names, &e->node);
    e->node.next = a->free_entry;
    a->free_entry = &e->node;
}

void row_alloc_name(struct row_alloc *a, int row, struct slice user, struct slice database,
    struct slice application)
{
    struct row_head *head = rows_at(a->rows, row);
    struct row_names names;
    struct names_key key = {a, &names};
    struct name_entry *e;
    uint64_t hash;

    row_names_set(&names, user, database, application);
    hash = hash_bytes(names.text, names.user_len, names.database_len);
    hash = hash_bytes(
        names.text + names.user_len, (size_t)names.database_len + names.application_len, hash);
    e = (struct name_entry *)hash_table_find(&a->names, hash, entry_eq, &key);
    if (e != NULL)
        e->refs++;
    names_release(a, head->names);
    if (e == NULL) {
        e = entry_new(a);
        e->refs = 1;
        *rows_names_at(a->rows, e->place) = names;
        hash_table_add(&a->names, &e->node, hash);
    }
    head->names = e->place + 1;
}

void row_alloc_give(struct row_alloc *a, int row)
{
    struct row_head *head = rows_at(a->rows, row);
    int32_t names;

    if (row == ROWS_NO_ROW)
        return;
    names = head->names;
    shm_write_begin(&head->seq);
    head->state = 0;
    head->names = ROWS_NO_NAMES;
    shm_write_end(&head->seq);
    names_release(a, names);
    if (a->nfree == a->cap) {
        a->cap = a->cap == 0 ? 64 : a->cap * 2;
        a->free_row = mem_resize(a->free_row, a->cap * sizeof *a->free_row);
    }
    a->free_row[a->nfree++] = row;
}
