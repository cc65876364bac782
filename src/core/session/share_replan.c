/* SPDX-License-Identifier: PostgreSQL
 * share_replan.c: plans that DDL made stale on a link: which sequences can be sent again, and what
 * has to be made anew in front of them. Runs in: workers. */
#include "config.h"

#include "wire/reader.h"
#include "wire/writer.h"

#include "balance_int.h"
#include "share_names_int.h"

/* The statement that a Bind or a Describe in `msg` names; NULL: none of the protocol. */
static struct share_name *used_name(const struct client *c, struct slice msg)
{
    struct wire_reader r;
    struct slice name;

    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    if (msg.p[0] == FE_BIND)
        (void)wire_get_cstr(&r);
    else if (msg.p[0] != FE_DESCRIBE || wire_get_u8(&r) != 'S')
        return NULL;
    name = wire_get_cstr(&r);
    return r.bad || name.n == 0 ? NULL : share_name_find(c->share, name);
}

/* A Parse that makes a statement with a name, perhaps of another client's plan. */
static bool parses_named(struct slice msg)
{
    return msg.p[0] == FE_PARSE && msg.n > PROTO_HEADER_BYTES && msg.p[PROTO_HEADER_BYTES] != '\0';
}

bool share_names_may_replan(
    const struct client *c, const char *p, const char **end, bool *is_closed)
{
    const struct share_name *n;
    bool has_named = false;
    bool has_describe = false;
    bool is_described = false;
    uint32_t len;

    for (; *end - p >= PROTO_HEADER_BYTES; p += len) {
        len = proto_get_u32(p + 1) + 1;
        if (len < PROTO_HEADER_BYTES || (size_t)(*end - p) < len)
            return false;
        if (p[0] == FE_SYNC) {
            *end = p + len;
            *is_closed = true;
            return has_named && (has_describe || !is_described);
        }
        if (p[0] == FE_QUERY || p[0] == FE_FUNCTION_CALL)
            return false; /* it ends what is in front of it */
        has_describe = has_describe || p[0] == FE_DESCRIBE;
        n = used_name(c, slice_of(p, len));
        has_named = has_named || n != NULL || parses_named(slice_of(p, len));
        is_described = is_described || (p[0] == FE_BIND && n != NULL && n->is_described);
    }
    return false;
}

/* The plan of what an EXECUTE names. */
static void replan_executed(struct client *c, struct feed_run *run, struct slice msg)
{
    struct slice sql = slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES - 1);
    const struct share_name *n = share_names_executes(c, balance_facts(c->ss, sql));
    struct slice name;

    if (n == NULL)
        return;
    name = slice_of(n->name, n->len);
    share_put_close(c, run, name);
    prepset_drop_named(&c->link->preps, name);
}

/* The plan of one statement of the protocol. */
static void replan_prep(struct client *c, struct feed_run *run, const struct prep *p)
{
    if (p == NULL || !prepset_touch(&c->link->preps, p->id))
        return;
    share_put_close(c, run, prep_name(p));
    prepset_remove(&c->link->preps, p->id);
}

/* Of what a Parse in the batch will make. */
static void replan_parsed(struct client *c, struct feed_run *run, struct slice msg)
{
    struct wire_reader r;
    struct prep *p;

    wire_reader_init(&r, slice_of(msg.p + PROTO_HEADER_BYTES, msg.n - PROTO_HEADER_BYTES));
    (void)wire_get_cstr(&r);
    if (r.bad)
        return;
    p = share_prep_of(c, slice_of(r.p, (size_t)(r.end - r.p)));
    prep_need_name(p);
    replan_prep(c, run, p);
    prep_unref(&p);
}

void share_names_replan(struct client *c, struct feed_run *run, struct slice batch)
{
    const char *p = batch.p;
    const char *end = p + batch.n;
    struct share_name *n;
    struct buf sync = {0};
    uint32_t len;

    for (; end - p >= PROTO_HEADER_BYTES; p += len) {
        len = proto_get_u32(p + 1) + 1;
        if ((size_t)(end - p) < len)
            break;
        if (p[0] == FE_QUERY)
            replan_executed(c, run, slice_of(p, len));
        if (parses_named(slice_of(p, len)))
            replan_parsed(c, run, slice_of(p, len));
        n = used_name(c, slice_of(p, len));
        if (n != NULL)
            replan_prep(c, run, n->prep);
    }
    wire_put_empty(&sync, FE_SYNC);
    link_expect(c->link, OP_SYNC | OP_SWALLOW);
    feed_put(run, sync.data, sync.len);
    buf_free(&sync);
}
