/* SPDX-License-Identifier: PostgreSQL
 * phase.c: which phase of a session that is followed may follow which. Runs in: workers.
 * Pure. doc/internals/architecture.md has the table in words. */
#include "config.h"

#include "sstate/phase_int.h"

#define TO(phase) (1U << PHASE_##phase)
/* A link that dies, is given back or is put aside, a wait that is given up: from everywhere. */
#define LEAVES TO(DETACHED)

const uint16_t phase_next[NPHASES] = {
    /* A link is there at once; SYNCING: the login's. */
    [PHASE_DETACHED] = LEAVES | TO(WAITING) | TO(OPENING) | TO(SYNCING) | TO(ATTACHED),
    /* It is its turn; or it goes on waiting, but for something else. */
    [PHASE_WAITING] = LEAVES | TO(WAITING) | TO(ATTACHED),
    [PHASE_OPENING] = LEAVES | TO(ATTACHED),
    /* More settings; what they were put for: the client's own, a question of ours, one of the
     * server whether the session may do something. */
    [PHASE_SYNCING] = LEAVES | TO(SYNCING) | TO(ATTACHED) | TO(ASKING) | TO(JUDGING),
    /* Who asked has the link, or has it to give back. */
    [PHASE_ASKING] = LEAVES | TO(ATTACHED),
    [PHASE_LOOKING] = LEAVES | TO(ATTACHED),
    [PHASE_JUDGING] = LEAVES | TO(ATTACHED),
    [PHASE_ATTACHED] =
        LEAVES | TO(SYNCING) | TO(ASKING) | TO(LOOKING) | TO(JUDGING) | TO(REPAIRING),
    /* Cut short, it is done once more. */
    [PHASE_REPAIRING] = LEAVES | TO(REPAIRING) | TO(ATTACHED),
};

const char *phase_name(enum phase phase)
{
    static const char *const names[NPHASES] = {
        [PHASE_DETACHED] = "detached",
        [PHASE_WAITING] = "waiting",
        [PHASE_OPENING] = "opening",
        [PHASE_SYNCING] = "syncing",
        [PHASE_ASKING] = "asking",
        [PHASE_LOOKING] = "looking",
        [PHASE_JUDGING] = "judging",
        [PHASE_ATTACHED] = "attached",
        [PHASE_REPAIRING] = "repairing",
    };

    return names[phase];
}
