/* SPDX-License-Identifier: PostgreSQL
 * sessions_warm.c: min_pool_size of databases whose clients are all one user at the server, which
 * holds before the first client comes. Runs in: workers, in the first one that is there, so that
 * one alone says what is wrong. Others get links from it when their clients need them. */
#include "config.h"

#include <string.h>

#include "base/mem.h"
#include "config/conf.h"
#include "config/pools_conf.h"
#include "ipc/proc.h"

#include "sstate_int.h"

#define WARM_MS 1000

/* A database that is kept warm, by a pool that stays though nobody is in it. */
struct warm_pool {
    struct list node; /* ss->warm.pools */
    struct pool *pool;
    bool is_wanted;
};

/* The first worker that runs and is not about to leave. */
static bool is_keeper(const struct sessions *ss)
{
    const struct proc_env *env = ss->env;
    const struct proc_row *row;
    int i;

    for (i = 0; i < env->ordinal; i++) {
        row = proc_row(env->shm, env->first_worker_slot + i);
        if (row->pid != 0 && atomic_load(&row->is_leaving) == 0)
            return false;
    }
    return atomic_load(&proc_row(env->shm, env->slot)->is_leaving) == 0 &&
           ss->stop == SESSION_RUNNING;
}

static void warm_end(struct warm_pool *w)
{
    list_remove(&w->node);
    pool_keep_warm_no_more(w->pool);
    pool_detach(w->pool);
    mem_free(w);
}

static void warm_begin(struct sessions *ss, struct slice user, struct slice database, int node)
{
    struct warm_pool *w = mem_alloc_zero(sizeof *w);

    w->pool = pool_attach(&ss->be, user, database, node);
    list_push_back(&ss->warm.pools, &w->node);
    w->is_wanted = true;
}

/* NULL: there is none yet. */
static struct warm_pool *warm_find(
    const struct sessions *ss, struct slice user, struct slice database, int node)
{
    struct list *n;

    LIST_FOREACH(n, &ss->warm.pools)
    {
        struct warm_pool *w = LIST_ENTRY(n, struct warm_pool, node);

        if (w->pool->cluster_node == node && slice_eq(pool_user(w->pool), user) &&
            slice_eq(pool_database(w->pool), database))
            return w;
    }
    return NULL;
}

static void on_mapped(void *ctx, const char *name, const struct pool_settings *set)
{
    struct sessions *ss = ctx;
    int node = set->target != POOLS_NO_TARGET ? set->target : sessions_write_node(ss);
    struct slice user = slice_of_str(set->user);
    struct slice database = slice_of_str(name);
    struct warm_pool *w;

    if (set->min_pool_size == 0 || node == VIEW_NO_NODE)
        return;
    w = warm_find(ss, user, database, node);
    if (w == NULL)
        warm_begin(ss, user, database, node);
    else
        w->is_wanted = true;
}

static void warm_look(struct sessions *ss)
{
    struct list *n;
    struct list *tmp;
    struct warm_pool *w;

    LIST_FOREACH(n, &ss->warm.pools)
    LIST_ENTRY(n, struct warm_pool, node)->is_wanted = false;
    if (is_keeper(ss))
        pools_conf_each_mapped(ss->conf, on_mapped, ss);
    LIST_FOREACH_SAFE(n, tmp, &ss->warm.pools)
    {
        w = LIST_ENTRY(n, struct warm_pool, node);
        if (!w->is_wanted) {
            warm_end(w);
            continue;
        }
        if (!w->pool->warmth.is_kept || w->pool->opens == POOL_OWNER_OPENS)
            place_learn_secret(w->pool); /* pool_passwd may have been read since */
        pool_keep_warm(w->pool, PROTO_3_0);
    }
}

static void warm_on_time(struct timer *t)
{
    struct sessions *ss = LIST_ENTRY(t, struct sessions, warm.timer);

    warm_look(ss);
    timer_start(ss->loop, t, WARM_MS);
}

static void count_mapped(void *ctx, const char *name, const struct pool_settings *set)
{
    (void)name;
    *(bool *)ctx = *(bool *)ctx || set->min_pool_size > 0;
}

void sessions_warm_on_conf(struct sessions *ss)
{
    bool is_needed = !list_is_empty(&ss->warm.pools);
    struct list *n;

    LIST_FOREACH(n, &ss->warm.pools) /* what was wrong may be right now */
    pool_keep_warm_no_more(LIST_ENTRY(n, struct warm_pool, node)->pool);
    pools_conf_each_mapped(ss->conf, count_mapped, &is_needed);
    if (is_needed)
        timer_start(ss->loop, &ss->warm.timer, 0);
    else
        timer_stop(ss->loop, &ss->warm.timer);
}

void sessions_warm_init(struct sessions *ss)
{
    list_init(&ss->warm.pools);
    timer_init(&ss->warm.timer, warm_on_time);
    sessions_warm_on_conf(ss);
}

void sessions_warm_end(struct sessions *ss)
{
    struct list *n;

    timer_stop(ss->loop, &ss->warm.timer);
    while ((n = list_first(&ss->warm.pools)) != NULL)
        warm_end(LIST_ENTRY(n, struct warm_pool, node));
}
