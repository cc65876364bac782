/* SPDX-License-Identifier: PostgreSQL
 * logger.h: the process that writes the files of the log (logging_collector). */
#ifndef PGP_PROCESS_LOGGER_H
#define PGP_PROCESS_LOGGER_H

#include "ipc/proc.h"

/* Runs until nobody is left who could write to it. Returns the exit status. */
int logger_main(struct proc_env *env);

#endif
