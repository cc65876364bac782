/* SPDX-License-Identifier: PostgreSQL
 * phase_goto.c: what is said of a phase that followed another as it may not. Runs in: workers. */
#include "config.h"

#include "sstate/phase_int.h"

void phase_goto_wrongly(struct client *c, enum phase to)
{
    enum phase from = (enum phase)c->sstate->phase;
    uint16_t *told = &c->ss->wrong_told[from];

    c->ss->wrong_edges++;
    if ((*told >> to & 1) != 0)
        return;
    *told = (uint16_t)(*told | 1U << to);
    CLIENT_LOG(c, LVL_WARNING, "internal error: a session went from %s to %s", phase_name(from),
        phase_name(to));
}
