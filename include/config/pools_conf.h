/* SPDX-License-Identifier: PostgreSQL
 * pools_conf.h: what holds for one database and one user: pool mode, sizes, limits, time-outs, and
 * where the database is. Made from pools.conf and, for what is not said there, from pgpool.conf.
 * Runs in: every process. Part of a configuration generation: checked whole, never changed. */
#ifndef PGP_CONFIG_POOLS_CONF_H
#define PGP_CONFIG_POOLS_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "config/conf_struct.h"

/* Servers that are named in pools.conf and not in pgpool.conf are numbered from here on, so that a
 * node number says which server is meant, whoever named it. */
#define POOLS_FIRST_TARGET CONF_MAX_NODES
#define POOLS_MAX_TARGETS  64
#define POOLS_MAX_NODES    (POOLS_FIRST_TARGET + POOLS_MAX_TARGETS)
#define POOLS_NO_TARGET    (-1)

/* Pool size in transaction and statement mode when nobody says another. */
#define POOLS_AUTO_SIZE 20

/* A server of pools.conf. */
struct pools_target {
    const char *host;
    int port;
    int ssl_mode; /* enum conf_ssl_mode, as backend_ssl_mode */
};

/* What holds for a pair of database and user. Strings are NULL when not given. Sizes and limits: 0
 * is none. Times: 0 is never, but server_check_delay 0 is always, and server_lifetime 0 is after
 * one use. */
struct pool_settings {
    enum conf_pool_mode pool_mode;
    int pool_size;     /* links per pool and node; never negative: "automatic" is resolved */
    int min_pool_size; /* never above pool_size, when that is a limit */
    int reserve_pool_size;
    int64_t reserve_pool_timeout_ms;
    int max_db_connections;
    int max_user_connections;
    int max_db_client_connections;
    int max_user_client_connections;
    int64_t server_idle_timeout_ms;
    int64_t server_lifetime_ms;
    int64_t server_check_delay_ms;
    int64_t query_timeout_ms;
    int64_t query_wait_timeout_ms;
    int64_t query_wait_notify_ms;
    int64_t idle_transaction_timeout_ms;
    int64_t transaction_timeout_ms;
    int64_t client_idle_limit_ms;
    /* Where the database is. */
    int target;              /* node number (POOLS_FIRST_TARGET or more), or POOLS_NO_TARGET: the
                                servers of pgpool.conf */
    const char *dbname;      /* its name at the server; NULL: as the client says */
    const char *user;        /* who we are at the server; NULL: as the client says */
    const char *auth_user;   /* who runs auth_query */
    const char *auth_query;  /* looks up passwords */
    const char *auth_dbname; /* where auth_query runs */
};

/* The settings for `database` and `user` as the client names them. They live as long as the
 * generation; equal pairs give the same pointer. Looks into two or three hash tables: for logins
 * and new pools, not for every statement. */
const struct pool_settings *pools_conf_find(
    const struct conf *conf, struct slice database, struct slice user);
/* True when the clients of a database are looked up in that database itself, by a query of the
 * administrator's own: what it means there is in the hands of the database's owner. */
bool pools_conf_asks_itself(const struct conf *conf, const struct pool_settings *set);
/* The server `node` (POOLS_FIRST_TARGET or more) of pools.conf; NULL when there is none. */
const struct pools_target *pools_conf_target(const struct conf *conf, int node);
/* Host, port and time limit for connecting to any node: of pgpool.conf or of pools.conf. Returns
 * false when there is no such node. */
bool pools_conf_address(
    const struct conf *conf, int node, const char **host, int *port, int64_t *connect_timeout_ms);
/* Calls `fn` for each database that pools.conf names and all of whose clients are one user at the
 * server, with the settings of that user. */
void pools_conf_each_mapped(const struct conf *conf,
    void (*fn)(void *ctx, const char *database, const struct pool_settings *set), void *ctx);
/* True when pools.conf names `database` itself; false when only the fallback holds for it. */
bool pools_conf_has_database(const struct conf *conf, struct slice database);

#endif
