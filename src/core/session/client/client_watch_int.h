/* SPDX-License-Identifier: PostgreSQL
 * client_watch_int.h: statements that the connections of all workers have to know of. Runs in:
 * workers. */
#ifndef PGP_SESSION_CLIENT_WATCH_INT_H
#define PGP_SESSION_CLIENT_WATCH_INT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct client;
struct sessions;

/* Looks at a statement that goes to a server: DROP DATABASE, and what else needs a database to
 * itself (its new name or place, a copy of it), closes the free server connections to that database
 * in all workers. The server waits some seconds for them to go before it refuses.
 * What it changes of roles is noted (client_ddl.c). */
void client_watch_statement(struct client *c, struct slice sql);
/* client_watch_statement of a relayed session; what it changes of types is noted, too. */
void client_watch_relayed(struct client *c, struct slice sql);
/* What the client asked for is over, done or refused: nothing has to go for its sake any more. Only
 * for a client with drops_database. `is_in_tx`: its transaction goes on. */
void client_watch_on_quiet(struct client *c, bool is_in_tx);
/* What client_watch_on_quiet tells all workers: `body` is a struct link_retire. */
void client_watch_retire(struct sessions *ss, const void *body, size_t len);
/* The client leaves: nothing has to go for its sake any more. */
void client_watch_on_leave(struct client *c);

#endif
