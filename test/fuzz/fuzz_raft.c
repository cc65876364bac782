/* SPDX-License-Identifier: PostgreSQL
 * fuzz_raft.c: fuzz target over what other members of a watchdog's cluster send, behind the seal.
 * For libraft: a pgpool of three is made a follower or a leader, with a log and perhaps a snapshot;
 * what it is sent is read and judged as wd_raft.c does, and libraft is given what passes. Or how
 * they are, and whom they keep out. Invariants checked: libraft goes on (it is never unavailable),
 * what was agreed on stays, what is read is the same when it was written and is read again. */
#include "config.h"

#include "cluster/wd_state.h"
#include "process/watchdog/wd_codec.h"
#include "process/watchdog/wd_gate.h"
#include "process/watchdog/wd_match.h"
#include "process/watchdog/wd_rollback.h"
#include "process/watchdog/wd_voice.h"
#include "process/watchdog/wd_words.h"

#include "fuzz_bytes.h"

#define MEMBERS  3
#define MAX_DONE 64
#define ELECTION 1000

struct pending {
    struct raft_io_append *append;
    raft_io_append_cb append_cb;
    struct raft_io_snapshot_put *put;
    raft_io_snapshot_put_cb put_cb;
    struct raft_io_snapshot_get *get;
    raft_io_snapshot_get_cb get_cb;
    struct raft_io_send *send;
    raft_io_send_cb send_cb;
};

static struct raft raft;
static struct raft_io io;
static struct raft_fsm fsm;
static raft_io_tick_cb tick;
static raft_io_recv_cb recv_message;
static raft_time now;
static struct pending pending[MAX_DONE];
static size_t npending;
static struct wd_state state;
static struct wd_state scratch;
static struct wd_match match;
static struct wd_rollback rollback;
static const char *const address[MEMBERS] = {"pgpool 0", "pgpool 1", "pgpool 2"};

static struct pending *later(void)
{
    require(npending < MAX_DONE, "too much is asked for at once");
    memset(&pending[npending], 0, sizeof pending[0]);
    return &pending[npending++];
}

static int io_init(struct raft_io *i, raft_id id, const char *at)
{
    return 0;
}

static void io_close(struct raft_io *i, raft_io_close_cb cb)
{
    if (cb != NULL)
        cb(i);
}

static void put_members(struct raft_buffer *out)
{
    char text[128] = {1, MEMBERS};
    size_t n = 9;
    int k;

    for (k = 0; k < MEMBERS; k++) {
        text[n] = (char)(k + 1);
        n += 8;
        memcpy(text + n, address[k], strlen(address[k]) + 1);
        n += strlen(address[k]) + 1;
        text[n++] = RAFT_VOTER;
    }
    out->len = (n + 7) / 8 * 8;
    out->base = raft_malloc(out->len);
    memcpy(out->base, text, out->len);
}

/* The members, and two events of another term. */
static int io_load(struct raft_io *i, raft_term *term, raft_id *voted_for,
    struct raft_snapshot **snapshot, raft_index *start, struct raft_entry *entries[], size_t *n)
{
    struct raft_buffer members;
    struct raft_entry *e = raft_calloc(3, sizeof *e);
    char *batch;
    size_t k;

    put_members(&members);
    batch = raft_malloc(members.len + 16);
    memcpy(batch, members.base, members.len);
    memset(batch + members.len, 0, 16);
    raft_free(members.base);
    for (k = 0; k < 3; k++) {
        e[k].term = k == 0 ? 1 : 2;
        e[k].type = k == 0 ? RAFT_CHANGE : RAFT_COMMAND;
        e[k].buf.base = k == 0 ? batch : batch + members.len + 8 * (k - 1);
        e[k].buf.len = k == 0 ? members.len : 8;
        e[k].batch = batch;
    }
    *term = 2;
    *voted_for = 0;
    *snapshot = NULL;
    *start = 1;
    *entries = e;
    *n = 3;
    return 0;
}

static int io_start(struct raft_io *i, unsigned ms, raft_io_tick_cb on_tick, raft_io_recv_cb recv)
{
    tick = on_tick;
    recv_message = recv;
    return 0;
}

static int io_bootstrap(struct raft_io *i, const struct raft_configuration *conf)
{
    return 0;
}

static int io_set_term(struct raft_io *i, raft_term term)
{
    return 0;
}

static int io_set_vote(struct raft_io *i, raft_id id)
{
    return 0;
}

static int io_send(
    struct raft_io *i, struct raft_io_send *req, const struct raft_message *m, raft_io_send_cb cb)
{
    struct buf out = {0};
    struct pending *p = later();

    require(wd_codec_put(m, &out), "libraft sends what cannot be written");
    buf_free(&out);
    p->send = req;
    p->send_cb = cb;
    return 0;
}

static int io_append(struct raft_io *i, struct raft_io_append *req, const struct raft_entry e[],
    unsigned n, raft_io_append_cb cb)
{
    struct pending *p = later();

    wd_match_appends(&match);
    p->append = req;
    p->append_cb = cb;
    return 0;
}

static int io_truncate(struct raft_io *i, raft_index index)
{
    require(index > raft.commit_index, "what was agreed on is taken back");
    return 0;
}

static int io_put(struct raft_io *i, unsigned trailing, struct raft_io_snapshot_put *req,
    const struct raft_snapshot *s, raft_io_snapshot_put_cb cb)
{
    struct pending *p = later();

    p->put = req;
    p->put_cb = cb;
    return 0;
}

static int io_get(struct raft_io *i, struct raft_io_snapshot_get *req, raft_io_snapshot_get_cb cb)
{
    struct pending *p = later();

    p->get = req;
    p->get_cb = cb;
    return 0;
}

static raft_time io_time(struct raft_io *i)
{
    return now;
}

static int io_random(struct raft_io *i, int min, int max)
{
    return min;
}

static int apply(struct raft_fsm *f, const struct raft_buffer *b, void **result)
{
    *result = NULL;
    return 0;
}

static int snapshot(struct raft_fsm *f, struct raft_buffer *bufs[], unsigned *n)
{
    return RAFT_BUSY;
}

static int restore(struct raft_fsm *f, struct raft_buffer *b)
{
    size_t n = b->len;

    while (n > 0 && n + 8 > b->len && !wd_state_get(slice_of(b->base, n), &state))
        n--;
    require(n > 0 && n + 8 > b->len, "a snapshot that cannot be read reaches the state");
    raft_free(b->base);
    return 0;
}

/* The disk has done what it was told. */
static void finish(void)
{
    while (npending > 0) {
        struct pending p = pending[0];

        memmove(pending, pending + 1, --npending * sizeof pending[0]);
        if (p.send_cb != NULL)
            p.send_cb(p.send, 0);
        if (p.append_cb != NULL)
            p.append_cb(p.append, 0);
        if (p.put_cb != NULL)
            p.put_cb(p.put, 0);
        if (p.get_cb != NULL)
            p.get_cb(p.get, NULL, RAFT_CANCELED);
    }
}

static void take(int from, struct slice body)
{
    raft_index agreed = raft.commit_index;
    struct raft_message m;
    bool has_voice;
    int role;

    if (!wd_codec_get(body, &m))
        return;
    m.server_id = (raft_id)from + 1;
    m.server_address = address[from];
    if (wd_gate_judge(&raft, &m, &scratch) != WD_GATE_PASS) {
        wd_codec_free(&m);
        return;
    }
    require(wd_rollback_take(&rollback, &raft, &m), "a change of the members cannot be taken back");
    if (m.type == RAFT_IO_APPEND_ENTRIES)
        wd_match_begin(&match, m.append_entries.term, m.append_entries.prev_log_index,
            m.append_entries.n_entries);
    else if (m.type == RAFT_IO_INSTALL_SNAPSHOT)
        wd_match_snapshot(&match, m.install_snapshot.term, m.install_snapshot.last_index);
    has_voice = wd_voice_begin(&raft, &m, &role);
    recv_message(&io, &m);
    if (has_voice)
        wd_voice_end(&raft, role);
    wd_match_end(&match);
    require(raft.state != RAFT_UNAVAILABLE, "libraft has given up");
    require(raft.commit_index >= agreed, "less is agreed on than before");
}

static void begin(void)
{
    memset(&io, 0, sizeof io);
    memset(&match, 0, sizeof match);
    memset(&rollback, 0, sizeof rollback);
    wd_state_init(&state);
    npending = 0;
    now = 1;
    io = (struct raft_io){.version = 2,
        .init = io_init,
        .close = io_close,
        .load = io_load,
        .start = io_start,
        .bootstrap = io_bootstrap,
        .set_term = io_set_term,
        .set_vote = io_set_vote,
        .send = io_send,
        .append = io_append,
        .truncate = io_truncate,
        .snapshot_put = io_put,
        .snapshot_get = io_get,
        .time = io_time,
        .random = io_random};
    fsm = (struct raft_fsm){.version = 1, .apply = apply, .snapshot = snapshot, .restore = restore};
    require(raft_init(&raft, &io, &fsm, 1, address[0]) == 0, "libraft does not begin");
    raft_set_election_timeout(&raft, ELECTION);
    raft_set_heartbeat_timeout(&raft, ELECTION / 5);
    require(raft_start(&raft) == 0, "libraft does not start");
}

static void pass_time(raft_time ms)
{
    now += ms;
    tick(&io);
    finish();
    require(raft.state != RAFT_UNAVAILABLE, "libraft has given up at a tick");
}

static void be_elected(void)
{
    struct raft_message m = {
        .type = RAFT_IO_REQUEST_VOTE_RESULT, .server_id = 2, .server_address = address[1]};

    pass_time(2 * ELECTION);
    m.request_vote_result = (struct raft_request_vote_result){
        .term = raft.current_term, .vote_granted = true, .pre_vote = raft_tribool_false};
    recv_message(&io, &m);
    finish();
    require(raft.state == RAFT_LEADER, "it was not elected");
}

static void fuzz_words(const uint8_t *data, size_t size)
{
    char *copy = malloc(size); /* of that size: a sanitizer sees a read one byte too far */
    struct buf out = {0};
    struct wd_status status;
    struct wd_status again;
    struct wd_barred barred;

    memcpy(copy, data, size);
    if (wd_status_get(slice_of(copy, size), &status)) {
        wd_status_put(&status, &out);
        require(wd_status_get(buf_slice(&out), &again), "a status that was written is not read");
        require(memcmp(&status, &again, sizeof status) == 0, "a status is another one");
    }
    if (wd_barred_get(slice_of(copy, size), &barred))
        require(barred.n <= sizeof barred.bytes, "an address is too long");
    buf_free(&out);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice in = slice_of((const char *)data, size);
    size_t n;

    if (size < 2)
        return 0;
    if ((data[0] & 2) != 0) {
        fuzz_words(data + 1, size - 1);
        return 0;
    }
    begin();
    if ((data[0] & 1) != 0)
        be_elected();
    in = slice_of(in.p + 1, in.n - 1);
    while (in.n > 3) {
        int from = 1 + (in.p[0] & 1);
        unsigned what = (unsigned char)in.p[0] >> 1;
        char *copy;

        n = (size_t)(unsigned char)in.p[1] << 8 | (unsigned char)in.p[2];
        in = slice_of(in.p + 3, in.n - 3);
        n = n < in.n ? n : in.n;
        copy = malloc(n == 0 ? 1 : n);
        memcpy(copy, in.p, n);
        take(from, slice_of(copy, n));
        free(copy);
        if ((what & 1) == 0)
            finish();
        if ((what & 2) != 0)
            pass_time(ELECTION / 4 * ((what >> 2 & 15) + 1));
        in = slice_of(in.p + n, in.n - n);
    }
    finish();
    raft_close(&raft, NULL);
    finish();
    wd_rollback_fini(&rollback);
    return 0;
}

#ifndef FUZZ_LIBFUZZER
#define T(x) "\0\0\0\0\0\0\0" x
static const struct slice seeds[] = {
    /* follower: entries behind the log, a heartbeat, a vote, a snapshot without a state */
    SEED("\0\0\0\x3f\1" T("\3") T("\3") T("\2") T("\3") "\0\0\0\1" T("\3") "\0\1\0\0\0\x08"
                                                                           "12345678"),
    SEED("\0\0\0\x25\1" T("\3") T("\3") T("\2") T("\3") "\0\0\0\0"),
    SEED("\0\2\0\x23\3" T("\4") T("\2") T("\3") T("\3") "\0\1"),
    SEED("\0\0\0\x3e\5" T("\3") T("\x9") T("\3") T("\1") "\0\0\0\1" T("\1") "\0\1pgpool 0\0"
                                                                            "\0\0\0\1\1"),
    SEED(
        "\2\0\1\0\0\0\0\1"
        "0123456789abcdef" T("") "\0" T("") "\1" T("") "\0" T("") "\0" T("") "\0" T("") "\0name\0"),
    SEED("\2\4"
         "0123456789abcdef"),
    /* leader: answers, one that refuses, a second leader of its term */
    SEED("\1\0\0\x19\2" T("\3") T("\0") T("\4")), SEED("\1\1\0\x19\2" T("\3") T("\4") T("\2")),
    SEED("\1\0\0\x25\1" T("\3") T("\3") T("\2") T("\3") "\0\0\0\0")};

FUZZ_MAIN(seeds)
#endif
