/* SPDX-License-Identifier: PostgreSQL
 * greetings.h: what servers said at a login, for clients that are let in without asking one. Runs
 * in: workers; the supervisor plans the region GREETINGS. Knows clients by their kind alone. */
#ifndef PGP_KNOWN_GREETINGS_H
#define PGP_KNOWN_GREETINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/paramset.h"
#include "base/slice.h"
#include "ipc/shm.h"

struct loop;
struct pool;
struct varset;

/* ---- in this worker ---- */

struct greetings;

/* What decides what is said to a client. */
struct greeting_kind {
    struct pool *pool;
    struct varset *base;      /* its start-up parameters as settings */
    struct slice application; /* the name that it logs in with; p == NULL: none */
    uint16_t serial;          /* changes with what servers say of what nobody has SET */
};

/* `shm`, `loop`: live longer. */
struct greetings *greetings_new(struct shm *shm, struct loop *loop, int ordinal, int nworkers);
void greetings_free(struct greetings **gs);
/* What servers say may be other things from now on: they are asked. */
void greetings_forget(struct greetings *gs);

/* Is anything known for the kind: start-up parameters are the same, but for a name of an
 * application of which a server makes nothing else? With `is_old` that may be what was said long
 * ago: the client's first link puts it right, as after a reload. */
bool greeting_find(struct greetings *gs, struct greeting_kind of, bool is_old);
/* The parameters of the greeting that greeting_find has found; none when it has found none. */
const struct paramset *greeting_parameters(struct greetings *gs, struct greeting_kind of);
/* The greeting was said a short time ago: what it says of the role may be believed. */
bool greeting_is_fresh(struct greetings *gs, struct greeting_kind of);
/* greeting_kind.serial at that time. */
uint16_t greeting_serial(struct greetings *gs, struct greeting_kind of);
/* A link has just said so: for the next ones of the kind, in all workers. */
void greeting_learn(struct greetings *gs, struct greeting_kind of, const struct paramset *reported);
/* No server has said so: it is told to this client, and to those that no server can be had for. */
void greeting_make_up(
    struct greetings *gs, struct greeting_kind of, const struct paramset *reported);
/* Another worker may have seen of late that the server lets the pool's user in unasked. */
void greeting_learn_trust(struct greetings *gs, struct pool *pool);

/* Reported under its own name, but changed by another setting, or another user. */
bool greeting_is_of_user(struct slice name);
/* True when that setting, as ParameterStatus names it, is among `vars`. */
bool greeting_is_set(const struct varset *vars, struct slice name);

/* ---- between workers ---- */

/* What a server said to one kind of clients, and whether it let the pool's user in unasked. */
struct greeting {
    struct slice pool;     /* which one: the first bytes of `kind` */
    struct slice kind;     /* all that decides what a server says */
    struct slice reported; /* paramset_bytes */
    int64_t seen_us;
    int64_t auth_seen_us;
    uint8_t auth; /* enum link_auth, seen then */
};

/* The region GREETINGS. Supervisor. */
size_t greeting_region_bytes(int nworkers);
/* The table of a new worker: what the one before it knew is still true. */
void greeting_worker_init(struct shm *shm, int ordinal);
/* Into the table of `ordinal`; what was seen longest ago makes room. Not what is too long. Only
 * that worker calls it. */
void greeting_put(struct shm *shm, int ordinal, const struct greeting *g);
/* The newest one of that kind of any worker into *reported. Returns when that was seen; -1: there
 * is none. */
int64_t greeting_get(
    const struct shm *shm, int nworkers, struct slice kind, struct paramset *reported);
/* When any worker last saw a server let in the user of that pool unasked; -1: it did not, or has
 * asked for something since. */
int64_t greeting_get_trust(const struct shm *shm, int nworkers, struct slice pool);
/* The counter of a row, for tests. */
struct shm_seq *greeting_seq(struct shm *shm, int ordinal, int row);

#endif
