/* SPDX-License-Identifier: PostgreSQL
 * control.c: life of the control process: it follows its mailbox and serves PCP on the sockets that
 * the supervisor opened.
 * Runs in: control. Must never touch a client's bytes, and never wait for anything but its loop. */
#include "config.h"

#include "process/control/control.h"

#include "base/mem.h"

#include "control_int.h"

int control_main(struct proc_env *env)
{
    struct control *ctl = mem_alloc_zero(sizeof *ctl);
    int status;

    role_loop_init(&ctl->role, env);
    pcp_server_start(ctl);
    status = role_loop_run(&ctl->role);
    pcp_server_stop(ctl);
    role_loop_fini(&ctl->role);
    mem_free(ctl);
    return status;
}
