/* SPDX-License-Identifier: PostgreSQL
 * balance_bound.c: calls of set_config() with parameters, in a session that reads from several
 * servers. With the values of its Bind such a call is like one with literals, and is repeated like
 * that: but it is made when its portal is executed, which it may never be. Runs in: workers.
 *
 * One is kept. What is bound beside it is taken for a call that cannot be repeated. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "wire/reader.h"

#include "share_vars_int.h"

static struct slice body_of(struct slice msg)
{
    return slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES);
}

static bool may_matter(const struct statement *st)
{
    return st != NULL && st->msg_len > 0 && !st->is_doubtful && !statement_is_sql(st) &&
           share_bound_may_matter(statement_sql(st));
}

bool balance_bind_wants_whole(const struct client *c, struct slice msg)
{
    bool found;

    return may_matter(balance_named_in(c, FE_BIND, msg, &found));
}

/* The call with its values, when it can be repeated. */
static bool bound_call(
    struct client *c, const struct statement *st, struct slice msg, struct buf *out)
{
    struct slice sql = statement_sql(st);
    struct slice whole = statement_message(st);
    const char *types = sql.p + sql.n + 1;

    return share_bound_sql(balance_facts(c->ss, sql), sql,
               slice_of(types, (size_t)(whole.p + whole.n - types)), body_of(msg), out) &&
           balance_can_repeat_calls(balance_facts(c->ss, buf_slice(out)), buf_slice(out));
}

bool balance_bound_keep(struct client *c, const struct statement *st, struct slice msg)
{
    struct balance_own *own = c->balance->own;
    struct buf call = {0};
    struct buf kept = {0};
    struct wire_reader r;
    struct slice portal;

    if (own->bound != NULL || own->home != NULL || c->target != c->link || !may_matter(st))
        return false;
    wire_reader_init(&r, body_of(msg));
    portal = wire_get_cstr(&r);
    if (bound_call(c, st, msg, &call)) {
        buf_put(&kept, portal.p, portal.n + 1);
        buf_put(&kept, call.data, call.len);
        own->bound = mem_strndup(kept.data, kept.len);
    }
    buf_free(&kept);
    buf_free(&call);
    return own->bound != NULL;
}

void balance_bound_forget(struct client *c)
{
    mem_free(c->balance->own->bound);
    c->balance->own->bound = NULL;
}

char *balance_bound_take(struct client *c, char type, struct slice msg)
{
    struct balance_own *own = c->balance->own;
    struct wire_reader r;
    struct slice portal;
    char *call;

    if (own->bound == NULL || (type != FE_EXECUTE && type != FE_BIND && type != FE_CLOSE))
        return NULL;
    wire_reader_init(&r, body_of(msg));
    if (type == FE_CLOSE && wire_get_u8(&r) != 'P')
        return NULL;
    portal = wire_get_cstr(&r);
    if (r.bad || !slice_eq_str(portal, own->bound))
        return NULL;
    call = type == FE_EXECUTE && c->target == c->link
               ? mem_strndup(own->bound + portal.n + 1, strlen(own->bound + portal.n + 1))
               : NULL;
    balance_bound_forget(c);
    return call;
}
