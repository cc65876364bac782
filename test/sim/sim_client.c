/* SPDX-License-Identifier: PostgreSQL
 * sim_client.c: clients, and the judgement of what they get. Each has a model of a session beside
 * it, as if it were alone on a server: a request goes into the model when its first reply comes,
 * and every reply must be the model's, in order, once. An error that the model does not know is let
 * through only when something was done to a connection, or the client asked for a cancel; what it
 * means for the session then goes into the model, too. */
#include "config.h"

#include "sim_world.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "wire/errmsg.h"
#include "wire/message.h"
#include "wire/proto.h"
#include "wire/startup.h"
#include "wire/writer.h"

#define PATIENCE_US   (200 * SIM_S)
#define MAX_IN_FLIGHT 5
/* failover_wait, less what it takes to be told. */
#define FAILOVER_WAIT_US (9 * SIM_S)

enum phase { C_OUT, C_LOGIN, C_IN, C_LEAVING, C_DONE };

struct sim_client {
    enum phase phase;
    int id;
    struct sim_sock *sock;
    struct script script;
    struct buf out;      /* not sent yet */
    size_t to_flush;     /* so much of it goes first, and is waited for; 0: no matter */
    struct buf in;       /* not understood yet */
    struct buf asked;    /* sent or to be sent, and not put into the model yet */
    struct buf expected; /* what the model says next */
    struct pg_session model;
    struct pg_session before; /* the message whose replies `expected` holds */
    struct buf message;       /* that message */
    char told[PG_NREPORTED][PG_VALUE_BYTES];
    char present;       /* type of that message; 0: none */
    bool may_be_either; /* the state after a failed request that speaks of transactions */
    bool has_ended;     /* a transaction, in the present request */
    bool is_discard;
    bool is_vague;  /* nobody knows what is left of the present request when it is lost */
    bool hangs_up;  /* it was lost: should it be vague, this client leaves when it is over */
    bool hangs_now; /* it leaves now */
    bool was_end;   /* that message was the last of its request */
    int pid;
    uint32_t key;
    int in_flight; /* requests whose ReadyForQuery has not come */
    int nignored;  /* Syncs that the COPY at hand ignores */
    int nspare;    /* of one that failed for an outer reason: perhaps they are answered */
    int ncancels;  /* asked for, and not seen */
    int committing[PG_MAX_WRITES];
    int ncommitting;
    bool had_fault; /* since all was known last */
    bool had_row;   /* in the present request */
    bool had_reply; /* anything */
    int nstale;     /* requests that ended with a parameter told wrongly */
    struct sight sight;
    uint64_t nkilled; /* in the world, when its oldest open request was sent */
    int64_t next_us;
    int64_t since_us; /* of the oldest unanswered request */
    int64_t cancel_us;
};

static struct sim_client *clients[WORLD_MAX_CLIENTS];
static int nclients;

static const char *const reported_names[PG_NREPORTED] = {
    "application_name", "TimeZone", "IntervalStyle"};

void clients_start(void)
{
    int i;

    nclients = world.opts.nclients;
    cancels_start();
    for (i = 0; i < nclients; i++) {
        clients[i] = mem_alloc_zero(sizeof *clients[i]);
        clients[i]->id = i;
        clients[i]->script.client = i;
        clients[i]->script.tx = 'I';
        clients[i]->next_us = sim.now_us + sim_below(300) * SIM_MS;
    }
}

static void client_forget(struct sim_client *c)
{
    buf_free(&c->out);
    buf_free(&c->in);
    buf_free(&c->asked);
    buf_free(&c->expected);
    buf_free(&c->message);
}

void clients_end(void)
{
    int i;

    for (i = 0; i < nclients; i++) {
        client_forget(clients[i]);
        mem_free(clients[i]);
        clients[i] = NULL;
    }
    nclients = 0;
}

bool clients_are_done(void)
{
    int i;

    for (i = 0; i < nclients; i++)
        if (clients[i]->phase != C_DONE)
            return false;
    return cancels_are_done();
}

static bool were_faults(void)
{
    return world.nkilled > 0;
}

/* ---- the session begins and ends ---- */

static void client_connect(struct sim_client *c)
{
    static const char *const extra[] = {"application_name", "TimeZone", "my.own"};
    static const char *const value[] = {"start", "home", "own"};
    struct startup_param param = {{0}, {0}};
    struct buf packet = {0};
    struct buf names = {0};
    int which = (int)sim_below(6);
    int fd;

    c->sock = sim_sock_connect(&fd);
    buf_put_cstr(&names, "user");
    buf_put_cstr(&names, "u");
    if (world.opts.wild)
        which = 3; /* what RESET and DISCARD do to them is put right behind the request */
    if (world.opts.mode == WORLD_SESSION && world.opts.nnodes == 1 && which < 2)
        which = 2; /* after a RESET a link that was brought up to date shows its own for a moment */
    if (which < 3) {
        param.name = slice_of_str(extra[which]);
        param.value = slice_of_str(value[which]);
        buf_put_cstr(&names, extra[which]);
        buf_put_cstr(&names, value[which]);
    }
    buf_put_byte(&names, '\0');
    pg_session_init(&c->model, names.data, names.len);
    buf_free(&names);
    startup_encode(&packet, PROTO_3_0, slice_of_str("u"), slice_of_str("d"), &param, which < 3);
    buf_put(&c->out, packet.data, packet.len);
    buf_free(&packet);
    c->phase = C_LOGIN;
    c->script.tx = 'I';
    c->script.holds_lock = false;
    c->script.has_params = which < 3;
    c->script.is_opaque = false;
    c->present = 0;
    c->nstale = 0;
    c->had_row = false;
    c->since_us = sim.now_us;
    sight_reset(&c->sight);
    sim_note("client %d connects", c->id);
    workers_add_client(fd);
}

/* What it asked for may have been done or not. */
static void client_lost_track(struct sim_client *c)
{
    c->script.ntags = 0;
    c->ncommitting = 0;
    c->in_flight = 0;
    c->nspare = 0;
    c->had_fault = c->hangs_up = c->hangs_now = c->is_vague = false;
}

static void client_gone(struct sim_client *c, bool reset)
{
    sim_sock_close(&c->sock, reset);
    client_forget(c);
    client_lost_track(c);
    c->since_us = 0;
    c->ncancels = 0; /* its key is worth nothing any more */
    c->cancel_us = 0;
    c->next_us = sim.now_us + sim_below(500) * SIM_MS;
    c->phase = c->phase == C_LEAVING || c->script.n >= world.opts.nunits ? C_DONE : C_OUT;
}

/* The connection has ended from the other side. */
static void client_on_end(struct sim_client *c)
{
    if (c->phase != C_LEAVING) {
        sim_note("client %d: its connection ends", c->id);
        world.nlost++;
        if (!were_faults())
            sim_fail("client %d lost its connection although nothing went wrong", c->id);
    }
    client_gone(c, false);
}

/* ---- rows ---- */

static void model_on_commit(void *ctx, int tag)
{
    struct sim_client *c = ctx;

    if (c->ncommitting < PG_MAX_WRITES)
        c->committing[c->ncommitting++] = tag;
}

/* A ReadyForQuery confirms what was committed before it. */
static void confirm_rows(struct sim_client *c)
{
    struct script *s = &c->script;
    int i;

    for (i = 0; i < c->ncommitting; i++) {
        world.tags.state[c->committing[i]] = TAG_ACKED;
        sight_on_ack(&c->sight, c->committing[i]);
    }
    c->ncommitting = 0;
    c->sight.snapshot = c->model.tx == 'I' ? -1 : c->sight.snapshot; /* the next is on its way */
    if (c->model.tx != 'I' || c->in_flight > 0)
        return;
    for (i = 0; i < s->ntags; i++)
        if (world.tags.state[s->tags[i]] != TAG_ACKED && !c->had_fault)
            world.tags.state[s->tags[i]] = TAG_NOT,
            sim_note("client %d: row %d is not there", c->id, s->tags[i]);
    s->ntags = 0;
    c->had_fault = false;
}

/* ---- replies ---- */

/* When a connection is lost in a request with a transaction's words in it, nobody knows which of
 * them came to anything. */
static void note_words(struct sim_client *c, const char *msg, uint32_t len)
{
    static const char *const words[] = {"begin", "start tr", "commit", "rollback"};
    size_t i;

    if (c->was_end)
        c->may_be_either = c->has_ended = c->is_vague = false;
    c->was_end = (msg[0] == FE_QUERY && !c->model.skipping) || msg[0] == FE_SYNC;
    c->is_discard = msg[0] == FE_QUERY && strcmp(msg + PROTO_HEADER_BYTES, "discard all") == 0;
    for (i = 0; i < sizeof words / sizeof words[0] && msg[0] != FE_BIND; i++)
        if (memmem(msg + PROTO_HEADER_BYTES, len - 4, words[i], strlen(words[i])) != NULL)
            c->may_be_either = true;
    if (msg[0] == FE_QUERY && (strcmp(msg + PROTO_HEADER_BYTES, "end") == 0 ||
                                  strcmp(msg + PROTO_HEADER_BYTES, "abort") == 0))
        c->may_be_either = true;
    if (world.opts.wild && wild_is_vague(&c->model, msg, len, &c->may_be_either))
        c->is_vague = true;
}

/* A Sync within a COPY ends no request. */
static void ignore_sync(struct sim_client *c)
{
    c->nignored++;
    c->in_flight--;
}

/* Puts the next message into the model. False: nothing was asked. */
static bool expect_more(struct sim_client *c)
{
    struct buf raw = {0};
    const char *p;
    const char *end;
    uint32_t len;

    while (buf_unread(&c->expected) == 0) {
        if (buf_unread(&c->asked) == 0)
            return false;
        p = c->asked.data + c->asked.pos;
        len = proto_get_u32(p + 1);
        c->before = c->model;
        c->present = p[0];
        note_words(c, p, len);
        if (c->model.copying == 0)
            c->nignored = 0;
        else if (p[0] == FE_SYNC)
            ignore_sync(c);
        if (p[0] == FE_QUERY && c->model.skipping && c->model.copying == 0)
            c->in_flight--; /* nothing is said of it */
        pg_message(&c->model, p[0], slice_of(p + PROTO_HEADER_BYTES, len - 4), &raw);
        buf_clear(&c->message);
        buf_put(&c->message, p, len + 1U);
        buf_consume(&c->asked, len + 1U);
        if (c->before.tx != 'I' && c->model.tx == 'I')
            c->has_ended = true;
        end = raw.data + raw.len;
        for (p = raw.data; p < end; p += len + 1U) {
            len = proto_get_u32(p + 1);
            if (p[0] != BE_PARAMETER_STATUS && p[0] != BE_NOTICE)
                buf_put(&c->expected, p, len + 1U);
        }
        buf_free(&raw);
    }
    return true;
}

/* A read is made again, and so is a write that was refused: this is no error to be told of, unless
 * more went wrong than once, or for long. */
static bool is_needless(const struct sim_client *c, const struct errmsg *m)
{
    bool is_alone = world.opts.nnodes > 1 && c->in_flight == 1 && c->before.tx == 'I' &&
                    c->present == FE_QUERY && !c->had_reply &&
                    sim.now_us - c->since_us < FAILOVER_WAIT_US;

    if (!is_alone)
        return false;
    if (c->script.is_read)
        return world.nkilled - c->nkilled <= 2 && world.opts.refuse_one_in == 0;
    if (c->script.is_opaque)
        return false; /* such a session cannot move */
    return c->script.is_write && slice_eq_str(m->sqlstate, "25006") && !world.opts.may_pin &&
           world.opts.mail_full_one_in == 0 && world.nkilled - c->nkilled <= 2;
}

/* A read-only transaction has tied the session to a standby, which takes no writes; locks are
 * refused by pgpool itself. */
static bool is_tied_to_standby(const struct sim_client *c, const struct errmsg *m)
{
    static const char locks[] = "cannot take advisory locks";

    return slice_eq_str(m->sqlstate, "25006") &&
           (world.nvain > 0 || (c->script.is_opaque && m->message.n >= sizeof locks - 1 &&
                                   memcmp(m->message.p, locks, sizeof locks - 1) == 0));
}

/* Its COPY has failed at a place that the model does not know: the Syncs that it was sent may have
 * been read before, or are answered one by one. The model has them all read. */
static void note_spare(struct sim_client *c)
{
    const char *p;

    if (c->before.copying == 0)
        return;
    while (buf_unread(&c->asked) > 0) {
        p = c->asked.data + c->asked.pos;
        if (c->present == FE_COPY_DONE || c->present == FE_COPY_FAIL ||
            (p[0] != FE_COPY_DATA && p[0] != FE_SYNC))
            break;
        if (p[0] == FE_SYNC)
            ignore_sync(c);
        buf_consume(&c->asked, proto_get_u32(p + 1) + 1U);
    }
    c->nspare = c->nignored;
    c->nignored = 0;
}

/* A transaction died with its link: it is a failed one, and what it had bound is not there any
 * more (doc/internals/known-gaps.md). */
static void model_lose_tx(struct sim_client *c, const struct errmsg *m)
{
    if (c->model.tx != 'I' && (m == NULL || errors_are_lost_link(m)))
        pg_drop_portals(&c->model);
}

/* An error that the model does not know. False: it must not be. */
static bool client_on_fault(struct sim_client *c, const struct errmsg *m)
{
    bool is_cancel = slice_eq_str(m->sqlstate, "57014") && c->ncancels > 0;

    if (is_cancel) {
        c->ncancels--;
        world.ncancelled++;
        c->script.is_opaque = c->script.is_opaque || c->is_discard; /* how far did it come? */
    } else if (errors_are_not_described(c->before.tx, c->present, m)) {
        /* nothing else comes of it */
    } else if (is_tied_to_standby(c, m) ||
               errors_are_portal_elsewhere(c->before.tx, c->present, m)) {
        c->had_fault = true;
    } else if (were_faults() && !is_needless(c, m) &&
               (errors_are_trouble(m) || errors_are_lost_savepoint(c->before.tx, m))) {
        c->had_fault = true;
        world.nfaults_seen++;
    } else {
        return false;
    }
    c->has_ended = c->has_ended && c->before.tx == 'I';
    c->hangs_up = true;
    note_spare(c);
    c->model = c->before;
    model_lose_tx(c, m);
    c->ncommitting = 0;
    buf_free(&c->expected);
    if (c->present == FE_QUERY || c->present == FE_SYNC || c->before.copying == 'Q') {
        pg_fail(&c->model, true);
        wire_put_ready(&c->expected, c->model.tx);
    } else {
        pg_fail(&c->model, false);
    }
    return true;
}

/* When a server process dies, the end of the request is said without it, and what the client was
 * told of parameters is put right by the next one: so two requests that a server answered with rows
 * may not both end with a wrong value, unless a process died meanwhile: it may have been theirs. */
static void check_parameters(struct sim_client *c)
{
    bool was_answered = c->had_row && world.nkilled == c->nkilled;
    int i;

    for (i = 0; i < PG_NREPORTED; i++)
        if (strcmp(c->told[i], c->model.vars.now.v[i]) != 0)
            break;
    c->nstale = i == PG_NREPORTED ? 0 : c->nstale + (was_answered || !were_faults());
    c->had_row = false;
    if (c->nstale == (were_faults() ? 2 : 1))
        sim_fail("client %d was told %s = \"%s\", it is \"%s\"", c->id, reported_names[i],
            c->told[i], c->model.vars.now.v[i]);
}

static void on_ready_matched(struct sim_client *c)
{
    c->in_flight--;
    c->since_us = c->in_flight > 0 ? sim.now_us : 0;
    if (c->in_flight == 0)
        c->script.tx = c->model.tx == 'I' ? 'I' : 'T';
    confirm_rows(c);
    check_parameters(c);
}

/* The state after a query that failed for an outer reason and may or may not have begun or ended a
 * transaction before. */
static bool is_either_state(struct sim_client *c, const char *msg, const char *want)
{
    if (msg[0] == BE_READY && want[0] == BE_READY)
        sim_note("client %d is told state %c, the model says %c", c->id, msg[PROTO_HEADER_BYTES],
            want[PROTO_HEADER_BYTES]);
    if (msg[0] == BE_READY && want[0] == BE_READY && msg[PROTO_HEADER_BYTES] == 'E' &&
        want[PROTO_HEADER_BYTES] == 'T' && were_faults()) {
        c->had_fault = true; /* its transaction died after it had been answered */
        model_lose_tx(c, NULL);
        pg_fail(&c->model, true);
        return true;
    }
    if (msg[0] != BE_READY || want[0] != BE_READY || !c->may_be_either || !c->had_fault)
        return false;
    if (c->model.tx == 'I' && c->has_ended)
        return false; /* it was told of the end */
    if (c->model.tx == 'I')
        c->model.tx_vars = c->model.vars;
    c->model.tx = msg[PROTO_HEADER_BYTES];
    if (c->model.tx == 'I') {
        c->model.nwrites = 0; /* written or not: a later COMMIT says nothing of them */
        c->model.tx_read_only = c->model.tx_one_snapshot = c->model.is_pipeline = false;
    }
    c->model.vars = c->model.tx_vars;
    c->model.mark = c->model.vars;
    c->model.nsavepoints = 0;
    return true;
}

/* A failed transaction has died with its link, of which its client has not heard, as it is a failed
 * one still: a portal that it had bound can be bound anew (doc/internals/known-gaps.md). */
static bool is_bound_anew(struct sim_client *c, const char *msg, const char *want)
{
    struct errmsg due;

    if (msg[0] != BE_BIND_COMPLETE || want[0] != BE_ERROR || c->before.tx != 'E' ||
        c->present != FE_BIND || !were_faults())
        return false;
    (void)errmsg_decode(slice_of(want + PROTO_HEADER_BYTES, proto_get_u32(want + 1) - 4), &due);
    if (!slice_eq_str(due.sqlstate, "42P03"))
        return false;
    c->model = c->before;
    pg_drop_portals(&c->model);
    buf_clear(&c->expected);
    pg_message(&c->model, FE_BIND, message_body(buf_slice(&c->message)), &c->expected);
    return c->expected.data[0] == BE_BIND_COMPLETE;
}

/* One whole reply in a session. */
static void client_on_reply(struct sim_client *c, const char *msg, uint32_t len)
{
    const char *want;
    bool is_due;
    struct errmsg m;

    world.nreplies++;
    is_due = expect_more(c);
    want = c->expected.data + c->expected.pos;
    if (msg[0] == BE_READY && c->nspare > 0 && (!is_due || want[0] != BE_READY)) {
        c->nspare--;
        return;
    }
    if (!is_due) {
        sim_fail("client %d got %c, it had asked nothing", c->id, msg[0]);
        return;
    }
    if (msg[0] != BE_READY && msg[0] != BE_ERROR)
        c->nspare = 0;
    if (msg[0] == BE_ERROR && !errors_are_same(msg, len, want) &&
        !errors_are_as_good(c->before.tx, msg, len, want)) {
        (void)errmsg_decode(slice_of(msg + PROTO_HEADER_BYTES, len - 4), &m);
        sim_note("client %d got error %.*s: %.*s", c->id, (int)m.sqlstate.n, m.sqlstate.p,
            (int)m.message.n, m.message.p);
        if (!client_on_fault(c, &m))
            errors_say_mismatch(c->id, msg, len, want);
        return;
    }
    if (is_bound_anew(c, msg, want))
        want = c->expected.data;
    if (msg[0] != BE_ERROR && !sight_is_row(&c->sight, &c->before, c->id, want, msg) &&
        !is_either_state(c, msg, want)) {
        errors_say_mismatch(c->id, msg, len, want);
        return;
    }
    buf_consume(&c->expected, proto_get_u32(want + 1) + 1U);
    c->had_row = c->had_row || msg[0] == BE_DATA_ROW;
    c->had_reply = msg[0] != BE_READY;
    if (msg[0] == BE_READY) {
        on_ready_matched(c);
        c->hangs_now = c->hangs_up && c->is_vague;
        c->hangs_up = false;
    }
}

static void on_parameter(struct sim_client *c, const char *body)
{
    int i;

    for (i = 0; i < PG_NREPORTED; i++)
        if (strcmp(body, reported_names[i]) == 0) {
            sim_note("client %d is told %s = \"%s\"", c->id, body, body + strlen(body) + 1);
            snprintf(c->told[i], PG_VALUE_BYTES, "%s", body + strlen(body) + 1);
        }
}

static void on_login_over(struct sim_client *c)
{
    int i;

    c->phase = C_IN;
    c->since_us = 0;
    c->model.on_commit = model_on_commit;
    c->model.ctx = c;
    sim_note("client %d is in", c->id);
    for (i = 0; i < PG_NREPORTED; i++)
        if (strcmp(c->told[i], c->model.vars.now.v[i]) != 0)
            sim_fail("client %d was told %s = \"%s\" at its login, it is \"%s\"", c->id,
                reported_names[i], c->told[i], c->model.vars.now.v[i]);
}

/* The end of the session, in words. */
static void on_fatal(struct sim_client *c, const struct errmsg *m)
{
    sim_note("client %d is sent away: %.*s %.*s", c->id, (int)m->sqlstate.n, m->sqlstate.p,
        (int)m->message.n, m->message.p);
    if (!were_faults())
        sim_fail("client %d is sent away although nothing went wrong", c->id);
    c->had_fault = true;
}

static void client_on_message(struct sim_client *c, const char *msg, uint32_t len)
{
    const char *body = msg + PROTO_HEADER_BYTES;
    struct errmsg m;

    if (msg[0] == BE_PARAMETER_STATUS) {
        on_parameter(c, body);
        return;
    }
    if (msg[0] == BE_NOTICE || msg[0] == BE_NOTIFICATION || c->hangs_now)
        return;
    if (msg[0] == BE_ERROR) {
        (void)errmsg_decode(slice_of(body, len - 4), &m);
        if (c->phase == C_LOGIN || slice_eq_str(m.severity, "FATAL")) {
            on_fatal(c, &m);
            return;
        }
    }
    if (c->phase != C_LOGIN) {
        client_on_reply(c, msg, len);
    } else if (msg[0] == BE_BACKEND_KEY_DATA) {
        c->pid = (int)proto_get_u32(body);
        c->key = proto_get_u32(body + 4);
    } else if (msg[0] == BE_READY) {
        on_login_over(c);
    } else if (msg[0] != BE_AUTHENTICATION) {
        sim_fail("client %d got %c during its login", c->id, msg[0]);
    }
}

static void client_read(struct sim_client *c)
{
    struct buf *in = sim_sock_in(c->sock);
    const char *p;
    uint32_t len;

    buf_put(&c->in, in->data + in->pos, buf_unread(in));
    buf_consume(in, buf_unread(in));
    while (!sim.failed && buf_unread(&c->in) >= PROTO_HEADER_BYTES) {
        p = c->in.data + c->in.pos;
        len = proto_get_u32(p + 1);
        if (len < 4 || len > 100000) {
            sim_fail("client %d got a message of %u bytes", c->id, len);
            return;
        }
        if (buf_unread(&c->in) < len + 1U)
            break;
        client_on_message(c, p, len);
        buf_consume(&c->in, len + 1U);
    }
    if (sim_sock_is_over(c->sock))
        client_on_end(c);
}

/* ---- requests ---- */

static void client_send(struct sim_client *c)
{
    size_t all = buf_unread(&c->out);
    size_t n = all;

    if (c->to_flush > 0 && c->to_flush <= all) { /* else that connection is gone */
        n = c->to_flush;                         /* it wants to see the answer before it goes on */
        c->next_us = sim.now_us + sim_below(sim_one_in(4) ? 300 : 20) * SIM_MS;
    }
    c->to_flush = 0;
    if (n == all && sim_one_in(3))
        n = 1 + sim_below((uint32_t)n);
    sim_sock_put(c->sock, c->out.data + c->out.pos, n);
    buf_consume(&c->out, n);
    if (sim_one_in(20))
        c->next_us = sim.now_us + sim_below(200) * SIM_MS; /* pauses in the middle */
}

static void client_leave(struct sim_client *c)
{
    wire_put_empty(&c->out, FE_TERMINATE);
    c->phase = C_LEAVING;
    c->since_us = sim.now_us;
    sim_note("client %d says goodbye", c->id);
}

static void client_ask(struct sim_client *c)
{
    struct buf msgs = {0};
    char text[1500];

    if (c->script.n < world.opts.nunits) {
        script_write(&c->script, &msgs);
        c->next_us = sim.now_us + (sim_one_in(3) ? sim_below(30) * SIM_MS : 0);
    } else if (c->in_flight > 0) {
        return;
    } else if (!script_write_end(&c->script, &msgs)) {
        client_leave(c);
        return;
    }
    sim_describe(text, sizeof text, msgs.data, script_count(&msgs, ""));
    sim_note("client %d asks (%d): %s", c->id, c->script.n, text);
    if (c->script.flush_at > 0 && sim_one_in(2))
        c->to_flush = buf_unread(&c->out) + c->script.flush_at;
    c->script.flush_at = 0;
    buf_put(&c->out, msgs.data, msgs.len);
    buf_put(&c->asked, msgs.data, msgs.len);
    if (c->in_flight > 0)
        c->script.is_read = c->script.is_write =
            false; /* what runs with others shares their fate */
    if (c->in_flight == 0) {
        c->since_us = sim.now_us;
        c->nkilled = world.nkilled;
        sight_on_ask(&c->sight);
    }
    c->in_flight += (int)script_count(&msgs, "QS");
    buf_free(&msgs);
    if (world.opts.cancel_one_in > 0 &&
        sim_one_in(c->script.asked_sleep ? 3 : world.opts.cancel_one_in))
        c->cancel_us = sim.now_us + sim_below(200) * SIM_MS;
}

static void client_cancel(struct sim_client *c)
{
    c->cancel_us = 0;
    if (!cancels_send(c->pid, c->key))
        return;
    c->ncancels++;
    sim_note("client %d asks for a cancel", c->id);
}

static bool may_ask(const struct sim_client *c)
{
    int limit = c->script.n % (world.opts.wild ? 3 : 7) == 0 ? MAX_IN_FLIGHT : 1;

    return c->phase == C_IN && c->in_flight < limit && buf_unread(&c->out) == 0;
}

/* ---- steps ---- */

static bool client_is_ready(const struct sim_client *c)
{
    if (c->phase == C_DONE)
        return false;
    if (c->phase == C_OUT)
        return sim.now_us >= c->next_us;
    if (c->hangs_now || buf_unread(sim_sock_in(c->sock)) > 0 || sim_sock_is_over(c->sock))
        return true;
    if (c->cancel_us != 0 && sim.now_us >= c->cancel_us)
        return true;
    return sim.now_us >= c->next_us &&
           ((buf_unread(&c->out) > 0 && sim_sock_has_room(c->sock)) || may_ask(c));
}

bool clients_are_ready(void)
{
    int i;

    for (i = 0; i < nclients; i++)
        if (client_is_ready(clients[i]))
            return true;
    return cancels_are_ready();
}

int64_t clients_next_us(void)
{
    int64_t next_us = INT64_MAX;
    const struct sim_client *c;
    int i;

    for (i = 0; i < nclients; i++) {
        c = clients[i];
        if (c->phase == C_DONE)
            continue;
        if (c->next_us > sim.now_us && c->next_us < next_us)
            next_us = c->next_us;
        if (c->cancel_us > sim.now_us && c->cancel_us < next_us)
            next_us = c->cancel_us;
    }
    return next_us;
}

static void client_vanish(struct sim_client *c)
{
    sim_note("client %d vanishes", c->id);
    client_gone(c, sim_one_in(2));
}

static void client_step(struct sim_client *c)
{
    if (c->phase == C_OUT) {
        client_connect(c);
        return;
    }
    if (c->hangs_now || (world.opts.vanish_one_in > 0 && sim_one_in(world.opts.vanish_one_in))) {
        client_vanish(c);
        return;
    }
    if (c->cancel_us != 0 && sim.now_us >= c->cancel_us && c->phase == C_IN)
        client_cancel(c);
    else if (buf_unread(sim_sock_in(c->sock)) > 0 || sim_sock_is_over(c->sock))
        client_read(c);
    else if (buf_unread(&c->out) > 0)
        client_send(c);
    else if (may_ask(c))
        client_ask(c);
    else
        c->cancel_us = 0;
}

void clients_step(void)
{
    struct sim_client *c = NULL;
    uint32_t seen = 0;
    int i;

    cancels_step();
    for (i = 0; i < nclients; i++)
        if (client_is_ready(clients[i]) && sim_one_in(++seen))
            c = clients[i];
    if (c != NULL)
        client_step(c);
}

void clients_check_patience(void)
{
    int i;

    for (i = 0; i < nclients; i++)
        if (clients[i]->since_us != 0 && clients[i]->phase != C_DONE &&
            sim.now_us - clients[i]->since_us > PATIENCE_US)
            sim_fail("client %d waits for an answer since %lld s (phase %d, %d requests)", i,
                (long long)((sim.now_us - clients[i]->since_us) / SIM_S), (int)clients[i]->phase,
                clients[i]->in_flight);
}
