/* SPDX-License-Identifier: PostgreSQL
 * view.c: publishing and reading the cluster view. */
#include "config.h"

#include "base/hot.h"
#include "cluster/view.h"

#include <string.h>

struct view_region {
    _Atomic uint64_t version;
    struct shm_seq seq;
    struct view view;
    struct shm_seq events_seq;
    uint64_t nevents; /* ever */
    struct view_event event[VIEW_MAX_EVENTS];
};

size_t view_region_bytes(void)
{
    return sizeof(struct view_region);
}

void view_publish(struct shm *shm, struct view *v)
{
    struct view_region *r = shm_get(shm, SHM_CLUSTER);

    v->version = atomic_load(&r->version) + 1;
    shm_write_begin(&r->seq);
    memcpy(&r->view, v, sizeof *v);
    shm_write_end(&r->seq);
    atomic_store(&r->version, v->version);
}

const _Atomic uint64_t *view_version_mark(const struct shm *shm)
{
    const struct view_region *r = shm_get(shm, SHM_CLUSTER);

    return &r->version;
}

uint64_t view_version(const struct shm *shm)
{
    return atomic_load_explicit(view_version_mark(shm), memory_order_acquire);
}

HOT bool view_refresh(const struct shm *shm, struct view *v)
{
    const struct view_region *r = shm_get(shm, SHM_CLUSTER);
    uint32_t n;

    if (v->version == view_version(shm))
        return false;
    do {
        n = shm_read_begin(&r->seq);
        memcpy(v, &r->view, sizeof *v);
    } while (shm_read_retry(&r->seq, n));
    return true;
}

void view_add_event(struct shm *shm, const struct view_event *event)
{
    struct view_region *r = shm_get(shm, SHM_CLUSTER);

    shm_write_begin(&r->events_seq);
    r->event[r->nevents % VIEW_MAX_EVENTS] = *event;
    r->nevents++;
    shm_write_end(&r->events_seq);
}

int view_copy_events(const struct shm *shm, struct view_event *out, int max)
{
    const struct view_region *r = shm_get(shm, SHM_CLUSTER);
    uint64_t n;
    uint64_t i;
    uint32_t seen;

    if (r == NULL)
        return 0;
    do {
        seen = shm_read_begin(&r->events_seq);
        n = r->nevents < VIEW_MAX_EVENTS ? r->nevents : VIEW_MAX_EVENTS;
        if (n > (uint64_t)max)
            n = (uint64_t)max;
        for (i = 0; i < n; i++)
            out[i] = r->event[(r->nevents - n + i) % VIEW_MAX_EVENTS];
    } while (shm_read_retry(&r->events_seq, seen));
    return (int)n;
}

/* As soon as another one is there, nobody waits for what is left to be done. */
HOT bool view_can_write(const struct view *v)
{
    int node = v->primary;

    if (node == VIEW_NO_NODE || !view_is_usable(v, node) || v->is_looking)
        return false;
    if ((view_failover_in_progress(v) && v->sw.node == node) || view_has_node(v->sw.fenced, node))
        return false;
    return v->node[node].pg_status != VIEW_PG_DOWN && !v->node[node].is_busy;
}

/* The epoch counts from the first primary on: before that there is nobody to wait for. */
HOT bool view_must_hold_writes(const struct view *v)
{
    return (v->is_looking || (v->is_streaming && v->primary_epoch > 0)) && !view_can_write(v);
}

bool view_can_read(const struct view *v, int node)
{
    if (!view_is_usable(v, node))
        return false;
    if (v->node[node].pg_status == VIEW_PG_DOWN || v->node[node].is_busy)
        return false;
    return !v->is_streaming || v->primary == node ||
           (view_failover_in_progress(v) && v->sw.node == node) ||
           v->node[node].pg_role != VIEW_ROLE_PRIMARY || v->primary == VIEW_NO_NODE;
}

/* A server whose role is not known may be the primary; one that says it is a standby is not. */
HOT int view_write_node(const struct view *v)
{
    int i;

    if (v->primary != VIEW_NO_NODE && view_is_usable(v, v->primary))
        return v->primary;
    for (i = 0; i < v->nnodes; i++)
        if (view_is_usable(v, i) && v->node[i].role != VIEW_ROLE_STANDBY)
            return i;
    for (i = 0; i < v->nnodes; i++)
        if (view_is_usable(v, i))
            return i;
    return VIEW_NO_NODE;
}
