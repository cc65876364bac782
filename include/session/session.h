/* SPDX-License-Identifier: PostgreSQL
 * session.h: what processes may see of the session module.
 * Runs in: worker (all of it), supervisor (planning shared memory, giving back a dead worker's
 * share). */
#ifndef PGP_SESSION_SESSION_H
#define PGP_SESSION_SESSION_H

#include "ipc/shm.h"

struct conf;

/* Adds the sizes of the regions CLIENTS, LINKS, QUOTAS and STATS for `nworkers` workers. */
void session_plan_shm(const struct conf *conf, int nworkers, struct shm_plan *plan);
/* Fills the regions just made (limits, row counts). Supervisor, once, before the first fork. */
void session_init_shm(const struct conf *conf, int nworkers, struct shm *shm);
/* Gives back what the dead worker of `ordinal` held: client rows, link rows, quotas. Supervisor. */
void session_reclaim_worker(struct shm *shm, int ordinal);

#endif
