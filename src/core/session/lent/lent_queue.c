/* SPDX-License-Identifier: PostgreSQL
 * lent_queue.c: places in lines: of a pool, of those who wait for a primary. Runs in: workers.
 * leg_wait.c looks after who stands there. */
#include "config.h"

#include "base/mem.h"

#include "sstate_int.h"
#include "lent/lent_int.h"
#include "sstate/phase_int.h"

#define LOOK_MS 50
/* A standby that takes longer to let us in is not waited for. */
#define LOGIN_US 5000000

void lent_leave_queue(struct client *c)
{
    struct sstate *s = c->sstate;
    struct link_wish *w = s->errand->wait;

    if (w == NULL)
        return;
    s->errand->wait = NULL;
    list_remove(&c->sstate->errand->homeless_node);
    pool_request_cancel(&w->req);
    pool_detach(w->req.pool);
    if (c->ss->spare_wait == NULL)
        c->ss->spare_wait = w;
    else
        mem_free(w);
}

void lent_stop_asking(struct client *c)
{
    if (!phase_is_waiting((enum phase)c->sstate->phase))
        return;
    lent_leave_queue(c);
    lent_stop_waiting(c);
    phase_goto(c, PHASE_DETACHED);
    stats_on_wait_end(&c->stats, loop_now_us(c->ss->loop));
}

void lent_stop_waiting(struct client *c)
{
    struct sstate *s = c->sstate;

    if (list_is_detached(&s->errand->homeless_node))
        return;
    list_remove(&s->errand->homeless_node);
    s->errand->refused_us = 0;
    stats_on_wait_end(&c->stats, loop_now_us(c->ss->loop));
    if (phase_is_waiting((enum phase)s->phase))
        phase_goto(c, PHASE_DETACHED);
}

void lent_start_queueing(struct client *c)
{
    struct sessions *ss = c->ss;

    if (!list_is_detached(&c->sstate->errand->homeless_node))
        return;
    if (list_is_empty(&ss->queued))
        ss->queued_version = ss->view.version;
    list_push_back(&ss->queued, &c->sstate->errand->homeless_node);
    if (!timer_is_armed(&ss->homeless_timer))
        timer_start(ss->loop, &ss->homeless_timer, LOOK_MS);
}

void lent_start_opening(struct client *c)
{
    c->sstate->errand->not_before_us = loop_now_us(c->ss->loop) + LOGIN_US;
    lent_start_queueing(c);
}

void lent_stop_opening(struct client *c)
{
    c->sstate->errand->not_before_us = 0;
    list_remove(&c->sstate->errand->homeless_node);
}
