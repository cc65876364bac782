/* SPDX-License-Identifier: PostgreSQL
 * worker.h: the process that serves clients. */
#ifndef PGP_PROCESS_WORKER_H
#define PGP_PROCESS_WORKER_H

#include "ipc/proc.h"

/* Serves clients until told to stop. Returns the exit status. */
int worker_main(struct proc_env *env);

#endif
