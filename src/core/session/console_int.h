/* SPDX-License-Identifier: PostgreSQL
 * console_int.h: the virtual database, behind which no server stands: somebody can always look.
 * Runs in: workers. Its clients take nothing of any limit but reserved_admin, and need no server at
 * any step. */
#ifndef PGP_SESSION_CONSOLE_INT_H
#define PGP_SESSION_CONSOLE_INT_H

#include "admin/admin.h"
#include "client_int.h"

enum console_right { CONSOLE_NOT_IN, CONSOLE_MAY_LOOK, CONSOLE_MAY_ALL };

/* What there is of a client of the virtual database, from its start-up packet on. */
struct client_console {
    char tx;       /* as in ReadyForQuery */
    uint8_t right; /* enum console_right; who is in has one of the places of reserved_admin */
    struct login_console login;
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
    /* The client has passed its login. */
    void (*enter)(struct client *c, bool may_all);
    /* May the command run now, and what may it see? 0, or -1 and *err. */
    int (*prepare)(const struct client *c, const struct admin_cmd *cmd, struct admin_sources *src,
        struct err *err);
    /* The command was run, or failed (both NULL): what becomes of the transaction, which is one by
     * name only. */
    void (*note)(struct client *c, const struct admin_cmd *cmd, struct admin_result *res);
    void (*free)(struct client *c);
};

/* console.c: client_kind.feed. */
void console_feed(struct client *c, const char *p, const char *end);

#endif
