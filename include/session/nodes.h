/* SPDX-License-Identifier: PostgreSQL
 * nodes.h: what a worker does about nodes for all of its clients, and where one is; for machines
 * above the session (session/client.h). What workers know of each other is in src/core/known. Runs
 * in: workers. */
#ifndef PGP_SESSION_NODES_H
#define PGP_SESSION_NODES_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/mailbox.h"
#include "known/known.h"
#include "known/session_shared.h"
#include "session/session.h"

struct client_row;
struct rows_header;

/* The client with this number, whichever worker has it; ROWS_NO_ROW: there is none. */
int32_t session_find_client(const struct rows_header *rows, uint32_t id, struct client_row *row);

/* Sends the monitor a message; one that is lost costs only time. */
void sessions_mail_monitor(struct sessions *ss, enum mail_type type, const void *body, size_t len);
/* A link of the node broke or could not be opened: the monitor looks at once. */
void sessions_suspect_node(struct sessions *ss, int node);
/* Somebody waits for the node: the monitor looks now and then, also without health checks. */
void sessions_look_again(struct sessions *ss, int node);
/* The node that a session's own link goes to; VIEW_NO_NODE when there is none. */
int sessions_write_node(struct sessions *ss);
/* One more of that kind, on `node` (SHOW POOL_BACKEND_STATS). */
static inline void count_statement(struct sessions *ss, int node, enum count_kind kind)
{
    session_count(ss->shared, ss->be.ordinal, node, kind);
}

#endif
