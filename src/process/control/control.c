/* SPDX-License-Identifier: PostgreSQL
 * control.c: life of the control process: it follows its mailbox. The PCP server is not here yet;
 * it hangs on the same loop, on the sockets in env->control_fd. Runs in: control. Must never touch
 * a client's bytes. */
#include "config.h"

#include "process/control/control.h"

#include "process/common/role_loop.h"

int control_main(struct proc_env *env)
{
    struct role_loop rl = {.on_mail = NULL, .on_reload = NULL, .on_stop = NULL};
    int status;

    role_loop_init(&rl, env);
    status = role_loop_run(&rl);
    role_loop_fini(&rl);
    return status;
}
