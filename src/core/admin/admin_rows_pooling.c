/* SPDX-License-Identifier: PostgreSQL
 * admin_rows_pooling.c: rows of SHOW POOL_STATS, POOL_LINKS, POOL_LIMITS, POOL_PINS and
 * POOL_ORDERS. Runs in: worker, control, web. Read from shared memory; nothing is asked of another
 * process. */
#include "config.h"

#include <string.h>
#include <time.h>

#include "admin_int.h"
#include "backend/limits.h"
#include "backend/quota.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/pools_conf.h"
#include "ipc/dbstats.h"
#include "ipc/orders.h"
#include "ipc/proc.h"
#include "ipc/rows.h"

static const char *const link_state_texts[LINK_STATE_COUNT] = {
#define TEXT(sym, text, status) text,
    LINK_STATES(TEXT)
#undef TEXT
};

static const char *const pin_texts[PIN_REASON_COUNT] = {
#define TEXT(sym, text) text,
    PIN_REASONS(TEXT)
#undef TEXT
};

void admin_put_kernel(struct admin_rows *out, unsigned kernel)
{
    static const char *const texts[] = {"", "sends", "receives", "both"};

    admin_put_static(out, texts[kernel & 3]);
}

void admin_put_pins(struct admin_rows *out, unsigned pins)
{
    struct buf text = {0};
    int i;

    for (i = 1; i < PIN_REASON_COUNT; i++)
        if ((pins & ROWS_PIN(i)) != 0)
            buf_printf(&text, "%s%s", text.len == 0 ? "" : ", ", pin_texts[i]);
    admin_put(out, buf_slice(&text));
    buf_free(&text);
}

static void put_bool(struct admin_rows *out, bool is)
{
    admin_put_static(out, is ? "true" : "false");
}

/* --- SHOW POOL_STATS --- */

void admin_put_quantiles(struct admin_rows *out, const struct histogram_sum *h)
{
    static const unsigned parts[] = {500, 900, 990, 999};
    size_t i;

    for (i = 0; i < sizeof parts / sizeof parts[0]; i++)
        admin_put_int(out, histogram_quantile(h, parts[i]));
}

void admin_rows_stats(const struct admin_sources *src, struct admin_rows *out)
{
    struct dbstats_sum *sum = mem_alloc_zero(sizeof *sum); /* too large for the stack */
    uint32_t at = 0;

    while (dbstats_next(src->shm, &at, sum)) {
        admin_row_begin(out);
        admin_put(out, admin_field_text(sum->database, sizeof sum->database));
#define FIELD(field, column, text) admin_put_uint(out, sum->field);
        DBSTATS_COUNTERS(FIELD)
#undef FIELD
        admin_put_quantiles(out, &sum->query);
        admin_put_quantiles(out, &sum->wait);
        admin_put_quantiles(out, &sum->transaction);
    }
    mem_free(sum);
}

/* --- SHOW POOL_LINKS --- */

/* Copies the client that has the link; false when nobody has. */
static bool client_of_link(
    const struct admin_sources *src, const struct link_row *link, struct client_row *out)
{
    const struct rows_header *rows = shm_get(src->shm, SHM_CLIENTS);

    return rows != NULL && link->state != LINK_STATE_IDLE &&
           client_row_copy(rows, link->client_row, out, NULL) && out->state != CLIENT_STATE_FREE;
}

void admin_rows_links(const struct admin_sources *src, struct admin_rows *out)
{
    struct client_row client;
    struct link_row link;
    struct proc_row proc;
    struct admin_walk w;
    struct row_words words;
    bool is_lent;
    int64_t i;

    admin_walk_start(&w, src, SHM_LINKS);
    while ((i = admin_walk_link(&w, &link, &words)) >= 0) {
        admin_worker_proc(src, w.worker, &proc);
        is_lent = client_of_link(src, &link, &client);
        admin_row_begin(out);
        admin_put_int(out, i);
        admin_put_int(out, proc.pid);
        admin_put_int(out, link.node);
        admin_put(out, row_user(&words.names));
        admin_put(out, row_database(&words.names));
        admin_put_static(out, link.state < LINK_STATE_COUNT ? link_state_texts[link.state] : "");
        admin_put_optional_int(out, link.server_pid != 0, link.server_pid);
        admin_put_optional_int(out, is_lent, client.id);
        admin_put_time(out, link.created_us);
        admin_put_time(out, link.acquired_us);
        admin_put_time(out, link.released_us);
        admin_put_uint(out, link.uses);
        put_bool(out, link.is_tls != 0);
        admin_put_pins(out, is_lent ? client.pins : 0);
        admin_put_statement(src, &words, out);
        admin_put_kernel(out, link.tls_kernel);
    }
}

/* --- SHOW POOL_LIMITS --- */

static void put_limit(struct admin_rows *out, const char *name, int node, int64_t used,
    int64_t limit, int64_t waiting)
{
    admin_row_begin(out);
    admin_put_static(out, name);
    admin_put_optional_int(out, node >= 0, node);
    admin_put_static(out, "");
    admin_put_static(out, "");
    admin_put_int(out, used);
    admin_put_int(out, limit);
    admin_put_int(out, waiting);
}

/* The limit that an entry of the table of limits is held against, and its name. */
static int limit_of_entry(const struct conf *conf, const struct limits_row *row, const char **name)
{
    const struct pool_settings *set =
        pools_conf_find(conf, slice_of_str(row->database), slice_of_str(row->user));

    switch (row->kind) {
    case LIMITS_POOL:
        *name = "default_pool_size";
        return set->pool_size;
    case LIMITS_DB:
        *name = "max_db_connections";
        return set->max_db_connections;
    case LIMITS_USER:
        *name = "max_user_connections";
        return set->max_user_connections;
    case LIMITS_DB_CLIENTS:
        *name = "max_db_client_connections";
        return set->max_db_client_connections;
    case LIMITS_USER_CLIENTS:
        *name = "max_user_client_connections";
        return set->max_user_client_connections;
    case LIMITS_FREE:
        break;
    }
    *name = "";
    return 0;
}

/* One row per pool, database and user that counts anything. */
static void put_entries(const struct admin_sources *src, struct admin_rows *out)
{
    const struct conf *conf = conf_of(src->gen);
    struct limits_row row;
    const char *name;
    int limit;
    int i;

    for (i = 0; i < limits_high_water(src->shm); i++) {
        if (!limits_copy(src->shm, i, &row))
            continue;
        limit = limit_of_entry(conf, &row, &name);
        admin_row_begin(out);
        admin_put(out, slice_of_str(name));
        admin_put_optional_int(out, row.node >= 0, row.node);
        admin_put(out, slice_of_str(row.user));
        admin_put(out, slice_of_str(row.database));
        admin_put_int(out, row.used);
        admin_put_int(out, limit);
        admin_put_int(out, row.waiting);
    }
}

static int64_t count_clients(const struct admin_sources *src)
{
    struct client_row client;
    struct admin_walk w;
    int64_t n = 0;

    admin_walk_start(&w, src, SHM_CLIENTS);
    while (admin_walk_client(&w, &client, NULL))
        n += client.state != CLIENT_STATE_CLOSING;
    return n;
}

static void put_node(const struct admin_sources *src, int node, struct admin_rows *out)
{
    put_limit(out, "max_backend_connections", node, quota_used(src->shm, node),
        quota_limit(src->shm, node), limits_node_waiting(src->shm, node));
}

void admin_rows_limits(const struct admin_sources *src, struct admin_rows *out)
{
    const struct conf *conf = conf_of(src->gen);
    int i;

    put_limit(out, "max_clients", -1, count_clients(src), conf->max_clients, 0);
    if (shm_get(src->shm, SHM_LIMITS) == NULL)
        return;
    for (i = 0; i < conf->nnodes; i++)
        if (conf_has_node(conf, i))
            put_node(src, i, out);
    for (i = POOLS_FIRST_TARGET; pools_conf_target(conf, i) != NULL; i++)
        put_node(src, i, out);
    put_entries(src, out);
}

/* --- SHOW POOL_PINS --- */

/* How many clients of the database are tied by `reason` now. */
static void count_pinned(
    const struct admin_sources *src, struct slice database, int64_t pinned[PIN_REASON_COUNT])
{
    struct client_row client;
    struct row_words words;
    struct admin_walk w;
    int i;

    memset(pinned, 0, PIN_REASON_COUNT * sizeof pinned[0]);
    admin_walk_start(&w, src, SHM_CLIENTS);
    while (admin_walk_client(&w, &client, &words)) {
        if (client.pins == 0 || !slice_eq(row_database(&words.names), database))
            continue;
        for (i = 0; i < PIN_REASON_COUNT; i++)
            pinned[i] += (client.pins & ROWS_PIN(i)) != 0;
    }
}

static void put_pins(
    const struct admin_sources *src, const struct dbstats_sum *sum, struct admin_rows *out)
{
    struct slice database = admin_field_text(sum->database, sizeof sum->database);
    int64_t pinned[PIN_REASON_COUNT];
    int i;

    count_pinned(src, database, pinned);
    for (i = 1; i < PIN_REASON_COUNT; i++) {
        if (sum->npins[i] == 0 && pinned[i] == 0)
            continue;
        admin_row_begin(out);
        admin_put(out, database);
        admin_put_static(out, pin_texts[i]);
        admin_put_int(out, pinned[i]);
        admin_put_uint(out, sum->npins[i]);
    }
}

void admin_rows_pins(const struct admin_sources *src, struct admin_rows *out)
{
    struct dbstats_sum *sum = mem_alloc_zero(sizeof *sum);
    uint32_t at = 0;

    while (dbstats_next(src->shm, &at, sum))
        put_pins(src, sum, out);
    mem_free(sum);
}

/* --- SHOW POOL_ORDERS --- */

void admin_rows_orders(const struct admin_sources *src, struct admin_rows *out)
{
    struct order_state state;
    struct timespec now;
    int64_t now_us;
    uint32_t at = 0;

    clock_gettime(CLOCK_MONOTONIC, &now);
    now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    while (orders_next(src->shm, &at, &state)) {
        if (state.flags == 0 && state.reconnect_us == 0)
            continue;
        admin_row_begin(out);
        admin_put(out, admin_field_text(state.database, sizeof state.database));
        put_bool(out, (state.flags & ORDER_PAUSE) != 0);
        put_bool(out, (state.flags & ORDER_DRAIN) != 0);
        admin_put_time(
            out, state.reconnect_us == 0 ? 0 : src->now_us - now_us + state.reconnect_us);
        put_bool(out, (state.flags & ORDER_DISABLE) != 0);
    }
}
