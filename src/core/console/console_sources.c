/* SPDX-License-Identifier: PostgreSQL
 * console_sources.c: what answers are made of, as it is for one client. Runs in: workers;
 * console_node_counts: whoever shows them. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "admin/admin_view.h"
#include "backend/pool.h"
#include "console/console.h"
#include "ipc/orders.h"
#include "known/session_shared.h"
#include "parser/parser.h"
#include "session/caching.h"
#include "session/session.h"

#include "console_int.h"

/* ---- nodes ---- */

void console_node_counts(const struct shm *shm, int node, struct admin_counts *out)
{
    out->nselect = session_count_sum(shm, node, COUNT_SELECT);
    out->ninsert = session_count_sum(shm, node, COUNT_INSERT);
    out->nupdate = session_count_sum(shm, node, COUNT_UPDATE);
    out->ndelete = session_count_sum(shm, node, COUNT_DELETE);
    out->nddl = session_count_sum(shm, node, COUNT_DDL);
    out->nother = session_count_sum(shm, node, COUNT_OTHER);
    out->npanic = session_count_sum(shm, node, COUNT_PANIC);
    out->nfatal = session_count_sum(shm, node, COUNT_FATAL);
    out->nerror = session_count_sum(shm, node, COUNT_ERROR);
}

static void fill_node(void *ctx, int id, struct admin_node *out)
{
    struct sessions *ss = ctx;

    admin_node_of_view(&ss->view, id, out);
    if (id >= 0 && id < ss->view.nnodes)
        console_node_counts(ss->env->shm, id, &out->counts);
}

/* ---- PGPOOL EXPLAIN ---- */

static void add_name(char *out, size_t size, struct slice schema, struct slice name)
{
    size_t used = strlen(out);

    snprintf(out + used, size - used, "%s%.*s%s%.*s", used == 0 ? "" : ", ", (int)schema.n,
        schema.n == 0 ? "" : schema.p, schema.n == 0 ? "" : ".", (int)name.n, name.p);
}

static void add_names(const struct sql_facts *facts, struct admin_explain *out)
{
    uint32_t i;
    uint32_t j;

    for (i = 0; i < facts->nstmts; i++) {
        const struct sql_stmt *s = &facts->stmts[i];

        for (j = 0; j < s->ntables; j++)
            add_name(out->tables, sizeof out->tables, s->tables[j].schema, s->tables[j].name);
        for (j = 0; j < s->nfuncs; j++)
            add_name(out->functions, sizeof out->functions, s->funcs[j].schema, s->funcs[j].name);
    }
}

static const char *cached(struct client *c, struct slice sql, const struct sql_facts *facts)
{
    const struct results_ops *results = client_sessions(c)->results;

    if (results == NULL)
        return "";
    if (!client_has_errand(c))
        return "not now: nobody looks at what the session runs";
    return results->explain(c, sql, facts);
}

static void explain(void *ctx, struct slice sql, struct admin_explain *out)
{
    struct client *c = ctx;
    struct explained way;
    const struct sql_facts *facts = client_explain(c, sql, &way);

    out->node = way.node;
    out->role = way.role;
    out->class = way.class;
    out->reason = way.reason;
    add_names(facts, out);
    out->cache = cached(c, sql, facts);
}

/* ---- all of it ---- */

void console_sources(struct client *c, struct admin_sources *src)
{
    struct sessions *ss = client_sessions(c);
    struct pool *pool = client_pool(c);

    (void)view_refresh(ss->env->shm, &ss->view);
    *src = (struct admin_sources){.gen = ss->gen,
        .ov = client_overrides(c),
        .shm = ss->env->shm,
        .first_worker_slot = ss->env->first_worker_slot,
        .now_us = backend_wall_us(&ss->be),
        .user = pool_user(pool),
        .database = pool_database(pool),
        /* A superuser of another server is nobody here. */
        .is_operator = pool_is_superuser(pool) && client_role_place(c) == ORDERS_OUR_SERVERS,
        .balance_node = pool->cluster_node,
        .node = fill_node,
        .node_ctx = ss,
        .cache_delete = ss->results == NULL ? NULL : ss->results->delete,
        .cache_ctx = c,
        .explain = explain,
        .explain_ctx = c,
        .order = orders_run,
        .order_ctx = c,
        .mode = exchange_mode_run,
        .mode_ctx = c};
}
