/* SPDX-License-Identifier: PostgreSQL
 * recovery_job.h: online recovery: a lost node is rebuilt from the primary and given back.
 * Runs in: control. One at a time; it goes on when who asked for it is gone. */
#ifndef PGP_PROCESS_RECOVERY_JOB_H
#define PGP_PROCESS_RECOVERY_JOB_H

#include <stdint.h>

#include "base/err.h"
#include "cluster/recovery.h"

struct control;
struct recovery_job;

/* Tells of those that ended with the process that ran them: at the start. */
void recovery_job_bury(struct control *ctl);
/* True while a failover or a switchover is under way, and until the monitor has taken up a node
 * that a reload has added: a recovery waits for that. */
bool recovery_job_must_wait(struct control *ctl, int node);
/* Begins the recovery of `node`, asked for by `who`. Returns its number (recovery_copy tells of
 * it), or 0 with *err when it may not be begun. */
uint64_t recovery_job_start(struct control *ctl, int node, const char *who, struct err *err);
/* Fills *out with the recovery of that number; false when it is forgotten. */
bool recovery_job_find(struct control *ctl, uint64_t number, struct recovery_row *out);
/* Ends a recovery that runs: the process stops. */
void recovery_job_stop(struct control *ctl);

#endif
