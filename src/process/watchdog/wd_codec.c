/* SPDX-License-Identifier: PostgreSQL
 * wd_codec.c: libraft's messages as bytes.
 * Runs in: watchdog. Pure. All that is read has passed a seal, and every length is checked. */
#include "config.h"

#include "wd_codec.h"

#include <string.h>

#include "wire/reader.h"

#define MAX_ENTRIES   65536
#define MAX_SERVERS   256
#define ENTRY_HEAD    14
#define MESSAGE_BYTES (512 * 1024) /* half of what wd_seal takes */
#define ENTRY_UNIT    8 /* libraft writes any others, too, and cannot read its log then */

static void put_u64(struct buf *out, uint64_t v)
{
    buf_put_u32(out, (uint32_t)(v >> 32));
    buf_put_u32(out, (uint32_t)v);
}

static uint64_t get_u64(struct wire_reader *r)
{
    uint64_t high = wire_get_u32(r);

    return high << 32 | wire_get_u32(r);
}

/* How many entries one message holds. The others go with the next one: the answer says how far the
 * receiver has come. */
static unsigned count_entries(const struct raft_append_entries *a)
{
    size_t left = MESSAGE_BYTES;
    unsigned n;

    for (n = 0; n < a->n_entries; n++) {
        size_t need = ENTRY_HEAD + a->entries[n].buf.len;

        if (need > left && n > 0)
            break;
        left -= need < left ? need : left;
    }
    return n;
}

static void put_entries(const struct raft_append_entries *a, struct buf *out)
{
    unsigned n = count_entries(a);
    unsigned i;

    put_u64(out, a->term);
    put_u64(out, a->prev_log_index);
    put_u64(out, a->prev_log_term);
    put_u64(out, a->leader_commit);
    buf_put_u32(out, n);
    for (i = 0; i < n; i++) {
        put_u64(out, a->entries[i].term);
        buf_put_u16(out, a->entries[i].type);
        buf_put_u32(out, (uint32_t)a->entries[i].buf.len);
    }
    for (i = 0; i < n; i++)
        buf_put(out, a->entries[i].buf.base, a->entries[i].buf.len);
}

static void put_configuration(const struct raft_configuration *c, struct buf *out)
{
    unsigned i;

    buf_put_u32(out, c->n);
    for (i = 0; i < c->n; i++) {
        put_u64(out, c->servers[i].id);
        buf_put_u16(out, (uint16_t)c->servers[i].role);
        buf_put_cstr(out, c->servers[i].address);
    }
}

static void put_snapshot(const struct raft_install_snapshot *s, struct buf *out)
{
    put_u64(out, s->term);
    put_u64(out, s->last_index);
    put_u64(out, s->last_term);
    put_u64(out, s->conf_index);
    put_configuration(&s->conf, out);
    buf_put_u32(out, (uint32_t)s->data.len);
    buf_put(out, s->data.base, s->data.len);
}

bool wd_codec_put(const struct raft_message *m, struct buf *out)
{
    buf_put_byte(out, (char)m->type);
    switch (m->type) {
    case RAFT_IO_APPEND_ENTRIES:
        put_entries(&m->append_entries, out);
        return true;
    case RAFT_IO_APPEND_ENTRIES_RESULT:
        put_u64(out, m->append_entries_result.term);
        put_u64(out, m->append_entries_result.rejected);
        put_u64(out, m->append_entries_result.last_log_index);
        return true;
    case RAFT_IO_REQUEST_VOTE:
        put_u64(out, m->request_vote.term);
        put_u64(out, m->request_vote.candidate_id);
        put_u64(out, m->request_vote.last_log_index);
        put_u64(out, m->request_vote.last_log_term);
        buf_put_byte(out, m->request_vote.disrupt_leader);
        buf_put_byte(out, m->request_vote.pre_vote);
        return true;
    case RAFT_IO_REQUEST_VOTE_RESULT:
        put_u64(out, m->request_vote_result.term);
        buf_put_byte(out, m->request_vote_result.vote_granted);
        buf_put_byte(out, (char)m->request_vote_result.pre_vote);
        return true;
    case RAFT_IO_INSTALL_SNAPSHOT:
        put_snapshot(&m->install_snapshot, out);
        return true;
    case RAFT_IO_TIMEOUT_NOW:
        put_u64(out, m->timeout_now.term);
        put_u64(out, m->timeout_now.last_log_index);
        put_u64(out, m->timeout_now.last_log_term);
        return true;
    default:
        return false;
    }
}

static bool get_entry(struct wire_reader *r, struct raft_entry *e)
{
    e->term = get_u64(r);
    e->type = wire_get_u16(r);
    e->buf.len = wire_get_u32(r);
    return !r->bad && e->type >= RAFT_COMMAND && e->type <= RAFT_CHANGE && e->buf.len > 0 &&
           e->buf.len % ENTRY_UNIT == 0;
}

/* Entries share one piece of memory, which libraft frees by way of `batch`. */
static bool get_entries(struct wire_reader *r, struct raft_append_entries *a)
{
    struct raft_entry *entries;
    size_t total = 0;
    size_t at = 0;
    char *batch;
    unsigned i;

    a->term = get_u64(r);
    a->prev_log_index = get_u64(r);
    a->prev_log_term = get_u64(r);
    a->leader_commit = get_u64(r);
    a->n_entries = wire_get_u32(r);
    if (r->bad || a->n_entries > MAX_ENTRIES)
        return false;
    if (a->n_entries == 0)
        return wire_reader_ok(r);
    entries = raft_calloc(a->n_entries, sizeof *entries);
    for (i = 0; entries != NULL && i < a->n_entries && get_entry(r, &entries[i]); i++)
        total += entries[i].buf.len;
    batch = entries != NULL && i == a->n_entries && total == wire_reader_left(r)
                ? raft_malloc(total + 8)
                : NULL;
    if (batch == NULL) {
        raft_free(entries);
        return false;
    }
    memcpy(batch, wire_get_bytes(r, (uint32_t)total).p, total);
    for (i = 0; i < a->n_entries; i++) {
        entries[i].buf.base = batch + at;
        entries[i].batch = batch;
        at += entries[i].buf.len;
    }
    a->entries = entries;
    return true;
}

static bool get_configuration(struct wire_reader *r, struct raft_configuration *c)
{
    uint32_t n = wire_get_u32(r);
    uint32_t i;

    raft_configuration_init(c);
    for (i = 0; i < n && n <= MAX_SERVERS && !r->bad; i++) {
        uint64_t id = get_u64(r);
        int role = wire_get_u16(r);
        struct slice address = wire_get_cstr(r);

        if (r->bad || raft_configuration_add(c, id, address.p, role) != 0)
            break;
    }
    if (i == n && !r->bad)
        return true;
    raft_configuration_close(c);
    return false;
}

static bool get_snapshot(struct wire_reader *r, struct raft_install_snapshot *s)
{
    s->term = get_u64(r);
    s->last_index = get_u64(r);
    s->last_term = get_u64(r);
    s->conf_index = get_u64(r);
    if (!get_configuration(r, &s->conf))
        return false;
    s->data.len = wire_get_u32(r);
    s->data.base =
        !r->bad && s->data.len == wire_reader_left(r) ? raft_malloc(s->data.len + 1) : NULL;
    if (s->data.base == NULL) {
        raft_configuration_close(&s->conf);
        return false;
    }
    memcpy(s->data.base, wire_get_bytes(r, (uint32_t)s->data.len).p, s->data.len);
    return true;
}

bool wd_codec_get(struct slice in, struct raft_message *m)
{
    struct wire_reader r;

    memset(m, 0, sizeof *m);
    wire_reader_init(&r, in);
    m->type = wire_get_u8(&r);
    switch (m->type) {
    case RAFT_IO_APPEND_ENTRIES:
        return get_entries(&r, &m->append_entries);
    case RAFT_IO_APPEND_ENTRIES_RESULT:
        m->append_entries_result.term = get_u64(&r);
        m->append_entries_result.rejected = get_u64(&r);
        m->append_entries_result.last_log_index = get_u64(&r);
        return wire_reader_ok(&r);
    case RAFT_IO_REQUEST_VOTE:
        m->request_vote.term = get_u64(&r);
        m->request_vote.candidate_id = get_u64(&r);
        m->request_vote.last_log_index = get_u64(&r);
        m->request_vote.last_log_term = get_u64(&r);
        m->request_vote.disrupt_leader = wire_get_u8(&r) != 0;
        m->request_vote.pre_vote = wire_get_u8(&r) != 0;
        return wire_reader_ok(&r);
    case RAFT_IO_REQUEST_VOTE_RESULT:
        m->request_vote_result.term = get_u64(&r);
        m->request_vote_result.vote_granted = wire_get_u8(&r) != 0;
        m->request_vote_result.pre_vote = (raft_tribool)wire_get_u8(&r);
        return wire_reader_ok(&r);
    case RAFT_IO_INSTALL_SNAPSHOT:
        return get_snapshot(&r, &m->install_snapshot);
    case RAFT_IO_TIMEOUT_NOW:
        m->timeout_now.term = get_u64(&r);
        m->timeout_now.last_log_index = get_u64(&r);
        m->timeout_now.last_log_term = get_u64(&r);
        return wire_reader_ok(&r);
    default:
        return false;
    }
}

void wd_codec_free(struct raft_message *m)
{
    if (m->type == RAFT_IO_APPEND_ENTRIES && m->append_entries.n_entries > 0) {
        raft_free(m->append_entries.entries[0].batch);
        raft_free(m->append_entries.entries);
    } else if (m->type == RAFT_IO_INSTALL_SNAPSHOT) {
        raft_configuration_close(&m->install_snapshot.conf);
        raft_free(m->install_snapshot.data.base);
    }
}
