/* SPDX-License-Identifier: PostgreSQL
 * wd_gate.c: which messages of other pgpools libraft is given.
 * Runs in: watchdog. Pure. */
#include "config.h"

#include "wd_gate.h"

#include <string.h>

#include "cluster/wd_state.h"

#include "wd_rollback.h"

/* Elections that nobody has heard of are not so many, and entries of the log neither: numbers do
 * not come to their end. */
#define MAX_AHEAD    (UINT64_C(1) << 32)
#define ENTRY_BYTES  65536 /* an event has some hundreds, and members as many */
#define UNIT         8     /* libraft writes in units of 8 bytes */
#define CONF_FORMAT  1
#define NUMBER_BYTES 8

static raft_index last_index(const struct raft_log *log)
{
    size_t n =
        log->front <= log->back ? log->back - log->front : log->size - log->front + log->back;

    return log->offset + n;
}

/* 0: it is not known. */
static raft_term term_at(const struct raft_log *log, raft_index index)
{
    const struct raft_entry *e = wd_rollback_entry(log, index);

    if (index != 0 && index == log->snapshot.last_index)
        return log->snapshot.last_term;
    return e == NULL ? 0 : e->term;
}

static bool is_term(const struct raft *r, raft_term term)
{
    return term > 0 && (term <= r->current_term || term - r->current_term < MAX_AHEAD);
}

static bool is_index(const struct raft *r, raft_index index)
{
    return index <= last_index(&r->log) || index - last_index(&r->log) < MAX_AHEAD;
}

/* There is one leader in a term. */
static bool may_lead(const struct raft *r, raft_term term)
{
    return is_term(r, term) && !(r->state == RAFT_LEADER && term == r->current_term);
}

static uint64_t get_number(const uint8_t *p)
{
    uint64_t v = 0;
    int i;

    for (i = NUMBER_BYTES; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

/* libraft loses memory where two have one address. */
static bool is_among(const char *address, const char *const *others, unsigned n)
{
    while (n-- > 0)
        if (strcmp(others[n], address) == 0)
            return true;
    return false;
}

/* Members as libraft writes them: a format, how many; each its number, address and role. */
static bool are_members(const struct raft_buffer *b)
{
    const uint8_t *p = b->base;
    const uint8_t *end = p + b->len;
    bool is_there[WD_MAX_MEMBERS + 1] = {false};
    const char *address[WD_MAX_MEMBERS];
    unsigned nread = 0;
    unsigned nvoters = 0;
    uint64_t n;
    uint64_t id;

    if (b->len < 1 + NUMBER_BYTES || *p++ != CONF_FORMAT)
        return false;
    n = get_number(p);
    p += NUMBER_BYTES;
    if (n == 0 || n > WD_MAX_MEMBERS)
        return false;
    while (n-- > 0) {
        const uint8_t *nul;

        if (end - p < NUMBER_BYTES)
            return false;
        id = get_number(p);
        p += NUMBER_BYTES;
        nul = memchr(p, 0, (size_t)(end - p));
        if (nul == NULL || nul + 1 == end || id == 0 || id > WD_MAX_MEMBERS || is_there[id] ||
            is_among((const char *)p, address, nread) || nul[1] > RAFT_SPARE)
            return false;
        is_there[id] = true;
        address[nread++] = (const char *)p;
        nvoters += nul[1] == RAFT_VOTER;
        p = nul + 2;
    }
    return nvoters > 0 && (size_t)(end - p) < UNIT;
}

static bool are_entries(const struct raft *r, const struct raft_append_entries *a)
{
    raft_term before = a->prev_log_term;
    unsigned i;

    for (i = 0; i < a->n_entries; i++) {
        const struct raft_entry *e = &a->entries[i];
        raft_index index = a->prev_log_index + 1 + i;
        raft_term own = term_at(&r->log, index);

        if (e->term < before || e->term == 0 || e->term > a->term || e->buf.len > ENTRY_BYTES ||
            (e->type == RAFT_CHANGE && !are_members(&e->buf)))
            return false;
        if (own != 0 && own != e->term && index <= r->commit_index)
            return false; /* it was agreed on */
        before = e->term;
    }
    return true;
}

static bool is_append(const struct raft *r, const struct raft_append_entries *a)
{
    raft_term own = term_at(&r->log, a->prev_log_index);

    if (a->term < r->current_term)
        return true; /* of a former leader, who has to be told */
    if (!may_lead(r, a->term) || a->prev_log_term > a->term || !is_index(r, a->prev_log_index) ||
        (a->prev_log_index == 0) != (a->prev_log_term == 0))
        return false;
    /* The beginning is in a snapshot here, and libraft would take these for new entries. A leader
     * sends them only where a late answer has it believe that this log is empty, until its own
     * snapshot is written, which it sends then: both have applied enough entries for one. */
    if (a->prev_log_index == 0 && a->n_entries > 0 && r->log.offset > 0)
        return false;
    if (own != 0 && own != a->prev_log_term && a->prev_log_index <= r->commit_index)
        return false;
    return are_entries(r, a);
}

static bool is_result(const struct raft *r, const struct raft_append_entries_result *a)
{
    return is_term(r, a->term) && a->rejected <= last_index(&r->log) + 1;
}

static bool is_configuration(const struct raft_configuration *c)
{
    unsigned nvoters = 0;
    unsigned i;

    for (i = 0; i < c->n; i++) {
        if (c->servers[i].id == 0 || c->servers[i].id > WD_MAX_MEMBERS)
            return false;
        nvoters += c->servers[i].role == RAFT_VOTER;
    }
    return nvoters > 0;
}

/* One that libraft takes instead of its log has all in it that was agreed on. */
static bool is_snapshot(const struct raft *r, const struct raft_install_snapshot *s)
{
    raft_term own = term_at(&r->log, s->last_index);
    bool is_known =
        r->log.snapshot.last_index >= s->last_index || (own != 0 && own >= s->last_term);

    if (s->term < r->current_term)
        return true;
    return may_lead(r, s->term) && s->last_index > 0 && is_index(r, s->last_index) &&
           s->last_term > 0 && s->last_term <= s->term && s->conf_index > 0 &&
           s->conf_index <= s->last_index && is_configuration(&s->conf) &&
           (is_known || s->last_index > r->commit_index);
}

static enum wd_gate judge_state(const struct raft_buffer *b, struct wd_state *scratch)
{
    size_t n;

    for (n = b->len; n > 0 && n + UNIT > b->len; n--)
        if (wd_state_get(slice_of(b->base, n), scratch))
            return WD_GATE_PASS;
    return wd_state_is_newer(slice_of(b->base, b->len)) ? WD_GATE_NEWER : WD_GATE_MALFORMED;
}

static bool is_sound(const struct raft *r, const struct raft_message *m)
{
    switch (m->type) {
    case RAFT_IO_APPEND_ENTRIES:
        return is_append(r, &m->append_entries);
    case RAFT_IO_APPEND_ENTRIES_RESULT:
        return is_result(r, &m->append_entries_result);
    case RAFT_IO_REQUEST_VOTE:
        return is_term(r, m->request_vote.term) && m->request_vote.candidate_id == m->server_id &&
               m->request_vote.last_log_term <= m->request_vote.term;
    case RAFT_IO_REQUEST_VOTE_RESULT:
        return is_term(r, m->request_vote_result.term) &&
               m->request_vote_result.pre_vote <= raft_tribool_false;
    case RAFT_IO_INSTALL_SNAPSHOT:
        return is_snapshot(r, &m->install_snapshot);
    case RAFT_IO_TIMEOUT_NOW:
        return is_term(r, m->timeout_now.term);
    default:
        return false;
    }
}

enum wd_gate wd_gate_judge(
    const struct raft *r, const struct raft_message *m, struct wd_state *scratch)
{
    if (!is_sound(r, m))
        return WD_GATE_MALFORMED;
    if (m->type == RAFT_IO_INSTALL_SNAPSHOT && m->install_snapshot.term >= r->current_term)
        return judge_state(&m->install_snapshot.data, scratch);
    return WD_GATE_PASS;
}
