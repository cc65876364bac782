/* SPDX-License-Identifier: PostgreSQL
 * known.h: what a worker knows of nodes and of the catalogue for all of its clients, and tells
 * others of; for machines above the session (session/client.h). Runs in: workers. */
#ifndef PGP_SESSION_KNOWN_H
#define PGP_SESSION_KNOWN_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/mailbox.h"
#include "route/route_oracle.h"

struct session_shared;
struct sessions;

/* ---- nodes ---- */

/* Sends the monitor a message; one that is lost costs only time. */
void sessions_mail_monitor(struct sessions *ss, enum mail_type type, const void *body, size_t len);
/* A link of the node broke or could not be opened: the monitor looks at once. */
void sessions_suspect_node(struct sessions *ss, int node);
/* Somebody waits for the node: the monitor looks now and then, also without health checks. */
void sessions_look_again(struct sessions *ss, int node);
/* The node that a session's own link goes to; VIEW_NO_NODE when there is none. */
int sessions_write_node(struct sessions *ss);
/* True once an hour, among all workers, for each user: something is to be said about it. */
bool session_tells_again(struct session_shared *s, struct slice user, int64_t now_us);
/* An evenly distributed number for the next session's choice of a node. */
uint64_t session_next_choice(struct session_shared *s);

/* What SHOW POOL_BACKEND_STATS counts. */
enum count_kind {
    COUNT_SELECT,
    COUNT_INSERT,
    COUNT_UPDATE,
    COUNT_DELETE,
    COUNT_DDL,
    COUNT_OTHER,
    COUNT_PANIC,
    COUNT_FATAL,
    COUNT_ERROR,
    COUNT_KINDS
};

static inline bool count_is_of_rows(enum count_kind kind)
{
    return kind <= COUNT_DELETE;
}

/* One more, on `node`. */
void count_statement(struct sessions *ss, int node, enum count_kind kind);

/* ---- the catalogue ---- */

/* Learns what other workers changed in the catalogue since. */
void plan_worker_refresh(struct sessions *ss);
/* The schema has changed: all workers forget their answers. */
void plan_worker_ddl(struct sessions *ss);
/* How often the schema has changed, as far as we are told. */
uint64_t plan_worker_change(const struct sessions *ss);
/* What this worker or another one was told. Returns 0, or -1 when it has to be asked for. */
int plan_worker_lookup(struct sessions *ss, struct route_scope scope,
    const struct route_question *q, int64_t now_us, uint32_t *bits);

#endif
