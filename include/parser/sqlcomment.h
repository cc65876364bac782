/* SPDX-License-Identifier: PostgreSQL
 * sqlcomment.h: whose request a statement belongs to, as libraries for tracing write it into a
 * comment (sqlcommenter: traceparent='00-TRACE-SPAN-01', of W3C's Trace Context). Pure. */
#ifndef PGP_PARSER_SQLCOMMENT_H
#define PGP_PARSER_SQLCOMMENT_H

#include <stdbool.h>

#include "base/slice.h"

struct sql_trace {
    char trace_id[33]; /* 32 digits of base 16, NUL-ended; empty: none */
    char span_id[17];
};

/* Fills *out, empty when there is none. For the log alone: a text that only looks like one is taken
 * for it. Returns whether there is one. */
bool sqlcomment_trace(struct slice sql, struct sql_trace *out);

#endif
