/* SPDX-License-Identifier: PostgreSQL
 * client_trace_int.h: log_client_messages and log_backend_messages: every message of the protocol
 * in the log, in pgpool-II's words. Runs in: workers. For finding out what a driver does; while it
 * is off it costs a test of a byte per message or run of replies. What pgpool sends and swallows
 * itself is not in it. */
#ifndef PGP_SESSION_CLIENT_TRACE_INT_H
#define PGP_SESSION_CLIENT_TRACE_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hot.h"
#include "base/slice.h"
#include "parser/sqlcomment.h"

struct client;

/* Part of struct client. */
struct client_trace {
    bool client;    /* log_client_messages */
    uint8_t server; /* enum conf_message_detail; 0: none */
};

/* Part of struct client_rare, from when `server` is not 0. */
struct client_replies {
    uint32_t body_left; /* of a server's message that was passed on in part */
    uint32_t repeats;   /* of `last`, not told yet */
    uint32_t copies;    /* CopyData messages of the client, not told yet */
    int16_t last_node;
    char last;
};

/* Looks at the settings of the session; called when it begins, and for its statements. */
void client_trace_settings(struct client *c);
/* Notes for jsonlog what the comment of a statement that is sent says of whose request it is, until
 * the exchange is over. */
COLD void client_trace_comment(struct client *c, struct slice sql);
/* A message of the client is dealt with. `body` may be incomplete. */
COLD void client_trace_message(struct client *c, char type, struct slice body);
/* Bytes of the server of `node` for the client: messages, the first and the last perhaps in part.
 */
void client_trace_reply(struct client *c, int node, const char *p, size_t n);

#endif
