/* SPDX-License-Identifier: PostgreSQL
 * share_phase_int.h: which phase of a session that shares links may follow which. Runs in: workers.
 * The table is pure (share_phase.c; test/unit/session/test_share_phase.c). share_goto alone sets
 * share.phase. */
#ifndef PGP_SESSION_SHARE_PHASE_INT_H
#define PGP_SESSION_SHARE_PHASE_INT_H

#include "base/hot.h"

#include "share_int.h"

/* Phases that may follow, a bit each; what they are called in the log. */
extern const uint16_t share_phase_next[SHARE_NPHASES];
const char *share_phase_name(enum share_phase phase);

HOT static inline bool share_phase_may(enum share_phase from, enum share_phase to)
{
    return (share_phase_next[from] >> to & 1) != 0;
}

/* share_goto.c: one that is not in the table is a bug. It is counted (sessions.wrong_edges), and
 * the log has each of them once; the client goes on. The simulation, and tests that look at the
 * log, fail by it. */
COLD void share_goto_wrongly(struct client *c, enum share_phase to);

HOT static inline void share_goto(struct client *c, enum share_phase to)
{
    struct share *s = c->share;

    if (!share_phase_may((enum share_phase)s->phase, to))
        share_goto_wrongly(c, to);
    s->phase = (uint8_t)to;
}

#endif
