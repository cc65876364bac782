/* SPDX-License-Identifier: PostgreSQL
 * pcp_wait.c: a command that was passed on is answered when its effect is seen.
 * Runs in: control. What was asked of the monitor shows in the cluster view, what was asked of the
 * supervisor in the settings' generation; without an effect in time the answer is an error. */
#include "config.h"

#include <string.h>

#include "config/conf.h"
#include "ipc/orders.h"
#include "sys/clock.h"

#include "control_int.h"
#include "recovery_job.h"

#define LOOK_AGAIN_MS LOOP_TICK_MS
#define GIVE_UP_MS    10000
#define SWITCH_MS     (5 * 60 * 1000)  /* for a whole switchover */
#define LEAVE_MS      (10 * 60 * 1000) /* for clients to end their sessions */

enum progress { PENDING, REACHED, MISSED };

static void tell_step(struct pcp_conn *c, const char *step)
{
    struct err text = {0};
    struct buf out = {0};

    err_set(&text, "00000", "node %d: %s", c->wait_node, step);
    pcp_put_err(&out, PCP_ANSWER_NOTICE, "NOTICE", &text);
    pcp_conn_send(c, &out);
    buf_free(&out);
}

/* In the order in which they come; those in which it went back come last. */
static void tell_phases(struct pcp_conn *c)
{
    static const char *const texts[] = {
        [VIEW_PHASE_CONFIRM] = "the servers are asked how far they are",
        [VIEW_PHASE_COMMAND] = "failover_command runs",
        [VIEW_PHASE_FENCE] = "the old primary is kept from writing",
        [VIEW_PHASE_DRAIN] = "its transactions may end",
        [VIEW_PHASE_CUT] = "those that have not are ended",
        [VIEW_PHASE_LEAD] = "the other standbys leave the old primary",
        [VIEW_PHASE_CATCHUP] = "it receives what is left",
        [VIEW_PHASE_PROMOTE] = "it is promoted",
        [VIEW_PHASE_SEARCH] = "it has to show up as the primary",
        [VIEW_PHASE_UNFENCE] = "the settings of the old primary are put back",
    };
    const struct view_switch *sw = &c->ctl->view.sw;
    size_t i;

    if (sw->nbegun <= c->nbegun || sw->ended_node != c->wait_node)
        return;
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i] != NULL && ((sw->passed & ~c->told) >> i & 1) != 0)
            tell_step(c, texts[i]);
    }
    c->told = sw->passed;
}

static enum progress look_at_switchover(struct pcp_conn *c, struct err *err)
{
    const struct view_switch *sw = &c->ctl->view.sw;

    /* The pgpool that leads does it: here is seen that it was done. */
    if (c->is_elsewhere)
        return c->ctl->view.primary == c->wait_node ? REACHED : PENDING;
    tell_phases(c);
    if (sw->nended > c->nended && sw->ended_node == c->wait_node) {
        if (sw->ended_well)
            return REACHED;
        err_set(err, "55000", "node %d was not made the primary", c->wait_node);
        err_detail(err, "%s", sw->ended_why);
        return MISSED;
    }
    if (sw->nrefused > c->nrefused && sw->refused_node == c->wait_node) {
        err_set(err, "55000", "invalid promote request");
        err_detail(err, "%s", sw->refused_why);
        return MISSED;
    }
    return PENDING;
}

/* Why is a node that was attached and probed not used? */
static void explain_unused(const struct pcp_conn *c, const struct view_node *n, struct err *err)
{
    err_set(err, "08006", "node %d is not in use", c->wait_node);
    if (n->pg_status == VIEW_PG_UP && n->pg_role == VIEW_ROLE_PRIMARY) {
        err_detail(err,
            "It answers, and says that it is a primary on timeline %u, but the primary is node "
            "%d.",
            n->timeline, c->ctl->view.primary);
        err_hint(err, "Rebuild it as a standby: pcp_recovery_node, or pg_rewind.");
    } else {
        err_detail(err, "It is no longer detached, but it does not answer.");
        err_hint(err, "It is used as soon as it does. See pgpool's log for why it does not.");
    }
}

/* An attached server that has not answered yet is only waiting: it may turn out to be dead, or a
 * former primary. One that says nothing for so long is in use until it is found dead. */
static enum progress look_at_attach(const struct pcp_conn *c, struct err *err)
{
    const struct view_node *n = &c->ctl->view.node[c->wait_node];

    if (n->held_down)
        return PENDING;
    if (n->status == VIEW_WAITING)
        return clock_mono_us() + LOOK_AGAIN_MS * CLOCK_US_PER_MS < c->give_up_us ? PENDING
                                                                                 : REACHED;
    if (view_is_usable(&c->ctl->view, c->wait_node))
        return REACHED;
    /* The node was taken in, probed, and found dead. */
    if (n->status_changed_us < c->began_us)
        return PENDING;
    explain_unused(c, n, err);
    return MISSED;
}

static enum progress look_at_node(struct pcp_conn *c, struct err *err)
{
    const struct view *v = &c->ctl->view;
    const struct view_node *n;

    if (c->wait_node >= v->nnodes)
        return PENDING;
    n = &v->node[c->wait_node];
    switch (c->wait) {
    case PCP_WAIT_DETACH:
        return n->held_down && n->status == VIEW_DOWN ? REACHED : PENDING;
    case PCP_WAIT_DETACH_IDLE:
        if (!n->held_down || n->status != VIEW_DOWN)
            return PENDING;
        return pcp_show_users_of(c->ctl, c->wait_node) == 0 ? REACHED : PENDING;
    case PCP_WAIT_ATTACH:
        return look_at_attach(c, err);
    case PCP_WAIT_PROMOTE:
        return v->primary == c->wait_node ? REACHED : PENDING;
    case PCP_WAIT_SWITCHOVER:
        return look_at_switchover(c, err);
    case PCP_WAIT_FAILOVER:
    case PCP_WAIT_RECOVERY:
    case PCP_WAIT_RELOAD:
    case PCP_WAIT_PAUSE:
    case PCP_WAIT_DRAIN:
        break;
    }
    return PENDING;
}

/* Each step is told as a notice; it has no limit of its own here, for the steps have theirs. */
static enum progress look_at_recovery(struct pcp_conn *c, struct err *err)
{
    struct recovery_row row;

    if (!recovery_job_find(c->ctl, c->recovery, &row)) {
        err_set(err, "XX000", "the recovery is not known any more");
        return MISSED;
    }
    if (row.step != c->recovery_step) {
        c->recovery_step = row.step;
        tell_step(c, recovery_step_name(row.step));
    }
    if (!row.is_over)
        return PENDING;
    if (row.is_ok)
        return REACHED;
    err_set(err, "38000", "node recovery failed, node id: %d", c->wait_node);
    err_detail(err, "%s", row.text);
    err_hint(
        err, "%s", row.hint[0] != '\0' ? row.hint : "See pgpool's log, and SHOW POOL_RECOVERY.");
    return MISSED;
}

static enum progress look_at_order(struct pcp_conn *c, struct err *err)
{
    switch (pcp_order_look(c, err)) {
    case ORDERS_DONE:
        return REACHED;
    case ORDERS_ENDED:
        return MISSED;
    case ORDERS_PENDING:
        break;
    }
    return PENDING;
}

/* Whoever gives an order next may rely on it that no worker goes by the old settings. */
static enum progress look_at_reload(struct pcp_conn *c)
{
    const struct role_loop *rl = &c->ctl->role;
    struct proc_row row;
    int slot;

    if (conf_number(role_loop_gen(rl)) <= c->old_generation)
        return PENDING;
    for (slot = 0; slot < proc_nslots(rl->env->shm); slot++) {
        proc_row_copy(rl->env->shm, slot, &row);
        if (row.pid != 0 && row.role == ROLE_WORKER && row.conf_generation <= c->old_generation)
            return PENDING;
    }
    return REACHED;
}

bool pcp_recovery_begin(struct pcp_conn *c, int node, struct err *err)
{
    char who[VIEW_WHO_BYTES];

    snprintf(who, sizeof who, "PCP user %.50s", c->user);
    c->recovery = recovery_job_start(c->ctl, node, who, err);
    c->recovery_step = -1;
    return c->recovery != 0;
}

/* A recovery that waits for the end of a failover; then it is one that runs. */
static enum progress look_at_failover(struct pcp_conn *c, struct err *err)
{
    if (recovery_job_must_wait(c->ctl, c->wait_node))
        return PENDING;
    if (!pcp_recovery_begin(c, c->wait_node, err))
        return MISSED;
    c->wait = PCP_WAIT_RECOVERY;
    return PENDING;
}

static enum progress look(struct pcp_conn *c, struct err *err)
{
    struct control *ctl = c->ctl;

    if (c->wait == PCP_WAIT_FAILOVER)
        return look_at_failover(c, err);
    if (c->wait == PCP_WAIT_RELOAD)
        return look_at_reload(c);
    if (c->wait == PCP_WAIT_RECOVERY)
        return look_at_recovery(c, err);
    if (c->wait == PCP_WAIT_PAUSE || c->wait == PCP_WAIT_DRAIN)
        return look_at_order(c, err);
    (void)view_refresh(ctl->role.env->shm, &ctl->view);
    return look_at_node(c, err);
}

static int limit_of(enum pcp_wait wait)
{
    if (wait == PCP_WAIT_SWITCHOVER || wait == PCP_WAIT_FAILOVER)
        return SWITCH_MS;
    return wait == PCP_WAIT_DETACH_IDLE || wait == PCP_WAIT_PAUSE || wait == PCP_WAIT_DRAIN
               ? LEAVE_MS
               : GIVE_UP_MS;
}

static void give_up(const struct pcp_conn *c, struct err *err)
{
    int seconds = limit_of(c->wait) / 1000;

    if (c->wait == PCP_WAIT_RELOAD) {
        err_set(err, "57014", "the settings were not reloaded within %d seconds", seconds);
        err_hint(err, "See pgpool's log.");
        return;
    }
    if (c->wait == PCP_WAIT_FAILOVER) {
        err_set(err, "57014", "failed to process PCP request at the moment");
        err_hint(err, "A failover goes on, longer than %d seconds: see SHOW POOL_EVENTS.", seconds);
        return;
    }
    if (c->wait == PCP_WAIT_DETACH_IDLE) {
        err_set(err, "57014", "clients still use node %d after %d seconds", c->wait_node, seconds);
        err_hint(err, "The node stays detached if it is by now: see pcp_node_info.");
        return;
    }
    if (c->wait == PCP_WAIT_PAUSE) {
        err_set(err, "57014", "server connections were still in use after %d seconds", seconds);
        err_hint(err, "The pause is taken back. SHOW POOL_LINKS tells who uses them.");
        return;
    }
    if (c->wait == PCP_WAIT_DRAIN) {
        err_set(err, "57014", "clients were still there after %d seconds", seconds);
        err_hint(err, "The draining goes on until pcp_resume. SHOW POOL_CLIENTS tells who stays.");
        return;
    }
    err_set(err, "57014", "the command had no effect on node %d within %d seconds", c->wait_node,
        seconds);
    err_hint(err, "See pgpool's log, and the state of the node with pcp_node_info.");
}

static void finish(struct pcp_conn *c, const struct err *err)
{
    struct buf out = {0};

    if (err != NULL) {
        pcp_conn_refuse(c, err, false);
    } else {
        pcp_put_word(&out, c->answer, PCP_COMPLETE);
        pcp_conn_send(c, &out);
        buf_free(&out);
    }
    c->on_resume(c);
}

static void on_poll(struct timer *t)
{
    struct pcp_conn *c = LIST_ENTRY(t, struct pcp_conn, poll);
    struct err err = {0};

    if (pcp_order_is_left(c)) {
        pcp_conn_close(c);
        return;
    }
    switch (look(c, &err)) {
    case REACHED:
        finish(c, NULL);
        return;
    case MISSED:
        finish(c, &err);
        return;
    case PENDING:
        break;
    }
    if (c->wait == PCP_WAIT_RECOVERY || clock_mono_us() < c->give_up_us) {
        timer_start(&c->ctl->role.loop, t, LOOK_AGAIN_MS);
        return;
    }
    pcp_order_end(c);
    give_up(c, &err);
    finish(c, &err);
}

void pcp_wait_init(struct pcp_conn *c)
{
    timer_init(&c->poll, on_poll);
}

void pcp_wait_start(struct pcp_conn *c, enum pcp_wait wait, int node, char answer)
{
    c->wait = wait;
    c->wait_node = node;
    c->answer = answer;
    c->began_us = clock_wall_us();
    c->give_up_us = clock_mono_us() + (int64_t)limit_of(wait) * CLOCK_US_PER_MS;
    timer_start(&c->ctl->role.loop, &c->poll, LOOK_AGAIN_MS);
}
