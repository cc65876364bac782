/* SPDX-License-Identifier: PostgreSQL
 * plan_aside.c: a transaction that has begun has a link, its home; a read that may leave it runs on
 * another one by itself (plan_away.c), and the home is set aside for so long. Runs in: workers.
 * Nothing is read from a link that is aside: what its server says by itself waits. Must never:
 * set aside a link that owes an answer, or a Sync, which may say that the transaction is over. */
#include "config.h"

#include "base/assert.h"
#include "base/hot.h"
#include "config/conf.h"

#include "sstate_int.h"
#include "sstate/phase_int.h"

bool plan_aside_can(const struct client *c)
{
    const struct sstate *s = c->sstate;

    return s->phase == PHASE_ATTACHED && s->errand->home == NULL &&
           s->errand->place != PLACE_STAYS && c->link->tx_status == 'T' && !s->loan.is_fresh &&
           s->pins == 0 && !sstate_tx_is_lost(s) && !c->link->expect.skipping &&
           expect_is_quiet(&c->link->expect) && c->link->body_left == 0 && !c->server_batch;
}

WARM bool plan_aside_may(const struct client *c)
{
    return plan_aside_can(c) && c->sstate->errand->leave.rule == TX_READS_LEAVE &&
           c->link->pool->cluster_node == c->pool->cluster_node &&
           !plan_keeps_reads(c->ss->conf, &c->plan->rs, c->plan->lsn == PLAN_LSN_DUE);
}

WARM bool plan_aside_lacks(struct client *c, struct slice sql)
{
    struct route_decision d;

    if (!plan_aside_can(c) || c->link->pool->cluster_node == c->pool->cluster_node ||
        sessions_must_hold_writes(c->ss))
        return false;
    (void)plan_decide_again(c, sql, &d);
    return d.leaves_tx && d.class == ROUTE_EITHER && !d.must_ask;
}

bool plan_aside_is_standby(const struct client *c)
{
    const struct link *home = c->sstate->errand->home;

    return home != NULL && home->pool->cluster_node != c->pool->cluster_node;
}

void plan_aside_set(struct client *c)
{
    struct sstate *s = c->sstate;

    ASSERT(s->errand->home == NULL && expect_is_quiet(&c->link->expect));
    s->errand->home = c->link;
    link_pause(c->link);
    c->link = NULL;
    c->target = NULL;
    phase_goto(c, PHASE_DETACHED);
}

void plan_aside_return(struct client *c)
{
    struct sstate *s = c->sstate;
    struct link *home = s->errand->home;
    struct feed_run run = {0};

    ASSERT(home != NULL && c->link == NULL);
    s->errand->home = NULL;
    s->errand->ask_until_us = 0;
    s->errand->place = PLACE_HOME;
    if (s->again.retry == AGAIN_ANYWHERE)
        s->again.retry = AGAIN_IF_ROUTED;
    s->loan.is_fresh = false;
    c->link = home;
    c->target = home;
    c->epoch = home->epoch;
    phase_goto(c, PHASE_ATTACHED);
    varset_assign(&s->vars.link, home->vars);
    client_row_link(c);
    link_resume(home);
    if (s->tx != SSTATE_TX_FAILS)
        return;
    s->tx = SSTATE_TX_OF_LINK;
    lent_put_own_query(c, &run, slice_of_str(refused_query));
    home->must_clean = true; /* own_failed is going to be set on purpose */
    feed_flush(c, &run);
}

void plan_aside_come_back(struct client *c)
{
    struct sstate *s = c->sstate;

    lent_stop_asking(c);
    s->again.retry = AGAIN_NEVER;
    s->again.may_replan = false;
    s->errand->sending = SENDING_AS_IT_COMES;
    plan_aside_return(c);
}

bool plan_aside_on_lost(struct client *c, const struct link *link)
{
    struct sstate *s = c->sstate;

    if (s->errand == NULL || s->errand->home != link)
        return false;
    s->errand->home = NULL;
    if (s->kept == link)
        s->kept = NULL;
    tx_leave_no_more(&s->errand->leave);
    if (s->errand->tx.client != NULL)
        varset_assign(&s->vars.client, s->errand->tx.client);
    s->tx = SSTATE_TX_UNTOLD;
    if (s->phase <= PHASE_WAITING)
        client_unpark(c); /* what waits is told */
    return true;
}

void plan_aside_drop(struct client *c, bool boundary)
{
    struct sstate *s = c->sstate;
    struct link *home = s->errand->home;

    if (home == NULL)
        return;
    s->errand->home = NULL;
    if (s->kept == home)
        s->kept = NULL;
    home->must_clean = true;
    link_release(home, boundary);
}
