/* SPDX-License-Identifier: PostgreSQL
 * pgpool_tls_none.c: the same without OpenSSL: what libpq encrypts cannot be read.
 * Runs in: the command line. */
#include "config.h"

#include "bin/pgpool/pgpool_tls.h"

ssize_t pgpool_tls_read(PGconn *c, char *p, size_t n)
{
    (void)c;
    (void)p;
    (void)n;
    return -1;
}
