/* SPDX-License-Identifier: PostgreSQL
 * said.h: log_per_node_statement and its like for the extended protocol: Bind and Execute are
 * logged with the text of their statement. Runs in: workers.
 *
 * Texts are kept here and only while statements are logged, whoever else keeps them: nobody does
 * for portals, nor for anything where nothing is balanced. What was parsed before that has no text.
 * Must never: cost anything while nothing is logged. */
#ifndef PGP_ACCOUNT_SAID_H
#define PGP_ACCOUNT_SAID_H

#include <stdbool.h>

#include "base/slice.h"

struct hash_table;

/* A line of the log. */
struct said_line {
    const char *kind; /* what stands before it */
    struct slice text;
};

/* A message of the extended protocol is sent. False: it is no statement. `client` is its key in
 * `said`, the worker's; `body` may be incomplete; *line holds until the next call. */
bool said_note(struct hash_table *said, const void *client, char type, struct slice body,
    struct said_line *line);
/* The client is gone. */
void said_end(struct hash_table *said, const void *client);

#endif
