/* SPDX-License-Identifier: PostgreSQL
 * plan_batch.c: the choice for a sequence of the extended protocol: it is looked through up to its
 * Sync, as all of it goes to one node. Runs in: workers. */
#include "config.h"

#include "backend/prep.h"
#include "wire/batch.h"

#include "plan_core_int.h"

/* What was found so far. */
struct look {
    const struct plan_case *in;
    struct plan_choice *out;
    const char *end;      /* behind what was looked at */
    struct slice unnamed; /* SQL of the Parse in this sequence */
    struct slice named;   /* the last name parsed in it */
    int node;
    bool is_closed;
    bool has_execute;
    bool may_leave;
    bool is_out;     /* all of it may leave its transaction */
    bool has_out;    /* some of it may */
    bool is_bound;   /* Bind of the unnamed portal is in it */
    bool has_portal; /* anything of a portal is */
    bool is_cut;     /* it prepares statements and ends with a Flush; its Sync is to come */
};

/* The functions that look at a message return false when something is asked or waited for first. */
static bool look_at_sql(struct look *look, struct slice sql)
{
    const struct plan_case *in = look->in;
    struct plan_choice *out = look->out;

    if (!plan_judge_text(in, sql, out))
        return false;
    if (plan_leaves(in, out)) {
        look->has_out = true;
        plan_note_left(out->facts, out);
    } else if (plan_tx_is_open(in)) {
        plan_note_stays(in, out->facts, out);
        look->is_out = false;
    }
    if (!plan_sees_enough(in, out))
        return false;
    if ((in->tx == PLAN_TX_ASIDE && !look->is_out) || !plan_may_go_there(in, &out->route))
        look->may_leave = false;
    else
        look->node = out->route.node;
    return true;
}

/* What was parsed in the sequence was judged there. */
static bool look_at_statement(struct look *look, struct slice name)
{
    struct slice sql;

    if (name.n == 0 ? look->unnamed.p != NULL : prep_is_same_name(name, look->named))
        return true;
    sql = look->in->statement(look->in->ctx, name);
    if (sql.p != NULL)
        return look_at_sql(look, sql);
    look->may_leave = false;
    return true;
}

/* One with a name outlives the sequence, and one that was not bound in it comes from another. */
static void look_at_portal(struct look *look, struct slice name)
{
    look->has_portal = true;
    if (name.n > 0 || !look->is_bound)
        look->is_out = false;
}

/* In a transaction that has not begun what a portal or statement is has to be known. */
static bool look_at_describe(struct look *look, const struct batch_msg *m)
{
    look->has_portal = look->has_portal || m->what != 'S';
    if (!plan_tx_is_open(look->in))
        return true;
    if (m->what == 'S')
        return look_at_statement(look, m->name);
    look_at_portal(look, m->portal);
    return true;
}

static bool look_at_message(struct look *look, const struct batch_msg *m)
{
    if (m->is_bad) {
        look->may_leave = false;
        return true;
    }
    switch (m->type) {
    case FE_PARSE:
        if (m->name.n == 0)
            look->unnamed = m->sql;
        else
            look->named = m->name;
        return look_at_sql(look, m->sql);
    case FE_BIND:
        look->is_bound = true;
        look_at_portal(look, m->portal);
        return look_at_statement(look, m->name);
    case FE_EXECUTE:
        look->has_execute = true;
        look_at_portal(look, m->portal);
        look->is_out = look->is_out && m->max_rows == 0; /* it might be gone on with */
        return true;
    case FE_SYNC:
        look->is_closed = true;
        return true;
    case FE_DESCRIBE:
        return look_at_describe(look, m);
    default:
        look->may_leave = false;
        return true;
    }
}

static bool look_ahead(struct look *look, const char *p, const char *end)
{
    struct batch_msg m;
    int n;

    for (n = 0; n < PLAN_LOOK_MAX && batch_next(&p, end, &m); n++) {
        look->is_cut = m.type == FE_FLUSH && !m.is_bad && p == end && !look->has_portal;
        if (look->is_cut)
            break;
        if (!look_at_message(look, &m))
            return false;
        look->end = p;
        if (look->is_closed || !look->may_leave)
            break;
    }
    look->may_leave = look->may_leave &&
                      (look->is_cut || (look->is_closed && (look->has_execute || look->is_out)));
    look->is_out = look->is_out && look->may_leave;
    return true;
}

/* What was looked through goes where its last text may, when all of it may. */
static void choose(const struct look *look, const char *p, const char *end)
{
    const struct plan_case *in = look->in;
    struct plan_choice *out = look->out;
    int node = look->node;

    if (!look->may_leave || node == VIEW_NO_NODE || (in->tx == PLAN_TX_ASIDE && !look->is_out) ||
        (in->is_tied && in->tx == PLAN_TX_VIRTUAL && !look->is_out))
        return;
    if (look->has_out && !look->is_out)
        node = out->node;
    if (look->is_cut &&
        (node == out->node || (in->avoid_node != VIEW_NO_NODE && node == in->avoid_node)))
        return; /* a sequence on the primary ends with the client's Sync */
    plan_take_read(in, node, look->is_out, out);
    if (out->way < PLAN_READS)
        return;
    out->is_cut = look->is_cut;
    out->kept = (size_t)((look->is_cut ? end : look->end) - p);
}

void plan_batch(const struct plan_case *in, const char *p, const char *end, struct plan_choice *out)
{
    struct look look = {.in = in,
        .out = out,
        .end = p,
        .node = VIEW_NO_NODE,
        .may_leave = true,
        .is_out = plan_tx_is_open(in)};

    plan_choice_init(in, out);
    if (plan_is_settled(in, out)) {
        if (out->verdict == PLAN_GO)
            out->kept = batch_to_sync(p, end, PLAN_KEPT_MAX).n;
    } else if (in->tx != PLAN_TX_LOST && in->judge != NULL && look_ahead(&look, p, end)) {
        choose(&look, p, end);
    }
}
