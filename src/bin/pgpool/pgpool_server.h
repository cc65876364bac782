/* SPDX-License-Identifier: PostgreSQL
 * pgpool_server.h: questions of the command line to one server.
 * Runs in: the command line. Everything here waits for the server, for a few seconds at most. */
#ifndef PGP_BIN_PGPOOL_SERVER_H
#define PGP_BIN_PGPOOL_SERVER_H

#include <libpq-fe.h>
#include <stddef.h>

#include "auth/auth_plan.h"
#include "auth/hba.h"

struct conf_node;

/* Logs in; NULL with the server's words in `text`. Free with PQfinish. */
PGconn *server_connect(const struct conf_node *node, const char *user, const char *database,
    const char *password, char *text, size_t size);
/* What the server asks the user for; AUTH_SERVER_UNKNOWN with its words when it refuses at once. */
enum auth_server server_ask_method(
    const struct conf_node *node, const char *user, const char *database, char *text, size_t size);
/* Runs auth_query (empty: the default ones). 1 with *out, 0: no password, -1 with *err. */
int server_look_up(
    PGconn *c, const char *query, const char *user, struct cred *out, struct err *err);
/* Is the user a member of the role? HBA_FAIL when that cannot be said. */
enum hba_answer server_in_role(PGconn *c, const char *user, struct slice role);

#endif
