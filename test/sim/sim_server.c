/* SPDX-License-Identifier: PostgreSQL
 * sim_server.c: PostgreSQL servers: one modelled session per connection, which takes its time,
 * writes its output as the real one does (at Sync, Flush, the end of a query, an error), obeys
 * cancel requests, and dies when it is told to. What was committed on the primary is a log, which
 * standbys replay when they come to it. */
#include "config.h"

#include "sim_world.h"

#include <errno.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "wire/proto.h"
#include "wire/writer.h"

#define MAX_PACKET 100000

struct process {
    struct list node;
    int server;
    struct sim_sock *sock;
    struct buf in;
    struct buf held; /* not flushed yet */
    struct pg_session s;
    bool is_in; /* the login is over */
    int pid;
    uint32_t key;
    bool is_busy; /* with the message at the front of `in` */
    bool is_cancelled;
    bool is_tied; /* its client's session cannot move, or could not as long as it was there */
    int64_t busy_until_us;
};

/* One server. */
struct node {
    struct pg_place place;
    bool is_down;
    bool was_primary;
    int64_t replay_us; /* it replays on then */
};

static struct {
    struct list processes;
    struct node node[WORLD_MAX_NODES];
    int64_t log_len;
    int next_pid;
    bool no_faults;
} server;

static void on_commit(void *ctx, int tag)
{
    struct process *p = ctx;

    if (server.node[p->server].place.is_standby)
        sim_fail("row %d is committed on a standby", tag);
    if (tag < 0 || tag >= WORLD_MAX_TAGS)
        return;
    world.tags.count[tag]++;
    world.tags.at[tag] = ++server.log_len;
    server.node[p->server].place.position = server.log_len;
}

void server_start(void)
{
    int i;

    memset(&server, 0, sizeof server);
    list_init(&server.processes);
    server.next_pid = 1000;
    server.node[0].was_primary = true;
    for (i = 1; i < world.opts.nnodes; i++)
        server.node[i].place.is_standby = true;
}

static void process_end(struct process *p, bool reset)
{
    list_remove(&p->node);
    sim_sock_close(&p->sock, reset);
    buf_free(&p->in);
    buf_free(&p->held);
    mem_free(p);
}

void server_end(void)
{
    struct list *n;

    while ((n = list_first(&server.processes)) != NULL)
        process_end(LIST_ENTRY(n, struct process, node), false);
}

int server_nprocesses(int i)
{
    struct list *n;
    int count = 0;

    LIST_FOREACH(n, &server.processes)
    count += LIST_ENTRY(n, struct process, node)->server == i;
    return count;
}

void server_forget_faults(void)
{
    server.no_faults = true;
}

static bool may_hurt(uint32_t one_in)
{
    return !server.no_faults && one_in > 0 && sim_one_in(one_in);
}

/* ---- output ---- */

static void flush(struct process *p)
{
    if (p->held.len > 0)
        sim_sock_put(p->sock, p->held.data, p->held.len);
    buf_clear(&p->held);
}

static void put_fatal(struct process *p, const char *sqlstate, const char *text)
{
    struct err err;

    err_clear(&err);
    err_set_fatal(&err, sqlstate, "%s", text);
    wire_put_err(&p->held, &err);
}

/* Some ways to die. The transaction is rolled back by nobody knowing of it any more. */
static void die(struct process *p)
{
    uint32_t how = sim_below(4);

    sim_note("server: process %d dies (%s)", p->pid,
        how == 0   ? "with words"
        : how == 1 ? "reset"
        : how == 2 ? "half of what it has to say"
                   : "silently");
    world.nkilled++;
    if (how == 0) {
        put_fatal(p, "57P01", "terminating connection due to administrator command");
        flush(p);
    } else if (how == 2 && p->held.len > 1) {
        p->held.len = 1 + sim_below(p->held.len - 1);
        flush(p);
    }
    process_end(p, how == 1);
}

void server_kill_one(void)
{
    struct process *p = NULL;
    uint32_t seen = 0;
    struct list *n;

    LIST_FOREACH(n, &server.processes)
    if (sim_one_in(++seen))
        p = LIST_ENTRY(n, struct process, node);
    if (p == NULL || server.no_faults)
        return;
    if (sim_one_in(3)) {
        sim_note("the connection of server process %d breaks", p->pid);
        world.nkilled++;
        sim_sock_cut(p->sock);
    } else {
        die(p);
    }
}

/* Those of one server; without `all` only who has begun something. */
static void kill_processes(int i, bool all)
{
    struct process *p;
    struct list *next;
    struct list *n;

    for (n = server.processes.next; n != &server.processes; n = next) {
        next = n->next;
        p = LIST_ENTRY(n, struct process, node);
        if (p->server == i && (all || p->s.tx != 'I' || p->s.nwrites > 0 || p->s.copying != 0))
            die(p);
    }
}

void server_set_down(int i, bool is_down)
{
    if (server.node[i].is_down == is_down)
        return;
    sim_note("server %d: %s", i, is_down ? "goes down" : "is back");
    world.nkilled++;
    server.node[i].is_down = is_down;
    sim_net_set_port(WORLD_PORT + i, is_down && sim_one_in(2) ? ECONNREFUSED : 0, false);
    if (is_down)
        kill_processes(i, true);
    else
        sim_net_set_port(WORLD_PORT + i, 0, false);
}

bool server_is_down(int i)
{
    return server.node[i].is_down;
}

bool server_is_standby(int i)
{
    return server.node[i].place.is_standby;
}

bool server_holds_session(void)
{
    const struct process *p;
    const struct list *n;

    LIST_FOREACH(n, &server.processes)
    {
        p = LIST_ENTRY(n, struct process, node);
        if (server.node[p->server].was_primary && server_is_standby(p->server) &&
            workers_is_held(p->pid))
            return true;
    }
    return false;
}

int64_t server_position(int i)
{
    return server.node[i].place.position;
}

int server_primary(void)
{
    int i;

    for (i = 0; i < world.opts.nnodes; i++)
        if (!server.node[i].place.is_standby)
            return i;
    return -1;
}

void server_fence(int i, bool is_fenced)
{
    sim_note("server %d: %s", i, is_fenced ? "is fenced" : "is free");
    world.nkilled++;
    world.nfenced++;
    server.node[i].place.is_fenced = is_fenced;
}

void server_promote(int i, bool all)
{
    int old = server_primary();

    sim_note("server %d: is promoted, server %d is a standby now", i, old);
    world.nkilled++;
    world.nswitches++;
    kill_processes(old, all);
    server.node[old].place.is_standby = true;
    server.node[old].place.is_fenced = false;
    server.node[old].replay_us = sim.now_us;
    server.node[i].place.is_standby = false;
    server.node[i].place.position = server.log_len;
    server.node[i].was_primary = true;
}

/* ---- standbys ---- */

static bool has_to_replay(const struct node *n)
{
    return n->place.is_standby && n->place.position < server.log_len;
}

/* A bit of the log, and when the next one comes. */
static void replay(struct node *n)
{
    n->place.position += 1 + sim_below(4);
    if (n->place.position > server.log_len)
        n->place.position = server.log_len;
    n->replay_us = sim.now_us + (sim_one_in(3) ? sim_below(30) * SIM_MS : sim_below(500));
    if (sim_one_in(40))
        n->replay_us += sim_below(5) * SIM_S;
}

static struct node *replaying_node(void)
{
    struct node *found = NULL;
    uint32_t seen = 0;
    int i;

    for (i = 0; i < world.opts.nnodes; i++)
        if (has_to_replay(&server.node[i]) && sim.now_us >= server.node[i].replay_us &&
            sim_one_in(++seen))
            found = &server.node[i];
    return found;
}

static bool is_replay_due(void)
{
    int i;

    for (i = 0; i < world.opts.nnodes; i++)
        if (has_to_replay(&server.node[i]) && sim.now_us >= server.node[i].replay_us)
            return true;
    return false;
}

/* ---- the first packet ---- */

static void cancel(int at, int pid, uint32_t key)
{
    struct process *p;
    struct list *n;

    LIST_FOREACH(n, &server.processes)
    {
        p = LIST_ENTRY(n, struct process, node);
        if (!p->is_in || p->server != at || p->pid != pid || p->key != key)
            continue;
        sim_note("server: process %d gets a cancel request, %s", pid, p->is_busy ? "busy" : "idle");
        if (!p->is_busy && p->s.copying != 0) {
            pg_refuse(&p->s, 0, "57014", "canceling statement due to user request", &p->held);
            flush(p);
        }
        if (!p->is_busy)
            return;
        p->is_cancelled = true;
        p->busy_until_us = sim.now_us;
        return;
    }
    sim_note("server: a cancel request for nobody (%d)", pid);
}

static void refuse(struct process *p, const char *sqlstate, const char *text)
{
    sim_note("server: refuses a connection: %s", sqlstate);
    put_fatal(p, sqlstate, text);
    flush(p);
    process_end(p, false);
}

static void let_in(struct process *p, const char *params, size_t n)
{
    char key[4];
    uint32_t k;

    pg_session_init(&p->s, params, n);
    p->s.on_commit = on_commit;
    p->s.ctx = p;
    p->s.place = &server.node[p->server].place;
    p->is_in = true;
    p->pid = server.next_pid++;
    k = p->key = (uint32_t)sim_random();
    memcpy(key, (char[4]){(char)(k >> 24), (char)(k >> 16), (char)(k >> 8), (char)k}, 4);
    wire_put_auth(&p->held, AUTH_OK, slice_of("", 0));
    pg_put_parameters(&p->s, &p->held);
    wire_put_key_data(&p->held, p->pid, slice_of(key, 4));
    wire_put_ready(&p->held, 'I');
    flush(p);
    sim_note("server %d: process %d begins", p->server, p->pid);
}

static void first_packet(struct process *p)
{
    uint32_t len = proto_get_u32(p->in.data + p->in.pos);
    const char *body = p->in.data + p->in.pos + 8;

    if (proto_get_u32(body - 4) == PROTO_CANCEL) {
        cancel(p->server, (int)proto_get_u32(body), proto_get_u32(body + 4));
        process_end(p, false);
        return;
    }
    if (server.node[p->server].is_down) {
        refuse(p, "57P03", "the database system is starting up");
    } else if (may_hurt(world.opts.refuse_one_in)) {
        world.nkilled++;
        if (sim_one_in(3))
            process_end(p, sim_one_in(2));
        else
            refuse(p, sim_one_in(2) ? "53300" : "57P03", "the model refuses");
    } else {
        let_in(p, body, len - 8);
        buf_consume(&p->in, len);
    }
}

/* ---- messages ---- */

static bool has_message(const struct process *p)
{
    size_t n = buf_unread(&p->in);
    const char *at = n == 0 ? "" : p->in.data + p->in.pos;

    if (!p->is_in)
        return n >= 8 && n >= proto_get_u32(at);
    return n >= PROTO_HEADER_BYTES && n >= proto_get_u32(at + 1) + (size_t)1;
}

static int64_t think_us(const char *msg, uint32_t len)
{
    if (memmem(msg, len, "pg_sleep(", 9) != NULL || memmem(msg, len, "slow(", 5) != NULL)
        return 20 * SIM_MS + sim_below(1500) * SIM_MS;
    if (sim_one_in(400))
        return sim_below(4) * SIM_S;
    return sim_one_in(3) ? sim_below(3000) : 0;
}

static void begin_message(struct process *p)
{
    const char *msg = p->in.data + p->in.pos;

    if (!p->is_in) {
        first_packet(p);
        return;
    }
    if (msg[0] == FE_TERMINATE) {
        process_end(p, false);
        return;
    }
    p->is_busy = true;
    p->is_cancelled = false;
    p->busy_until_us = sim.now_us + think_us(msg, proto_get_u32(msg + 1));
}

/* What a server may say at any time: a notice, a notification, a parameter (of a reload). */
static void put_unasked(struct buf *out)
{
    uint32_t start;

    switch (sim_below(3)) {
    case 0:
        wire_put_notice(out, "NOTICE", "00000", "something happened");
        break;
    case 1:
        start = wire_begin(out, BE_NOTIFICATION);
        buf_put_u32(out, 1);
        buf_put_cstr(out, "channel");
        buf_put_cstr(out, "");
        wire_end(out, start);
        break;
    default:
        wire_put_parameter_status(
            out, slice_of_str("DateStyle"), slice_of_str(sim_one_in(2) ? "ISO, MDY" : "ISO, DMY"));
        break;
    }
}

/* Between any two of the messages of `out` from `from` on. */
static void mix_in(struct buf *out, size_t from)
{
    struct buf tail = {0};
    const char *p;
    uint32_t len;

    buf_put(&tail, out->data + from, out->len - from);
    out->len = (uint32_t)from;
    for (p = tail.data; p != NULL && p < tail.data + tail.len; p += len) {
        len = proto_get_u32(p + 1) + 1;
        if (sim_one_in(4))
            put_unasked(out);
        buf_put(out, p, len);
    }
    buf_free(&tail);
}

static void finish_message(struct process *p)
{
    const char *msg = p->in.data + p->in.pos;
    uint32_t len = proto_get_u32(msg + 1);
    struct slice body = slice_of(msg + PROTO_HEADER_BYTES, len - 4);
    bool hurt = may_hurt(world.opts.kill_one_in);
    bool was_copying = p->s.copying != 0;
    size_t held = p->held.len;
    char text[1500];
    bool can_be_cancelled = (msg[0] == FE_QUERY || msg[0] == FE_EXECUTE) && !p->s.skipping;

    sim_describe(text, sizeof text, msg, 1);
    p->is_busy = false;
    p->is_tied = workers_is_tied(p->pid, p->is_tied);
    if (hurt && sim_one_in(2)) {
        die(p); /* before it has done anything */
        return;
    }
    if (p->is_cancelled && can_be_cancelled) {
        sim_note("server: process %d cancels %s", p->pid, text);
        pg_refuse(&p->s, msg[0], "57014", "canceling statement due to user request", &p->held);
    } else {
        pg_message(&p->s, msg[0], body, &p->held);
        sim_note("server: process %d does %s%s", p->pid, text, p->s.failed ? " - an error" : "");
    }
    if (world.opts.unasked && sim_one_in(3))
        mix_in(&p->held, held);
    if (p->s.wrote_in_vain && !server.node[p->server].was_primary && p->is_tied)
        world.nvain++;
    else if (p->s.wrote_in_vain && !server.node[p->server].was_primary)
        sim_fail("a write reached server %d, which has always been a standby: %s", p->server, text);
    p->s.wrote_in_vain = false;
    if (hurt) {
        die(p); /* when it has done it */
        return;
    }
    if (msg[0] == FE_QUERY || msg[0] == FE_SYNC || msg[0] == FE_FLUSH || p->s.failed ||
        p->s.copying != 0 || was_copying || p->held.len > 8192)
        flush(p);
    buf_consume(&p->in, len + 1U);
}

/* ---- steps ---- */

static bool process_is_ready(const struct process *p)
{
    if (buf_unread(sim_sock_in(p->sock)) > 0 && buf_unread(&p->in) < MAX_PACKET)
        return true;
    if (p->is_busy) /* who works does not notice that its client has gone */
        return sim.now_us >= p->busy_until_us;
    return sim_sock_is_over(p->sock) || (has_message(p) && sim_sock_has_room(p->sock));
}

static void accept_dials(void)
{
    struct sim_sock *sock;
    struct process *p;

    int i;

    for (i = 0; i < world.opts.nnodes; i++)
        while ((sock = sim_sock_dialed(WORLD_PORT + i)) != NULL) {
            p = mem_alloc_zero(sizeof *p);
            p->sock = sock;
            p->server = i;
            list_push_back(&server.processes, &p->node);
        }
}

bool server_is_ready(void)
{
    struct list *n;

    accept_dials();
    LIST_FOREACH(n, &server.processes)
    if (process_is_ready(LIST_ENTRY(n, struct process, node)))
        return true;
    return is_replay_due();
}

static void process_step(struct process *p)
{
    struct buf *in = sim_sock_in(p->sock);

    if (buf_unread(in) > 0 && buf_unread(&p->in) < MAX_PACKET) {
        buf_put(&p->in, in->data + in->pos, buf_unread(in));
        buf_consume(in, buf_unread(in));
    }
    if (p->is_busy && sim.now_us >= p->busy_until_us) {
        finish_message(p);
        return;
    }
    if (p->is_busy)
        return;
    if (has_message(p)) {
        if (sim_sock_has_room(p->sock) || sim_sock_is_over(p->sock))
            begin_message(p);
    } else if (sim_sock_is_over(p->sock)) {
        process_end(p, false);
    }
}

void server_step(void)
{
    struct process *p = NULL;
    struct node *node = replaying_node();
    uint32_t seen = 0;
    struct list *n;

    LIST_FOREACH(n, &server.processes)
    if (process_is_ready(LIST_ENTRY(n, struct process, node)) && sim_one_in(++seen))
        p = LIST_ENTRY(n, struct process, node);
    if (node != NULL && (p == NULL || sim_one_in(2)))
        replay(node);
    else if (p != NULL)
        process_step(p);
}

int64_t server_next_us(void)
{
    int64_t next_us = INT64_MAX;
    struct process *p;
    struct list *n;
    int i;

    LIST_FOREACH(n, &server.processes)
    {
        p = LIST_ENTRY(n, struct process, node);
        if (p->is_busy && p->busy_until_us < next_us)
            next_us = p->busy_until_us;
    }
    for (i = 0; i < world.opts.nnodes; i++)
        if (has_to_replay(&server.node[i]) && server.node[i].replay_us < next_us)
            next_us = server.node[i].replay_us;
    return next_us;
}
