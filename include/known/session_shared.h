/* SPDX-License-Identifier: PostgreSQL
 * session_shared.h: what sessions of all workers have in common in shared memory: how many clients
 * there are, which numbers they are given, what was counted per node, what DDL may have changed.
 * Runs in: workers, each of which writes its own row, and whoever reads; the supervisor plans and
 * fills the regions, and gives back what a dead worker held. Knows nothing of clients. */
#ifndef PGP_KNOWN_SESSION_SHARED_H
#define PGP_KNOWN_SESSION_SHARED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "ipc/shm.h"

struct conf;
struct session_shared;

/* ---- the supervisor's ---- */

/* Adds the sizes of all regions that sessions and their links need for `nworkers` workers. */
void session_plan_shm(const struct conf *conf, int nworkers, struct shm_plan *plan);
/* Fills the regions just made (limits, row counts). Once, before the first fork. */
void session_init_shm(const struct conf *conf, int nworkers, struct shm *shm);
/* Gives back what the dead worker of `ordinal` held: client rows, link rows, quotas; `drop_mail`
 * throws away what was on its way to it. */
void session_reclaim_worker(struct shm *shm, int ordinal, void (*drop_mail)(void *ctx), void *ctx);

/* ---- clients ---- */

/* Counts one more client of the worker of `ordinal`. False: `limit` are there, of all workers. */
bool session_count_add(struct session_shared *s, int ordinal, int limit);
void session_count_sub(struct session_shared *s, int ordinal);
void session_count_move(struct session_shared *s, int from_ordinal, int to_ordinal);
/* Clients of all workers. */
int session_count_all(const struct shm *shm);
/* session_count_add for those in the virtual database, who are no clients. */
bool session_admin_add(struct session_shared *s, int ordinal, int limit);
void session_admin_sub(struct session_shared *s, int ordinal);
/* Since when the login of that worker that has been silent for longest owes an answer; 0: none. */
_Atomic int64_t *session_silent_cell(struct session_shared *s, int ordinal);
/* The worker of the one that has been silent for longest of all, since before `before_us`, which
 * nobody else is given until that worker has looked again; -1: there is none. */
int session_take_silent(struct session_shared *s, int64_t before_us);
/* An int4, not 0, that no client has had lately: a worker's clients may be elsewhere when it dies,
 * and its successor must not give their numbers again. */
uint32_t session_next_client_id(struct session_shared *s, int ordinal);
/* When (loop_now_us) a client was sent from one worker to another the last time. */
void session_note_move(struct session_shared *s, int64_t now_us);
int64_t session_moved_us(const struct session_shared *s);
/* An evenly distributed number for the next session's choice of a node. */
uint64_t session_next_choice(struct session_shared *s);
/* True once an hour, among all workers, for each user: something is to be said about it. */
bool session_tells_again(struct session_shared *s, struct slice user, int64_t now_us);

/* ---- DDL ---- */

/* How often DDL may have given types or columns another meaning, as far as pgpool has seen it. */
uint64_t session_type_changes(const struct session_shared *s);
/* How often DDL may have made a table, a function or the like that hides another one. */
uint64_t session_name_changes(const struct session_shared *s);
/* DDL (route_ddl_of) is over that may have done so. */
void session_ddl_done(struct session_shared *s, unsigned ddl);
/* A server says so, which counts once in `pause_us`. */
void session_types_stale(struct session_shared *s, int64_t now_us, int64_t pause_us);

/* ---- what SHOW POOL_BACKEND_STATS counts ---- */

enum count_kind {
    COUNT_SELECT,
    COUNT_INSERT,
    COUNT_UPDATE,
    COUNT_DELETE,
    COUNT_DDL,
    COUNT_OTHER,
    COUNT_PANIC,
    COUNT_FATAL,
    COUNT_ERROR,
    COUNT_KINDS
};

static inline bool count_is_of_rows(enum count_kind kind)
{
    return kind <= COUNT_DELETE;
}

/* The kind of a statement by its first word, cheaply. */
enum count_kind count_kind_of(struct slice sql);
/* One more, by the worker of `ordinal`, on `node`; not for a server of pools.conf. */
void session_count(struct session_shared *s, int ordinal, int node, enum count_kind kind);
/* The sum over all workers. */
uint64_t session_count_sum(const struct shm *shm, int node, enum count_kind kind);

#endif
