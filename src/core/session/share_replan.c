/* SPDX-License-Identifier: PostgreSQL
 * share_replan.c: plans that DDL made stale on a link: which sequences can be sent again, and what
 * has to be made anew in front of them. Runs in: workers. */
#include "config.h"

#include "wire/batch.h"
#include "wire/writer.h"

#include "balance_int.h"
#include "share_names_int.h"

/* The statement that a Bind or a Describe names; NULL: none of the protocol. */
static struct share_name *used_name(const struct client *c, const struct batch_msg *m)
{
    if ((m->type != FE_BIND && m->type != FE_DESCRIBE) || m->is_bad || m->name.n == 0)
        return NULL;
    return share_name_find(c->share, m->name);
}

/* A Parse that makes a statement with a name, perhaps of another client's plan. */
static bool parses_named(const struct batch_msg *m)
{
    return m->type == FE_PARSE && m->name.n > 0;
}

bool share_names_may_replan(
    const struct client *c, const char *p, const char **end, bool *is_closed)
{
    const struct share_name *n;
    bool has_named = false;
    bool has_describe = false;
    bool is_described = false;
    struct batch_msg m;

    while (batch_next(&p, *end, &m)) {
        if (m.type == FE_SYNC) {
            *end = p;
            *is_closed = true;
            return has_named && (has_describe || !is_described);
        }
        if (m.type == FE_QUERY || m.type == FE_FUNCTION_CALL)
            return false; /* it ends what is in front of it */
        has_describe = has_describe || m.type == FE_DESCRIBE;
        n = used_name(c, &m);
        has_named = has_named || n != NULL || parses_named(&m);
        is_described = is_described || (m.type == FE_BIND && n != NULL && n->is_described);
    }
    return false;
}

/* The plan of what an EXECUTE names. */
static void replan_executed(struct client *c, struct feed_run *run, struct slice sql)
{
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
static void replan_parsed(struct client *c, struct feed_run *run, const struct batch_msg *m)
{
    struct prep *p;

    if (m->is_bad)
        return;
    p = share_prep_of(c, batch_statement(m));
    prep_need_name(p);
    replan_prep(c, run, p);
    prep_unref(&p);
}

void share_names_replan(struct client *c, struct feed_run *run, struct slice batch)
{
    const char *p = batch.p;
    struct share_name *n;
    struct buf sync = {0};
    struct batch_msg m;

    while (batch_next(&p, batch.p + batch.n, &m)) {
        if (m.type == FE_QUERY && !m.is_bad)
            replan_executed(c, run, m.sql);
        if (parses_named(&m))
            replan_parsed(c, run, &m);
        n = used_name(c, &m);
        if (n != NULL)
            replan_prep(c, run, n->prep);
    }
    wire_put_empty(&sync, FE_SYNC);
    link_expect(c->link, OP_SYNC | OP_SWALLOW);
    feed_put(run, sync.data, sync.len);
    buf_free(&sync);
}
