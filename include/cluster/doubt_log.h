/* SPDX-License-Identifier: PostgreSQL
 * doubt_log.h: the files in which workers write what they have decided to commit (doubt.h).
 * Runs in: workers, on a thread (these functions wait for the disk); control, which reads them.
 * A worker locks its file for as long as it lives. */
#ifndef PGP_CLUSTER_DOUBT_LOG_H
#define PGP_CLUSTER_DOUBT_LOG_H

#include <limits.h>
#include <sys/types.h>

#include "cluster/doubt.h"

struct doubt_log {
    int fd;
    off_t bytes;    /* what of it is sure */
    bool is_named;  /* its name in the folder is on disk */
    bool is_broken; /* nobody knows what is in it: it takes no more */
    char path[PATH_MAX];
};

/* Makes the file of `owner` in `dir`, or takes it up, and locks it. */
int doubt_log_open(
    struct doubt_log *log, const char *dir, const struct doubt_owner *owner, struct err *err);
/* Appends; 0: it is on disk. -1: it is not, and will not be; -2: nobody knows. */
int doubt_log_append(struct doubt_log *log, struct slice text, struct err *err);
/* Puts `text` in the place of all that is in the file. -1: it is as it was; -2: nobody knows. */
int doubt_log_replace(struct doubt_log *log, struct slice text, struct err *err);
void doubt_log_close(struct doubt_log *log);

/* Whether the process of `owner` has the file still. */
bool doubt_log_is_held(const char *dir, const struct doubt_owner *owner);
/* Appends what the file says; nothing when there is none. -1: it cannot be read. */
int doubt_log_read(
    const char *dir, const struct doubt_owner *owner, struct buf *out, struct err *err);
/* Removes the file, unless its process has it still or `is_needed` says so of what stands in it.
 * Who takes it up meanwhile gets a new one. */
void doubt_log_tidy(const char *dir, const struct doubt_owner *owner,
    bool (*is_needed)(void *ctx, struct slice text), void *ctx);
/* Calls `fn` for each file of `instance` in the folder. */
int doubt_log_each(const char *dir, uint64_t instance,
    void (*fn)(void *ctx, const struct doubt_owner *owner), void *ctx, struct err *err);

/* The number of the pgpool whose folder this is: what the file says, else `candidate`, which is
 * written there. -1 with *err. */
int doubt_log_instance(const char *dir, uint64_t candidate, uint64_t *out, struct err *err);

#endif
