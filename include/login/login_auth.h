/* SPDX-License-Identifier: PostgreSQL
 * login_auth.h: authentication in a worker, as far as others start, reload and end it.
 * Runs in: workers; the rules about files also in the command line (pgpool --check-auth). */
#ifndef PGP_LOGIN_LOGIN_AUTH_H
#define PGP_LOGIN_LOGIN_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct conf;
struct conf_gen;
struct passwd_table;
struct proc_paths;
struct backend;
struct login_auth;
struct prep_store;
struct proc_env;

/* The worker, as far as logins need it. */
struct login_worker {
    struct backend *be;
    const struct proc_env *env;
    struct prep_store *preps;
    void *ctx;
    /* A link of this node broke. */
    void (*suspect)(void *ctx, int node);
    /* Who is asked about users: where writes go; while that is `lost`, which did not answer, and no
     * other one is known, a standby. VIEW_NO_NODE when there is none. */
    int (*ask_node)(void *ctx, int lost);
    /* Every server that is in use has been looked at since then. */
    bool (*all_asked_since)(void *ctx, int64_t since_us);
    /* Told to all workers: since when the login owes an answer that has done so for longest; 0: no
     * login does. */
    _Atomic int64_t *silent_us;
};

/* Reads the rule files and pool_passwd. Owned by the sessions. */
struct login_auth *login_auth_new(const struct login_worker *worker, const struct conf_gen *gen);
void login_auth_free(struct login_auth **sap);
/* Settings were read again: so are the files. */
void login_auth_reload(struct login_auth *sa, const struct conf_gen *gen);
/* What was asked about roles may be another thing now. */
void login_auth_forget_roles(struct login_auth *sa);
/* Who has owed an answer for so long gives his place where there are max_clients, and one more. */
#define LOGIN_SILENT_US INT64_C(1000000)

/* Sends the one away that has owed an answer for longest; false when nobody has for so long. */
bool login_auth_make_room(struct login_auth *sa);
/* HBA_WITH_... of this build. */
unsigned login_hba_flags(void);

/* What is looked up about a user. */
enum auth_lookup_kind {
    AUTH_LOOKUP_SECRET, /* by a function that the administrator made, where auth_query is empty */
    AUTH_LOOKUP_CATALOGUE, /* where there is no such function */
    AUTH_LOOKUP_ROLE,      /* is $1 a member of $2? */
    AUTH_LOOKUP_LOGIN,     /* is role $1 'locked' or 'expired'? No row: it is not there */
    AUTH_LOOKUP_KEYS,      /* the verifier of $1, behind a login that the server has judged */
    AUTH_LOOKUP_KINDS
};

/* The statement. */
const char *login_auth_sql(enum auth_lookup_kind kind);
/* True while what opens other servers for the user is being looked for. */
bool login_auth_is_learning(const struct login_auth *sa, struct slice user);
/* Who asks what, where. Strings live as long as the settings, or as the caller's. */
struct auth_way {
    const char *user;  /* empty: nobody does */
    const char *query; /* empty: the default */
    struct slice database;
    int node;        /* of pools.conf, or VIEW_NO_NODE: one of pgpool.conf */
    bool is_clients; /* `database` is the client's, whose owner decides what the query means */
};

/* How the secret of `user`, a client of `database`, is looked up. */
struct auth_way login_auth_find_way(
    const struct conf *conf, struct slice database, struct slice user);
/* How roles are looked up: memberships, whether they may log in, and what tells keys. */
struct auth_way login_auth_find_role_way(const struct conf *conf);
/* True when pool_passwd says who clients are. With auth_relay = auto it does not while all its
 * entries are of users as whom this program itself logs in. `p` may be NULL. */
bool login_auth_file_judges(const struct conf *conf, const struct passwd_table *p);
/* May the servers judge whose password is not known here? `is_asked`: auth_query would tell. */
bool login_auth_may_relay(const struct conf *conf, bool is_asked, bool file_judges);
/* Where pool_hba.conf is: as the command line says, or beside pgpool.conf. -1 when the name is too
 * long. */
int login_hba_path(
    const struct conf_gen *gen, const struct proc_paths *paths, char *out, size_t size);

#endif
