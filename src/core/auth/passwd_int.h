/* SPDX-License-Identifier: PostgreSQL
 * passwd_int.h: what passwd.c and passwd_file.c share. */
#ifndef PGP_AUTH_PASSWD_INT_H
#define PGP_AUTH_PASSWD_INT_H

#include <sys/stat.h>

#include "base/err.h"
#include "crypto/secret.h"

/* Reads a regular file of at most `limit` bytes whole. */
int passwd_read_file(
    const char *path, size_t limit, struct secret *out, struct stat *st, struct err *err);

#endif
