/* SPDX-License-Identifier: PostgreSQL
 * decide_replay.c: of what time a standby is, for who has to know that it has a certain write.
 * Runs in: monitor. Pure.
 *
 * Each probe of the primary is a mark: all that anybody knew to be committed when the probe began
 * stands in front of the LSN that it brought back. A standby on the same timeline that has replayed
 * up to that LSN has all of it. What its last probe said stays true for as long as it lives. One
 * that has not is behind by no less than the time from the mark to its own probe. */
#include "config.h"

#include <string.h>

#include "decide_int.h"

/* The headers of a page and a segment: where the next record will begin they stand in front of it,
 * and nobody replays them by themselves. */
#define HEADER_BYTES 40

static bool has_facts(const struct decide *d, int node)
{
    return d->rules.node[node].exists && d->node[node].have_facts;
}

static const struct decide_facts *facts_of_primary(const struct decide *d)
{
    int node = d->view.primary;

    if (d->rules.mode != DECIDE_MODE_STREAMING || node == VIEW_NO_NODE || !has_facts(d, node))
        return NULL;
    return &d->node[node].facts;
}

/* What was marked of another primary, or of this one before it became one, says nothing. */
static void begin_anew(struct decide *d, const struct decide_facts *primary)
{
    if (d->marks_epoch == d->view.primary_epoch && d->marks_timeline == primary->timeline)
        return;
    d->marks_epoch = d->view.primary_epoch;
    d->marks_timeline = primary->timeline;
    d->nmarks = 0;
}

static void mark(struct decide *d, uint64_t lsn, int64_t began_us)
{
    d->mark[d->nmarks++ % DECIDE_MARKS] = (struct decide_mark){lsn, began_us};
}

static bool is_of(const struct decide *d, int node, const struct decide_facts *primary)
{
    const struct decide_facts *f = &d->node[node].facts;

    return has_facts(d, node) && !f->is_primary && f->timeline != 0 &&
           f->timeline == primary->timeline && f->system_id == primary->system_id;
}

static bool follows(const struct decide *d, int node, const struct decide_facts *primary)
{
    return is_of(d, node, primary) && d->node[node].facts.is_receiving;
}

static int64_t caught_up_us(const struct decide *d, uint64_t replayed_lsn)
{
    uint32_t kept = d->nmarks < DECIDE_MARKS ? d->nmarks : DECIDE_MARKS;
    int64_t us = 0;
    uint32_t i;

    for (i = 0; i < kept; i++)
        if (d->mark[i].lsn <= replayed_lsn && d->mark[i].began_us > us)
            us = d->mark[i].began_us;
    return us;
}

int64_t decide_replay_lacks_us(const struct decide *d, int node)
{
    const struct decide_facts *primary = facts_of_primary(d);
    int64_t asked_us = d->view.node[node].replay_asked_us;
    uint32_t kept = d->nmarks < DECIDE_MARKS ? d->nmarks : DECIDE_MARKS;
    int64_t us = 0;
    uint32_t i;

    if (primary == NULL || !is_of(d, node, primary) || d->marks_epoch != d->view.primary_epoch ||
        d->marks_timeline != primary->timeline)
        return 0;
    for (i = 0; i < kept; i++)
        if (d->mark[i].lsn > d->node[node].facts.replayed_lsn + HEADER_BYTES &&
            asked_us - d->mark[i].began_us > us)
            us = asked_us - d->mark[i].began_us;
    return us;
}

void decide_replay(struct decide *d, int node, int64_t began_us)
{
    const struct decide_facts *primary = facts_of_primary(d);
    int i;

    d->view.node[node].replay_asked_us = began_us;
    if (primary != NULL) {
        begin_anew(d, primary);
        if (node == d->view.primary && primary->is_primary)
            mark(d, primary->received_lsn, began_us);
    }
    for (i = 0; i < d->rules.nnodes; i++)
        d->view.node[i].caught_up_us =
            primary != NULL && i != d->view.primary && follows(d, i, primary)
                ? caught_up_us(d, d->node[i].facts.replayed_lsn)
                : 0;
}
