/* SPDX-License-Identifier: PostgreSQL
 * admin_walk.c: walks the rows that workers keep in shared memory. Runs in: worker, control, web.
 * Each row is copied at once and then looked at, so that what is shown never mixes two clients. */
#include "config.h"

#include "admin_int.h"
#include "ipc/shm.h"

void admin_walk_start(struct admin_walk *w, const struct admin_sources *src, enum shm_region region)
{
    w->rows = shm_get(src->shm, region);
    w->worker = 0;
    w->stop = w->rows == NULL ? 0 : w->rows->nworkers;
    w->i = 0;
}

void admin_walk_start_worker(
    struct admin_walk *w, const struct admin_sources *src, uint32_t ordinal)
{
    admin_walk_start(w, src, SHM_CLIENTS);
    w->worker = ordinal;
    w->stop = ordinal + 1;
}

/* Index of the next row that was ever used, -1 at the end. Rows behind the high-water mark are left
 * alone: reading them would make the kernel find memory for them. */
static int64_t walk_next(struct admin_walk *w)
{
    const struct rows_worker *range;

    for (; w->worker < w->stop; w->worker++, w->i = 0) {
        range = rows_worker(w->rows, w->worker);
        if (w->i < range->high_water && w->i < range->count)
            return (int64_t)range->first + w->i++;
    }
    return -1;
}

bool admin_walk_client(struct admin_walk *w, struct client_row *out, struct row_words *words)
{
    int64_t i;

    while ((i = walk_next(w)) >= 0) {
        if (client_row_copy(w->rows, i, out, words) && out->state != CLIENT_STATE_FREE)
            return true;
    }
    return false;
}

int64_t admin_walk_link(struct admin_walk *w, struct link_row *out, struct row_words *words)
{
    int64_t i;

    while ((i = walk_next(w)) >= 0) {
        if (link_row_copy(w->rows, i, out, words) && out->state != LINK_STATE_FREE)
            return i;
    }
    return -1;
}
