/* SPDX-License-Identifier: PostgreSQL
 * share_queue.c: places in lines: of a pool, of those who wait for a primary. Runs in: workers.
 * share_wait.c looks after who stands there. */
#include "config.h"

#include "base/hot.h"
#include "base/mem.h"

#include "share_int.h"
#include "share_phase_int.h"

#define LOOK_MS 50
/* A standby that takes longer to let us in is not waited for. */
#define LOGIN_US 5000000

void share_leave_queue(struct client *c)
{
    struct share *s = c->share;
    struct share_wait *w = s->turn->wait;

    if (w == NULL)
        return;
    s->turn->wait = NULL;
    share_stop_queueing(c);
    pool_request_cancel(&w->req);
    pool_detach(w->req.pool);
    if (c->ss->spare_wait == NULL)
        c->ss->spare_wait = w;
    else
        mem_free(w);
}

void share_stop_asking(struct client *c)
{
    if (c->share->phase != SHARE_WAITING)
        return;
    share_leave_queue(c);
    share_stop_waiting(c);
    share_goto(c, SHARE_DETACHED);
    client_stats_on_wait_end(c);
}

void share_stop_waiting(struct client *c)
{
    struct share *s = c->share;

    if (list_is_detached(&s->turn->homeless_node))
        return;
    list_remove(&s->turn->homeless_node);
    s->turn->refused_us = 0;
    client_stats_on_wait_end(c);
    if (s->phase == SHARE_WAITING)
        share_goto(c, SHARE_DETACHED);
}

void share_start_queueing(struct client *c)
{
    struct sessions *ss = c->ss;

    if (!list_is_detached(&c->share->turn->homeless_node))
        return;
    if (list_is_empty(&ss->queued))
        ss->queued_version = ss->view.version;
    list_push_back(&ss->queued, &c->share->turn->homeless_node);
    if (!timer_is_armed(&ss->homeless_timer))
        timer_start(ss->loop, &ss->homeless_timer, LOOK_MS);
}

void share_stop_queueing(struct client *c)
{
    list_remove(&c->share->turn->homeless_node);
}

void share_start_opening(struct client *c)
{
    c->share->turn->not_before_us = loop_now_us(c->ss->loop) + LOGIN_US;
    share_start_queueing(c);
}

void share_stop_opening(struct client *c)
{
    c->share->turn->not_before_us = 0;
    share_stop_queueing(c);
}
