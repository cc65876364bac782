/* SPDX-License-Identifier: PostgreSQL
 * recovery_run.h: runs a program for the extension's functions.
 * Runs in: a backend of PostgreSQL. */
#ifndef PGPOOL_RECOVERY_RUN_H
#define PGPOOL_RECOVERY_RUN_H

/* Runs argv[0], without a shell, in a session of its own, and waits until it ends; a cancelled
 * query ends it and all it started. Raises an ERROR that shows the end of its output when it fails.
 */
extern void recovery_run(const char *what, char *const argv[]);
/* Starts argv[0] and leaves it alone: it outlives this backend and this server. Raises an ERROR
 * when it cannot be started. */
extern void recovery_launch(const char *what, char *const argv[]);
/* The folder of the server's programs. */
extern const char *recovery_bindir(void);

#endif
