/* SPDX-License-Identifier: PostgreSQL
 * admin_rows_cache.c: SHOW POOL_CACHE_STREAMS: one row per database in the query cache.
 * Runs in: worker, control, web. Reads shared memory, never waits. */
#include "config.h"

#include <stdio.h>

#include "admin_int.h"
#include "cache/cache_stream.h"

static void put_lsn(uint64_t lsn, struct admin_rows *out)
{
    char text[32] = "";

    if (lsn != 0)
        snprintf(text, sizeof text, "%X/%X", (unsigned)(lsn >> 32), (unsigned)lsn);
    admin_put_str(out, text);
}

static void put_row(
    const char *name, const struct cache_stream_row *r, bool is_good, struct admin_rows *out)
{
    admin_row_begin(out);
    admin_put_str(out, name);
    admin_put_static(out, cache_stream_state_text(r->state));
    admin_put_static(out, is_good ? "true" : "false");
    admin_put_int(out, r->node);
    admin_put_time(out, r->since_us);
    put_lsn(r->lsn, out);
    admin_put_int(out, r->lag_us);
    admin_put_int(out, r->lag_p99_us);
    admin_put_uint(out, r->transactions);
    admin_put_uint(out, r->row_changes);
    admin_put_uint(out, r->table_changes);
    admin_put_uint(out, r->emptied);
    admin_put_uint(out, r->waiting);
    admin_put_uint(out, r->restarts);
    admin_put_str(out, r->why);
}

void admin_rows_cache_streams(const struct admin_sources *src, struct admin_rows *out)
{
    const struct cache_streams *s = cache_streams_of(src->shm);
    char name[CACHE_STREAM_BYTES];
    struct cache_stream_row row;
    int i;

    for (i = 0; s != NULL && i < CACHE_STREAM_MAX; i++)
        if (cache_stream_row(s, i, name, &row))
            put_row(name, &row, cache_stream_shows_good(s, i), out);
}
