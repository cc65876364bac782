/* SPDX-License-Identifier: PostgreSQL
 * auth_guard_tell.c: the watchdog of this pgpool is told of an address that is blocked.
 * Runs in: workers. */
#include "config.h"

#include "auth/auth_guard.h"
#include "ipc/mailbox.h"

void auth_guard_tell(const struct proc_env *env, const struct hba_addr *addr)
{
    int slot = proc_find(env->shm, ROLE_WATCHDOG);

    if (slot != -1)
        (void)mailbox_post(env->boxes, slot, MAIL_WD_BARRED, addr, sizeof *addr, -1);
}
