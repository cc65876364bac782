/* SPDX-License-Identifier: PostgreSQL
 * role_conf.h: how a process takes over a configuration generation.
 * Runs in: every process. */
#ifndef PGP_PROCESS_ROLE_CONF_H
#define PGP_PROCESS_ROLE_CONF_H

#include "base/err.h"
#include "ipc/proc.h"

struct conf;
struct conf_gen;
struct conf_report;

/* Sets up the log as `conf` says: destinations, prefix, level, verbosity, format, limit. */
void role_conf_apply_log(const struct conf *conf);
/* Writes every finding of a load to the log, at its level. */
void role_conf_log_report(const struct conf_report *report);
/* Reads the generation that MAIL_RELOAD carries; closes `fd`. Owned by the caller; NULL with *err.
 */
struct conf_gen *role_conf_read(int fd, struct err *err);
/* Makes the folder of pgpool.conf this process's own. Relative names of certificates begin there,
 * and libpq, which opens them, knows no other base. For processes that use libpq. `left` gets the
 * folder that is left, in which pgpool was started and its commands run; it may be NULL. */
void role_conf_stand_beside(const struct conf_gen *gen, char left[PROC_PATH_BYTES]);

#endif
