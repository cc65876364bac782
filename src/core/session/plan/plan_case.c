/* SPDX-License-Identifier: PostgreSQL
 * plan_case.c: what a choice is made of (plan.h), as it is of a client. Runs in: workers. */
#include "config.h"

#include "base/hot.h"

#include "sstate_int.h"

static struct slice text_of_statement(void *ctx, struct slice name)
{
    const struct client *c = ctx;
    const struct names *names = &c->sstate->names;
    const struct names_entry *n;

    if (name.n == 0 && names->unnamed != NULL)
        return prep_sql(names->unnamed);
    n = names_find(names, name);
    return n != NULL && n->prep != NULL ? prep_sql(n->prep) : slice_of(NULL, 0);
}

static enum plan_tx tx_of(const struct sstate *s)
{
    if (s->errand->home != NULL)
        return PLAN_TX_ASIDE;
    if (sstate_tx_is_lost(s))
        return PLAN_TX_LOST;
    return s->tx == SSTATE_TX_VIRTUAL ? PLAN_TX_VIRTUAL : PLAN_TX_NONE;
}

/* Whether reads may leave. A client that the server alone let in has no second link there. */
static enum plan_leave leave_of(struct client *c)
{
    const struct errand *t = c->sstate->errand;

    if (t->leave.rule != TX_READS_LEAVE)
        return PLAN_LEAVE_NO;
    return t->home == NULL || (t->home->pool == c->pool && client_may_reuse(c, c->pool))
               ? PLAN_LEAVE_ASK
               : PLAN_LEAVE_KNOWN;
}

WARM void plan_case_of(struct client *c, struct plan_case *in)
{
    const struct sstate *s = c->sstate;
    const struct link *home = s->errand->home;
    const struct plan *b = c->plan;

    if (c->kind->judge != NULL)
        c->plan->tx_status = sstate_tx_status(c);
    in->conf = c->ss->conf;
    in->view = &c->ss->view;
    in->replayed_lsn = known_replayed_lsn(c->ss->known);
    in->judge = c->kind->judge;
    in->statement = text_of_statement;
    in->lookup = plan_lookup;
    in->ctx = c;
    in->tx = tx_of(s);
    in->asking = b->nunsure > 0        ? PLAN_ASK_KEPT
                 : plan_ask_is_over(b) ? PLAN_ASK_FAILED
                                       : PLAN_MAY_ASK;
    in->snapshot = s->errand->leave.snapshot;
    in->leave = leave_of(c);
    in->wal = b->wait == PLAN_WAIT_OVER ? PLAN_WAL_IS_OVER
              : plan_is_lsn_due(c)      ? PLAN_WAL_DUE
                                        : PLAN_WAL_KNOWN;
    in->home_node = home == NULL ? VIEW_NO_NODE : home->pool->cluster_node;
    in->write_node = VIEW_NO_NODE;
    if (c->link == NULL && (home == NULL || plan_aside_is_standby(c)))
        in->write_node = sstate_write_node(c); /* first: it may move the client */
    in->own_node = c->pool->cluster_node;
    in->avoid_node = sstate_is_avoided(c, s->avoid_node) ? s->avoid_node : VIEW_NO_NODE;
    in->session = &b->rs;
    in->is_tied = lent_keeps(s) && s->pins != 0;
    in->may_replan = false;
}
