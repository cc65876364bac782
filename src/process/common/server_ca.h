/* SPDX-License-Identifier: PostgreSQL
 * server_ca.h: ssl_ca_cert and ssl_ca_cert_dir as the one file of authorities that libpq knows.
 * Runs in: monitor, control, invalidator, the command line. */
#ifndef PGP_PROCESS_SERVER_CA_H
#define PGP_PROCESS_SERVER_CA_H

#include <stddef.h>

#include "base/err.h"

struct conf_gen;

/* A name that libpq cannot open: no server is believed. */
#define SERVER_CA_UNUSABLE "/dev/null/pgpool_ca.pem"

/* Brings pgpool_ca.PORT.pem in work_dir up to date, and puts its name into `path`. When that fails
 * the log says why, and the file stays in use when it is ours; else the name is one that libpq
 * cannot open, so that no server is believed. The settings must have ssl_ca_cert_dir. */
void server_ca_file(const struct conf_gen *gen, char *path, size_t room);
/* Writes the authorities to file `path`, which must not be there unless it is our own, with rights
 * for its owner alone. Returns 0, or -1 with *err. */
int server_ca_write(const struct conf_gen *gen, const char *path, struct err *err);

#endif
