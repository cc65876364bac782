/* SPDX-License-Identifier: PostgreSQL
 * leg_again.c: an exchange is sent once more, from the client's own messages, as a read that went
 * elsewhere and comes home. Runs in: workers. Must never: send again what may have
 * been done. */
#include "config.h"

#include "base/hot.h"

#include "sstate_int.h"
#include "leg/leg_int.h"

void leg_owe_parameters(struct sstate *s)
{
    if (!paramset_is_empty(&s->errand->told))
        sstate_owe_parameters(s);
}

HOT bool leg_may_resend(const struct client *c)
{
    return c->sstate->tx != SSTATE_TX_BEGUN && !c->link->must_clean;
}

HOT void leg_keep(struct client *c, struct slice msgs)
{
    struct sstate *s = c->sstate;

    s->again.reply_begun = false;
    buf_empty(&s->errand->retry);
    if (msgs.n == 0 || msgs.n > SSTATE_RETRY_MAX)
        again_forget(&s->again);
    else if (s->again.retry != AGAIN_NEVER || s->again.may_replan || leg_may_resend(c))
        buf_put(&s->errand->retry, msgs.p, msgs.n);
}

void leg_stop_keeping(struct client *c)
{
    struct sstate *s = c->sstate;

    s->again.may_replan = false;
    buf_empty(&s->errand->retry);
    client_send(c, &s->errand->early);
}

struct buf leg_take_retry(struct client *c)
{
    struct sstate *s = c->sstate;
    struct buf retry = s->errand->retry;

    leg_owe_parameters(s);
    memset(&s->errand->retry, 0, sizeof s->errand->retry);
    buf_free(&s->errand->early);
    plan_again_join(c, &retry, c->server_batch);
    return retry;
}

void leg_send_again(struct client *c)
{
    struct buf retry = leg_take_retry(c);

    c->is_parked = false;
    c->server_batch = false;
    feed_client(c, retry.data + retry.pos, retry.data + retry.len);
    client_read_on(c);
    buf_free(&retry);
}

static void go_home(struct client *c)
{
    struct sstate *s = c->sstate;
    struct buf retry = s->errand->retry;

    memset(&s->errand->retry, 0, sizeof s->errand->retry);
    s->again.what = AGAIN_NO;
    tx_leave_no_more(&s->errand->leave);
    (void)expect_take_hold(&c->link->expect);
    leg_detach(c);
    s->errand->retry = retry;
    leg_send_again(c);
}

WARM bool leg_away_over(struct client *c, bool failed, bool was_cut)
{
    struct sstate *s = c->sstate;

    if (s->errand->place != PLACE_OUT)
        return false;
    s->errand->place = PLACE_HOME;
    if (!was_cut) /* else none was bound */
        s->errand->leave.portal_left = s->errand->home != NULL;
    if (s->again.what == AGAIN_AT_HOME) {
        go_home(c);
        return true;
    }
    if (failed)
        plan_away_fail(s);
    return false;
}

/* The answer of the primary would not be this one (the standby lags, or cannot do it), or it would:
 * then it is the transaction's own. Who cancels wants no second try. */
bool leg_away_on_error(struct client *c, struct link *link, const struct errmsg *m)
{
    struct sstate *s = c->sstate;

    if (s->errand->place != PLACE_OUT)
        return false;
    if (s->again.retry != AGAIN_NEVER && !s->again.reply_begun && s->errand->retry.len > 0 &&
        !slice_eq_str(m->sqlstate, "57014")) {
        s->again.what = AGAIN_AT_HOME;
        expect_hold(&link->expect);
        return true;
    }
    link->ready_as = 'E';
    return false;
}
