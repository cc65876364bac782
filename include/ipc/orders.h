/* SPDX-License-Identifier: PostgreSQL
 * orders.h: what operators ordered that outlives the command: PAUSE, DRAIN and RECONNECT, for all
 * databases or for one, in the region ORDERS of shared memory. Written by: the worker whose client
 * ordered it, or control, atomically; the supervisor when one of them dies before its PAUSE is
 * complete. Read by: all workers, also one that was started afterwards,
 * before they lend a server connection, keep one, or let a client go on.
 *
 * The questions are asked for every transaction: while nothing is ordered they cost one load from a
 * cache line that nobody writes. */
#ifndef PGP_IPC_ORDERS_H
#define PGP_IPC_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "ipc/proc.h"
#include "ipc/rows.h"
#include "ipc/shm.h"

/* Databases that can be named in orders; a name stays. */
#define ORDERS_DATABASES 1024

enum order_flag {
    ORDER_PAUSE = 1,  /* no server connection is lent, free ones are closed */
    ORDER_DRAIN = 2,  /* no client is let in, those that are here leave between two transactions */
    ORDER_DISABLE = 4 /* no client is let in; those that are here stay */
};

/* What holds for one database; an empty name stands for all. */
struct order_state {
    char database[ROWS_NAME_BYTES];
    unsigned flags;
    int64_t reconnect_us; /* monotonic clock; 0: never */
};

/* Body of MAIL_ORDER: what the receiving worker has to do at once. What lasts stands in the region.
 */
enum order_kind {
    ORDER_LOOK,          /* the region changed: act on it */
    ORDER_KILL_CLIENT,   /* end the session of client `client_id` */
    ORDER_KILL_DATABASE, /* end all sessions in `database` (empty: in all) but that of `client_id`
                          */
    ORDER_CLOSE_FREE, /* close the server connections to `database`: the free ones now, the others
                         when they are free, until ORDER_KEEP of the same client */
    ORDER_KEEP        /* what `client_id` wanted the connections closed for is over */
};
struct order_mail {
    int32_t kind;
    uint32_t client_id;
    char database[ROWS_NAME_BYTES];
};

/* Who gives an order. */
struct orders_giver {
    const char *who;   /* for the log: user "alice" */
    struct slice user; /* a role of the servers that `place` stands for; empty: none */
    int place;         /* ORDERS_OUR_SERVERS, or which server of pools.conf */
};

/* What who orders something for a database that nobody uses is told. */
#define ORDERS_UNUSED_TEXT "database \"%s\" is used by no client and no server connection here"

#define ORDERS_OUR_SERVERS (-1)
/* In the virtual database a name is no role of any server. */
#define ORDERS_NO_SERVERS (-2)
/* In place of a client's row: the order was given by none. */
#define ORDERS_NO_CLIENT (-2)

/* --- orders.c --- */
/* Size of the region. */
size_t orders_region_bytes(void);
/* Sets `flags` for `database` (empty: for all), or takes them away. Returns 0, or -1 and *err
 * (53400) when too many databases have orders. Taking away what is not set is no error. A pause
 * that is set so holds, also when somebody waits for one with a ticket and goes. */
int orders_set(struct shm *shm, struct slice database, unsigned flags, struct err *err);
void orders_clear(struct shm *shm, struct slice database, unsigned flags);
/* PAUSE of somebody who waits until it is complete, known by a ticket: that of the process in
 * `slot`. It is taken back when it was not complete by the time its giver goes, and only then. */
uint64_t orders_take_ticket(struct shm *shm, int slot);
/* Sets the flag and the ticket. As orders_set. */
int orders_set_pause(struct shm *shm, struct slice database, uint64_t ticket, struct err *err);
/* True while that pause holds and is not complete; false also when somebody ended it. */
bool orders_has_ticket(const struct shm *shm, struct slice database, uint64_t ticket);
/* The pause is complete: it holds, whoever goes. Harmless when it is over. */
void orders_end_ticket(struct shm *shm, struct slice database, uint64_t ticket);
/* The process in `slot` is dead: the pauses that it waited for are taken back. How many those were.
 * Supervisor. */
int orders_reclaim(struct shm *shm, int slot);
/* RECONNECT: connections of `database` (empty: all) opened before `now_us` (monotonic clock) are
 * not to be used for anybody else. As orders_set. */
int orders_set_reconnect(struct shm *shm, struct slice database, int64_t now_us, struct err *err);
/* Is 0 as long as nobody has ordered anything: for who asks often. Lives as long as `shm`. */
const _Atomic uint32_t *orders_mark(const struct shm *shm);
/* The flags that hold for `database`. With an empty name: those set for all. */
unsigned orders_flags(const struct shm *shm, struct slice database);
/* The flags set for exactly that: for one database, or (empty) for all. */
unsigned orders_own_flags(const struct shm *shm, struct slice database);
/* True when a free connection of `database`, opened at `opened_us`, has to be closed. */
bool orders_want_close(const struct shm *shm, struct slice database, int64_t opened_us);
/* Walks: start with *at = 0. The first is that of all databases, then every database that was ever
 * named; false at the end. */
bool orders_next(const struct shm *shm, uint32_t *at, struct order_state *out);
/* Who paused all databases was a superuser then, and no server can be asked now: so it is known. */
void orders_set_giver(struct shm *shm, struct slice user, int place);
bool orders_is_giver(const struct shm *shm, struct slice user, int place);

/* --- orders_give.c --- */
/* Tells the workers to look at the region; tells one of them something. */
void orders_tell(const struct proc_env *env);
void orders_tell_worker(const struct proc_env *env, int ordinal, const struct order_mail *m);
/* RELOAD: asks the supervisor to read the settings again; 0, or -1 and *err. Superusers of servers
 * are not masters of pgpool's settings, so it is refused outside the virtual database. */
int orders_reload(const struct proc_env *env, bool is_in_virtual, struct err *err);
/* SHUTDOWN: asks the supervisor to stop, fast or when all clients have left; as orders_reload. */
int orders_shutdown(const struct proc_env *env, bool is_in_virtual, bool waits_for_clients,
    const struct orders_giver *giver, struct err *err);
/* DISABLE, and ENABLE, which takes it back. 0, or -1 and *err (55000): it holds already, or does
 * not. */
int orders_disable(const struct proc_env *env, struct slice database, bool is_on,
    const struct orders_giver *giver, struct err *err);
/* KILL: pauses the database (empty: all), if it is not paused, and ends its sessions but that of
 * client `giver_id`. 0, or -1 and *err. */
int orders_kill_database(const struct proc_env *env, struct slice database, uint32_t giver_id,
    const struct orders_giver *giver, struct err *err);
/* WAIT_CLOSE: true when no server connection of the database (empty: of any) is left that RECONNECT
 * has replaced, other than that of `client_row`. */
bool orders_are_replaced(const struct shm *shm, struct slice database, int64_t client_row);
/* True when some client, or some server connection, is in `database`; always for all (empty).
 * Whether a database exists only a server could tell: an order for a name that is mistyped shows by
 * this. */
bool orders_database_is_used(const struct shm *shm, struct slice database);
/* An order whose giver waits until it is carried out. */
struct orders_pending {
    struct slice database;
    unsigned flag;
    uint64_t ticket; /* of a PAUSE */
};
enum orders_progress {
    ORDERS_PENDING,
    ORDERS_DONE,
    ORDERS_ENDED /* somebody else ended it meanwhile */
};
/* Begins PAUSE or DRAIN, as `p` says, and fills in its ticket: refused (55000) when it holds
 * already, for two operators must not both believe to have done it. 0, or -1 and *err. */
int orders_begin(const struct proc_env *env, struct orders_pending *p,
    const struct orders_giver *giver, struct err *err);
/* A PAUSE is done when there is no server connection but that of `client_row`, a DRAIN when there
 * are no clients but that one and superusers. With ORDERS_ENDED *err (55000) says so. */
enum orders_progress orders_look(const struct proc_env *env, const struct orders_pending *p,
    int64_t client_row, struct err *err);
/* True when nothing is left that a PAUSE or DRAIN of `database` waits for: for who looks on. */
bool orders_is_complete(const struct shm *shm, struct slice database, unsigned flag);
/* Ends a PAUSE whose giver does not wait until it is complete; harmless when that is over. */
void orders_take_back(const struct proc_env *env, const struct orders_pending *p);
/* Ends PAUSE and DRAIN of exactly what `database` names. 0, or -1 and *err (55000): neither was.
 */
int orders_resume(const struct proc_env *env, struct slice database,
    const struct orders_giver *giver, struct err *err);
/* Server connections opened until now are used for nobody else. 0, or -1 and *err. */
int orders_reconnect(const struct proc_env *env, struct slice database,
    const struct orders_giver *giver, struct err *err);

#endif
