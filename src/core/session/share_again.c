/* SPDX-License-Identifier: PostgreSQL
 * share_again.c: an exchange is sent once more, from the client's own messages, as a read that went
 * elsewhere and comes home. Runs in: workers. Must never: send again what may have
 * been done. */
#include "config.h"

#include "base/hot.h"

#include "share_again_int.h"

void share_owe_parameters(struct share *s)
{
    s->owes_parameters = s->owes_parameters || !paramset_is_empty(&s->turn->told);
}

void share_send_again(struct client *c)
{
    struct share *s = c->share;
    struct buf retry = s->turn->retry;

    share_owe_parameters(s);
    memset(&s->turn->retry, 0, sizeof s->turn->retry);
    buf_free(&s->turn->early);
    balance_again_join(c, &retry, c->server_batch);
    c->is_parked = false;
    c->server_batch = false;
    client_feed(c, retry.data + retry.pos, retry.data + retry.len);
    if (c->phase == CL_ACTIVE && !c->is_parked && !c->is_half_closed)
        stream_resume(&c->stream);
    buf_free(&retry);
}

static void go_home(struct client *c)
{
    struct share *s = c->share;
    struct buf retry = s->turn->retry;

    memset(&s->turn->retry, 0, sizeof s->turn->retry);
    s->again.what = AGAIN_NO;
    s->turn->leave.may_go_out = false;
    (void)expect_take_hold(&c->link->expect);
    share_detach(c);
    s->turn->retry = retry;
    share_send_again(c);
}

WARM bool share_out_over(struct client *c, bool failed, bool was_cut)
{
    struct share *s = c->share;

    if (!s->turn->is_out)
        return false;
    s->turn->is_out = false;
    s->turn->leave.was_out = true;
    if (!was_cut) /* else none was bound */
        s->turn->leave.portal_left = s->turn->home != NULL;
    if (s->again.what == AGAIN_AT_HOME) {
        go_home(c);
        return true;
    }
    if (failed)
        share_out_fail(s);
    return false;
}

/* The answer of the primary would not be this one (the standby lags, or cannot do it), or it would:
 * then it is the transaction's own. Who cancels wants no second try. */
bool share_out_on_error(struct client *c, struct link *link, const struct errmsg *m)
{
    struct share *s = c->share;

    if (!s->turn->is_out)
        return false;
    if (s->again.may_retry && !s->again.reply_begun && s->turn->retry.len > 0 &&
        !slice_eq_str(m->sqlstate, "57014")) {
        s->again.what = AGAIN_AT_HOME;
        expect_hold(&link->expect);
        return true;
    }
    link->ready_as = 'E';
    return false;
}
