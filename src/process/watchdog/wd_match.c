/* SPDX-License-Identifier: PostgreSQL
 * wd_match.c: up to where the log of a follower is known to be that of its leader.
 * Runs in: watchdog. Pure. A message is accepted when its first entry follows one that both have;
 * libraft says so by writing, or by an answer that is no rejection, before it returns. */
#include "config.h"

#include "wd_match.h"

static void accept(struct wd_match *m)
{
    m->is_taken = true;
    if (m->asked > m->index)
        m->index = m->asked;
}

/* False: a message of a former leader, which libraft rejects. */
static bool follow(struct wd_match *m, uint64_t term)
{
    if (term > m->term) {
        m->term = term;
        m->index = 0;
    }
    return term == m->term;
}

void wd_match_begin(struct wd_match *m, uint64_t term, uint64_t prev, uint64_t n)
{
    m->is_taking = follow(m, term);
    m->is_taken = false;
    m->asked = prev + n;
}

void wd_match_appends(struct wd_match *m)
{
    if (m->is_taking)
        accept(m);
}

void wd_match_end(struct wd_match *m)
{
    m->is_taking = false;
}

void wd_match_snapshot(struct wd_match *m, uint64_t term, uint64_t last)
{
    if (follow(m, term) && last > m->index)
        m->index = last;
}

uint64_t wd_match_claim(struct wd_match *m, uint64_t term, uint64_t rejected, uint64_t last)
{
    if (rejected != 0)
        return last; /* a hint where to look for what both have */
    if (m->is_taking && !m->is_taken)
        accept(m);
    if (term != m->term)
        return 0;
    return last < m->index ? last : m->index;
}
