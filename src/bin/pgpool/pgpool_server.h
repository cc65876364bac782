/* SPDX-License-Identifier: PostgreSQL
 * pgpool_server.h: questions of the command line to one server.
 * Runs in: the command line. Everything here waits for the server, for a few seconds at most. */
#ifndef PGP_BIN_PGPOOL_SERVER_H
#define PGP_BIN_PGPOOL_SERVER_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>

#include "auth/auth_plan.h"
#include "auth/hba.h"
#include "ipc/proc.h"

struct conf_gen;

/* A server of pgpool.conf or of pools.conf, and how it is reached. */
struct server_target {
    int node;
    const char *host; /* empty: the Unix socket in /tmp */
    int port;
    int ssl_mode; /* enum conf_ssl_mode, as links take it */
    char ca[PROC_PATH_BYTES];
    char crl[PROC_PATH_BYTES];
    char cert[PROC_PATH_BYTES];
    char key[PROC_PATH_BYTES];
    const char *min_tls; /* in libpq's words; empty: as libpq has it */
};

/* Fills *t for `node`; false when there is no such server. What is in ssl_ca_cert_dir is put into a
 * file of this process, which server_forget removes. */
bool server_find(const struct conf_gen *gen, int node, struct server_target *t);
void server_forget(void);
/* Logs in; NULL with the server's words in `text`. Free with PQfinish. */
PGconn *server_connect(const struct server_target *t, const char *user, const char *database,
    const char *password, char *text, size_t size);
/* What the server asks the user for, over TLS where the mode says so; AUTH_SERVER_UNKNOWN with its
 * words when it refuses at once, or cannot be reached in that way. */
enum auth_server server_ask_method(
    const struct server_target *t, const char *user, const char *database, char *text, size_t size);
/* Runs auth_query (empty: the default ones). 1 with *out, 2: the user is known and has no password
 * that holds, 0: no such user, -1 with *err. */
int server_look_up(
    PGconn *c, const char *query, const char *user, struct cred *out, struct err *err);
/* Is the user a member of the role? HBA_FAIL when that cannot be said. */
enum hba_answer server_in_role(PGconn *c, const char *user, struct slice role);
/* May the role log in? False with *is_expired when its password is too old. */
bool server_may_log_in(PGconn *c, const char *user, bool *is_expired);
/* Is the database there, and may the user connect to it? False with words in `text`; true also when
 * that cannot be said. */
bool server_may_connect(PGconn *c, const char *user, const char *database, char *text, size_t size);

#endif
