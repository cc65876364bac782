/* SPDX-License-Identifier: PostgreSQL
 * web_conns.h: which HTTP connections there are, how long each may take, and who goes when there
 * are too many. Runs in: web. Pure: it is told the time, and closes nothing itself. */
#ifndef PGP_PROCESS_WEB_CONNS_H
#define PGP_PROCESS_WEB_CONNS_H

#include <stdbool.h>
#include <stdint.h>

#include "auth/hba.h"
#include "base/list.h"

#define WEB_CONNS_MAX        256
#define WEB_CONNS_OF_ONE     64 /* of one address that has not proved who it is */
#define WEB_REQUEST_LIMIT_US (INT64_C(60) * 1000000)

struct web_conn {
    struct list node;
    struct hba_addr addr;
    int fd;
    int64_t since_us; /* it was opened, or its last answer was sent */
    bool is_known;    /* a request of it was allowed to a user */
    bool is_leaving;  /* it was told to go */
};

struct web_conns {
    struct list all; /* by since_us */
    int n;
};

void web_conns_init(struct web_conns *all);
struct web_conn *web_conns_add(
    struct web_conns *all, int fd, const struct hba_addr *addr, int64_t now_us);
/* Frees *cp and clears it; harmless when it is NULL. */
void web_conns_remove(struct web_conns *all, struct web_conn **cp);
/* An answer was sent: there is as much time for the next request, with its answer. */
void web_conns_renew(struct web_conns *all, struct web_conn *c, int64_t now_us);
/* Who has to go for another one of `addr`: the oldest of that address (of that network of 64 bits)
 * when it has too many, the oldest of all when all have; NULL: there is room, or nobody can go.
 * Who is known is not sent away for a stranger. */
struct web_conn *web_conns_in_the_way(struct web_conns *all, const struct hba_addr *addr);
/* True when `n` is as many as there may be. */
bool web_conns_are_full(const struct web_conns *all);
/* One that took longer than a request may, and was not told to go; NULL: none. */
struct web_conn *web_conns_overdue(struct web_conns *all, int64_t now_us);

#endif
