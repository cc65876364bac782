/* SPDX-License-Identifier: PostgreSQL
 * answering.h: what a machine above the session does for clients that ask pgpool itself: SHOW
 * POOL_..., PGPOOL ..., orders of operators, the virtual database (src/core/console). What the
 * session tells it is in sessions.console, NULL where pgpool answers nothing by itself.
 *
 *   struct console_ops    what the session tells it
 *   client_console        what it keeps with a client
 *
 * The others of these functions tell values of a session, or do for it what follows from an answer.
 * Runs in: workers. */
#ifndef PGP_SESSION_ANSWERING_H
#define PGP_SESSION_ANSWERING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "session/client.h"

struct conf_override;
struct console;
struct sessions;
struct sql_facts;

/* None of these ends the client but those that say so. */
struct console_ops {
    /* A simple query has come whole, of which client_local_is_likely is true. LOCAL_NO: it is for
     * the server. May end it. */
    enum local_verdict (*query)(struct client *c, struct slice sql);
    /* A Parse, Bind, Describe, Execute or Close has come whole, of a client that has a console; or
     * a Parse of which client_local_is_likely is true. May end it. */
    enum local_verdict (*message)(struct client *c, char type, struct slice body);
    /* A sequence of the extended protocol ends in which it had a part. */
    void (*synced)(struct client *c);

    /* Is it waiting until what it has ordered is done? */
    bool (*waits)(const struct client *c);
    /* A cancel request: true when it was. May end it. */
    bool (*cancel)(struct client *c);
    /* The client goes; it has gone: frees client_console. It has one. */
    void (*leave)(struct client *c);
    void (*free)(struct client *c);

    /* The server is asked whether the session may do what it wants (client_judge). Puts the
     * question: Close, Parse, Bind, Execute, Close and Close, of names of its own. */
    void (*question)(struct client *c, struct buf *out);
    /* A row of its answer; an error, on the client's link. */
    void (*row)(struct client *c, struct slice body);
    void (*refused)(struct client *c, const struct errmsg *m);
    /* The answer is whole, or the link has failed: true when it may. Else *why says why not. */
    bool (*judged)(struct client *c, bool has_failed, struct err *why);
    /* Nothing is asked any more, whether it was answered or not. */
    void (*forget)(struct client *c);

    /* The virtual database, behind which no server stands. The client has passed, and may do all
     * or only look: puts what it is told of settings. -1 and *err: it does not come in. */
    int (*enter)(
        struct client *c, bool may_all, struct slice application, struct buf *out, struct err *err);
    /* One message there; what is not whole is longer than any that is judged. May end it. */
    enum feed_step (*alone)(struct client *c, char type, struct slice body, bool is_whole);
    /* As in ReadyForQuery. */
    char (*tx_status)(const struct client *c);
};

/* ---- what is kept with a client ---- */

/* NULL for nearly all: only of those that have one each message is looked at. */
struct console *client_console(const struct client *c);
/* NULL: nothing any more. Call at the end of whatever was done, with what there is then. */
void client_set_console(struct client *c, struct console *console);

/* ---- what its session is ---- */

/* As the client knows it. */
char client_tx_status(const struct client *c);
/* The number that SHOW POOL_CLIENTS has for it; 0: it has no row. */
uint32_t client_number(const struct client *c);
/* Of which servers its role is one: struct orders_giver.place. */
int client_role_place(const struct client *c);
/* What PGPOOL SET has changed for it, to be changed; client_set_console is to follow. */
struct conf_override **client_overrides(struct client *c);
/* The pool mode of client `c`, by name. With `wanted`, a name or "" for the one that is configured,
 * it is changed first; NULL: that was refused, and *err says why. */
const char *exchange_mode_run(void *c, const char *wanted, struct err *err);

/* ---- when is it answered? ---- */

/* False: the server owes what comes first. */
bool client_may_answer(struct client *c);
/* After an error the server skips what is sent to it, up to the Sync. */
bool client_is_skipped(const struct client *c);
/* A message of the extended protocol is answered here. False: as client_may_answer. */
bool client_take_part(struct client *c);
/* The message was answered with an error: everything up to the next Sync is skipped. What the
 * server did in front of it in the same sequence would be committed by that: it is made to fail,
 * too. A transaction that the client began is left as it is, as by a simple query. */
void client_fail_part(struct client *c);

/* ---- where statements go ---- */

struct explained {
    int node;         /* VIEW_NO_NODE: nowhere, no server is usable */
    const char *role; /* of the node */
    const char *class;
    const char *reason;
};
/* What the statement itself would ask is asked first, of the catalogue and of how far a standby has
 * replayed; true: the input is to be parked for that. */
bool client_explain_asks(struct client *c, struct slice sql);
/* Where it would go, and why. Returns its facts, valid until the next such call. */
const struct sql_facts *client_explain(struct client *c, struct slice sql, struct explained *out);

/* ---- may it do what it wants? The server says, in its session ---- */

enum judged {
    JUDGED_NOT,  /* nothing is asked */
    JUDGED_OWED, /* there is no link yet, or its settings come first */
    JUDGED_ASKED,
    JUDGED_MAY,  /* of what is at the front of the client's input */
    JUDGED_NEVER /* in such a session that is the server's alone */
};
enum judged client_judged(struct client *c);
/* Asks. The client is to be parked: it comes again with JUDGED_MAY, or is told why not. Nothing is
 * owed by its link, and its transaction has not failed. */
void client_judge(struct client *c);
/* An answer that nobody has fetched does not count for what follows. */
void client_judge_forget(struct client *c);

/* ---- to wait, and others ---- */

/* The client's parked input is looked at again, but for a client that was seen to have gone: only
 * by asking that can be seen while the input is parked. May end it. */
void client_look_again(struct client *c);
/* As a cancel request with this number and key, whichever worker has the client. `fd`: -1. */
void client_cancel_request(struct sessions *ss, int32_t pid, struct slice key, int fd);
/* client_console.c: a message of the extended protocol is answered by the console, or LOCAL_NO. It
 * has come whole. May end it. */
enum local_verdict client_local_extended(struct client *c, char type, struct slice body);

#endif
