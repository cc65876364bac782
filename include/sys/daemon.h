/* SPDX-License-Identifier: PostgreSQL
 * daemon.h: goes to the background, and tells the shell that waits how the start went.
 * Runs in: supervisor, before anything else is opened. */
#ifndef PGP_SYS_DAEMON_H
#define PGP_SYS_DAEMON_H

#include "base/err.h"

/* Forks; the parent stays in here until the child calls daemon_started (exit 0) or ends before that
 * (exit with the child's status). The child returns with a session of its own, folder "/"
 * and no other descriptor above 2 than the one for daemon_started, which is returned; -1 on
 * failure. */
int daemon_detach(struct err *err);
/* The start went well: lets the waiting parent go. Closes *fd; -1 is allowed. */
void daemon_started(int *fd);

#endif
