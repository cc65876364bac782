/* SPDX-License-Identifier: PostgreSQL
 * admin_view.c: the cluster view in the words of SHOW. Runs in: worker, control, web. */
#include "config.h"

#include "admin/admin_view.h"

#include <string.h>

_Static_assert((int)VIEW_QUARANTINE == (int)ADMIN_NODE_QUARANTINE, "same order");
_Static_assert((int)VIEW_ROLE_STANDBY == (int)ADMIN_ROLE_STANDBY, "same order");
_Static_assert((int)VIEW_PG_DOWN == (int)ADMIN_PG_DOWN, "same order");

static void fill_health(const struct view_health *h, struct admin_health *out)
{
    out->total = h->total;
    out->success = h->success;
    out->fail = h->fail;
    out->skip = h->skip;
    out->retry = h->retry;
    out->max_retry = h->max_retry;
    out->max_ms = h->max_ms;
    out->min_ms = h->min_ms;
    out->sum_ms = h->sum_ms;
    out->last_us = h->last_us;
    out->last_success_us = h->last_success_us;
    out->last_skip_us = h->last_skip_us;
    out->last_fail_us = h->last_fail_us;
}

void admin_node_of_view(const struct view *view, int id, struct admin_node *out)
{
    const struct view_node *n;

    if (id < 0 || id >= view->nnodes)
        return;
    n = &view->node[id];
    out->status = (enum admin_node_status)n->status;
    out->pg_status = (enum admin_pg_status)n->pg_status;
    out->role = (enum admin_role)n->role;
    /* What it said before it fell silent is not what it is. */
    out->pg_role =
        (enum admin_role)(n->pg_status == VIEW_PG_UP ? n->pg_role : (uint8_t)VIEW_ROLE_UNKNOWN);
    out->delay_bytes = n->delay_bytes;
    out->delay_us = n->delay_us;
    out->delay_is_time = n->delay_is_time;
    memcpy(out->replication_state, n->replication_state, sizeof out->replication_state);
    memcpy(
        out->replication_sync_state, n->replication_sync_state, sizeof out->replication_sync_state);
    out->status_changed_us = n->status_changed_us;
    fill_health(&n->health, &out->health);
}
