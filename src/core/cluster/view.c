/* SPDX-License-Identifier: PostgreSQL
 * view.c: publishing and reading the cluster view. */
#include "config.h"

#include "cluster/view.h"

#include <string.h>

struct view_region {
    _Atomic uint64_t version;
    struct shm_seq seq;
    struct view view;
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

uint64_t view_version(const struct shm *shm)
{
    const struct view_region *r = shm_get(shm, SHM_CLUSTER);

    return atomic_load_explicit(&r->version, memory_order_acquire);
}

bool view_refresh(const struct shm *shm, struct view *v)
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

int view_write_node(const struct view *v)
{
    int i;

    if (v->primary != VIEW_NO_NODE && view_is_usable(v, v->primary))
        return v->primary;
    for (i = 0; i < v->nnodes; i++)
        if (view_is_usable(v, i))
            return i;
    return VIEW_NO_NODE;
}
