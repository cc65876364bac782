/* SPDX-License-Identifier: PostgreSQL
 * limits.h: how many links and clients each pool, database and user has, over all workers.
 * Runs in: workers take and give; the supervisor gives back a dead worker's share; whoever answers
 * SHOW reads.
 *
 * A table in shared memory, keyed by names. Opening or closing a link, a login and a goodbye change
 * it under one lock that survives the death of its holder; so all limits are tested and taken in
 * one step, and nothing is ever taken and put back. Lending an idle link does not come here, but
 * for two numbers that a worker publishes in its own part without the lock: how many idle links of
 * a pool it has, and since when its oldest client waits. */
#ifndef PGP_BACKEND_LIMITS_H
#define PGP_BACKEND_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "ipc/shm.h"

/* What an entry of the table counts. */
enum limits_kind {
    LIMITS_FREE,
    LIMITS_POOL,        /* links of a user in a database of a node */
    LIMITS_DB,          /* links of a database of a node */
    LIMITS_USER,        /* links of a user on a node */
    LIMITS_DB_CLIENTS,  /* clients of a database */
    LIMITS_USER_CLIENTS /* clients of a user */
};

#define LIMITS_NO_ENTRY   (-1)
#define LIMITS_NAME_BYTES 64 /* a role or database name with its NUL */

/* The entries of a pool. */
struct limits_ids {
    int32_t pool;
    int32_t db;
    int32_t user;
};

/* The entries of a client. A zeroed ticket counts nothing. */
struct limits_ticket {
    int32_t db;   /* entry + 1 */
    int32_t user; /* entry + 1 */
};

/* What holds for a link to be opened; 0: no limit. */
struct limits_max {
    int pool;
    int db;
    int user;
    int connecting; /* links of the node that are opening */
    /* How much of what is left is kept for those who wait longer. */
    int keep_pool;
    int keep_db;
    int keep_user;
    int keep_node;
};

/* Whether one of two workers has been busier than the other. Starts zeroed. */
struct limits_scale {
    int64_t looked_us; /* the last time */
    int64_t uneven_us; /* how long it was, less the time it was not */
};

/* How long one of them has to have been busier. */
#define LIMITS_UNEVEN_US 100000
/* No more than this is counted for one look. */
#define LIMITS_LOOK_US 10000

/* Which limit is in the way. */
enum limits_verdict {
    LIMITS_OK,
    LIMITS_AT_POOL,
    LIMITS_AT_DB,
    LIMITS_AT_USER,
    LIMITS_AT_NODE,
    LIMITS_AT_CONNECT, /* enough links are opening, or the node refused one a moment ago */
    LIMITS_NO_ROOM     /* the table is full */
};

/* Size of the region, and its first content. Supervisor. */
size_t limits_region_bytes(int nworkers, int max_clients);
void limits_region_init(struct shm *shm, int nworkers, int max_clients);

/* Finds or makes the entries of a pool and holds them for the worker of `ordinal`. -1 when the
 * table is full (counted). */
int limits_attach(struct shm *shm, int ordinal, int node, struct slice user, struct slice database,
    struct limits_ids *ids);
/* Lets go of them; entries that count nothing any more are free for others. */
void limits_detach(struct shm *shm, int ordinal, const struct limits_ids *ids);

/* Takes one link of `node`, which is opening from now on; the node's own limit (quota.h) counts,
 * too. Anything but LIMITS_OK: nothing was taken. */
enum limits_verdict limits_take_link(struct shm *shm, int ordinal, int node,
    const struct limits_ids *ids, const struct limits_max *max, int64_t now_us);
/* A link starts opening whose place another worker has moved here; false: not now, for `connecting`
 * links of the node are opening, or it refused one a moment ago. */
bool limits_open_moved(struct shm *shm, int ordinal, int node, int connecting, int64_t now_us);
/* The link is there or is gone: it does not count as opening any more. */
void limits_opened(struct shm *shm, int ordinal, int node);
void limits_give_link(struct shm *shm, int ordinal, int node, const struct limits_ids *ids);
/* A link goes from one worker to another: `hand_over` puts it into the other one's mailbox, and
 * says whether it has found room there; if not, nothing was moved. It is called under the lock, so
 * that who reclaims finds both the count and the message, or neither. */
bool limits_move_link(struct shm *shm, int node, const struct limits_ids *ids, int from_ordinal,
    int to_ordinal, bool (*hand_over)(void *ctx), void *ctx);

/* Counts a client of `database` and `user` in. 0, or -1 with 53300 and a text that names the limit;
 * 0 for a limit is none. */
int limits_client_add(struct shm *shm, int ordinal, struct slice database, struct slice user,
    int max_db, int max_user, struct limits_ticket *ticket, struct err *err);
/* A client goes from one worker to another, as in limits_move_link. */
bool limits_move_client(struct shm *shm, const struct limits_ticket *ticket, int from_ordinal,
    int to_ordinal, bool (*hand_over)(void *ctx), void *ctx);
/* Counts it out and clears the ticket. */
void limits_client_sub(struct shm *shm, int ordinal, struct limits_ticket *ticket);

/* Links of entry `id`, of all workers. */
int limits_used(const struct shm *shm, int id);

/* ---- what a worker publishes about an entry; only that worker writes it ---- */

/* Since when (monotonic clock, microseconds) its oldest client waits there; 0: none waits. A full
 * barrier: what is looked at after it cannot have been read before. */
void limits_set_oldest(struct shm *shm, int id, int ordinal, int64_t since_us);
/* Whether that client cannot go to another worker that has a link; no barrier. */
void limits_set_keeps(struct shm *shm, int id, int ordinal, bool keeps);
/* How many clients wait there, for SHOW; no barrier. */
void limits_set_waiting(struct shm *shm, int id, int ordinal, uint32_t nclients);
/* Clients of all workers that wait for a link of `node`. Walks over the table. */
int limits_node_waiting(const struct shm *shm, int node);
/* How many workers have somebody waiting there. */
int limits_waiting_workers(const struct shm *shm, int id);
/* Where that number stands, as long as the entry is attached. `id` is not LIMITS_NO_ENTRY. */
const _Atomic int32_t *limits_waiting_cell(const struct shm *shm, int id);
/* True when the worker of `ordinal` has somebody waiting there. */
bool limits_waits(const struct shm *shm, int id, int ordinal);
/* True when worker `other` has markedly more clients waiting for each link it has than worker
 * `own`: by half, and one. One that has none is always busier. */
bool limits_is_busier(const struct shm *shm, int id, int other, int own);
bool limits_has_links(const struct shm *shm, int id, int ordinal);
/* What worker `ordinal` said with limits_set_keeps. */
bool limits_keeps(const struct shm *shm, int id, int ordinal);
/* How many of the waiting clients of worker `other` should go to worker `own`, so that both have as
 * many for each link; when one of them has no link, `own`'s part by its links. At least one. */
int limits_surplus(const struct shm *shm, int id, int other, int own);
/* Notes whether one of two is busier at the moment; true when it is and has been for most of some
 * time. One moment says little: the clients of a worker come back many at once. */
bool limits_is_long_uneven(struct limits_scale *scale, bool is_uneven, int64_t now_us);
/* The worker but `but_not` whose client waits longest there, and since when; -1: there is none. Use
 * -1 for `but_not` to ask for all. */
int limits_find_oldest(const struct shm *shm, int id, int but_not, int64_t *since_us);
/* quota_may_swap for the entry `id`. */
bool limits_may_swap(struct shm *shm, int id, int64_t now_us, int64_t least_us);
/* How many idle links of a pool the worker has: written by it alone, as long as it knows the entry.
 * NULL: there is none. */
_Atomic int32_t *limits_idle_cell(struct shm *shm, int id, int ordinal);
/* The worker but `but_not` with the most idle links of a pool; -1: there is none. */
int limits_find_idle(const struct shm *shm, int id, int but_not);

/* Gives back everything the worker of `ordinal` held; `drop_mail` is called under the lock to throw
 * away what was on its way to it. Supervisor. */
void limits_reclaim(struct shm *shm, int ordinal, void (*drop_mail)(void *ctx), void *ctx);

/* ---- for SHOW ---- */

/* A copy of one entry. */
struct limits_row {
    enum limits_kind kind;
    int node; /* -1 for clients */
    char user[LIMITS_NAME_BYTES];
    char database[LIMITS_NAME_BYTES];
    int used;
    int waiting;      /* clients, of all workers */
    int peak;         /* most at any time since the entry exists */
    uint64_t refused; /* how often the limit was met: waits begun, logins refused */
};

/* Entries are numbered from 0 to limits_high_water() - 1; false for one that is free. */
int limits_high_water(const struct shm *shm);
bool limits_copy(const struct shm *shm, int id, struct limits_row *out);
/* How often the table was full, and how many entries it has. */
uint64_t limits_overflows(const struct shm *shm);
int limits_capacity(const struct shm *shm);
/* Workers that the table was made for. */
int limits_nworkers(const struct shm *shm);

#endif
