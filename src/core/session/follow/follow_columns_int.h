/* SPDX-License-Identifier: PostgreSQL
 * follow_columns_int.h: the columns that clients were told of their statements (follow_columns.c).
 */
#ifndef PGP_SESSION_FOLLOW_COLUMNS_INT_H
#define PGP_SESSION_FOLLOW_COLUMNS_INT_H

#include "sstate_int.h"

/* What is kept of columns is a hash of two halves: of the columns below, and above of the types of
 * the parameters, which a Describe of a portal does not tell. Each is 0 when it is not known, or
 * there are none. */
#define COLUMNS_TYPES 0xffffffff00000000U
static inline bool follow_columns_half_agrees(uint64_t told, uint64_t known, uint64_t half)
{
    return (told & half) == 0 || (told & half) == (known & half);
}
/* True when all that the client was told is known to be so on the link. */
static inline bool follow_columns_agree(uint64_t told, uint64_t known)
{
    return follow_columns_half_agrees(told, known, COLUMNS_TYPES) &&
           follow_columns_half_agrees(told, known, ~COLUMNS_TYPES);
}
/* A Describe of the statement is next, or of a portal that was bound to it (NULL: of another): the
 * op to push for it. */
unsigned follow_columns_watch(struct client *c, struct names_entry *n);
/* As follow_columns_watch, for a Describe of the unnamed statement. */
unsigned follow_columns_watch_unnamed(struct client *c);
/* The link is going to parse it (again): what is described until then is not what it has then. */
void follow_columns_forget(struct client *c, const struct prep *p);
/* A link_owner_ops.on_columns. */
void follow_columns_on_told(
    void *owner, struct link *link, uint32_t serial, char type, struct slice body);
/* The statement that the sequence at `p` begins to bind, when its client was told columns before
 * and is not told them again. NULL: none, or it is not known. */
struct names_entry *follow_columns_first(struct client *c, const char *p, const char *end);
/* Has the link, on which nothing of the client's runs, parse the statement anew, and asks for its
 * columns, unless they are known to be those that the client was told. True: that is waited for. */
bool follow_columns_ask(struct client *c, struct feed_run *run, struct names_entry *n);
/* follow_columns_ask of errand->bound_first, once the link, which the client has had, is quiet. */
bool follow_columns_ask_first(struct client *c, struct feed_run *run);
/* An error: true when it is the answer to that, or a part of it. In a transaction, which it fails,
 * the client is told. */
bool follow_columns_failed(struct client *c, const struct errmsg *m);
/* The answer is there. */
void follow_columns_asked(struct client *c);
/* True for a Bind that binds as many formats of columns as if it knew these. */
bool follow_columns_counts(struct slice bind);
/* True for a Bind of a statement that has other columns on the link than the client was told, and
 * it does not ask. */
bool follow_columns_differ(struct client *c, struct slice msg, const char *end);
/* Fails it, as the server does with a plan that has gone stale. */
enum feed_step follow_columns_refuse(struct client *c, struct feed_run *run);
/* Puts the words of follow_columns_refuse, when `err` is that. */
bool follow_columns_put_refusal(struct buf *out, const struct err *err);
/* True when a Bind of what is kept relies on columns that the client was told. */
bool follow_columns_are_relied_on(const struct client *c);

#endif
