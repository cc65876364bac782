/* SPDX-License-Identifier: PostgreSQL
 * sessions_view.c: what a change of the cluster means for clients and links that are there. Runs
 * in: workers. Links to a server that is gone, or that was replaced as the primary while it lives,
 * are cut: nobody is to wait for an answer that will not come, and no write may reach a former
 * primary. Clients that have nothing under way wait while their server is being replaced, and move
 * on. */
#include "config.h"

#include "base/hot.h"
#include "base/log.h"
#include "config/conf.h"

#include "share_int.h"

#define LOOK_MS  50
#define CUT_ONCE 64
/* A probe of a server that is near takes so long. */
#define REFUSED_LOOK_MS 5

enum stay { STAY, WAIT, MOVE };

/* No answer can come from there any more, or none that counts. A lost primary keeps its links until
 * another one is there: perhaps it is only we who do not reach it, and they do. */
static bool is_gone(const struct view *v, int node)
{
    const struct view_node *n;
    bool is_replaced = v->primary != VIEW_NO_NODE && v->primary != node;

    if (!v->is_streaming || node < 0 || node >= v->nnodes || view_is_usable(v, node))
        return false;
    n = &v->node[node];
    if (n->pg_role == VIEW_ROLE_PRIMARY)
        return is_replaced;
    return n->status == VIEW_DOWN && !n->held_down && n->pg_status == VIEW_PG_DOWN;
}

static struct link *find_cut_in(struct sessions *ss, const struct list *links)
{
    struct list *n;

    LIST_FOREACH(n, links)
    {
        struct link *link = LIST_ENTRY(n, struct link, be_node);

        if (link->phase != LINK_CLOSED && is_gone(&ss->view, link->pool->cluster_node))
            return link;
    }
    return NULL;
}

static struct link *find_cut(struct sessions *ss)
{
    struct link *link = find_cut_in(ss, &ss->be.links);

    return link != NULL ? link : find_cut_in(ss, &ss->be.idle_lru);
}

/* Ending one link may end others: no walk, and only so many in a turn of the loop. */
static bool cut_links(struct sessions *ss)
{
    struct link *link;
    int node;
    int i;

    for (i = 0; i < CUT_ONCE; i++) {
        link = find_cut(ss);
        if (link == NULL)
            return true;
        node = link->pool->cluster_node;
        if (ss->view.node[node].pg_role == VIEW_ROLE_PRIMARY)
            link_fail_text(link, "08006", "node %d is not the primary any more, node %d is", node,
                ss->view.primary);
        else
            link_fail_text(link, "08006", "node %d does not answer any more", node);
    }
    return false;
}

static bool is_switching(const struct view *v, int node)
{
    return v->sw.is_asked_for && v->sw.node == node && v->sw.phase >= VIEW_PHASE_FENCE &&
           v->sw.phase <= VIEW_PHASE_SEARCH;
}

/* What the next statement on its own link is to do; `class` as the router has it. */
static enum stay judge(struct client *c, enum route_class class)
{
    const struct view *v = &c->ss->view;
    int node = c->link->pool->cluster_node;

    if (!v->is_streaming || node >= v->nnodes || (v->primary == node && !is_switching(v, node)))
        return STAY;
    if (c->share != NULL || c->link->tx_status != 'I' || c->balance->own->home != NULL ||
        !balance_is_quiet(c))
        return STAY;
    if (is_switching(v, node) && (v->primary == node || v->primary == VIEW_NO_NODE))
        return WAIT;
    if (view_must_hold_writes(v)) /* its session is on a standby, for want of a primary */
        return v->node[node].pg_role == VIEW_ROLE_STANDBY && class != ROUTE_EITHER ? WAIT : STAY;
    return view_can_write(v) && client_adrift_is_possible(c, c->link) ? MOVE : STAY;
}

bool sessions_all_asked_since(const struct view *v, int64_t since_us)
{
    int i;

    for (i = 0; i < v->nnodes; i++)
        if (view_is_usable(v, i) && v->node[i].probed_us <= since_us)
            return false;
    return true;
}

/* What was refused on its own link, which is quiet. */
static enum stay judge_refused(struct client *c)
{
    const struct view *v = &c->ss->view;
    struct balance_own *own = c->balance->own;
    int node = c->link->pool->cluster_node;

    if (v->primary != node || is_switching(v, node) || view_has_node(v->sw.fenced, node))
        own->saw_change = true;
    else if (!own->saw_change)
        return sessions_all_asked_since(v, own->refused_us) ? STAY : WAIT;
    return view_can_write(v) && client_adrift_is_possible(c, c->link) ? MOVE : WAIT;
}

void sessions_hold_refused(struct client *c)
{
    struct sessions *ss = c->ss;
    struct balance_own *own = c->balance->own;

    own->hold_until_us = loop_now_us(ss->loop) + ss->conf->failover_wait_ms * 1000;
    list_push_back(&ss->held, &own->held_node);
    client_stats_on_wait_begin(c);
    client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_NO_PRIMARY);
    sessions_suspect_node(ss, c->link->pool->cluster_node);
    if (!timer_is_armed(&ss->view_timer))
        timer_start(ss->loop, &ss->view_timer, REFUSED_LOOK_MS);
}

WARM bool sessions_hold(struct client *c, enum route_class class)
{
    struct sessions *ss = c->ss;
    struct balance_own *b = c->balance->own;
    enum stay stay;

    if (b == NULL)
        return false; /* it shares links: share_wait.c */
    (void)view_refresh(ss->env->shm, &ss->view);
    stay = judge(c, class);
    if (stay == STAY) {
        b->hold_until_us = 0;
        return false;
    }
    if (!list_is_detached(&b->held_node))
        return true;
    if (b->hold_until_us == 0)
        b->hold_until_us = loop_now_us(ss->loop) + ss->conf->failover_wait_ms * 1000;
    if (loop_now_us(ss->loop) >= b->hold_until_us)
        return false;
    b->hold_class = (uint8_t) class;
    list_push_back(&ss->held, &b->held_node);
    client_stats_on_wait_begin(c);
    client_row_state(c, CLIENT_STATE_WAITING, WAIT_REASON_NO_PRIMARY);
    timer_start(ss->loop, &ss->view_timer, stay == MOVE ? 0 : LOOK_MS);
    return true;
}

static enum stay look_at_one(struct client *c)
{
    const struct balance_own *b = c->balance->own;

    if (c->link == NULL)
        return STAY;
    return b->is_refused ? judge_refused(c) : judge(c, (enum route_class)b->hold_class);
}

static void look_at_held(struct sessions *ss)
{
    struct list all;
    struct list *n;

    list_init(&all);
    while ((n = list_first(&ss->held)) != NULL) {
        list_remove(n);
        list_push_back(&all, n);
    }
    while ((n = list_first(&all)) != NULL) {
        struct balance_own *b = LIST_ENTRY(n, struct balance_own, held_node);
        struct client *c = b->client;
        enum stay stay = look_at_one(c);

        list_remove(n);
        if (stay == WAIT && loop_now_us(ss->loop) < b->hold_until_us) {
            list_push_back(&ss->held, n);
            continue;
        }
        client_stats_on_wait_end(c);
        if (b->is_refused)
            b->hold_until_us = 0;
        if (stay == WAIT && b->is_refused)
            stay = STAY;
        if (stay == MOVE)
            link_fail_text(c->link, "08006", "node %d is the primary now", ss->view.primary);
        else if (b->is_refused)
            balance_again_tell(c);
        else if (c->is_parked)
            client_unpark(c);
    }
}

static void look(struct timer *t)
{
    struct sessions *ss = LIST_ENTRY(t, struct sessions, view_timer);
    bool is_done;

    (void)view_refresh(ss->env->shm, &ss->view);
    is_done = cut_links(ss);
    look_at_held(ss);
    client_login_leave_queues(ss);
    client_login_look_again(ss);
    if (!is_done)
        timer_start(ss->loop, t, 0);
    else if (!list_is_empty(&ss->held) || !list_is_empty(&ss->looking))
        timer_start(ss->loop, t, LOOK_MS);
}

void sessions_on_cluster(struct sessions *ss)
{
    timer_start(ss->loop, &ss->view_timer, 0);
    share_wait_look(ss);
}

void sessions_view_init(struct sessions *ss)
{
    list_init(&ss->held);
    list_init(&ss->looking);
    timer_init(&ss->view_timer, look);
}
