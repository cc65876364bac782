/* SPDX-License-Identifier: PostgreSQL
 * sessions_view.c: what a change of the cluster means for clients and links that are there. Runs
 * in: workers. Links to a server that is gone, or that was replaced as the primary while it lives,
 * are cut: nobody is to wait for an answer that will not come, and no write may reach a former
 * primary. Clients whose links those are go on with others (exchange_lost.c, leg_wait.c). */
#include "config.h"

#include "base/log.h"
#include "config/conf.h"

#include "sstate_int.h"
#include "leg/leg_int.h"

#define LOOK_MS  50
#define CUT_ONCE 64

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

static void look(struct timer *t)
{
    struct sessions *ss = LIST_ENTRY(t, struct sessions, view_timer);
    bool is_done;

    (void)view_refresh(ss->env->shm, &ss->view);
    is_done = cut_links(ss);
    client_login_leave_queues(ss);
    client_login_look_again(ss);
    if (!is_done)
        timer_start(ss->loop, t, 0);
    else if (!list_is_empty(&ss->looking))
        timer_start(ss->loop, t, LOOK_MS);
}

void sessions_on_cluster(struct sessions *ss)
{
    timer_start(ss->loop, &ss->view_timer, 0);
    leg_wait_look(ss);
}

void sessions_view_init(struct sessions *ss)
{
    list_init(&ss->looking);
    timer_init(&ss->view_timer, look);
}
