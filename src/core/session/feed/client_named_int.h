/* SPDX-License-Identifier: PostgreSQL
 * client_named_int.h: the names of a relayed session's prepared statements. */
#ifndef PGP_SESSION_CLIENT_NAMED_INT_H
#define PGP_SESSION_CLIENT_NAMED_INT_H

#include "base/hash.h"
#include "ipc/stmtstats.h"
#include "client_int.h"

struct named_statement {
    struct hash_node node;
    char *sql;
    stmtstats_handle counted; /* in the figures */
    uint32_t len;
    uint8_t kind; /* enum count_kind */
    char name[];
};

struct client_named;

/* A Parse gives a statement this name, in place of an older one; *np is made when there is none. */
void client_named_add(
    struct client_named **np, struct slice name, struct slice sql, enum count_kind kind);
/* NULL: there is none, or it is not known. `names` may be NULL. */
struct named_statement *client_named_find(const struct client_named *names, struct slice name);
void client_named_remove(struct client_named *names, struct slice name);
void client_named_free(struct client_named **np);

#endif
