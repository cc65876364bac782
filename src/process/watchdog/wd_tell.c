/* SPDX-License-Identifier: PostgreSQL
 * wd_tell.c: what the other processes of this pgpool are told: the monitor what to do by, the
 * supervisor orders that came from other pgpools, all who show it how the cluster is.
 * Runs in: watchdog. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sys/clock.h"

#include "wd_int.h"

/* What a former process had from the log and told the monitor of is what holds until it is read
 * again: else a former primary would be one again meanwhile. */
static bool is_reading(const struct wd *w)
{
    return w->raft == NULL || w->state.nevents < w->followed.nevents;
}

/* Not just while another one is elected: there is nobody to say that a server is well again. */
static bool is_left_alone(struct wd *w)
{
    return w->leaderless_us != 0 && loop_now_us(&w->role.loop) - w->leaderless_us >
                                        4 * wd_conf(w)->wd_election_timeout_ms * CLOCK_US_PER_MS;
}

static void fill_says(struct wd *w, struct wd_says *s)
{
    bool is_alone = is_left_alone(w);
    bool leads = wd_is_leading(w) && w->lead.is_told && !w->lead.yields;
    int i;

    memset(s, 0, sizeof *s);
    s->is_leader = leads;
    s->primary = w->state.primary;
    s->timeline = w->state.timeline;
    s->acts_alone = !wd_conf(w)->failover_when_quorum_exists && is_alone;
    s->is_reading = !leads && !s->acts_alone && is_reading(w);
    for (i = 0; i < VIEW_MAX_NODES; i++) {
        const struct wd_node *n = &w->state.node[i];

        wd_put_bit(s->may, i, leads && n->is_begun);
        wd_put_bit(s->barred, i,
            n->was_primary && (n->is_lost || n->is_held) &&
                !(n->is_begun && w->state.primary == i && !n->is_held));
        wd_put_bit(s->lost, i, n->is_lost && !n->is_held && !is_alone);
        wd_put_bit(s->known, i, n->is_known);
        wd_put_bit(s->held, i, n->is_held);
        s->epoch[i] = n->epoch;
        s->candidate[i] = n->candidate;
        if (n->is_held) {
            memcpy(s->who[i], n->who, sizeof s->who[i]);
            memcpy(s->why[i], n->why, sizeof s->why[i]);
        }
    }
}

/* Now and then, in time for the monitor never to doubt it. */
static void tell_led(struct wd *w, int slot)
{
    int64_t step_us = wd_conf(w)->wd_election_timeout_ms * CLOCK_US_PER_MS / 4;
    int64_t until_us = w->says.is_leader ? wd_lease_led_until_us(w) : 0;

    if (until_us < w->lead.told_until_us + step_us || slot == -1)
        return;
    if (mailbox_post(w->role.env->boxes, slot, MAIL_WD_LEADS, &until_us, sizeof until_us, -1) == 0)
        w->lead.told_until_us = until_us;
}

void wd_tell_monitor(struct wd *w)
{
    struct wd_says *s = mem_alloc(sizeof *s);
    int slot = proc_find(w->role.env->shm, ROLE_MONITOR);

    fill_says(w, s);
    s->serial = w->serial;
    if (memcmp(s, &w->says, sizeof *s) != 0) {
        s->serial = ++w->serial;
        w->says = *s;
        w->is_said = false;
    }
    mem_free(s);
    if (!w->is_said && slot != -1)
        w->is_said =
            mailbox_post(w->role.env->boxes, slot, MAIL_WD_SAYS, &w->says, sizeof w->says, -1) == 0;
    tell_led(w, slot);
}

void wd_tell_command(struct wd *w, const struct node_command *cmd)
{
    struct node_command decided = *cmd;
    int slot = proc_find(w->role.env->shm, ROLE_MONITOR);

    decided.is_decided = true;
    if (slot != -1)
        (void)mailbox_post(
            w->role.env->boxes, slot, MAIL_NODE_COMMAND, &decided, sizeof decided, -1);
}

void wd_tell_missed(struct wd *w, int node)
{
    int slot = proc_find(w->role.env->shm, ROLE_MONITOR);
    int32_t id = node;

    if (slot != -1)
        (void)mailbox_post(w->role.env->boxes, slot, MAIL_NODE_MISSED, &id, sizeof id, -1);
}

void wd_tell_attached(struct wd *w, const struct wd_event *e)
{
    struct node_command cmd = {.order = NODE_ATTACH, .node = e->node};

    snprintf(cmd.who, sizeof cmd.who, "%s", e->who);
    snprintf(cmd.why, sizeof cmd.why, "%s", e->text);
    wd_tell_command(w, &cmd);
}

void wd_tell_supervisor(struct wd *w, char what)
{
    (void)mailbox_post(w->role.env->boxes, PROC_SLOT_SUPERVISOR, MAIL_REQUEST, &what, 1, -1);
}

/* For SHOW */

static uint8_t state_of(struct wd *w, int i)
{
    enum wd_role role = i == w->self ? (w->raft == NULL ? WD_ROLE_NONE : wd_raft_role(w->raft))
                                     : (enum wd_role)w->other[i].said.role;

    if (i != w->self && w->other[i].is_leaving)
        return WD_MEMBER_SHUTDOWN;
    if (!wd_is_alive(w, i))
        return w->other[i].is_known ? WD_MEMBER_LOST : WD_MEMBER_DEAD;
    switch (role) {
    case WD_ROLE_LEADER:
        return WD_MEMBER_LEADER;
    case WD_ROLE_CANDIDATE:
        return WD_MEMBER_ELECTION;
    case WD_ROLE_FOLLOWER:
        return i != w->self || wd_raft_leader(w->raft) != WD_NO_MEMBER ? WD_MEMBER_STANDBY
                                                                       : WD_MEMBER_JOINING;
    case WD_ROLE_NONE:
        break;
    }
    return WD_MEMBER_LOADING;
}

/* What a member is. Why one does not count only the leader of then knew; what we see of it tells as
 * much. */
static uint8_t membership_of(const struct wd *w, int i, bool is_voter)
{
    const struct wd_other *o = &w->other[i];

    if (is_voter)
        return WD_MEMBERSHIP_MEMBER;
    if (i != w->self && o->is_leaving)
        return WD_MEMBERSHIP_SHUTDOWN;
    return i != w->self && o->is_known && !wd_is_alive(w, i) ? WD_MEMBERSHIP_LOST
                                                             : WD_MEMBERSHIP_NO_SHOW;
}

static void fill_member(struct wd *w, int i, bool is_voter, struct wd_member *m)
{
    const struct conf_wd_node *n = &wd_conf(w)->wd_nodes[i];
    const struct wd_other *o = &w->other[i];
    int64_t heard_us = i == w->self ? loop_now_us(&w->role.loop) : wd_net_heard_us(w->net, i);

    memset(m, 0, sizeof *m);
    m->exists = wd_is_listed(w, i);
    if (!m->exists)
        return;
    m->is_voter = is_voter;
    m->is_connected = wd_is_alive(w, i);
    m->is_witness = i == w->self ? w->is_witness : o->said.is_witness;
    m->state = state_of(w, i);
    m->membership = membership_of(w, i, is_voter);
    m->wd_port = n->wd_port;
    m->pgpool_port = n->pgpool_port;
    m->follows = i == w->self      ? (w->raft == NULL ? WD_NO_MEMBER : wd_raft_leader(w->raft))
                 : m->is_connected ? o->said.follows
                                   : WD_NO_MEMBER;
    m->priority = i == w->self ? wd_conf(w)->wd_priority : o->said.priority;
    m->heard_us = heard_us == 0 ? 0 : clock_wall_us() - (loop_now_us(&w->role.loop) - heard_us);
    memcpy(m->lost, i == w->self ? w->seen.lost : o->said.lost, sizeof m->lost);
    snprintf(m->release, sizeof m->release, "%s", i == w->self ? PACKAGE_VERSION : o->said.release);
    snprintf(m->host, sizeof m->host, "%.*s", (int)sizeof m->host - 1, n->hostname);
    if (i == w->self || o->is_known)
        snprintf(m->name, sizeof m->name, "%s", i == w->self ? w->name : o->said.name);
    else
        snprintf(m->name, sizeof m->name, "Not_Set");
}

void wd_tell_publish(struct wd *w)
{
    struct wd_share *s = &w->share;
    struct wd_addr_status a;
    bool voter[WD_MAX_MEMBERS] = {false};
    int i;

    s->is_on = true;
    s->self = w->self;
    s->nmembers = w->raft == NULL ? 0 : wd_raft_voters(w->raft, voter);
    s->leader = w->raft == NULL ? WD_NO_MEMBER : wd_raft_leader(w->raft);
    s->term = w->raft == NULL ? 0 : wd_raft_term(w->raft);
    s->nalive = 0;
    for (i = 0; i < WD_MAX_MEMBERS; i++) {
        fill_member(w, i, voter[i], &s->member[i]);
        s->nalive += voter[i] && s->member[i].is_connected ? 1 : 0;
    }
    s->nneeded = wd_majority(s->nmembers, false);
    s->quorum = s->leader == WD_NO_MEMBER                    ? -2
                : s->nalive > s->nneeded || s->nmembers <= 1 ? 1
                : s->nalive == s->nneeded                    ? 1
                                                             : -1;
    wd_addr_status(w->addr, &a);
    s->is_escalated = w->is_escalated;
    s->lease_left_ms = a.lease_left_ms;
    s->nstrangers = wd_net_strangers(w->net);
    snprintf(s->address, sizeof s->address, "%.*s", (int)sizeof s->address - 1, a.address);
    snprintf(s->why, sizeof s->why, "%s", w->address_why);
    s->state = w->state;
    wd_share_publish(w->role.env->shm, s);
}
