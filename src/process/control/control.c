/* SPDX-License-Identifier: PostgreSQL
 * control.c: life of the control process: it follows its mailbox and serves PCP on the sockets that
 * the supervisor opened.
 * Runs in: control. Must never touch a client's bytes, and never wait for anything but its loop. */
#include "config.h"

#include "process/control/control.h"

#include <stdio.h>

#include "base/mem.h"
#include "probe/probe.h"
#include "process/common/role_conf.h"

#include "control_int.h"
#include "recovery_job.h"

bool control_ask_monitor(struct control *ctl, enum node_order order, int node, const char *who,
    const char *why, struct err *err)
{
    struct proc_env *env = ctl->role.env;
    struct node_command cmd = {.order = (uint8_t)order, .node = node};
    struct proc_row row;
    int slot;

    snprintf(cmd.who, sizeof cmd.who, "%s", who);
    snprintf(cmd.why, sizeof cmd.why, "%s", why);
    for (slot = 0; slot < proc_nslots(env->shm); slot++) {
        proc_row_copy(env->shm, slot, &row);
        if (row.pid == 0 || row.role != ROLE_MONITOR)
            continue;
        if (mailbox_post(env->boxes, slot, MAIL_NODE_COMMAND, &cmd, sizeof cmd, -1) == 0)
            return true;
    }
    err_set(err, "53000", "the monitor process could not be asked");
    err_hint(err, "Try again.");
    return false;
}

static void on_reload(struct role_loop *rl)
{
    struct control *ctl = LIST_ENTRY(rl, struct control, role);

    pcp_tls_set_conf(ctl);
    pcp_login_look(ctl);
}

int control_main(struct proc_env *env)
{
    struct control *ctl = mem_alloc_zero(sizeof *ctl);
    int status;

    role_conf_stand_beside(env->conf, NULL);
    probe_forget_environment();
    role_loop_init(&ctl->role, env);
    ctl->role.on_reload = on_reload;
    pcp_tls_set_conf(ctl);
    pcp_login_look(ctl);
    recovery_job_bury(ctl);
    pcp_server_start(ctl);
    status = role_loop_run(&ctl->role);
    recovery_job_stop(ctl);
    pcp_server_stop(ctl);
    role_loop_fini(&ctl->role);
    pcp_tls_fini(ctl);
    mem_free(ctl);
    return status;
}
