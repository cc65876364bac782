/* SPDX-License-Identifier: PostgreSQL
 * supervisor.h: the first process: opens what all share, forks the others, watches over them.
 * Runs in: supervisor. Never touches a client's bytes, SQL, TLS or passwords. */
#ifndef PGP_PROCESS_SUPERVISOR_H
#define PGP_PROCESS_SUPERVISOR_H

#include <stdbool.h>

#include "ipc/proc.h"

struct conf_gen;
struct conf_report;
struct err;

struct sup_opts {
    struct proc_paths paths;
    bool foreground;            /* -n */
    bool discard_status;        /* -D */
    bool clear_oidmaps;         /* -C */
    bool is_witness;            /* --witness: the watchdog alone */
    proc_main_fn *const *mains; /* by role; the supervisor's own entry is not used */
};

#define SUP_EXIT_OK    0
#define SUP_EXIT_FATAL 3 /* pgpool-II's status for FATAL at the start */

/* sup_check.c: 0 when certificates and keys are usable, with a WARNING in *err when clients will
 * not like the certificate; -1 and *err says which is not. */
int sup_check_files(const struct conf_gen *gen, struct err *err);

/* sup_try.c: reports what on this host would keep pgpool from starting with `gen`. */
void sup_try_start(const struct conf_gen *gen, struct conf_report *report);

/* Runs pgpool with generation `gen`, which it takes over, until told to stop. Returns the exit
 * status; in a child process it does not return. */
int sup_main(const struct sup_opts *opts, struct conf_gen *gen);

#endif
