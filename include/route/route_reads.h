/* SPDX-License-Identifier: PostgreSQL
 * route_reads.h: where reads go against which nothing speaks, worked out once for the cluster as it
 * is, so that one of them costs no walk over its servers. Runs in: workers. Pure, like route.h:
 * whatever it does not know is judged there. */
#ifndef PGP_ROUTE_ROUTE_READS_H
#define PGP_ROUTE_ROUTE_READS_H

#include <stdbool.h>
#include <stdint.h>

#include "route/route.h"

/* With more nodes that have a weight each statement's draw walks. */
#define ROUTE_READS_DRAWN 6

/* Good for one version of the view and one generation of the settings. */
struct route_reads {
    uint64_t open[2]; /* bit per node: the primary, and standbys whose lag speaks against no read */
    bool has_patterns;     /* primary_routing_query_pattern_list looks at every text */
    bool is_by_statement;  /* each statement draws: */
    bool sticks_to_writes; /* a session that has written reads from the primary */
    bool awaits_replay;    /* a session that has written reads where that is replayed */
    uint8_t ndrawn;        /* 0: nothing is drawn here */
    int16_t primary;       /* view_write_node: has all that was ever written */
    int16_t node[ROUTE_READS_DRAWN];
    double upto[ROUTE_READS_DRAWN]; /* of the unit of chances */
};

/* Works it out. Only the settings, their rules and the view of `in` count. */
void route_reads_make(struct route_reads *r, const struct route_input *in);
/* The node for a read of `s`, which is in no transaction, whose text is known
 * (route_decision.known) and holds for the session's answers; VIEW_NO_NODE: what route_query says.
 * It is the same that route_query would say, with reason BALANCED, or PREFERENCE when the session's
 * node is a preferred one. */
int route_reads_node(const struct route_reads *r, const struct view *v,
    const struct route_session *s, uint64_t random);

#endif
