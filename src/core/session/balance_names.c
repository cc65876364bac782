/* SPDX-License-Identifier: PostgreSQL
 * balance_names.c: names of prepared statements of which it is not known yet whether their link has
 * them: what uses one has to wait for what runs. Runs in: workers. */
#include "config.h"

#include "base/hot.h"
#include "wire/reader.h"

#include "balance_int.h"

struct statement *balance_named_in(const struct client *c, char type, struct slice msg, bool *found)
{
    struct wire_reader r;
    struct slice name;

    *found = false;
    if (type != FE_BIND && type != FE_PARSE && type != FE_DESCRIBE)
        return NULL;
    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    if (type == FE_DESCRIBE && wire_get_u8(&r) != 'S')
        return NULL;
    if (type == FE_BIND)
        (void)wire_get_cstr(&r);
    name = wire_get_cstr(&r);
    *found = !r.bad;
    return r.bad ? NULL : statements_find(c->statements, name);
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

/* It has not answered yet: how many ops of `owed` are in front of that. */
static bool is_open(const struct statement *st, const struct expect *owed, unsigned *at)
{
    *at = st->serial_in - expect_head_serial(owed);
    return (int32_t)*at >= 0;
}

/* True when its link has not said yet whether there is one. */
static bool is_undecided(const struct client *c, const struct statement *st)
{
    const struct link *link = st == NULL ? NULL : asked_link(c, st);
    unsigned at;

    return link != NULL && (st->asked & STATEMENT_MAKE) != 0 && is_open(st, &link->expect, &at);
}

/* We have put it on the link in an earlier sequence of the client's, whose end has not come: should
 * something fail there, it is skipped with the rest. */
static bool may_be_skipped(const struct client *c, const struct statement *st)
{
    const struct link *link = st == NULL ? NULL : asked_link(c, st);
    unsigned at;

    if (link == NULL || (st->asked & STATEMENT_PUT) == 0 || !is_open(st, &link->expect, &at))
        return false;
    for (; at < link->expect.len; at++)
        if ((expect_peek(&link->expect, at) & (OP_MASK | OP_SWALLOW)) == OP_SYNC)
            return true;
    return false;
}

bool balance_is_name_undecided(const struct client *c, char type, struct slice msg)
{
    const struct statement *st;
    bool is_parse = type == FE_PARSE;
    bool found;

    if ((!is_parse && type != FE_BIND && type != FE_DESCRIBE) || c->statements == NULL ||
        list_is_empty(&c->statements->undecided) || msg.n <= PROTO_HEADER_BYTES ||
        (is_parse && msg.p[PROTO_HEADER_BYTES] == '\0'))
        return false;
    st = balance_named_in(c, type, msg, &found);
    return (is_parse && is_undecided(c, st)) || may_be_skipped(c, st);
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
        if ((s->kind == SQL_PREPARE && is_undecided(c, st)) || may_be_skipped(c, st))
            return true;
    }
    return false;
}
