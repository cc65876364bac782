/* SPDX-License-Identifier: PostgreSQL
 * pool.h: the links of one user, database and node in this worker, and who waits for one.
 * Runs in: workers. A request is part of a client. Idle links are used last-in first-out, waiting
 * requests are served first come, first served. */
#ifndef PGP_BACKEND_POOL_H
#define PGP_BACKEND_POOL_H

#include "backend/limits.h"
#include "backend/link.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/slice.h"
#include "config/pools_conf.h"
#include "ipc/rows.h"

/* How long "the server trusts this user" is believed: after the first time one client logs in anew,
 * so that a changed pg_hba.conf is followed, and the others believe it until it has. */
#define POOL_TRUST_MAX_US   29000000
#define POOL_TRUST_GRACE_US 1000000

#define POOL_LIMITS 4
#define POOL_NEAR   4

/* Who opens its links. */
enum pool_opens {
    POOL_OPENS,      /* it does, for whoever waits longest */
    POOL_ON_TRIAL,   /* it does, one at a time: it could not log in of late */
    POOL_OWNER_OPENS /* clients do: a link could not log in by itself */
};

/* What its user is at the servers. */
enum pool_role {
    POOL_ROLE_UNKNOWN,
    POOL_ROLE_BELIEVED, /* a superuser, as it gave an order before; no server has said so here */
    POOL_ROLE_PLAIN,    /* from here on a server has said it */
    POOL_ROLE_SUPER
};

/* What the other workers have been told of it. */
struct pool_told {
    int64_t oldest_us; /* when the head of `waiting` began to wait; 0: nobody waits */
    uint32_t nidle;
    bool head_stays; /* the head cannot go to another worker */
};

/* min_pool_size holds without clients: from pool_keep_warm to pool_keep_warm_no_more. */
struct pool_warmth {
    bool is_kept;
    int64_t trial_us;      /* when it is tried again after a failure */
    int64_t trial_wait_us; /* how long it was waited for that; doubled each time */
};

struct pool {
    struct backend *be;
    const struct pool_settings *set; /* of the present generation */
    struct list idle;                /* newest first */
    struct list busy;                /* lent, cleaning, opening */
    struct list waiting;             /* requests, oldest first */
    /* How many workers have clients that wait for what the pool has a part in: its own links, those
     * of its database, its user and its node. NULL: not in the table. */
    const _Atomic int32_t *waiting_workers[POOL_LIMITS];
    _Atomic int32_t *idle_cell; /* how many idle links it has, for others; NULL: they cannot know */
    struct pool_told told;
    uint32_t nidle;
    uint32_t ncleaning;
    uint32_t nbusy;
    uint32_t nclients; /* clients attached: keeps the pool alive */
    int cluster_node;
    int64_t freed_us;     /* a link became idle the last time */
    int64_t auth_seen_us; /* when `auth` was learned */
    uint8_t auth;         /* enum link_auth: what the server asked at the last login */
    uint8_t asks;         /* enum auth_server: the same in detail */
    uint8_t blocked;      /* enum limits_verdict: what is in the way of the head of `waiting` */
    uint8_t opens;        /* enum pool_opens */
    uint8_t role;         /* enum pool_role */
    bool resets_work;     /* the server has taken the reset queries of these settings before */
    bool role_due;        /* a link is asked about its role before it is lent, see pool_role_ask */
    bool is_mapped;       /* pools.conf says who its clients are at the server */
    bool is_bound;        /* its links cannot travel, as far as was seen */
    bool rotates;         /* pool_test_rotate: the next link stays, and clients come to it */
    bool is_moved;        /* a reload has put its database on another server: no link is kept */
    bool may_exceed; /* more links were open than a limit allows when that was looked at last */
    /* What is in front of this is all that a loan looks at, mostly. */
    struct hash_node node;
    struct limits_ids limits; /* entries in the shared table; none when that is full */
    struct list waiting_node; /* be->waiting_pools while somebody waits */
    struct list kept_node;    /* be->kept since the last client left; detached while one is here */
    uint32_t nopening;        /* links that are opening for whoever waits longest */
    uint32_t nwaiting;
    uint32_t head_changes;    /* how often the head of `waiting` left */
    struct pool_said *said;   /* at the last login with notices; NULL mostly */
    struct paramset defaults; /* what links report of settings that nobody has SET */
    /* The pools of the same user and database, by the last bits of their nodes, as they were when
     * be->npools_gone was near_gone: pool_near. */
    struct pool *near[POOL_NEAR];
    uint64_t near_gone;
    /* Whether another worker has had too few links; for those that cannot travel. */
    struct limits_scale uneven;
    int64_t retired_us; /* the last link was closed because of its age */
    struct pool_warmth warmth;
    int64_t called_us;      /* clients of another worker were asked to come */
    int64_t asked_us;       /* other workers were asked for one because these are late */
    int64_t place_since_us; /* what was opened until then leads to another database; 0: nothing */
    int64_t sets_since_us;  /* what was opened until then has settings as they were; 0: nothing */
    int64_t role_seen_us;   /* a server has said that the role may log in; 0: never */
    uint32_t version;       /* of the protocol, as the last client asked for it */
    bool has_own_book;      /* its database itself says who its clients are: see pool_book_name */
    uint64_t database_hash; /* of its name */
    uint16_t user_len;
    uint16_t database_len;
    char names[]; /* user NUL database NUL, and with a server of pools.conf one byte for it */
};

enum acquire_result {
    ACQUIRE_GRANTED, /* req->link is lent to the owner and ready */
    ACQUIRE_OPENING, /* req->link is being opened for the owner: link events follow */
    ACQUIRE_WAITING  /* on_turn is called when it is worth trying again */
};

/* A client's wish for a link. */
struct pool_request {
    struct list pool_node; /* pool->waiting */
    struct pool *pool;
    struct link *link;
    const struct link_startup *startup;
    int64_t since_us;
    uint8_t reason;      /* enum wait_reason while waiting */
    bool may_reuse;      /* the client has proved the identity a cached link stands for */
    uint8_t answers;     /* enum link_answers, of a link opened for it: whether the owner has
                          * proved to be the pool's user, and how it was to */
    bool is_private;     /* only a link of its own, never cached */
    bool no_patch;       /* only links opened with the very same start-up parameters */
    bool is_shared;      /* the owner brings settings and statements up to date by itself */
    bool allows_names;   /* statements that stayed on a link under our names are no hindrance */
    bool keeps_place;    /* it left the line for a look and joins where it stood, by `since_us` */
    uint64_t avoid_id;   /* not this link, if another can be had (0: any) */
    struct varset *vars; /* with is_shared: a link that has these settings is preferred */
    bool needs_patch;    /* out: opened with other values; SET brings it up to date */
    void (*on_turn)(struct pool_request *req);
    /* Worker `ordinal` has a link: the owner goes there with all it has, and the request is gone.
     * False: it cannot. NULL: none of its kind can. */
    bool (*on_called)(struct pool_request *req, int ordinal);
    void *owner;
    const struct link_owner_ops *ops;
};

static inline bool pool_is_role_known(const struct pool *pool)
{
    return pool->role >= POOL_ROLE_PLAIN;
}
static inline bool pool_is_superuser(const struct pool *pool)
{
    return pool->role == POOL_ROLE_SUPER || pool->role == POOL_ROLE_BELIEVED;
}
/* A server has said it: `super` is "on", or "off". */
static inline void pool_note_role(struct pool *pool, struct slice super)
{
    pool->role = slice_eq_str(super, "on") ? POOL_ROLE_SUPER : POOL_ROLE_PLAIN;
}

static inline struct slice pool_user(const struct pool *pool)
{
    return slice_of(pool->names, pool->user_len);
}

static inline struct slice pool_database(const struct pool *pool)
{
    return slice_of(pool->names + pool->user_len + 1, pool->database_len);
}

/* Under which name the book of secrets has the pool's user. What opens a server of pools.conf is
 * kept apart from what opens those of pgpool.conf: they are others' servers. So is what belongs to
 * a database whose owner says who its clients are: nobody is to be let in by that, and then get a
 * connection by what the user has shown elsewhere. */
static inline struct slice pool_book_name(const struct pool *pool)
{
    size_t n = pool->user_len;

    if (pool->cluster_node >= POOLS_FIRST_TARGET)
        n += (size_t)pool->database_len + 3;
    else if (pool->has_own_book)
        n += (size_t)pool->database_len + 1;
    return slice_of(pool->names, n);
}

/* Finds or makes the pool, and counts one client in. */
struct pool *pool_attach(struct backend *be, struct slice user, struct slice database, int node);
/* Somebody was counted in who chose the server before, with older settings: if these have put the
 * database elsewhere, its clients follow it from here, too. */
void pool_check_place(struct pool *pool);
/* What servers said of a role holds for all servers of one cluster: `pool` learns it of `other`, of
 * the same user. */
void pool_learn_role(struct pool *pool, const struct pool *other);
/* Counts one more in, of a pool that somebody is counted in. */
void pool_hold(struct pool *pool);
/* Opens links so that there are min_pool_size of them, and goes on so while the caller is counted
 * in, though no client is: of protocol `version` until one says another. Why it cannot log in is
 * told to the log; it is tried again later and later. May be called again. */
void pool_keep_warm(struct pool *pool, uint32_t version);
/* The caller, who is counted in, does so no more. */
void pool_keep_warm_no_more(struct pool *pool);
/* Counts the client out; an empty pool goes. */
void pool_detach(struct pool *pool);
void pool_request_init(struct pool_request *req);
/* False when a client of this pool is not to be given to a worker with more time: links are what is
 * waited for, and they could not follow it. */
bool pool_lets_go(const struct pool *pool);
/* A link that is free and needs no look, for a followed client and may have a used one
 * (may_reuse of its requests): one with the settings `vars` rather than another, and not that of
 * `avoid_id`. NULL: there is none, or others wait: pool_acquire is to be asked. */
struct link *pool_borrow(struct pool *pool, const struct varset *vars, uint64_t avoid_id,
    void *owner, const struct link_owner_ops *ops);
/* pool_borrow would lend one. */
bool pool_has_ready(const struct pool *pool, const struct varset *vars, uint64_t avoid_id);
/* True when whoever asks for a link would have to wait, and a server of this pool has parsed the
 * statement: a link of this worker has it. */
bool pool_has_parsed(const struct pool *pool, const uint8_t id[PREP_ID_BYTES]);
/* The pool of the same user and database on another node; NULL: there is none yet. */
struct pool *pool_near(struct pool *pool, int node);
/* Tries to get a link. May be called again for a waiting request: it keeps its place. */
enum acquire_result pool_acquire(struct pool_request *req);
/* Gives up waiting. Harmless when not waiting. */
void pool_request_cancel(struct pool_request *req);

/* Which database its links lead to: a reload of pools.conf reaches the workers one after the other,
 * and what one tells of the database that was meant before is not of this pool any more. */
uint64_t pool_place(const struct pool *pool);
/* The name that the database has at the server. */
struct slice pool_database_there(const struct pool *pool);
/* The link leads to a database that a reload has replaced by another one. */
bool pool_link_is_elsewhere(const struct link *link);
/* pool_link_is_elsewhere; or the link has settings of its role or database that new links have not,
 * or its role has been renamed or dropped: its answers, and where names lead, may differ from
 * theirs. */
bool pool_link_is_of_before(const struct link *link);

/* True when the server lets this user in without asking anything, as seen lately. */
bool pool_is_trusted(const struct pool *pool);

/* Somebody has just logged in as the pool's user: unless that is known of late to be a role that
 * may log in (role_check_delay), the next link is asked about it before it is lent. */
void pool_role_ask(struct pool *pool);
/* Does what pool_role_ask does, for the pools of its user and database on all nodes. */
void pool_role_ask_everywhere(struct pool *pool);
/* The notices of a login with such start-up parameters, as NoticeResponses; valid until the next
 * link is opened. */
struct slice pool_said(const struct pool *pool, const struct paramset *startup);
/* The pool's user may log in: somebody who knows has just said so. */
void pool_role_vouch(struct pool *pool);

#endif
