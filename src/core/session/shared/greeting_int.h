/* SPDX-License-Identifier: PostgreSQL
 * greeting_int.h: what servers said at a login, for clients that are let in without asking one.
 * Private to the session module. Runs in: workers; the supervisor plans the region GREETINGS. */
#ifndef PGP_SESSION_GREETING_INT_H
#define PGP_SESSION_GREETING_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/paramset.h"
#include "base/slice.h"
#include "ipc/shm.h"

struct client;
struct pool;
struct sessions;
struct greeting_said;

/* ---- greeting.c: in this worker ---- */

/* What is known for the client's kind: it has the same start-up parameters, but for a name of an
 * application of which a server makes nothing else. NULL: nothing. With `is_old` that may be what
 * was said long ago: the client's first link puts it right, as after a reload. */
const struct greeting_said *greeting_find(struct client *c, bool is_old);
/* Its parameters, as found before; none when it was not. */
const struct paramset *greeting_parameters(const struct client *c);
/* They were said a short time ago: what they say of the role may be believed. */
bool greeting_is_fresh(const struct client *c);
/* sessions.defaults_serial at that time. */
uint16_t greeting_serial(const struct client *c);
/* The client's link has just said so: for the next ones of its kind, in all workers. */
void greeting_learn(struct client *c);
/* No server has said so: it is told to this client, and to those that no server can be had for. */
void greeting_make_up(struct client *c, const struct paramset *reported);
/* Another worker may have seen of late that the server lets the pool's user in unasked. */
void greeting_learn_trust(struct client *c);
/* What servers say may be other things from now on: they are asked. */
void greeting_forget(struct sessions *ss);
void greeting_fini(struct sessions *ss);

/* ---- greeting_shm.c: between workers ---- */

/* What a server said to one kind of clients, and whether it let the pool's user in unasked. */
struct greeting {
    struct slice pool;     /* which one: the first bytes of `kind` */
    struct slice kind;     /* all that decides what a server says */
    struct slice reported; /* paramset_bytes */
    int64_t seen_us;
    int64_t auth_seen_us;
    uint8_t auth; /* enum link_auth, seen then */
};

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

/* exchange_login.c: forgets the start-up packet that came last. */
struct sessions;
void exchange_login_forget(struct sessions *ss);

#endif
