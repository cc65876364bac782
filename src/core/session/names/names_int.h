/* SPDX-License-Identifier: PostgreSQL
 * names_int.h: prepared statements of followed clients, as the files about them share
 * it: names.c (which there are), follow_names.c (the protocol), follow_sql.c (SQL). */
#ifndef PGP_SESSION_NAMES_INT_H
#define PGP_SESSION_NAMES_INT_H

#include "sstate_int.h"

/* names.c */
struct names_entry *names_entry_new(struct slice name);
/* Frees it; it is not among the names. */
void names_entry_free(struct sstate *s, struct names_entry *n);
void names_put(struct sstate *s, struct names_entry *n);
void names_take(struct sstate *s, struct names_entry *n);
/* Calls `fn` for every name; `fn` may take it out. */
void names_each(struct client *c, struct feed_run *run,
    void (*fn)(struct client *c, struct feed_run *run, struct names_entry *n));
/* The statement that is being noted: whether it works is for its tag to say. */
void names_watch_tag(struct client *c, struct names_run *run);
/* Something whose fate is not known yet. */
void names_pending_push(struct client *c, enum names_pending_kind kind, struct prep *prep,
    struct names_entry *name, bool sent);
/* True for one whose Parse was too long to be looked at: its link, which is kept, has it, and
 * nobody could make it again. */
static inline bool names_entry_is_unread(const struct names_entry *n)
{
    return n->prep == NULL && n->sql[0] == '\0';
}
/* follow_names.c: messages of ours, their replies swallowed */
void lent_put_close(struct client *c, struct feed_run *run, struct slice name);
/* Close as an entry of that kind. */
void lent_put_close_as(struct client *c, struct feed_run *run, struct slice name, unsigned op);
/* Is it one of the names that we give? */
bool lent_is_our_name(struct slice name);
/* One more statement comes to the link: with it there are no more than max_prepared_statements.
 * True when that took a message. */
bool lent_make_place(struct client *c, struct feed_run *run);
/* Ends what stands before it, but never a sequence of the client's that is open: it would commit
 * what that did, and end the skipping behind an error. */
void lent_put_sync(struct client *c, struct feed_run *run);
void lent_put_parse(
    struct client *c, struct feed_run *run, struct prep *p, struct slice name, unsigned op);
/* A Parse of which not all is there, and that is too long to be looked at. */
enum feed_step follow_parse_unread(struct client *c, struct feed_run *run, struct slice msg);
/* The link knows the statement after this. */
void follow_load(struct client *c, struct feed_run *run, struct prep *p);
/* A message with the client's name of a statement in it, sent with ours. `at` is where the name
 * begins in the body. */
void follow_put_renamed(
    struct feed_run *run, struct slice msg, size_t at, size_t name_len, const struct prep *p);
/* The statement of this Parse body (behind the name), judged, counted for the caller. */
struct prep *follow_prep_of(struct client *c, struct slice body);
/* The same for one that was parsed when names meant `path_hash`. */
struct prep *follow_prep_with(struct client *c, struct slice body, uint64_t path_hash);
/* An entry for the statement, not among the names yet. */
struct names_entry *follow_names_of_prep(struct slice name, struct prep *p);
/* The client has no statement of this name: the link must not have one either. */
void lent_forget_foreign(struct client *c, struct feed_run *run, struct slice name);

/* names_portals.c */
/* The one that the name means when all works that was sent. */
struct names_portal *names_portal_find(struct sstate *s, struct slice name);
/* A Bind, p == NULL: of something that is not known. What executing it will do to the session. */
void follow_portal_bound(
    struct client *c, struct feed_run *run, struct slice portal, struct prep *p, struct slice bind);
/* FETCH or MOVE in SQL may execute any portal that has a name. */
void follow_note_fetch(struct client *c);

/* sstate_effects.c */
/* The name of the statement that this one executes, prepares or deallocates; empty: none. */
struct slice effects_names_next(const struct client *c, const struct names_entry *n);
/* follow_sql.c */
bool sstate_names_a_statement(const struct sql_stmt *st);
/* Bound: a statement whose SQL may name others. */
void follow_sql_load_names(struct client *c, struct feed_run *run, struct slice sql);

/* Formats and values of a Bind, as far as they are there. */
struct slice follow_bound_values(struct slice body);

#endif
