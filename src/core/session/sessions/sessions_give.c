/* SPDX-License-Identifier: PostgreSQL
 * sessions_give.c: clients that are to go to another worker go when they are idle: behind the end
 * of an exchange, once the turn of the loop is over. Runs in: workers. Clients who do nothing stay
 * where they are, for they cost nothing. Who is to go, and where, says the process
 * (on_look). */
#include "config.h"

#include "client/client_travel_int.h"
#include "sstate_int.h"
#include "client_events_int.h"

#define LOOK_EVERY_US 250000

/* Since the last look it may have died, or be about to leave with its last client. */
static bool target_is_open(const struct sessions *ss)
{
    struct proc_row *row = proc_row(ss->env->shm, ss->env->first_worker_slot + ss->giving.to);

    return row->pid != 0 && atomic_load(&row->is_leaving) == 0;
}

/* Clients that became idle in this turn stand in front. */
static void give_fresh(struct sessions *ss)
{
    struct session_giving *g = &ss->giving;
    struct list *n;
    struct list *tmp;
    uint32_t left = g->nfresh;
    struct client *c;

    g->nfresh = 0;
    if (g->left > 0 && !target_is_open(ss))
        g->left = 0;
    LIST_FOREACH_SAFE(n, tmp, &ss->clients)
    {
        if (left-- == 0 || g->left == 0)
            return;
        c = LIST_ENTRY(n, struct client, node);
        if (!client_can_travel(c) || !pool_lets_go(c->pool))
            continue;
        if (!client_travel(c, g->to))
            return; /* its mailbox is full */
        g->left--;
    }
}

static void on_turn_over(struct task *t)
{
    struct sessions *ss = LIST_ENTRY(t, struct sessions, giving.task);
    struct session_giving *g = &ss->giving;
    int64_t now_us = loop_now_us(ss->loop);

    if (now_us >= g->look_us) {
        g->look_us = now_us + LOOK_EVERY_US;
        ss->on_look(ss);
    }
    give_fresh(ss);
    g->due_us = g->left > 0 ? 0 : g->look_us;
}

void sessions_give_init(struct sessions *ss)
{
    task_init(&ss->giving.task, on_turn_over);
    ss->giving.due_us = INT64_MAX;
}

void sessions_give_watch(struct sessions *ss, void (*on_look)(struct sessions *ss),
    bool (*may_give)(struct sessions *ss, int ordinal))
{
    ss->on_look = on_look;
    ss->may_give = may_give;
    ss->giving.due_us = 0;
}

void sessions_give(struct sessions *ss, int ordinal, uint32_t nclients, bool is_busy)
{
    ss->giving.to = ordinal;
    ss->giving.left = nclients;
    ss->be.gives_to = nclients > 0 && is_busy ? ordinal : -1;
}

uint32_t sessions_count_active(const struct sessions *ss, int64_t since_us)
{
    const struct list *n;
    uint32_t count = 0;

    for (n = ss->clients.next; n != &ss->clients; n = n->next)
        count += LIST_ENTRY(n, struct client, node)->last_active_us >= since_us ? 1 : 0;
    return count;
}

void sessions_do_idle(struct client *c)
{
    struct session_giving *g = &c->ss->giving;

    if (g->left > 0) {
        list_remove(&c->node);
        list_push_front(&c->ss->clients, &c->node);
        g->nfresh++;
    }
    task_post(c->ss->loop, &g->task);
}
