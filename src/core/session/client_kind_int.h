/* SPDX-License-Identifier: PostgreSQL
 * client_kind_int.h: what differs by how a client is served: relayed (session mode over one
 * server), followed, writing to all nodes, in the virtual database. A client has the table of
 * its kind from when that is known (client.kind), so that nobody asks which it is. */
#ifndef PGP_SESSION_CLIENT_KIND_INT_H
#define PGP_SESSION_CLIENT_KIND_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "plan/plan.h"
#include "session/client.h"

struct route_question;

struct client;
struct err;
struct explained;
struct link;
struct prep;
struct errand;
struct sql_facts;
struct sql_tx;

/* Bytes that go to the server, not sent yet: `out`, then [start, end). */
struct feed_run {
    const char *start;
    const char *end;
    struct buf out;
    const char *taken;
};

/* What is under way of what the client has asked for. */
enum client_pace {
    PACE_REST,    /* nothing */
    PACE_WAITS,   /* it waits for a link */
    PACE_SKIPS,   /* the server skips what comes, up to a Sync */
    PACE_REPAIRS, /* its answer is told: its link is put right */
    PACE_RUNS
};

/* What the router may have to know of, beside statements and their transactions. */
enum route_event {
    ROUTED_UNREAD,     /* a query was sent that nobody has looked into */
    ROUTED_UNKNOWN,    /* what was sent may do anything to the schema */
    ROUTED_CALL,       /* a function call was sent: of one that every server has */
    ROUTED_CODE,       /* a function call was sent: of one that somebody has made */
    ROUTED_SETTLED,    /* the exchange is over */
    ROUTED_REFUSED,    /* it is not made: it was in the way of a question, or waited for a link */
    ROUTED_CANCELED,   /* what waits is not made: its client has cancelled it */
    ROUTED_DISCARD,    /* DISCARD ALL was done */
    ROUTED_COMMIT,     /* the transaction has ended without its link */
    ROUTED_VIRTUAL_END /* a transaction has ended of which no server knew */
};

/* None of these ends the client but those that say so. */
struct client_kind {
    /* Bytes in its session. May end it. */
    void (*feed)(struct client *c, const char *p, const char *end);
    /* All messages that can be looked at have been. */
    void (*fed)(struct client *c);
    /* One message, of which `msg` has come. May end it. */
    enum feed_step (*message)(struct client *c, struct feed_run *run, char type, struct slice msg,
        bool is_whole, const char *end);
    /* Has such a message to be complete before it can be judged? Others may go in parts. */
    bool (*wants_whole)(const struct client *c, char type);
    enum client_pace (*pace)(const struct client *c);
    /* A cancel request: true when what it meant was done, and `fd` is closed or passed on. */
    bool (*cancel)(struct client *c, int fd);
    /* The client goes, or its link does: see client_drop_link. */
    void (*drop_link)(struct client *c, bool boundary);
    /* An answer of ours comes in front of what its exchange might be sent again for. */
    void (*stop_keeping)(struct client *c);
    /* The login has its link: may the welcome be said? It is in its session, all is known of its
     * login. The welcome was said: may end it. */
    bool (*granted)(struct client *c);
    void (*entered)(struct client *c);
    void (*welcomed)(struct client *c);
    /* The client's session is data from here on, made of start-up parameters. False: they cannot be
     * SET. */
    bool (*follow)(struct client *c);
    int (*pool_mode)(const struct client *c); /* enum conf_pool_mode */
    /* Changes to another pool_mode, outside of transactions. 0, or -1 and *err. */
    int (*change_mode)(struct client *c, int wanted, struct err *err);
    /* An idle one: may it go to another worker? */
    bool (*can_travel)(const struct client *c);
    /* The state of its transaction, as the client knows it. */
    char (*tx_status)(const struct client *c);
    /* What it has SET; p == NULL: nothing that we know of. */
    struct slice (*setting)(const struct client *c, const char *name);
    /* An order about a client by its number is not its server's alone to carry out. */
    bool (*orders)(struct client *c);
    /* What it has while something of its own is under way, or may be; NULL: nothing. */
    struct errand *(*errand)(const struct client *c);
    /* The link that stays its between exchanges, while it has no other; or NULL. */
    struct link *(*kept)(const struct client *c);
    /* The row of its link tells what it runs, as nobody else has that link. */
    bool (*tells_by_link)(const struct client *c);

    /* Where statements go: at home alone, or (balanced) where reads may. */
    /* The node for a plain statement of an idle client (`prep`; NULL: `sql`), and again.retry.
     * False: it is to be looked at further. */
    bool (*place)(struct client *c, struct prep *prep, struct slice sql,
        const struct sql_facts *facts, int *node);
    /* One in a transaction may go as it is: see exchange_quick_goes_on. */
    bool (*goes_on)(struct client *c, struct slice sql);
    /* plan_case.judge; NULL: nothing leaves home. */
    plan_judge_fn *judge;
    /* The choice was made with this step, which is returned. */
    enum feed_step (*chosen)(struct client *c, enum feed_step step);
    /* The client's transaction lives on a standby, which has not what `sql` reads: see
     * plan_aside_lacks. */
    bool (*lacks)(struct client *c, struct slice sql);
    /* True when `sql` is known to read, and to do nothing but that. */
    bool (*reads)(struct client *c, struct slice sql);
    /* What the catalogue said of a relation: route_input.lookup. NULL: its changes go unseen. */
    int (*relation)(void *c, const struct route_question *q, uint32_t *bits);
    /* May the query cache ask the primary now, without a line or a new link? */
    bool (*may_ask)(struct client *c);
    /* A transaction has begun; a statement is sent to where writes go; anything else. */
    void (*begun)(struct client *c, const struct sql_tx *tx);
    void (*sent)(struct client *c, struct slice sql);
    void (*routed)(struct client *c, enum route_event event);
    /* Where a statement would go: client_explain_asks, client_explain. */
    bool (*explain_asks)(struct client *c, struct slice sql);
    const struct sql_facts *(*explain)(struct client *c, struct slice sql, struct explained *out);
};

/* The kinds of a worker's clients. Tables: client_kinds.c. */
struct client_kinds {
    struct client_kind relayed;
    struct client_kind followed;
    struct client_kind balanced; /* followed, and its reads may leave where writes go */
    struct client_kind native;
    struct client_kind console;
};
extern const struct client_kinds client_kinds;

/* What the tables name. feed.c: */
void feed_each_message(struct client *c, const char *p, const char *end);
void feed_relayed(struct client *c, const char *p, const char *end);
enum feed_step client_message(struct client *c, struct feed_run *run, char type, struct slice msg,
    bool is_whole, const char *end);
/* client_message in the virtual database. */
enum feed_step feed_alone(struct client *c, struct feed_run *run, char type, struct slice msg,
    bool is_whole, const char *end);
/* client_cancel.c */
bool client_cancel_followed(struct client *c, int fd);

#endif
