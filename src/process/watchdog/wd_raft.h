/* SPDX-License-Identifier: PostgreSQL
 * wd_raft.h: the consensus of libraft among the pgpools of a cluster: who leads, and one log of
 * events for all.
 * Runs in: watchdog. Knows nothing of servers: an event is text, the state that comes out of it is
 * cluster/wd_state's. */
#ifndef PGP_WATCHDOG_WD_RAFT_H
#define PGP_WATCHDOG_WD_RAFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "cluster/wd_state.h"
#include "event/loop.h"

struct wd_raft;

/* A snapshot that got lost on the way is sent anew after that; libraft's own 30 s are 30 s in which
 * a majority of two may be missing. */
#define WD_SNAPSHOT_WAIT_MS 3000

enum wd_role { WD_ROLE_NONE, WD_ROLE_FOLLOWER, WD_ROLE_CANDIDATE, WD_ROLE_LEADER };

struct wd_raft_opts {
    int self;
    const char *dir; /* exists; empty for a member that is new */
    int64_t election_ms;
    bool is_new; /* with `members`, whose log begins with just these; without: waits to be added */
    int nmembers;
    const int *members;
};

struct wd_raft_calls {
    /* Brings a message of libraft to a member; false when it cannot. */
    bool (*send)(void *owner, int to, struct slice body);
    /* An event has been taken in: `state` has changed, unless it came late. Not `is_news`: it was
     * in the log of this pgpool before wd_raft_new. */
    void (*on_event)(void *owner, const struct wd_event *e, bool fits, bool is_news);
    /* Libraft cannot go on (disk, memory): the process has to end. */
    void (*on_broken)(void *owner, const char *why);
};

/* Starts. NULL with *err. `state` is changed by what is agreed on. */
struct wd_raft *wd_raft_new(struct loop *lp, const struct wd_raft_opts *opts,
    const struct wd_raft_calls *calls, struct wd_state *state, void *owner, struct err *err);
/* A message of member `from` has come. */
void wd_raft_take(struct wd_raft *wr, int from, struct slice body);
enum wd_role wd_raft_role(const struct wd_raft *wr);
/* Who leads, as far as this one knows; WD_NO_MEMBER. */
int wd_raft_leader(struct wd_raft *wr);
uint64_t wd_raft_term(const struct wd_raft *wr);
/* The log, or a snapshot of it, has something that this build does not understand. */
bool wd_raft_is_outdated(const struct wd_raft *wr);
/* Milliseconds since this follower heard of its leader. */
int64_t wd_raft_heard_ago_ms(struct wd_raft *wr);
/* True while an event that was proposed is on its way. */
bool wd_raft_is_proposing(const struct wd_raft *wr);
/* True while a change of the members is: it may wait for a member to catch up. */
bool wd_raft_is_changing(const struct wd_raft *wr);
/* The leader: proposes an event. False when that is not possible now. */
bool wd_raft_propose(struct wd_raft *wr, const struct wd_event *e);
/* True when all events of former leaders are in the state: a leader acts on it only then. */
bool wd_raft_is_current(struct wd_raft *wr);
/* Who votes: fills `voter`, returns how many. */
int wd_raft_voters(const struct wd_raft *wr, bool voter[WD_MAX_MEMBERS]);
/* The leader: adds a member, makes it a voter, removes it. One change at a time; false: not now. */
bool wd_raft_add(struct wd_raft *wr, int member);
bool wd_raft_promote(struct wd_raft *wr, int member);
bool wd_raft_remove(struct wd_raft *wr, int member);
bool wd_raft_has(const struct wd_raft *wr, int member);
/* The leader: gives the lead to `member`, WD_NO_MEMBER: to anybody. False: not now. */
bool wd_raft_give_lead(struct wd_raft *wr, int member);
bool wd_raft_is_giving(const struct wd_raft *wr);
/* Ends it; waits for the disk, but for not longer than that takes. Clears *wp. */
void wd_raft_free(struct wd_raft **wp);

#endif
