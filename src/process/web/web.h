/* SPDX-License-Identifier: PostgreSQL
 * web.h: the process that answers HTTP. */
#ifndef PGP_PROCESS_WEB_H
#define PGP_PROCESS_WEB_H

#include "ipc/proc.h"

/* Runs the web process; returns its exit status. */
int web_main(struct proc_env *env);

#endif
