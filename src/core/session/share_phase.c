/* SPDX-License-Identifier: PostgreSQL
 * share_phase.c: which phase of a session that shares links may follow which. Runs in: workers.
 * Pure. doc/internals/architecture.md has the table in words. */
#include "config.h"

#include "share_phase_int.h"

#define TO(phase) (1U << SHARE_##phase)
/* A link that dies, is given back or is put aside, a wait that is given up: from everywhere. */
#define LEAVES TO(DETACHED)

const uint16_t share_phase_next[SHARE_NPHASES] = {
    /* A link is there at once; SYNCING: the login's. */
    [SHARE_DETACHED] = LEAVES | TO(WAITING) | TO(OPENING) | TO(SYNCING) | TO(ATTACHED),
    /* It is its turn; or it goes on waiting, but for something else. */
    [SHARE_WAITING] = LEAVES | TO(WAITING) | TO(ATTACHED),
    [SHARE_OPENING] = LEAVES | TO(ATTACHED),
    /* More settings; what they were put for: the client's own, a question of ours, one of the
     * server whether the session may do something. */
    [SHARE_SYNCING] = LEAVES | TO(SYNCING) | TO(ATTACHED) | TO(ASKING) | TO(JUDGING),
    /* Who asked has the link, or has it to give back. */
    [SHARE_ASKING] = LEAVES | TO(ATTACHED),
    [SHARE_LOOKING] = LEAVES | TO(ATTACHED),
    [SHARE_JUDGING] = LEAVES | TO(ATTACHED),
    [SHARE_ATTACHED] =
        LEAVES | TO(SYNCING) | TO(ASKING) | TO(LOOKING) | TO(JUDGING) | TO(REPAIRING),
    /* Cut short, it is done once more. */
    [SHARE_REPAIRING] = LEAVES | TO(REPAIRING) | TO(ATTACHED),
};

const char *share_phase_name(enum share_phase phase)
{
    static const char *const names[SHARE_NPHASES] = {
        [SHARE_DETACHED] = "detached",
        [SHARE_WAITING] = "waiting",
        [SHARE_OPENING] = "opening",
        [SHARE_SYNCING] = "syncing",
        [SHARE_ASKING] = "asking",
        [SHARE_LOOKING] = "looking",
        [SHARE_JUDGING] = "judging",
        [SHARE_ATTACHED] = "attached",
        [SHARE_REPAIRING] = "repairing",
    };

    return names[phase];
}
