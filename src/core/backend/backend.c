/* SPDX-License-Identifier: PostgreSQL
 * backend.c: a worker's pools and links as a whole. */
#include "config.h"

#include "backend/backend.h"

#include <string.h>
#include <time.h>

#include "backend/pool.h"
#include "backend/row_alloc.h"
#include "base/mem.h"
#include "config/conf.h"

#include "event/jobs.h"
#include "ipc/orders.h"

#include "link_int.h"
#include "pool_int.h"

static const struct link_pool_ops pool_ops = {.on_added = pool_link_added,
    .on_auth = pool_learn_auth,
    .on_opened = pool_link_opened,
    .on_refused = pool_link_refused,
    .on_said = pool_link_said,
    .on_taken = pool_link_taken,
    .on_cleaning = pool_link_cleaning,
    .on_slow = pool_link_slow,
    .on_idle = pool_link_idle,
    .on_role_refused = pool_role_refuse,
    .on_role_error = pool_role_on_error,
    .on_role_vouched = pool_role_vouch,
    .on_gone = pool_link_gone};

/* How far the wall clock is ahead of the loop's. That one stands still within a turn, so that it is
 * not asked: who was held up here would be ahead of the monitor from then on, and wait for probes
 * that have been. */
static int64_t wall_offset_us(void)
{
    struct timespec wall;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &wall);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)(wall.tv_sec - now.tv_sec) * 1000000 + (wall.tv_nsec - now.tv_nsec) / 1000;
}

void backend_init(
    struct backend *be, struct loop *loop, struct shm *shm, const struct conf *conf, int ordinal)
{
    memset(be, 0, sizeof *be);
    be->loop = loop;
    be->shm = shm;
    be->orders_any = orders_mark(shm);
    be->conf = conf;
    be->ordinal = ordinal;
    be->gives_to = -1;
    be->pool_ops = &pool_ops;
    be->read_buf = mem_alloc_hidden(BACKEND_READ_BYTES); /* passwords come by here */
    hash_table_init(&be->pools);
    varset_store_init(&be->varsets);
    paramset_store_init(&be->paramsets);
    be->jobs = jobs_new(loop);
    list_init(&be->idle_lru);
    list_init(&be->kept);
    list_init(&be->cancels);
    list_init(&be->links);
    list_init(&be->waiting_pools);
    task_init(&be->retry, backend_on_retry);
    timer_init(&be->sweep, backend_on_sweep);
    timer_init(&be->maint, backend_on_maint);
    timer_start(loop, &be->maint, 0);
    be->link_rows = shm_get(shm, SHM_LINKS);
    be->row_alloc = row_alloc_new(be->link_rows, ordinal);
    be->wall_offset_us = wall_offset_us();
}

void backend_fini(struct backend *be)
{
    struct list *n;

    backend_stop_caching(be);
    while ((n = list_first(&be->links)) != NULL)
        link_close(LIST_ENTRY(n, struct link, be_node));
    task_cancel(&be->retry);
    timer_stop(be->loop, &be->sweep);
    timer_stop(be->loop, &be->maint);
    backend_tls_fini(be);
    jobs_free(&be->jobs);
    row_alloc_free(&be->row_alloc);
    hash_table_fini(&be->pools);
    varset_store_fini(&be->varsets);
    paramset_store_fini(&be->paramsets);
    mem_free_hidden(be->read_buf);
    be->read_buf = NULL;
}

static void close_retired(struct backend *be)
{
    struct link *link;
    struct list *n;
    struct list *tmp;

    LIST_FOREACH_SAFE(n, tmp, &be->idle_lru)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (link->is_retired || pool_is_done_with(link->pool, link))
            link_close(link);
    }
}

/* The settings of a pool belong to the generation. */
void backend_set_conf(struct backend *be, const struct conf *conf)
{
    const struct conf *was = be->conf;
    struct hash_node *n;
    uint32_t i;

    be->conf = conf;
    if (be->pools.count == 0)
        return;
    for (i = 0; i <= be->pools.mask; i++)
        for (n = be->pools.bucket[i]; n != NULL; n = n->next)
            pool_set_conf(LIST_ENTRY(n, struct pool, node), conf, was);
    backend_look_for_excess(be);
    close_retired(be);
    backend_post_retry(be);
}

void backend_stop_caching(struct backend *be)
{
    struct list *n;

    be->is_stopping = true;
    while ((n = list_first(&be->idle_lru)) != NULL)
        link_close(LIST_ENTRY(n, struct link, be_node));
}
