/* SPDX-License-Identifier: PostgreSQL
 * client_kind_int.h: what differs by how a client is served: relayed (session mode over one
 * server), sharing links, writing to all nodes, in the virtual database. A client has the table of
 * its kind from when that is known (client.kind), so that nobody asks which it is. */
#ifndef PGP_CLIENT_KIND_INT_H
#define PGP_CLIENT_KIND_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

struct client;
struct link;

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

/* None of these ends the client but those that say so. */
struct client_kind {
    /* Bytes in its session. May end it. */
    void (*feed)(struct client *c, const char *p, const char *end);
    /* Those that can be looked at have been. */
    void (*fed)(struct client *c);
    /* One message, of which `msg` has come. May end it. */
    enum feed_step (*message)(struct client *c, struct feed_run *run, char type, struct slice msg,
        bool is_whole, const char *end);
    /* Has such a message to be complete before it can be judged? Others may go in parts. */
    bool (*wants_whole)(const struct client *c, char type);
    enum client_pace (*pace)(const struct client *c);
    /* A cancel request: true when what it meant was done, and `fd` is closed or passed on. */
    bool (*cancel)(struct client *c, int fd);
    /* It goes, or its link does: see client_drop_link. */
    void (*drop_link)(struct client *c, bool boundary);
    /* An answer of ours comes in front of what its exchange might be sent again for. */
    void (*stop_keeping)(struct client *c);
    /* The login has its link: may the welcome be said? It was said: may end it. */
    bool (*granted)(struct client *c);
    void (*welcomed)(struct client *c);
    /* Its session is data from now on, made of start-up parameters. False: they cannot be SET. */
    bool (*follow)(struct client *c);
    int (*pool_mode)(const struct client *c); /* enum conf_pool_mode */
    /* As the client knows it. */
    char (*tx_status)(const struct client *c);
    /* What it has SET; p == NULL: nothing that we know of. */
    struct slice (*setting)(const struct client *c, const char *name);
    /* An order about a client by its number is not its server's alone to carry out. */
    bool (*orders)(struct client *c);
    /* The link that stays its between exchanges, while it has no other; or NULL. */
    struct link *(*kept)(const struct client *c);
    /* The row of its link tells what it runs, as nobody else has that link. */
    bool (*tells_by_link)(const struct client *c);
};

/* Of a worker. Tables: client_kinds.c. */
struct client_kinds {
    struct client_kind relayed;
    struct client_kind sharing;
    struct client_kind native;
    struct client_kind console;
};
extern const struct client_kinds client_kinds;

/* What the tables name. client_feed.c: */
void client_feed_messages(struct client *c, const char *p, const char *end);
void client_feed_relayed(struct client *c, const char *p, const char *end);
enum feed_step client_message(struct client *c, struct feed_run *run, char type, struct slice msg,
    bool is_whole, const char *end);
/* client_cancel.c */
bool client_cancel_sharing(struct client *c, int fd);

#endif
