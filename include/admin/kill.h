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
struct shm;
struct wire_reader;

struct admin_kill {
    bool is_cancel;
    bool is_bound;  /* the number is a parameter */
    bool is_binary; /* the result is wanted so */
    int32_t pid;    /* 0: not known yet */
};

enum admin_kill_verdict {
    ADMIN_KILL_NOBODY, /* no client has that number */
    ADMIN_KILL_REFUSED,
    ADMIN_KILL_MAY
};

/* False for nearly all texts. */
static inline bool admin_kill_is_likely(struct slice sql)
{
    return sql.n > 10 && sql.n < 100 && (sql.p[0] | 0x20) == 's' && (sql.p[7] | 0x20) == 'p' &&
           (sql.p[8] | 0x20) == 'g';
}
/* True when the text is that call and nothing else, of a number that may be a client's or a
 * parameter. */
bool admin_kill_read(struct slice sql, struct admin_kill *k);
/* Reads a Bind behind its names. True when the number is known then and may be a client's. */
bool admin_kill_bind(struct admin_kill *k, struct wire_reader *r);
/* Who gives the order. */
struct admin_kill_caller {
    struct slice role; /* as which its session acts */
    bool is_superuser;
    int node; /* of its pool: numbers of clients of other servers mean nothing to it */
};
/* Whose number it is: *row is that client's; and whether the caller may give the order.
 * ADMIN_KILL_REFUSED: *err says why not. */
enum admin_kill_verdict admin_kill_judge(const struct admin_kill *k, const struct shm *shm,
    const struct admin_kill_caller *caller, struct client_row *row, struct err *err);
/* RowDescription, and row and CommandComplete. */
void admin_kill_put_columns(const struct admin_kill *k, struct buf *out);
void admin_kill_put_row(const struct admin_kill *k, bool is_done, struct buf *out);

#endif
