/* SPDX-License-Identifier: PostgreSQL
 * sim_monitor.c: the monitor process as workers see it: it looks at the servers now and then, and
 * when a worker suspects one, and says what it saw a little later than it was so. When the primary
 * is gone it makes a standby the primary; somebody else may do that without a word to it. */
#include "config.h"

#include "sim_world.h"

#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "cluster/view.h"
#include "ipc/mailbox.h"

#define PROBE_US (1000 * SIM_MS)
/* So many probes in a row that fail. */
#define LOST_AFTER 2
#define NEVER      INT64_MAX

static struct {
    struct view view;
    struct mailboxes *boxes;
    int nfails[WORLD_MAX_NODES];
    int64_t probe_us;
    int64_t act_us; /* the next step of a failover or switchover */
    uint64_t told;
    bool is_on;
} monitor;

/* ---- what is said ---- */

static uint64_t digest(const struct view *v)
{
    int32_t words[5] = {
        v->primary, (int32_t)v->primary_epoch, v->sw.phase, v->sw.node, (int32_t)v->sw.fenced[0]};
    uint64_t h = hash_bytes(words, sizeof words, 1);
    int i;

    for (i = 0; i < v->nnodes; i++) {
        uint8_t bytes[3] = {v->node[i].status, v->node[i].pg_status, v->node[i].pg_role};

        h = hash_bytes(bytes, sizeof bytes, h);
    }
    return h;
}

static void publish(void)
{
    struct view *v = &monitor.view;
    uint64_t now = digest(v);
    int i;

    view_publish(workers_shm(), v);
    if (now == monitor.told)
        return;
    monitor.told = now;
    sim_note("monitor: primary %d, phase %d; servers are %s, %s, %s", v->primary, v->sw.phase,
        v->node[0].status == VIEW_UP ? "up" : "down", v->node[1].status == VIEW_UP ? "up" : "down",
        v->node[2].status == VIEW_UP ? "up" : "down");
    for (i = 0; i < world.opts.nworkers; i++)
        (void)mailbox_post(
            monitor.boxes, WORLD_MONITOR_SLOT + 1 + i, MAIL_CLUSTER_CHANGED, NULL, 0, -1);
}

/* ---- another primary ---- */

static void begin(enum view_phase phase, bool is_asked_for, int target)
{
    struct view_switch *sw = &monitor.view.sw;

    sw->phase = (uint8_t)phase;
    sw->is_asked_for = is_asked_for;
    sw->node = monitor.view.primary;
    sw->target = target;
    monitor.act_us = sim.now_us + sim_below(300) * SIM_MS;
}

static void end(void)
{
    struct view_switch *sw = &monitor.view.sw;

    sw->phase = VIEW_PHASE_NONE;
    sw->node = sw->target = VIEW_NO_NODE;
    memset(sw->fenced, 0, sizeof sw->fenced);
    monitor.act_us = NEVER;
}

static int some_standby(void)
{
    int found = VIEW_NO_NODE;
    uint32_t seen = 0;
    int i;

    for (i = 0; i < world.opts.nnodes; i++)
        if (server_is_standby(i) && !server_is_down(i) && sim_one_in(++seen))
            found = i;
    return found;
}

/* Whoever says now that it is the primary. */
static void note_primary(int node)
{
    struct view *v = &monitor.view;
    int old = v->primary;

    if (node == old)
        return;
    v->primary = node;
    v->primary_epoch++;
    v->node[node].role = v->node[node].pg_role = VIEW_ROLE_PRIMARY;
    v->node[old].role = VIEW_ROLE_STANDBY;
    if (sim_one_in(2))
        v->node[old].pg_role = VIEW_ROLE_STANDBY;
    else
        v->node[old].status = VIEW_DOWN; /* a former primary, as long as it says it is one */
    end();
}

static void promote(void)
{
    int target = monitor.view.sw.target;

    if (target == VIEW_NO_NODE || server_is_down(target) || !server_is_standby(target))
        target = some_standby();
    if (target == VIEW_NO_NODE) {
        monitor.act_us = sim.now_us + PROBE_US;
        return;
    }
    server_promote(target, sim_one_in(2));
    monitor.nfails[target] = 0;
    monitor.view.node[target].status = VIEW_UP;
    monitor.view.node[target].pg_status = VIEW_PG_UP;
    note_primary(target);
}

static void act(void)
{
    struct view_switch *sw = &monitor.view.sw;

    monitor.act_us = sim.now_us + sim_below(200) * SIM_MS;
    switch (sw->phase) {
    case VIEW_PHASE_FENCE:
        server_fence(sw->node, true);
        sw->fenced[0] |= (uint64_t)1 << sw->node;
        sw->phase = VIEW_PHASE_DRAIN;
        break;
    case VIEW_PHASE_CONFIRM:
    case VIEW_PHASE_DRAIN:
        sw->phase = VIEW_PHASE_PROMOTE;
        break;
    case VIEW_PHASE_PROMOTE:
        promote();
        break;
    default:
        monitor.act_us = NEVER;
        break;
    }
    publish();
}

void monitor_switch(void)
{
    int target = some_standby();
    int i;

    for (i = 0; i < world.opts.nnodes; i++)
        if (server_is_down(i))
            return;
    if (monitor.view.sw.phase != VIEW_PHASE_NONE || monitor.view.primary != server_primary())
        return;
    if (sim_one_in(2)) {
        server_promote(target, true); /* the monitor does not know yet */
        return;
    }
    begin(VIEW_PHASE_FENCE, true, target);
    publish();
}

/* ---- probes ---- */

static void probe_one(int i)
{
    struct view_node *n = &monitor.view.node[i];

    n->probed_us = sim_wall_us();
    if (server_is_down(i)) {
        n->pg_status = VIEW_PG_DOWN;
        if (++monitor.nfails[i] >= LOST_AFTER)
            n->status = VIEW_DOWN;
        return;
    }
    monitor.nfails[i] = 0;
    n->pg_status = VIEW_PG_UP;
    n->status = VIEW_UP;
    n->pg_role = server_is_standby(i) ? VIEW_ROLE_STANDBY : VIEW_ROLE_PRIMARY;
    n->replayed_lsn = (uint64_t)pg_lsn(server_position(i));
    n->is_receiving = server_is_standby(i);
}

static void probe(void)
{
    struct view *v = &monitor.view;
    int primary = server_primary();
    int i;

    for (i = 0; i < world.opts.nnodes; i++)
        probe_one(i);
    if (v->sw.phase == VIEW_PHASE_NONE && primary != v->primary && !server_is_down(primary))
        note_primary(primary);
    else if (v->sw.phase == VIEW_PHASE_NONE && v->node[v->primary].status == VIEW_DOWN)
        begin(VIEW_PHASE_CONFIRM, false, VIEW_NO_NODE);
    else if (v->sw.phase == VIEW_PHASE_CONFIRM && v->node[v->primary].status == VIEW_UP)
        end();
    monitor.probe_us = sim.now_us + PROBE_US;
    publish();
}

static bool take_mail(void)
{
    struct mail mail;
    bool any = false;

    while (mailbox_take(monitor.boxes, &mail) == 1) {
        any = true;
        if (mail.fd != -1)
            close(mail.fd);
    }
    return any;
}

/* ---- for the scheduler ---- */

void monitor_start(void)
{
    struct view *v = &monitor.view;
    int i;

    memset(&monitor, 0, sizeof monitor);
    monitor.is_on = world.opts.nnodes > 1;
    if (!monitor.is_on)
        return;
    monitor.boxes = sim_mail_new(0, WORLD_MONITOR_SLOT, workers_boxes());
    monitor.act_us = NEVER;
    monitor.probe_us = sim.now_us + PROBE_US;
    v->is_streaming = true;
    v->nnodes = world.opts.nnodes;
    v->primary_epoch = 1;
    end();
    for (i = 0; i < v->nnodes; i++) {
        probe_one(i);
        v->node[i].role = v->node[i].pg_role;
        v->node[i].server_version = 150018;
    }
    publish();
}

void monitor_end(void)
{
    if (monitor.is_on)
        sim_mail_free(monitor.boxes);
    monitor.is_on = false;
}

bool monitor_is_ready(void)
{
    return monitor.is_on && (sim.now_us >= monitor.probe_us || sim.now_us >= monitor.act_us ||
                                sim_net_epoll(mailboxes_own_fd(monitor.boxes)) != 0);
}

void monitor_step(void)
{
    int64_t soon_us = sim.now_us + sim_below(30) * SIM_MS;

    if (take_mail() && soon_us < monitor.probe_us)
        monitor.probe_us = soon_us; /* somebody is suspected */
    if (sim.now_us >= monitor.act_us)
        act();
    else if (sim.now_us >= monitor.probe_us)
        probe();
}

int64_t monitor_next_us(void)
{
    if (!monitor.is_on)
        return NEVER;
    return monitor.act_us < monitor.probe_us ? monitor.act_us : monitor.probe_us;
}
