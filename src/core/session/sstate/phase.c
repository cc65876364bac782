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
    [PHASE_DETACHED] = LEAVES | TO(WAITING) | TO(ASK_WAITING) | TO(OPENING) | TO(ASK_OPENING) |
                       TO(SYNCING) | TO(ATTACHED),
    /* The client's turn comes; or it goes on waiting, but for something else. */
    [PHASE_ASK_WAITING] = LEAVES | TO(WAITING) | TO(ATTACHED),
    [PHASE_WAITING] = LEAVES | TO(WAITING) | TO(ATTACHED),
    [PHASE_ASK_OPENING] = LEAVES | TO(ATTACHED),
    [PHASE_OPENING] = LEAVES | TO(ATTACHED),
    /* More settings are put; or what they were put for goes on. */
    [PHASE_SYNCING] = LEAVES | TO(SYNCING) | TO(ATTACHED),
    [PHASE_ASK_SYNCING] = LEAVES | TO(ASKING) | TO(JUDGING),
    /* The one who asked has the link, or has it to give back. */
    [PHASE_ASKING] = LEAVES | TO(ATTACHED),
    [PHASE_LOOKING] = LEAVES | TO(ATTACHED),
    [PHASE_JUDGING] = LEAVES | TO(ATTACHED),
    [PHASE_JUDGING_OWN] = LEAVES | TO(ATTACHED),
    [PHASE_ATTACHED] = LEAVES | TO(SYNCING) | TO(ASK_SYNCING) | TO(ASKING) | TO(LOOKING) |
                       TO(JUDGING) | TO(JUDGING_OWN) | TO(LEAVING) | TO(REPAIRING) | TO(ENDING),
    [PHASE_LEAVING] = LEAVES,
    /* Cut short, it is done once more. */
    [PHASE_REPAIRING] = LEAVES | TO(REPAIRING) | TO(ATTACHED),
    [PHASE_ENDING] = LEAVES | TO(ENDING) | TO(ATTACHED),
};

const char *phase_name(enum phase phase)
{
    static const char *const names[NPHASES] = {
        [PHASE_DETACHED] = "detached",
        [PHASE_ASK_WAITING] = "waiting to ask",
        [PHASE_WAITING] = "waiting",
        [PHASE_ASK_OPENING] = "opening to ask",
        [PHASE_OPENING] = "opening",
        [PHASE_SYNCING] = "syncing",
        [PHASE_ASK_SYNCING] = "syncing to ask",
        [PHASE_ASKING] = "asking",
        [PHASE_LOOKING] = "looking",
        [PHASE_JUDGING] = "judging",
        [PHASE_JUDGING_OWN] = "judging on its own",
        [PHASE_ATTACHED] = "attached",
        [PHASE_LEAVING] = "leaving",
        [PHASE_REPAIRING] = "repairing",
        [PHASE_ENDING] = "ending",
    };

    return names[phase];
}
