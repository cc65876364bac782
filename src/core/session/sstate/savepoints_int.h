/* SPDX-License-Identifier: PostgreSQL
 * savepoints_int.h: what ROLLBACK TO brings back. A savepoint is the settings of then (two pointers
 * to immutable sets) and what tied the session to its link then. Runs in: workers. Pure: it knows
 * no client and no link; test/unit/session/test_savepoints.c tells it in a table. */
#ifndef PGP_SESSION_SAVEPOINTS_INT_H
#define PGP_SESSION_SAVEPOINTS_INT_H

#include "backend/varset.h"

/* A transaction with more of them is not followed: see savepoints_set. */
#define SAVEPOINTS_MAX 1000
/* A server knows no longer names (NAMEDATALEN), with their NUL. */
#define SAVEPOINT_NAME_BYTES 64

/* What a session has set, and what its link has. They differ after a RESET: on the link that means
 * the server's default, for the client its start-up parameter. */
struct sstate_vars {
    struct varset *client;
    struct varset *link;
};

void sstate_vars_assign(struct sstate_vars *to, const struct sstate_vars *from);
void sstate_vars_clear(struct sstate_vars *v);

struct savepoint {
    struct savepoint *older;
    struct sstate_vars vars;
    uint32_t pins;
    char name[SAVEPOINT_NAME_BYTES];
};

/* The savepoints of the open transaction. All zero: none. */
struct savepoints {
    struct savepoint *newest;
    uint16_t n;
};

/* SAVEPOINT: one of this name may be there already, and is hidden by the new one. False when there
 * are too many: what a rollback to this one would bring back is not known then. A name that no
 * server takes as it is makes none. */
bool savepoints_set(
    struct savepoints *sp, struct slice name, const struct sstate_vars *vars, uint32_t pins);
/* ROLLBACK TO: *vars become those of then, newer savepoints go, it stays. What has tied the session
 * since then may do so still (the server is asked), and what was let go since then (DISCARD TEMP)
 * ties it again. Without one of this name nothing changes: the server says that it is an error. */
void savepoints_roll_back_to(
    struct savepoints *sp, struct slice name, struct sstate_vars *vars, uint32_t *pins);
/* RELEASE: it goes, and newer ones with it. */
void savepoints_release(struct savepoints *sp, struct slice name);
/* The transaction is over, in whatever way. */
void savepoints_forget(struct savepoints *sp);

#endif
