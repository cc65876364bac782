/* SPDX-License-Identifier: PostgreSQL
 * sources.h: what the answers to administrators are made from. Filled by whoever asks: the session
 * for SQL, the control process for PCP, the web process for HTTP.
 * Plain values and functions, so that admin depends neither on how the cluster view is kept nor on
 * who asks. */
#ifndef PGP_ADMIN_SOURCES_H
#define PGP_ADMIN_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct conf_gen;
struct conf_override;
struct shm;

/* X(symbol, text in SHOW) */
#define ADMIN_NODE_STATUSES(X)                                                                     \
    X(UNUSED, "unused")                                                                            \
    X(WAITING, "waiting")                                                                          \
    X(UP, "up")                                                                                    \
    X(DOWN, "down")                                                                                \
    X(QUARANTINE, "quarantine")

#define ADMIN_NODE_STATUS(sym, text) ADMIN_NODE_##sym,
enum admin_node_status { ADMIN_NODE_STATUSES(ADMIN_NODE_STATUS) ADMIN_NODE_STATUS_COUNT };
#undef ADMIN_NODE_STATUS

/* What the server itself answered when it was last asked. */
enum admin_pg_status { ADMIN_PG_UNKNOWN, ADMIN_PG_UP, ADMIN_PG_DOWN };

/* PRIMARY is shown as "primary" in streaming replication, else as "main"; STANDBY as "standby" or
 * "replica". */
enum admin_role { ADMIN_ROLE_UNKNOWN, ADMIN_ROLE_PRIMARY, ADMIN_ROLE_STANDBY };

/* Statements and errors of one node since the start. */
struct admin_counts {
    uint64_t nselect;
    uint64_t ninsert;
    uint64_t nupdate;
    uint64_t ndelete;
    uint64_t nddl;
    uint64_t nother;
    uint64_t npanic;
    uint64_t nfatal;
    uint64_t nerror;
};

/* Health checks of one node since the start. Times of day are wall clock microseconds, 0: never. */
struct admin_health {
    uint64_t total;
    uint64_t success;
    uint64_t fail;
    uint64_t skip;
    uint64_t retry;
    uint64_t max_retry;
    int64_t max_ms;
    int64_t min_ms;
    int64_t sum_ms; /* of those made */
    int64_t last_us;
    int64_t last_success_us;
    int64_t last_skip_us;
    int64_t last_fail_us;
};

/* One node at this moment. */
struct admin_node {
    enum admin_node_status status;
    enum admin_pg_status pg_status;
    enum admin_role role;
    enum admin_role pg_role;
    int64_t delay_bytes;
    int64_t delay_us;
    bool delay_is_time; /* delay_us is to be shown */
    char replication_state[16];
    char replication_sync_state[16];
    int64_t status_changed_us;
    struct admin_counts counts;
    struct admin_health health;
};

/* Fills `out`, which is zeroed, for node `id` that the settings name. Called once per node. */
typedef void admin_node_fn(void *ctx, int id, struct admin_node *out);

/* Deletes what the cache holds for this text, user and database; true when there was something. */
typedef bool admin_cache_delete_fn(
    void *ctx, struct slice sql, struct slice user, struct slice database);

/* Where a statement would go. */
struct admin_explain {
    int node; /* -1: nowhere, no server is usable */
    const char *role;
    const char *class;
    const char *reason;
    char tables[512];    /* separated by ", ", cut when too long */
    char functions[512]; /* separated and cut as `tables` is */
    const char *cache;   /* what the query cache does with it; "": there is none */
};

/* Fills `out`, which is zeroed. */
typedef void admin_explain_fn(void *ctx, struct slice sql, struct admin_explain *out);

/* What an operator orders. */
enum admin_order_kind {
    ADMIN_ORDER_PAUSE,
    ADMIN_ORDER_RESUME,
    ADMIN_ORDER_DRAIN,
    ADMIN_ORDER_RECONNECT,
    ADMIN_ORDER_KILL_CLIENT,
    ADMIN_ORDER_CANCEL_CLIENT, /* what it runs; it stays */
    ADMIN_ORDER_RELOAD,        /* only asks for it */
    ADMIN_ORDER_KILL_DATABASE,
    ADMIN_ORDER_DISABLE,
    ADMIN_ORDER_ENABLE,
    ADMIN_ORDER_WAIT_CLOSE,
    ADMIN_ORDER_SHUTDOWN,      /* at once */
    ADMIN_ORDER_SHUTDOWN_WAIT, /* when all clients have left */
    ADMIN_ORDER_LOOK /* the servers are looked at again when that is long ago; never refused */
};
struct admin_order {
    enum admin_order_kind kind;
    struct slice database; /* empty: all */
    uint32_t client_id;
    bool *is_unused; /* set when done: nobody was in the database when the order was given */
};
enum admin_order_state { ADMIN_ORDER_REFUSED = -1, ADMIN_ORDER_DONE, ADMIN_ORDER_WAITS };
struct err;
/* Carries out an order. REFUSED sets *err. WAITS: it is given, and not done yet: the same order is
 * to be given again, a little later, until it is. */
typedef enum admin_order_state admin_order_fn(
    void *ctx, const struct admin_order *order, struct err *err);

/* The pool mode of the asking session, by name. With `wanted`, a name or "" for the one that is
 * configured, it is changed first; NULL: that was refused, and *err says why. */
typedef const char *admin_mode_fn(void *ctx, const char *wanted, struct err *err);

struct admin_sources {
    const struct conf_gen *gen;
    struct conf_override **ov; /* of the asking session; NULL: it has none (PCP, HTTP) */
    const struct shm *shm;     /* regions PROCS, CLIENTS, LINKS, CACHE ... */
    int first_worker_slot;     /* worker `ordinal` is in slot first_worker_slot + ordinal */
    int64_t now_us;            /* wall clock */
    struct slice user;         /* who asks; may see the statements of clients of the same name */
    struct slice database;
    bool is_operator;    /* superuser, PCP or console: sees all statements, may use every command */
    int balance_node;    /* of the asking session, -1 when it has none */
    admin_node_fn *node; /* NULL: nothing is known but the settings */
    void *node_ctx;
    admin_cache_delete_fn *cache_delete; /* NULL: there is no query cache, or no session */
    void *cache_ctx;
    admin_explain_fn *explain; /* NULL: there is no session whose statements are routed */
    void *explain_ctx;
    admin_order_fn *order; /* NULL: orders are not taken here */
    void *order_ctx;
    admin_mode_fn *mode; /* NULL: there is no session */
    void *mode_ctx;
};

#endif
