/* SPDX-License-Identifier: PostgreSQL
 * statements.c: the prepared statements of one client. Bounded: with too many, the oldest is
 * forgotten here (the server keeps it), which means no more than that it runs on the client's own
 * link. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "wire/proto.h"
#include "wire/reader.h"

#include "statements_int.h"

#define STATEMENTS_MAX 4096

static int statement_eq(const struct hash_node *node, const void *key)
{
    return slice_eq(
        statement_name(LIST_ENTRY(node, struct statement, node)), *(const struct slice *)key);
}

static uint64_t name_hash(struct slice name)
{
    return hash_bytes(name.p, name.n, 7);
}

static void statement_free(struct statements *s, struct statement *st)
{
    if (st == s->unnamed)
        s->unnamed = NULL;
    else
        hash_table_del(&s->table, &st->node);
    list_remove(&st->order);
    mem_free(st);
}

struct statement *statements_find(const struct statements *s, struct slice name)
{
    struct hash_node *n;

    if (s == NULL || name.n == 0)
        return s == NULL ? NULL : s->unnamed;
    n = hash_table_find(&s->table, name_hash(name), statement_eq, &name);
    return n == NULL ? NULL : LIST_ENTRY(n, struct statement, node);
}

static struct statements *statements_open(struct statements **sp)
{
    if (*sp == NULL) {
        *sp = mem_alloc_zero(sizeof **sp);
        hash_table_init(&(*sp)->table);
        list_init(&(*sp)->order);
    }
    return *sp;
}

static struct statement *add_named(struct statements *s, struct slice name, size_t room)
{
    struct statement *st = statements_find(s, name);

    if (st != NULL)
        statement_free(s, st);
    while (s->table.count >= STATEMENTS_MAX)
        statement_free(s, LIST_ENTRY(list_first(&s->order), struct statement, order));
    st = mem_alloc_zero(sizeof *st + room);
    hash_table_add(&s->table, &st->node, name_hash(name));
    return st;
}

/* Its place is used again, unless it is far too large. */
static struct statement *add_unnamed(struct statements *s, size_t room)
{
    struct statement *st = s->unnamed;

    if (st != NULL && room <= st->room && st->room <= 4 * room) {
        room = st->room;
        list_remove(&st->order);
        memset(st, 0, sizeof *st);
    } else {
        if (st != NULL)
            statement_free(s, st);
        st = mem_alloc_zero(sizeof *st + room);
    }
    st->room = (uint16_t)room;
    s->unnamed = st;
    return st;
}

struct statement *statements_add(
    struct statements **sp, struct slice name, struct slice msg, enum count_kind count)
{
    struct statements *s = statements_open(sp);
    size_t keep = msg.n <= STATEMENT_MSG_MAX ? msg.n : 0;
    size_t room = name.n + 1 + keep;
    struct statement *st = name.n > 0 ? add_named(s, name, room) : add_unnamed(s, room);

    st->name_len = (uint32_t)name.n;
    st->msg_len = (uint32_t)keep;
    st->count = (uint8_t)count;
    st->on_own = true;
    if (name.n > 0)
        memcpy(st->data, name.p, name.n);
    st->data[name.n] = '\0';
    if (keep > 0)
        memcpy(st->data + name.n + 1, msg.p, keep);
    list_push_back(&s->order, &st->order);
    return st;
}

void statements_remove(struct statements *s, struct slice name)
{
    struct statement *st = statements_find(s, name);

    if (st != NULL)
        statement_free(s, st);
}

void statements_doubt_batch(struct statements *s, uint64_t batch)
{
    struct list *n;
    struct list *before;

    for (n = s == NULL ? NULL : list_last(&s->order); n != NULL; n = before) {
        struct statement *st = LIST_ENTRY(n, struct statement, order);

        if (st->batch != batch)
            return;
        before = n->prev == &s->order ? NULL : n->prev;
        st->on_readers = 0;
        st->is_doubtful = true;
        if (st->msg_len == 0)
            statement_free(s, st);
    }
}

void statements_forget_reader(struct statements *s, uint64_t bit)
{
    struct list *n;

    if (s == NULL)
        return;
    LIST_FOREACH(n, &s->order)
    LIST_ENTRY(n, struct statement, order)->on_readers &= ~bit;
}

void statements_free(struct statements **sp)
{
    struct statements *s = *sp;
    struct list *n;

    *sp = NULL;
    if (s == NULL)
        return;
    while ((n = list_first(&s->order)) != NULL)
        statement_free(s, LIST_ENTRY(n, struct statement, order));
    hash_table_fini(&s->table);
    mem_free(s);
}

struct slice statement_sql(const struct statement *st)
{
    struct wire_reader r;

    if (st->msg_len <= PROTO_HEADER_BYTES)
        return slice_of("", 0);
    wire_reader_init(&r, slice_of(st->data + st->name_len + 1 + PROTO_HEADER_BYTES,
                             st->msg_len - PROTO_HEADER_BYTES));
    if (!statement_is_sql(st))
        (void)wire_get_cstr(&r);
    return wire_get_cstr(&r);
}
