/* SPDX-License-Identifier: PostgreSQL
 * pcp_conf.h: pcp.conf, the file of those who administer: its text, line by line.
 * Runs in: control (PCP), workers (the virtual database). The file is read at every log-in, so a
 * change needs no reload. */
#ifndef PGP_AUTH_PCP_CONF_H
#define PGP_AUTH_PCP_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/slice.h"

#define PCP_CONF_NAME "pcp.conf"

/* One line that names a user. */
struct pcp_line {
    struct slice user;
    struct slice value; /* the md5 of the password and of nothing else, or a SCRAM verifier */
    bool is_scram;
};

/* Reads the file into *text (owned by the caller: mem_free_secret) and *st. -1 and *err when it
 * cannot be read, is no file, or too long. */
int pcp_conf_read(const char *path, char **text, size_t *n, struct stat *st, struct err *err);
/* Takes the next line that can be used from *text; false at the end. */
bool pcp_conf_next(struct slice *text, struct pcp_line *out);

#endif
