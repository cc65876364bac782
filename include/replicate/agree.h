/* SPDX-License-Identifier: PostgreSQL
 * agree.h: what several nodes answered to one statement: who agrees, who is to go. Pure.
 * Runs in: workers. */
#ifndef PGP_REPLICATE_AGREE_H
#define PGP_REPLICATE_AGREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

#define AGREE_SAMPLE_BYTES 160

/* Rows of an answer as they come, in any pieces: a digest that does not depend on their order, and
 * how the first one begins, for people. Begins as zeroes. */
struct agree_rows {
    uint64_t digest;
    uint64_t n;
    uint64_t row; /* of the row at hand */
    uint32_t nsample;
    char sample[AGREE_SAMPLE_BYTES];
};

/* A piece of a row; the row ends. */
void agree_rows_add(struct agree_rows *rows, const char *p, size_t n);
void agree_rows_end(struct agree_rows *rows);

/* What one node said to one statement, reduced to what has to be the same everywhere. */
struct agree_answer {
    int node;
    char kind;        /* 'C' done, 'E' error, 'T' rows, ...: the message that tells */
    uint64_t ntuples; /* of its command tag */
    bool has_tuples;
    const struct agree_rows *rows; /* NULL: they are not compared */
    struct slice text;             /* the command tag, or SQLSTATE and message of an error */
};

enum agree_verdict {
    AGREE_SAME,
    AGREE_KINDS,  /* kinds differ, or SQLSTATEs of errors do not matter: an error is an error */
    AGREE_TUPLES, /* done everywhere, with different numbers of rows */
    AGREE_ROWS    /* the rows themselves differ */
};

struct agree_result {
    enum agree_verdict verdict;
    unsigned main; /* index of the answer that stands: the majority's, a tie is the main node's */
    uint64_t minority; /* the others, by index */
    bool main_differs; /* the main node is among them */
};

struct agree_rules {
    bool stop_on_mismatch;   /* replication_stop_on_mismatch */
    bool failover_if_tuples; /* failover_if_affected_tuples_mismatch */
    bool compares_rows;
};

enum agree_action {
    AGREE_GO_ON,
    AGREE_DETACH, /* the minority is taken out of service; the client goes on */
    AGREE_REFUSE, /* the client is told an error, and the transaction is rolled back everywhere */
    AGREE_END     /* the session ends */
};

/* `main`: index of the main node's answer. */
void agree_judge(const struct agree_answer *answers, unsigned n, unsigned main,
    const struct agree_rules *rules, struct agree_result *out);
enum agree_action agree_what_to_do(
    const struct agree_result *result, const struct agree_rules *rules);

/* An error (its SQLSTATE and text) that another node may not meet: a lock, a time-out, no room. */
bool agree_is_lock_trouble(struct slice said);

/* Reads a command tag: "UPDATE 3", "INSERT 0 3". False: no number in it. */
bool agree_tag_tuples(struct slice tag, uint64_t *ntuples);

/* Texts that tools of pgpool-II look for: a line for the log about each node of the minority (and
 * what it answered), and what the client is told. `query` is cut when it is long. */
void agree_put_log(const struct agree_answer *answers, unsigned n,
    const struct agree_result *result, unsigned i, struct buf *out);
void agree_put_error(const struct agree_answer *answers, unsigned n,
    const struct agree_result *result, struct slice query, struct buf *out);
const char *agree_hint(const struct agree_result *result);

#endif
