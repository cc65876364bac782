/* SPDX-License-Identifier: PostgreSQL
 * invalidator.h: the process that follows the changes of the primary for the query cache. */
#ifndef PGP_PROCESS_INVALIDATOR_H
#define PGP_PROCESS_INVALIDATOR_H

#include "ipc/proc.h"

/* Runs until told to stop. Returns the exit status. */
int invalidator_main(struct proc_env *env);

#endif
