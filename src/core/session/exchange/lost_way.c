/* SPDX-License-Identifier: PostgreSQL
 * lost_way.c: what becomes of a session whose link dies: the decision. Runs in: workers. */
#include "config.h"

#include "exchange/lost_way_int.h"

/* A read of a transaction that lives on another link, which is there. */
static enum lost_way way_out(bool is_running, unsigned facts)
{
    if (!is_running)
        return LOST_HOMEWARD;
    if ((facts & LOST_IS_OVER) != 0)
        return LOST_OUT_OVER;
    return (facts & LOST_MAY_REPEAT) != 0 ? LOST_OUT_REPEATED : LOST_OUT_FAILS;
}

enum lost_way lost_way_of(enum phase phase, unsigned facts)
{
    if ((facts & (LOST_HAS_HOME | LOST_IN_MESSAGE)) == LOST_HAS_HOME)
        return way_out(phase == PHASE_ATTACHED && (facts & LOST_OWES) != 0, facts);
    if (phase_is_opening(phase))
        return LOST_OPENING;
    if ((facts & (LOST_IS_TIED | LOST_IN_MESSAGE)) != 0)
        return LOST_ENDS;
    if (phase == PHASE_JUDGING_OWN)
        return LOST_JUDGING;
    if (phase != PHASE_ATTACHED)
        return LOST_BETWEEN;
    if ((facts & LOST_IS_OVER) != 0)
        return LOST_BEHIND_END;
    if ((facts & LOST_MAY_REPEAT) != 0)
        return LOST_REPEATED;
    return (facts & LOST_WAS_REFUSED) != 0 ? LOST_PUT_BACK : LOST_FAILS;
}
