/* SPDX-License-Identifier: PostgreSQL
 * native_rest.c: what a client of native replication leaves behind: a COMMIT that the main node was
 * told is told to all others, and nobody cancels it. Runs in: workers. A node that cannot do it is
 * taken out of service, for it is not like the others any more. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/command.h"
#include "ipc/hold.h"
#include "wire/writer.h"

#include "native_int.h"

/* What one client left behind, on all its nodes. */
struct native_rest_all {
    unsigned nleft;
    unsigned n;
    unsigned nrefused; /* said an error */
    struct native_flight *flight;
    uint64_t failed;       /* nodes */
    bool is_decided_there; /* the main node's own answer is among them, or was an error */
};

/* The owner of one link until it is quiet. */
struct native_rest {
    struct sessions *ss;
    struct native_rest_all *all;
    struct pool *pool;
    struct link *link;
    const struct native_gate_ops *gate; /* NULL: it holds up no snapshots */
    uint32_t nahead; /* 1: the main node has done, or may have, what this one is about to */
    bool failed;
};

static void detach(struct sessions *ss, int node)
{
    struct node_command cmd = {.order = NODE_DETACH, .node = node};

    snprintf(cmd.who, sizeof cmd.who, "%s", "native replication");
    snprintf(cmd.why, sizeof cmd.why, "%s", "it could not end what the main node had ended");
    log_at_detail(LVL_WARNING, NULL,
        "Rebuild it from another node, and attach it: it lacks what the others have.",
        "node %d is detached: %s", cmd.node, cmd.why);
    sessions_mail_monitor(ss, MAIL_NODE_COMMAND, &cmd, sizeof cmd);
}

/* Where all have refused it, it is undone on all: nobody lacks anything. */
static void all_end(struct sessions *ss, struct native_rest_all *all)
{
    bool agrees = all->is_decided_there && all->nrefused == all->n;

    if (--all->nleft > 0)
        return;
    for (int node = 0; !agrees && node < 64; node++) {
        if ((all->failed >> node & 1) != 0)
            detach(ss, node);
    }
    native_flight_end(ss, all->flight);
    mem_free(all);
}

static void rest_end(struct native_rest *r)
{
    struct pool *pool = r->pool;

    hold_leave(r->ss->env->shm, r->ss->env->ordinal);
    if (r->nahead > 0)
        hold_ahead_over(r->ss->env->shm, r->ss->env->ordinal);
    if (r->gate != NULL)
        r->gate->leave_one(r->ss, GATE_COMMIT);
    if (r->failed)
        r->all->failed |= UINT64_C(1) << pool->cluster_node;
    r->all->nrefused += r->failed && r->link != NULL;
    all_end(r->ss, r->all);
    if (r->link != NULL)
        link_release(r->link, true);
    pool_detach(pool);
    mem_free(r);
}

static void rest_on_quiet(void *owner, struct link *link)
{
    (void)link;
    rest_end(owner);
}

static bool rest_on_error(void *owner, struct link *link, const struct errmsg *m)
{
    struct native_rest *r = owner;

    (void)link;
    (void)m;
    r->failed = true;
    return true;
}

static void rest_on_lost(void *owner, struct link *link, const struct err *err, bool told)
{
    struct native_rest *r = owner;

    (void)link;
    (void)err;
    (void)told;
    r->failed = true;
    r->link = NULL;
    rest_end(r);
}

static const struct link_owner_ops rest_ops = {
    .on_bytes = link_ignore_bytes,
    .on_quiet = rest_on_quiet,
    .on_settled = link_ignore,
    .on_error = rest_on_error,
    .on_drained = link_ignore,
    .on_lost = rest_on_lost,
};

static void leave(struct native_leg *leg, struct native_rest_all *all)
{
    struct client *c = leg->n->c;
    struct native_rest *r = mem_alloc_zero(sizeof *r);

    r->ss = leg->n->ss;
    r->all = all;
    all->nleft++;
    all->n++;
    hold_join(r->ss->env->shm, r->ss->env->ordinal);
    r->nahead = leg->n->nahead;
    if (r->nahead > 0)
        hold_ahead(r->ss->env->shm, r->ss->env->ordinal, leg->n->leg[leg->n->main].node);
    if (leg->n->gate.inside == GATE_COMMIT) {
        r->gate = leg->n->gate.ops;
        r->gate->join(r->ss);
    }
    r->link = leg->link;
    r->pool = leg->link->pool;
    if (leg->pool == NULL) {
        pool_hold(r->pool);
        client_lose_link(c);
    } else {
        client_untarget(c, leg->link);
    }
    r->link->owner = r;
    r->link->ops = &rest_ops;
    link_resume(r->link);
    leg->pool = NULL;
    leg->link = NULL;
    leg->phase = LEG_NONE;
}

/* What may commit within runs on the main node: on the others, too, from now on. */
static bool runs_on_the_others(struct native *n, bool is_known)
{
    if (n->step != STEP_MAIN || n->place.commits == 0 || !is_known ||
        !native_is_up(&n->leg[n->main]))
        return false;
    for (unsigned i = 0; i < n->nlegs; i++) {
        if (i != n->main && native_is_up(&n->leg[i]))
            native_send(n, &n->leg[i], false);
    }
    return true;
}

/* The main node commits, and the others have not been asked yet. */
static void commit_the_others(struct native *n)
{
    for (unsigned i = 0; i < n->nlegs; i++) {
        struct native_leg *leg = &n->leg[i];

        if (i != n->main && native_is_up(leg) && leg->link->tx_status == 'T')
            native_ask(n, leg, slice_of_str("COMMIT"));
    }
}

/* What was asked must not be undone any more, or is done by the others, too. */
static bool ends_by_itself(struct native *n, bool is_known)
{
    if (n->step == STEP_FIRST_END || (n->step == STEP_MAIN && n->ex.is_commit && n->failed < 0))
        commit_the_others(n);
    return n->step == STEP_FIRST_END || n->step == STEP_OTHER_ENDS || n->ex.is_commit ||
           (n->step == STEP_OTHERS && is_known) || runs_on_the_others(n, is_known);
}

void native_leave_behind(struct native *n)
{
    bool is_known = !n->wrapped && n->leg[n->main].link != NULL &&
                    n->leg[n->main].link->tx_status == 'I' && !native_lacks_begin(n, n->main);
    struct sessions *ss = n->ss;
    struct native_rest_all *all;

    if (!ends_by_itself(n, is_known)) {
        if (n->step == STEP_MAIN || n->step == STEP_FENCE || n->step == STEP_OTHERS)
            native_cut_short(n, false);
        return;
    }
    all = mem_alloc_zero(sizeof *all);
    all->nleft = 1; /* ours, until all are known */
    all->flight = n->flight;
    n->flight = NULL;
    all->is_decided_there = n->leg[n->main].is_asked || n->leg[n->main].kind == 'E';
    for (unsigned i = 0; i < n->nlegs; i++) {
        struct native_leg *leg = &n->leg[i];

        if (leg->is_asked && native_is_up(leg))
            leave(leg, all);
        else if (native_lacks(n, i, is_known) || /* or it has refused what others do */
                 (n->step == STEP_OTHER_ENDS && leg->did && leg->kind == 'E'))
            all->failed |= UINT64_C(1) << leg->node;
    }
    all_end(ss, all);
}
