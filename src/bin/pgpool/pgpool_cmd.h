/* SPDX-License-Identifier: PostgreSQL
 * pgpool_cmd.h: what the pgpool command does to a pgpool that runs already.
 * Runs in: the command line. Every function returns an exit status (enum pgpool_exit). */
#ifndef PGP_BIN_PGPOOL_CMD_H
#define PGP_BIN_PGPOOL_CMD_H

/* Refuses the start when the pid file has a living holder. */
int pgpool_cmd_check_pidfile(const char *pid_path);
/* Sends `signo` until the process is gone, showing that time passes. */
int pgpool_cmd_stop(const char *pid_path, int signo);
int pgpool_cmd_reload(const char *pid_path);
/* Becomes `pgpool top` with these arguments (args[0] is "top"); returns only when there is no such
 * program. */
int pgpool_cmd_top(char **args);

#endif
