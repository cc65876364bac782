/* SPDX-License-Identifier: PostgreSQL
 * client_title.h: a client in the title of the process that serves it, as pgpool-II's have it.
 * Runs in: workers. */
#ifndef PGP_ACCOUNT_CLIENT_TITLE_H
#define PGP_ACCOUNT_CLIENT_TITLE_H

#include "base/slice.h"
#include "ipc/rows.h"

#define TITLE_BYTES 512

/* Who it is, from where, what it does: a statement by its first word. Returns `out`, which has room
 * for TITLE_BYTES, or a text of its own. */
const char *title_of_client(
    char *out, const struct client_row *row, const struct row_names *names, struct slice statement);

#endif
