/* SPDX-License-Identifier: PostgreSQL
 * watchdog.c: life of the process through which several pgpools act as one.
 * Runs in: watchdog. Must never wait for anything but its loop. It may be killed at any time: what
 * counts is on its disk, and in the logs of the others. */
#include "config.h"

#include "process/watchdog/watchdog.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "process/common/command_run.h"
#include "sys/clock.h"

#include "wd_int.h"

#define STATUS_TICKS 3
#define STOP_MS      4000
#define FAILED       1

/* Who leads */

static const char *role_text(const struct wd *w)
{
    if (w->raft == NULL)
        return "LOADING";
    switch (wd_raft_role(w->raft)) {
    case WD_ROLE_LEADER:
        return "LEADER";
    case WD_ROLE_CANDIDATE:
        return "PARTICIPATING IN ELECTION";
    case WD_ROLE_FOLLOWER:
        return wd_raft_leader(w->raft) == WD_NO_MEMBER ? "JOINING" : "STANDBY";
    case WD_ROLE_NONE:
        break;
    }
    return "DEAD";
}

static void tell_role(struct wd *w)
{
    const char *now = role_text(w);
    int leader = w->raft == NULL ? WD_NO_MEMBER : wd_raft_leader(w->raft);
    bool is_standby = strcmp(now, "STANDBY") == 0;

    if (w->shown_role == NULL || strcmp(now, w->shown_role) != 0)
        log_at(LVL_LOG, "watchdog node state changed from [%s] to [%s]",
            w->shown_role == NULL ? "DEAD" : w->shown_role, now);
    if (strcmp(now, "LEADER") == 0 && leader != w->shown_leader && !w->is_witness) {
        log_at(LVL_LOG, "I am the cluster leader node. Starting escalation process");
        if (wd_conf(w)->clear_memqcache_on_escalation)
            wd_orders_clear_cache(w, "on escalation");
    }
    if (is_standby && leader != w->shown_leader) {
        char detail[WD_NAME_BYTES + 80];

        snprintf(detail, sizeof detail,
            "our join coordinator request is accepted by cluster leader node \"%s\"",
            w->other[leader].said.name);
        log_at_detail(
            LVL_LOG, detail, NULL, "successfully joined the watchdog cluster as standby node");
    }
    w->shown_role = now;
    w->shown_leader = leader;
    if (leader != WD_NO_MEMBER)
        w->leaderless_us = 0;
    else if (w->leaderless_us == 0)
        w->leaderless_us = loop_now_us(&w->role.loop);
}

static void tell_members(struct wd *w)
{
    int i;

    for (i = 0; i < WD_MAX_MEMBERS; i++) {
        struct wd_other *o = &w->other[i];
        bool alive = i != w->self && o->is_known && wd_is_alive(w, i);

        if (alive == o->is_alive)
            continue;
        o->is_alive = alive;
        o->gone_us = alive ? 0 : loop_now_us(&w->role.loop);
        if (alive)
            log_at(LVL_LOG, "new watchdog node connection is received: pgpool %d is \"%s\"", i,
                o->said.name);
        else if (!o->is_leaving)
            log_at(LVL_LOG, "remote node \"%s\" is lost", o->said.name);
        if (!alive)
            wd_votes_forget(&w->votes, i);
    }
}

/* The beginning of the log */

static bool send_raft(void *owner, int to, struct slice body)
{
    struct wd *w = owner;

    return w->net != NULL && wd_net_send(w->net, to, 'R', body);
}

/* A process that begins hears again of what it had in its log, and does nothing about it: the
 * monitor is told by the next tick what came out of it. */
static void on_event(void *owner, const struct wd_event *e, bool fits, bool is_news)
{
    struct wd *w = owner;

    wd_orders_heard(w, e);
    if (!fits)
        return;
    /* Ours was proposed when all that had been there was taken in; its place in the log says less,
     * for the end of one may be cut off. */
    if (e->type == WD_EV_LEAD && e->member == w->self && w->lead.is_told)
        w->lead.is_led = true;
    if (!is_news)
        return;
    if (e->type == WD_EV_ATTACH)
        wd_tell_attached(w, e);
    if (e->type == WD_EV_LOST)
        log_at_detail(LVL_LOG, e->text, NULL,
            "we have got the consensus to perform the failover: node %d", e->node);
    wd_tell_monitor(w);
}

static void on_broken(void *owner, const char *why)
{
    struct wd *w = owner;

    log_at_detail(LVL_WARNING, why,
        "Room on the disk of work_dir, and the rights of its folder of the watchdog.",
        "watchdog: the log of the cluster cannot be written: the process ends and begins anew");
    w->status = FAILED;
    role_loop_end(&w->role);
}

/* Pgpools that disagree about who they are would begin two logs, each with a majority of its own.
 */
static bool has_our_list(struct wd *w, int member)
{
    struct wd_other *o = &w->other[member];
    uint64_t ours[2];

    wd_listed(w, ours);
    if (memcmp(o->said.listed, ours, sizeof ours) == 0) {
        o->is_told_of_list = false;
        return true;
    }
    if (!o->is_told_of_list)
        log_at_detail(LVL_WARNING, NULL,
            "Write the same hostnameN and wd_portN into pgpool.conf everywhere, and restart those "
            "that have changed.",
            "watchdog: pgpool %d \"%s\" lists other members than this one: the cluster does not "
            "begin",
            member, o->said.name);
    o->is_told_of_list = true;
    return false;
}

/* A new disk alone begins no log: first it is to be known whether there is a cluster. When most
 * members are as new as this one, there is none. -1: not known yet. */
static int find_members(struct wd *w, int members[WD_MAX_MEMBERS])
{
    bool agree = true;
    int nnew = 1;
    int n = 0;
    int i;

    for (i = 0; i < WD_MAX_MEMBERS; i++) {
        if (!wd_is_listed(w, i))
            continue;
        members[n++] = i;
        if (i == w->self || !w->other[i].is_known || !wd_is_alive(w, i))
            continue;
        if (w->other[i].said.begin == WD_BEGIN_DONE)
            return 0;
        if (w->other[i].said.begin == WD_BEGIN_JOIN)
            continue;
        agree = has_our_list(w, i) && agree;
        nnew++;
    }
    return agree && nnew >= wd_majority(n, false) ? n : -1;
}

static void begin(struct wd *w)
{
    static const struct wd_raft_calls calls = {
        .send = send_raft, .on_event = on_event, .on_broken = on_broken};
    int members[WD_MAX_MEMBERS];
    struct wd_raft_opts opts = {.self = w->self,
        .dir = w->dir,
        .is_new = w->is_new,
        .members = members,
        .election_ms = wd_conf(w)->wd_election_timeout_ms};
    struct err err = {0};

    if (!w->is_new && loop_now_us(&w->role.loop) - w->begun_us <
                          WD_SILENT_AT_START(w->promised_ms) * CLOCK_US_PER_MS)
        return;
    opts.nmembers = w->is_new ? find_members(w, members) : 0;
    if (opts.nmembers == -1)
        return;
    w->joins = opts.nmembers == 0;
    if (w->is_new)
        log_at(LVL_LOG,
            opts.nmembers > 0 ? "watchdog: the cluster begins with %d pgpools"
                              : "watchdog: there is a cluster: waiting to be added to it",
            opts.nmembers);
    if (wd_disk_promise(w, &err) == 0)
        w->raft = wd_raft_new(&w->role.loop, &opts, &calls, &w->state, w, &err);
    if (w->raft != NULL)
        return;
    log_err(LVL_WARNING, &err);
    w->status = FAILED;
    role_loop_end(&w->role);
}

/* Life */

/* With wd_remove_shutdown_nodes the others count without us before we are gone: of two, one alone
 * could not agree on that any more. */
static bool may_leave(struct wd *w)
{
    if (!wd_conf(w)->wd_remove_shutdown_nodes || w->raft == NULL || wd_is_leading(w) ||
        wd_raft_leader(w->raft) == WD_NO_MEMBER)
        return true;
    if (!w->is_bye_said)
        wd_talk_bye(w);
    return w->is_let_go;
}

static void on_tick(struct timer *t)
{
    struct wd *w = LIST_ENTRY(t, struct wd, tick);

    timer_start(&w->role.loop, &w->tick, wd_lead_tick_ms(w));
    w->nbarred = 0;
    if (w->raft == NULL)
        begin(w);
    if (w->ticks++ % STATUS_TICKS == 0)
        wd_talk_tell_all(w);
    wd_lead_changed(w);
    tell_role(w);
    tell_members(w);
    if (wd_is_leading(w))
        wd_lead_step(w);
    wd_orders_step(w);
    wd_life_step(w);
    wd_tell_monitor(w);
    wd_tell_publish(w);
    if (w->role.stop_mode != 0 && wd_lease_is_free(w) &&
        (!wd_is_leading(w) || !wd_lead_has_heir(w)) && may_leave(w))
        role_loop_end(&w->role);
}

static void on_message(void *owner, int from, char type, struct slice body)
{
    struct wd *w = owner;

    wd_talk_take(w, from, type, body);
    wd_lead_changed(w);
}

static void on_open(void *owner, int to)
{
    wd_talk_opened(owner, to);
}

static void take_seen(struct wd *w, const struct mail *mail)
{
    struct wd_seen old = w->seen;

    if (mail->len != sizeof w->seen)
        return;
    memcpy(&w->seen, mail->body, sizeof w->seen);
    if (w->seen.wants_answer)
        w->is_said = false;
    if (memcmp(old.lost, w->seen.lost, sizeof old.lost) != 0)
        wd_talk_tell_all(w);
    wd_tell_monitor(w);
    if (wd_is_leading(w))
        wd_lead_step(w);
}

static void take_cluster_order(struct wd *w, const struct mail *mail)
{
    struct wd_cluster_order order;

    if (mail->len != sizeof order)
        return;
    memcpy(&order, mail->body, sizeof order);
    if (order.what == 'c') {
        wd_orders_empty(w);
        return;
    }
    log_at(LVL_LOG, "watchdog: an order for all pgpools goes to %d others",
        wd_talk_cluster_order(w, &order));
}

static void on_mail(struct role_loop *rl, struct mail *mail)
{
    struct wd *w = LIST_ENTRY(rl, struct wd, role);
    struct node_command cmd;
    struct hba_addr addr;

    if (mail->type == MAIL_WD_SEEN) {
        take_seen(w, mail);
    } else if (mail->type == MAIL_WD_ORDER && mail->len == sizeof cmd) {
        memcpy(&cmd, mail->body, sizeof cmd);
        wd_talk_node_command(w, &cmd);
    } else if (mail->type == MAIL_WD_BARRED && mail->len == sizeof addr) {
        memcpy(&addr, mail->body, sizeof addr);
        wd_talk_barred(w, &addr);
    } else if (mail->type == MAIL_WD_CLUSTER) {
        take_cluster_order(w, mail);
    } else {
        log_at_detail(LVL_WARNING, NULL, LOG_HINT_MISFIT,
            "watchdog got a message it does not know: %s", mail_name(mail->type));
    }
    if (mail->fd != -1)
        close(mail->fd);
}

/* What a reload adds is added, and what it removes is removed, by the one that leads; a file that
 * others have not read yet changes nothing there. */
static void on_reload(struct role_loop *rl)
{
    struct wd *w = LIST_ENTRY(rl, struct wd, role);
    int i;

    for (i = 0; i < WD_MAX_MEMBERS; i++)
        wd_put_bit(w->unwanted, i, w->share.member[i].exists && !wd_is_listed(w, i));
    wd_net_set(w->net, wd_conf(w));
    wd_addr_reload(w->addr, wd_conf(w));
    wd_socket_set_key(w->socket, wd_conf(w)->wd_authkey);
}

static void on_stop_limit(struct timer *t)
{
    role_loop_end(&LIST_ENTRY(t, struct wd, stop_limit)->role);
}

/* The lead is given away before the end, so that nobody has to notice that it is missing. */
static bool on_stop(struct role_loop *rl)
{
    struct wd *w = LIST_ENTRY(rl, struct wd, role);

    log_at(LVL_LOG, "Watchdog is shutting down");
    if (rl->stop_mode == 'i' || (!wd_is_leading(w) && may_leave(w)))
        return false;
    timer_start(&rl->loop, &w->stop_limit, STOP_MS);
    if (wd_is_leading(w))
        wd_lead_yield(w, WD_NO_MEMBER, "it is being stopped");
    return true;
}

static void warn_of_half(const struct wd *w)
{
    if (wd_conf(w)->trusted_servers.n == 0)
        log_at_detail(LVL_WARNING, NULL,
            "Set trusted_servers, or use a witness (doc/user/watchdog.md).",
            "watchdog: enable_consensus_with_half_votes has no effect without trusted_servers");
    else
        log_at_detail(LVL_WARNING,
            "Of two that only do not hear each other the one that leads decides alone about "
            "servers while a trusted server answers.",
            "A witness is safer (doc/user/watchdog.md).",
            "watchdog: with enable_consensus_with_half_votes half of an even number of pgpools may "
            "fail a server over");
}

static int start(struct wd *w)
{
    static const struct wd_net_calls calls = {.on_message = on_message, .on_open = on_open};
    struct err err = {0};

    timer_init(&w->tick, on_tick);
    timer_init(&w->stop_limit, on_stop_limit);
    w->shown_leader = WD_NO_MEMBER;
    w->begun_us = loop_now_us(&w->role.loop);
    w->is_witness = w->role.env->is_witness;
    /* Another one than a former watchdog's: the monitor answers with all it knows. */
    w->serial = (uint32_t)wd_addr_boot_ms() | 1;
    wd_state_init(&w->state);
    w->seen.primary = VIEW_NO_NODE;
    w->seen.candidate = VIEW_NO_NODE;
    if (wd_disk_open(w, &err) == -1 || wd_lease_open(w, &err) == -1) {
        log_err(LVL_WARNING, &err);
        return -1;
    }
    if (wd_conf(w)->enable_consensus_with_half_votes)
        warn_of_half(w);
    w->net = wd_net_new(&w->role.loop, w->self, &calls, w);
    wd_net_set(w->net, wd_conf(w));
    wd_command_open(w);
    wd_orders_open(w);
    wd_life_open(w);
    timer_start(&w->role.loop, &w->tick, 0);
    return 0;
}

int watchdog_main(struct proc_env *env)
{
    struct wd *w = mem_alloc_zero(sizeof *w);
    int status;

    w->role.on_mail = on_mail;
    w->role.on_reload = on_reload;
    w->role.on_stop = on_stop;
    role_loop_init(&w->role, env);
    if (start(w) == -1)
        w->status = FAILED;
    else
        role_loop_run(&w->role);
    if (w->net != NULL && w->role.stop_mode != 0 && !w->is_bye_said)
        wd_talk_bye(w);
    io_want(&w->role.mail_io, 0);
    timer_stop(&w->role.loop, &w->tick);
    timer_stop(&w->role.loop, &w->stop_limit);
    wd_life_close(w);
    run_forget(&w->fence.run);
    wd_socket_free(&w->socket);
    wd_net_free(&w->net);
    wd_raft_free(&w->raft);
    wd_addr_free(&w->addr);
    role_loop_fini(&w->role);
    status = w->status;
    mem_free(w);
    return status;
}
