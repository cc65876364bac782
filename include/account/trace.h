/* SPDX-License-Identifier: PostgreSQL
 * trace.h: log_client_messages and log_backend_messages: every message of the protocol in the log,
 * in pgpool-II's words, about the client whose lines are told (account/lines.h). Runs in: workers.
 * For finding out what a driver does. Only headers and names are read. */
#ifndef PGP_ACCOUNT_TRACE_H
#define PGP_ACCOUNT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hot.h"
#include "base/slice.h"

/* The answers to one client, whose messages are told. */
struct client_replies {
    uint32_t body_left; /* of a server's message that was passed on in part */
    uint32_t repeats;   /* of `last`, not told yet */
    uint32_t copies;    /* CopyData messages of the client, not told yet */
    int16_t last_node;
    char last;
};

/* A message of the client, but CopyData, of which `*copies` were not told (0 then). `body` may be
 * incomplete. */
COLD void trace_message(uint32_t *copies, char type, struct slice body);
/* Bytes of the server of `node` for the client: messages, the first and the last perhaps in part.
 * `is_terse`: what repeats is counted, and told when something else comes. */
COLD void trace_reply(struct client_replies *t, bool is_terse, int node, const char *p, size_t n);

#endif
