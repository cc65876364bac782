/* SPDX-License-Identifier: PostgreSQL
 * proto_names.h: names of messages of the protocol, for people. Pure. */
#ifndef PGP_WIRE_PROTO_NAMES_H
#define PGP_WIRE_PROTO_NAMES_H

#include "base/slice.h"

struct buf;

/* "Query", "Parse", ... of what clients send, by its first byte; "Unknown" for any other. */
const char *proto_client_name(char type);
/* "DataRow", "ReadyForQuery", ... of what servers send. */
const char *proto_server_name(char type);
/* Puts what a client's message is about, by name: statement, portal, text; nothing when `body` came
 * in part, or is malformed. */
void proto_put_names(struct buf *out, char type, struct slice body);

#endif
