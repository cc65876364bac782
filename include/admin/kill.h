/* SPDX-License-Identifier: PostgreSQL
 * kill.h: pg_terminate_backend() and pg_cancel_backend() of the number that a client of ours was
 * told. Runs in: workers. Pure, but for the rows of clients that it reads. */
#ifndef PGP_ADMIN_KILL_H
#define PGP_ADMIN_KILL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

struct client_row;
struct err;
struct errmsg;
struct row_names;
struct shm;
struct wire_reader;

struct admin_kill {
    bool is_cancel;
    bool is_bound;  /* the number is a parameter */
    bool is_binary; /* the result is wanted so */
    int32_t pid;    /* 0: not known yet */
};

/* True when the text is that call and nothing else, of a number that may be a client's or a
 * parameter. */
bool admin_kill_read(struct slice sql, struct admin_kill *k);
/* Reads a Bind behind its names. True when the number is known then and may be a client's. */
bool admin_kill_bind(struct admin_kill *k, struct wire_reader *r);
/* Whose number it is, among the clients of servers as that of `node`: *row is that client's, and
 * *names its role's. False: nobody's. */
bool admin_kill_find(const struct admin_kill *k, const struct shm *shm, int node,
    struct client_row *row, struct row_names *names);
/* The question whether who asks it may give that order about sessions of `user`: Close, Parse,
 * Bind, Execute, Close and Close, of names of its own. Its answer is a row, or an error that
 * admin_kill_refused knows. */
void admin_kill_put_question(struct slice user, struct buf *out);
/* True when this error is that answer: *err is what a server of this version ("16.4", as it reports
 * it) would have said. */
bool admin_kill_refused(
    const struct admin_kill *k, const struct errmsg *m, struct slice version, struct err *err);
/* RowDescription, and row and CommandComplete. */
void admin_kill_put_columns(const struct admin_kill *k, struct buf *out);
void admin_kill_put_row(const struct admin_kill *k, bool is_done, struct buf *out);

#endif
