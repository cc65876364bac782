/* SPDX-License-Identifier: PostgreSQL
 * feed_int.h: how a client's messages find their way to a link: what feed.c and the
 * files of shared clients have in common. */
#ifndef PGP_SESSION_FEED_INT_H
#define PGP_SESSION_FEED_INT_H

#include "base/hot.h"
#include "client_int.h"

/* Sends the bytes of a run. */
void feed_flush(struct client *c, struct feed_run *run);
/* Sends bytes that are in no run. */
void feed_send(struct client *c, const char *p, size_t n);
/* Puts bytes of our own making behind them. */
void feed_put(struct feed_run *run, const char *p, size_t n);
/* Call before pgpool sends something of its own on a quiet link, where the client may be in the
 * midst of a CopyData message of a COPY that has ended. The server still reads that message to its
 * end; what pgpool sends would be taken for part of it. This fills the message up. False: it is too
 * long for that, and the session has ended. */
bool feed_end_ignored(struct client *c);
/* True for a Flush that `link` will answer with an error: it has a body. While COPY FROM STDIN runs
 * the server ignores it all the same. */
bool feed_is_bad_flush(const struct link *link, char type, struct slice msg);
/* Puts a Sync of ours in place of the client's Flush: what it ends was sent to a standby, and ends
 * there. */
enum feed_step feed_cut(struct client *c, struct feed_run *run);
/* What client_local_query or client_local_extended said, as a step. */
enum feed_step feed_of_verdict(enum local_verdict v);
/* The SQL text in the body of a Parse. */
struct slice feed_parse_sql(struct slice body);

/* feed_notes.c: what is counted, kept and owed for messages that go to c->target. */
/* Notes whether a client's text may leave something behind in its session: all but plain reads may,
 * and that is undone as soon as the client leaves (link_reset.c). What a view or an operator hides
 * is undone a little later, before anybody else has the session. Returns true when the text is one
 * statement that reads: no DROP hides in it. */
bool feed_note_text(struct client *c, struct slice sql, enum count_kind kind);
/* Keeps the book of prepared statements, counts what is executed. Returns the text of a Parse. */
struct slice feed_note_extended(struct client *c, char type, struct slice msg);
/* Nobody but the server needs to know what the client says: it has a link of its own and nothing to
 * balance, and of pgpool's own commands none is prepared or was answered. */
bool feed_is_own(struct client *c);
/* The messages at `p` that have come whole and are the server's alone, which most are: the books
 * that every one of them would open are opened once for all. Returns where others begin; what is in
 * front of that is to be sent. */
const char *feed_own(struct client *c, const char *p, const char *end);

/* leg.c: a query of ours, its replies swallowed. */
void lent_put_own_query(struct client *c, struct feed_run *run, struct slice sql);
/* Sends a query of ours; `sink` says what becomes of its replies (OP_SWALLOW, OP_ROWS). */
void lent_put_query(struct client *c, struct feed_run *run, struct slice sql, unsigned sink);

/* feed_followed.c: one message of a followed client. */
enum feed_step feed_followed_message(struct client *c, struct feed_run *run, char type,
    struct slice msg, bool is_whole, const char *end);

#endif
