/* SPDX-License-Identifier: PostgreSQL
 * admin_rows_doubt.c: SHOW POOL_IN_DOUBT: transactions that are prepared on servers and have to be
 * finished. Runs in: worker, control, web. Reads shared memory, never waits. */
#include "config.h"

#include "admin_int.h"
#include "cluster/doubt.h"

void admin_rows_in_doubt(const struct admin_sources *src, struct admin_rows *out)
{
    struct doubt_row row[DOUBT_MAX_ROWS];
    uint32_t n = doubt_copy(src->shm, row, DOUBT_MAX_ROWS);

    for (uint32_t i = 0; i < n; i++) {
        admin_row_begin(out);
        admin_put_str(out, row[i].gid);
        admin_put_int(out, row[i].node);
        admin_put_str(out, row[i].database);
        admin_put_time(out, row[i].since_us);
        admin_put_static(out, doubt_verdict_name(row[i].verdict));
        admin_put_str(out, row[i].why);
    }
}
