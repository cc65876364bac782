/* SPDX-License-Identifier: PostgreSQL
 * watchdog.h: the process through which several pgpools act as one. */
#ifndef PGP_PROCESS_WATCHDOG_H
#define PGP_PROCESS_WATCHDOG_H

#include "ipc/proc.h"

/* Runs until told to stop. Returns the exit status. */
int watchdog_main(struct proc_env *env);

#endif
