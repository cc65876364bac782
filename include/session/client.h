/* SPDX-License-Identifier: PostgreSQL
 * client.h: a client, as a machine above the session serves it: native replication. What such a
 * machine may know of it and do for it; the struct is the session's own.
 *
 *   struct native_ops     what the session asks of the machine, by sessions.native
 *   client_serve          the machine takes a client over, whose messages come to `feed` from then
 * on
 *
 * Runs in: workers. */
#ifndef PGP_SESSION_CLIENT_H
#define PGP_SESSION_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "account/lines.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hot.h"
#include "base/log.h"
#include "base/slice.h"
#include "ipc/rows.h"

struct client;
struct conf_session;
struct errmsg;
struct link;
struct native;
struct paramset;
struct pool;
struct pool_request;
struct sessions;

/* ---- a machine and its clients ---- */

struct native_ops {
    /* A client of session mode is in its session, and has its own link. When writes go to all
     * nodes, it is taken over (client_serve) and its link is told whom to tell. */
    void (*begin)(struct client *c);
    /* Bytes of one that was. May end it. */
    void (*feed)(struct client *c, const char *p, const char *end);
    /* A cancel request: true when what it meant was done, and `fd` (may be -1) is closed or passed
     * on. */
    bool (*cancel)(struct client *c, int fd);
    /* The client goes, or its link does: the machine forgets it, after client_serve_no_more.
     * Harmless for one that was not taken over. */
    void (*end)(struct client *c);
    /* What it asked for has not begun: all sessions are held. */
    bool (*is_held)(const struct client *c);
};

/* The client is served by the machine, which finds its own of it by client_native: NULL for one
 * that is not. Its kind is `native` from then on, until client_serve_no_more gives its link (if it
 * has one) back to the session, which relays. */
void client_serve(struct client *c, struct native *n);
void client_serve_no_more(struct client *c);
struct native *client_native(const struct client *c);

/* ---- what it is ---- */

/* All sessions of the client's worker. */
struct sessions *client_sessions(const struct client *c);
/* False: it was ended, and nothing more is to be done for it. It is there until the turn of the
 * loop is over, without its link: who only returns need not ask. */
bool client_is_active(const struct client *c);
/* The client says nothing more, or its worker stops: client_after_quiet when all is answered. */
bool client_is_leaving(const struct client *c);
/* The client's own link, NULL when that is lost; its pool, which lives as long as the client. */
struct link *client_link(const struct client *c);
struct pool *client_pool(const struct client *c);
/* The client's start-up parameters, which it owns; in `begin` alone. */
const struct paramset *client_startup_params(const struct client *c);
/* What PGPOOL SET can change, as it is for this one now. */
const struct conf_session *client_conf(const struct client *c);
/* The number of the client's row in shared memory; ROWS_NO_ROW: it has none. */
int32_t client_row_index(const struct client *c);
/* True when the server may read `text` otherwise than our parser does: what a backslash means
 * depends on standard_conforming_strings, and on the encoding. */
bool sstate_text_is_doubtful(const struct client *c, struct slice text);

/* ---- its links ---- */

/* Says in `req` (its pool is set) what the client is entitled to: a used link, and a fresh one that
 * logs in with what is known about the pool's user. Nothing, before it has passed. */
void client_entitle(const struct client *c, struct pool_request *req);
/* The client's answers come from `link` (may be NULL) from here on, as log and row say. */
void client_target(struct client *c, struct link *link);
/* `link` goes: if they came from there, they come from its own again. */
void client_untarget(struct client *c, const struct link *link);
/* The client loses its own link: it died, or was taken by somebody who sees to it. */
void client_lose_link(struct client *c);

/* ---- what it sends ---- */

/* Reads nothing of it until client_resume, or client_read_on. */
void client_pause(struct client *c);
void client_resume(struct client *c);
/* Reads on, unless something stands against it: who had to pause for a link that could take no more
 * would wait for it for ever when that link is gone. */
void client_read_on(struct client *c);
/* Call behind each answer of pgpool's own. True: more than a little waits for a client that asks
 * and does not read. Nothing more of it is looked at then: what is left of its input is to be
 * parked, and is fed when the client has read. */
bool client_hold(struct client *c);
/* `in` is fed again by client_unpark. */
void client_park(struct client *c, struct slice in);
bool client_is_parked(const struct client *c);
/* Goes on with parked input. May end it. */
void client_unpark(struct client *c);
/* The client says nothing more (Terminate, or the end of its stream): what it asked for before is
 * still answered, for a while. May end it. */
COLD void client_say_goodbye(struct client *c);

/* What one message asks for. */
enum feed_step {
    FEED_PASS,  /* to the server, as it is */
    FEED_LOCAL, /* answered here: what was sent before it goes out first */
    FEED_TAKEN, /* it, and what is behind it, up to run->taken */
    FEED_PUT,   /* sent in other words (feed_put); what is still to come of it follows as it is */
    FEED_SKIP,  /* the message is not for anybody, nor what of it is still to come */
    FEED_AGAIN, /* look at the message again: there is a link now */
    FEED_PARK,  /* stop: go on when there is a quiet link */
    FEED_CARRY, /* stop: more bytes are needed to judge it */
    FEED_STOP   /* the client has left or was sent away */
};

enum local_verdict {
    LOCAL_NO,   /* not ours: to the server with it */
    LOCAL_DONE, /* answered */
    LOCAL_PARK  /* ours, but the server owes replies that come first */
};
/* Commands that pgpool answers itself: SHOW POOL_..., PGPOOL ... May end it. */
enum local_verdict client_local_query(struct client *c, struct slice sql);
/* Cheap test of the first letters: may this text be one of those? */
bool client_local_is_likely(struct slice sql);

/* ---- what it is told ---- */

/* Sends bytes of our own making and empties the buffer. */
void client_send(struct client *c, struct buf *out);
/* Bytes of a server go to the client, whom it may have to wait for; they are counted and logged. */
void client_pass_reply(struct client *c, struct link *link, const char *p, size_t n);
/* ReadyForQuery, by itself. */
void client_say_ready(struct client *c, char tx);
/* A message of ours, with SQLSTATE 00000, unless client_min_messages hides it. */
void client_notice(struct client *c, enum log_level level, const char *text);
/* What a failed transaction refuses: puts the error with the statement, or false: it is another. */
COLD bool client_failed_put(struct buf *out, const struct errmsg *m, struct slice sql);
/* Ends the session: `err` (may be NULL) is sent first. The link is given back. */
COLD void client_end(struct client *c, const struct err *err);
/* Ends it with a FATAL message made here. */
COLD void client_end_text(struct client *c, const char *sqlstate, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- what is noted of it ---- */

/* A statement arrived, before it is known where it goes; several. */
void client_stats_on_queries(struct client *c, unsigned n);
static inline void client_stats_on_query(struct client *c)
{
    client_stats_on_queries(c, 1);
}
/* Starts sending to the link: the row, the log. */
void client_note_statement(struct client *c, struct slice sql);
/* Nothing is owed to it any more. */
void client_note_idle(struct client *c);
/* The client is quiet: a half-closed one leaves, a stopping worker says so, parked input goes on.
 * May end the client. */
void client_after_quiet(struct client *c);
/* Writes into the client's row what it does, or waits for. */
void client_row_state(struct client *c, enum client_state state, enum wait_reason reason);
/* The client waits, but for no connection: query_wait_timeout does not count. */
void client_row_held(struct client *c, enum wait_reason reason);
/* application_name has changed. */
void client_row_application(struct client *c, struct slice application);

/* Are its statements logged? One is sent to its target, or answered here when that is NULL. `kind`
 * is "" for a simple query, else what stands before it. */
bool client_log_statements(struct client *c);
COLD void client_log_statement(struct client *c, const char *kind, struct slice sql);
/* The lines between this and client_log_leave are about this client (account/lines.h). */
void client_log_enter(struct client_log_scope *scope, const struct client *c);
/* One line about the client that it can cause itself: limited as log_caused. */
#define CLIENT_LOG(c, level, ...)                                                                  \
    do {                                                                                           \
        struct client_log_scope scope_;                                                            \
        client_log_enter(&scope_, c);                                                              \
        log_caused(level, __VA_ARGS__);                                                            \
        client_log_leave(&scope_);                                                                 \
    } while (0)

#endif
