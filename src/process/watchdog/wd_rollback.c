/* SPDX-License-Identifier: PostgreSQL
 * wd_rollback.c: a change of the members that was never agreed on is taken back.
 * Runs in: watchdog, and in its simulation. */
#include "config.h"

#include <stddef.h>

#include "wd_rollback.h"

static int copy_conf(const struct raft_configuration *from, struct raft_configuration *to)
{
    unsigned i;
    int rc = 0;

    raft_configuration_init(to);
    for (i = 0; i < from->n && rc == 0; i++)
        rc = raft_configuration_add(
            to, from->servers[i].id, from->servers[i].address, from->servers[i].role);
    if (rc != 0)
        raft_configuration_close(to);
    return rc;
}

void wd_rollback_note(
    struct wd_rollback *rb, raft_index index, const struct raft_configuration *conf)
{
    struct raft_configuration copy;

    if (index == 0 || index == rb->index || copy_conf(conf, &copy) != 0)
        return;
    wd_rollback_fini(rb);
    rb->conf = copy;
    rb->index = index;
}

void wd_rollback_before_change(struct wd_rollback *rb, struct raft *r)
{
    /* A snapshot that came has taken its place, and libraft would wait for it for ever. */
    if (r->configuration_uncommitted_index <= r->last_applied)
        r->configuration_uncommitted_index = 0;
    if (r->configuration_uncommitted_index == 0)
        wd_rollback_note(rb, r->configuration_index, &r->configuration);
}

bool wd_rollback_is_settled(const struct raft *r, raft_id leaving)
{
    unsigned nvoters = 0;
    unsigned nknow = 0;
    unsigned i;

    for (i = 0; i < r->configuration.n; i++) {
        const struct raft_server *s = &r->configuration.servers[i];

        if (s->id == leaving || s->role != RAFT_VOTER)
            continue;
        nvoters++;
        nknow +=
            s->id == r->id || r->leader_state.progress[i].match_index >= r->configuration_index;
    }
    return nknow > nvoters / 2;
}

const struct raft_entry *wd_rollback_entry(const struct raft_log *log, raft_index index)
{
    size_t n =
        log->front <= log->back ? log->back - log->front : log->size - log->front + log->back;

    if (index <= log->offset || index > log->offset + n)
        return NULL;
    return &log->entries[(log->front + (size_t)(index - log->offset - 1)) % log->size];
}

/* True when libraft will take the change of the members back: an entry up to there gives way to
 * another one. */
static bool takes_back(const struct raft *r, const struct raft_append_entries *a)
{
    const struct raft_entry *own = wd_rollback_entry(&r->log, a->prev_log_index);
    unsigned i;

    if (a->term < r->current_term || (own != NULL && own->term != a->prev_log_term))
        return false; /* it refuses the message */
    for (i = 0; i < a->n_entries; i++) {
        own = wd_rollback_entry(&r->log, a->prev_log_index + 1 + i);
        if (own != NULL && own->term != a->entries[i].term)
            return a->prev_log_index + 1 + i <= r->configuration_uncommitted_index;
    }
    return false;
}

bool wd_rollback_take(struct wd_rollback *rb, struct raft *r, const struct raft_message *m)
{
    struct raft_configuration copy;

    wd_rollback_before_change(rb, r);
    if (r->configuration_uncommitted_index == 0 || m->type != RAFT_IO_APPEND_ENTRIES ||
        !takes_back(r, &m->append_entries) ||
        wd_rollback_entry(&r->log, r->configuration_index) != NULL)
        return true;
    if (rb->index != r->configuration_index || copy_conf(&rb->conf, &copy) != 0)
        return false;
    raft_configuration_close(&r->configuration);
    r->configuration = copy;
    r->configuration_uncommitted_index = 0;
    return true;
}

void wd_rollback_fini(struct wd_rollback *rb)
{
    if (rb->index != 0)
        raft_configuration_close(&rb->conf);
    rb->index = 0;
}
