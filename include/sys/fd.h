/* SPDX-License-Identifier: PostgreSQL
 * fd.h: small things about descriptors.
 * Runs in: every process. */
#ifndef PGP_SYS_FD_H
#define PGP_SYS_FD_H

#include <stddef.h>

#include "base/err.h"

/* Sets or clears O_NONBLOCK / FD_CLOEXEC; 0 or -1 with errno. */
int fd_set_nonblock(int fd, int on);
int fd_set_cloexec(int fd, int on);
/* Closes *fd when it is open and sets it to -1. */
void fd_close(int *fd);
/* Closes every descriptor above 2 that is not in keep[0..n); sorts `keep`. */
void fd_close_others(int *keep, size_t n);
/* Writes all of it to a blocking descriptor; 0 or -1 with errno. */
int fd_write_all(int fd, const void *p, size_t n);
/* Points descriptors 0, 1 and 2, or those that are closed, at /dev/null. */
int fd_null_stdio(int also_open_ones, struct err *err);
/* Makes a sealed, unnamed file in memory that holds `n` bytes at `p`: readers can trust that it
 * does not change. Several processes may read it: use pread. Returns the descriptor or -1. */
int fd_of_text(const char *name, const void *p, size_t n, struct err *err);
/* Raises the soft limit of open descriptors to the hard one; returns the limit. */
long fd_raise_limit(void);

#endif
