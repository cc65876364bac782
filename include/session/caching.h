/* SPDX-License-Identifier: PostgreSQL
 * caching.h: what a machine above the session hears of followed clients that keeps the results of
 * their statements, and what it may ask of their sessions: src/core/results, the query cache's side
 * of a session. What it is told by is in sessions.results, NULL where there is no cache: that is
 * all that is looked at then.
 *
 *   struct results_ops    what the session tells it, in the order of a statement's way
 *   client_results        what it keeps with a client's errand; client_results_rest: beyond that
 *
 * The others of these functions tell values of a session, or do for it what follows from an answer
 * of the cache. Runs in: workers. */
#ifndef PGP_SESSION_CACHING_H
#define PGP_SESSION_CACHING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "session/client.h"

struct link;
struct names;
struct prep;
struct results;
struct results_rest;
struct sql_facts;
struct varset;

/* None of these ends the client. A client has an errand where nothing else is said. */
struct results_ops {
    /* New settings. */
    void (*conf)(struct sessions *ss);
    /* What a role or a database sets for its sessions was changed through another worker. Until it
     * was heard of, links that have it as it was were used here, and their results kept. */
    void (*sets_changed)(struct sessions *ss);

    /* Nobody looks at what the client runs, who logs in: while it is there, nothing of its database
     * is kept. It has no errand. */
    void (*unseen)(struct client *c);
    /* A simple query has come whole. FEED_LOCAL: it was answered. FEED_AGAIN: it goes its way. */
    enum feed_step (*query)(struct client *c, struct slice sql, const struct sql_facts *facts);
    /* A sequence of the extended protocol begins at `p`. FEED_LOCAL: it was answered; *whole is its
     * end. */
    enum feed_step (*batch)(struct client *c, const char *p, const char *end, const char **whole);
    /* The query that `query` or `batch` was told of is about to be sent, on the client's link.
     * facts == NULL: a query that nobody has looked into, or a function call. */
    void (*sent)(struct client *c, struct slice sql, const struct sql_facts *facts);
    /* A Bind of a sequence is about to be sent; p == NULL: of a statement that is not known. */
    void (*bound)(struct client *c, const struct prep *p, struct slice values);
    /* All that came was looked at: what is not under way by now is parked. */
    void (*fed)(struct client *c);
    /* Bytes of an answer go to the client, or have gone (n == 0). */
    void (*seen)(struct client *c, const char *p, size_t n);
    /* The exchange is over, its link is quiet. `worked`: without an error, and it is not made
     * again. */
    void (*over)(struct client *c, bool worked);
    /* The link dies; true when a question was under way on it. */
    bool (*lost)(struct client *c, const struct link *link);
    /* The errand ends: frees what it has. */
    void (*end)(struct client *c);
    /* The client has gone, and its link (0: it had none): frees client_results_rest. */
    void (*gone)(struct client *c, uint64_t link_id);

    /* Questions of the cache (client_ask_link): settings that had to come first are there. True
     * when it had asked for them, and the question is sent. */
    bool (*ask_owed)(struct client *c);
    /* The client's link is about to be given back: true when what could not be asked before is now
     * (client_ask_behind). */
    bool (*ask_behind)(struct client *c);
    /* A row of an answer; its end. False: it is another's question. */
    bool (*row)(struct client *c, struct slice body);
    bool (*asked)(struct client *c);

    /* What PGPOOL EXPLAIN says; PGPOOL SET CACHE DELETE (by client `c`): true if there was any. */
    const char *(*explain)(struct client *c, struct slice sql, const struct sql_facts *facts);
    bool (*delete)(void *c, struct slice sql, struct slice user, struct slice database);
};

/* ---- what is kept with a client ---- */

/* What the cache keeps with the client's errand, which there is, and ends with it. Set to NULL:
 * nothing. */
struct results *client_results(const struct client *c);
void client_set_results(struct client *c, struct results *r);
/* Outside of those events: is there an errand? */
bool client_has_errand(const struct client *c);
/* Beyond errands. Set to NULL: nothing. */
struct results_rest *client_results_rest(const struct client *c);
void client_set_results_rest(struct client *c, struct results_rest *rest);

/* ---- what its session is ---- */

/* What it has SET, its start-up parameters included. */
struct varset *client_settings(const struct client *c);
/* The client's statements. */
const struct names *client_statements(const struct client *c);
/* The link that it has, or keeps at rest; NULL: none. */
struct link *client_any_link(const struct client *c);
/* The number of the link that it had last. */
uint64_t client_last_link(const struct client *c);
/* Where its writes go, its pool moved there; as far as it has a link, where that leads.
 * VIEW_NO_NODE: not known. */
int sstate_write_node(struct client *c);
int client_node_of_writes(struct client *c);
/* The state of the client's transaction, as the client knows it. */
char sstate_tx_status(const struct client *c);
/* A transaction block is open for what is sent now, and stays so. */
bool client_is_in_block(const struct client *c);
/* What is asked now depends on nothing but its database, its settings and what is committed, and
 * may be answered without a link. */
bool client_may_be_told(const struct client *c);
/* Code that may have left something behind has run in the session, on a link it is tied to. */
void client_note_code(struct client *c);
bool client_has_run_code(const struct client *c);

/* ---- statements ---- */

/* The facts of `sql`, valid until the next call. Their offsets are those of `sql` when it holds
 * several statements, SET or RESET; else they may be those of a text like it. */
const struct sql_facts *plan_facts(struct sessions *ss, struct slice sql);
/* Facts, and how often any had been looked for by then: they are valid as long as that is so. */
struct plan_found {
    const struct sql_facts *facts;
    uint64_t nfacts;
};
struct plan_found plan_found_of(const struct sessions *ss, const struct sql_facts *facts);
/* plan_facts: those that were found for this text, where they are valid still. `found` may be NULL.
 */
const struct sql_facts *plan_facts_still(
    struct sessions *ss, struct slice sql, const struct plan_found *found);
/* The statement of this Parse body (behind the name), judged, counted for the caller. */
struct prep *follow_prep_of(struct client *c, struct slice body);
/* The statement of the protocol that the body of a Bind names; NULL: none, or it is cut short. */
const struct prep *follow_bound_prep(const struct client *c, struct slice body);
/* The client's unnamed statement is `p` from here on, and no link is told; NULL: it has none. */
void client_set_unnamed(struct client *c, struct prep *p);

/* ---- to wait ---- */

/* Nothing at a server is its, that others might be waiting for. */
bool client_may_wait_for_result(const struct client *c);
/* What waits for a link will not be sent after all: whoever is behind it need not wait for it. */
void lent_stop_asking(struct client *c);
/* The client stands in `line`, parked; client_in_line: the client whose place that is. */
void client_wait_for_result(struct client *c, struct list *line);
struct client *client_in_line(struct list *place);
/* What it has at a server can be set aside while a result is asked for elsewhere. */
bool client_may_wait_aside(const struct client *c);
/* client_wait_for_result of such a one: true when a link was set aside. */
bool client_wait_aside(struct client *c, struct list *line);
/* The client waits no longer; what was set aside is its link again, if it is as it was. What is
 * parked is fed anew. May end the client. */
void client_wait_is_over(struct client *c, bool was_aside);
/* The client's input is fed anew before the wait is over: its link comes back. */
void client_come_back(struct client *c);

/* ---- questions of the machine to the primary, in front of a statement ---- */

/* FEED_PASS: there is a link to ask on: client_ask_ready. FEED_AGAIN: it cannot be asked now.
 * `again`: who has asked for this statement does not stand in a line once more. */
enum feed_step client_ask_link(struct client *c, bool again);
/* FEED_PASS: client_send_question has to be next. Else ask_owed says when. */
enum feed_step client_ask_ready(struct client *c);
/* To be called in ask_behind: true when it can be asked, which client_send_question has to do next.
 */
bool client_ask_behind(struct client *c);
void client_send_question(struct client *c, struct slice sql);

/* ---- the answer ---- */

/* All that was sent is answered here: it stands in no queue, and is not made again. */
void client_answer_comes(struct client *c);
/* A statement is answered: it is counted; its row says so. */
void client_note_hit(struct client *c, struct slice sql);
void client_note_local(struct client *c, struct slice sql);
/* All that it waits for. */
void client_answer(struct client *c, struct slice bytes);
/* The client reads more slowly than it is told. */
bool client_is_slow(const struct client *c);
/* What it is told is kept back, until it is let go. */
void client_cork(struct client *c);
void client_uncork(struct client *c);

#endif
