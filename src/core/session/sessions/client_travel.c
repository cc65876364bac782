/* SPDX-License-Identifier: PostgreSQL
 * client_travel.c: a client goes to another worker: an idle one, so that few of them do the work
 * while there is little, and all of them when there is much; or one that waits for a link, to where
 * one is that cannot come. Runs in: workers. The client notices nothing: what it sends meanwhile
 * waits in its socket, what it has sent that no server has seen goes along. Must never: take along
 * a client of which anything else is under way, or leave a byte of it behind. */
#include "config.h"

#include <unistd.h>

#include "auth/auth_book.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/conf.h"
#include "ipc/mailbox.h"

#include "client/client_travel_int.h"
#include "sstate_int.h"
#include "client_events_int.h"

/* A client that has just come may be gone as soon: to move it would not pay. */
#define TRAVEL_AGE_US 250000

/* A client that has sent more than this that no server has seen stays: it would not fit. */
#define TRAVEL_CARRY_BYTES 32768

/* A client that waits for a link. The BEGIN of its transaction follows, if no server has seen it,
 * and what it has sent. */
struct waiting_mail {
    int64_t since_us; /* its place in the line */
    int64_t wait_us;  /* as in client_stats */
    int64_t taken_us;
    bool is_counted;
    bool was_told_to_wait;
};

/* What of struct client goes as it is; parts follow: names, statement, login of the user, share,
 * balance. */
struct client_mail {
    struct client_row row;
    struct limits_ticket ticket;
    int64_t last_active_us;
    int32_t node;
    struct login_proof proof;
    uint8_t parsed_count;
    uint8_t bound_count;
    uint8_t traces : 2;
    uint8_t role; /* enum pool_role */
};

/* ---- may it? ---- */

/* Nothing of it is with a server, or half answered here. */
static bool is_between(const struct client *c)
{
    return c->phase == CL_ACTIVE && c->link == NULL && c->target == NULL &&
           c->sends == CLIENT_SENDS_ON && c->body_left == 0 && c->body_skip == 0 &&
           c->local_part == LOCAL_PART_NONE && !c->server_batch && c->stats.sent_us == 0 &&
           c->stats.tx_us == 0;
}

static bool is_idle(const struct client *c)
{
    return is_between(c) && !c->is_parked && c->carry.data == NULL && c->stats.taken_us == 0 &&
           c->stats.wait_us == 0;
}

static bool is_plain(struct client *c)
{
    return c->row != NULL && c->is_counted && !c->drops_database && c->named == NULL &&
           c->rare == NULL && c->login == NULL && !stream_is_tls(&c->stream) &&
           !stream_is_clogged(&c->stream) && !stream_has_failed(&c->stream);
}

/* What the router knows of the session can be told. */
static bool plan_is_at_rest(const struct client *c)
{
    const struct plan *b = c->plan;

    return b->questions == NULL && b->doubts == NULL && b->mark == NULL && b->rs.trace == NULL &&
           b->asking == ASKING_NONE && b->wait == PLAN_WAITS_NOT &&
           (c->sstate->tx == SSTATE_TX_VIRTUAL || (!route_in_tx(&b->rs) && b->tx_status == 'I'));
}

static bool may_go(struct client *c)
{
    const struct sessions *ss = c->ss;

    return is_plain(c) && plan_is_at_rest(c) && !ss->logs_statements && *ss->has_orders == 0 &&
           ss->stop == SESSION_RUNNING && !c->pool->is_moved;
}

bool client_can_travel(struct client *c)
{
    const struct sessions *ss = c->ss;

    return is_idle(c) && c->kind->can_travel(c) && may_go(c) &&
           (ss->conf->pool_test_rotate ||
               backend_wall_us(&c->ss->be) - c->row->connected_us > TRAVEL_AGE_US);
}

/* The client waits for a link, and for nothing else. */
static bool waiter_can_travel(struct client *c)
{
    return is_between(c) && c->is_parked && buf_unread(&c->carry) <= TRAVEL_CARRY_BYTES &&
           follow_waiter_can_travel(c) && may_go(c);
}

/* ---- there ---- */

static void pack_plan(const struct client *c, struct buf *out)
{
    const struct plan *b = c->plan;

    travel_put(out, b, b == plan_none() ? 0 : sizeof *b);
    if (b != plan_none())
        travel_put(out, b->application_name,
            b->application_name == NULL ? 0 : strlen(b->application_name));
}

static void pack_client(const struct client *c, struct buf *out)
{
    struct client_mail m;

    memset(&m, 0, sizeof m); /* no byte leaves that nobody wrote */
    m.row = *c->row;
    m.ticket = c->ticket;
    m.last_active_us = c->last_active_us;
    m.node = c->pool->cluster_node;
    m.proof = c->proof;
    m.parsed_count = c->parsed_count;
    m.bound_count = c->bound_count;
    m.traces = c->traces;
    m.role = c->pool->role;
    travel_put(out, &m, sizeof m);
}

static void pack_words(const struct client *c, struct buf *out)
{
    struct slice user = pool_user(c->pool);
    struct slice database = pool_database(c->pool);
    struct slice application = row_application(client_row_names(c));
    struct slice statement = client_row_statement(c);

    travel_put(out, user.p, user.n);
    travel_put(out, database.p, database.n);
    travel_put(out, application.p, application.n);
    travel_put(out, statement.p, statement.n);
}

static void pack_waiting(const struct client *c, struct buf *out)
{
    struct waiting_mail m;

    if (!c->is_parked) {
        travel_put(out, "", 0);
        return;
    }
    memset(&m, 0, sizeof m);
    m.since_us = c->sstate->errand->wait->req.since_us;
    m.wait_us = c->stats.wait_us;
    m.taken_us = c->stats.taken_us;
    m.is_counted = c->sstate->is_counted;
    m.was_told_to_wait = c->was_told_to_wait;
    travel_put(out, &m, sizeof m);
    travel_put(out, c->sstate->errand->begin.data,
        c->sstate->tx == SSTATE_TX_VIRTUAL ? c->sstate->errand->begin.len : 0);
    travel_put(out, c->carry.data + c->carry.pos, buf_unread(&c->carry));
}

/* What opens servers in the user's name: learned from a client, it may be known here alone. */
static void pack_login(const struct client *c, struct buf *out)
{
    struct buf login = {.is_secret = true};

    if (c->proof.proved != LOGIN_PROVED_NOT && c->ss->be.book != NULL)
        auth_book_pack_login(c->ss->be.book, pool_book_name(c->pool), &login);
    travel_put(out, login.data, login.len);
    buf_free(&login);
}

struct departure {
    struct client *c;
    int to;
    struct slice body;
};

/* Under the lock of the limits: who reclaims finds both the counts and the message, or neither. */
static bool depart(void *ctx)
{
    const struct departure *d = ctx;
    struct sessions *ss = d->c->ss;

    session_note_move(ss->shared, loop_now_us(ss->loop));
    session_count_move(ss->shared, ss->env->ordinal, d->to);
    if (mailbox_post(ss->env->boxes, ss->env->first_worker_slot + d->to, MAIL_SESSION, d->body.p,
            d->body.n, stream_fd(&d->c->stream)) == 0)
        return true;
    session_count_move(ss->shared, d->to, ss->env->ordinal);
    return false;
}

static bool hand_over(struct client *c, int ordinal, struct slice body)
{
    struct sessions *ss = c->ss;
    struct departure d = {c, ordinal, body};
    int events = c->stream.io.interest;

    if (body.n > MAILBOX_MAX_BYTES)
        return false;
    io_want(&c->stream.io, 0); /* two processes must not be told of the same bytes */
    if (limits_move_client(ss->env->shm, &c->ticket, ss->env->ordinal, ordinal, depart, &d))
        return true;
    io_want(&c->stream.io, events);
    return false;
}

bool client_travel(struct client *c, int ordinal)
{
    struct buf out = {.is_secret = true};
    bool is_gone;

    pack_client(c, &out);
    pack_words(c, &out);
    pack_login(c, &out);
    follow_pack(c, &out);
    pack_plan(c, &out);
    pack_waiting(c, &out);
    is_gone = hand_over(c, ordinal, buf_slice(&out));
    buf_free(&out);
    if (!is_gone)
        return false;
    c->is_counted = false;
    c->ticket = (struct limits_ticket){0, 0};
    client_dispose(c);
    return true;
}

bool client_do_travel_waiting(struct client *c, int ordinal)
{
    struct sessions *ss = c->ss;

    return ss->may_give != NULL && ss->may_give(ss, ordinal) && waiter_can_travel(c) &&
           client_travel(c, ordinal);
}

/* ---- and here ---- */

static bool unpack_plan(struct client *c, struct travel_bag *bag)
{
    struct slice bytes = travel_take(bag);
    struct plan *b;
    struct slice name;

    if (bytes.n == 0)
        return !bag->bad;
    name = travel_take(bag);
    if (bag->bad || bytes.n != sizeof *b)
        return false;
    b = c->plan = mem_alloc_zero(sizeof *b);
    c->kind = &c->ss->kinds->balanced;
    memcpy(b, bytes.p, sizeof *b);
    b->application_name = name.n == 0 ? NULL : mem_strndup(name.p, name.n);
    return true;
}

static void unpack_client(struct client *c, const struct client_mail *m)
{
    c->phase = CL_ACTIVE;
    c->ticket = m->ticket;
    c->is_counted = true;
    c->last_active_us = m->last_active_us;
    c->proof = m->proof;
    c->parsed_count = m->parsed_count;
    c->bound_count = m->bound_count;
    c->traces = m->traces;
}

static void unpack_pool(
    struct client *c, const struct client_mail *m, struct slice user, struct slice database)
{
    c->pool = pool_attach(&c->ss->be, user, database, m->node);
    pool_check_place(c->pool); /* pools.conf may have been read again while it was on its way */
    if (!pool_is_role_known(c->pool))
        c->pool->role = m->role;
}

static bool unpack(struct client *c, const struct client_mail *m, struct travel_bag *bag)
{
    struct slice user = travel_take(bag);
    struct slice database = travel_take(bag);
    struct slice application = travel_take(bag);
    struct slice statement = travel_take(bag);
    struct slice login = travel_take(bag);

    if (bag->bad)
        return false;
    unpack_pool(c, m, user, database);
    client_row_adopt(c, &m->row, application, statement);
    if (login.n > 0 && c->ss->be.book != NULL)
        auth_book_learn_packed(c->ss->be.book, pool_book_name(c->pool), login);
    return follow_unpack(c, bag) && unpack_plan(c, bag);
}

/* What the client has sent counts as come only now; in the line it stands where it stood. */
static void go_on(
    struct client *c, const struct waiting_mail *m, struct slice begin, struct slice sent)
{
    c->stats.taken_us = m->taken_us;
    c->stats.wait_us = m->wait_us;
    c->was_told_to_wait = m->was_told_to_wait;
    c->sstate->is_counted = m->is_counted;
    errand_begin(c);
    if (begin.n > 0)
        follow_virtual_begin_again(c, begin);
    c->sstate->errand->stands_since_us = m->since_us;
    buf_put(&c->carry, sent.p, sent.n);
    c->is_parked = true;
    client_unpark(c);
    if (c->kind->errand(c) != NULL)
        c->sstate->errand->stands_since_us = 0; /* it had no need of it */
}

/* `bag` is at what pack_waiting put. */
static void arrive(struct client *c, struct travel_bag *bag)
{
    struct slice head = travel_take(bag);
    struct waiting_mail m;
    struct slice begin;

    c->stats.row = dbstats_row_of(c->ss->env->shm, c->ss->env->ordinal, pool_database(c->pool));
    client_trace_settings(c);
    if (c->ss->stop == SESSION_STOP_FAST) {
        client_end_text(c, "57P01", "terminating connection due to administrator command");
        return;
    }
    client_limits_poke(c);
    if (head.n != sizeof m)
        return;
    memcpy(&m, head.p, sizeof m);
    begin = travel_take(bag);
    go_on(c, &m, begin, travel_take(bag));
}

void sessions_on_travel(struct sessions *ss, void *body, size_t len, int fd)
{
    struct travel_bag bag = {body, (const char *)body + len, false};
    struct client_mail m;
    struct client *c;

    travel_take_struct(&bag, &m, sizeof m);
    if (bag.bad || fd == -1) { /* not of our making */
        if (fd != -1)
            close(fd);
        return;
    }
    c = client_new(ss, fd);
    unpack_client(c, &m);
    if (unpack(c, &m, &bag)) {
        arrive(c, &bag);
    } else {
        log_at_detail(LVL_WARNING, NULL, LOG_HINT_MISFIT,
            "a client that came from another worker cannot be read: it is closed");
        client_dispose(c);
    }
    mem_wipe(body, len);
}
