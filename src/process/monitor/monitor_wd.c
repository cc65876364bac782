/* SPDX-License-Identifier: PostgreSQL
 * monitor_wd.c: what the pgpools of a watchdog cluster agree on, and what this one finds.
 * Runs in: monitor. Whoever does not lead probes and follows, but never acts: no promotion, no
 * command. What an operator wants of a server comes back from the log of all. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/command.h"
#include "config/conf.h"
#include "sys/clock.h"

#include "monitor_int.h"

static bool is_on(const struct monitor *m)
{
    return conf_of(role_loop_gen(&m->role))->use_watchdog;
}

static bool post(struct monitor *m, enum mail_type type, const void *body, size_t n)
{
    int slot = proc_find(m->role.env->shm, ROLE_WATCHDOG);

    return slot != -1 && mailbox_post(m->role.env->boxes, slot, type, body, n, -1) == 0;
}

static void put_bit(uint64_t set[2], int i, bool in)
{
    uint64_t bit = UINT64_C(1) << (i % 64);

    set[i / 64] = in ? set[i / 64] | bit : set[i / 64] & ~bit;
}

static void look(const struct monitor *m, struct wd_seen *s)
{
    const struct view *v = &m->decide.view;
    int i;

    memset(s, 0, sizeof *s);
    s->serial = m->wd_serial;
    s->is_acting = failover_is_acting(&m->failover, &m->decide);
    s->primary = v->is_looking ? VIEW_NO_NODE : v->primary;
    s->timeline = s->primary == VIEW_NO_NODE ? 0 : v->node[s->primary].timeline;
    s->candidate = (int16_t)failover_wants(&m->failover, &m->decide);
    s->replaced = (int16_t)(s->candidate == VIEW_NO_NODE ? VIEW_NO_NODE : v->sw.node);
    for (i = 0; i < m->decide.rules.nnodes; i++) {
        const struct view_node *n = &v->node[i];

        put_bit(s->lost, i, decide_finds_lost(&m->decide, i));
        put_bit(s->used, i, n->status == VIEW_UP);
        put_bit(s->silent, i, decide_is_silent(&m->decide, i));
    }
}

void monitor_wd_tell(struct monitor *m)
{
    struct wd_seen now;

    if (!is_on(m))
        return;
    look(m, &now);
    if (m->is_seen_told && memcmp(&now, &m->seen, sizeof now) == 0)
        return;
    m->seen = now;
    now.wants_answer = m->wd_serial == 0;
    m->is_seen_told = post(m, MAIL_WD_SEEN, &now, sizeof now);
}

void monitor_wd_init(struct monitor *m)
{
    static const uint64_t nothing[2];

    if (is_on(m))
        failover_allow(&m->failover, false, nothing, NULL);
}

/* True when somebody was attached. */
static bool follow_holds(struct monitor *m, const struct wd_says *s)
{
    int64_t now_us = monitor_now_us(m);
    bool is_attached = false;
    int i;

    for (i = 0; i < m->decide.rules.nnodes; i++) {
        bool is_held = m->decide.view.node[i].held_down;

        if (!m->decide.rules.node[i].exists || !view_has_node(s->known, i))
            continue;
        if (view_has_node(s->held, i) && !is_held)
            decide_detach(&m->decide, i, s->who[i], s->why[i], now_us);
        if (view_has_node(s->held, i) || !is_held)
            continue;
        decide_attach(&m->decide, i, "the watchdog cluster", now_us);
        is_attached = true;
    }
    return is_attached;
}

bool monitor_wd_take(struct monitor *m, const struct mail *mail, bool *is_attached)
{
    static const uint64_t none[2];
    struct wd_says *s = mem_alloc(sizeof *s);

    bool ok = mail->len == sizeof *s && is_on(m);

    if (ok) {
        memcpy(s, mail->body, sizeof *s);
        m->wd_serial = s->serial;
        m->is_wd_alone = s->acts_alone;
    }
    if (ok && s->is_reading) {
        failover_forbid(&m->failover);
    } else if (ok) {
        memcpy(m->wd_epoch, s->epoch, sizeof m->wd_epoch);
        if (s->acts_alone)
            failover_allow_alone(&m->failover, s->candidate);
        else
            failover_allow(&m->failover, s->is_leader, s->may, s->candidate);
        decide_agree(&m->decide, s->primary, s->timeline, s->barred, monitor_now_us(m));
        decide_agree_lost(
            &m->decide, s->is_leader || s->acts_alone ? none : s->lost, monitor_now_us(m));
        *is_attached = follow_holds(m, s);
    }
    mem_free(s);
    return ok;
}

/* What is done without the log, and a switchover, which is not in it, has no number. */
uint32_t monitor_wd_epoch(const struct monitor *m, int node)
{
    bool is_agreed = is_on(m) && !m->is_wd_alone && view_has_node(m->failover.word.may, node);

    return is_agreed ? m->wd_epoch[node] : 0;
}

/* A machine that hangs and goes on, or a watchdog that hangs, does not know yet that another one
 * leads: what was allowed is good only for as long as the others have promised. */
void monitor_wd_doubt(struct monitor *m)
{
    failover_doubt(&m->failover, is_on(m) && !m->is_wd_alone && clock_boot_us() >= m->led_until_us);
}

bool monitor_wd_led(struct monitor *m, const struct mail *mail)
{
    bool was_stale = m->failover.word.is_stale;

    if (mail->len != sizeof m->led_until_us || !is_on(m))
        return false;
    memcpy(&m->led_until_us, mail->body, sizeof m->led_until_us);
    return was_stale;
}

bool monitor_wd_pass(struct monitor *m, const struct node_command *cmd)
{
    if (!is_on(m) || cmd->is_decided)
        return false;
    if (!post(m, MAIL_WD_ORDER, cmd, sizeof *cmd))
        log_at_detail(LVL_WARNING, NULL, "Give the order again.",
            "the watchdog process could not be asked: an order of %s about node %d is lost",
            cmd->who, cmd->node);
    return true;
}
