/* SPDX-License-Identifier: PostgreSQL
 * control.h: the process that serves administrators (PCP). */
#ifndef PGP_PROCESS_CONTROL_H
#define PGP_PROCESS_CONTROL_H

#include "ipc/proc.h"

/* Runs until told to stop. Returns the exit status. */
int control_main(struct proc_env *env);

#endif
