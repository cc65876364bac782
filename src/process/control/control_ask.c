/* SPDX-License-Identifier: PostgreSQL
 * control_ask.c: hands an operator's word about a server to the monitor, who alone decides about
 * servers. Runs in: control. */
#include "config.h"

#include <stdio.h>

#include "control_int.h"

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
