/* SPDX-License-Identifier: PostgreSQL
 * admin_bouncer_rows.c: rows of PgBouncer's reports, from shared memory and the settings. Runs in:
 * worker. Each row of a client or link is copied at once and then looked at. */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "admin/totals.h"
#include "base/mem.h"
#include "config/conf.h"
#include "config/conf_param.h"
#include "config/pools_conf.h"
#include "ipc/dbstats.h"
#include "ipc/orders.h"

#include "admin_bouncer_int.h"

#define US_PER_S      1000000
#define COUNT_OF(a)   (sizeof(a) / sizeof(a)[0])
#define SOCKET_ABSENT 7 /* what is in buffers */

static void put_empty(struct admin_rows *out)
{
    admin_put_static(out, "");
}

static void put_zeros(struct admin_rows *out, int n)
{
    for (; n > 0; n--)
        admin_put_static(out, "0");
}

/* Whole seconds, and the microseconds beyond them. */
static void put_wait(struct admin_rows *out, int64_t us)
{
    if (us < 0)
        us = 0;
    admin_put_int(out, us / US_PER_S);
    admin_put_int(out, us % US_PER_S);
}

static uint32_t sum_of(const uint32_t *counts, int n)
{
    uint32_t sum = 0;
    int i;

    for (i = 1; i < n; i++) /* 0 is FREE */
        sum += counts[i];
    return sum;
}

void admin_bouncer_version(const struct admin_sources *src, struct admin_rows *out)
{
    (void)src;
    admin_row_begin(out);
    admin_put_static(out, "pgpool " PACKAGE_VERSION);
}

/* --- SHOW POOLS --- */

static void put_pool(
    const struct conf *conf, const struct admin_pool_total *p, struct admin_rows *out)
{
    const struct pool_settings *set =
        pools_conf_find(conf, slice_of_str(p->database), slice_of_str(p->user));

    admin_row_begin(out);
    admin_put_str(out, p->database);
    admin_put_str(out, p->user);
    admin_put_uint(out, sum_of(p->clients, CLIENT_STATE_COUNT) - p->clients[CLIENT_STATE_WAITING] -
                            p->clients[CLIENT_STATE_LOGIN]);
    admin_put_uint(out, p->clients[CLIENT_STATE_WAITING]);
    put_zeros(out, 2);
    admin_put_uint(out,
        p->links[LINK_STATE_LENT] + p->links[LINK_STATE_ACTIVE] + p->links[LINK_STATE_IDLE_TX]);
    put_zeros(out, 2);
    admin_put_uint(out, p->links[LINK_STATE_IDLE]);
    put_zeros(out, 1);
    admin_put_uint(out, p->links[LINK_STATE_CLEANING]);
    admin_put_uint(out, p->links[LINK_STATE_CONNECTING]);
    put_wait(out, p->longest_wait_us);
    admin_put_static(out, admin_pool_mode_text(set->pool_mode));
    put_empty(out);
}

void admin_bouncer_pools(const struct admin_sources *src, struct admin_rows *out)
{
    struct admin_totals *t = mem_alloc_zero(sizeof *t); /* too large for the stack */
    uint32_t i;

    admin_totals(src, t);
    for (i = 0; i < t->npools; i++)
        put_pool(conf_of(src->gen), &t->pool[i], out);
    mem_free(t);
}

/* --- SHOW DATABASES --- */

/* Where writes of a database go: the node that pools.conf says, or the primary; the first one while
 * none is known. */
static int node_of(const struct admin_sources *src, const struct pool_settings *set)
{
    const struct conf *conf = conf_of(src->gen);
    struct admin_node n;
    int first = -1;
    int i;

    if (set->target != POOLS_NO_TARGET)
        return set->target;
    for (i = 0; i < conf->nnodes; i++) {
        if (!conf_has_node(conf, i))
            continue;
        admin_node_get(src, i, &n);
        if (n.role == ADMIN_ROLE_PRIMARY)
            return i;
        if (first == -1)
            first = i;
    }
    return first;
}

static void put_address(const struct admin_sources *src, int node, struct admin_rows *out)
{
    const char *host;
    int64_t timeout_ms;
    int port;

    if (pools_conf_address(conf_of(src->gen), node, &host, &port, &timeout_ms)) {
        admin_put_str(out, host);
        admin_put_int(out, port);
    } else {
        put_empty(out);
        admin_put_static(out, "0");
    }
}

static void count_database(
    const struct admin_totals *t, const char *database, uint32_t *links, uint32_t *clients)
{
    uint32_t i;

    *links = *clients = 0;
    for (i = 0; i < t->npools; i++) {
        if (strcmp(t->pool[i].database, database) != 0)
            continue;
        *links += sum_of(t->pool[i].links, LINK_STATE_COUNT);
        *clients += sum_of(t->pool[i].clients, CLIENT_STATE_COUNT);
    }
}

static void put_database(const struct admin_sources *src, const struct admin_totals *t,
    const char *database, struct admin_rows *out)
{
    struct slice name = slice_of_str(database);
    const struct pool_settings *set = pools_conf_find(conf_of(src->gen), name, slice_of("", 0));
    unsigned flags = orders_flags(src->shm, name);
    uint32_t links;
    uint32_t clients;

    count_database(t, database, &links, &clients);
    admin_row_begin(out);
    admin_put_str(out, database);
    put_address(src, node_of(src, set), out);
    admin_put_str(out, set->dbname == NULL ? database : set->dbname);
    admin_put_str(out, set->user == NULL ? "" : set->user);
    admin_put_int(out, set->pool_size);
    admin_put_int(out, set->min_pool_size);
    admin_put_int(out, set->reserve_pool_size);
    admin_put_int(out, set->server_lifetime_ms / 1000);
    admin_put_static(out, admin_pool_mode_text(set->pool_mode));
    put_empty(out);
    admin_put_int(out, set->max_db_connections);
    admin_put_uint(out, links);
    admin_put_int(out, set->max_db_client_connections);
    admin_put_uint(out, clients);
    admin_put_static(out, (flags & ORDER_PAUSE) != 0 ? "1" : "0");
    admin_put_static(out, (flags & (ORDER_DRAIN | ORDER_DISABLE)) != 0 ? "1" : "0");
    admin_put_int(out, set->reserve_pool_size);
}

void admin_bouncer_databases(const struct admin_sources *src, struct admin_rows *out)
{
    struct admin_totals *t = mem_alloc_zero(sizeof *t);
    struct dbstats_sum *sum = mem_alloc_zero(sizeof *sum);
    uint32_t at = 0;

    admin_totals(src, t);
    while (dbstats_next(src->shm, &at, sum))
        put_database(src, t, sum->database, out);
    mem_free(sum);
    mem_free(t);
}

/* --- SHOW CLIENTS, SHOW SERVERS --- */

static const char *client_state_text(const struct client_row *c)
{
    switch (c->state) {
    case CLIENT_STATE_LOGIN:
        return "login";
    case CLIENT_STATE_WAITING:
        return "waiting";
    case CLIENT_STATE_IDLE:
        return c->link_row == ROWS_NO_ROW ? "idle" : "active";
    case CLIENT_STATE_CLOSING:
        return "idle";
    default:
        return "active";
    }
}

static void put_client_address(const struct client_row *c, struct admin_rows *out)
{
    char text[INET6_ADDRSTRLEN] = "unix";

    if (c->addr_kind == ROW_ADDR_IPV4)
        inet_ntop(AF_INET, c->addr, text, sizeof text);
    else if (c->addr_kind == ROW_ADDR_IPV6)
        inet_ntop(AF_INET6, c->addr, text, sizeof text);
    admin_put_str(out, text);
    admin_put_int(out, c->addr_kind == ROW_ADDR_LOCAL ? 0 : c->port);
}

/* Something that tells connections apart, in place of an address in memory. */
static void put_pointer(struct admin_rows *out, char what, int64_t number)
{
    char text[32] = "";

    if (number >= 0)
        snprintf(text, sizeof text, "%c%lld", what, (long long)number);
    admin_put_str(out, text);
}

static void put_names(struct admin_rows *out, const char *type, const struct row_words *words)
{
    admin_row_begin(out);
    admin_put_static(out, type);
    admin_put(out, row_user(&words->names));
    admin_put(out, row_database(&words->names));
    admin_put_static(out, "none");
}

/* Which connections, and whether what is in their buffers is told, too. */
struct wanted {
    bool only_active;
    bool with_buffers;
};

static void put_clients(
    const struct admin_sources *src, struct admin_rows *out, const struct wanted *wanted)
{
    int port = conf_of(src->gen)->port;
    struct row_words words;
    struct client_row c;
    struct admin_walk w;

    admin_walk_start(&w, src, SHM_CLIENTS);
    while (admin_walk_client(&w, &c, &words)) {
        if (wanted->only_active && c.state != CLIENT_STATE_ACTIVE &&
            c.state != CLIENT_STATE_WAITING)
            continue;
        put_names(out, "C", &words);
        admin_put_static(out, client_state_text(&c));
        put_client_address(&c, out);
        put_empty(out);
        admin_put_int(out, c.addr_kind == ROW_ADDR_LOCAL ? 0 : port);
        admin_put_time(out, c.connected_us);
        admin_put_time(out, c.query_start_us);
        put_wait(out, c.state == CLIENT_STATE_WAITING ? src->now_us - c.state_since_us : 0);
        put_zeros(out, 1);
        put_pointer(out, 'c', c.id);
        put_pointer(out, 's', c.link_row);
        put_zeros(out, 1);
        admin_put_static(out, admin_tls_version_text(c.tls_version));
        admin_put(out, row_application(&words.names));
        put_zeros(out, 1);
        admin_put_uint(out, c.id);
        put_zeros(out, wanted->with_buffers ? SOCKET_ABSENT : 0);
    }
}

static const char *server_state_text(unsigned state)
{
    switch (state) {
    case LINK_STATE_CONNECTING:
        return "login";
    case LINK_STATE_IDLE:
    case LINK_STATE_CLOSING:
        return "idle";
    case LINK_STATE_CLEANING:
        return "tested";
    default:
        return "active";
    }
}

/* The number of the client that has the link, -1: nobody. */
static int64_t client_of(const struct admin_sources *src, const struct link_row *link)
{
    const struct rows_header *rows = shm_get(src->shm, SHM_CLIENTS);
    struct client_row c;

    if (rows == NULL || link->state == LINK_STATE_IDLE ||
        !client_row_copy(rows, link->client_row, &c, NULL) || c.state == CLIENT_STATE_FREE)
        return -1;
    return c.id;
}

static void put_servers(
    const struct admin_sources *src, struct admin_rows *out, const struct wanted *wanted)
{
    struct row_words words;
    struct link_row link;
    struct admin_walk w;
    int64_t i;

    admin_walk_start(&w, src, SHM_LINKS);
    while ((i = admin_walk_link(&w, &link, &words)) >= 0) {
        if (wanted->only_active && link.state != LINK_STATE_ACTIVE)
            continue;
        put_names(out, "S", &words);
        admin_put_static(out, server_state_text(link.state));
        put_address(src, link.node, out);
        put_empty(out);
        put_zeros(out, 1);
        admin_put_time(out, link.created_us);
        admin_put_time(out, link.acquired_us);
        put_zeros(out, 2);
        admin_put_static(out, link.state == LINK_STATE_CLOSING ? "1" : "0");
        put_pointer(out, 's', i);
        put_pointer(out, 'c', client_of(src, &link));
        admin_put_int(out, link.server_pid);
        admin_put_static(out, link.is_tls ? "TLS" : "");
        put_empty(out);
        put_zeros(out, 1);
        admin_put_int(out, i);
        put_zeros(out, wanted->with_buffers ? SOCKET_ABSENT : 0);
    }
}

void admin_bouncer_clients(const struct admin_sources *src, struct admin_rows *out)
{
    put_clients(src, out, &(const struct wanted){false, false});
}

void admin_bouncer_servers(const struct admin_sources *src, struct admin_rows *out)
{
    put_servers(src, out, &(const struct wanted){false, false});
}

void admin_bouncer_sockets(const struct admin_sources *src, struct admin_rows *out)
{
    put_clients(src, out, &(const struct wanted){false, true});
    put_servers(src, out, &(const struct wanted){false, true});
}

void admin_bouncer_active_sockets(const struct admin_sources *src, struct admin_rows *out)
{
    put_clients(src, out, &(const struct wanted){true, true});
    put_servers(src, out, &(const struct wanted){true, true});
}

/* --- SHOW STATE, SHOW USERS --- */

static void put_state(struct admin_rows *out, const char *key, bool is)
{
    admin_row_begin(out);
    admin_put_static(out, key);
    admin_put_static(out, is ? "yes" : "no");
}

void admin_bouncer_state(const struct admin_sources *src, struct admin_rows *out)
{
    bool is_paused = (orders_flags(src->shm, slice_of("", 0)) & ORDER_PAUSE) != 0;

    put_state(out, "active", !is_paused);
    put_state(out, "paused", is_paused);
    put_state(out, "suspended", false);
}

/* True when no pool before number `i` is of the same user. */
static bool is_first_of_user(const struct admin_totals *t, uint32_t i)
{
    uint32_t k;

    for (k = 0; k < i; k++)
        if (strcmp(t->pool[k].user, t->pool[i].user) == 0)
            return false;
    return true;
}

static void put_user(const struct admin_sources *src, const struct admin_totals *t,
    const char *user, struct admin_rows *out)
{
    const struct pool_settings *set =
        pools_conf_find(conf_of(src->gen), slice_of("", 0), slice_of_str(user));
    uint32_t links = 0;
    uint32_t clients = 0;
    uint32_t i;

    for (i = 0; i < t->npools; i++) {
        if (strcmp(t->pool[i].user, user) != 0)
            continue;
        links += sum_of(t->pool[i].links, LINK_STATE_COUNT);
        clients += sum_of(t->pool[i].clients, CLIENT_STATE_COUNT);
    }
    admin_row_begin(out);
    admin_put_str(out, user);
    admin_put_int(out, set->pool_size);
    admin_put_int(out, set->reserve_pool_size);
    admin_put_static(out, admin_pool_mode_text(set->pool_mode));
    admin_put_int(out, set->max_user_connections);
    admin_put_uint(out, links);
    admin_put_int(out, set->max_user_client_connections);
    admin_put_uint(out, clients);
}

void admin_bouncer_users(const struct admin_sources *src, struct admin_rows *out)
{
    struct admin_totals *t = mem_alloc_zero(sizeof *t);
    uint32_t i;

    admin_totals(src, t);
    for (i = 0; i < t->npools; i++)
        if (is_first_of_user(t, i))
            put_user(src, t, t->pool[i].user, out);
    mem_free(t);
}

/* --- SHOW LISTS --- */

static void put_item(struct admin_rows *out, const char *list, uint32_t items)
{
    admin_row_begin(out);
    admin_put_static(out, list);
    admin_put_uint(out, items);
}

static uint32_t count_databases(const struct admin_sources *src)
{
    struct dbstats_sum *sum = mem_alloc_zero(sizeof *sum);
    uint32_t at = 0;
    uint32_t n = 0;

    while (dbstats_next(src->shm, &at, sum))
        n++;
    mem_free(sum);
    return n;
}

static uint32_t count_users(const struct admin_totals *t)
{
    uint32_t n = 0;
    uint32_t i;

    for (i = 0; i < t->npools; i++)
        n += is_first_of_user(t, i);
    return n;
}

void admin_bouncer_lists(const struct admin_sources *src, struct admin_rows *out)
{
    static const char *const absent[] = {"dns_names", "dns_zones", "dns_queries", "dns_pending"};
    struct admin_totals *t = mem_alloc_zero(sizeof *t);
    uint32_t links = 0;
    uint32_t i;

    admin_totals(src, t);
    for (i = 0; i < t->npools; i++)
        links += sum_of(t->pool[i].links, LINK_STATE_COUNT);
    put_item(out, "databases", count_databases(src));
    put_item(out, "users", count_users(t));
    put_item(out, "peers", 0);
    put_item(out, "pools", t->npools);
    put_item(out, "peer_pools", 0);
    put_item(out, "free_clients", 0);
    put_item(out, "used_clients",
        sum_of(t->clients, CLIENT_STATE_COUNT) - t->clients[CLIENT_STATE_LOGIN]);
    put_item(out, "login_clients", t->clients[CLIENT_STATE_LOGIN]);
    put_item(out, "free_servers", 0);
    put_item(out, "used_servers", links);
    for (i = 0; i < COUNT_OF(absent); i++)
        put_item(out, absent[i], 0);
    mem_free(t);
}

/* --- SHOW CONFIG --- */

static void put_default(const struct conf_param *p, struct admin_rows *out)
{
    const struct conf_enum_value *v;

    if (p->def_text != NULL) {
        admin_put_static(out, p->def_text);
    } else if (p->type == CONF_ENUM) {
        for (v = p->values; v->text != NULL && v->value != (int)p->def_int; v++)
            continue;
        admin_put_static(out, v->text == NULL ? "" : v->text);
    } else {
        admin_put_int(out, p->def_int);
    }
}

void admin_bouncer_config(const struct admin_sources *src, struct admin_rows *out)
{
    static const char *const names[][2] = {
#define BOUNCER_SETTING(theirs, ours) {theirs, ours},
#include "admin_bouncer_config.def"
#undef BOUNCER_SETTING
    };
    struct conf_ref ref;
    struct buf value = {0};
    struct err err;
    size_t i;

    for (i = 0; i < COUNT_OF(names); i++) {
        err_clear(&err);
        if (conf_param_find(names[i][1], &ref, &err) == -1)
            continue; /* a build without it */
        buf_clear(&value);
        conf_format_value(src->gen, NULL, &ref,
            ref.param->type == CONF_ENUM ? CONF_STYLE_SHOW : CONF_STYLE_STATUS, &value);
        admin_row_begin(out);
        admin_put_static(out, names[i][0]);
        admin_put(out, buf_slice(&value));
        put_default(ref.param, out);
        admin_put_static(out, ref.param->context == CONF_CONTEXT_STARTUP ? "no" : "yes");
    }
    buf_free(&value);
}
