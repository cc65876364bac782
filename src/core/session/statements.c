/* SPDX-License-Identifier: PostgreSQL
 * statements.c: the prepared statements of one client. Bounded: with too many, the oldest is
 * forgotten here (the server keeps it), which means no more than that it runs on the client's own
 * link. */
#include "config.h"

#include <string.h>

#include "backend/prep.h"
#include "base/hot.h"
#include "base/mem.h"
#include "wire/proto.h"
#include "wire/reader.h"

#include "statements_int.h"

#define STATEMENTS_MAX 4096

HOT static int statement_eq(const struct hash_node *node, const void *key)
{
    return prep_is_same_name(
        statement_name(LIST_ENTRY(node, struct statement, node)), *(const struct slice *)key);
}

static uint64_t name_hash(struct slice name)
{
    return hash_bytes(name.p, prep_known_name(name).n, 7);
}

/* What is being closed has no name any more. */
static bool has_name(const struct statement *st)
{
    return (st->asked & STATEMENT_CLOSE) == 0;
}

static void take_name(struct statements *s, struct statement *st)
{
    if (st == s->unnamed)
        s->unnamed = NULL;
    else if (has_name(st))
        hash_table_del(&s->table, &st->node);
}

static void statement_free(struct statements *s, struct statement *st)
{
    take_name(s, st);
    s->nsql -= statement_is_sql(st);
    list_remove(&st->order);
    list_remove(&st->undecided);
    mem_free(st);
}

HOT struct statement *statements_find(const struct statements *s, struct slice name)
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
        list_init(&(*sp)->going);
        list_init(&(*sp)->undecided);
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
        list_remove(&st->undecided);
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

HOT struct statement *statements_add(
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
    s->nsql += statement_is_sql(st);
    list_push_back(&s->order, &st->order);
    list_init(&st->undecided);
    return st;
}

void statements_remove(struct statements *s, struct slice name)
{
    struct statement *st = statements_find(s, name);

    if (st != NULL)
        statement_free(s, st);
}

static void forget_on(struct statement *st, uint64_t bit)
{
    if (bit == 0)
        st->on_own = false;
    st->on_readers &= ~bit;
}

void statements_lose_unnamed(struct statements *s, uint64_t bit)
{
    if (s != NULL && s->unnamed != NULL)
        forget_on(s->unnamed, bit);
}

void statements_asked(
    struct statements *s, struct statement *st, unsigned asked, uint64_t bit, uint32_t serial)
{
    st->asked = (uint8_t)asked;
    st->asked_bit = bit;
    st->serial_in = serial;
    list_remove(&st->undecided);
    list_push_back(&s->undecided, &st->undecided);
}

void statements_closing(
    struct statements *s, struct statement *st, unsigned asked, uint64_t bit, uint32_t serial)
{
    if (st->asked_bit != bit)
        st->asked = 0;
    st->on_own = st->on_own && bit == 0;
    st->on_readers &= bit;
    take_name(s, st);
    st->asked |= (uint8_t)(STATEMENT_CLOSE | asked);
    st->asked_bit = bit;
    st->serial_out = serial;
    list_remove(&st->order);
    list_push_back(&s->going, &st->order);
    list_remove(&st->undecided);
    list_push_back(&s->undecided, &st->undecided);
}

void statements_closing_again(struct statements *s, uint64_t bit, uint32_t serial)
{
    struct list *n;

    LIST_FOREACH(n, &s->going)
    {
        struct statement *st = LIST_ENTRY(n, struct statement, order);

        if (st->asked_bit != bit)
            continue;
        st->asked &= (uint8_t)~STATEMENT_BOUND;
        st->asked |= STATEMENT_INEXACT; /* should this time fail, the first may have worked */
        st->serial_out = serial;
    }
}

/* How the ops of a link fared that statements wait for. */
enum fate { FATE_OPEN, FATE_DONE, FATE_FAILED };

struct verdict {
    enum fate all; /* unless it is FATE_OPEN: of all of them */
    uint32_t from; /* else these failed, and those in front of them are done */
    uint32_t to;
};

static enum fate fate_of(const struct verdict *v, uint32_t serial)
{
    if (v->all != FATE_OPEN)
        return v->all;
    if (serial - v->from < v->to - v->from)
        return FATE_FAILED;
    return (int32_t)(serial - v->from) < 0 ? FATE_DONE : FATE_OPEN;
}

/* Something of the exchange failed, and it is not known what. `fate`: that of its op. */
static bool leaves_doubt(const struct statement *st, const struct verdict *v, enum fate fate)
{
    return (st->asked & STATEMENT_INEXACT) != 0 && v->all == FATE_OPEN &&
           !((st->asked & STATEMENT_BOUND) != 0 && fate == FATE_FAILED);
}

static void decide(struct statement *st, unsigned asked)
{
    st->asked &= (uint8_t)~asked;
    if ((st->asked & (STATEMENT_MAKE | STATEMENT_PUT | STATEMENT_CLOSE)) != 0)
        return;
    st->asked = 0;
    list_remove(&st->undecided);
}

static void settle_in(struct statements *s, struct statement *st, const struct verdict *v)
{
    enum fate fate = fate_of(v, st->serial_in);

    if ((st->asked & (STATEMENT_MAKE | STATEMENT_PUT)) == 0 || fate == FATE_OPEN)
        return;
    if (leaves_doubt(st, v, fate)) {
        st->is_doubtful = true;
    } else if (fate == FATE_FAILED && (st->asked & STATEMENT_MAKE) != 0) {
        statement_free(s, st);
        return;
    } else if (fate == FATE_FAILED) {
        forget_on(st, st->asked_bit);
    }
    decide(st, STATEMENT_MAKE | STATEMENT_PUT);
}

static void settle_out(struct statements *s, struct statement *st, const struct verdict *v)
{
    enum fate fate = fate_of(v, st->serial_out);
    struct slice name = statement_name(st);
    bool is_doubtful = leaves_doubt(st, v, fate);

    if ((st->asked & STATEMENT_CLOSE) == 0 || fate == FATE_OPEN)
        return;
    if ((fate == FATE_DONE && !is_doubtful) || statements_find(s, name) != NULL) {
        statement_free(s, st);
        return;
    }
    decide(st, STATEMENT_CLOSE); /* it is still there */
    st->is_doubtful = st->is_doubtful || is_doubtful;
    if (name.n > 0)
        hash_table_add(&s->table, &st->node, name_hash(name));
    else
        s->unnamed = st;
    list_remove(&st->order);
    list_push_back(&s->order, &st->order);
}

HOT static void settle(struct statements *s, uint64_t bit, const struct verdict *v)
{
    struct list *next;
    struct list *n;
    int out;

    for (out = 0; out < 2 && s != NULL; out++)
        LIST_FOREACH_SAFE(n, next, &s->undecided)
        {
            struct statement *st = LIST_ENTRY(n, struct statement, undecided);

            if (st->asked_bit == bit && out == 0)
                settle_in(s, st, v);
            else if (st->asked_bit == bit)
                settle_out(s, st, v);
        }
}

void statements_answered(struct statements *s, uint64_t bit)
{
    const struct verdict v = {.all = FATE_DONE};

    if (s != NULL && !list_is_empty(&s->undecided))
        settle(s, bit, &v);
}

void statements_failed(struct statements *s, uint64_t bit, uint32_t from, uint32_t to)
{
    const struct verdict v = {.from = from, .to = to};

    settle(s, bit, &v);
}

void statements_undone(struct statements *s, uint64_t bit)
{
    const struct verdict v = {.all = FATE_FAILED};

    settle(s, bit, &v);
}

void statements_forget_reader(struct statements *s, uint64_t bit)
{
    struct list *n;

    if (s == NULL)
        return;
    statements_undone(s, bit);
    LIST_FOREACH(n, &s->order)
    forget_on(LIST_ENTRY(n, struct statement, order), bit);
}

void statements_free(struct statements **sp)
{
    struct statements *s = *sp;
    struct list *n;

    *sp = NULL;
    if (s == NULL)
        return;
    while ((n = list_first(&s->order)) != NULL || (n = list_first(&s->going)) != NULL)
        statement_free(s, LIST_ENTRY(n, struct statement, order));
    hash_table_fini(&s->table);
    mem_free(s);
}

HOT struct slice statement_sql(const struct statement *st)
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
