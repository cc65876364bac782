/* SPDX-License-Identifier: PostgreSQL
 * wd_voice.h: a pgpool that has not heard that it counts votes all the same.
 * Runs in: watchdog, and in its simulation. libraft 0.15 asks its own list of members whether it
 * counts, and refuses its vote when that says no. So when the only one that counts takes in a
 * second, and ends before that has heard of it, nobody could be elected any more: the first needs
 * the vote of the second. Raft has no such rule, for whoever is elected has the longer log: then he
 * has all that this one knows of, and a list in which this one counts, or the vote is not counted.
 */
#ifndef PGP_WATCHDOG_WD_VOICE_H
#define PGP_WATCHDOG_WD_VOICE_H

#include <raft.h>

/* To be called before libraft gets the message: true when it is a request for a vote, and this one,
 * which is a member that does not count by its own list, counts until wd_voice_end. Only when no
 * leader was heard for the election time-out: that is what was promised. *role: for wd_voice_end.
 */
bool wd_voice_begin(struct raft *r, const struct raft_message *m, int *role);
/* To be called behind, when wd_voice_begin was true. */
void wd_voice_end(struct raft *r, int role);

#endif
