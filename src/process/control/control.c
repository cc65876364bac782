/* SPDX-License-Identifier: PostgreSQL
 * control.c: life of the control process: it follows its mailbox and serves PCP on the sockets that
 * the supervisor opened.
 * Runs in: control. Must never touch a client's bytes, and never wait for anything but its loop. */
#include "config.h"

#include "process/control/control.h"

#include "base/mem.h"
#include "probe/probe.h"
#include "process/common/role_conf.h"

#include "control_int.h"
#include "recovery_job.h"

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
