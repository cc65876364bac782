/* SPDX-License-Identifier: PostgreSQL
 * monitor_orders.c: what operators want of servers, now and before the last restart.
 * Runs in: monitor. */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/command.h"
#include "cluster/status_file.h"
#include "cluster/switch_file.h"
#include "config/conf.h"
#include "ipc/hold.h"
#include "sys/clock.h"

#include "monitor_int.h"

static bool work_dir(const struct monitor *m, char out[PATH_MAX])
{
    const struct conf_gen *gen = role_loop_gen(&m->role);
    struct err err = {0};

    return conf_path(gen, conf_of(gen)->work_dir, out, PATH_MAX, &err) == 0;
}

/* SHOW POOL_EVENTS begins with it, at the time of the order. */
static void remember(const struct monitor *m, const struct status_hold *hold)
{
    struct view_event e = {.at_us = hold->since_us, .node = hold->node};

    snprintf(e.name, sizeof e.name, "%s", decide_event_name(DECIDE_EV_DETACH));
    snprintf(e.text, sizeof e.text, "node %d stays detached, as %s wanted", hold->node, hold->by);
    snprintf(e.cause, sizeof e.cause, "%s", hold->why);
    snprintf(e.who, sizeof e.who, "%s", hold->by);
    log_at_detail(LVL_LOG, hold->why[0] == '\0' ? NULL : hold->why, NULL, "%s", e.text);
    view_add_event(m->role.env->shm, &e);
}

void monitor_orders_load(struct monitor *m)
{
    struct status_hold *hold = mem_alloc(VIEW_MAX_NODES * sizeof *hold);
    struct err err = {0};
    char dir[PATH_MAX];
    int n = work_dir(m, dir) ? status_file_load(dir, hold, VIEW_MAX_NODES, &err) : 0;
    int i;

    if (err_is_set(&err))
        log_err(LVL_WARNING, &err);
    for (i = 0; i < n; i++) {
        decide_hold(&m->decide, hold[i].node, hold[i].by, hold[i].why, hold[i].since_us);
        remember(m, &hold[i]);
    }
    mem_free(hold);
}

void monitor_orders_resume(struct monitor *m)
{
    struct view_switch *kept = mem_alloc_zero(sizeof *kept);
    struct buf text = {0};
    struct err err = {0};
    char dir[PATH_MAX];
    int nunknown;

    m->kept = hash_bytes("", 0, 0);
    if (work_dir(m, dir))
        switch_file_load(dir, &text, &err);
    if (err_is_set(&err))
        log_err(LVL_WARNING, &err);
    if (text.len > 0) {
        m->kept = hash_bytes(text.data, text.len, 0);
        nunknown = switch_file_parse(slice_of(text.data, text.len), &m->decide.rules, kept);
        if (nunknown > 0)
            log_at_detail(LVL_WARNING, NULL,
                "On such a server: ALTER SYSTEM RESET default_transaction_read_only; SELECT "
                "pg_reload_conf();",
                "pgpool_status.switch names servers that the settings do not have: what a "
                "switchover "
                "did there is not taken back");
        failover_resume(&m->failover, &m->decide, kept, monitor_now_us(m));
    }
    buf_free(&text);
    mem_free(kept);
}

bool monitor_orders_keep(struct monitor *m)
{
    struct err err = {0};
    struct buf text = {0};
    char dir[PATH_MAX];
    uint64_t now;

    switch_file_format(&m->decide.rules, &m->decide.view.sw, &text);
    now = hash_bytes(text.len == 0 ? "" : text.data, text.len, 0);
    if (now != m->kept && work_dir(m, dir)) {
        m->kept = now; /* also when it fails: once in the log is enough */
        m->is_kept = switch_file_save(dir, &text, &err) == 0;
        if (!m->is_kept)
            log_err(LVL_WARNING, &err);
    }
    buf_free(&text);
    return m->is_kept;
}

static uint64_t digest(const struct view *v)
{
    struct buf words = {0};
    struct buf holds = {0};
    uint64_t h;

    status_file_format(v, &words, &holds);
    buf_put_byte(&words, '\0');
    if (holds.len > 0)
        buf_put(&words, holds.data, holds.len);
    h = hash_bytes(words.data, words.len, 0);
    buf_free(&words);
    buf_free(&holds);
    return h;
}

void monitor_orders_save(struct monitor *m)
{
    struct err err = {0};
    char dir[PATH_MAX];
    uint64_t now = digest(&m->decide.view);

    (void)monitor_orders_keep(m);
    if (now == m->saved || !work_dir(m, dir))
        return;
    /* A disk that is full is tried again with each probe: a restart would forget who is held. */
    if (status_file_save(dir, &m->decide.view, &err) == 0) {
        if (m->unsaved != m->saved)
            log_at(LVL_LOG, "the status of the servers could be written to \"%s\" again", dir);
        m->saved = m->unsaved = now;
    } else if (m->unsaved != now) {
        err_hint(&err,
            "Until it can be written, a restart of pgpool forgets who was detached or attached.");
        log_err(LVL_WARNING, &err);
        m->unsaved = now;
    }
}

/* Who asks learns from the view how it went: sw.nended, or sw.nrefused when it did not begin. */
static void switch_over(struct monitor *m, const struct node_command *cmd, int64_t now_us)
{
    struct view_switch *sw = &m->decide.view.sw;
    struct err err = {0};

    if (failover_switch(&m->failover, &m->decide, cmd->node, cmd->who, now_us, &err) == 0)
        return;
    log_err(LVL_WARNING, &err);
    sw->refused_node = cmd->node;
    snprintf(sw->refused_why, sizeof sw->refused_why, "%.*s", (int)sizeof sw->refused_why - 1,
        err.detail);
    sw->nrefused++;
}

bool monitor_orders_catch_up(struct monitor *m)
{
    const struct view *v = &m->decide.view;
    int ahead = hold_take_ahead(m->role.env->shm);
    bool some = false;

    for (int node = 0; ahead != -1 && node < VIEW_MAX_NODES; node++) {
        struct node_command cmd = {.order = NODE_DETACH, .node = node, .who = "native replication"};

        /* Without the one that is ahead, nobody has more than the others. */
        if (node == ahead || !view_is_usable(v, node) || !view_is_usable(v, ahead))
            continue;
        snprintf(cmd.why, sizeof cmd.why,
            "a worker process died while node %d did what the others had not done", ahead);
        log_at_detail(LVL_WARNING, NULL,
            "Rebuild it from that node, and attach it: it may lack what that one has.",
            "node %d is detached: %s", node, cmd.why);
        if (!monitor_wd_pass(m, &cmd))
            decide_detach(&m->decide, node, cmd.who, cmd.why, monitor_now_us(m));
        some = true;
    }
    return some;
}

bool monitor_orders_take(struct monitor *m, const struct mail *mail)
{
    struct node_command cmd;
    int64_t now_us = monitor_now_us(m);

    if (mail->len != sizeof cmd)
        return false;
    memcpy(&cmd, mail->body, sizeof cmd);
    cmd.who[sizeof cmd.who - 1] = '\0';
    cmd.why[sizeof cmd.why - 1] = '\0';
    if (monitor_wd_pass(m, &cmd))
        return false;
    switch ((enum node_order)cmd.order) {
    case NODE_ATTACH_HELD:
        if (!hold_is_on(m->role.env->shm)) {
            log_at_detail(LVL_WARNING, NULL, "Recover it again.",
                "node %d is not attached: clients have gone on without it", cmd.node);
            return false;
        }
        decide_attach(&m->decide, cmd.node, cmd.who, now_us);
        break;
    case NODE_ATTACH:
        decide_attach(&m->decide, cmd.node, cmd.who, now_us);
        break;
    case NODE_DETACH:
    case NODE_DETACH_GRACEFULLY:
        decide_detach(&m->decide, cmd.node, cmd.who, cmd.why, now_us);
        break;
    case NODE_PROMOTE:
    case NODE_PROMOTE_GRACEFULLY:
        decide_promote(&m->decide, cmd.node, cmd.who, now_us);
        break;
    case NODE_SWITCHOVER:
        switch_over(m, &cmd, now_us);
        break;
    }
    return true;
}
