/* SPDX-License-Identifier: PostgreSQL
 * wd_barred.c: an address from which passwords are guessed at another pgpool is kept out here, too.
 * Runs in: watchdog. It is told to whoever is connected, and not in the log: it holds for a minute,
 * and whoever guesses from many addresses is not to fill that. */
#include "config.h"

#include <string.h>

#include "auth/auth_guard.h"
#include "base/log.h"

#include "wd_int.h"

void wd_barred_take(struct wd *w, int from, struct slice body)
{
    struct auth_guard *guard = shm_get(w->role.env->shm, SHM_AUTH);
    struct wd_barred said;
    struct hba_addr addr;

    if (guard == NULL || w->is_witness || !wd_barred_get(body, &said))
        return;
    addr.n = said.n;
    memcpy(addr.bytes, said.bytes, sizeof addr.bytes);
    auth_guard_bar(guard, &addr, (uint32_t)(loop_now_us(&w->role.loop) / 1000000));
    log_at(LVL_LOG,
        "watchdog: too many logins from an address have failed at \"%s\": it is kept out",
        w->other[from].said.name);
}
