/* SPDX-License-Identifier: PostgreSQL
 * phase_int.h: which phase of a session that is followed may follow which. Runs in: workers.
 * The table is pure (phase.c; test/unit/session/test_phase.c). phase_goto alone sets
 * sstate.phase. */
#ifndef PGP_SESSION_PHASE_INT_H
#define PGP_SESSION_PHASE_INT_H

#include "base/hot.h"

#include "sstate_int.h"

/* Phases that may follow, a bit each; what they are called in the log. */
extern const uint16_t phase_next[NPHASES];
const char *phase_name(enum phase phase);

HOT static inline bool phase_may(enum phase from, enum phase to)
{
    return (phase_next[from] >> to & 1) != 0;
}

/* phase_goto.c: one that is not in the table is a bug. It is counted (sessions.wrong_edges), and
 * the log has each of them once; the client goes on. The simulation, and tests that look at the
 * log, fail by it. */
COLD void phase_goto_wrongly(struct client *c, enum phase to);

HOT static inline void phase_goto(struct client *c, enum phase to)
{
    struct sstate *s = c->sstate;

    if (!phase_may((enum phase)s->phase, to))
        phase_goto_wrongly(c, to);
    s->phase = (uint8_t)to;
}

#endif
