/* SPDX-License-Identifier: PostgreSQL
 * sessions_orders.c: what orders of operators, and of clients that drop a database, mean for the
 * clients and links of this worker: it is told by MAIL_ORDER. What lasts stands in shared memory
 * (ipc/orders.h), so that a worker that is started later knows it. Runs in: workers. */
#include "config.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "ipc/hold.h"
#include "ipc/orders.h"

#include "client_int.h"

/* What is being cleaned, or lent, goes as soon as it is free: the server waits for some seconds. */
static void close_free_links(struct sessions *ss, const char *database, uint32_t client_id)
{
    struct link *link;
    struct list *n;
    struct list *tmp;

    LIST_FOREACH(n, &ss->be.links)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (!slice_eq_str(pool_database(link->pool), database))
            continue;
        if (client_id == 0)
            link->is_retired = true;
        else
            link->dropped_by = client_id;
    }
    LIST_FOREACH_SAFE(n, tmp, &ss->be.idle_lru)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (slice_eq_str(pool_database(link->pool), database))
            link_close(link);
    }
}

static void keep_links(struct sessions *ss, uint32_t client_id)
{
    struct link *link;
    struct list *n;

    LIST_FOREACH(n, &ss->be.links)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (link->dropped_by == client_id)
            link->dropped_by = 0;
    }
}

static void close_unwanted_links(struct sessions *ss)
{
    struct link *link;
    struct list *n;
    struct list *tmp;

    LIST_FOREACH_SAFE(n, tmp, &ss->be.idle_lru)
    {
        link = LIST_ENTRY(n, struct link, be_node);
        if (orders_want_close(ss->env->shm, pool_database(link->pool), link->opened_us))
            link_close(link);
    }
}

static bool is_between_transactions(const struct client *c)
{
    return c->phase == CL_ACTIVE && !c->is_parked &&
           (c->target == NULL || expect_is_quiet(&c->target->expect));
}

/* Clients are not ended here and now: the end of one may be that of another, in this walk. */
static void end_drained_clients(struct sessions *ss)
{
    bool is_held = hold_is_on(ss->env->shm);
    struct list *n;
    struct client *c;

    LIST_FOREACH(n, &ss->clients)
    {
        c = LIST_ENTRY(n, struct client, node);
        if ((is_held && client_is_native(c)) ||
            (is_between_transactions(c) && client_limits_must_leave(c)))
            client_limits_poke(c);
    }
}

static void kill_client(struct sessions *ss, uint32_t id)
{
    struct order_mail m = {.kind = ORDER_KILL_CLIENT, .client_id = id};
    struct client *c = sessions_client(ss, id);
    struct client_row row;

    if (c != NULL) {
        log_at(LVL_LOG, "client %u is ended by an operator's command", id);
        client_end_text(c, "57P01", "terminating connection due to administrator command");
        return;
    }
    if (session_find_client(ss->client_rows, id, &row) != ROWS_NO_ROW &&
        row.worker != ss->env->ordinal) /* it has left meanwhile */
        orders_tell_worker(ss->env, row.worker, &m);
}

/* Ends clients by their numbers: the end of one may be that of another, and disturb a walk. */
static void kill_database(struct sessions *ss, const char *database, uint32_t but)
{
    uint32_t *ids = mem_alloc((ss->nclients + 1) * sizeof *ids);
    struct client *c;
    struct list *n;
    uint32_t count = 0;
    uint32_t i;

    LIST_FOREACH(n, &ss->clients)
    {
        c = LIST_ENTRY(n, struct client, node);
        if (c->row == NULL || c->pool == NULL || client_is_alone(c) || c->row->id == but ||
            count > ss->nclients ||
            (database[0] != '\0' && !slice_eq_str(pool_database(c->pool), database)))
            continue;
        ids[count++] = c->row->id;
    }
    for (i = 0; i < count; i++)
        kill_client(ss, ids[i]);
    mem_free(ids);
}

void sessions_on_order(struct sessions *ss, const void *body, size_t len)
{
    struct order_mail m;

    if (len != sizeof m)
        return;
    memcpy(&m, body, sizeof m);
    m.database[sizeof m.database - 1] = '\0';
    switch ((enum order_kind)m.kind) {
    case ORDER_KILL_CLIENT:
        kill_client(ss, m.client_id);
        return;
    case ORDER_KEEP:
        keep_links(ss, m.client_id);
        return;
    case ORDER_KILL_DATABASE:
        kill_database(ss, m.database, m.client_id);
        break;
    case ORDER_CLOSE_FREE:
        close_free_links(ss, m.database, m.client_id);
        break;
    case ORDER_LOOK:
        close_unwanted_links(ss);
        end_drained_clients(ss);
        break;
    }
    backend_post_retry(&ss->be);
}
