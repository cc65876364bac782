/* SPDX-License-Identifier: PostgreSQL
 * monitor_act.c: does what failover (core/cluster) says: runs the operator's commands, hands orders
 * by SQL on, tells the outcome.
 * Runs in: monitor. Decides nothing. What must not wait, a lost primary, and what may, commands
 * about standbys, are two lanes that know nothing of each other. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "sys/clock.h"

#include "monitor_int.h"

#define MAX_STEPS 64

/* Outcomes */

void monitor_act_done(struct monitor *m, bool beside, const struct failover_outcome *o)
{
    if (beside)
        failover_on_beside_done(&m->failover, &m->decide, o, monitor_now_us(m));
    else
        failover_on_done(&m->failover, &m->decide, o, monitor_now_us(m));
    monitor_changed(m);
}

static void main_ended(void *owner, const struct run_end *end)
{
    struct monitor *m = owner;
    struct failover_outcome o = {.seq = end->seq, .ok = end->ok, .text = end->text};

    m->run = NULL;
    monitor_act_done(m, false, &o);
}

static void beside_ended(void *owner, const struct run_end *end)
{
    struct monitor *m = owner;
    struct failover_outcome o = {.seq = end->seq, .ok = end->ok, .text = end->text};

    m->beside_run = NULL;
    monitor_act_done(m, true, &o);
}

static void adopted_ended(void *owner, const struct run_end *end)
{
    struct monitor *m = owner;

    m->run = NULL;
    failover_on_adopted(&m->failover, &m->decide, monitor_now_us(m));
    monitor_changed(m);
}

/* Nobody knows how it ended, and it is not run again: it may have done its work. */
static void adopted_beside_ended(void *owner, const struct run_end *end)
{
    struct monitor *m = owner;
    struct failover_outcome o = {.ok = !end->timed_out, .text = end->text};

    m->beside_run = NULL;
    monitor_act_done(m, true, &o);
}

/* Commands */

static struct hook_node node_of(const struct conf *conf, int id)
{
    struct hook_node out = {.id = VIEW_NO_NODE, .host = "", .data_dir = ""};

    if (id < 0 || id >= conf->nnodes || !conf_has_node(conf, id))
        return out;
    out.id = id;
    out.host = conf->nodes[id].backend_hostname;
    out.port = conf->nodes[id].backend_port;
    out.data_dir = conf->nodes[id].backend_data_directory;
    return out;
}

static const char *line_of(const struct conf *conf, enum hook_kind kind)
{
    switch (kind) {
    case HOOK_FAILOVER:
        return conf->failover_command;
    case HOOK_FAILBACK:
        return conf->failback_command;
    case HOOK_FOLLOW:
        break;
    }
    return conf->follow_primary_command;
}

static const char *label_of(enum hook_kind kind)
{
    switch (kind) {
    case HOOK_FAILOVER:
        return "failover_command";
    case HOOK_FAILBACK:
        return "failback_command";
    case HOOK_FOLLOW:
        break;
    }
    return "follow_primary_command";
}

static int64_t limit_of(const struct conf *conf, enum hook_kind kind)
{
    return kind == HOOK_FOLLOW ? conf->follow_primary_command_timeout_ms
                               : conf->failover_command_timeout_ms;
}

/* With streaming replication main and primary are one. */
static void gather(const struct monitor *m, const struct failover_do *what, struct hook_node *nodes,
    struct hook_facts *f)
{
    const struct conf *conf = conf_of(role_loop_gen(&m->role));
    int i;

    for (i = 0; i < conf->nnodes; i++)
        nodes[i] = node_of(conf, i);
    f->kind = what->type == FAILOVER_DO_COMMAND ? HOOK_FAILOVER : what->hook;
    f->reason = what->reason;
    f->who = what->who[0] == '\0' ? "monitor" : what->who;
    f->epoch = f->kind == HOOK_FAILOVER ? monitor_wd_epoch(m, what->node) : 0;
    f->node = node_of(conf, what->node);
    f->new_main = node_of(conf, what->target);
    f->old_main = node_of(conf, what->old);
    f->old_primary = node_of(conf, what->old);
    f->nnodes = conf->nnodes;
    f->nodes = nodes;
    f->view = &m->decide.view;
}

static struct run *start(struct monitor *m, const struct hook_facts *f, bool beside, uint32_t seq)
{
    const struct conf *conf = conf_of(role_loop_gen(&m->role));
    struct buf line = {0};
    struct buf env = {0};
    struct buf json = {0};
    struct run_spec spec = {.name = label_of(f->kind),
        .folder = m->started_in,
        .env = &env,
        .input = &json,
        .limit_ms = limit_of(conf, f->kind),
        .seq = seq,
        .done = beside ? beside_ended : main_ended,
        .owner = m};
    struct err err = {0};
    struct run *r = NULL;

    if (hook_line(line_of(conf, f->kind), f, &line, &err) == -1) {
        log_err(LVL_WARNING, &err);
    } else {
        hook_env(f, &env);
        hook_json(f, &json);
        spec.line = line.data;
        buf_put(&m->begun, line.data, line.len);
        r = run_start(&m->role.loop, &spec);
    }
    buf_free(&line);
    buf_free(&env);
    buf_free(&json);
    return r;
}

static void run_command(struct monitor *m, const struct failover_do *what)
{
    struct hook_node *nodes = mem_alloc(VIEW_MAX_NODES * sizeof *nodes);
    bool beside = what->type == FAILOVER_DO_HOOK;
    struct hook_facts f = {0};
    struct run *r;

    gather(m, what, nodes, &f);
    r = start(m, &f, beside, what->seq);
    mem_free(nodes);
    if (r == NULL) {
        struct failover_outcome o = {
            .seq = what->seq, .text = "the command could not be run, see the log"};

        monitor_act_done(m, beside, &o);
        return;
    }
    if (beside) {
        m->beside_run = r;
        m->decide.view.sw.beside_pid = run_pid(r);
        return;
    }
    run_forget(&m->run); /* of a failover that another one has overtaken */
    m->run = r;
    m->decide.view.sw.pid = run_pid(r);
}

/* What the machine wants */

static void carry_out(struct monitor *m, const struct failover_do *what)
{
    switch (what->type) {
    case FAILOVER_DO_NOTHING:
        break;
    case FAILOVER_DO_ASK:
        monitor_ask_all(m);
        break;
    case FAILOVER_DO_COMMAND:
    case FAILOVER_DO_HOOK:
        run_command(m, what);
        break;
    case FAILOVER_DO_FENCE:
    case FAILOVER_DO_DRAIN:
    case FAILOVER_DO_CUT:
    case FAILOVER_DO_LEAD:
    case FAILOVER_DO_PROMOTE:
    case FAILOVER_DO_UNFENCE:
    case FAILOVER_DO_UNFENCE_BESIDE:
    case FAILOVER_DO_FOLLOW:
        monitor_order_start(m, what);
        break;
    }
}

void monitor_act_tell(struct monitor *m)
{
    size_t at;

    for (at = 0; at < m->begun.len; at += strlen(m->begun.data + at) + 1)
        log_at(LVL_LOG, "execute command: %s", m->begun.data + at);
    buf_clear(&m->begun);
}

/* What happens may lead to more; the limit only keeps a mistake from becoming a spin. */
void monitor_act_step(struct monitor *m)
{
    int64_t delay_ms;
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
        carry_out(m, &what);
    }
    delay_ms = failover_delay_ms(&m->failover, &m->decide);
    if (delay_ms < 0)
        timer_stop(&m->role.loop, &m->act_timer);
    else if (!timer_is_armed(&m->act_timer))
        timer_start(&m->role.loop, &m->act_timer, delay_ms);
}

static void on_act_timer(struct timer *t)
{
    monitor_changed(LIST_ENTRY(t, struct monitor, act_timer));
}

void monitor_act_init(struct monitor *m)
{
    timer_init(&m->act_timer, on_act_timer);
    failover_init(&m->failover);
    monitor_order_init(m);
}

static struct run *adopt(struct monitor *m, enum hook_kind kind, int pid, run_done_fn *done)
{
    struct run_spec spec = {.name = label_of(kind),
        .limit_ms = limit_of(conf_of(role_loop_gen(&m->role)), kind),
        .done = done,
        .owner = m};
    struct run *r = run_adopt(&m->role.loop, pid, &spec);

    if (r != NULL)
        log_at(LVL_LOG, "%s, process %d, is still running", spec.name, run_pid(r));
    return r;
}

/* The former monitor's commands may have ended while nobody looked. */
void monitor_act_adopt(struct monitor *m)
{
    const struct view_switch *sw = &m->decide.view.sw;
    struct failover_outcome gone = {.ok = true, .text = ""};

    if (failover_adopt_beside(&m->failover, &m->decide)) {
        m->beside_run =
            adopt(m, (enum hook_kind)sw->beside.hook, sw->beside_pid, adopted_beside_ended);
        if (m->beside_run == NULL)
            failover_on_beside_done(&m->failover, &m->decide, &gone, monitor_now_us(m));
    }
    if (!failover_adopt(&m->failover, &m->decide, monitor_now_us(m)))
        return;
    m->run = adopt(m, HOOK_FAILOVER, sw->pid, adopted_ended);
    if (m->run == NULL)
        failover_on_adopted(&m->failover, &m->decide, monitor_now_us(m));
}

void monitor_act_fini(struct monitor *m)
{
    timer_stop(&m->role.loop, &m->act_timer);
    run_forget(&m->run);
    run_forget(&m->beside_run);
    buf_free(&m->begun);
    monitor_order_fini(m);
}
