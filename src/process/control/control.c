/* SPDX-License-Identifier: PostgreSQL
 * control.c: life of the control process: it follows its mailbox and serves PCP on the sockets that
 * the supervisor opened.
 * Runs in: control. Must never touch a client's bytes, and never wait for anything but its loop. */
#include "config.h"

#include "process/control/control.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "probe/probe.h"
#include "process/common/role_conf.h"
#include "sys/clock.h"

#include "control_int.h"
#include "doubt_job.h"
#include "recovery_job.h"

static void on_reload(struct role_loop *rl)
{
    struct control *ctl = LIST_ENTRY(rl, struct control, role);

    pcp_tls_set_conf(ctl);
    pcp_login_look(ctl);
}

/* Who ordered it in the console is told by the events. */
static void note_event(
    struct control *ctl, const struct node_command *cmd, const char *name, const struct err *why)
{
    struct view_event e = {.at_us = clock_wall_us(), .node = cmd->node};
    struct proc_env *env = ctl->role.env;
    struct proc_row row;
    int slot;

    snprintf(e.name, sizeof e.name, "%s", name);
    snprintf(e.text, sizeof e.text, "the online recovery of node %d %s", (int)cmd->node,
        why == NULL ? "was begun" : "was refused");
    snprintf(e.who, sizeof e.who, "%s", cmd->who);
    if (why != NULL)
        snprintf(e.cause, sizeof e.cause, "%.120s. %.60s", why->msg, why->hint);
    for (slot = 0; slot < proc_nslots(env->shm); slot++) {
        proc_row_copy(env->shm, slot, &row);
        if (row.pid != 0 && row.role == ROLE_MONITOR)
            (void)mailbox_post(env->boxes, slot, MAIL_NOTE, &e, sizeof e, -1);
    }
}

static void on_recovery_order(struct control *ctl, const struct node_command *cmd)
{
    struct err err = {0};

    if (recovery_job_must_wait(ctl, cmd->node)) {
        err_set(&err, "55006", "a failover is under way, or the node was added just now");
        err_hint(&err, "Order it again when it is over: SHOW POOL_EVENTS.");
    }
    if (!err_is_set(&err) && recovery_job_start(ctl, cmd->node, cmd->who, &err) != 0) {
        note_event(ctl, cmd, "recovery", NULL);
        return;
    }
    log_at_detail(LVL_WARNING, NULL, err.hint, "online recovery of node %d, as %s wants: %s",
        (int)cmd->node, cmd->who, err.msg);
    note_event(ctl, cmd, "refused", &err);
}

static void on_mail(struct role_loop *rl, struct mail *mail)
{
    struct control *ctl = LIST_ENTRY(rl, struct control, role);
    struct node_command cmd;

    if (mail->type == MAIL_RECOVERY_ORDER && mail->len == sizeof cmd) {
        memcpy(&cmd, mail->body, sizeof cmd);
        on_recovery_order(ctl, &cmd);
    } else {
        log_at_detail(LVL_WARNING, NULL, LOG_HINT_MISFIT,
            "control got a message it does not know: %s", mail_name(mail->type));
    }
    if (mail->fd != -1)
        close(mail->fd);
}

int control_main(struct proc_env *env)
{
    struct control *ctl = mem_alloc_zero(sizeof *ctl);
    int status;

    role_conf_stand_beside(env->conf, NULL);
    probe_forget_environment();
    role_loop_init(&ctl->role, env);
    ctl->role.on_reload = on_reload;
    ctl->role.on_mail = on_mail;
    pcp_tls_set_conf(ctl);
    pcp_login_look(ctl);
    recovery_job_bury(ctl);
    doubt_job_start(ctl);
    pcp_server_start(ctl);
    status = role_loop_run(&ctl->role);
    doubt_job_stop(ctl);
    recovery_job_stop(ctl);
    pcp_server_stop(ctl);
    role_loop_fini(&ctl->role);
    pcp_tls_fini(ctl);
    mem_free(ctl);
    return status;
}
