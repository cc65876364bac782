/* SPDX-License-Identifier: PostgreSQL
 * watchdog_none.c: the watchdog of a build without libraft: there is none.
 * Runs in: watchdog. */
#include "config.h"

#include "process/watchdog/watchdog.h"

#include "base/log.h"
#include "process/common/role_loop.h"

int watchdog_main(struct proc_env *env)
{
    struct role_loop rl = {0};
    int status;

    log_at_detail(LVL_WARNING, NULL, "Set use_watchdog = off, or build pgpool with libraft.",
        "use_watchdog is on, but this pgpool was built without libraft: nobody may fail over");
    role_loop_init(&rl, env);
    status = role_loop_run(&rl);
    role_loop_fini(&rl);
    return status;
}
