/* SPDX-License-Identifier: PostgreSQL
 * retire.h: a role or a database is not what it was when links were opened: these are not used for
 * new sessions any more.
 * Runs in: workers. It is said by mail (MAIL_LINKS_RETIRE), for every worker has links. */
#ifndef PGP_BACKEND_RETIRE_H
#define PGP_BACKEND_RETIRE_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/rows.h"

struct backend;

/* For `place`: the servers of pgpool.conf. */
#define RETIRE_OUR_SERVERS (-1)

/* Which links; an empty name stands for all. */
struct link_retire {
    int32_t place;    /* RETIRE_OUR_SERVERS, or which server of pools.conf */
    uint32_t is_gone; /* the role is no more: what is known of it goes, too */
    uint32_t sets;    /* those that are there have settings, or a role, as they were */
    char user[ROWS_NAME_BYTES];
    char database[ROWS_NAME_BYTES];
};

/* How many are remembered, for links that are on their way to this worker meanwhile. */
#define RETIRE_KEPT 8

struct link_retired {
    struct link_retire what;
    int64_t at_us; /* 0: free */
};

/* Closes the links meant that are idle now, and the others when they are free. */
void backend_retire(struct backend *be, const struct link_retire *what);
/* Does what backend_retire does, by mail: `body` is a struct link_retire. */
void backend_on_retire(struct backend *be, const void *body, size_t len);

#endif
