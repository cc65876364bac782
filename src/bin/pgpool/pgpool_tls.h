/* SPDX-License-Identifier: PostgreSQL
 * pgpool_tls.h: reads what a server says first through the TLS that libpq has set up.
 * Runs in: the command line. */
#ifndef PGP_BIN_PGPOOL_TLS_H
#define PGP_BIN_PGPOOL_TLS_H

#include <libpq-fe.h>
#include <stddef.h>
#include <sys/types.h>

/* Up to n bytes; 0: nothing yet, wait for the socket; -1: no more will come. */
ssize_t pgpool_tls_read(PGconn *c, char *p, size_t n);

#endif
