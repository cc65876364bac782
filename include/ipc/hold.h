/* SPDX-License-Identifier: PostgreSQL
 * hold.h: the second stage of an online recovery of native replication: no session begins anything
 * on its servers, and those at work are waited for; and which server is ahead of the others when a
 * worker dies; region HOLD of shared memory.
 * Written by: control, who holds; each worker its own counts of who is at work, and for whom a
 * server is ahead; the supervisor, when one of them dies; the monitor, who detaches the others.
 *
 * A worker counts who begins and looks whether all are held behind that; control sets the word and
 * counts behind that. So whoever is not seen at work sees that it is held. */
#ifndef PGP_IPC_HOLD_H
#define PGP_IPC_HOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "ipc/shm.h"

/* Size of the region. */
size_t hold_region_bytes(int nworkers);
void hold_region_init(struct shm *shm, int nworkers);

/* --- workers; `ordinal` is the caller's --- */
/* Somebody is about to begin something on the servers: true: is counted, until hold_leave. False:
 * all are held, ask again. */
bool hold_enter(struct shm *shm, int ordinal);
/* What goes on in any case, such as a COMMIT whose client has gone, is counted, until hold_leave.
 */
void hold_join(struct shm *shm, int ordinal);
void hold_leave(struct shm *shm, int ordinal);
/* Something of the caller's is counted: while it has no clients, what some have left behind. */
bool hold_is_inside(const struct shm *shm, int ordinal);
/* `node` is about to do for good what the others have not been told, or may have: until
 * hold_ahead_over. Nobody else would know if the worker died meanwhile. */
void hold_ahead(struct shm *shm, int ordinal, int node);
void hold_ahead_over(struct shm *shm, int ordinal);

/* --- all --- */
bool hold_is_on(const struct shm *shm);
/* How many are at work, in all workers. */
int hold_count(const struct shm *shm);

/* --- control, in process slot `slot` --- */
void hold_begin(struct shm *shm, int slot);
/* Harmless when it is over. */
void hold_end(struct shm *shm, int slot);

/* --- supervisor --- */
/* What worker `ordinal` had counted is gone with it; a server that was ahead by it is noted. */
void hold_reclaim_worker(struct shm *shm, int ordinal);
/* The process in `slot` is dead: what it held goes on. True when it held. */
bool hold_reclaim(struct shm *shm, int slot);

/* --- supervisor, monitor --- */
/* The server that was ahead of the others when a worker died; -1: none was. It is noted until it is
 * taken. */
int hold_left_ahead(const struct shm *shm);
int hold_take_ahead(struct shm *shm);

#endif
