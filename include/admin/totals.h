/* SPDX-License-Identifier: PostgreSQL
 * totals.h: clients and server connections counted, in one walk over the rows that the workers keep
 * in shared memory: for metrics, which are asked for often while there are thousands of rows.
 * Runs in: web, and who shows the lists of pools. Never waits. */
#ifndef PGP_ADMIN_TOTALS_H
#define PGP_ADMIN_TOTALS_H

#include "admin/sources.h"
#include "cluster/view.h"
#include "ipc/rows.h"

/* How many pools are told apart; the others are counted together, under this name. */
#define ADMIN_TOTALS_POOLS 1024
#define ADMIN_TOTALS_OTHER "<others>"

/* One user in one database. */
struct admin_pool_total {
    char user[ROWS_NAME_BYTES];
    char database[ROWS_NAME_BYTES];
    uint32_t clients[CLIENT_STATE_COUNT];
    uint32_t links[LINK_STATE_COUNT];
    int64_t longest_wait_us;
};

struct admin_totals {
    uint32_t clients[CLIENT_STATE_COUNT];
    uint32_t waiting[WAIT_REASON_COUNT]; /* of those in state WAITING, why */
    int64_t longest_wait_us;
    uint32_t pinned[PIN_REASON_COUNT]; /* a client may have several reasons */
    uint32_t tls;                      /* clients whose connection is encrypted */
    uint32_t node_links[VIEW_MAX_NODES][LINK_STATE_COUNT];
    uint32_t node_links_tls[VIEW_MAX_NODES];
    uint32_t npools;
    struct admin_pool_total pool[ADMIN_TOTALS_POOLS + 1];
};

/* Counts. `out` is too large for the stack, and owned by the caller. */
void admin_totals(const struct admin_sources *src, struct admin_totals *out);

#endif
