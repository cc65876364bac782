/* SPDX-License-Identifier: PostgreSQL
 * wd_match.h: up to where the log of a follower is known to be that of its leader.
 * Runs in: watchdog. Pure. libraft 0.15 answers an empty message of the leader with the end of its
 * own log, also where an entry there is one of a former leader that was never agreed on. The leader
 * then takes that for an entry of its own: it counts it for a majority, and never sends the right
 * one. So what such an answer claims is cut down to what was compared. */
#ifndef PGP_WATCHDOG_WD_MATCH_H
#define PGP_WATCHDOG_WD_MATCH_H

#include <stdbool.h>
#include <stdint.h>

struct wd_match {
    uint64_t term;  /* of the leader that all of this is about */
    uint64_t index; /* up to here the log is that leader's */
    uint64_t asked; /* up to here it would be, when the message being taken is accepted */
    bool is_taking; /* a message is being taken */
    bool is_taken;  /* and was accepted */
};

/* libraft is about to be given a leader's message: entries behind `prev`, `n` of them. */
void wd_match_begin(struct wd_match *m, uint64_t term, uint64_t prev, uint64_t n);
/* libraft writes entries: those of the message, if one is being taken. */
void wd_match_appends(struct wd_match *m);
/* libraft has done with the message. */
void wd_match_end(struct wd_match *m);
/* Everything up to `last` has been agreed on: the leader sends it as a whole. */
void wd_match_snapshot(struct wd_match *m, uint64_t term, uint64_t last);
/* libraft answers, in `term`, that it has entries up to `last`, or `rejected` (not 0) the message.
 * Returns what is to be claimed instead of `last`. */
uint64_t wd_match_claim(struct wd_match *m, uint64_t term, uint64_t rejected, uint64_t last);

#endif
