/* SPDX-License-Identifier: PostgreSQL
 * console_int.h: the virtual database, behind which no server stands: somebody can always look.
 * Runs in: workers. Its clients take nothing of any limit but reserved_admin, and need no server at
 * any step. */
#ifndef PGP_CONSOLE_INT_H
#define PGP_CONSOLE_INT_H

#include "admin/admin.h"
#include "session_int.h"

struct client_auth;

/* Of a client that asks for the virtual database, from its start-up packet on. */
struct client_console {
    char tx;           /* as in ReadyForQuery */
    bool is_in;        /* it has one of the places of reserved_admin */
    bool may_all;      /* admin_users and pcp.conf; else it may only look */
    bool is_pcp;       /* judged by pcp.conf */
    bool pcp_is_scram; /* which has a verifier, not the md5 of a password */
};

static inline struct client_console *client_console(const struct client *c)
{
    return c->rare == NULL ? NULL : c->rare->console;
}

/* What a session asks of the virtual database: sessions.console, NULL where there is none. By
 * pointers, so that the rest of the session needs none of its files. */
struct console_ops {
    /* The client asks for it (names are in c->login): it is taken over, or false. */
    bool (*take)(struct client *c);
    /* The line of pool_hba.conf is known, or there is none: goes on with client_auth_plan. */
    void (*find_secret)(struct client_auth *a);
    /* Makes a->plan from what was found; false when the client was told that it cannot be. */
    bool (*plan)(struct client_auth *a);
    /* It has passed. */
    void (*enter)(struct client_auth *a);
    /* Bytes of a client in its session. */
    void (*feed)(struct client *c, const char *p, const char *end);
    /* May the command run now, and what may it see? 0, or -1 and *err. */
    int (*prepare)(const struct client *c, const struct admin_cmd *cmd, struct admin_sources *src,
        struct err *err);
    /* It was run, or failed (both NULL): what becomes of the transaction, which is one by name
     * only. */
    void (*note)(struct client *c, const struct admin_cmd *cmd, struct admin_result *res);
    void (*free)(struct client *c);
};

/* console_name.c */
/* Is this the name of the virtual database? Not if pools.conf names it. */
bool console_is_named(const struct conf *conf, struct slice database);

/* console_auth.c: members of console_ops. */
void console_find_secret(struct client_auth *a);
bool console_plan(struct client_auth *a);
/* True when the one who has passed may use all commands. */
bool console_may_all(const struct client_auth *a);

#endif
