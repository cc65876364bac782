/* SPDX-License-Identifier: PostgreSQL
 * share_goto.c: what is said of a phase that followed another as it may not. Runs in: workers. */
#include "config.h"

#include "share_phase_int.h"

void share_goto_wrongly(struct client *c, enum share_phase to)
{
    enum share_phase from = (enum share_phase)c->share->phase;
    uint16_t *told = &c->ss->wrong_told[from];

    c->ss->wrong_edges++;
    if ((*told >> to & 1) != 0)
        return;
    *told = (uint16_t)(*told | 1U << to);
    CLIENT_LOG(c, LVL_WARNING, "internal error: a session went from %s to %s",
        share_phase_name(from), share_phase_name(to));
}
