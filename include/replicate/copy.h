/* SPDX-License-Identifier: PostgreSQL
 * copy.h: rows of COPY FROM STDIN with columns filled in: what the statement leaves out, and what
 * every node would take from its own clock, is written into each row. Pure.
 * Runs in: workers. */
#ifndef PGP_REPLICATE_COPY_H
#define PGP_REPLICATE_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

enum repl_copy_format { REPL_COPY_TEXT, REPL_COPY_CSV, REPL_COPY_OTHER };

/* How the rows are written, as the statement says. */
struct repl_copy_form {
    enum repl_copy_format format;
    char delimiter;
    char quote;
    char escape;
    bool has_header;
    bool has_defaults; /* the option DEFAULT: a mark in the data stands for one */
};

/* A stream of rows. */
struct repl_copy {
    struct repl_copy_form form;
    struct slice row;    /* goes in front of the end of each row */
    struct slice header; /* of the first */
    uint32_t row_bytes;  /* of the row at hand, so far */
    char first[2];       /* its first bytes */
    bool in_quote;
    bool is_escaped; /* the next byte */
    bool after_cr;   /* that ended a row: a newline behind it belongs to it */
    bool is_over;    /* its own end mark was seen */
};

/* Appends what goes in front of the end of a row: the values, each behind a delimiter. */
void repl_copy_put_row(
    const struct repl_copy_form *form, const struct slice *values, uint32_t n, struct buf *out);
/* Appends the data with the rows filled in. */
void repl_copy_fill(struct repl_copy *copy, struct slice data, struct buf *out);
/* The client has no more data: appends what the last row lacks. */
void repl_copy_end(struct repl_copy *copy, struct buf *out);

#endif
