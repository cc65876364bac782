/* SPDX-License-Identifier: PostgreSQL
 * writer.h: builds whole messages into a buffer. Pure. */
#ifndef PGP_WIRE_WRITER_H
#define PGP_WIRE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "wire/proto.h"

/* Starts a message of `type`; returns the offset to hand to wire_end. */
uint32_t wire_begin(struct buf *b, char type);
/* Fills in the length. */
void wire_end(struct buf *b, uint32_t start);

/* Server to client. */
void wire_put_auth(struct buf *b, enum auth_code code, struct slice rest);
void wire_put_parameter_status(struct buf *b, struct slice name, struct slice value);
void wire_put_key_data(struct buf *b, int32_t pid, struct slice key);
void wire_put_ready(struct buf *b, char tx_status);
/* NegotiateProtocolVersion: newest minor we speak, and the option names not known. */
void wire_put_negotiate(struct buf *b, uint32_t version, const struct slice *unknown, unsigned n);
/* ErrorResponse ('E') with severity S and V, SQLSTATE, message, detail, hint. WARNING severity
 * makes a NoticeResponse. */
void wire_put_err(struct buf *b, const struct err *err);
/* NoticeResponse with the given severity text ("NOTICE", "LOG"...). */
void wire_put_notice(struct buf *b, const char *severity, const char *sqlstate, const char *msg);
/* RowDescription of text columns: table oid 0, attnum = index, type oid `type_oid` (pgpool-II uses
 * 0; 25 is text), typlen -1. */
void wire_put_row_description(
    struct buf *b, const char *const *names, unsigned n, uint32_t type_oid);
/* RowDescription with a type for each column; the values come as text all the same. */
void wire_put_typed_columns(
    struct buf *b, const char *const *names, unsigned n, const uint32_t *type_oids);
/* DataRow of text values; a value with p == NULL is NULL. */
void wire_put_data_row(struct buf *b, const struct slice *values, unsigned n);
void wire_put_command_complete(struct buf *b, const char *tag);
/* A message without a body: ParseComplete, BindComplete, NoData, EmptyQueryResponse, ... */
void wire_put_empty(struct buf *b, char type);
/* Takes away the message that begins at `at`, which is whole. */
void wire_drop(struct buf *b, uint32_t at);

/* Client to server. */
void wire_put_query(struct buf *b, struct slice sql);
void wire_put_password(struct buf *b, struct slice bytes); /* bytes as given, no NUL added */
void wire_put_parse(struct buf *b, struct slice name, struct slice sql);
void wire_put_close(struct buf *b, char what, struct slice name);

#endif
