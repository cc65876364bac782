/* SPDX-License-Identifier: PostgreSQL
 * pgpool_opts.h: options of the pgpool command.
 * Runs in: the command line. */
#ifndef PGP_BIN_PGPOOL_OPTS_H
#define PGP_BIN_PGPOOL_OPTS_H

#include <stdbool.h>

#include "ipc/proc.h"

enum pgpool_command { PGPOOL_START, PGPOOL_STOP, PGPOOL_RELOAD };

enum pgpool_exit {
    PGPOOL_EXIT_OK = 0,
    PGPOOL_EXIT_USAGE = 1,
    PGPOOL_EXIT_FAILED = 1,
    PGPOOL_EXIT_FATAL = 3 /* pgpool-II's status for FATAL */
};

enum pgpool_opts_result {
    PGPOOL_OPTS_RUN,  /* go on */
    PGPOOL_OPTS_DONE, /* help or version was printed */
    PGPOOL_OPTS_WRONG /* what is wrong was printed */
};

struct pgpool_opts {
    enum pgpool_command command;
    char conf_file[PROC_PATH_BYTES]; /* absolute */
    struct proc_paths paths;
    const char *settings;       /* further settings in the grammar of the file, or NULL */
    const char *describe;       /* what to describe, or NULL */
    const char *check_auth;     /* user whose login is to be checked, or NULL */
    const char *check_database; /* or NULL: the user's name */
    const char *import_file;    /* pgbouncer.ini to import, or NULL */
    const char *import_folder;  /* where to, or NULL: here */
    int stop_signal;
    bool foreground;
    bool check_config;
    bool discard_status;
    bool clear_oidmaps;
    bool debug_assertions;
    bool is_witness;
    bool is_debug;
};

/* Reads the command line. Strings in *out are argv's or static. */
enum pgpool_opts_result pgpool_opts_parse(int argc, char **argv, struct pgpool_opts *out);

#endif
