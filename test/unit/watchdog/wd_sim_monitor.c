/* SPDX-License-Identifier: PostgreSQL
 * wd_sim_monitor.c: the monitors of the watchdog's simulation: core/cluster's decide and failover,
 * monitor_wd.c and monitor_clock.c, with the loop of monitor.c and monitor_act.c around them made
 * up: what they do about servers is done by wd_sim_servers.c. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "process/monitor/monitor_int.h"
#include "sys/clock.h"

#include "wd_sim.h"

#define MAX_STEPS  64
#define OUTCOME_MS 30000
#define GRACE_MS   1000 /* a mail to the monitor, and its next look */

static void set_rules(struct decide_rules *r)
{
    int i;

    memset(r, 0, sizeof *r);
    r->mode = DECIDE_MODE_STREAMING;
    r->returns = true;
    r->auto_failback = true;
    r->auto_promote = true;
    r->nnodes = SERVERS;
    for (i = 0; i < SERVERS; i++) {
        r->node[i].exists = r->node[i].may_fail = r->node[i].health_check = true;
        r->node[i].weight = 1 + sim_below(2); /* each pgpool would choose another one */
    }
}

void sim_monitor_begin(struct pool *p)
{
    struct decide_rules *rules = mem_alloc(sizeof *rules);
    int i;

    if (p->m == NULL)
        p->m = mem_alloc(sizeof *p->m);
    memset(p->m, 0, sizeof *p->m);
    p->m->role.env = p->w.role.env;
    p->has_says = p->has_seen = p->has_led = false;
    for (i = 0; i < SERVERS; i++)
        p->chosen_ms[i] = sim_now_ms();
    set_rules(rules);
    decide_init(&p->m->decide, rules, monitor_now_us(p->m));
    failover_init(&p->m->failover);
    monitor_wd_init(p->m);
    mem_free(rules);
}

void sim_monitor_end(struct pool *p)
{
    p->order.is_running = false;
    if (sim_below(2) == 0)
        p->order.is_due = false; /* its connection ends before it is heard */
}

void sim_monitor_kill(struct pool *p)
{
    struct view *before = mem_alloc(sizeof *before);

    *before = p->m->decide.view;
    sim_monitor_end(p);
    sim_monitor_begin(p);
    decide_adopt(&p->m->decide, before);
    if (failover_adopt(&p->m->failover, &p->m->decide, monitor_now_us(p->m)))
        sim_fail("a monitor waits for a command that nobody runs");
    mem_free(before);
}

/* Mails */

static struct mail *mail_of(enum mail_type type, const void *body, size_t n)
{
    static struct mail mail;

    mail.type = type;
    mail.fd = -1;
    mail.len = n;
    memcpy(mail.body, body, n);
    return &mail;
}

static void take_mails(struct pool *p)
{
    bool is_attached = false;

    if (p->has_says)
        (void)monitor_wd_take(p->m, mail_of(MAIL_WD_SAYS, &p->says, sizeof p->says), &is_attached);
    if (p->has_led)
        (void)monitor_wd_led(
            p->m, mail_of(MAIL_WD_LEADS, &p->led_until_us, sizeof p->led_until_us));
    p->has_says = p->has_led = false;
}

/* Servers */

static void ask(struct pool *p, int i)
{
    struct decide_probe probe = {.answer = DECIDE_FAILED,
        .sqlstate = "",
        .message = "refused",
        .took_ms = 1,
        .began_us = clock_mono_us(),
        .facts = &p->m->facts};

    if (world.server[i].lives) {
        sim_server_facts(i, &p->m->facts);
        probe.answer = DECIDE_FACTS;
    }
    decide_on_probe(&p->m->decide, i, &probe, monitor_now_us(p->m));
}

static void hear_outcome(struct pool *p)
{
    struct sim_order *o = &p->order;
    const struct server *s = &world.server[o->target];
    struct failover_outcome out = {.seq = o->seq, .text = "refused"};

    if (!o->is_running || o->is_due)
        return;
    out.ok = o->is_heard && s->lives && s->is_primary;
    out.is_unsure = o->is_heard && !out.ok;
    if (out.is_unsure && s->told_ms != 0 && sim_now_ms() - o->due_ms < OUTCOME_MS)
        return;
    o->is_running = false;
    failover_on_done(&p->m->failover, &p->m->decide, &out, monitor_now_us(p->m));
}

static void promote(struct pool *p, const struct failover_do *what)
{
    struct sim_order *o = &p->order;

    *o = (struct sim_order){.is_running = true,
        .is_due = true,
        .node = what->node,
        .target = what->target,
        .seq = what->seq,
        .epoch = (int)monitor_wd_epoch(p->m, what->node),
        .due_ms = sim_now_ms() + 1 + sim_below(50)};
    if (o->epoch == 0)
        sim_fail("a server is promoted by no failover of the log");
}

static void carry_out(struct pool *p, const struct failover_do *what)
{
    struct failover_outcome done = {.seq = what->seq, .ok = true, .text = ""};
    int64_t soon_ms = sim_now_ms() + 5 + sim_below(20);

    switch (what->type) {
    case FAILOVER_DO_NOTHING:
        break;
    case FAILOVER_DO_ASK:
        if (p->look_ms > soon_ms)
            p->look_ms = soon_ms;
        break;
    case FAILOVER_DO_PROMOTE:
        promote(p, what);
        break;
    case FAILOVER_DO_FOLLOW: /* they do by themselves */
        failover_on_beside_done(&p->m->failover, &p->m->decide, &done, monitor_now_us(p->m));
        break;
    default:
        sim_fail("a monitor does what nobody wants");
    }
}

/* As monitor_act_step. */
static void act(struct pool *p)
{
    struct monitor *m = p->m;
    int seen = 0;
    int i;

    for (i = 0; i < MAX_STEPS; i++) {
        struct failover_do what;

        while (seen < m->decide.nevents) {
            struct decide_event e = m->decide.event[seen++];

            failover_on_event(&m->failover, &m->decide, &e);
        }
        monitor_wd_doubt(m);
        what = failover_step(&m->failover, &m->decide, monitor_now_us(m));
        if (what.type == FAILOVER_DO_NOTHING && seen == m->decide.nevents)
            break;
        carry_out(p, &what);
    }
    if (i == MAX_STEPS)
        sim_fail("a monitor spins");
    m->decide.nevents = 0;
}

void sim_monitor_print(const struct pool *p)
{
    const struct decide *d = &p->m->decide;
    int i;

    printf("  its monitor: primary %d, the log's %d, phase %d of node %d to %d, leads %d, stale "
           "%d, wanted %d, candidate %d %d %d\n",
        d->view.primary, p->w.state.primary, d->view.sw.phase, d->view.sw.node, d->view.sw.target,
        p->m->failover.word.leads, p->m->failover.word.is_stale, p->m->failover.wanted,
        p->m->failover.word.candidate[0], p->m->failover.word.candidate[1],
        p->m->failover.word.candidate[2]);
    for (i = 0; i < SERVERS; i++)
        printf("  node %d: status %d%s%s%s%s oks %d\n", i, d->view.node[i].status,
            view_has_node(d->barred, i) ? " barred" : "",
            view_has_node(d->view.sw.replaced, i) ? " replaced" : "",
            view_has_node(d->missed, i) ? " missed" : "", p->w.state.node[i].is_lost ? " lost" : "",
            d->node[i].oks);
}

/* Who knows from the log that another one is to take the place of a server, and who may have heard
 * of it, writes there no more: it would be lost. */
static void check_writes(struct pool *p)
{
    const struct view *v = &p->m->decide.view;
    int i;

    for (i = 0; i < SERVERS; i++) {
        const struct wd_node *n = &p->w.state.node[i];
        const struct server *s = &world.server[i];
        int chosen = n->is_begun ? n->candidate : VIEW_NO_NODE;

        if (chosen != p->chosen[i])
            p->chosen_ms[i] = sim_now_ms();
        p->chosen[i] = (int16_t)chosen;
        if (chosen == VIEW_NO_NODE || sim_now_ms() - p->chosen_ms[i] < GRACE_MS ||
            world.server[chosen].told_ms == 0 || world.server[chosen].told_lost != i)
            continue;
        if (v->primary != i || !view_can_write(v) || !s->lives || !s->is_primary)
            continue;
        printf("pgpool %d, node %d, and %d is told:\n", p->w.self, i, chosen);
        sim_monitor_print(p);
        sim_fail("a pgpool writes to a server that is being replaced, as its log says");
    }
}

void sim_monitor_look(struct pool *p)
{
    int i;

    p->m->role.env = p->w.role.env;
    take_mails(p);
    for (i = 0; i < SERVERS; i++)
        ask(p, i);
    hear_outcome(p);
    decide_look(&p->m->decide, monitor_now_us(p->m));
    act(p);
    p->m->decide.view.version++;
    check_writes(p);
    monitor_wd_tell(p->m);
}

bool sim_monitor_is_calm(const struct pool *p, int primary)
{
    const struct view *v = &p->m->decide.view;
    int i;

    for (i = 0; i < SERVERS; i++)
        if (!view_is_usable(v, i))
            return false;
    return v->primary == primary && view_can_write(v);
}
