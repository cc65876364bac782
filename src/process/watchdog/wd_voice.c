/* SPDX-License-Identifier: PostgreSQL
 * wd_voice.c: a pgpool that has not heard that it counts votes all the same.
 * Runs in: watchdog, and in its simulation. */
#include "config.h"

#include <stddef.h>

#include "wd_voice.h"

static struct raft_server *find_self(struct raft *r)
{
    unsigned i;

    for (i = 0; i < r->configuration.n; i++)
        if (r->configuration.servers[i].id == r->id)
            return &r->configuration.servers[i];
    return NULL;
}

/* libraft forgets a silent leader when it begins an election, which this one never does. */
static void forget_silent_leader(struct raft *r)
{
    if (r->follower_state.current_leader.id == 0 ||
        r->io->time(r->io) - r->election_timer_start < r->election_timeout)
        return;
    r->follower_state.current_leader.id = 0;
    raft_free(r->follower_state.current_leader.address);
    r->follower_state.current_leader.address = NULL;
}

bool wd_voice_begin(struct raft *r, const struct raft_message *m, int *role)
{
    struct raft_server *self = find_self(r);

    if (m->type != RAFT_IO_REQUEST_VOTE || r->state != RAFT_FOLLOWER || self == NULL ||
        self->role == RAFT_VOTER)
        return false;
    forget_silent_leader(r);
    if (r->follower_state.current_leader.id != 0)
        return false;
    *role = self->role;
    self->role = RAFT_VOTER;
    return true;
}

void wd_voice_end(struct raft *r, int role)
{
    struct raft_server *self = find_self(r);

    if (self != NULL)
        self->role = role;
}
