/* SPDX-License-Identifier: PostgreSQL
 * follow_replan.c: plans that DDL made stale on a link: which sequences can be sent again, and what
 * has to be made anew in front of them. Runs in: workers. */
#include "config.h"

#include <string.h>

#include "wire/batch.h"
#include "wire/writer.h"

#include "plan_int.h"
#include "sstate_int.h"

/* The statement that a Bind or a Describe names; NULL: none of the protocol. */
static struct names_entry *used_name(const struct client *c, const struct batch_msg *m)
{
    if ((m->type != FE_BIND && m->type != FE_DESCRIBE) || m->is_bad || m->name.n == 0)
        return NULL;
    return names_find(&c->sstate->names, m->name);
}

/* A Parse that makes a statement with a name, perhaps of another client's plan. */
static bool parses_named(const struct batch_msg *m)
{
    return m->type == FE_PARSE && m->name.n > 0;
}

/* What a sequence does with statements that have names. */
struct replan_look {
    bool is_closed;    /* it is there as a whole */
    bool has_named;    /* it uses or makes one */
    bool uses_older;   /* it uses one that it does not make itself */
    bool describes;    /* something, in this sequence */
    bool is_described; /* what it binds was described before */
};

static void look_at(const struct client *c, const struct batch_msg *m, struct slice *parsed,
    struct replan_look *look)
{
    const struct names_entry *n = used_name(c, m);

    look->describes = look->describes || m->type == FE_DESCRIBE;
    look->is_described = look->is_described || (m->type == FE_BIND && n != NULL && n->is_described);
    look->has_named = look->has_named || n != NULL || parses_named(m);
    if (parses_named(m))
        *parsed = m->name;
    else if (n != NULL)
        look->uses_older = look->uses_older || !slice_eq(*parsed, slice_of(n->name, n->len));
}

/* *end is set behind its Sync. */
static void look_over(
    const struct client *c, const char *p, const char **end, struct replan_look *look)
{
    struct slice parsed = slice_of(NULL, 0);
    struct batch_msg m;

    memset(look, 0, sizeof *look);
    while (batch_next(&p, *end, &m)) {
        if (m.type == FE_SYNC) {
            *end = p;
            look->is_closed = true;
            return;
        }
        if (m.type == FE_QUERY || m.type == FE_FUNCTION_CALL)
            return; /* it ends what is in front of it */
        look_at(c, &m, &parsed, look);
    }
}

bool follow_may_replan(const struct client *c, const char *p, const char **end, bool *is_closed)
{
    struct replan_look look;

    look_over(c, p, end, &look);
    *is_closed = *is_closed || look.is_closed;
    return look.is_closed && look.has_named && (look.describes || !look.is_described);
}

bool follow_parses_all(const struct client *c)
{
    struct slice kept = buf_slice(&c->sstate->errand->retry);
    const char *end = kept.p + kept.n;
    struct replan_look look;

    look_over(c, kept.p, &end, &look);
    return look.is_closed && look.has_named && !look.uses_older;
}

/* The plan of what an EXECUTE names. */
static void replan_executed(struct client *c, struct feed_run *run, struct slice sql)
{
    const struct names_entry *n = follow_sql_executes(c, plan_facts(c->ss, sql));
    struct slice name;

    if (n == NULL)
        return;
    name = slice_of(n->name, n->len);
    lent_put_close(c, run, name);
    prepset_drop_named(&c->link->preps, name);
}

/* The plan of one statement of the protocol. */
static void replan_prep(struct client *c, struct feed_run *run, const struct prep *p)
{
    if (p == NULL || !prepset_touch(&c->link->preps, p->id))
        return;
    lent_put_close(c, run, prep_name(p));
    prepset_remove(&c->link->preps, p->id);
}

/* Drops the plan of what a Parse in the batch will make anew. */
static void replan_parsed(struct client *c, struct feed_run *run, const struct batch_msg *m)
{
    struct prep *p;

    if (m->is_bad)
        return;
    p = follow_prep_of(c, batch_statement(m));
    prep_need_name(p);
    replan_prep(c, run, p);
    prep_unref(&p);
}

void follow_replan(struct client *c, struct feed_run *run, struct slice batch)
{
    const char *p = batch.p;
    struct names_entry *n;
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
