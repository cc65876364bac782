/* SPDX-License-Identifier: PostgreSQL
 * monitor.h: the process that watches the servers. */
#ifndef PGP_PROCESS_MONITOR_H
#define PGP_PROCESS_MONITOR_H

#include "ipc/proc.h"

/* Runs until told to stop. Returns the exit status. */
int monitor_main(struct proc_env *env);

#endif
