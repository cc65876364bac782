/* SPDX-License-Identifier: PostgreSQL
 * wd_rollback.h: a change of the members that was never agreed on is taken back.
 * Runs in: watchdog. libraft 0.15 looks the members that hold then up in its log, and ends the
 * process where a snapshot has taken their place. So they are kept here, too, and put in before
 * libraft is given the message that makes it look. And where a leader's snapshot takes the place of
 * the change itself, libraft goes on waiting for it and refuses every other one. */
#ifndef PGP_WATCHDOG_WD_ROLLBACK_H
#define PGP_WATCHDOG_WD_ROLLBACK_H

#include <raft.h>
#include <stdbool.h>

struct wd_rollback {
    struct raft_configuration conf; /* the last one that was agreed on */
    raft_index index;               /* of its entry; 0: none */
};

/* The members of the entry `index` are agreed on. Keeps a copy. */
void wd_rollback_note(
    struct wd_rollback *rb, raft_index index, const struct raft_configuration *conf);
/* To be called before libraft is asked for a change of the members. */
void wd_rollback_before_change(struct wd_rollback *rb, struct raft *r);
/* False: one more change has to wait, for of those who count, without `leaving` (0: nobody), no
 * majority has heard of the last change: libraft does not vote in who does
 * not know that it counts, and were this leader to end now nobody could be elected. Leaders only.
 */
bool wd_rollback_is_settled(const struct raft *r, raft_id leaving);
/* To be called before libraft is given `m`. False: it must not be given it. */
bool wd_rollback_take(struct wd_rollback *rb, struct raft *r, const struct raft_message *m);
/* NULL: the log has none of that number. */
const struct raft_entry *wd_rollback_entry(const struct raft_log *log, raft_index index);
void wd_rollback_fini(struct wd_rollback *rb);

#endif
