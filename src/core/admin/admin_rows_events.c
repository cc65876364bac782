/* SPDX-License-Identifier: PostgreSQL
 * admin_rows_events.c: SHOW POOL_EVENTS: what happened to the nodes, oldest first.
 * Runs in: worker, control, web. Reads shared memory, never waits. */
#include "config.h"

#include "admin_int.h"
#include "base/mem.h"
#include "cluster/view.h"

void admin_rows_events(const struct admin_sources *src, struct admin_rows *out)
{
    struct view_event *event = mem_alloc(VIEW_MAX_EVENTS * sizeof *event);
    int n = src->shm == NULL ? 0 : view_copy_events(src->shm, event, VIEW_MAX_EVENTS);
    int i;

    for (i = 0; i < n; i++) {
        struct view_event *e = &event[i];

        /* What a writer left half done has no end. */
        e->name[sizeof e->name - 1] = '\0';
        e->text[sizeof e->text - 1] = '\0';
        e->cause[sizeof e->cause - 1] = '\0';
        e->who[sizeof e->who - 1] = '\0';
        admin_row_begin(out);
        admin_put_time(out, e->at_us);
        if (e->node == VIEW_NO_NODE)
            admin_put_static(out, "");
        else
            admin_put_int(out, e->node);
        admin_put_str(out, e->name);
        admin_put_str(out, e->text);
        admin_put_str(out, e->cause);
        admin_put_str(out, e->who);
    }
    mem_free(event);
}
