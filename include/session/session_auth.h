/* SPDX-License-Identifier: PostgreSQL
 * session_auth.h: authentication in a worker, as far as others start, reload and end it.
 * Runs in: workers; the rules about files also in the command line (pgpool --check-auth). */
#ifndef PGP_SESSION_SESSION_AUTH_H
#define PGP_SESSION_SESSION_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct conf;
struct conf_gen;
struct passwd_table;
struct proc_paths;
struct session_auth;
struct sessions;

/* Reads the rule files and pool_passwd. Owned by the sessions. */
struct session_auth *session_auth_new(struct sessions *ss);
void session_auth_free(struct session_auth **sap);
/* Settings were read again: so are the files. */
void session_auth_reload(struct session_auth *sa);
/* HBA_WITH_... of this build. */
unsigned session_hba_flags(void);
/* The query that finds a user's secret when auth_query is empty: a function that the administrator
 * made, or (`fallback`) the catalogue. And the one that says whether user $1 is in role $2. */
const char *session_auth_default_query(bool fallback);
const char *session_auth_role_query(void);
/* The one that says whether role $1 is 'locked' or 'expired'; no row: it is not there. */
const char *session_auth_login_query(void);
/* Who asks what, where. Strings live as long as the settings, or as the caller's. */
struct auth_way {
    const char *user;  /* empty: nobody does */
    const char *query; /* empty: the default */
    struct slice database;
    int node; /* of pools.conf, or VIEW_NO_NODE: one of pgpool.conf */
};

/* How the secret of `user`, a client of `database`, is looked up. */
void session_auth_find_way(
    const struct conf *conf, struct slice database, struct slice user, struct auth_way *out);
/* The same for roles: memberships, and whether they may log in. */
void session_auth_find_role_way(const struct conf *conf, struct auth_way *out);
/* True when pool_passwd says who clients are. With auth_relay = auto it does not while all its
 * entries are of users as whom this program itself logs in. `p` may be NULL. */
bool session_auth_file_judges(const struct conf *conf, const struct passwd_table *p);
/* May the servers judge whose password is not known here? `is_asked`: auth_query would tell. */
bool session_auth_may_relay(const struct conf *conf, bool is_asked, bool file_judges);
/* Where pool_hba.conf is: as the command line says, or beside pgpool.conf. -1 when the name is too
 * long. */
int session_hba_path(
    const struct conf_gen *gen, const struct proc_paths *paths, char *out, size_t size);

#endif
