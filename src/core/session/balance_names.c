/* SPDX-License-Identifier: PostgreSQL
 * balance_names.c: names of prepared statements of which it is not known yet whether their link has
 * them, or what they mean: what uses one has to wait for what runs. Runs in: workers. */
#include "config.h"

#include "base/hot.h"
#include "wire/reader.h"

#include "balance_int.h"

/* The name in a Bind, Parse, Describe or Close, of a statement. False: there is none. */
static bool read_name(char type, struct slice msg, struct slice *name)
{
    struct wire_reader r;

    if (type != FE_BIND && type != FE_PARSE && type != FE_DESCRIBE && type != FE_CLOSE)
        return false;
    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    if ((type == FE_DESCRIBE || type == FE_CLOSE) && wire_get_u8(&r) != 'S')
        return false;
    if (type == FE_BIND)
        (void)wire_get_cstr(&r);
    *name = wire_get_cstr(&r);
    return !r.bad;
}

struct statement *balance_named_in(const struct client *c, char type, struct slice msg, bool *found)
{
    struct slice name;

    *found = type != FE_CLOSE && read_name(type, msg, &name);
    return *found ? statements_find(c->statements, name) : NULL;
}

/* The link that was asked for it; NULL: it has gone. */
static const struct link *asked_link(const struct client *c, const struct statement *st)
{
    const struct balance *b = c->balance;
    unsigned i;

    for (i = 0; i < b->own->nreaders; i++)
        if (b->own->reader[i]->bit == st->asked_bit)
            return b->own->reader[i]->link;
    return c->link;
}

/* It has not answered the op with this serial yet: how many ops of `owed` are in front of that. */
static bool is_open(uint32_t serial, const struct expect *owed, unsigned *at)
{
    *at = serial - expect_head_serial(owed);
    return (int32_t)*at >= 0;
}

/* True when its link has not said yet whether there is one. */
static bool is_undecided(const struct client *c, const struct statement *st)
{
    const struct link *link = st == NULL ? NULL : asked_link(c, st);
    unsigned at;

    return link != NULL && (st->asked & STATEMENT_MAKE) != 0 &&
           is_open(st->serial_in, &link->expect, &at);
}

/* The op is of an earlier query or sequence of the client's, whose end has not come: it may fail,
 * or be skipped behind something that does. */
static bool is_in_earlier(const struct client *c, const struct statement *st, uint32_t serial)
{
    const struct link *link = asked_link(c, st);
    unsigned first;
    unsigned at;
    unsigned op;

    if (link == NULL || !is_open(serial, &link->expect, &first))
        return false;
    for (at = first; at < link->expect.len; at++) {
        op = expect_peek(&link->expect, at) & (OP_MASK | OP_SWALLOW);
        if (op == OP_SYNC || (op == OP_QUERY && at == first))
            return true;
    }
    return false;
}

/* We have put it on the link. */
static bool may_be_skipped(const struct client *c, const struct statement *st)
{
    return st != NULL && (st->asked & STATEMENT_PUT) != 0 && is_in_earlier(c, st, st->serial_in);
}

/* One of this name is closed, and there again should that be skipped, whatever the client has made
 * in its place. */
static bool may_come_back(const struct client *c, struct slice name)
{
    const struct list *n;

    LIST_FOREACH(n, &c->statements->going)
    {
        const struct statement *st = LIST_ENTRY(n, struct statement, order);

        if (prep_is_same_name(statement_name(st), name) && is_in_earlier(c, st, st->serial_out))
            return true;
    }
    return false;
}

bool balance_is_name_undecided(const struct client *c, char type, struct slice msg)
{
    const struct statement *st;
    struct slice name;
    bool is_parse = type == FE_PARSE;

    if (c->statements == NULL || list_is_empty(&c->statements->undecided) ||
        msg.n <= PROTO_HEADER_BYTES || (is_parse && msg.p[PROTO_HEADER_BYTES] == '\0') ||
        !read_name(type, msg, &name))
        return false;
    st = statements_find(c->statements, name);
    return (is_parse && is_undecided(c, st)) || may_be_skipped(c, st) || may_come_back(c, name);
}

WARM bool balance_are_names_undecided(const struct client *c, const struct sql_facts *facts)
{
    const struct statement *st;
    uint32_t i;

    if (c->statements == NULL || list_is_empty(&c->statements->undecided))
        return false;
    for (i = 0; i < facts->nstmts; i++) {
        const struct sql_stmt *s = &facts->stmts[i];

        if (s->kind != SQL_PREPARE && s->kind != SQL_EXECUTE && s->inner != SQL_EXECUTE &&
            s->kind != SQL_DEALLOCATE)
            continue;
        st = statements_find(c->statements, s->name);
        if ((s->kind == SQL_PREPARE && is_undecided(c, st)) || may_be_skipped(c, st) ||
            may_come_back(c, s->name))
            return true;
    }
    return false;
}
