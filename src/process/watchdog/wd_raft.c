/* SPDX-License-Identifier: PostgreSQL
 * wd_raft.c: libraft and its disk on our loop, with our own way of sending.
 * Runs in: watchdog. libraft's libuv I/O keeps log, vote and term on the disk; of its network there
 * is only the outside: messages go through wd_net, sealed. The house's loop does not know libuv's
 * timers, so a timer descriptor wakes libuv. */
#include "config.h"

#include "wd_raft.h"

#include <raft.h>
#include <raft/uv.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "sys/fd.h"

#include "wd_codec.h"
#include "wd_gate.h"
#include "wd_match.h"
#include "wd_rollback.h"
#include "wd_voice.h"

#define TICK_MS        20
#define UNIT           8
#define SEGMENT_BYTES  (256 * 1024)
#define SNAPSHOT_EVERY 64 /* entries: the folder stays small */
#define SNAPSHOT_TRAIL 16
#define CLOSE_ROUNDS   500
#define NAME_BYTES     24
#define BEATS          5 /* per election time-out */

/* One send that libraft waits for the end of. */
struct wd_sent {
    struct list node;
    struct raft_io_send *req;
    raft_io_send_cb cb;
    int status;
};

/* One write to the disk. */
struct wd_append {
    struct raft_io_append own; /* what the disk is given */
    struct raft_io_append *req;
    raft_io_append_cb cb;
    struct wd_raft *wr;
};

struct wd_proposal {
    struct raft_apply req;
    struct wd_raft *wr;
};

struct wd_raft {
    struct loop *lp;
    struct wd_raft_calls calls;
    void *owner;
    struct wd_state *state;
    int self;
    struct raft raft;
    struct raft_io io;
    struct raft_fsm fsm;
    struct raft_uv_transport transport;
    int (*disk_start)(struct raft_io *io, unsigned ms, raft_io_tick_cb tick, raft_io_recv_cb recv);
    void (*disk_close)(struct raft_io *io, raft_io_close_cb cb);
    int (*disk_append)(struct raft_io *io, struct raft_io_append *req,
        const struct raft_entry entries[], unsigned n, raft_io_append_cb cb);
    raft_io_recv_cb recv;
    struct wd_match match;
    struct wd_rollback rollback;
    int (*disk_load)(struct raft_io *io, raft_term *term, raft_id *voted_for,
        struct raft_snapshot **snapshot, raft_index *start, struct raft_entry *entries[],
        size_t *n);
    struct list sent;
    struct task tell_sent;
    struct io tick_io;
    int tick_fd;
    struct raft_change change;
    bool is_changing;
    struct raft_transfer transfer;
    bool is_giving;
    struct log_limit unread_limit; /* of a member that speaks otherwise each message is one */
    struct raft_barrier barrier;
    bool is_barred;         /* the barrier is on its way */
    raft_term current_term; /* of the barrier that has passed */
    raft_term barrier_term;
    bool is_broken;
    raft_index old_index; /* so far the log reached when this process began */
    bool is_outdated;     /* what came out of the log is not all that is in it */
    bool is_closed;
    int nproposals;
    char address[WD_MAX_MEMBERS][NAME_BYTES];
    struct wd_state scratch;
};

static raft_id id_of(int member)
{
    return (raft_id)member + 1;
}

static int member_of(raft_id id)
{
    return id == 0 || id > WD_MAX_MEMBERS ? WD_NO_MEMBER : (int)id - 1;
}

static struct wd_raft *of_io(struct raft_io *io)
{
    return LIST_ENTRY(io, struct wd_raft, io);
}

/* libuv's clock stands still while the house's loop waits. */
static void wake_clock(struct wd_raft *wr)
{
    uv_update_time(loop_uv(wr->lp));
}

/* Sending */

static void finish_sent(struct wd_raft *wr)
{
    while (!list_is_empty(&wr->sent)) {
        struct wd_sent *s = LIST_ENTRY(list_first(&wr->sent), struct wd_sent, node);

        list_remove(&s->node);
        if (s->cb != NULL)
            s->cb(s->req, s->status);
        mem_free(s);
    }
}

static void on_tell_sent(struct task *t)
{
    struct wd_raft *wr = LIST_ENTRY(t, struct wd_raft, tell_sent);

    wake_clock(wr);
    finish_sent(wr);
}

static int io_send(
    struct raft_io *io, struct raft_io_send *req, const struct raft_message *m, raft_io_send_cb cb)
{
    struct wd_raft *wr = of_io(io);
    struct wd_sent *s = mem_alloc_zero(sizeof *s);
    struct raft_message said = *m;
    struct raft_append_entries_result *result = &said.append_entries_result;
    struct buf body = {0};

    if (said.type == RAFT_IO_APPEND_ENTRIES_RESULT)
        result->last_log_index =
            wd_match_claim(&wr->match, result->term, result->rejected, result->last_log_index);
    s->req = req;
    s->cb = cb;
    s->status = wd_codec_put(&said, &body) &&
                        wr->calls.send(wr->owner, member_of(said.server_id), buf_slice(&body))
                    ? 0
                    : RAFT_NOCONNECTION;
    buf_free(&body);
    list_push_back(&wr->sent, &s->node);
    task_post(wr->lp, &wr->tell_sent);
    return 0;
}

static void break_off(struct wd_raft *wr, const char *why)
{
    if (wr->is_broken)
        return;
    wr->is_broken = true;
    wr->calls.on_broken(wr->owner, why);
}

/* libraft 0.15 frees things twice when a write of several fails, a full disk being the likeliest
 * reason: it is not told of it, and the process begins anew. */
static void on_appended(struct raft_io_append *own, int status)
{
    struct wd_append *a = LIST_ENTRY(own, struct wd_append, own);

    if (a->wr->is_broken || (status != 0 && status != RAFT_CANCELED)) {
        break_off(a->wr, a->wr->io.errmsg[0] == '\0' ? raft_strerror(status) : a->wr->io.errmsg);
        return; /* whoever calls twice finds it where it was */
    }
    a->cb(a->req, status);
    mem_free(a);
}

static int io_append(struct raft_io *io, struct raft_io_append *req,
    const struct raft_entry entries[], unsigned n, raft_io_append_cb cb)
{
    struct wd_raft *wr = of_io(io);
    struct wd_append *a;
    int rc;

    if (wr->is_broken)
        return RAFT_IOERR;
    wd_match_appends(&wr->match);
    a = mem_alloc_zero(sizeof *a);
    *a = (struct wd_append){.req = req, .cb = cb, .wr = wr};
    rc = wr->disk_append(io, &a->own, entries, n, on_appended);
    if (rc != 0)
        mem_free(a);
    return rc;
}

/* A snapshot would put what is missing here out of the log of a later, newer build, too. */
static void be_outdated(struct wd_raft *wr, const char *what)
{
    if (!wr->is_outdated)
        log_at_detail(LVL_WARNING, NULL,
            "All pgpools of a cluster need one release: pgpool --version on each.",
            "watchdog: the log of the cluster has %s that this release does not understand: this "
            "pgpool does not lead until it is as new as the others",
            what);
    wr->is_outdated = true;
}

static void tell_unread(struct wd_raft *wr, int from)
{
    if (log_limit_pass(&wr->unread_limit))
        log_at_detail(LVL_WARNING, NULL,
            "All pgpools of a cluster need one version: pgpool --version on each.",
            "watchdog: a message of pgpool %d could not be read", from);
}

/* False: it is not for libraft, and nothing is held. */
static bool read_message(struct wd_raft *wr, int from, struct slice body, struct raft_message *m)
{
    enum wd_gate found;

    if (!wd_codec_get(body, m)) {
        tell_unread(wr, from);
        return false;
    }
    m->server_id = id_of(from);
    m->server_address = wr->address[from];
    found = wd_gate_judge(&wr->raft, m, &wr->scratch);
    if (found == WD_GATE_PASS)
        return true;
    if (found == WD_GATE_NEWER)
        be_outdated(wr, "a snapshot");
    else
        tell_unread(wr, from);
    wd_codec_free(m);
    return false;
}

void wd_raft_take(struct wd_raft *wr, int from, struct slice body)
{
    struct raft_message m;
    bool has_voice;
    int role;

    if (wr->is_broken || wr->recv == NULL || !read_message(wr, from, body, &m))
        return;
    wake_clock(wr);
    if (!wd_rollback_take(&wr->rollback, &wr->raft, &m)) {
        break_off(wr, "a change of the members cannot be taken back");
        return;
    }
    if (m.type == RAFT_IO_APPEND_ENTRIES)
        wd_match_begin(&wr->match, m.append_entries.term, m.append_entries.prev_log_index,
            m.append_entries.n_entries);
    else if (m.type == RAFT_IO_INSTALL_SNAPSHOT)
        wd_match_snapshot(&wr->match, m.install_snapshot.term, m.install_snapshot.last_index);
    has_voice = wd_voice_begin(&wr->raft, &m, &role);
    wr->recv(&wr->io, &m);
    if (has_voice)
        wd_voice_end(&wr->raft, role);
    wd_match_end(&wr->match);
}

static void ignore_recv(struct raft_io *io, struct raft_message *m)
{
}

static int io_start(struct raft_io *io, unsigned ms, raft_io_tick_cb tick, raft_io_recv_cb recv)
{
    struct wd_raft *wr = of_io(io);

    wr->recv = recv;
    return wr->disk_start(io, ms, tick, ignore_recv);
}

static void disk_close(struct raft_io *io, raft_io_close_cb cb)
{
    struct wd_raft *wr = of_io(io);

    wr->recv = NULL;
    finish_sent(wr);
    wr->disk_close(io, cb);
}

/* The network that libraft's disk I/O believes to have. */

static int net_init(struct raft_uv_transport *t, raft_id id, const char *address)
{
    return 0;
}

static int net_listen(struct raft_uv_transport *t, raft_uv_accept_cb cb)
{
    return 0;
}

static int net_connect(struct raft_uv_transport *t, struct raft_uv_connect *req, raft_id id,
    const char *address, raft_uv_connect_cb cb)
{
    return RAFT_NOCONNECTION;
}

static void net_close(struct raft_uv_transport *t, raft_uv_transport_close_cb cb)
{
    cb(t);
}

/* The state machine: libraft writes in units of 8 bytes. */

static void pad(struct buf *text)
{
    while (text->len % UNIT != 0)
        buf_put_byte(text, 0);
}

static bool read_event(const struct raft_buffer *buf, struct wd_event *e)
{
    size_t n = buf->len;

    while (n > 0 && n + UNIT > buf->len) {
        if (wd_event_get(slice_of(buf->base, n), e))
            return true;
        n--;
    }
    return false;
}

static int fsm_apply(struct raft_fsm *fsm, const struct raft_buffer *buf, void **result)
{
    struct wd_raft *wr = fsm->data;
    struct wd_event e;

    if (read_event(buf, &e))
        wr->calls.on_event(wr->owner, &e, wd_state_apply(wr->state, &e),
            raft_last_applied(&wr->raft) >= wr->old_index);
    else
        be_outdated(wr, "an event");
    *result = NULL;
    return 0;
}

static int fsm_snapshot(struct raft_fsm *fsm, struct raft_buffer *bufs[], unsigned *n_bufs)
{
    struct wd_raft *wr = fsm->data;
    struct buf text = {0};

    if (wr->is_outdated)
        return RAFT_BUSY; /* later, then */
    wd_state_put(wr->state, &text);
    *n_bufs = 1;
    *bufs = raft_malloc(sizeof **bufs);
    if (*bufs != NULL) {
        pad(&text);
        (*bufs)[0].len = text.len;
        (*bufs)[0].base = raft_malloc(text.len);
        if ((*bufs)[0].base != NULL)
            memcpy((*bufs)[0].base, text.data, text.len);
    }
    buf_free(&text);
    return *bufs == NULL || (*bufs)[0].base == NULL ? RAFT_NOMEM : 0;
}

static int fsm_restore(struct raft_fsm *fsm, struct raft_buffer *buf)
{
    struct wd_raft *wr = fsm->data;
    size_t n = buf->len;

    while (n + UNIT > buf->len && n > 0 && !wd_state_get(slice_of(buf->base, n), wr->state))
        n--;
    if (n + UNIT <= buf->len || n == 0) {
        be_outdated(wr, "a snapshot");
        return RAFT_MALFORMED;
    }
    wr->is_outdated = false;
    raft_free(buf->base);
    return 0;
}

/* Life */

static void on_tick(struct io *io, int events)
{
    struct wd_raft *wr = LIST_ENTRY(io, struct wd_raft, tick_io);
    uint64_t n;

    (void)!read(wr->tick_fd, &n, sizeof n);
    wake_clock(wr);
    if (raft_state(&wr->raft) == RAFT_UNAVAILABLE && wr->recv != NULL)
        break_off(wr, raft_errmsg(&wr->raft));
}

static void on_io_closed(struct io *io)
{
}

static int start_ticking(struct wd_raft *wr, struct err *err)
{
    struct itimerspec every = {{0, TICK_MS * 1000000L}, {0, TICK_MS * 1000000L}};

    wr->tick_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (wr->tick_fd == -1 || timerfd_settime(wr->tick_fd, 0, &every, NULL) == -1) {
        err_set(err, "58000", "watchdog: could not make a timer");
        return -1;
    }
    io_open(wr->lp, &wr->tick_io, wr->tick_fd, on_tick);
    io_want(&wr->tick_io, IO_READ);
    return 0;
}

/* Runs a turn of the loop, so that the end of the watch is told while there is one. */
static void stop_ticking(struct wd_raft *wr)
{
    if (wr->tick_fd > 0) {
        io_close(&wr->tick_io, on_io_closed);
        loop_poll(wr->lp);
        close(wr->tick_fd);
    }
}

static int begin_log(struct wd_raft *wr, const struct wd_raft_opts *o)
{
    struct raft_configuration conf;
    int rc = 0;
    int i;

    if (!o->is_new || o->nmembers == 0)
        return 0;
    raft_configuration_init(&conf);
    for (i = 0; i < o->nmembers && rc == 0; i++)
        rc = raft_configuration_add(
            &conf, id_of(o->members[i]), wr->address[o->members[i]], RAFT_VOTER);
    if (rc == 0)
        rc = raft_bootstrap(&wr->raft, &conf);
    raft_configuration_close(&conf);
    return rc == RAFT_CANTBOOTSTRAP ? 0 : rc;
}

static void on_raft_closed(struct raft *raft)
{
    struct wd_raft *wr = raft->data;

    wr->is_closed = true;
}

static int start_raft(struct wd_raft *wr, const struct wd_raft_opts *o)
{
    int rc;

    raft_set_election_timeout(&wr->raft, (unsigned)o->election_ms);
    raft_set_heartbeat_timeout(&wr->raft, (unsigned)(o->election_ms / BEATS));
    raft_set_snapshot_threshold(&wr->raft, SNAPSHOT_EVERY);
    raft_set_snapshot_trailing(&wr->raft, SNAPSHOT_TRAIL);
    raft_set_install_snapshot_timeout(&wr->raft, WD_SNAPSHOT_WAIT_MS);
    raft_set_pre_vote(&wr->raft, true);
    raft_uv_set_segment_size(&wr->io, SEGMENT_BYTES);
    (void)raft_uv_set_snapshot_compression(&wr->io, false);
    /* libraft would put a damaged file aside and vote on without what it had promised. */
    raft_uv_set_auto_recovery(&wr->io, false);
    rc = begin_log(wr, o);
    wr->old_index = UINT64_MAX;
    rc = rc == 0 ? raft_start(&wr->raft) : rc;
    wr->old_index = raft_last_index(&wr->raft);
    return rc;
}

/* The members that a snapshot names are agreed on; its log may have a change that is not. */
static int io_load(struct raft_io *io, raft_term *term, raft_id *voted_for,
    struct raft_snapshot **snapshot, raft_index *start, struct raft_entry *entries[], size_t *n)
{
    struct wd_raft *wr = of_io(io);
    int rc = wr->disk_load(io, term, voted_for, snapshot, start, entries, n);

    if (rc == 0 && *snapshot != NULL)
        wd_rollback_note(
            &wr->rollback, (*snapshot)->configuration_index, &(*snapshot)->configuration);
    return rc;
}

static void make_callbacks(struct wd_raft *wr)
{
    wr->disk_load = wr->io.load;
    wr->io.load = io_load;
    wr->disk_start = wr->io.start;
    wr->disk_close = wr->io.close;
    wr->disk_append = wr->io.append;
    wr->io.start = io_start;
    wr->io.append = io_append;
    wr->io.close = disk_close;
    wr->io.send = io_send;
    wr->fsm = (struct raft_fsm){.version = 1,
        .data = wr,
        .apply = fsm_apply,
        .snapshot = fsm_snapshot,
        .restore = fsm_restore};
}

static void refuse_log(struct err *err, const char *dir, const char *why)
{
    err_set(err, "58030", "watchdog: consensus cannot begin in folder \"%s\": %s", dir, why);
    err_hint(err, "See whether its disk is full. When a file in it is damaged, remove the folder: "
                  "the other pgpools give this one their log.");
}

struct wd_raft *wd_raft_new(struct loop *lp, const struct wd_raft_opts *opts,
    const struct wd_raft_calls *calls, struct wd_state *state, void *owner, struct err *err)
{
    struct wd_raft *wr = mem_alloc_zero(sizeof *wr);
    int rc;
    int i;

    wr->lp = lp;
    wr->calls = *calls;
    wr->owner = owner;
    wr->state = state;
    wr->self = opts->self;
    wr->unread_limit.burst = 5;
    list_init(&wr->sent);
    task_init(&wr->tell_sent, on_tell_sent);
    for (i = 0; i < WD_MAX_MEMBERS; i++)
        snprintf(wr->address[i], sizeof wr->address[i], "pgpool %d", i);
    wr->transport = (struct raft_uv_transport){.data = wr,
        .init = net_init,
        .listen = net_listen,
        .connect = net_connect,
        .close = net_close};
    wake_clock(wr);
    rc = raft_uv_init(&wr->io, loop_uv(lp), opts->dir, &wr->transport);
    if (rc != 0) {
        err_set(
            err, "58030", "watchdog: folder \"%s\" cannot be used: %s", opts->dir, wr->io.errmsg);
        mem_free(wr);
        return NULL;
    }
    make_callbacks(wr);
    rc = raft_init(&wr->raft, &wr->io, &wr->fsm, id_of(opts->self), wr->address[opts->self]);
    if (rc != 0) {
        refuse_log(err, opts->dir, wr->io.errmsg);
        raft_uv_close(&wr->io);
        mem_free(wr);
        return NULL;
    }
    wr->raft.data = wr;
    rc = start_raft(wr, opts);
    if (rc != 0)
        refuse_log(err, opts->dir, raft_errmsg(&wr->raft));
    if (rc != 0 || start_ticking(wr, err) == -1)
        wd_raft_free(&wr);
    return wr;
}

/* The disk may be at work: libuv runs on alone until that is over. After a failed write libraft
 * waits for what it is not told: its memory goes with the process. */
void wd_raft_free(struct wd_raft **wp)
{
    struct wd_raft *wr = *wp;
    int i;

    if (wr == NULL)
        return;
    *wp = NULL;
    stop_ticking(wr);
    if (wr->is_broken)
        return;
    raft_close(&wr->raft, on_raft_closed);
    for (i = 0; i < CLOSE_ROUNDS && !wr->is_closed; i++) {
        finish_sent(wr);
        uv_run(loop_uv(wr->lp), UV_RUN_ONCE);
    }
    task_cancel(&wr->tell_sent);
    finish_sent(wr);
    if (!wr->is_closed)
        return; /* libraft still holds it: the process ends now */
    raft_uv_close(&wr->io);
    wd_rollback_fini(&wr->rollback);
    mem_free(wr);
}

/* What is */

enum wd_role wd_raft_role(const struct wd_raft *wr)
{
    if (wr->is_broken)
        return WD_ROLE_NONE;
    switch (wr->raft.state) {
    case RAFT_FOLLOWER:
        return WD_ROLE_FOLLOWER;
    case RAFT_CANDIDATE:
        return WD_ROLE_CANDIDATE;
    case RAFT_LEADER:
        return WD_ROLE_LEADER;
    default:
        return WD_ROLE_NONE;
    }
}

int wd_raft_leader(struct wd_raft *wr)
{
    const char *address;
    raft_id id = 0;

    if (wr->raft.state != RAFT_UNAVAILABLE)
        raft_leader(&wr->raft, &id, &address);
    return member_of(id);
}

bool wd_raft_is_outdated(const struct wd_raft *wr)
{
    return wr->is_outdated;
}

uint64_t wd_raft_term(const struct wd_raft *wr)
{
    return wr->raft.current_term;
}

/* A process that was held up finds the question before it has woken libuv's clock. */
int64_t wd_raft_heard_ago_ms(struct wd_raft *wr)
{
    wake_clock(wr);
    return (int64_t)(uv_now(&wr->lp->uv) - wr->raft.election_timer_start);
}

int wd_raft_voters(const struct wd_raft *wr, bool voter[WD_MAX_MEMBERS])
{
    int n = 0;
    unsigned i;

    memset(voter, 0, WD_MAX_MEMBERS * sizeof voter[0]);
    for (i = 0; i < wr->raft.configuration.n; i++) {
        const struct raft_server *s = &wr->raft.configuration.servers[i];
        int member = member_of(s->id);

        if (member == WD_NO_MEMBER || s->role != RAFT_VOTER)
            continue;
        voter[member] = true;
        n++;
    }
    return n;
}

bool wd_raft_has(const struct wd_raft *wr, int member)
{
    unsigned i;

    for (i = 0; i < wr->raft.configuration.n; i++)
        if (wr->raft.configuration.servers[i].id == id_of(member))
            return true;
    return false;
}

/* Orders of the leader */

static void on_applied(struct raft_apply *req, int status, void *result)
{
    struct wd_proposal *p = req->data;

    p->wr->nproposals--;
    mem_free(p);
}

bool wd_raft_propose(struct wd_raft *wr, const struct wd_event *e)
{
    struct wd_proposal *p;
    struct raft_buffer buf;
    struct buf text = {0};

    if (wr->is_broken || wr->raft.state != RAFT_LEADER || wr->is_giving)
        return false;
    wake_clock(wr);
    wd_event_put(e, &text);
    pad(&text);
    buf.len = text.len;
    buf.base = raft_malloc(text.len);
    if (buf.base != NULL)
        memcpy(buf.base, text.data, text.len);
    buf_free(&text);
    if (buf.base == NULL)
        return false;
    p = mem_alloc_zero(sizeof *p);
    p->wr = wr;
    p->req.data = p;
    if (raft_apply(&wr->raft, &p->req, &buf, 1, on_applied) != 0) {
        raft_free(buf.base);
        mem_free(p);
        return false;
    }
    wr->nproposals++;
    return true;
}

static void on_barrier(struct raft_barrier *req, int status)
{
    struct wd_raft *wr = req->data;

    wr->is_barred = false;
    if (status == 0)
        wr->current_term = wr->barrier_term;
}

bool wd_raft_is_current(struct wd_raft *wr)
{
    if (wr->raft.state != RAFT_LEADER)
        return false;
    if (wr->current_term == wr->raft.current_term)
        return true;
    if (!wr->is_barred) {
        wake_clock(wr);
        wr->barrier.data = wr;
        wr->barrier_term = wr->raft.current_term;
        wr->is_barred = raft_barrier(&wr->raft, &wr->barrier, on_barrier) == 0;
    }
    return false;
}

bool wd_raft_is_proposing(const struct wd_raft *wr)
{
    return wr->nproposals > 0;
}

bool wd_raft_is_changing(const struct wd_raft *wr)
{
    return wr->is_changing;
}

static void on_changed(struct raft_change *req, int status)
{
    struct wd_raft *wr = req->data;

    wr->is_changing = false;
    if (status != 0)
        log_at_detail(LVL_WARNING, NULL, "The leader tries again at its next reload.",
            "watchdog: a change of the members was not made: %s", raft_strerror(status));
}

static bool may_change(struct wd_raft *wr, raft_id leaving)
{
    wake_clock(wr);
    wr->change.data = wr;
    wd_rollback_before_change(&wr->rollback, &wr->raft);
    return !wr->is_broken && wr->raft.state == RAFT_LEADER && !wr->is_changing && !wr->is_giving &&
           wd_rollback_is_settled(&wr->raft, leaving);
}

bool wd_raft_add(struct wd_raft *wr, int member)
{
    if (may_change(wr, 0))
        wr->is_changing =
            raft_add(&wr->raft, &wr->change, id_of(member), wr->address[member], on_changed) == 0;
    return wr->is_changing;
}

bool wd_raft_promote(struct wd_raft *wr, int member)
{
    if (may_change(wr, 0))
        wr->is_changing =
            raft_assign(&wr->raft, &wr->change, id_of(member), RAFT_VOTER, on_changed) == 0;
    return wr->is_changing;
}

bool wd_raft_remove(struct wd_raft *wr, int member)
{
    if (may_change(wr, id_of(member)))
        wr->is_changing = raft_remove(&wr->raft, &wr->change, id_of(member), on_changed) == 0;
    return wr->is_changing;
}

static void on_given(struct raft_transfer *req)
{
    struct wd_raft *wr = req->data;

    wr->is_giving = false;
}

bool wd_raft_is_giving(const struct wd_raft *wr)
{
    return wr->is_giving;
}

bool wd_raft_give_lead(struct wd_raft *wr, int member)
{
    if (wr->is_broken || wr->raft.state != RAFT_LEADER || wr->is_giving)
        return false;
    wake_clock(wr);
    wr->transfer.data = wr;
    wr->is_giving = true; /* before: it may be over within the call */
    if (raft_transfer(
            &wr->raft, &wr->transfer, member == WD_NO_MEMBER ? 0 : id_of(member), on_given) != 0)
        wr->is_giving = false;
    return wr->is_giving;
}
