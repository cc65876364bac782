/* SPDX-License-Identifier: PostgreSQL
 * pool.h: the links of one user, database and node in this worker, and who waits for one.
 * Runs in: workers. A request is part of a client. Idle links are used last-in first-out, waiting
 * requests are served first come, first served. */
#ifndef PGP_BACKEND_POOL_H
#define PGP_BACKEND_POOL_H

#include "backend/link.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/slice.h"
#include "ipc/rows.h"

/* How long "the server trusts this user" is believed. Then one client logs in anew, so that a
 * changed pg_hba.conf is followed. */
#define POOL_TRUST_MAX_US 30000000

struct pool {
    struct hash_node node;
    struct backend *be;
    struct list lru_node; /* be->pool_lru while it has links */
    struct list idle;     /* newest first */
    struct list busy;     /* lent, cleaning, opening */
    struct list waiting;  /* requests, oldest first */
    uint32_t nidle;
    uint32_t nbusy;
    uint32_t ncleaning;
    uint32_t nwaiting;
    uint32_t nclients; /* clients attached: keeps the pool alive */
    int cluster_node;
    uint8_t auth; /* enum link_auth: what the server asked at the last login */
    uint8_t asks; /* enum auth_server: the same in detail */
    bool is_superuser;
    int64_t auth_seen_us; /* when `auth` was learned */
    uint16_t user_len;
    uint16_t database_len;
    char names[]; /* user NUL database NUL */
};

enum acquire_result {
    ACQUIRE_GRANTED, /* req->link is lent to the owner and ready */
    ACQUIRE_OPENING, /* req->link is being opened for the owner: link events follow */
    ACQUIRE_WAITING  /* on_turn is called when it is worth trying again */
};

/* A client's wish for a link. */
struct pool_request {
    struct list pool_node; /* pool->waiting */
    struct list all_node;  /* be->requests */
    struct pool *pool;
    struct link *link;
    const struct link_startup *startup;
    int64_t since_us;
    uint32_t pass;       /* of the retry in which it had its turn */
    uint8_t reason;      /* enum wait_reason while waiting */
    bool may_reuse;      /* the client has proved the identity a cached link stands for */
    bool is_proved;      /* the owner has proved to be the pool's user: a link opened for it may log
                          * in with what the book knows */
    bool is_private;     /* only a link of its own, never cached */
    bool no_patch;       /* only links opened with the very same start-up parameters */
    bool is_shared;      /* the owner brings settings and statements up to date by itself */
    uint64_t avoid_id;   /* not this link, if another can be had (0: any) */
    struct varset *vars; /* with is_shared: a link that has these settings is preferred */
    bool needs_patch;    /* out: opened with other values; SET brings it up to date */
    void (*on_turn)(struct pool_request *req);
    void *owner;
    const struct link_owner_ops *ops;
};

static inline struct slice pool_user(const struct pool *pool)
{
    return slice_of(pool->names, pool->user_len);
}

static inline struct slice pool_database(const struct pool *pool)
{
    return slice_of(pool->names + pool->user_len + 1, pool->database_len);
}

/* Finds or makes the pool, and counts one client in. */
struct pool *pool_attach(struct backend *be, struct slice user, struct slice database, int node);
/* Counts the client out; an empty pool goes. */
void pool_detach(struct pool *pool);
void pool_request_init(struct pool_request *req);
/* Tries to get a link. May be called again for a waiting request: it keeps its place. */
enum acquire_result pool_acquire(struct pool_request *req);
/* The oldest waiting request for `node` in this worker, NULL when none waits. */
struct pool_request *backend_oldest_request(struct backend *be, int node);
/* Gives up waiting. Harmless when not waiting. */
void pool_request_cancel(struct pool_request *req);

/* True when the server lets this user in without asking anything, as seen lately. */
bool pool_is_trusted(const struct pool *pool);

/* Called by links. */
void pool_learn_auth(struct pool *pool, enum link_auth auth);
void pool_link_added(struct pool *pool, struct link *link);
void pool_link_idle(struct pool *pool, struct link *link);
void pool_link_cleaning(struct pool *pool, struct link *link);
void pool_link_gone(struct pool *pool, struct link *link);

#endif
