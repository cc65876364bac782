/* SPDX-License-Identifier: PostgreSQL
 * command.h: what an operator wants to be done with one server: the body of MAIL_NODE_COMMAND.
 * Written by: control (PCP), later web. Read by: monitor, which alone changes the view. A plain
 * value that travels as its bytes between processes of one program. */
#ifndef PGP_CLUSTER_COMMAND_H
#define PGP_CLUSTER_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/view.h"

enum node_order {
    NODE_ATTACH,
    NODE_DETACH,
    NODE_DETACH_GRACEFULLY, /* sessions on it may finish first */
    NODE_PROMOTE,           /* pgpool treats it as the primary; the server is not touched */
    NODE_PROMOTE_GRACEFULLY,
    NODE_SWITCHOVER, /* the server is made the primary, and the others follow */
    NODE_ATTACH_HELD /* attach, if clients are still held for it (ipc/hold.h): else it lacks writes
                      */
};

struct node_command {
    uint8_t order;   /* enum node_order */
    bool is_decided; /* by the watchdog, for all pgpools: to be done here */
    int32_t node;
    char who[VIEW_WHO_BYTES]; /* NUL-ended: who asks, for the log and for SHOW */
    char why[VIEW_WHY_BYTES]; /* NUL-ended; may be empty */
};

#endif
