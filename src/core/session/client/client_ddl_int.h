/* SPDX-License-Identifier: PostgreSQL
 * client_ddl_int.h: what a client changes of roles and of the settings of databases (ALTER, RENAME
 * and DROP ROLE, ALTER DATABASE ... SET), until all workers are told; and, when it is relayed, what
 * it changes of types and names (route_ddl_of). Runs in: workers.
 *
 * They are told when it is done, so that no new session gets a link that was opened before; and
 * once more at the end of its transaction, for what was opened meanwhile saw the old state. */
#ifndef PGP_SESSION_CLIENT_DDL_INT_H
#define PGP_SESSION_CLIENT_DDL_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/retire.h"
#include "parser/parser.h"

struct client_ddl; /* NULL: nothing */

/* A statement that goes to the servers that `place` (of struct link_retire) stands for; `self` is
 * the session's user. True when it is noted. */
bool client_ddl_note(
    struct client_ddl **dp, const struct sql_stmt *st, int32_t place, struct slice self);
/* Notes what a statement changes of types and names: bits of route_ddl_of. */
void client_ddl_note_types(struct client_ddl **dp, unsigned types);
/* The exchange met an error: nothing of it holds, but for types. Harmless with NULL. */
void client_ddl_on_error(struct client_ddl *d);
/* The exchange is over: `tell` is called for each change that others have to know. Nothing is left
 * but within a transaction (`is_in_tx`), for its end. Returns the bits that others have to know. */
unsigned client_ddl_on_quiet(struct client_ddl **dp, bool is_in_tx,
    void (*tell)(void *ctx, const struct link_retire *what), void *ctx);

#endif
