/* SPDX-License-Identifier: PostgreSQL
 * admin_rows_recovery.c: SHOW POOL_RECOVERY: one row per online recovery, oldest first.
 * Runs in: worker, control, web. Reads shared memory and settings, never waits. */
#include "config.h"

#include "admin_int.h"
#include "cluster/recovery.h"
#include "config/conf.h"

static void put_node(const struct conf *conf, int id, struct admin_rows *out)
{
    bool is_there = conf_has_node(conf, id);

    admin_put_int(out, id);
    admin_put_str(out, is_there ? conf->nodes[id].backend_hostname : "");
    admin_put_int(out, is_there ? conf->nodes[id].backend_port : 0);
}

void admin_rows_recovery(const struct admin_sources *src, struct admin_rows *out)
{
    struct recovery_row row[RECOVERY_MAX_ROWS];
    int n = recovery_copy(src->shm, row, RECOVERY_MAX_ROWS);
    int i;

    for (i = 0; i < n; i++) {
        const struct recovery_row *r = &row[i];

        admin_row_begin(out);
        put_node(conf_of(src->gen), r->node, out);
        admin_put_int(out, r->primary);
        admin_put_static(out, !r->is_over ? "running" : r->is_ok ? "succeeded" : "failed");
        admin_put_static(out, recovery_step_name(r->step));
        admin_put_time(out, r->began_us);
        admin_put_time(out, r->step_us);
        admin_put_time(out, r->ended_us);
        admin_put_str(out, r->who);
        admin_put_str(out, r->text);
    }
}
