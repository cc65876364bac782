/* SPDX-License-Identifier: PostgreSQL
 * numbers.h: sequences that a statement takes numbers of: where they stand on each node, and what
 * brings those forward that are behind. Pure. Runs in: workers. */
#ifndef PGP_REPLICATE_NUMBERS_H
#define PGP_REPLICATE_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

struct arena;

/* A sequence as the main node has it, under its lock. */
struct repl_number {
    struct slice sequence; /* as in struct repl_plan */
    struct slice last;     /* digits; p NULL: not known */
    bool may_set;
    bool is_told; /* the main node has answered */
};

struct repl_numbers {
    struct repl_number *all;
    uint32_t n;
    uint32_t ntaken; /* of these, from rows within a sequence of messages */
    bool are_apart;  /* one may be further on another node than on the main one */
};

/* The lock of a sequence, which readers, vacuum and who writes to the tables do not wait for. A row
 * comes back: the number that the sequence gave last (NULL: none, or the user may not see it), and
 * whether the user may set it. */
void repl_sequence_lock_sql(struct slice sequence, struct buf *sql);
/* One more, if it is not there yet. */
void repl_numbers_add(struct arena *a, struct repl_numbers *numbers, struct slice sequence);
/* The user has no right to one of them, as an identity column needs none: nobody puts it right. */
bool repl_numbers_are_hidden(const struct repl_numbers *numbers);
/* Takes the main node's two values of that row for each of them, or a row of the next one; what is
 * kept is in the arena. */
void repl_numbers_take(struct arena *a, const struct slice *values, struct repl_numbers *numbers);
void repl_numbers_take_row(struct arena *a, struct slice row, struct repl_numbers *numbers);
/* Appends what makes these sequences of another node stand where the main node's do, where they
 * are behind: a SELECT of one row, to be run before they give another number; nothing when none is
 * known. None is set back: that row tells which ones are further. */
void repl_numbers_sql(const struct repl_numbers *numbers, struct buf *sql);
void repl_numbers_compare(struct slice row, struct repl_numbers *numbers);
/* The question where those stand now that are known: a row. */
void repl_numbers_where_sql(const struct repl_numbers *numbers, struct buf *sql);
/* Several nodes have answered it, each row with its length in front: true when all stand alike;
 * else appends what brings the main node's to where the furthest are. */
bool repl_numbers_are_alike(const struct repl_numbers *numbers, struct slice rows, struct buf *sql);

#endif
