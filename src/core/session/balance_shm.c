/* SPDX-License-Identifier: PostgreSQL
 * balance_shm.c: what the workers know of each other for balancing: how often the schema has
 * changed, and which tables were written lately. Runs in: workers, and the supervisor when it plans
 * and fills the region BALANCE. Each worker writes its own table of marks; the counter of schema
 * changes is only ever added to. */
#include "config.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "config/conf.h"
#include "route/route_marks.h"
#include "route/route_oracle.h"

#include "balance_int.h"

struct balance_region {
    _Atomic uint64_t nschema_changes;
    uint64_t marks_bytes; /* of one worker */
    uint32_t nworkers;
    char marks[] __attribute__((aligned(64)));
};

/* One per worker process. */
struct balance_worker {
    struct balance_region *region;
    uint64_t seen_changes;
    uint64_t primary_epoch;
    uint64_t replayed[VIEW_MAX_NODES];
    unsigned nmarks;
    const struct route_marks *marks[];
};

static uint64_t marks_bytes(const struct conf *conf)
{
    return (route_marks_bytes(conf) + 63U) & ~(uint64_t)63U;
}

void balance_plan_shm(const struct conf *conf, int nworkers, struct shm_plan *plan)
{
    plan->bytes[SHM_BALANCE] +=
        sizeof(struct balance_region) + (uint64_t)nworkers * marks_bytes(conf);
}

void balance_init_shm(const struct conf *conf, int nworkers, struct shm *shm)
{
    struct balance_region *r = shm_get(shm, SHM_BALANCE);

    r->marks_bytes = marks_bytes(conf);
    r->nworkers = (uint32_t)nworkers;
}

void balance_worker_init(struct sessions *ss)
{
    struct balance_region *r = shm_get(ss->env->shm, SHM_BALANCE);
    struct balance_worker *w =
        mem_alloc_zero(sizeof *w + r->nworkers * sizeof(struct route_marks *));
    unsigned i;

    w->region = r;
    w->nmarks = r->nworkers;
    for (i = 0; i < r->nworkers; i++)
        w->marks[i] = (const struct route_marks *)(const void *)(r->marks + i * r->marks_bytes);
    (void)route_marks_init(
        r->marks + (uint64_t)ss->env->ordinal * r->marks_bytes, ss->conf, backend_wall_us(&ss->be));
    ss->balance_worker = w;
}

void balance_worker_fini(struct sessions *ss)
{
    mem_free(ss->balance_worker);
    ss->balance_worker = NULL;
}

void balance_worker_refresh(struct sessions *ss)
{
    struct balance_worker *w = ss->balance_worker;
    uint64_t now = atomic_load(&w->region->nschema_changes);

    (void)view_refresh(ss->env->shm, &ss->view);
    if (w->primary_epoch != ss->view.primary_epoch) {
        w->primary_epoch = ss->view.primary_epoch;
        memset(w->replayed, 0, sizeof w->replayed); /* positions of another timeline */
    }
    if (now == w->seen_changes)
        return;
    w->seen_changes = now;
    route_cache_clear(ss->answers);
}

void balance_worker_ddl(struct sessions *ss)
{
    atomic_fetch_add(&ss->balance_worker->region->nschema_changes, 1);
}

void balance_worker_replayed(struct sessions *ss, int node, uint64_t lsn)
{
    ASSERT(node >= 0 && node < VIEW_MAX_NODES);
    if (lsn > ss->balance_worker->replayed[node])
        ss->balance_worker->replayed[node] = lsn;
}

const uint64_t *balance_worker_replayed_lsn(const struct sessions *ss)
{
    return ss->balance_worker->replayed;
}

const struct route_marks *const *balance_worker_marks(const struct sessions *ss, unsigned *n)
{
    *n = ss->balance_worker->nmarks;
    return ss->balance_worker->marks;
}

void balance_worker_mark(struct sessions *ss, const uint64_t *key, unsigned n)
{
    struct balance_region *r = ss->balance_worker->region;
    void *own = r->marks + (uint64_t)ss->env->ordinal * r->marks_bytes;
    unsigned i;

    for (i = 0; i < n; i++)
        route_marks_add(own, ss->conf, key[i], backend_wall_us(&ss->be));
}

/* Two servers may have processes of the same number: the primary's is meant then, for it is where
 * numbers are read. */
int balance_worker_node_of_pid(void *ctx, int32_t pid)
{
    struct sessions *ss = ctx;
    const struct rows_header *rows = shm_get(ss->env->shm, SHM_LINKS);
    int primary = view_write_node(&ss->view);
    int node = VIEW_NO_NODE;
    uint32_t w;
    uint32_t i;

    for (w = 0; w < rows->nworkers; w++) {
        const struct rows_worker *range = rows_worker(rows, w);

        for (i = 0; i < range->high_water && i < range->count; i++) {
            const struct link_row *row = rows_at(rows, (int64_t)range->first + i);

            if (row->state == LINK_STATE_FREE || row->server_pid != pid)
                continue;
            if (node == VIEW_NO_NODE || row->node == primary)
                node = row->node;
        }
    }
    return node;
}
