/* SPDX-License-Identifier: PostgreSQL
 * client_orders_int.h: operators' commands that change what all workers do: PAUSE, RESUME, DRAIN,
 * RECONNECT, KILL CLIENT. Runs in: workers. An order that is not done at once parks the client that
 * gave it; its command is run again every now and then until it is done. */
#ifndef PGP_SESSION_CLIENT_ORDERS_INT_H
#define PGP_SESSION_CLIENT_ORDERS_INT_H

#include "admin/sources.h"

struct client;
struct sessions;

/* What a client waits for that ordered something; NULL mostly. */
struct client_orders;

/* Carries out an order of client `ctx` (an admin_order_fn). */
enum admin_order_state client_orders_run(
    void *ctx, const struct admin_order *order, struct err *err);
/* Where the client's role is a role: see struct orders_giver. */
int client_orders_place(const struct client *c);
/* The client waits no more because it leaves: a PAUSE that was not complete is taken back. */
void client_orders_free(struct client *c);
/* A cancel request for the client: true when it waited for an order, which now fails with 57014. */
bool client_orders_cancel(struct client *c);
/* Looks at a statement that goes to a server: DROP DATABASE, and what else needs a database to
 * itself (its new name or place, a copy of it), closes the free server connections to that database
 * in all workers. The server waits some seconds for them to go before it refuses.
 * What it changes of roles is noted (client_ddl.c). */
void client_orders_on_statement(struct client *c, struct slice sql);
/* client_orders_on_statement of a relayed session; what it changes of types is noted, too. */
void client_orders_on_relayed(struct client *c, struct slice sql);
/* What the client asked for is over, done or refused: nothing has to go for its sake any more. Only
 * for a client with drops_database. `is_in_tx`: its transaction goes on. */
void client_orders_on_quiet(struct client *c, bool is_in_tx);
/* What client_orders_on_quiet tells all workers: `body` is a struct link_retire. */
void orders_on_retire(struct sessions *ss, const void *body, size_t len);
/* The client leaves: nothing has to go for its sake any more. */
void client_orders_on_leave(struct client *c);

#endif
