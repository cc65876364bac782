/* SPDX-License-Identifier: PostgreSQL
 * pidfile.h: the file that says which process is the running pgpool.
 * Runs in: supervisor (holds it), the command line tool (asks it).
 *
 * The file holds the pid in decimal and a line feed. The living process holds a record lock on it:
 * the kernel drops that lock with the process and never hands it to a child, so a pid that was
 * recycled is not mistaken for a pgpool and no file has to be believed. */
#ifndef PGP_SYS_PIDFILE_H
#define PGP_SYS_PIDFILE_H

#include "base/err.h"

enum pidfile_state {
    PIDFILE_NONE,  /* no such file */
    PIDFILE_STALE, /* nobody holds it; the pid, when one could be read, means nothing */
    PIDFILE_LIVE,  /* its process is alive */
    PIDFILE_BROKEN /* could not be opened or read; *err says why */
};

struct pidfile {
    int fd; /* -1 when not held */
    char path[4096];
};

/* Looks at `path`. *pid is the holder's (LIVE), what the file says (STALE, 0 when unreadable), or
 * 0. */
enum pidfile_state pidfile_look(const char *path, int *pid, struct err *err);
/* Takes the file for this process and writes the pid. Call it in the process that stays: a lock
 * does not survive a fork. Returns 0; or -1 with *err, *holder_pid being the process that has it or
 * 0. */
int pidfile_hold(struct pidfile *p, const char *path, int *holder_pid, struct err *err);
/* Removes and releases a file that is held; does nothing otherwise. */
void pidfile_drop(struct pidfile *p);

#endif
