/* SPDX-License-Identifier: PostgreSQL
 * monitor.c: life of the monitor process: it follows its mailbox. Probes and decisions are not here
 * yet; they hang on the same loop.
 * Runs in: monitor. Must never touch a client's bytes. */
#include "config.h"

#include "process/monitor/monitor.h"

#include "process/common/role_loop.h"

int monitor_main(struct proc_env *env)
{
    struct role_loop rl = {.on_mail = NULL, .on_reload = NULL, .on_stop = NULL};
    int status;

    role_loop_init(&rl, env);
    status = role_loop_run(&rl);
    role_loop_fini(&rl);
    return status;
}
