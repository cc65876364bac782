/* SPDX-License-Identifier: PostgreSQL
 * logfile.h: one log file and its rotation by age and size.
 * Runs in: logger. */
#ifndef PGP_PROCESS_LOGFILE_H
#define PGP_PROCESS_LOGFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define LOGFILE_PATH_BYTES 4096

struct logfile_opts {
    char folder[LOGFILE_PATH_BYTES];
    char pattern[LOGFILE_PATH_BYTES]; /* of strftime */
    unsigned mode;
    bool truncate;     /* a file that exists is emptied when time rotates */
    int64_t age_ms;    /* 0: no limit */
    int64_t max_bytes; /* 0: no limit */
};

struct logfile {
    struct logfile_opts opts;
    int fd; /* -1: could not be opened; lines go to standard error until it can */
    char path[2 * LOGFILE_PATH_BYTES];
    int64_t bytes;
    int64_t rotate_at_bytes;   /* 0 never */
    int64_t rotate_at_wall_us; /* 0 never */
    int64_t retry_at_wall_us;  /* while fd is -1 */
    int write_error;           /* why the last write to the file failed, 0: it did not */
    unsigned long failed_writes;
};

enum logfile_reason { LOGFILE_START, LOGFILE_AGE, LOGFILE_SIZE, LOGFILE_ASKED };

void logfile_init(struct logfile *f, const struct logfile_opts *opts);
void logfile_fini(struct logfile *f);
/* Takes new settings; returns true when folder or pattern changed, so that it should be rotated. */
bool logfile_set_opts(struct logfile *f, const struct logfile_opts *opts);
/* Is the file no longer where it was: moved or removed, as by a tool that rotates logs? */
bool logfile_is_elsewhere(const struct logfile *f);
/* Opens the file whose turn it is at `wall_us`. On failure the old one stays in use; -1 with *err.
 */
int logfile_rotate(struct logfile *f, enum logfile_reason reason, int64_t wall_us, struct err *err);
/* What calls for a rotation now; false: nothing. */
bool logfile_is_due(const struct logfile *f, int64_t wall_us, enum logfile_reason *reason);
/* Milliseconds until time calls for one, -1: never. */
int logfile_wait_ms(const struct logfile *f, int64_t wall_us);
/* Writes `n` bytes, to standard error when there is no file or the disk refuses them. */
void logfile_write(struct logfile *f, const char *p, size_t n);

#endif
