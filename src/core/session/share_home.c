/* SPDX-License-Identifier: PostgreSQL
 * share_home.c: a transaction that has begun has a link, its home; a read that may leave it runs on
 * another one by itself (share_out.c), and the home is set aside for so long. Runs in: workers.
 * Nothing is read from a link that is aside: what its server says by itself waits. Must never:
 * set aside a link that owes an answer. */
#include "config.h"

#include "base/assert.h"
#include "base/hot.h"
#include "config/conf.h"

#include "share_int.h"
#include "share_phase_int.h"

/* The rules that keep all reads at home once the transaction has written. What it may have locked
 * a standby waits for, too, until it ends. */
static bool keeps_reads(const struct client *c)
{
    const struct conf *conf = c->ss->conf;
    const struct route_session *rs = &c->balance->rs;

    if (rs->locked_in_tx || rs->doubtful || conf->read_consistency == CONF_READ_GLOBAL)
        return true;
    if (conf->read_consistency == CONF_READ_SESSION && (rs->wrote_in_tx || c->balance->lsn_due))
        return true;
    switch (conf->disable_load_balance_on_write) {
    case CONF_WRITE_ALWAYS:
        return rs->wrote_in_session || rs->wrote_in_tx;
    case CONF_WRITE_TRANSACTION:
    case CONF_WRITE_TRANS_TRANSACTION:
        return rs->wrote_in_tx;
    case CONF_WRITE_OFF:
    case CONF_WRITE_DML_ADAPTIVE:
    case CONF_WRITE_DML_ADAPTIVE_GLOBAL:
        break;
    }
    return false;
}

/* A transaction has its link, where nothing runs and nothing has to be put right. */
static bool can_be_aside(const struct client *c)
{
    const struct share *s = c->share;

    return s->phase == SHARE_ATTACHED && s->turn->home == NULL && !s->turn->keeps_home &&
           c->link->tx_status == 'T' && !s->loan.is_fresh && s->pins == 0 && !share_tx_is_lost(s) &&
           !s->owes_ready && !c->link->expect.skipping && expect_is_quiet(&c->link->expect) &&
           c->link->body_left == 0;
}

WARM bool share_home_may_leave(const struct client *c)
{
    return can_be_aside(c) && c->share->turn->leave.may_go_out &&
           c->link->pool->cluster_node == c->pool->cluster_node && !keeps_reads(c);
}

WARM bool share_home_lacks(struct client *c, struct slice sql)
{
    struct route_decision d;

    if (!can_be_aside(c) || c->link->pool->cluster_node == c->pool->cluster_node ||
        sessions_must_hold_writes(c->ss) || share_text_is_doubtful(c, sql))
        return false;
    (void)balance_decide_again(c, sql, &d);
    return d.leaves_tx && d.class == ROUTE_EITHER && !d.must_ask;
}

bool share_home_is_standby(const struct client *c)
{
    const struct link *home = c->share->turn->home;

    return home != NULL && home->pool->cluster_node != c->pool->cluster_node;
}

void share_home_set_aside(struct client *c)
{
    struct share *s = c->share;

    ASSERT(s->turn->home == NULL && expect_is_quiet(&c->link->expect));
    s->turn->home = c->link;
    link_pause(c->link);
    c->link = NULL;
    c->target = NULL;
    share_goto(c, SHARE_DETACHED);
}

void share_home_return(struct client *c)
{
    struct share *s = c->share;
    struct link *home = s->turn->home;
    struct feed_run run = {0};

    ASSERT(home != NULL && c->link == NULL);
    s->turn->home = NULL;
    s->turn->ask_until_us = 0;
    s->turn->is_out = false;
    s->again.is_read = false;
    s->loan.is_fresh = false;
    c->link = home;
    c->target = home;
    c->epoch = home->epoch;
    share_goto(c, SHARE_ATTACHED);
    varset_assign(&s->vars.link, home->vars);
    client_row_link(c);
    link_resume(home);
    if (!s->turn->leave.home_fails)
        return;
    s->turn->leave.home_fails = false;
    share_put_own_query(c, &run, slice_of_str(share_refused_query));
    home->must_clean = true; /* own_failed is going to be set on purpose */
    feed_flush(c, &run);
}

void share_home_come_back(struct client *c)
{
    struct share *s = c->share;

    share_stop_asking(c);
    s->again.may_retry = false;
    s->again.may_replan = false;
    s->turn->is_cut = false;
    share_home_return(c);
}

bool share_home_on_lost(struct client *c, const struct link *link)
{
    struct share *s = c->share;

    if (s->turn == NULL || s->turn->home != link)
        return false;
    s->turn->home = NULL;
    if (s->kept == link)
        s->kept = NULL;
    s->turn->leave.home_fails = false;
    s->turn->leave.may_go_out = false;
    if (s->turn->tx.client != NULL)
        varset_assign(&s->vars.client, s->turn->tx.client);
    s->tx = SHARE_TX_UNTOLD;
    if (s->phase == SHARE_WAITING || s->phase == SHARE_DETACHED)
        client_unpark(c); /* what waits is told */
    return true;
}

void share_home_drop(struct client *c, bool boundary)
{
    struct share *s = c->share;
    struct link *home = s->turn->home;

    if (home == NULL)
        return;
    s->turn->home = NULL;
    if (s->kept == home)
        s->kept = NULL;
    home->must_clean = true;
    link_release(home, boundary);
}
